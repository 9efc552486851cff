"""A query about one table costs the same, whatever the number of tables."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa
from case_tables import cases
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.monitoring.watching import growth, table_states
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import Week, partitions_of_logs
from waiting import wait_until

from ..conftest import Connect, FacilityDatabases, connected

ABOUT_ONE = cases(__file__, "about_one")

READ = """
select coalesce(sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid)), 0)::integer
from unnest('{pg_attribute, pg_attrdef, ringlog.signal}'::regclass[]) as relations (oid)
"""


def read_by(connection: psycopg.Connection, about: str) -> int:
    """Rows of PostgreSQL's catalogue of columns, and of signals, that a query reads."""
    query = sql.SQL(f"select * from {about}")
    with connection.transaction():
        # relations that a session reads only once
        connection.execute(query)
        (before,) = connection.execute(READ).fetchone() or (0,)
        connection.execute(query)
        (after,) = connection.execute(READ).fetchone() or (0,)
    return int(after - before)


def table(name: str) -> Table:
    return Table(name, 3, 1.0, (*(Column(each, f"{name}/{each}", "real") for each in "abcdefgh"),))


@pytest.fixture
def few(facility_databases: FacilityDatabases) -> Iterator[psycopg.Connection]:
    tables = (table("one"), *(table(f"few_{n}") for n in range(2)))
    with (
        facility_databases(Facility("test", "UTC", tables), install_tsql) as url,
        connected(url) as connection,
    ):
        yield connection


@pytest.mark.parametrize(
    "about",
    [pytest.param(one, marks=pytest.mark.long) if index % 4 else one for index, one in enumerate(ABOUT_ONE)],
)
def test_one_table_among_many(about: str, few: psycopg.Connection) -> None:
    connection = few
    connection.execute("set search_path = online, log, ringlog, public")
    connection.execute("analyze")
    assert connection.execute(sql.SQL(f"select * from {about}")).fetchall()
    reads = read_by(connection, about)
    connection.execute(
        "do $$ begin for n in 1..60 loop"
        " execute format('create table online.many_%s (like online.one including all)', n);"
        " insert into ringlog.signal (signal, table_name, column_name, type, unit, description)"
        "   select format('many_%s/%s', n, column_name), format('many_%s', n), column_name, type, unit, ''"
        "   from ringlog.signal where table_name = 'one';"
        " end loop; end $$"
    )
    connection.execute("analyze")
    assert read_by(connection, about) <= reads + 8


def test_all_tables_have_their_columns(engine: sa.Engine, connect: Connect) -> None:
    install(engine, Facility("test", "UTC", (table("one"), table("two"))))
    connection = connect()
    connection.execute("set search_path = online, log, ringlog, public")
    ten = ["seq_no", "time", *"abcdefgh"]
    for about in (
        "select object_name(object_id), array_agg(name::text order by column_id) from sys.columns group by 1",
        "select object_name(id), array_agg(name::text order by colid) from sys.syscolumns"
        " where id in (select object_id from sys.tables) group by 1",
        "select table_name, array_agg(column_name::text order by ordinal_position)"
        " from tsql_information_schema.columns('log') group by 1",
    ):
        rows = connection.execute(sql.SQL(about.replace("object_name(", "sys.object_name("))).fetchall()
        assert sorted(row for row in rows if row[0] in ("one", "two")) == [("one", ten), ("two", ten)]


def test_bounds_are_read_without_opening_the_weeks(engine: sa.Engine) -> None:
    """PostgreSQL's process would keep 16 KB of each week of 100 columns that it has opened."""
    names = [f"t{n}" for n in range(4)]
    tables = [
        Table(name, 1, 1.0, tuple(Column(f"c{n}", f"{name}/c{n}", "real") for n in range(100)))
        for name in names
    ]
    install(engine, Facility("test", "UTC", tuple(tables)))
    kept = sa.text("select sum(used_bytes) from pg_backend_memory_contexts where name = 'CacheMemoryContext'")
    with engine.connect() as connection:
        partitions_of_logs(connection, names[:1])
        before = connection.scalar(kept)
        weeks = [week for each in partitions_of_logs(connection, names).values() for week in each]
        assert connection.scalar(kept) - before < len(weeks) * 10_000


def test_metrics_are_the_same_by_several_connections(
    engine: sa.Engine, connect: Connect, database_url: sa.URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    conninfo = make_conninfo(user=database_url.username, dbname=database_url.database, **database_url.query)
    install(engine, Facility("test", "UTC", (table("one"), table("two"), table("three"))))
    connection = connect()
    # the rows of a Monday and a Tuesday are of last week, too
    connection.execute(
        "select ringlog.make_week(each, date_trunc('week', now(), 'UTC') - interval '7 days')"
        " from unnest('{one,two}'::text[]) as each"
    )
    for name in ("one", "two"):
        put(connection, name, "6 h")
    # not known before a day
    assert growth(connection, conninfo) is None
    put(connection, "one", "48 h")

    def found() -> list[object]:
        states = table_states(conninfo)
        return [growth(connection, conninfo), *((each.table_name, each.newest) for each in states)]

    at_once = found()
    query = (
        "select sum(pg_total_relation_size(tableoid)) / 2 from ("
        "select distinct tableoid from weeks.one union select distinct tableoid from weeks.two) as week"
    )
    (expected,) = connection.execute(query.encode()).fetchone() or (0,)
    assert at_once[0] == pytest.approx(float(expected), rel=0.01)
    assert [name for name, newest in at_once[1:] if newest] == ["one", "two"]
    monkeypatch.setattr("ringlog.schema.many.PER_CONNECTION", 1)
    again = found()
    assert again[0] == pytest.approx(at_once[0], rel=0.01)
    assert again[1:] == at_once[1:]


def put(connection: psycopg.Connection, name: str, since: str = "0 s") -> None:
    """Stores a row of the table with a time so long ago."""
    call = sql.SQL("select ringlog.{}(row (1, now() - interval {} {})::online.{})").format(
        sql.Identifier(f"put_{name}"), sql.Literal(since), sql.SQL(", 1" * 8), sql.Identifier(name)
    )
    connection.execute(call)


def states_of(connection: psycopg.Connection, *, again: bool) -> dict[str, tuple[object, ...]]:
    query = (
        "select table_name, newest, rows_per_second, in_default, unread from ringlog.table_states(null, %s)"
    )
    return {name: state for name, *state in connection.execute(query, [again])}


@pytest.mark.parametrize("again", [False, True])
def test_a_locked_or_damaged_table_does_not_delay_the_others(
    again: bool, engine: sa.Engine, connect: Connect
) -> None:
    names = ["a_ring", "b_week", "c_gone", "d_fine"]
    install(engine, Facility("test", "UTC", tuple(table(name) for name in names)))
    connection, other = connect(), connect()
    for name in names:
        put(connection, name)
    (newest,) = connection.execute("select max(time) from online.d_fine").fetchone() or (None,)
    if again:
        states_of(connection, again=True)
    with other.transaction():
        other.execute("lock table online.a_ring in access exclusive mode")
        other.execute(
            "do $$ begin execute format("
            "'lock table log.%I', 'b_week' || to_char(now() at time zone 'UTC', '_IYYY\"w\"IW'));"
            " end $$"
        )
        connection.execute("drop table online.c_gone cascade")
        states = states_of(connection, again=again)
    locked = [None, None, None, "locked by another transaction"]
    assert states["a_ring"] == states["b_week"] == locked
    assert states["c_gone"] == [None, None, None, 'relation "online.c_gone" does not exist']
    assert states["d_fine"] == [newest, pytest.approx(1 / 60), 0, None]
    assert [state[-1] for state in states_of(connection, again=again).values()] == [
        *(None, None),
        'relation "online.c_gone" does not exist',
        None,
    ]


def test_a_repeated_query_returns_later_changes(engine: sa.Engine, connect: Connect) -> None:
    """Its statements are prepared once for the week; not if the minute is not within one week."""
    # from before the turn of a week until the last minute is in the new one
    wait_until(lambda: len({Week.of(datetime.now(UTC) + timedelta(seconds=s)) for s in (-60, 30)}) == 1)
    install(engine, Facility("test", "UTC", (table("one"), table("two"))))
    connection, watching = connect(), connect()
    prepared = "select count(*) from pg_prepared_statements where from_sql"
    for seconds in (30, 20, 10):
        put(connection, "one", f"{seconds} s")
        put(connection, "two", f"{seconds + 300} s")
        by_itself = states_of(connection, again=False)
        asked = states_of(watching, again=True)
        assert [state[0] for state in asked.values()] == [state[0] for state in by_itself.values()]
        assert watching.execute(prepared).fetchone() == (2,)
    assert asked["one"][1] == pytest.approx(3 / 60)
    assert asked["two"][1] == 0
    week = "format('one_%s', to_char(now() at time zone 'UTC', 'IYYY\"w\"IW'))"
    connection.execute(
        f"do $$ begin execute format('alter table log.%I rename to merged', {week}); end $$".encode()
    )
    connection.execute("insert into log.two select seq_no, '1900-01-01' from log.two limit 1")
    # early on a Monday the rows of five minutes ago are of a week without a partition, too
    more = by_itself["two"][2] + 1
    for again in (False, True):
        states = states_of(watching, again=again)
        assert (states["one"][1], states["two"][2]) == (pytest.approx(3 / 60), more)
