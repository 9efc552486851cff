"""install again: nothing changes, additions of the facility are made, changes that would lose data are
refused."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from ringlog.schema import registry
from ringlog.schema.facility import Column, Facility, LogPolicy, Retention, Table
from ringlog.schema.installing.install import InstallRefused, InstallReport, difference, install
from ringlog.schema.relations.partitions import Week
from ringlog.schema.relations.statistics import turn_off_near
from waiting import PATIENCE, wait_until

from ..conftest import WITH_STATISTICS, Connect, magnets_facility, rows
from .snapshot import snapshot

FACILITY = magnets_facility()
(MAGNETS,) = FACILITY.tables
VACUUM = Table("vacuum", 4, 10.0, (Column("pressure", "vacuum/pressure", "double", "Pa"),))
NOW = datetime.now().astimezone()


RIGHTS = """
select oid::regclass::text, array(select acl::text from unnest(relacl) as acl order by 1) from pg_class
where relname = 'magnets' and relkind in ('r', 'p', 'v') order by 1
"""


def facility(*tables: Table, timezone: str = "Asia/Tokyo") -> Facility:
    return Facility("test", timezone, tables, clock_tolerance=None)


def put(connection: psycopg.Connection, number: int, *values: object) -> None:
    call = sql.SQL("select ringlog.put_magnets(row ({})::online.magnets)")
    connection.execute(call.format(sql.SQL(", ").join(sql.Literal(each) for each in (number, NOW, *values))))


# --- a second run ---


def test_a_second_run_changes_nothing(engine: sa.Engine, connect: Connect) -> None:
    logged = replace(VACUUM, log=LogPolicy(period=60.0), retention=Retention(2, "year"), description="vacuum")
    wanted = facility(MAGNETS, logged)
    install(engine, wanted)
    connection = connect()
    put(connection, 1, 1.5, True, "on")
    before = snapshot(connection)
    report = install(engine, wanted)
    assert not report
    assert report == InstallReport((), ())
    assert snapshot(connection) == before


def test_many_new_tables_are_made_in_steps(
    engine: sa.Engine, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that fails leaves the tables made before, and the next installation makes the rest."""
    monkeypatch.setattr("ringlog.schema.installing.new_tables.AT_ONCE", 1)
    wanted = facility(MAGNETS, VACUUM)
    would = difference(engine, wanted)
    with monkeypatch.context() as patch:
        patch.setattr("ringlog.schema.installing.install._added", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            install(engine, wanted)
    connection = connect()
    assert rows(connection, "select table_name from ringlog.logged_table") == [("magnets",)]
    put(connection, 1, 1.5, True, "on")
    report = install(engine, wanted)
    made = {thing for thing in report.created if thing.startswith("table ")}
    assert made == {"table vacuum"} < {*would.created}
    assert {*report.created} < {*would.created}
    assert rows(connection, "select distinct table_name from ringlog.signal order by 1") == [
        ("magnets",),
        ("vacuum",),
    ]
    assert not install(engine, wanted)


def test_the_snapshot_sees_a_row_written_again(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    before = snapshot(connection)
    connection.execute("update ringlog.logged_table set rows = rows")
    assert snapshot(connection) != before


def test_the_gateway_is_notified_of_changes_only(engine: sa.Engine, connect: Connect) -> None:
    listener = connect()
    listener.execute("listen ringlog_catalogue")
    install(engine, FACILITY)
    assert [notice.channel for notice in listener.notifies(timeout=100, stop_after=1)] == [
        "ringlog_catalogue"
    ]
    install(engine, FACILITY)
    assert list(listener.notifies(timeout=0.1)) == []
    install(engine, facility(MAGNETS, VACUUM))
    assert [notice.channel for notice in listener.notifies(timeout=100, stop_after=1)] == [
        "ringlog_catalogue"
    ]


def test_procedures_changed_by_hand_are_renewed(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    connection.execute(
        "create or replace function ringlog.put_magnets(r online.magnets) returns integer"
        " language sql return 0"
    )
    connection.execute("drop function ringlog.last_magnets()")
    report = install(engine, FACILITY)
    assert report == InstallReport(
        ("procedure last_magnets",), ("procedure put_magnets: it was not as ringlog makes it",)
    )
    put(connection, 1, 1.5, True, "on")
    assert rows(connection, "select seq_no from ringlog.last_magnets()") == [(1,)]
    assert not install(engine, FACILITY)


# --- a facility that has grown ---


def test_a_new_table(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    put(connection, 1, 1.5, True, "on")
    report = install(engine, facility(VACUUM, MAGNETS))
    assert report.created[0] == "table vacuum"
    assert all("vacuum" in thing for thing in report.created)
    assert report.changed == ()
    assert rows(connection, "select ringlog.put_vacuum(row (1, now(), 1e-8)::online.vacuum)") == [(0,)]
    assert rows(connection, "select value from ringlog.get_latest('vacuum/pressure')") == [(1e-8,)]
    assert rows(connection, "select current from log.magnets") == [(1.5,)]


GROWN = replace(
    MAGNETS,
    columns=(
        MAGNETS.columns[0],
        Column("voltage", "magnets/voltage", "double", "V"),
        *MAGNETS.columns[1:],
        Column("step", "magnets/step", "int"),
    ),
)


def test_new_columns(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    put(connection, 1, 1.5, True, "on")
    report = install(engine, facility(GROWN))
    assert report.created == ("column magnets.voltage", "column magnets.step")
    assert report.changed == (
        "procedure put_magnets",
        "procedure put_magnets_batch",
        "procedure import_magnets",
        "procedure get_magnets_at",
    )
    # added columns are at the end, so calls by position remain valid
    put(connection, 2, 2.5, False, "off", 24.0, 7)
    assert [row[2:] for row in rows(connection, "select * from ringlog.get_magnets_range()")] == [
        (1.5, True, "on", None, None),
        (2.5, False, "off", 24.0, 7),
    ]
    assert rows(connection, "select current, voltage, step from ringlog.get_magnets_at(now())") == [
        (2.5, 24.0, 7)
    ]
    assert rows(connection, "select value from ringlog.get_latest('magnets/step')") == [(7,)]
    put(connection, 1, 1.5, True, "on", None, None)  # a repeat of a row from before
    assert not install(engine, facility(GROWN))


def test_a_longer_ring(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    put(connection, 5, 1.5, True, "on")
    report = install(engine, magnets_facility(rows=8))
    assert report.created == ()
    assert report.changed == (
        "ring magnets: 3 rows more",
        "table magnets: rows 5 → 8",
        "procedure put_magnets",
        "procedure import_magnets",
        "procedure last_magnets",
    )
    assert len(rows(connection, "select from online.magnets")) == 8
    put(connection, 8, 2.5, True, "on")
    assert not install(engine, magnets_facility(rows=8))


def test_deleted_rows_of_a_ring_are_restored(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    connection.execute("delete from online.magnets where seq_no in (2, 3)")
    assert install(engine, FACILITY) == InstallReport((), ("ring magnets: 2 rows more",))
    assert rows(connection, "select count(*) from online.magnets") == [(5,)]


def test_another_log_policy_cycle_retention_and_zone(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    table = replace(MAGNETS, cycle=2.0, log=LogPolicy(nth=5), retention=Retention(1, "week"), description="d")
    assert install(engine, facility(table, timezone="Europe/Berlin")) == InstallReport(
        (),
        (
            "setting TimeZone of the database: Asia/Tokyo → Europe/Berlin",
            'table magnets: description none → "d", cycle 1 s → 2 s, log every row → nth = 5,'
            " retention for ever → 1 week",
            "procedure put_magnets",
            "procedure import_magnets",
        ),
    )
    connection = connect()
    assert rows(connection, "show timezone") == [("Europe/Berlin",)]
    assert rows(connection, "select cycle, log_nth, log_period, retention from ringlog.logged_table") == [
        (2.0, 5, None, "1 week")
    ]
    put(connection, 2, 1.5, True, "on")
    assert rows(connection, "select from log.magnets") == []


def test_growing_waits_for_a_writer_and_lets_others_through(engine: sa.Engine, connect: Connect) -> None:
    """An open transaction delays the installation, but not the other writers."""
    install(engine, FACILITY)
    open_writer, other = connect(), connect()
    open_writer.autocommit = False
    put(open_writer, 1, 1.5, True, "on")
    reports: list[InstallReport] = []
    growing = threading.Thread(target=lambda: reports.append(install(engine, facility(GROWN))))
    growing.start()
    waits = "select from pg_locks where not granted and mode = 'AccessExclusiveLock'"
    for number in range(3):
        wait_until(lambda: rows(other, waits))
        put(other, 2 + number, float(number), True, "on")
    assert growing.is_alive()
    open_writer.commit()
    growing.join(PATIENCE)
    assert [report.created for report in reports] == [("column magnets.voltage", "column magnets.step")]


# --- refused changes ---


@contextmanager
def refused(
    engine: sa.Engine, connection: psycopg.Connection, wanted: Facility, *what: str
) -> Iterator[InstallRefused]:
    """Asserts that the installation is refused for these reasons, and has changed nothing."""
    before = snapshot(connection)
    with pytest.raises(InstallRefused) as error:
        install(engine, wanted)
    assert snapshot(connection) == before
    assert tuple(obstacle.what for obstacle in error.value.obstacles) == what
    assert str(error.value).startswith("nothing was installed. ")
    for obstacle in error.value.obstacles:
        assert obstacle.what in str(error.value)
        assert obstacle.sql in str(error.value)
    yield error.value


def run_by_hand(connection: psycopg.Connection, refusal: InstallRefused) -> None:
    for obstacle in refusal.obstacles:
        connection.execute(sql.SQL(obstacle.sql))


@pytest.fixture
def written(engine: sa.Engine, connect: Connect) -> psycopg.Connection:
    """A row in ring and log, and a new table that a refused installation must not create."""
    install(engine, FACILITY)
    connection = connect()
    put(connection, 1, 1.5, True, "on")
    return connection


def test_a_dropped_column(engine: sa.Engine, written: psycopg.Connection) -> None:
    current, _, state = MAGNETS.columns
    wanted = facility(replace(MAGNETS, columns=(current, state)), VACUUM)
    what = (
        "table magnets, column on: is not in the facility file any more; this drops it with its history."
        " Put it back with retired = true, and it keeps its history"
    )
    before = rows(written, RIGHTS)
    with refused(engine, written, wanted, what) as refusal:
        run_by_hand(written, refusal)
    install(engine, wanted)
    assert rows(written, RIGHTS) == before
    put(written, 2, 2.5, "off")
    assert [row[2:] for row in rows(written, "select * from ringlog.get_magnets_range()")] == [
        (1.5, "on"),
        (2.5, "off"),
    ]
    assert rows(written, "select signal from ringlog.signal where table_name = 'magnets' order by 1") == [
        ("magnets/current_adc",),
        ("magnets/state",),
    ]
    assert not install(engine, wanted)


def test_a_retyped_column(engine: sa.Engine, written: psycopg.Connection) -> None:
    current, on, state = MAGNETS.columns
    columns = (replace(current, type="double"), replace(on, type="int"), replace(state, type="varchar(9)"))
    wanted = facility(replace(MAGNETS, columns=columns), VACUUM)
    what = (
        f"table magnets, column {name}: is {stored} in the database and {in_file} in the facility file; "
        "this rewrites the table, and refuses values that do not fit"
        for name, stored, in_file in (
            ("current", "REAL", "DOUBLE PRECISION"),
            ("on", "BOOLEAN", "INTEGER"),
            ("state", "VARCHAR(8)", "VARCHAR(9)"),
        )
    )
    before = rows(written, RIGHTS)
    with refused(engine, written, wanted, *what) as refusal:
        run_by_hand(written, refusal)
    install(engine, wanted)
    assert rows(written, RIGHTS) == before
    put(written, 2, 1e300, 7, "nine char")
    assert [row[2:] for row in rows(written, "select * from ringlog.get_magnets_range()")] == [
        (1.5, 1, "on"),
        (1e300, 7, "nine char"),
    ]
    assert not install(engine, wanted)


def test_a_shorter_ring(engine: sa.Engine, written: psycopg.Connection) -> None:
    wanted = magnets_facility(rows=3)
    what = "table magnets: its ring has 5 rows and the facility file has 3; this drops the rows above"
    with refused(engine, written, wanted, what) as refusal:
        run_by_hand(written, refusal)
    install(engine, wanted)
    assert rows(written, "select count(*) from online.magnets") == [(3,)]
    with pytest.raises(psycopg.errors.CheckViolation, match="seq_no 4 is outside 1 to 3"):
        put(written, 4, 1.5, True, "on")
    assert not install(engine, wanted)


def test_a_table_missing_from_the_file(engine: sa.Engine, written: psycopg.Connection) -> None:
    what = (
        "table magnets: is not in the facility file any more; this drops all of it, its history too,"
        " as ringlog facility drop magnets does."
        " Put it back with retired = true, and it keeps its history; or, if it is vacuum now,"
        ' write renamed_from = "magnets" there'
    )
    with refused(engine, written, facility(VACUUM), what) as refusal:
        run_by_hand(written, refusal)
    install(engine, facility(VACUUM))
    assert rows(written, "select table_name from ringlog.logged_table") == [("vacuum",)]
    assert rows(written, "select proname from pg_proc where proname like '%%magnets%%'") == []
    assert rows(written, "select relname from pg_class where relname like '%%magnets%%'") == []
    install(engine, facility(VACUUM, MAGNETS))


def test_a_dropped_table(engine: sa.Engine, written: psycopg.Connection) -> None:
    written.execute("drop table online.magnets cascade")
    what = (
        "table magnets: has lost online.magnets; this drops all of it, its history too,"
        " as ringlog facility drop magnets does"
    )
    with refused(engine, written, FACILITY, what) as refusal:
        run_by_hand(written, refusal)
    install(engine, FACILITY)
    put(written, 1, 1.5, True, "on")


@pytest.mark.parametrize(("schema", "kind"), [("online", "table"), ("log", "view")])
def test_a_relation_of_other_origin(
    engine: sa.Engine, written: psycopg.Connection, schema: str, kind: str
) -> None:
    written.execute(sql.SQL(f"create {kind} {schema}.vacuum as select 1 as a"))
    what = f"table vacuum: there is a {schema}.vacuum already, which was not made by ringlog"
    with refused(engine, written, facility(GROWN, VACUUM), what) as refusal:
        run_by_hand(written, refusal)
    install(engine, facility(GROWN, VACUUM))
    assert rows(written, f"select a from {schema}.vacuum_before") == [(1,)]


def test_an_owner_who_may_log_in(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    connection.execute("alter role ringlog_owner login")
    what = "ringlog_owner may log in, and could write without the procedures"
    with refused(engine, connection, FACILITY, what) as refusal:
        run_by_hand(connection, refusal)
    assert not install(engine, FACILITY)


def test_all_obstacles_at_once(engine: sa.Engine, written: psycopg.Connection) -> None:
    current, _, state = MAGNETS.columns
    columns = (replace(current, type="int"), state)
    with pytest.raises(InstallRefused) as error:
        install(engine, facility(replace(MAGNETS, rows=2, columns=columns)))
    assert len(error.value.obstacles) == 3


def test_more_signals_than_a_statement_has_parameters(engine: sa.Engine) -> None:
    """PostgreSQL's protocol counts the parameters of a statement in 16 bits (Bind, message formats)."""
    install(engine, FACILITY)
    signals = [Column(f"c_{n}", f"wide/{n}", "real") for n in range(66_000)]
    wide = Table("wide", 4, 10.0, tuple(signals))
    with engine.connect() as connection:
        count = sa.select(sa.func.count()).where(
            registry.signal.c.table_name == "wide", registry.signal.c.valid_to.is_(None)
        )
        both = facility(MAGNETS, wide)
        assert registry.record_signals(connection, both, both.tables) == []
        assert connection.scalar(count) == len(signals)
        ended = registry.record_signals(connection, facility(MAGNETS), [MAGNETS])
        assert len(ended) == len(signals)
        assert connection.scalar(count) == 0
        connection.rollback()


# --- an administrator without superuser rights ---


@pytest.fixture
def administrator(engine: sa.Engine, connect: Connect) -> Iterator[sa.Engine]:
    """An engine of a role with CREATEROLE that may grant ringlog's roles, like their creator."""
    install(engine, FACILITY)  # another's work: the roles are there
    connection = connect()
    for schema in ("online", "log", "weeks", "ringlog"):
        connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
    connection.execute("create role site_admin createrole")
    connection.execute(
        "grant ringlog_owner, daq_writer, daq_reader, ringlog_gateway to site_admin"
        " with admin true, inherit false, set false"
    )
    administrator = sa.create_engine(engine.url)

    @sa.event.listens_for(administrator, "connect")
    def become(dbapi_connection: Any, _record: object) -> None:
        dbapi_connection.execute("set session authorization site_admin")
        dbapi_connection.commit()

    yield administrator
    administrator.dispose()
    connection.execute("reassign owned by site_admin to postgres")
    connection.execute("drop owned by site_admin")
    connection.execute("drop role site_admin")


def test_an_administrator_who_owns_the_database(administrator: sa.Engine, connect: Connect) -> None:
    connection = connect()
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("alter database {} owner to site_admin").format(database))
    assert install(administrator, facility(MAGNETS, VACUUM, timezone="Europe/Rome"))
    assert not install(administrator, facility(MAGNETS, VACUUM, timezone="Europe/Rome"))
    put(connection, 1, 1.5, True, "on")
    assert rows(
        connection, "select distinct relowner::regrole::text from pg_class where relname ~ 'magnets'"
    ) == [("ringlog_owner",)]
    there = "select to_regprocedure('ringlog.array_bytes(anyarray)') is not null"
    assert rows(connection, there) == [(False,)], "only a superuser may make it"
    assert not [*turn_off_near(administrator)]
    near = ["magnets", "magnets_default", Week.of(datetime.now(UTC)).partition("magnets")]
    assert rows(connection, WITH_STATISTICS, near) == [("seq_no",), ("time",)]


def test_an_administrator_who_does_not_own_the_database(administrator: sa.Engine, connect: Connect) -> None:
    connection = connect()
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("grant create on database {} to site_admin").format(database))
    wanted = facility(MAGNETS, timezone="Europe/Rome")
    what = "only the database's owner may change its setting TimeZone"
    with refused(administrator, connection, wanted, what) as refusal:
        run_by_hand(connection, refusal)
    install(administrator, wanted)
    assert rows(connect(), "show timezone") == [("Europe/Rome",)]
