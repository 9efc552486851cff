"""System procedures and views through the gateway: consoles, SQLAlchemy, pymssql's bulk copy."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pymssql
import pytest
import sqlalchemy

from tds_clients import Clients
from waiting import PATIENCE, one_sleeps, stopped, wait_until


@pytest.mark.parametrize("section", ["5.0", "7.4"])
def test_sp_help_typed_at_a_console(clients: Clients, section: str) -> None:
    answer = clients.tsql(clients.server.reader, "sp_help sr_rf", "sp_spaceused sr_rf", section=section)
    assert answer.messages == []
    assert answer.statuses == [0, 0]
    assert answer.counts == [1, 4, 2, 1, 1]
    assert answer.rows[:3] == [
        ["Name", "Owner", "Type", "Created_datetime"],
        ["sr_rf", "dbo", "user table", "NULL"],
        ["Column_name", "Type", "Computed", "Length", "Prec", "Scale", "Nullable"],
    ]
    time = "bigdatetime" if section == "5.0" else "datetime2"
    assert [row[:2] for row in answer.rows[3:7]] == [
        ["seq_no", "int"],
        ["time", time],
        ["power", "real"],
        ["arcs", "int"],
    ]


@pytest.mark.parametrize("section", ["5.0", "7.4"])
def test_catalogue_queries_typed_at_a_console(clients: Clients, section: str) -> None:
    answer = clients.tsql(
        clients.server.reader,
        "select name from sysobjects where type = 'U' and name like 'sr[_]r%'",
        "select name from log..sysobjects where id = object_id('log..sr_rf')",
        "use log\nselect name from sysobjects where name = 'sr_rf'",
        "if object_id('sr_rf') is not null select 'there' as found",
        "select COLUMN_NAME from INFORMATION_SCHEMA.COLUMNS\n"
        "where TABLE_NAME = 'sr_rf' and DATA_TYPE = 'real'",
        section=section,
    )
    assert answer.errors == []
    assert answer.rows == [
        ["name"],
        ["sr_rf"],
        ["name"],
        ["sr_rf"],
        ["name"],
        ["sr_rf"],
        ["found"],
        ["there"],
        ["COLUMN_NAME"],
        ["power"],
    ]


def test_sp_sysmon_with_the_gateways_part(clients: Clients) -> None:
    server = clients.server
    puts = 10

    with (
        psycopg.connect(server.dsn, autocommit=True) as admin,
        clients.pymssql(server.writer) as connection,
        connection.cursor() as cursor,
        ThreadPoolExecutor(1) as pool,
    ):
        reported = pool.submit(clients.tsql, server.reader, "sp_sysmon '00:00:04'", section="5.0")
        sleeping = "select pid from pg_stat_activity where wait_event = 'PgSleep' and query ~ 'sysmon'"
        [(pid,)] = wait_until(lambda: admin.execute(sleeping).fetchall())
        # its interval is not over before all have been put
        with stopped(pid):
            for number in range(puts):
                values = (number % 20 + 1, f"2032-01-01 00:{number:02}", 1.5, 2.5, 3.5, 1)
                cursor.callproc("put_sr_vac", values)
        answer = reported.result()
    titles = [row[0] for row in answer.rows if "per sec" in row]
    assert titles[-3:] == ["Network I/O (KB)", "Transactions of group commit", "Procedure"]
    found = {row[0]: row for row in answer.rows}
    assert found["ringlog.put_sr_vac"][1] == str(puts)
    assert found["ringlog.put_sr_vac"][3] == "0"
    assert found["1 call"][2] == str(puts)
    assert float(found["Received"][2] or 0) > 1
    (one,) = clients.tsql(server.reader, "sp_sysmon '00:00:00', netio", section="7.4").rows[:1]
    assert one[0] == "Network I/O (KB)"


def test_a_console_cancels_sp_sysmon(clients: Clients) -> None:
    with clients.impatient(clients.server.reader) as connection, connection.cursor() as cursor:
        start = time.monotonic()
        with pytest.raises(pymssql.Error):
            cursor.execute("exec sp_sysmon '01:00:00'")
        assert time.monotonic() - start < PATIENCE
    # the next test would take its sleep for that of its own
    with psycopg.connect(clients.server.dsn, autocommit=True) as admin:
        wait_until(lambda: not one_sleeps(admin))


def test_sqlalchemy_reflects_the_tables(clients: Clients) -> None:
    server = clients.server
    engine = sqlalchemy.create_engine(
        sqlalchemy.URL.create(
            "mssql+pymssql", server.reader.user, server.reader.password, server.host, server.port, "online"
        )
    )
    inspector = sqlalchemy.inspect(engine)
    assert inspector.default_schema_name == "dbo"
    assert inspector.get_table_names() == ["every_type", "sr_mag_ps", "sr_rf", "sr_vac"]
    assert inspector.has_table("sr_rf")
    assert not inspector.has_table("nowhere")
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    table = metadata.tables["every_type"]
    assert {column.name: str(column.type) for column in table.columns} == {
        "seq_no": "INTEGER",
        "time": "DATETIME2",
        "a_real": "REAL",
        "a_double": "FLOAT",
        "an_int": "INTEGER",
        "a_smallint": "SMALLINT",
        "a_bigint": "BIGINT",
        "a_bit": "BIT",
        "a_varchar": 'NVARCHAR(40) COLLATE "Latin1_General_100_BIN2_UTF8"',
    }
    assert [column.name for column in table.primary_key] == ["seq_no"]
    assert table.c.a_real.comment == "every_type/a_real"
    (index,) = table.indexes
    assert [column.name for column in index.columns] == ["time", "seq_no"]
    # another database's table has its own key
    log = sqlalchemy.Table("every_type", sqlalchemy.MetaData(), schema="log.dbo", autoload_with=engine)
    assert [column.name for column in log.primary_key] == ["time", "seq_no"]
    with engine.connect() as connection:
        rows = connection.execute(sqlalchemy.select(table.c.seq_no).where(table.c.seq_no < 3)).fetchall()
        assert sorted(rows) == [(1,), (2,)]
    engine.dispose()
