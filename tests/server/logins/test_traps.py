"""No code of a site runs in a session of ringlog itself."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest
import traps

from servers import READER, WRITER, RunningServer, free_port, ringlog, serving

pytestmark = pytest.mark.long

FACILITY = """
timezone = "UTC"

[history]
online = "2 weeks"
archive = "{folder}/archive"

[[table]]
name = "magnets"
rows = 100
cycle = 1.0

[[table.column]]
name = "current_{{n}}"
count = 3
signal = "magnet_{{n}}/current"
type = "real"
"""

CARELESS = "select from pg_type where oid = 'int'::regtype"
NOW = datetime.now(UTC).replace(microsecond=0)
FIRST = NOW - timedelta(days=40)


def put(server: RunningServer, times: Iterator[datetime]) -> None:
    with server.connect(WRITER.user, WRITER.password) as connection, connection.cursor() as cursor:
        for number, moment in enumerate(times):
            cursor.callproc("put_magnets", (number % 100 + 1, moment, 1.0, 2.0, 3.0))


@pytest.fixture(scope="module")
def facility(temporary_directory: Path) -> Path:
    folder = temporary_directory / "trapped"
    folder.mkdir()
    file = folder / "plant.toml"
    file.write_text(FACILITY.format(folder=folder))
    return file


def test_ringlogs_own_sessions_spring_no_trap(facility: Path) -> None:
    folder = facility.parent
    data = folder / "data"
    day = timedelta(days=1)
    port = free_port()
    web = ("--http", f"127.0.0.1:{port}", "--http-role", READER.user)
    at = ("--data", str(data))
    first, last = f"{FIRST:%Y-%m-%d}", f"{FIRST + 2 * day:%Y-%m-%d}"
    commands = [
        ("init", "--facility", str(facility), *at),
        ("facility", "diff", str(facility), *at),
        ("maintain", *at),
        ("archive", "now", *at),
        ("archive", "status", *at),
        ("archive", "verify", *at),
        ("summarise", "magnets", first, last, *at),
        ("recall", "magnets", first, last, *at),
        ("archive", "adopt", *at),
        ("user", "add", "another", "--writer", "--reader", "--password-stdin", *at),
        ("user", "list", *at),
        ("user", "limit", "another", "--row-limit", "1000", *at),
        ("user", "reads", "another", "standby", *at),
        ("user", "passwd", "another", "--password-stdin", *at),
        ("user", "lock", "another", *at),
        ("user", "unlock", "another", *at),
        ("user", "remove", "another", *at),
        ("status", *at),
        ("report", "losses", *at),
        ("node", "list", *at),
        ("backup", str(folder / "backup"), *at),
        ("verify", *at),
        ("doctor", *at),
    ]
    with serving(data, facility=facility) as server:
        put(server, (FIRST + number * day for number in range(40)))
        with psycopg.connect(server.dsn, autocommit=True) as administrator:
            traps.make_developer(administrator)
            assert traps.set_traps(administrator, server.dsn_of(traps.DEVELOPER)) > 10_000
        server.sql(CARELESS)
        put(server, iter([NOW]))
        for command in commands:
            done = ringlog(*command, stdin="a word of 20 letters")
            # these commands report on this machine and on idle tables
            assert done.returncode == 0 or command[0] in ("doctor", "status"), (command, done)
            assert "Traceback" not in done.stderr, (command, done.stderr)
    with serving(data, *web, facility=facility) as server:
        put(server, iter([NOW + timedelta(seconds=1)]))
        with server.connect(READER.user, READER.password) as connection, connection.cursor() as cursor:
            cursor.callproc("get_magnets", (1,))
            cursor.execute("select * from magnets")
            cursor.fetchall()
        for path in (
            "retrieval/data/getData.json?pv=magnet_1/current",
            "api/v1/data?signal=magnet_1/current",
            "api/v1/trend?signal=magnet_1/current",
            "api/v1/signals?pattern=magnet%25",
            "api/v1/me",
        ):
            answer = httpx.get(f"http://127.0.0.1:{port}/{path}", trust_env=False)
            assert answer.status_code == 200, (path, answer.text)
    sprung = traps.sprung(data / "postgresql-18" / "log")
    others = [line for line in sprung if not line.endswith(CARELESS)]
    # where a trap is set, it runs
    assert len(sprung) > len(others)
    assert not others, others[:5]
