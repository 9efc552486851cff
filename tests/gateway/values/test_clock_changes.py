"""The two nights of the year when clocks are changed, for clients that send times without a zone."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pymssql
import pytest
from case_tables import cases
from psycopg import sql

from servers import RunningServer, serving
from tds_clients import Answer, Clients, CtClient, Param, errors_of

ZURICH = ZoneInfo("Europe/Zurich")
# local 02:00 to 03:00 occurs twice, and never, in these hours of UTC
AUTUMN = datetime(2025, 10, 25, 23, tzinfo=UTC)
SPRING = datetime(2025, 3, 29, 23, tzinfo=UTC)
SECTIONS = {5: "5.0", 7: "7.4"}
POLICIES = {"every": '"every"', "nth": "{ nth = 5 }", "period": "{ period = 300 }"}


@pytest.fixture(scope="module")
def zurich(temporary_directory: Path) -> Iterator[RunningServer]:
    """A server in Zurich, with a table for each log policy, protocol version and way to call."""
    facility = temporary_directory / "zurich.toml"
    tables = [
        f'[[table]]\nname = "{name}"\nrows = 1000\ncycle = 60\nlog = {log}\n'
        '[[table.column]]\nname = "number"\ntype = "int"\n'
        for name, log in [
            ("seen", POLICIES["every"]),
            *(
                (f"{name}_{version}_{way}", log)
                for name, log in POLICIES.items()
                for version in (5, 7)
                for way in ("numbered", "unnumbered", "text")
            ),
        ]
    ]
    facility.write_text('timezone = "Europe/Zurich"\n' + "\n".join(tables))
    with serving(temporary_directory / "zurich", facility=facility) as server:
        yield server


@pytest.fixture(scope="module")
def zurich_clients(
    zurich: RunningServer, ct_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Clients:
    return Clients.of(zurich, ct_program, tmp_path_factory.mktemp("zurich"))


def client_put(client: CtClient, table: str, way: str, minute: int, local: datetime) -> Answer:
    """Sends the row of a minute, with this local time."""
    if way == "text":
        return client.language(
            f"exec put_{table} @seq_no = {minute + 1}, @time = '{local:%Y-%m-%d %H:%M}', @number = {minute}"
        )
    number = [Param("int", str(minute + 1), "@seq_no")] if way == "numbered" else []
    # days since 1900 and 1/300 s
    since = local - datetime(1900, 1, 1)
    time = Param("datetime", f"{since.days} {since.seconds * 300}", "@time")
    return client.call(f"put_{table}", [*number, time, Param("int", str(minute), "@number")])


def stored(server: RunningServer, table: str) -> list[tuple[datetime, int]]:
    query = sql.SQL('select "time", number from {} order by "time"').format(sql.Identifier("log", table))
    with psycopg.connect(server.dsn, options="-c timezone=UTC") as connection:
        return connection.execute(query).fetchall()


def empty(server: RunningServer, table: str) -> None:
    server.sql(f'truncate weeks.{table}, ringlog.arrival; update online.{table} set "time" = null')


@pytest.mark.parametrize("version", [5, pytest.param(7, marks=pytest.mark.long)])
@pytest.mark.parametrize("way", ["numbered", "unnumbered", pytest.param("text", marks=pytest.mark.long)])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_repeated_hour(zurich_clients: Clients, version: int, policy: str, way: str) -> None:
    """A row per minute from 01:00 to 05:00, each tenth of them sent again, and two late ones."""
    server = zurich_clients.server
    table = f"{policy}_{version}_{way}"
    empty(server, table)
    # both minutes 02:29, which arrive after their successors
    minutes = list(range(240))
    for late in (89, 149):
        minutes[late], minutes[late + 1] = late + 1, late
    sent = [minute for minute in minutes for _ in range(2 if minute % 10 == 0 else 1)]
    with zurich_clients.ct(server.writer, section=SECTIONS[version]) as client:
        for minute in sent:
            local = (AUTUMN + timedelta(minutes=minute)).astimezone(ZURICH).replace(tzinfo=None)
            assert client_put(client, table, way, minute, local).errors == []
    rows = stored(server, table)
    assert [moment for moment, _ in rows] == [AUTUMN + timedelta(minutes=number) for _, number in rows]
    if policy == "every":
        assert [number for _, number in rows] == list(range(240))
    elif policy == "nth" and way != "unnumbered":
        assert [number for _, number in rows] == list(range(0, 240, 5))
    else:
        assert len(rows) == 48


def test_reading_by_repeated_times_uses_the_later(zurich_clients: Clients) -> None:
    """Like PostgreSQL: only for writers the table's newest row decides."""
    server = zurich_clients.server
    empty(server, "every_5_text")
    server.sql(
        "insert into log.every_5_text (seq_no, time, number)"
        " select n + 1, %s + n * interval '1 min', n from generate_series(0, 239) as n",
        [AUTUMN],
    )
    with zurich_clients.ct(server.reader) as client:
        answer = client.language("exec get_every_5_text_range @from_time = '2025-10-26 02:00', @max_rows = 1")
    assert [row[2] for row in answer.rows] == ["120"]


@pytest.mark.parametrize("version", [5, pytest.param(7, marks=pytest.mark.long)])
@pytest.mark.parametrize("way", ["numbered", "unnumbered", pytest.param("text", marks=pytest.mark.long)])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_skipped_hour(zurich_clients: Clients, version: int, policy: str, way: str) -> None:
    """A row per minute from 00:00 to 04:00; between 01:59 and 03:00 times of the skipped hour are sent."""
    server = zurich_clients.server
    table = f"{policy}_{version}_{way}"
    empty(server, table)
    with zurich_clients.ct(server.writer, section=SECTIONS[version]) as client:
        for minute in range(180):
            if minute == 120:
                for never in (0, 30, 59):
                    local = datetime(2025, 3, 30, 2, never)
                    error = client_put(client, table, way, minute, local).error
                    assert error.number == 8114
                    if way != "text":
                        assert error.text == (
                            f"Parameter '@time' of put_{table}: cannot convert a local time that does not "
                            "exist, because the clocks were set ahead past it, to timestamp with time zone: "
                            "send UTC, or the time with its offset"
                        )
            local = (SPRING + timedelta(minutes=minute)).astimezone(ZURICH).replace(tzinfo=None)
            assert client_put(client, table, way, minute, local).errors == []
    kept = range(0, 180, 1 if policy == "every" else 5)
    assert stored(server, table) == [(SPRING + timedelta(minutes=number), number) for number in kept]


def test_a_time_with_its_offset_is_that_instant(zurich_clients: Clients) -> None:
    """For any newest row, and for calls from both sides."""
    server = zurich_clients.server
    first = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    with zurich_clients.pymssql(server.writer) as client:
        for number, text in enumerate(
            ["2024-10-27 02:30+02:00", "2024-10-27 02:30+01:00", "2024-10-27 00:30Z"]
        ):
            try:
                client.cursor().callproc("put_period_7_text", (number + 900, text, number))
            except pymssql.Error as error:
                raise AssertionError(errors_of(error)) from error
    with psycopg.connect(server.dsn, options="-c timezone=UTC") as connection:
        ring = connection.execute(
            'select "time" from online.period_7_text where seq_no >= 900 and "time" is not null'
            " order by seq_no"
        ).fetchall()
    assert ring == [(first,), (first + timedelta(hours=1),), (first,)]


# Each way of T-SQL's texts to give a time without a zone where an instant is compared or stored.
TEXTS = cases(__file__, "texts")
SQL_SERVER_TEXTS = cases(__file__, "sql_server_texts")


@pytest.fixture(scope="module")
def own_table(zurich_clients: Clients) -> Clients:
    """A site's table of instants, with a row, and a row in log and ring of `seen`."""
    server = zurich_clients.server
    with psycopg.connect(server.dsn) as connection:
        connection.execute(
            "create schema plant; create table plant.own (t timestamptz);"
            " grant usage on schema plant to public; grant all on plant.own to public"
        )
        connection.execute("insert into plant.own values (%s)", [SPRING])
    with zurich_clients.pymssql(server.writer) as client:
        client.cursor().callproc("put_seen", (1, f"{SPRING:%Y-%m-%d %H:%M}+00:00", 5))
    return zurich_clients


@pytest.mark.parametrize("version", SECTIONS)
def test_texts_with_a_time_of_the_skipped_hour(own_table: Clients, version: int) -> None:
    """Refused in every text, as by procedures; the hours beside it are accepted."""
    texts = TEXTS if version == 5 else TEXTS | SQL_SERVER_TEXTS
    numbers: dict[str, list[int]] = {name: [] for name in texts}
    for name, text in texts.items():
        for time in ("2025-03-30 01:59", "2025-03-30 02:30", "2025-03-30 03:00"):
            with own_table.ct(own_table.server.reader, section=SECTIONS[version]) as client:
                numbers[name] += [
                    error.number for error in client.language(text.format(t=f"'{time}'")).errors
                ]
    assert numbers == {name: [8114] for name in texts}
