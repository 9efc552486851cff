"""ringlog's own schema: what the first one made becomes today's, with every row, and as if made today."""

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.schema import roles, versions
from ringlog.schema.change import run
from ringlog.schema.install import InstallRefused, bring_up_to_date, install

from .conftest import Connect, magnets_facility

FIRST = Path(__file__).with_name("first_schema.sql")
"""A dump of a database with the table `magnets` and four rows, as the first released schema made it."""

FACILITY = magnets_facility()

_SHAPE = """
select relations.relnamespace::regnamespace::text || '.' || relname || '.' || attname,
  format_type(atttypid, atttypmod), attstattarget, attnotnull, pg_get_expr(adbin, adrelid),
  col_description(attrelid, attnum), relations.reloptions, relations.relacl::text, attacl::text
from pg_attribute
join pg_class as relations on relations.oid = attrelid
left join pg_attrdef on adrelid = attrelid and adnum = attnum
where relkind in ('r', 'p', 'v') and attnum > 0 and not attisdropped
  and relnamespace::regnamespace::text in ('online', 'log', 'ring', 'ringlog', 'summary', 'minute', 'hour')
  and relname !~ '_[0-9]{4}w[0-9]{2}$'
order by 1
"""
_INDEXES = """
select pg_get_indexdef(indexrelid) from pg_index join pg_class on pg_class.oid = indrelid
where relnamespace::regnamespace::text in ('online', 'log', 'ringlog', 'summary')
  and relname !~ '_[0-9]{4}w[0-9]{2}$' order by 1
"""
_PROCEDURES = """
select oid::regprocedure::text, prosrc, proconfig, proacl::text from pg_proc
where pronamespace::regnamespace::text in ('ringlog', 'sys', 'tsql') order by 1
"""


@pytest.fixture
def database_url(empty_database_url: sa.URL) -> sa.URL:
    return empty_database_url


def shape(connection: psycopg.Connection) -> list[list[tuple[object, ...]]]:
    connection.execute("set search_path = pg_catalog")
    return [connection.execute(query.encode()).fetchall() for query in (_SHAPE, _INDEXES, _PROCEDURES)]


def test_the_first_schema_becomes_todays(engine: sa.Engine, connect: Connect, postgres_url: sa.URL) -> None:
    with engine.begin() as connection:
        roles.create_missing_roles(connection)
        run(connection, FIRST.read_text())
    before = (
        connect().execute("select seq_no, time, current, state from log.magnets order by time").fetchall()
    )
    assert len(before) == 4
    report = install(engine, FACILITY)
    assert [line for line in report.changed if line.startswith("schema version")] == [
        f"schema version {each.version}: {each.title}" for each in versions.migrations()
    ]
    connection = connect()
    assert (
        connection.execute("select seq_no, time, current, state from log.magnets order by time").fetchall()
        == before
    )
    assert connection.execute(
        "select count(*) from ringlog.get_signal('magnets/current_adc')"
    ).fetchone() == (4,)
    assert not install(engine, FACILITY)
    made_today = sa.create_engine(postgres_url.set(database=fresh(connect)))
    install(made_today, FACILITY)
    with made_today.connect() as other:
        driver = other.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        for one, another in zip(shape(connection), shape(driver), strict=True):
            assert [row for row in one if row not in another] == []
            assert [row for row in another if row not in one] == []
    made_today.dispose()
    connection.execute("drop database made_today with (force)")


def fresh(connect: Connect) -> str:
    connect().execute("create database made_today")
    return "made_today"


def test_a_new_database_has_had_all_migrations(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    found = connect().execute("select version, title from ringlog.schema_version order by 1").fetchall()
    assert found == [(each.version, each.title) for each in versions.migrations()]


def test_a_database_of_a_later_ringlog_is_left_alone(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connect().execute("insert into ringlog.schema_version (version, title) values (999, 'of tomorrow')")
    for attempt in (lambda: install(engine, FACILITY), lambda: bring_up_to_date(engine)):
        with pytest.raises(InstallRefused, match=r"a later ringlog has changed this database: .* 999"):
            attempt()


def test_what_is_installed_is_brought_up_to_date_without_a_facility(
    engine: sa.Engine, connect: Connect
) -> None:
    install(engine, FACILITY)
    connection = connect()
    connection.execute(
        "drop function ringlog.table_states; delete from ringlog.schema_version where version > 1"
    )
    connection.execute("alter table ringlog.logged_table drop column retired")
    report = bring_up_to_date(engine)
    assert report.created == ("procedure table_states",)
    assert report.changed[0] == "schema version 2: retired tables"
    assert not bring_up_to_date(engine)
    assert not install(engine, FACILITY)


_VIEW_OF_VERSION_5 = """
create or replace view hour.magnets as
select
  block.column_name,
  block.begins + (span.number - 1) * interval '3600 seconds' as "time",
  span.n,
  nullif(span.min, 'NaN') as min,
  nullif(span.max, 'NaN') as max,
  nullif(span.mean, 'NaN') as mean,
  nullif(span.first, 'NaN') as first,
  nullif(span.last, 'NaN') as last,
  case when span.n > 0 then sqrt(span.squares / span.n) end as std,
  coalesce(span.nans, 0) as nans,
  coalesce(span.nulls, 0) as nulls,
  block.begins as block
from summary.magnets as block
cross join lateral unnest(
  block.n, block.min, block.max, block.mean, block.first, block.last, block.squares, block.nans, block.nulls
) with ordinality as span (n, min, max, mean, first, last, squares, nans, nulls, number)
where block.level = 3600 and (span.n > 0 or span.nans > 0 or span.nulls > 0)
"""


def test_views_of_summaries_are_todays(engine: sa.Engine, connect: Connect) -> None:
    (table,) = FACILITY.tables
    install(engine, replace(FACILITY, tables=(replace(table, summaries=(60, 3600)),)))
    connection = connect()

    def views() -> list[tuple[object, ...]]:
        return connection.execute(
            "select schemaname, viewname, definition from pg_views where viewname = 'magnets' order by 1"
        ).fetchall()

    today = views()
    connection.execute(_VIEW_OF_VERSION_5)
    connection.execute("create view public.of_a_site as select * from hour.magnets")
    connection.execute("delete from ringlog.schema_version where version > 5")
    assert views() != today
    assert bring_up_to_date(engine).changed[0] == "schema version 6: views of summaries"
    assert views() == today
    assert connection.execute("select count(*) from public.of_a_site").fetchone() == (0,)


def test_a_copy_under_way_goes_on_under_new_names(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    connection.execute(
        """
        alter function ringlog.record_late_row rename to tell_late_row;
        alter function ringlog.record_moved_row rename to tell_moved_row;
        update ringlog.procedure set name = replace(name, 'record_', 'tell_') where name ~ '^record_';
        create trigger ringlog_tell_moved_row after insert on log.magnets for each row
          execute function ringlog.tell_moved_row('magnets');
        create trigger tell_late_row after insert on log.magnets_default for each row
          execute function ringlog.tell_late_row();
        drop function ringlog.report_writer, ringlog.report_ledger, ringlog.report_events;
        delete from ringlog.schema_version where version > 7
        """
    )
    report = bring_up_to_date(engine)
    assert report.changed[0] == "schema version 8: names of reports"
    assert not [line for line in report.changed if "not as ringlog makes it" in line]
    assert not bring_up_to_date(engine)
    assert connection.execute(
        "select distinct tgname::text from pg_trigger where tgname ~ '_row$' order by 1"
    ).fetchall() == [("record_late_row",), ("ringlog_record_moved_row",)]
    assert connection.execute(
        "select proname::text from pg_proc"
        " where pronamespace = 'ringlog'::regnamespace and proname ~ '^tell_' order by 1"
    ).fetchall() == [("tell_event",), ("tell_ledger",), ("tell_writer",)]
    connection.execute("insert into log.magnets (seq_no, time) values (1, '1990-01-01 00:00Z')")
    for table in ("late_row", "moved_row"):
        assert connection.execute(f"select seq_no from ringlog.{table}".encode()).fetchall() == [(1,)]
