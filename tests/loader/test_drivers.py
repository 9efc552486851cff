"""ringlog.connect: the same calls, answers and errors by every driver; tables for reading."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import ctds
import psycopg
import pymssql
import pytest
import sqlalchemy as sa

import ringlog
from ringlog.clients import AddressError, Connection, LoginRefused, Refused, Unanswered, call, output
from ringlog.clients.drivers.psycopg import NUMBERS
from ringlog.clients.tables import engine, tables
from servers import Login, RunningServer

FACILITY = Path(__file__).with_name("facility.toml")
# Times that no other test uses.
BEGIN = datetime(2028, 5, 1, 12, 0, 0, 123457, UTC)
KINDS = {"tds": pymssql.Connection, "tds+ctds": ctds.Connection, "postgresql": psycopg.Connection}


def url(scheme: str, server: RunningServer, login: Login) -> str:
    if scheme == "postgresql":
        return f"postgresql://{login.user}@127.0.0.1:{server.postgres_port}/ringlog"
    return f"{scheme}://{login.user}@{server.host}:{server.port}"


@pytest.fixture(params=KINDS)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def writer(scheme: str, quick_server: RunningServer) -> Iterator[Connection]:
    login = quick_server.writer
    with closing(ringlog.connect(url(scheme, quick_server, login), login.password)) as connection:
        yield connection


@pytest.fixture
def reader(scheme: str, quick_server: RunningServer) -> Iterator[Connection]:
    login = quick_server.reader
    with closing(ringlog.connect(url(scheme, quick_server, login), login.password)) as connection:
        yield connection


def stored(reader: Connection, time: datetime) -> list[tuple[Any, ...]]:
    return call(reader, "get_every_type_range", time, time + timedelta(microseconds=1)).rows


def test_an_unknown_host_is_named_and_refuses_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    # .invalid has no hosts (RFC 2606, section 2)
    unknown = r"tds://w@nowhere\.invalid:5000: the host name is unknown$"
    with pytest.raises(Unanswered, match=unknown):
        ringlog.connect("tds://w@nowhere.invalid", "secret")

    def fail(**_: Any) -> None:
        left = b"DB-Lib error message 20047, severity 9:\nDBPROCESS is dead or not enabled\n"
        raise pymssql.OperationalError((20047, left))

    # after a dead connection the driver's only message may be of that one
    monkeypatch.setattr(pymssql, "connect", fail)
    with pytest.raises(Unanswered, match=unknown):
        ringlog.connect("tds://w@nowhere.invalid", "secret")


def test_calls_are_the_same_by_every_driver(scheme: str, writer: Connection, reader: Connection) -> None:
    assert isinstance(writer, KINDS[scheme])
    time = BEGIN + timedelta(hours=[*KINDS].index(scheme))
    readings = {
        "a_varchar": " 磁石 'x\" ",
        "a_bit": False,
        "a_bigint": -(2**63),
        "a_smallint": -32768,
        "an_int": 2**31 - 1,
        "a_double": 1e-300,
        "a_real": 0.1,
    }
    answer = call(writer, "put_every_type", time=time, seq_no=3, **readings)
    assert (answer.status, answer.outputs, answer.rows) == (0, (), [])
    # by position, in the order of the ring; an omitted value is no reading
    call(writer, "put_every_type", 4, time + timedelta(seconds=1), None, 2.5)
    (row,) = stored(reader, time)
    # a time without a zone is the facility's
    moment = row[1] if row[1].tzinfo else row[1].replace(tzinfo=ZoneInfo("Asia/Tokyo"))
    assert (row[0], moment) == (3, time)
    assert row[2] == pytest.approx(0.1, abs=1e-8)
    assert tuple(row[3:]) == (1e-300, 2**31 - 1, -32768, -(2**63), False, " 磁石 'x\" ")
    (row,) = stored(reader, time + timedelta(seconds=1))
    assert (row[0], *row[2:]) == (4, None, 2.5, None, None, None, None, None)
    answer = call(reader, "get_every_type", 1)
    assert answer.columns[:3] == ("seq_no", "time", "a_real")
    assert len(answer.rows) == 1


def test_outputs_and_naive_times_are_the_same(scheme: str, writer: Connection, reader: Connection) -> None:
    time = BEGIN + timedelta(days=10, hours=[*KINDS].index(scheme))
    local = time.astimezone(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None)
    call(writer, "put_every_type", 7, local, 0.5)
    assert [row[0] for row in stored(reader, time)] == [7]
    (latest,) = call(reader, "get_every_type", 1).rows
    seq_no, text = call(writer, "last_every_type", output(int), output(str)).outputs
    assert (seq_no, datetime.fromisoformat(str(text))) == tuple(latest[:2])


def test_errors_have_the_same_numbers(
    scheme: str, quick_server: RunningServer, writer: Connection, reader: Connection
) -> None:
    time = BEGIN + timedelta(days=1)
    cases: list[tuple[Connection, str, dict[str, Any], int, str]] = [
        (writer, "put_every_type", {"seq_no": 1001, "time": time}, 547, "seq_no 1001 is outside 1 to 1000"),
        (writer, "put_every_type", {"seq_no": 1}, 515, "time must not be null"),
        (writer, "put_every_type", {"seq_no": 1, "time": time, "a_smallint": 32768}, 8115, "out of range"),
        (writer, "put_every_type", {"seq_no": 1, "time": time, "an_int": "x"}, 8114, ""),
        (writer, "put_every_type", {"seq_no": 1, "time": time, "a_varchar": "x" * 13}, 8152, "too long"),
        (writer, "put_every_type", {"seq_no": 1, "time": time, "colour": 1}, 8145, "@colour is not a param"),
        (writer, "put_nothing", {}, 2812, "put_nothing"),
        (reader, "put_every_type", {"seq_no": 1, "time": time}, 229, "permission denied"),
    ]
    for connection, procedure, named, number, words in cases:
        with pytest.raises(Refused) as refusal:
            call(connection, procedure, **named)
        assert refusal.value.number == number, refusal.value
        assert words in refusal.value.message
        if scheme != "postgresql" and number in (8114, 8115):
            # over TDS the parameter is named
            assert f"@{[*named][-1]}" in refusal.value.message
    assert stored(reader, time) == []
    with pytest.raises(LoginRefused, match="the server refused the login"):
        ringlog.connect(url(scheme, quick_server, quick_server.writer), "wrong")
    with pytest.raises(Unanswered):
        ringlog.connect(f"{scheme}://writer@127.0.0.1:1/ringlog", "wrong")


def test_errors_of_postgresql_have_the_gateways_numbers(quick_server: RunningServer) -> None:
    """For every SQLSTATE: the installer has created `tsql.error_number` from the gateway's table."""
    found = (getattr(error, "sqlstate", None) for error in vars(psycopg.errors).values())
    states = [state for state in found if isinstance(state, str)]
    with psycopg.connect(quick_server.dsn) as admin:
        query = "select state, tsql.error_number(state) from unnest(%s::text[]) as state"
        numbers = dict(admin.execute(query, [states]).fetchall())
    assert {state: number for state, number in numbers.items() if number != 50000} == NUMBERS


def test_errors_of_tsql_have_their_numbers(scheme: str, quick_server: RunningServer) -> None:
    login = quick_server.writer
    with psycopg.connect(quick_server.dsn, autocommit=True) as admin:
        admin.execute(
            "create table log.twice (a int primary key, b int, constraint checked check (b > 0));"
            'create unique index "twice.i" on log.twice (b);'
            "create function log.twice(a int, b int) returns int language plpgsql security definer as $$"
            " begin if b is null then perform tsql.fail(245, 'x'); end if;"
            " insert into log.twice values (a, b); return 0; end $$;"
            "notify ringlog_catalogue"
        )
        try:
            with closing(ringlog.connect(url(scheme, quick_server, login), login.password)) as connection:
                call(connection, "log.twice", 1, 1)
                for values, number in (((1, 2), 2627), ((2, 1), 2601), ((3, 0), 547), ((3, None), 245)):
                    with pytest.raises(Refused) as refusal:
                        call(connection, "log.twice", *values)
                    assert refusal.value.number == number, refusal.value
        finally:
            admin.execute("drop function log.twice; drop table log.twice; notify ringlog_catalogue")


def test_cursors_are_those_of_pep_249(scheme: str, quick_server: RunningServer, reader: Connection) -> None:
    with closing(reader.cursor()) as cursor:
        cursor.callproc("find_signals", ("sr_mag_1/%",))
        names = [column[0] for column in cursor.description]
        assert names[:3] == ["signal", "table_name", "column_name"]
        assert [row[0] for row in cursor.fetchall()] == ["sr_mag_1/current"]
        cursor.execute("select count(*) from ringlog.logged_table")
        assert cursor.fetchone()[0] == 3
    # without autocommit nothing is stored until the commit
    login = quick_server.writer
    time = BEGIN + timedelta(days=2, hours=[*KINDS].index(scheme))
    address = url(scheme, quick_server, login)
    with closing(ringlog.connect(address, login.password, autocommit=False)) as connection:
        call(connection, "put_every_type", 9, time, 0.5)
        connection.rollback()
        call(connection, "put_every_type", 10, time, 0.5)
        connection.commit()
    assert [row[0] for row in stored(reader, time)] == [10]


def test_psycopg_has_callproc_with_outputs(quick_server: RunningServer) -> None:
    login = quick_server.writer
    address = url("postgresql", quick_server, login)
    with closing(ringlog.connect(address, login.password)) as connection:
        cursor = connection.cursor()
        time = BEGIN + timedelta(days=3)
        assert cursor.callproc("put_every_type", (8, time, 0.25)) == [8, time, 0.25]
        assert cursor.returnvalue == 0
        seq_no, latest = cursor.callproc("last_every_type", (output(int), output(datetime)))
        assert isinstance(seq_no, int)
        assert latest >= time
        with pytest.raises(Refused, match="error 8144"):
            cursor.callproc("last_every_type", (1, 2, 3))


def test_a_password_comes_from_a_file_or_a_prompt(
    quick_server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = quick_server.reader
    secret = tmp_path / "password"
    secret.touch(0o600)
    secret.write_text(login.password + "\n")
    address = url("tds", quick_server, login)
    ringlog.connect(address, password_file=secret).close()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RINGLOG_PASSWORD", raising=False)
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return login.password

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", ask)
    ringlog.connect(address).close()
    assert asked == [f"Password for {address}: "]


def test_other_drivers_and_missing_databases_are_refused() -> None:
    with pytest.raises(AddressError, match="begins with 'mysql:', which is not one of tds, tds"):
        ringlog.connect("mysql://a@b", "")
    with pytest.raises(AddressError, match="the URL names no database"):
        ringlog.connect("postgresql://a@b", "")
    with pytest.raises(TypeError, match="not a connection of pymssql, ctds or psycopg"):
        call(closing(None), "put_beam")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="by position or by name, not both"):
        call(closing(None), "put_beam", 1, current=2.0)  # type: ignore[arg-type]
    with pytest.raises(AddressError, match="no dialect for ctds"):
        engine("tds+ctds://a@b", "")


@pytest.mark.parametrize("source", ["file", "registry"])
@pytest.mark.parametrize("way", ["postgresql", "tds"])
def test_tables_are_read_by_sqlalchemy(way: str, source: str, quick_server: RunningServer) -> None:
    login = quick_server.reader
    time = BEGIN + timedelta(days=5)
    with closing(
        ringlog.connect(url("tds", quick_server, quick_server.writer), quick_server.writer.password)
    ) as connection:
        call(connection, "put_every_type", seq_no=11, time=time, a_real=1.5, a_bit=True, a_varchar="open")
    machine = engine(url(way, quick_server, login), login.password)
    facility = tables(FACILITY if source == "file" else machine)
    log = facility.tables["log.every_type"]
    assert facility.tables["online.magnet"].c.current_1.info == {
        "signal": "sr_mag_1/current", "unit": "A", "description": "", "limits": (0.0, 500.0),
    }  # fmt: skip
    query = (
        sa.select(log.c.seq_no, log.c.a_real, log.c.a_bit, log.c.a_varchar)
        .where(log.c.a_varchar == "open", log.c.seq_no == 11)
        .order_by(log.c.time.desc())
        .limit(1)
    )
    with machine.connect() as connection:
        assert connection.execute(query).all() == [(11, 1.5, True, "open")]
        counted = connection.execute(sa.select(sa.func.count()).select_from(facility.tables["online.beam"]))
        assert counted.scalar() == 40
    machine.dispose()
