"""`ringlog adopt --copy`: the tables of a site with their constraints, on both servers."""

import signal
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pymssql
import pytest
import sqlalchemy

from ringlog.adoption.conversion.object_names import ObjectNames
from ringlog.adoption.conversion.tables import table_scripts
from ringlog.adoption.rings import Ring
from ringlog.adoption.rows.copying import Copied, Ledger, Part, identity, parts, without_time
from ringlog.adoption.rows.site_rows import copy_site
from ringlog.adoption.rows.source import Source
from ringlog.adoption.rows.threads import in_threads
from ringlog.adoption.server.objects import OldColumn, OldTable
from ringlog.clients import Address
from servers import Login, RunningServer, ringlog, serving

SITE = """
create role plant nologin;
create schema plant authorization plant;
create role builder login password 'build-1' in role plant;
grant builder to ringlog_gateway with inherit false, set true;
alter role builder set role = plant;
"""
TABLES = Path(__file__).with_name("site_rows.sql").read_text()


def execute(server: RunningServer, text: str) -> list[tuple[object, ...]]:
    """Runs batches of T-SQL; returns the rows of the last."""
    rows: list[tuple[object, ...]] = []
    with (
        server.connect("builder", "build-1", database="plant", timeout=60) as session,
        session.cursor() as cursor,
    ):
        for batch in text.split("\ngo\n"):
            if batch.strip():
                cursor.execute(batch)
                rows = cursor.fetchall() if cursor.description else []  # type: ignore[assignment]
    return rows


@pytest.fixture(scope="module")
def old(temporary_directory: Path) -> Iterator[RunningServer]:
    with serving(temporary_directory / "plant") as running:
        running.sql(SITE)
        execute(running, TABLES)
        yield running


def constraints_are_in_force(new: RunningServer) -> None:
    """Those of the old tables, and their defaults."""
    execute(new, "insert suppliers default values")
    execute(new, "insert [Order] ([key], flag) values (3, 0)")
    asked = (
        "select name, price, sign(datediff(day, '20260101', made)) from suppliers, [Order]"
        " where id = 30 and [key] = 3"
    )
    assert execute(new, asked) == [("nobody", 0, 1)]
    execute(new, "delete suppliers where id = 30 delete [Order] where [key] = 3")
    for wrong, number in (
        ("insert [Order] ([key], price, flag) values (1, 1, 0)", 2627),
        ("insert [Order] ([key], supplier, price, flag) values (7, 3, 1, 0)", 547),
        ("insert [Order] ([key], price, flag, grade) values (8, 1, 0, 'a')", 2601),
        ("insert suppliers (name) values ('next')", 2601),
    ):
        with pytest.raises(pymssql.Error) as refused:
            execute(new, wrong)
        assert refused.value.args[0] == number


@pytest.mark.long
def test_tables_with_their_constraints(old: RunningServer, temporary_directory: Path, tmp_path: Path) -> None:
    words = ("adopt", f"tds://builder:build-1@{old.host}:{old.port}/plant", "--output", tmp_path)
    words = (*words, "--timezone", "Asia/Tokyo")
    assert ringlog(*words).returncode in (0, 1)
    with serving(temporary_directory / "plant_moved") as new:
        data = ("--copy", "--data", new.data)
        with psycopg.connect(new.dsn, autocommit=True) as administrator:
            administrator.execute((tmp_path / "0_roles.psql").read_bytes())
            administrator.execute(
                "create role builder login password 'build-1' in role plant;"
                "grant builder to ringlog_gateway with inherit false, set true;"
                "alter role builder set role = plant"
            )
            execute(new, (tmp_path / "1_tables.sql").read_text())
            for file in ("2_functions_and_views.sql", "4_triggers.sql"):
                execute(new, (tmp_path / file).read_text())
            assert execute(new, "select dbo.twice(4)") == [(8,)]
            asked = (
                "select o.type, t.is_disabled, object_name(t.parent_id), m.definition from sys.objects o"
                " join sys.triggers t on t.object_id = o.object_id"
                " join sys.sql_modules m on m.object_id = object_id('counted', 'TR')"
                " where o.name = 'counted'"
            )
            text = TABLES[TABLES.index("create trigger") : TABLES.rindex("\ngo")]
            assert execute(new, asked) == [("TR", False, "Order", text)]
            assert execute(new, "exec sp_helptext counted") == [(text,)]
            copied = ringlog(*words, *data)
            assert "copied 18 rows, 18 of them new; 0 parts differ" in copied.stdout, copied.stdout
            columns = "[key], supplier, price, half, ratio, made, day, code, flag, note, grade"
            for asked in (
                f"select {columns} from [Order] order by [key]",
                "select id, name, rated from suppliers order by id",
                "select n, at, convert(nvarchar(100), at, 121), fine, convert(nvarchar(100), value)"
                ", convert(varchar(20), sql_variant_property(value, 'BaseType'))"
                ", convert(int, sql_variant_property(value, 'Precision'))"
                ", convert(int, sql_variant_property(value, 'Scale'))"
                ", convert(int, sql_variant_property(value, 'MaxLength')) from logged order by n",
            ):
                assert execute(new, asked) == execute(old, asked)
            # no trigger has fired, and identities continue after the last
            assert execute(new, "select max(rated) from suppliers") == [(pytest.approx(0.1),)]
            execute(new, "insert suppliers (name) values ('next')")
            assert execute(new, "select max(id) from suppliers") == [(25,)]
            constraints_are_in_force(new)
            # a later run replaces the table's rows by the present ones
            execute(old, "update [Order] set price = 7 where [key] = 2")
            again = ringlog(*words, *data)
            assert "Order: 2 rows, new, the same" in again.stdout.replace("order: 2", "Order: 2"), (
                again.stdout
            )
            assert execute(new, "select price from [Order] where [key] = 2") == execute(
                old, "select price from [Order] where [key] = 2"
            )
            # a table that cannot be copied does not prevent the copy of others
            administrator.execute("alter table plant.suppliers add check (rated < 0) not valid")
            execute(old, "update [Order] set price = 8 where [key] = 2")
            execute(old, "update suppliers set rated = 0.2 where id = 10")
            refused_one = ringlog(*words, *data)
            assert refused_one.returncode == 1
            assert 'suppliers: not copied: new row for relation "suppliers" violates' in refused_one.stdout
            assert execute(new, "select price from [Order] where [key] = 2") == [(8,)]
            administrator.execute("alter table plant.suppliers drop constraint suppliers_rated_check")
            # and reports when rows of different times do not fit together
            administrator.execute("set session_replication_role to replica")
            with psycopg.connect(old.dsn, autocommit=True) as there:
                there.execute("set session_replication_role to replica")
                there.execute("delete from plant.suppliers where id = 10")
            loose = ringlog(*words, *data)
            assert loose.returncode == 1
            assert '1 rows of plant."order" refer to no row of plant.suppliers (fk_supplier)' in loose.stdout


def test_tables_of_two_owners_with_one_name(old: RunningServer) -> None:
    """A ringlog server as the old server has a schema for each owner."""
    with psycopg.connect(old.dsn, autocommit=True) as administrator:
        administrator.execute(
            "create schema ops authorization plant; create schema moved authorization plant;"
            "create table ops.counts (n integer); insert into ops.counts values (2), (3);"
            "create table plant.counts (n integer); insert into plant.counts values (1);"
            "grant select on ops.counts, plant.counts to plant"
        )
        columns = (OldColumn("n", "int", 4, 10, 0, True),)
        object_names = ObjectNames([("table", "ops", "counts"), ("table", "dbo", "counts")])
        tables = [
            OldTable(
                object_names.new_name(owner, "counts") or "", columns, (), 0, owner=owner, there="counts"
            )
            for owner in ("dbo", "ops")
        ]
        (plain, of_ops) = table_scripts(tables, False)
        assert plain.text.startswith("create table counts (")
        assert of_ops.text.startswith("create table ops_counts (")
        administrator.execute(
            "create table moved.counts (n integer); create table moved.ops_counts (n integer)"
        )
        source = Source(Address.parse(f"tds://builder@{old.host}:{old.port}/plant"), "build-1", "7.4", "UTC")
        done = copy_site(source, old.dsn, "moved", tables, 1, lambda _: None)
        assert {(each.table, each.rows, each.same) for each in done} == {
            ("counts", 1, True),
            ("ops_counts", 2, True),
        }
        assert administrator.execute("select n from moved.ops_counts order by n").fetchall() == [(2,), (3,)]
        assert administrator.execute("select n from moved.counts").fetchall() == [(1,)]
        # another test counts plant's own tables
        administrator.execute("drop table plant.counts")


def test_checks_of_a_site_do_not_run_as_the_administrator(old: RunningServer) -> None:
    with psycopg.connect(old.dsn, autocommit=True) as administrator:
        administrator.execute(
            "create schema stock authorization plant; create schema sold authorization plant;"
            "create table stock.parts (n integer); insert into stock.parts values (1), (2);"
            "grant select on stock.parts to plant; grant usage on schema stock to plant"
        )
        old.sql(
            "create table sold.seen (by_session name, by_role name);"
            "create function sold.sees (n integer) returns boolean language plpgsql as $$ begin"
            " insert into sold.seen values (session_user, current_user); return true; end $$;"
            "create domain sold.part as integer check (sold.sees(value));"
            "create table sold.parts (n sold.part check (sold.sees(n)))",
            login=Login("builder", "build-1"),
        )
        table = OldTable("parts", (OldColumn("n", "int", 4, 10, 0, True),), (), 2, owner="stock")
        source = Source(Address.parse(f"tds://builder@{old.host}:{old.port}/plant"), "build-1", "7.4", "UTC")
        done = copy_site(source, old.dsn, "sold", [table], 1, lambda _: None)
        assert [(each.table, each.rows, each.same) for each in done] == [("parts", 2, True)]
        seen = administrator.execute("select distinct by_session, by_role from sold.seen").fetchall()
        assert seen
        may = "select rolname from pg_roles where rolsuper"
        superusers = {name for (name,) in administrator.execute(may)}
        assert not superusers & {name for row in seen for name in row}, seen
        assert not administrator.execute(
            "select from pg_roles where rolname like 'ringlog_copier%'"
        ).fetchall()


def test_rows_of_a_ring_without_a_time_are_reported(old: RunningServer) -> None:
    old.sql(
        "create schema vac authorization plant;"
        "create table vac.ring (nr integer, at timestamp, p real);"
        "create table vac.kept (nr integer, at timestamp, p real);"
        "insert into vac.ring values (1, '2026-03-02', 0.5), (2, null, null);"
        "insert into vac.kept values (1, '2026-03-02', 0.5), (1, null, 0.25), (2, null, 0.5);"
        "grant select on vac.ring, vac.kept to plant"
    )
    columns = (
        OldColumn("nr", "int", 4, 10, 0, True),
        OldColumn("at", "datetime", 8, 23, 3, True),
        OldColumn("p", "real", 4, 24, 0, True),
    )
    ring, log = (OldTable(name, columns, (), 2, owner="vac") for name in ("ring", "kept"))
    source = Source(Address.parse(f"tds://builder@{old.host}:{old.port}/plant"), "build-1", "7.4", "UTC")
    assert [*without_time(source, [Ring(ring, "nr", "at", log, 1.0)])] == [
        "2 rows of kept have no at: not copied"
    ]


def test_weeks_of_times_with_an_offset(old: RunningServer) -> None:
    """They are selected in UTC, because the old server compares them with a text without offset."""
    old.sql("create schema far authorization plant")
    execute(
        old,
        """create table far.kept (nr int, at datetimeoffset, p real)
go
insert far.kept values (1, '2026-03-02 02:00:00 +09:00', 0.5)
insert far.kept values (2, '2026-03-02 02:00:00 +00:00', 0.25)
go
""",
    )
    columns = tuple(OldColumn(name, kind, 4, 0, 0, True) for name, kind in (("nr", "int"), ("p", "real")))
    log = OldTable("kept", (*columns, OldColumn("at", "datetimeoffset", 10, 34, 7, True)), (), 2, owner="far")
    source = Source(Address.parse(f"tds://builder@{old.host}:{old.port}/plant"), "build-1", "7.4", "UTC")
    weeks = [each.begins for each in parts(source, [Ring(log, "nr", "at", log, 1.0)], {})]
    assert weeks == [datetime(2026, 2, 23), datetime(2026, 3, 2), None]


# --- the weeks that a second run of a copy skips, and the effect of Ctrl-C ---


def conninfo(url: sqlalchemy.URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def test_weeks_that_went_to_another_database_are_not_left_out(
    database_url: sqlalchemy.URL, empty_database_url: sqlalchemy.URL, tmp_path: Path
) -> None:
    first, second = identity(conninfo(database_url)), identity(conninfo(empty_database_url))
    assert first != second
    ring = SimpleNamespace(table=SimpleNamespace(name="magnets"))
    part = Part(ring, datetime(2026, 8, 3))  # type: ignore[arg-type]
    file = tmp_path / "copied.json"
    Ledger(file, first).note(Copied(part, 7, 7, "", True))
    assert Ledger(file, first).has(part, 7)
    assert not Ledger(file, first).has(part, 8)
    assert not Ledger(file, second).has(part, 7)
    # as an earlier version wrote it, of one database or another
    file.write_text('{"magnets, week of 2026-08-03": 7}')
    assert not Ledger(file, first).has(part, 7)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """If the tests run in the background, Ctrl-C may be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_does_not_wait_for_the_remaining_weeks() -> None:
    seen: list[int] = []

    def work(waiting: Iterator[int]) -> Iterator[int]:
        for piece in waiting:
            if piece == 0:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.001)
            yield piece

    with pytest.raises(KeyboardInterrupt):
        in_threads(range(100_000), 2, work, seen.append)
    assert len(seen) < 100_000
