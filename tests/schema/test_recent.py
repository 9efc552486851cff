"""The views of the latest weeks: planned over few partitions, advanced each week, with the columns of their
logs.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors

from ringlog.schema.facility import Column
from ringlog.schema.installing.install import InstallRefused, InstallReport, install
from ringlog.schema.relations.partitions import Week, maintain

from .conftest import Connect, magnets_facility

WEEK = timedelta(weeks=1)
THIS = Week.of(datetime.now(UTC))


def put(connection: psycopg.Connection, time: datetime) -> None:
    connection.execute("select ringlog.put_magnets(row (1, %s, 1, true, '')::online.magnets)", [time])


def planned(connection: psycopg.Connection, relation: str) -> int:
    """The number of partitions in the plan of a query of the last hour. EXPLAIN says, of those that it has
    not kept for the execution, their number ("Subplans Removed")."""
    query = f"select * from {relation} where time > now() - interval '1 hour'"
    ((plan,),) = connection.execute(f"explain (format json) {query}").fetchall()
    top = plan[0]["Plan"]
    return int(top.get("Subplans Removed", 0)) + len(top.get("Plans", [top]))


def test_the_last_hour_is_planned_over_few_partitions(engine: sa.Engine, connect: Connect) -> None:
    install(engine, magnets_facility())
    connection = connect()
    # weeks that ended long ago are made for many rows only
    for weeks in range(20):
        put(connection, THIS.start - weeks * WEEK)
    maintain(engine)
    partitions = "select count(*) from pg_inherits where inhparent = 'weeks.magnets'::regclass"
    assert connection.execute(partitions).fetchall() == [(5 + 19 + 1,)]
    assert planned(connection, "log.magnets") == 25
    # this week, the four before it and those to come, and the default one
    assert planned(connection, "recent.magnets") == 10
    query = "select time from recent.magnets order by time"
    expected = [(THIS.start - weeks * WEEK,) for weeks in (4, 3, 2, 1, 0)]
    assert connection.execute(query).fetchall() == expected


def test_housekeeping_advances_them(engine: sa.Engine, connect: Connect) -> None:
    install(engine, magnets_facility())
    connection = connect()
    for weeks in range(5):
        put(connection, THIS.start - weeks * WEEK)
    count = "select count(*) from recent.magnets"
    assert connection.execute(count).fetchone() == (5,)
    maintain(engine, datetime.now(UTC) + 3 * WEEK)
    assert connection.execute(count).fetchone() == (2,)
    assert not install(engine, magnets_facility())


def test_they_have_the_columns_of_their_logs(engine: sa.Engine, connect: Connect) -> None:
    facility = magnets_facility()
    install(engine, facility)
    (table,) = facility.tables
    connection = connect()
    # a user's view depends on it
    connection.execute("create view public.mine as select time, current from recent.magnets")
    wider = replace(facility, tables=(replace(table, columns=(*table.columns, Column("k", "k", "real"))),))
    assert not [line for line in install(engine, wider).changed if line.startswith("view")]
    named = replace(wider.tables[0].columns[-1], name="kelvin", renamed_from="k")
    renamed = replace(facility, tables=(replace(table, columns=(*table.columns, named)),))
    install(engine, renamed)
    put_wide = "select ringlog.put_magnets(row (1, now(), 1, true, '', 4)::online.magnets)"
    connection.execute(put_wide)
    assert connection.execute("select kelvin from recent.magnets").fetchall() == [(4.0,)]
    assert connection.execute("select current from public.mine").fetchall() == [(1.0,)]


def test_a_table_can_be_dropped_by_the_advised_sql(engine: sa.Engine, connect: Connect) -> None:
    facility = magnets_facility()
    install(engine, facility)
    (table,) = facility.tables
    narrow = replace(facility, tables=(replace(table, columns=table.columns[:-1]),))
    with pytest.raises(InstallRefused) as refused:
        install(engine, narrow)
    (obstacle,) = refused.value.obstacles
    connection = connect()
    connection.execute(obstacle.sql.encode())
    assert "view recent.magnets" in install(engine, narrow).changed
    connection.execute("select time, current from recent.magnets")
    with pytest.raises(InstallRefused) as refused:
        install(engine, replace(facility, tables=()))
    connection.execute(refused.value.obstacles[0].sql.encode())
    with pytest.raises(errors.UndefinedTable):
        connection.execute("select from recent.magnets")


def test_they_are_read_with_the_rights_of_the_reader(engine: sa.Engine, connect: Connect) -> None:
    install(engine, magnets_facility())
    connection = connect()
    connection.execute("set role daq_reader")
    connection.execute("select * from recent.magnets")
    connection.execute("reset role")
    connection.execute("set role daq_writer")
    with pytest.raises(errors.InsufficientPrivilege):
        connection.execute("select * from recent.magnets")


def test_an_older_database_gets_them(engine: sa.Engine, connect: Connect) -> None:
    install(engine, magnets_facility())
    connect().execute("drop view recent.magnets")
    assert install(engine, magnets_facility()) == InstallReport((), ("view recent.magnets",))
