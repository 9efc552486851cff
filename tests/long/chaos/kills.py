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

from chaos.comparison import Figures
from chaos.site import RETAINED, SEVENS, Site
from ringlog.server.processes.background import in_background

PAUSE = (1.0, 3.0)
"""seconds between two kills, least and most"""
_LOOK = 0.05  # seconds
_AGAIN = 0.02
"""probability at each look that a server is killed which is still starting"""
_READING = 0.5
"""seconds between two requests to HTTP"""

Kill = Callable[[Site, random.Random], int]


def _kill(choose: Callable[[Site], list[psutil.Process]], *, is_down: bool = True) -> Kill:
    """The function that kills one of these processes and returns how many it has killed: none may run.
    `is_down`: writers wait until the server is back."""

    def kill(site: Site, draw: random.Random) -> int:
        if is_down and not site.server.accepts_calls and draw.random() > _AGAIN:
            return 0
        with suppress(psutil.Error, OSError, IndexError):
            process = draw.choice(choose(site))
            if is_down:
                threading.Thread(target=_wait_excused, args=(site,), daemon=True).start()
            process.kill()
            return 1
        return 0

    return kill


def _wait_excused(site: Site) -> None:
    """Writers may wait until the server and PostgreSQL accept calls again."""
    with site.excused():
        time.sleep(_LOOK)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if site.server.accepts_calls:
                with suppress(psycopg.Error), psycopg.connect(site.server.dsn, connect_timeout=5):
                    return
            time.sleep(_LOOK)


def _postmaster(site: Site) -> list[psutil.Process]:
    lines = (site.data / "postgresql-18" / "postmaster.pid").read_text().splitlines()
    process = psutil.Process(int(lines[0]))
    return [process] if process.name() == "postgres" else []


def _postgres(site: Site, words: str, has_words: bool = True) -> list[psutil.Process]:
    """PostgreSQL's processes by their titles."""
    children = [child for process in _postmaster(site) for child in process.children()]
    return [child for child in children if (words in " ".join(child.cmdline())) == has_words]


def _server(site: Site) -> list[psutil.Process]:
    return [psutil.Process(site.server.pid)]


def _web(site: Site) -> list[psutil.Process]:
    children = _server(site)[0].children(recursive=True)
    return [child for child in children if "ringlog.server.processes.web_process" in child.cmdline()]


def _load(site: Site) -> list[psutil.Process]:
    assert site.load is not None
    return [psutil.Process(site.load.pid)]


def _tds_clients(site: Site) -> list[psutil.Process]:
    children = psutil.Process().children()
    return [child for child in children if child.exe() == str(site.ct_program)]


def _operate(site: Site, draw: random.Random) -> int:
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
    return 0


def _end(site: Site, command: subprocess.Popen[bytes], name: str, seconds: float) -> None:
    try:
        command.wait(seconds)
    except subprocess.TimeoutExpired:
        command.kill()
        command.wait()
        site.kills[f"ringlog {name}"] += 1


KILLS: dict[str, tuple[int, Kill]] = {
    "backend of commits": (6, _kill(lambda site: _postgres(site, ": ringlog_gateway ringlog "))),
    "backend": (4, _kill(lambda site: _postgres(site, " ringlog 127.0.0.1("))),
    "other process of PostgreSQL": (3, _kill(lambda site: _postgres(site, " ringlog ", has_words=False))),
    "postmaster": (3, _kill(_postmaster)),
    "gateway": (3, _kill(_server)),
    "HTTP": (2, _kill(_web, is_down=False)),
    "load": (2, _kill(_load, is_down=False)),
    "writer of load": (4, _kill(lambda site: _load(site)[0].children(), is_down=False)),
    "writer over TDS": (4, _kill(_tds_clients, is_down=False)),
    "administrator's backend": (2, _kill(lambda site: _postgres(site, ": postgres ringlog "))),
    "command": (4, _operate),
}
"""The weight of each kind, and its function."""


def kill_all(site: Site, seconds: float, draw: random.Random, figures: Figures) -> None:
    """Kills for this many seconds; processes that have ended are started again."""
    site.kills = figures.faults
    end = time.monotonic() + seconds
    with _repeated(site.tend, _LOOK), _read_over_http(site, figures):
        while time.monotonic() < end:
            (kind,) = draw.choices([*KILLS], [weight for weight, _ in KILLS.values()])
            killed = KILLS[kind][1](site, draw)
            site.kills[kind] += killed
            time.sleep(draw.uniform(*PAUSE) if killed else _LOOK)
        _wait_excused(site)


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
def _read_over_http(site: Site, figures: Figures) -> Iterator[None]:
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
                    figures.read += 1
                    values = Counter(line.split(",")[1] for line in answer.text.splitlines()[1:])
                    if values != wanted:
                        figures.problems.append(f"HTTP: {values.total()} rows for {wanted.total()}")

        with _repeated(read, _READING):
            yield
