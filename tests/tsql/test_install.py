"""Schema tsql in the database: created once, created again when its sources change, usable by every login."""

from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from translated import run

from ringlog.gateway._core import translate
from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing.install import install
from servers import FACILITY, sqlalchemy_url


def test_a_second_installation_changes_nothing(tsql_conninfo: str) -> None:
    engine = sa.create_engine(sqlalchemy_url(tsql_conninfo))
    facility = load_facility(FACILITY)
    assert not install(engine, facility, [install_tsql])
    with engine.begin() as connection:
        connection.execute(sa.text("comment on schema tsql is 'of another version'"))
    report = install(engine, facility, [install_tsql])
    assert (report.created, report.changed) == ((), ("schema tsql",))
    engine.dispose()


def test_what_logins_left_among_global_tables_is_removed(tsql_conninfo: str) -> None:
    """Until version 1.0 any login could make objects of any kind there, which ran as others."""
    engine = sa.create_engine(sqlalchemy_url(tsql_conninfo))
    with psycopg.connect(tsql_conninfo, autocommit=True) as connection:
        connection.execute(
            'create table tsql_global."##t" (a int, b int);'
            ' create statistics tsql_global.s on a, b from tsql_global."##t";'
            ' create view tsql_global."##v" as select 1 as a; create sequence tsql_global.n;'
            " create type tsql_global.c as (a int); create domain tsql_global.d as tsql_global.c;"
            " create type tsql_global.e as enum ('e');"
            " create function tsql_global.f(int, int) returns int immutable language sql return 1;"
            " create operator tsql_global.@@@ (leftarg = int, rightarg = int, function = tsql_global.f);"
            " create aggregate tsql_global.a(int) (sfunc = tsql_global.f, stype = int);"
            ' create collation tsql_global.o from "C";'
            " comment on schema tsql is 'of another version'"
        )
        install(engine, load_facility(FACILITY), [install_tsql])
        (number,) = (
            connection.execute(
                "select count(*) from pg_depend"
                " where refclassid = 'pg_namespace'::regclass and refobjid = 'tsql_global'::regnamespace"
                " and (pg_identify_object(classid, objid, objsubid)).schema = 'tsql_global'"
            ).fetchone()
            or ()
        )
    engine.dispose()
    assert number == 0


def test_a_reader_queries_in_t_sql(connection: psycopg.Connection[Any]) -> None:
    connection.execute("set role daq_reader")
    text = "select top 1 seq_no + 1 from online..sr_rf where len('a') = 1 order by seq_no"
    assert run(connection, text) == [[[2]]]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(connection, "delete online..sr_rf")


def test_indexes_serve_queries_in_t_sql(connection: psycopg.Connection[Any]) -> None:
    def plan(text: str) -> str:
        connection.execute("set enable_seqscan = off")
        (sql,) = translate(text, database="online")
        rows = connection.execute(f"explain {sql}".encode()).fetchall()
        return "\n".join(row[0] for row in rows)

    by_key = plan("select * from sr_rf where seq_no = 7")
    assert "Index Cond: (seq_no = 7)" in by_key
    by_time = plan(
        "select * from log..sr_rf where time >= '2026-11-20' and time < dateadd(dd, 1, '2026-11-20')"
    )
    assert 'Index Cond: (("time" >=' in by_time
    # the weeks are chosen when it is planned
    assert "Subplans Removed" not in by_time
    # the columns of * are known under a schema alone
    latest = plan("select top 5 seq_no, time from log..sr_rf order by time desc")
    assert "Scan Backward" in latest
    joined = plan("select a.seq_no from sr_rf a, sr_vac b where a.seq_no = b.seq_no")
    assert "Nested Loop" not in joined
