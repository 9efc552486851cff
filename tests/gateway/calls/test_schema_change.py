"""The facility grows and types change while writers write: nothing is lost, and no client has to log in
again."""

import itertools
import threading
from collections.abc import Iterator
from dataclasses import astuple, replace
from datetime import datetime
from pathlib import Path

import psycopg
import pymssql
import pytest
import sqlalchemy

import raw_tds
from raw_client import RawClient
from ringlog.schema.change import run
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing.install import InstallRefused, install
from ringlog.server.logins import GATEWAY
from servers import FACILITY, RunningServer, ringlog, serving, serving_external
from tds_clients import Clients, Param, errors_of
from waiting import is_taken, wait_until
from writing import Writers

GROWN = """
[[table.column]]
name = "beam"
type = "double"

[[table]]
name = "sr_new"
rows = 4
cycle = 1.0

[[table.column]]
name = "value"
type = "real"
"""


# sr_rf is logged in full here
TEXT = FACILITY.read_text().replace("log = { period = 60 }", 'log = "every"')


@pytest.fixture(scope="module")
def own_server(temporary_directory: Path) -> Iterator[RunningServer]:
    facility = temporary_directory / "changing.toml"
    facility.write_text(TEXT)
    password_file(temporary_directory).touch(0o600)
    password_file(temporary_directory).write_text("of both gateways\n")
    words = ("--gateway-password-file", str(password_file(temporary_directory)))
    with serving(temporary_directory / "changing", *words, facility=facility) as server:
        yield server


def password_file(folder: Path) -> Path:
    return folder / "gateway_password"


@pytest.fixture(scope="module")
def own_clients(
    own_server: RunningServer, ct_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Clients:
    return Clients.of(own_server, ct_program, tmp_path_factory.mktemp("changing"))


@pytest.mark.long
def test_a_grown_facility_while_writers_write(own_clients: Clients, tmp_path: Path) -> None:
    server = own_clients.server
    # another column after the two of sr_rf, and another table
    before, after = TEXT.split('name = "arcs"\ntype = "int"\n')
    second = tmp_path / "second.toml"
    second.write_text(
        before
        + 'name = "arcs"\ntype = "int"\n'
        + GROWN.split("[[table]]")[0]
        + after
        + GROWN[GROWN.index("\n[[table]]") :]
    )
    writers = Writers(own_clients, "put_sr_rf", datetime(2032, 1, 1), rows=10)
    with own_clients.ct(server.writer) as five, own_clients.pymssql(server.writer) as seven:
        at = Param("datetime", "46000 300", "@time")
        known = [Param("int", "1", "@seq_no"), at, Param("real", "1", "@power"), Param("int", "2", "@arcs")]
        new = Param("float", "0.1", "@beam")
        for _ in range(3):
            assert five.call("put_sr_rf", known).statuses == [0]
        assert five.call("put_sr_rf", [*known, new]).error.number == 8145
        with writers.running(6):
            writers.wait_for_more(50)
            grown = ringlog("init", "--facility", second, "--data", server.data)
            assert grown.returncode == 0, grown.stderr
            # from here on the new column works, also on existing connections
            assert five.call("put_sr_rf", known).statuses == [0]
            at_new = Param("datetime", "46001 300", "@time")
            assert five.call("put_sr_rf", [known[0], at_new, *known[2:], new]).statuses == [0]
            seven.cursor().callproc("put_sr_rf", (2, datetime(2031, 1, 1), 1.0, 2, 0.1))
            seven.cursor().callproc("put_sr_new", (1, datetime(2031, 1, 1), 1.0))
            writers.wait_for_more(50)
    assert writers.errors == []
    assert len(writers.acknowledged) > 100
    writers.check(server.dsn, "log.sr_rf", "seq_no, time, power, arcs")
    with own_clients.ct(server.reader) as client:
        answer = client.call("get_sr_rf", [Param("int", "1")])
        assert answer.columns == ["seq_no", "time", "power", "arcs", "beam"]


def test_a_readers_connection_sees_the_new_column(own_clients: Clients) -> None:
    """A result with other columns than when it was prepared."""
    server = own_clients.server
    with own_clients.ct(server.reader) as client, psycopg.connect(server.dsn, autocommit=True) as admin:
        call = "get_sr_vac", [Param("int", "1")]
        admin.execute("update online.sr_vac set time = now() where seq_no = 1")
        answer = client.call(*call)
        width = len(answer.columns)
        assert len(answer.rows) == 1
        for change, columns in [
            ("add column later real; notify ringlog_catalogue", width + 1),
            ("drop column later; notify ringlog_catalogue", width),
        ]:
            admin.execute(f"alter table online.sr_vac {change}")

            def called(columns: int = columns) -> bool:
                answer = client.call(*call)
                assert (answer.errors, len(answer.rows)) == ([], 1)
                return len(answer.columns) == columns

            wait_until(called)
            selected = client.language("select * from sr_vac where seq_no = 1")
            assert (selected.errors, len(selected.columns)) == ([], columns)


def test_a_column_changes_its_type_while_writers_write(own_clients: Clients) -> None:
    """By the SQL that `ringlog init` prints; put_sr_rf has an argument of the ring's row type. One call may
    meet several changes, and the gateway may lose the connection on which it hears of them."""
    server = own_clients.server
    writers = Writers(own_clients, "put_sr_rf", datetime(2033, 1, 1), rows=10)
    with writers.running(6), psycopg.connect(server.dsn, autocommit=True) as admin:
        for number, type in enumerate(("double precision", "real") * 6):
            writers.wait_for_more(10)
            if number in (4, 9):
                admin.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where application_name like 'ringlog catalogue%'"
                )
            admin.execute(
                # the ring first, as put does
                f"begin; set local lock_timeout = '100s'; alter table online.sr_rf alter power type {type}; "
                "drop view if exists recent.sr_rf; drop view if exists log.sr_rf; "
                f"alter table weeks.sr_rf alter power type {type}; notify ringlog_catalogue; commit"
            )
        writers.wait_for_more(50)
    log = server.data.with_name(server.data.name + ".stderr")
    assert writers.errors == [], log.read_text()
    writers.check(server.dsn, "weeks.sr_rf", "seq_no, time, power, arcs")


def test_a_change_while_the_catalogue_is_read(own_server: RunningServer) -> None:
    """The gateway first reads the tables on nodes, and the roles' settings with the procedures. A
    notification during this makes it begin again."""
    readers = "select count(*) from pg_stat_activity where application_name like 'ringlog catalogue%%' and"
    reads = f"{readers} wait_event_type = 'Lock' and query like %s"
    has_read = f"{readers} state = 'idle' and query like %s"
    first, last = "ringlog.stand_in", "pg_catalog.pg_db_role_setting"
    with (
        psycopg.connect(own_server.dsn, autocommit=True) as admin,
        psycopg.connect(own_server.dsn) as holding_first,
        psycopg.connect(own_server.dsn) as holding_last,
    ):
        # like a server that has nodes
        admin.execute(f"create table {first} (name text, node text, table_name text)")
        admin.execute(f"grant usage on schema ringlog to {GATEWAY}; grant select on {first} to {GATEWAY}")
        # a gateway that has just lost its connection could not log in below
        wait_until(lambda: admin.execute(has_read, [f"%{last}%"]).fetchone() == (1,))
        holding_last.execute(f"lock table {last} in access exclusive mode")
        admin.execute("notify ringlog_catalogue")
        # a reading that the grant has begun may wait for the last one's end
        wait_until(lambda: admin.execute(reads, ["%"]).fetchone() == (1,))
        holding_first.execute(f"lock table {first} in access exclusive mode")
        admin.execute("notify ringlog_catalogue")
        holding_last.rollback()
        wait_until(lambda: admin.execute(reads, [f"%from {first}"]).fetchone() == (1,))
        holding_first.rollback()
        admin.execute(f"drop table {first}; revoke usage on schema ringlog from {GATEWAY}")
        admin.execute("notify ringlog_catalogue")


def test_a_procedure_is_replaced_while_it_is_called(own_clients: Clients) -> None:
    """Dropped and created again, it has another oid."""
    server = own_clients.server
    make = (
        "create function public.generation() returns int language sql security definer volatile "
        "set search_path = pg_catalog, pg_temp as 'select {}'; "
        "alter function public.generation owner to ringlog_owner; "
    )
    with (
        own_clients.pymssql(server.writer) as connection,
        psycopg.connect(server.dsn, autocommit=True) as admin,
    ):
        cursor = connection.cursor()
        admin.execute(f"{make.format(1)} notify ringlog_catalogue")
        wait_until(lambda: is_taken(lambda: cursor.callproc("generation", ()), pymssql.Error))
        for generation in range(2, 12):
            cursor.callproc("generation", ())
            assert cursor.returnvalue == generation - 1
            anew = f"drop function public.generation(); {make.format(generation)}"
            admin.execute(f"begin; {anew} notify ringlog_catalogue; commit")
        admin.execute("drop function public.generation(); notify ringlog_catalogue")
        with pytest.raises(pymssql.Error) as refused:
            cursor.callproc("generation", ())
        assert errors_of(refused.value).number == 2812


def test_each_gateway_calls_a_procedure_that_another_has_replaced(
    own_clients: Clients, temporary_directory: Path
) -> None:
    """The next call through either gateway runs the new one: in PostgreSQL, by the gateway (GOTO), or a
    function that psql has replaced without a notification."""
    server = own_clients.server
    words = ("--gateway-password-file", password_file(temporary_directory))
    bodies = {"compiled": "select {} as a", "interpreted": "goto there there: select {} as a"}
    by_psql = "create or replace function replaced.by_psql() returns setof int language sql as 'select {}'"
    server.sql("create schema replaced authorization writer")
    with (
        serving_external(server.dsn, temporary_directory / "second", *words) as (host, port),
        own_clients.pymssql(server.writer, database="replaced") as first,
        replace(server, host=host, port=port).connect(*astuple(server.writer), database="replaced") as second,
        psycopg.connect(server.dsn_of(server.writer), autocommit=True) as direct,
    ):

        def define(session: pymssql.Connection, number: int, *actions: str) -> None:
            with session.cursor() as cursor:
                for name, body in bodies.items():
                    for action in actions:
                        cursor.execute(action.format(f"procedure {name}", f"as {body.format(number)}"))
            direct.execute(by_psql.format(number).encode())

        def called(session: pymssql.Connection) -> list[object]:
            with session.cursor() as cursor:
                found: list[object] = []
                for name in (*bodies, "by_psql"):
                    cursor.execute(f"exec {name}")
                    found += cursor.fetchall() or ()
                return found

        define(first, 0, "create {} {}")
        numbers = itertools.count(1)
        for session in (second, first) * 2:
            for actions in (("alter {} {}",), ("drop {}", "create {} {}")):
                number = next(numbers)
                define(session, number, *actions)
                assert called(second) == called(first) == [(number,)] * 3
    server.sql("drop schema replaced cascade; notify ringlog_catalogue")


COLUMNS = """
[[table.column]]
name = "{}"
type = "real"
"""


@pytest.fixture
def new_clients(ct_program: Path, temporary_directory: Path, tmp_path: Path) -> Iterator[Clients]:
    """Clients of a server with the columns of the tests' facility."""
    with serving(temporary_directory / tmp_path.name) as server:
        yield Clients.of(server, ct_program, tmp_path)


@pytest.mark.long
def test_columns_are_added_and_dropped_many_times_while_writers_write(
    new_clients: Clients, tmp_path: Path
) -> None:
    """PostgreSQL refuses a call that has waited for a change by any of several errors."""
    server = new_clients.server
    text = FACILITY.read_text().replace("log = { period = 60 }", 'log = "every"')
    before, after = text.split('name = "arcs"\ntype = "int"\n')
    before += 'name = "arcs"\ntype = "int"\n'

    def facility(*columns: str) -> Path:
        path = tmp_path / "facility.toml"
        path.write_text(before + "".join(columns) + after)
        return path

    def init(*columns: str) -> None:
        installed = ringlog("init", "--facility", facility(*columns), "--data", server.data)
        assert installed.returncode == 0, installed.stderr

    def drop(*columns: str) -> None:
        """By the advised SQL, in the transaction of the installation."""
        engine = sqlalchemy.create_engine(server.admin_url)
        wanted = load_facility(facility(*columns))
        with pytest.raises(InstallRefused) as refused:
            install(engine, wanted)
        advised = "".join(obstacle.sql for obstacle in refused.value.obstacles)

        def before(connection: sqlalchemy.Connection) -> None:
            run(connection, advised.replace("begin;", "").replace("commit;", "reset role;"))

        install(engine, wanted, before=before)

    init()
    writers = Writers(new_clients, "put_sr_rf", datetime(2035, 1, 1), rows=10)
    five: list[object] = []
    stop = threading.Event()

    def write_by_5() -> None:
        at = raw_tds.Type(0x6F, 8)
        with RawClient(server.host, server.port) as client:
            assert client.log_in5(server.writer).login == 5
            for number in itertools.count():
                if stop.is_set():
                    return
                ticks = (49_500 << 32) | (number * 3)
                params = [
                    raw_tds.Param(raw_tds.INT4, 1 + number % 10, "@seq_no"),
                    raw_tds.Param(at, ticks, "@time"),
                    raw_tds.Param(raw_tds.REAL, 1.0, "@power"),
                    raw_tds.Param(raw_tds.INT4, number, "@arcs"),
                ]
                reply = client.call("put_sr_rf", params)
                five.append(reply.errors or 0)

    writing = threading.Thread(target=write_by_5)
    writing.start()
    try:
        with writers.running(6):
            for turn in range(3):
                added = COLUMNS.format(f"added_{turn}")
                renamed = added.replace(f"added_{turn}", f"other_{turn}") + f'renamed_from = "added_{turn}"\n'
                init(added)
                writers.wait_for_more(20)
                init(renamed)
                writers.wait_for_more(20)
                drop()
                writers.wait_for_more(20)
    finally:
        stop.set()
        writing.join()
    assert writers.errors == []
    assert [answer for answer in five if answer] == []
    assert len(five) > 100
    writers.check(server.dsn, "log.sr_rf", "seq_no, time, power, arcs")


def test_a_column_that_was_dropped_before_the_installation(new_clients: Clients, tmp_path: Path) -> None:
    """The writer's values are not wrong: the error requests that the row be sent again."""
    server = new_clients.server
    facility = tmp_path / "facility.toml"
    facility.write_text(
        FACILITY.read_text().replace('[[table.column]]\nname = "arcs"\ntype = "int"\n', "", 1)
    )
    engine = sqlalchemy.create_engine(server.admin_url)
    with pytest.raises(InstallRefused) as refused:
        install(engine, load_facility(facility))
    at = Param("datetime", "46000 300", "@time")
    row = [Param("int", "1", "@seq_no"), at, Param("real", "1", "@power")]
    with new_clients.ct(server.writer) as five, new_clients.pymssql(server.writer) as seven:
        for _ in range(3):
            assert five.call("put_sr_rf", row).statuses == [0]
        server.sql("".join(obstacle.sql for obstacle in refused.value.obstacles).encode())
        error = five.call("put_sr_rf", row).error
        assert error.number == 50000
        assert "its table was changed, and ringlog init has not been run since" in error.text
        with pytest.raises(pymssql.Error) as failed:
            seven.cursor().callproc("put_sr_rf", (1, "2026-11-20 12:00", 1.0))
        assert failed.value.args[0] == 50000
        done = ringlog("init", "--facility", facility, "--data", server.data)
        assert done.returncode == 0, done.stderr
        assert five.call("put_sr_rf", row).statuses == [0]
        seven.cursor().callproc("put_sr_rf", (1, "2026-11-20 12:00", 1.0))
