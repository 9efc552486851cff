"""Kills of single processes, one to three seconds apart: the next one does not wait for a restart."""

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import httpx
import psutil
import psycopg

from chaos.processes import (
    excuse,
    kill,
    kill_at_any_time,
    load,
    postgres,
    postmaster,
    server,
    web,
    writers_of_load,
)
from chaos.writing import RETAINED, SEVENS, WritingSite
from random_operations import LOOK, Operations, run
from ringlog.server.processes.background import in_background

PAUSE = (1.0, 3.0)
"""seconds between two kills, least and most"""
_READING = 0.5
"""seconds between two requests to HTTP"""


def _tds_clients(site: WritingSite) -> list[psutil.Process]:
    children = psutil.Process().children()
    return [child for child in children if child.exe() == str(site.ct_program)]


def _operate(site: WritingSite, draw: random.Random) -> None:
    """A command that sets weeks of RETAINED aside, or restores them; a slow one is killed."""
    days = sorted(datetime.now(UTC).date() - timedelta(days=draw.randrange(63)) for _ in range(2))
    words = draw.choice([("maintain",), ("weeks", "restore", RETAINED, *map(str, days))])
    retention = f"{draw.randrange(2, 10)} weeks"
    update = "update ringlog.logged_table set retention = %s where table_name = %s"
    with suppress(psycopg.Error), psycopg.connect(site.server.dsn, connect_timeout=5) as connection:
        connection.execute(update, [retention, RETAINED])
    command = subprocess.Popen(
        site.server.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    threading.Thread(target=_end, args=(site, command, words[0], draw.uniform(1, 8)), daemon=True).start()


def _end(site: WritingSite, command: subprocess.Popen[bytes], name: str, seconds: float) -> None:
    try:
        command.wait(seconds)
    except subprocess.TimeoutExpired:
        command.kill()
        command.wait()
        site.note(f"ringlog {name} killed")


KILLS: Operations = {
    "backend of commits": (6, kill_at_any_time(postgres(": ringlog_gateway ringlog "))),
    "backend": (4, kill_at_any_time(postgres(" ringlog 127.0.0.1("))),
    "other process of PostgreSQL": (3, kill_at_any_time(postgres(" ringlog ", has_words=False))),
    "postmaster": (3, kill_at_any_time(postmaster)),
    "gateway": (3, kill_at_any_time(server)),
    "HTTP": (2, kill(web)),
    "load": (2, kill(load)),
    "writer of load": (4, kill(writers_of_load)),
    "writer over TDS": (4, kill(_tds_clients)),
    "administrator's backend": (2, kill_at_any_time(postgres(": postgres ringlog "))),
    "command": (4, _operate),
}


def kill_all(site: WritingSite, seconds: float, draw: random.Random) -> None:
    """Kills for this many seconds; processes that have ended are started again."""
    with _repeated(site.tend, LOOK), _read_over_http(site):
        run(
            site,
            KILLS,
            draw,
            site.note,
            pause=lambda: draw.uniform(*PAUSE),
            seconds=seconds,
            wait=lambda _, pause: time.sleep(pause),
        )
        excuse(site)


@contextmanager
def _repeated(work: Callable[[], object], pause: float) -> Iterator[None]:
    """Repeats the work in a thread until the end of the with block, which raises its error."""
    end, errors = threading.Event(), list[Exception]()

    def run() -> None:
        try:
            while not end.wait(pause):
                work()
        except Exception as error:
            errors.append(error)

    with in_background("repeated", run, end):
        yield
    if errors:
        raise errors[0]


@contextmanager
def _read_over_http(site: WritingSite) -> Iterator[None]:
    """Reads rows that are older than the kills: an answer has all of them."""
    old = next(writer.old for writer in site.writers if writer.table == SEVENS[0])
    wanted = Counter(str(row.number) for row in old)
    parameters = {
        "signal": f"{SEVENS[0]}/number",
        "from": (old[0].moment - timedelta(seconds=1)).isoformat(),
        "to": (old[-1].moment + timedelta(seconds=1)).isoformat(),
        "format": "csv",
    }
    login = (site.reader.user, site.reader.password)
    with httpx.Client(base_url=site.http, auth=login, timeout=60) as client:

        def read() -> None:
            with suppress(httpx.HTTPError):
                answer = client.get("/api/v1/data", params=parameters)
                if answer.status_code == 200:
                    site.figures.notes["answers of HTTP"] += 1
                    values = Counter(line.split(",")[1] for line in answer.text.splitlines()[1:])
                    if values != wanted:
                        site.figures.problems.append(f"HTTP: {values.total()} rows for {wanted.total()}")

        with _repeated(read, _READING):
            yield
