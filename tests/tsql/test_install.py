"""Schema tsql in the database: made once, made anew when its sources change, everybody's to use."""

from typing import Any

import psycopg
import sqlalchemy as sa

from ringlog.gateway.tsql.install import install as install_tsql
from ringlog.schema.facility import load_facility
from ringlog.schema.install import install
from servers import FACILITY, sqlalchemy_url
from tsql_interpreter import Session


def test_a_second_installation_changes_nothing(tsql_conninfo: str) -> None:
    engine = sa.create_engine(sqlalchemy_url(tsql_conninfo))
    facility = load_facility(FACILITY)
    assert not install(engine, facility, [install_tsql])
    with engine.begin() as connection:
        connection.execute(sa.text("comment on schema tsql is 'of another version'"))
    report = install(engine, facility, [install_tsql])
    assert (report.created, report.changed) == ((), ("schema tsql",))
    engine.dispose()


def test_a_reader_queries_in_t_sql(connection: psycopg.Connection[Any]) -> None:
    connection.execute("set role daq_reader")
    session = Session(connection)
    (outcome,) = session.run("select top 1 seq_no + 1 from online..sr_rf where len('a') = 1 order by seq_no")
    assert outcome["rows"] == [[2]]
    (outcome,) = session.run("delete sr_rf")
    assert outcome["error"] == 229


def test_indexes_serve_queries_in_t_sql(connection: psycopg.Connection[Any]) -> None:
    def plan(text: str) -> str:
        session = Session(connection)
        connection.execute("set enable_seqscan = off")
        program = session.compiled(text)
        rows = connection.execute("explain " + program["statements"][0]["sql"]).fetchall()
        return "\n".join(row[0] for row in rows)

    by_key = plan("select * from sr_rf where seq_no = 7")
    assert "Index Cond: (seq_no = 7)" in by_key
    by_time = plan(
        "select * from log..sr_rf where time >= '2026-11-20' and time < dateadd(dd, 1, '2026-11-20')"
    )
    assert 'Index Cond: (("time" >=' in by_time
    latest = plan("select top 5 * from log..sr_rf order by time desc")
    assert "Index Scan Backward" in latest
    joined = plan("select a.seq_no from sr_rf a, sr_vac b where a.seq_no = b.seq_no")
    assert "Nested Loop" not in joined
