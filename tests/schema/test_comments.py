"""Comments of PostgreSQL's catalogue, which `\\d+` and other clients show."""

from dataclasses import replace

import psycopg
import sqlalchemy as sa

from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, SampleTable, Table
from ringlog.schema.installing.install import install
from ringlog.schema.layout import SCHEMAS
from ringlog.schema.relations import closed

from .conftest import Connect

POWER = Column("power", "sr_rf/power", "real", "kW", "forward power")
TURNS = Column("turns", "sr_rf/turns", "real[]", points=10)
RF = Table(
    "sr_rf", rows=4, cycle=1.0, columns=(POWER, TURNS), description="radio frequency", summaries=(60, 3600)
)
# functions of a range type belong to PostgreSQL's first superuser
UNEXPLAINED = """
with schema as (select oid, nspname from pg_namespace where nspname = any (%s))
select nspname from schema where obj_description(oid, 'pg_namespace') is null
union all
select format('%%I.%%I', nspname, relname) from pg_class join schema on schema.oid = relnamespace
where relkind in ('r', 'p', 'v', 'f') and not relispartition
  and obj_description(pg_class.oid, 'pg_class') is null
union all
select format('%%I.%%I.%%I', nspname, relname, attname)
from pg_attribute
join pg_class on pg_class.oid = attrelid
join schema on schema.oid = relnamespace
where relkind in ('r', 'p', 'v', 'f') and not relispartition and attnum > 0 and not attisdropped
  and col_description(attrelid, attnum) is null
union all
select pg_proc.oid::regprocedure::text from pg_proc join schema on schema.oid = pronamespace
where obj_description(pg_proc.oid, 'pg_proc') is null
  and to_regtype(format('%%I.%%I', nspname, proname)) is null
"""


def of_column(connection: psycopg.Connection, relation: str, column: str) -> str:
    found = connection.execute(
        "select col_description(attrelid, attnum) from pg_attribute"
        " where attrelid = %s::regclass and attname = %s",
        [relation, column],
    ).fetchone()
    assert found is not None
    return str(found[0])


def test_all_objects_of_ringlog_have_a_comment(engine: sa.Engine, connect: Connect) -> None:
    vacuum = SampleTable("vac", ColumnType.of("double"))
    install(engine, Facility("test", "UTC", (RF,), sample_tables=(vacuum,)))
    connection = connect()
    connection.execute("set role ringlog_owner")
    closed.create_missing(connection, "sr_rf")
    assert connection.execute(UNEXPLAINED, [[*SCHEMAS]]).fetchall() == []
    assert of_column(connection, "log.sr_rf", "power") == "kW: forward power (signal sr_rf/power)"
    assert of_column(connection, "online.sr_rf", "turns") == "signal sr_rf/turns"
    assert of_column(connection, "minute.sr_rf", "mean") == "mean of the readings"


def test_comments_follow_the_facility_file(engine: sa.Engine, connect: Connect) -> None:
    install(engine, Facility("test", "UTC", (RF,)))
    more = replace(POWER, name="reflected", signal="sr_rf/reflected", description="it's 100 % \\ reflected")
    changed = replace(RF, columns=(replace(POWER, unit="MW"), TURNS, more), description="RF")
    install(engine, Facility("test", "UTC", (changed,)))
    connection = connect()
    assert of_column(connection, "log.sr_rf", "power") == "MW: forward power (signal sr_rf/power)"
    reflected = "kW: it's 100 % \\ reflected (signal sr_rf/reflected)"
    for relation in ("log.sr_rf", "online.sr_rf", "ring.sr_rf", "recent.sr_rf"):
        assert of_column(connection, relation, "reflected") == reflected
    described = connection.execute("select obj_description('online.sr_rf'::regclass, 'pg_class')").fetchone()
    assert described == ("RF: the ring of its latest rows",)
    assert connection.execute(UNEXPLAINED, [[*SCHEMAS]]).fetchall() == []
