"""A small site with an object of each kind that a database of ringlog keeps, and its answers.

`python -m releases` writes it as this version of ringlog makes it. It is committed with each release that
begins a minor version, and never changed: the tests start today's ringlog on it.
"""

import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pymssql
from places import new_folder
from psycopg.conninfo import make_conninfo

from ringlog.history.archive.archiving import archive
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.relations.sample_tables import merge
from ringlog.schema.session import engine
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.logins import add_login
from servers import TEST_MEMORY, Login, RunningServer, add_logins, free_port, ringlog, serving

DEVELOPER = Login("developer", "develop-3")
WEEKS = 5
EACH = 7 * 24  # rows of a week
FACILITY = Path(__file__).with_name("site.toml").read_text()
# each statement is a batch of its own
OBJECTS = Path(__file__).with_name("site_objects.sql").read_text()
QUERIES = (
    "select seq_no, time, current, state, wave from log..magnets order by time",
    "select count(*), sum(seq_no), max(current) from log..magnets",
    "select seq_no, time, current, state from online..magnets order by seq_no",
    "select signal, time, value, severity, status, nanoseconds from log..vac order by number, time",
    "exec get_signal 'magnets/current', '{middle}', '{end}'",
    "exec get_trend 'magnets/current', '{begin}', '{end}', 50",
    "exec get_latest 'gauge:2'",
    "exec get_vac_at @at = '{middle}'",
    "select device, current from parameter..mag_set order by device",
    "exec history_mag_set 'b1'",
    "select id, name, place, price, twice, made, parent from site..devices order by id",
    "select name from site..devices where place = 'HALL A' order by name",
    "select * from site..cheap order by id",
    "use site select dbo.doubled(2.25)",
    "exec site..devices_of 'HALL a'",
    "declare @n int exec @n = site..counted select @n",
    "exec site..several;2",
    "select what, at from site..changes order by at",
    "exec site.staff.listed",
    "select table_schema, table_name from site.information_schema.tables order by table_schema, table_name",
    "select name, type from site..sysobjects where type in ('U', 'V', 'P', 'TR') order by name",
)
OWN = (
    "archive",
    "closed",
    "log",
    "online",
    "parameter",
    "parameter_history",
    "recent",
    "ringlog",
    "summary",
    "sys",
    "tsql",
    "weeks",
)
STRUCTURE = Path(__file__).with_name("site_structure.sql").read_text()


def moments() -> dict[str, str]:
    """Begin, middle and end of the rows: Monday five weeks ago until now."""
    now = datetime.now(UTC)
    monday = (now - timedelta(days=now.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    begin = monday - timedelta(weeks=WEEKS)
    return {
        name: f"{at:%Y-%m-%dT%H:%M:%S}"
        for name, at in (("begin", begin), ("middle", begin + timedelta(days=10)), ("end", monday))
    }


def put_rows(server: RunningServer, begin: str, last: int = WEEKS * EACH) -> None:
    """The writer's last calls, as in all weeks; they may be repeated."""
    at = datetime.fromisoformat(begin)
    with server.connect(server.writer.user, server.writer.password) as session, session.cursor() as cursor:
        for n in range(WEEKS * EACH)[-last:]:
            wave = b"".join(n.to_bytes(1, "big") + b"\0\0\0" for _ in range(4)) if n < 256 else None
            when = (at + timedelta(hours=n)).isoformat()
            cursor.callproc("put_magnets", (n % 100 + 1, when, n / 7, f"state {n % 3}", wave))


def _fill(server: RunningServer, given: dict[str, str]) -> None:
    add_logins(server.dsn)
    put_rows(server, given["begin"])
    ns = int(datetime.fromisoformat(given["begin"]).replace(tzinfo=UTC).timestamp()) * 10**9
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(
            "select ringlog.put_vac_batch(array_agg(number), array_agg(%s + k * 7200000000123),"
            " array_agg(case when k %% 50 <> 7 then k / 7.0::double precision end),"
            " array_agg((k %% 30 / 29)::smallint))"
            " from ringlog.sample_signal, generate_series(0, 400) as k group by k order by k",
            [ns],
        )
        for device, current in (("b1", 1.5), ("b2", -2), ("b1", 3)):
            admin.execute(
                "select ringlog.set_mag_set(row (%s, %s)::parameter.mag_set_row, comment => 'tune')",
                [device, current],
            )
        admin.execute(
            "create role site nologin; create schema site authorization site;"
            "do $$ begin execute format('grant create on database %I to site', current_database()); end $$"
        )
        add_login(server.dsn, DEVELOPER.user, [], DEVELOPER.password)
        admin.execute(
            "grant site, daq_reader to developer; grant daq_reader to site; notify ringlog_catalogue"
        )
    with closing(_session(server)) as session, session.cursor() as cursor:
        cursor.execute("use site")
        for text in statements():
            cursor.execute(text)
    # a round of housekeeping creates the weeks of the rows
    maintained = ringlog("maintain", "--data", server.data)
    assert maintained.returncode == 0, maintained.stderr
    merge(engine(server.dsn))
    summarise(server.dsn, enough=1)
    [*archive(server.dsn, pauses=0)]
    with psycopg.connect(server.dsn) as admin:
        archived = admin.execute("select table_name from ringlog.cold_week group by 1 order by 1").fetchall()
        assert archived == [("magnets",), ("vac",)]


def statements() -> Iterator[str]:
    """The statements of OBJECTS: an indented line continues the previous one."""
    text = ""
    for line in OBJECTS.strip().splitlines():
        if text and not line.startswith(" "):
            yield text
            text = ""
        text += line + "\n"
    yield text


def _session(server: RunningServer) -> pymssql.Connection:
    return server.connect(DEVELOPER.user, DEVELOPER.password)


def answers(server: RunningServer, given: dict[str, str]) -> dict[str, str]:
    """What the site's developer reads, as text."""
    found = {}
    with closing(_session(server)) as session, session.cursor() as cursor:
        for query in QUERIES:
            cursor.execute(query.format(**given))
            rows: list[Any] = []
            while True:
                rows += cursor.fetchall() if cursor.description else []
                if not cursor.nextset():
                    break
            found[query] = repr(rows)
    return found


def structure(dsn: str) -> list[str]:
    """A line for each column, constraint, index, function and type of ringlog's schemas; no partitions."""
    with psycopg.connect(dsn) as connection:
        return [line for (line,) in connection.execute(STRUCTURE.encode(), {"schemas": [*OWN]}).fetchall()]


@contextmanager
def new_site() -> Iterator[tuple[RunningServer, Path, dict[str, str]]]:
    """A new site of this version: the server, its folder, its times."""
    folder = new_folder("release")
    given = moments()
    file = write_facility(folder)
    with serving(folder / "data", facility=file, prepared=False) as server:
        _fill(server, given)
        yield server, folder, given


def write_facility(folder: Path) -> Path:
    """Writes the file `plant.toml` there, and the folder of its archive."""
    (folder / "archive").mkdir(exist_ok=True)
    (folder / "archive").chmod(0o777)
    file = folder / "plant.toml"
    file.write_text(FACILITY.format(folder=folder / "archive"))
    return file


def save(to: Path) -> None:
    """Writes a new site: pg_dumpall's text, the archive's files, times and answers."""
    with new_site() as (server, folder, given):
        found = answers(server, given)
        programs = Postgres(server.data).programs
        dumped = subprocess.run(
            [programs / "pg_dumpall", "--dbname", server.dsn], check=True, stdout=subprocess.PIPE
        )
        text = dumped.stdout.decode().replace("CREATE ROLE postgres;\n", "")
        with tarfile.open(to, "w:xz", preset=9) as tar:
            for name, content in (
                ("site.json", json.dumps([given, found], indent=1)),
                ("database.sql", text),
            ):
                entry = tarfile.TarInfo(name)
                entry.size = len(content.encode())
                tar.addfile(entry, io.BytesIO(content.encode()))
            tar.add(folder / "archive", "archive")


def restored(file: Path, folder: Path) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Creates the data directory and the archive of a saved site; returns its times, structure and
    answers.
    """
    with tarfile.open(file) as tar:
        tar.extractall(folder, filter="data")
    postgres = Postgres(folder / "data")
    with postgres.running(memory=TEST_MEMORY, port=free_port()):
        text = (folder / "database.sql").read_text()
        # waits for the disk only at the end
        where = make_conninfo(postgres.conninfo("postgres"), options="-c synchronous_commit=off")
        command = [postgres.programs / "psql", "--quiet", "--set", "ON_ERROR_STOP=1", where]
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        found = structure(postgres.conninfo())
    for path in (folder / "archive").rglob("*"):
        path.chmod(0o777)
    write_facility(folder)
    given, answered = json.loads((folder / "site.json").read_text())
    return given, found, answered
