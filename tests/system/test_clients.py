"""Catalogue queries of client libraries: ODBC's and DBI's functions, pymssql's bulk copy."""

import subprocess
from collections.abc import Iterator
from typing import Any

import psycopg
import pymssql
import pyodbc
import pytest
from case_tables import cases

from ringlog.gateway._core import TsqlError, translate
from servers import RunningServer
from tds_clients import Clients, error_number

VERSIONS = ["5.0", "7.4"]


def listed(cursor: pyodbc.Cursor, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(row, name) for name in names) for row in cursor.fetchall()]


@pytest.mark.parametrize("version", VERSIONS)
def test_odbc_lists_tables(clients: Clients, version: str) -> None:
    with clients.odbc(clients.server.reader, version) as connection:
        cursor = connection.cursor()
        tables = listed(cursor.tables(), "table_cat", "table_schem", "table_name", "table_type")
        assert tables == [
            ("online", "dbo", name, "TABLE") for name in ("every_type", "sr_mag_ps", "sr_rf", "sr_vac")
        ]
        assert listed(cursor.tables(table="sr_r%", tableType="TABLE,VIEW"), "table_name") == [("sr_rf",)]
        assert listed(cursor.tables(table="sr_r%", tableType="VIEW"), "table_name") == []
        assert listed(cursor.tables(catalog="log", table="sr_rf"), "table_cat") == [("log",)]


@pytest.mark.parametrize("version", VERSIONS)
def test_odbc_lists_columns(clients: Clients, version: str) -> None:
    with clients.odbc(clients.server.reader, version) as connection:
        columns = listed(
            connection.cursor().columns(table="every_type"),
            "column_name",
            "type_name",
            "column_size",
            "decimal_digits",
            "nullable",
            "ordinal_position",
        )
    if version == "5.0":
        time, real, double, bit, varchar = "bigdatetime", 7, 15, ("tinyint", 3, 0), "varchar"
    else:
        time, real, double, bit, varchar = "datetime2", 24, 53, ("bit", 1, None), "nvarchar"
    assert columns == [
        ("seq_no", "int", 10, 0, 0, 1),
        ("time", time, 26, 6, 1, 2),
        ("a_real", "real", real, None, 1, 3),
        ("a_double", "float", double, None, 1, 4),
        ("an_int", "int", 10, 0, 1, 5),
        ("a_smallint", "smallint", 5, 0, 1, 6),
        ("a_bigint", "bigint", 19, 0, 1, 7),
        ("a_bit", *bit, 1, 8),
        ("a_varchar", varchar, 40, None, 1, 9),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_odbc_lists_keys_indexes_and_procedures(clients: Clients, version: str) -> None:
    with clients.odbc(clients.server.reader, version) as connection:
        cursor = connection.cursor()
        assert listed(cursor.primaryKeys(table="sr_rf"), "column_name", "key_seq") == [("seq_no", 1)]
        assert listed(cursor.rowIdColumns(table="sr_rf"), "column_name") == [("seq_no",)]
        assert listed(cursor.foreignKeys(table="sr_rf"), "fk_name") == []
        indexes = listed(cursor.statistics(table="sr_rf"), "index_name", "ordinal_position", "column_name")
        assert indexes == [
            (None, None, None),
            ("sr_rf_pkey", 1, "seq_no"),
            ("sr_rf_time_idx", 1, "time"),
            ("sr_rf_time_idx", 2, "seq_no"),
        ]
        procedures = [name for (name,) in listed(cursor.procedures(), "procedure_name")]
        assert "get_sr_rf;1" in procedures
        assert not [name for name in procedures if name.startswith("put_")]
        parameters = listed(
            cursor.procedureColumns(procedure="get_sr_rf"), "column_name", "column_type", "type_name"
        )
        assert parameters == [("@RETURN_VALUE", 5, "int"), ("@n", 1, "int")]


DBI = r"""
use DBI;
my ($version, $port, $user) = @ARGV;
chomp(my $password = <STDIN>);
my $dbh = DBI->connect("dbi:Sybase:server=$version;database=online", $user, $password, { RaiseError => 1 });
sub show {
    my ($sth, @columns) = @_;
    while (my $row = $sth->fetchrow_arrayref) { print join(",", map { $_ // "" } @$row[@columns]), "\n" }
    print "--\n";
}
show($dbh->table_info(undef, undef, "sr%", "TABLE"), 0, 1, 2, 3);
show($dbh->column_info(undef, undef, "sr_rf", "%"), 3, 5);
show($dbh->primary_key_info(undef, undef, "sr_rf"), 3, 4);
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_dbi_lists_tables_columns_and_keys(clients: Clients, version: str) -> None:
    server = clients.server
    done = subprocess.run(
        ["perl", "-e", DBI, version, str(server.port), server.reader.user],
        input=server.reader.password + "\n",
        env={"FREETDSCONF": str(clients.configuration), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    time = "bigdatetime" if version == "5.0" else "datetime2"
    assert done.stdout.splitlines() == [
        *(f"online,dbo,{table},TABLE" for table in ("sr_mag_ps", "sr_rf", "sr_vac")),
        "--",
        *("seq_no,int", f"time,{time}", "power,real", "arcs,int"),
        "--",
        "seq_no,1",
        "--",
    ], done.stderr


def call(cursor: pymssql.Cursor, name: str, *values: object) -> list[tuple[Any, ...]]:
    cursor.callproc(name, values)
    return list(cursor)


def test_calls_by_rpc_and_as_text_have_the_same_answers(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        # by its type JDBC and ODBC know an identity column (jTDS, JtdsDatabaseMetaData.getColumns)
        cursor.execute("create table #numbered (a int identity, b int)")
        cursor.execute("exec sp_columns '#numbered%', null, tempdb")
        assert [row[5] for row in cursor.fetchall()] == ["int identity", "int"]
        by_rpc = call(cursor, "sp_columns", "sr_rf")
        cursor.execute("exec sp_columns sr_rf")
        assert list(cursor) == by_rpc
        cursor.execute("exec sp_columns @table_name = 'sr_rf', @ODBCVer = 3")
        assert [row[4] for row in cursor] == [4, 93, 7, 4]
        assert [row[4] for row in by_rpc] == [4, 11, 7, 4]
        assert cursor.description is not None
        assert [name for name, *_ in cursor.description][:4] == [
            "TABLE_QUALIFIER",
            "TABLE_OWNER",
            "TABLE_NAME",
            "COLUMN_NAME",
        ]


def test_another_database_by_its_name_before_the_procedure(clients: Clients) -> None:
    with (
        clients.pymssql(clients.server.reader, database="online") as connection,
        connection.cursor() as cursor,
    ):
        for name, table in (
            ("sp_tables", "sr_rf"),
            ("log..sp_tables", "sr_rf"),
            ("log.dbo.sp_tables", "sr_rf"),
        ):
            ((database, *_),) = call(cursor, name, table)
            assert database == ("log" if name.startswith("log") else "online")
        # and only for that call
        cursor.execute("exec log..sp_pkeys sr_rf")
        assert [row[3] for row in cursor] == ["time", "seq_no"]
        cursor.execute("exec sp_pkeys sr_rf")
        assert [row[3] for row in cursor] == ["seq_no"]
        with pytest.raises(pymssql.Error) as refused:
            call(cursor, "nowhere..sp_tables", "sr_rf")
        assert refused.value.args[0] == 911
        cursor.execute("exec sp_tables sr_rf, null, log")
        assert [row[0] for row in cursor] == ["log"]


def test_sp_rename_is_refused(clients: Clients) -> None:
    with (
        clients.pymssql(clients.server.writer) as connection,
        connection.cursor() as cursor,
        pytest.raises(pymssql.Error, match="sp_rename is refused"),
    ):
        cursor.execute("exec sp_rename 'sr_rf', 'sr_rg'")


def test_scalar_functions_are_not_procedures(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        assert error_number(cursor, "exec object_id 'sr_rf'") == 2812


# --- catalogue queries of drivers and users, compiled and run on PostgreSQL ---


Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module")
def reader(server: RunningServer) -> Iterator[Connection]:
    with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as connection:
        yield connection


def run(connection: Connection, batch: str) -> list[list[tuple[Any, ...]]]:
    """The result sets of a batch of queries."""
    results = []
    for sql in translate(batch, database="online"):
        cursor = connection.execute(sql.encode())
        if cursor.description is not None:
            results.append(cursor.fetchall())
    return results


def refusal(batch: str) -> str:
    with pytest.raises(TsqlError) as refused:
        translate(batch, database="online")
    return refused.value.args[2]


@pytest.mark.parametrize(("query", "expected"), cases(__file__, "queries_on_the_catalogue"))
def test_queries_on_the_catalogue(reader: Connection, query: str, expected: list[list[Any]]) -> None:
    assert [[*map(list, rows)] for rows in run(reader, query)] == [expected]


def test_unknown_databases_are_refused(reader: Connection) -> None:
    with pytest.raises(psycopg.errors.InvalidSchemaName, match="database 'nowhere'"):
        run(reader, "select * from nowhere.sys.tables")


def test_a_table_variable_lives_in_its_batch(reader: Connection) -> None:
    batch = (
        "declare @t table (a int primary key, b varchar(10)) insert @t values (1, 'x'), (2, 'y')"
        " update @t set b = 'z' where a = 2 delete @t where a = 1 select t.a, t.b from @t as t"
    )
    assert run(reader, batch) == [[(2, "z")]]
    assert run(reader, batch) == [[(2, "z")]]
    assert reader.execute("select to_regclass('pg_temp.\"#@t\"')").fetchone() == (None,)
    assert "@t" in refusal("select * from @t")


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ("begin tran declare @t table (a int) rollback", "rollback with a table variable"),
        ("insert into #t output inserted.a exec ('select 1')", "OUTPUT clause"),
    ],
)
def test_refusals(batch: str, message: str) -> None:
    assert message in refusal(batch)
