"""COLMETADATA of expressions at TDS 7.4 (MS-TDS 2.2.7.4, 2.2.5.4).

Types, lengths, precision and scale: SQL Server's documentation, "Precision, scale, and length", "Data type
precedence", the return types of each function; ISNULL and literals take no nulls.
"""

from collections.abc import Iterator

import pymssql
import pytest
from case_tables import cases

from authors import author_with_schema
from described_columns import ERROR, described
from raw_client import RawClient, logged_in7
from raw_tds import BATCH7, batch7
from servers import Login, RunningServer
from tds_clients import Clients, CtClient, Param, rows_of
from waiting import wait_until


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[RawClient]:
    with logged_in7(server, server.reader) as client:
        client.packet_size = 4096
        yield client


@pytest.mark.parametrize(("expression", "expected"), cases(__file__, "types_of_expressions"))
def test_types_of_expressions(client: RawClient, expression: str, expected: str) -> None:
    assert described(client, f"select {expression}") == [expected]


@pytest.mark.parametrize(("text", "expected"), cases(__file__, "types_of_texts"))
def test_types_of_texts(client: RawClient, text: str, expected: list[str]) -> None:
    assert described(client, text) == expected


def test_a_table_created_again_is_described_again(server: RunningServer) -> None:
    login = Login("describer", "describer")
    with author_with_schema(server, login, "described"), RawClient(server.host, server.port) as client:
        client.log_in7(login)
        client.packet_size = 4096
        for prefix in ("described..", "#"):
            # PostgreSQL has one type for all of them
            for column in ("varbinary(5)", "varbinary(max)", "varbinary(7)"):
                client.batch(f"create table {prefix}again (c {column})")
                # prepared the second time
                for _ in range(3):
                    assert described(client, f"select c from {prefix}again") == [column]
                client.batch(f"drop table {prefix}again")


def test_a_table_altered_by_another_session_is_described_anew(server: RunningServer) -> None:
    """Also for changes that PostgreSQL does not show: it has one type for all varbinary types."""
    login = Login("describer", "describer")
    select = "select * from described..altered"
    shown = f"set fmtonly on {select} set fmtonly off"
    with (
        author_with_schema(server, login, "described") as admin,
        RawClient(server.host, server.port) as one,
        RawClient(server.host, server.port) as other,
    ):
        for client in (one, other):
            client.log_in7(login)
            client.packet_size = 4096

        def run(text: str) -> None:
            raw = other.batch(text)
            assert raw[0] != ERROR, raw

        run("create table described..altered (a int, b varbinary(5))")
        expected = ["int[4]", "varbinary(5)"]
        for _ in range(3):
            # prepared the second time
            assert [described(one, text) for text in (select, shown)] == [expected] * 2
        for change, expected in (
            ("alter column b varbinary(7)", ["int[4]", "varbinary(7)"]),
            ("add c datetime null", ["int[4]", "varbinary(7)", "datetime[8]"]),
            ("alter column a bigint", ["int[8]", "varbinary(7)", "datetime[8]"]),
            ("drop column c", ["int[8]", "varbinary(7)"]),
        ):
            run(f"alter table described..altered {change}")
            assert [described(one, text) for text in (shown, select)] == [expected] * 2
        # a rolled back change has no effect, also in its own session
        run(f"begin tran alter table described..altered alter column b varbinary(9) {select} rollback")
        for client in (one, other):
            assert [described(client, text) for text in (shown, select)] == [expected] * 2
        # a change without a notification to the gateway
        admin.execute("alter table described.altered add column d integer")
        for client in (one, other):
            assert [described(client, text) for text in (shown, select)] == [[*expected, "int[4]"]] * 2


def test_a_table_altered_by_another_gateway_is_described_anew(server: RunningServer) -> None:
    """The same statement as the other gateway's, and PostgreSQL's type stays the same."""
    login = Login("describer", "describer")
    text = "select * from described..altered"
    with (
        author_with_schema(server, login, "described") as admin,
        RawClient(server.host, server.port) as client,
    ):
        client.log_in7(login)
        client.packet_size = 4096
        assert client.batch("create table described..altered (a varbinary(5))")[0] != ERROR
        for _ in range(3):
            assert described(client, text) == ["varbinary(5)"]
        admin.execute(
            "call tsql.alter_table('alter table described.altered alter column a type bytea',"
            " 'described.altered', array['a'], array['varbinary(7)'], altered => 'a')"
        )
        wait_until(lambda: described(client, text) == ["varbinary(7)"])


def test_a_column_with_dependents_cannot_be_dropped(clients: Clients, server: RunningServer) -> None:
    """SQL Server: "ALTER TABLE", and errors 5074 and 3725 of "Database Engine events and errors"."""
    login = Login("describer", "describer")
    with author_with_schema(server, login, "described"), clients.pymssql(login).cursor() as cursor:
        cursor.execute(
            "use described create table one (a int constraint PK_one primary key, b int)"
            " create table two (c int constraint FK_two references one (a), d int)"
        )
        cursor.execute("create view seen as select d from two")
        for text, number, words in (
            ("one drop column a", 5074, "The object 'FK_two' is dependent on column 'a'."),
            ("two drop column c", 5074, "The object 'FK_two' is dependent on column 'c'."),
            ("two drop column d", 5074, "The object 'seen' is dependent on column 'd'."),
            ("two alter column d bigint", 5074, "The object 'seen' is dependent on column 'd'."),
            ("one drop constraint PK_one", 3725, "'PK_one' is being referenced by table 'two'"),
        ):
            with pytest.raises(pymssql.Error) as refused:
                cursor.execute(f"alter table {text}")
            assert (refused.value.args[0], words in refused.value.args[1].decode()) == (number, True), text
        cursor.execute(
            "insert one values (1, 2) insert two values (1, 4) select * from one join two on a = c"
        )
        assert cursor.fetchall() == [(1, 2, 1, 4)]


def test_a_prepared_statement_is_described_by_its_present_table(
    clients: Clients, server: RunningServer
) -> None:
    """At 5.0 as a dynamic statement, at 7.4 by a handle."""
    login = Login("describer", "describer")
    with (
        author_with_schema(server, login, "described") as admin,
        clients.ct(login) as five,
        clients.pymssql(login) as connection,
        clients.pymssql(login).cursor() as other,
        connection.cursor() as cursor,
    ):
        other.execute("create table described..prepared (a int) insert described..prepared values (1)")
        select = "select * from described..prepared"
        assert five.prepare("d", f"{select} where a > ?").errors == []
        cursor.execute(f"declare @h int exec sp_prepare @h output, N'', N'{select}', 1 select @h handle")
        while [column[0] for column in cursor.description or ()] != ["handle"]:
            cursor.nextset()
        ((handle,),) = cursor.fetchall()
        for change, columns in (
            ("add b int null", ["a", "b"]),
            ("drop column b", ["a"]),
            ("add column c int", ["a", "c"]),
        ):
            if "add column" in change:
                # this one is not notified to the gateway
                admin.execute(f"alter table described.prepared {change}".encode())
            else:
                other.execute(f"alter table described..prepared {change}")
            # ct-library requests the description when it prepares
            again = change.replace(" ", "_")
            assert five.prepare(again, f"{select} where a > ?").errors == []
            assert [name for name, _ in five.describe("out", again).description] == columns
            executed = five.execute("d", [Param("int", "0")])
            assert (executed.errors, executed.columns) == ([], columns)
            cursor.execute(f"exec sp_execute {handle}")
            assert [column[0] for column in cursor.description or ()] == columns


def test_an_insert_without_columns_fills_the_present_columns(clients: Clients, server: RunningServer) -> None:
    """Another session has changed the table: too few values are refused, and others are assigned to other
    columns.
    """
    login = Login("describer", "describer")
    with (
        author_with_schema(server, login, "described"),
        clients.pymssql(login).cursor() as cursor,
        clients.pymssql(login).cursor() as other,
    ):
        other.execute("create table described..filled (id int identity, a int, b int)")
        insert = "insert described..filled values (1, 2)"
        cursor.execute(insert)
        other.execute("alter table described..filled add c int null")
        with pytest.raises(pymssql.OperationalError):
            cursor.execute(insert)
        other.execute(
            "drop table described..filled create table described..filled (id int identity, b int, a int)"
        )
        cursor.execute(insert)
        assert rows_of(cursor, "select a, b from described..filled") == [(2, 1)]


def test_select_into_keeps_types_and_names(client: RawClient) -> None:
    """SELECT - INTO: the columns have the names and types of the expressions."""
    client.send(
        BATCH7,
        batch7("create table #from (ColA varchar(5), b binary(3), c money, d decimal(5,1), e nvarchar(4))"),
    )
    client.receive()
    made = "cast(1 as tinyint) as Tiny, 'abc' as Words, cast('10:00' as time(2)) t"
    client.batch(f"select ColA, b as Bytes, c, d, e, {made} into #to from #from")
    types = [
        "varchar(5)",
        "binary(3)",
        "money[8]",
        "decimal(5,1)",
        "nvarchar(4)",
        "int[1]",
        "varchar(3) not null",
        "time(2)",
    ]
    assert described(client, "select * from #to") == types
    answer = client.batch("select * from #to")
    for name in ("ColA", "Bytes", "Tiny", "Words"):
        assert name.encode("utf-16-le") in answer


def test_the_first_result_set_of_a_text(clients: Clients) -> None:
    """sp_describe_first_result_set: names, types and lengths as in sys.types and COLMETADATA."""
    text = "declare @n int set @n = 1 select cast(1 as tinyint) as a, N''xy'' as b, @p as c, 1.5"
    with clients.pymssql(clients.server.reader) as connection, connection.cursor(as_dict=True) as cursor:
        cursor.execute(f"exec sp_describe_first_result_set N'{text}', N'@p datetime2(3)'")
        rows = cursor.fetchall()
        assert cursor.description is not None
        assert len(cursor.description) == 39
        assert rows_of(cursor, "exec sp_describe_first_result_set N'create table #none (a int)'") == []
    names = ("name", "system_type_name", "max_length", "precision", "scale", "is_nullable", "tds_type_id")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("a", "tinyint", 1, 3, 0, True, 0x26),
        ("b", "nvarchar(2)", 4, 0, 0, False, 0xE7),
        ("c", "datetime2(3)", 7, 23, 3, True, 0x2A),
        (None, "numeric(2,1)", 5, 2, 1, False, 0x6C),
    ]


def test_undeclared_parameters(clients: Clients) -> None:
    """sp_describe_undeclared_parameters, "Parameter selection algorithm": a parameter has the type of the
    expression that it is compared with or assigned to, in order of preference the longest of its kind."""
    with clients.pymssql(clients.server.reader) as connection, connection.cursor(as_dict=True) as cursor:
        cursor.execute(
            "create table #u (n int identity, i int not null, c char(30), d numeric(17, 5), b varbinary(100),"
            " w as i + 1)"
        )

        def types(text: str, declared: str = "") -> list[tuple[object, ...]]:
            cursor.execute(f"exec sp_describe_undeclared_parameters N'{text}'{declared}")
            rows = cursor.fetchall()
            assert cursor.description is not None
            assert len(cursor.description) == 24
            assert [row["parameter_ordinal"] for row in rows] == list(range(1, len(rows) + 1))
            return [(row["name"], row["suggested_system_type_name"]) for row in rows]

        assert types("insert #u (i, c, d) values (@P1, @P2, @P3)") == [
            ("@P1", "int"), ("@P2", "char(30)"), ("@P3", "numeric(17,5)"),
        ]  # fmt: skip
        # identity and computed columns take no value
        assert types("insert #u values (@P1, ''x'', @P2, @P3)") == [
            ("@P1", "int"), ("@P2", "numeric(17,5)"), ("@P3", "varbinary(100)"),
        ]  # fmt: skip
        # the documentation's own examples
        assert types("select * from #u where c = @p") == [("@p", "char(30)")]
        assert types("select * from #u where c > @p") == [("@p", "varchar(8000)")]
        assert types("select object_id, name from sys.indexes where object_id = @id or name = @name") == [
            ("@id", "int"), ("@name", "nvarchar(128)"),
        ]  # fmt: skip
        assert types("update #u set d = @a where i = @b and c like @C", ", N'@a int'") == [
            ("@b", "int"), ("@C", "varchar(8000)"),
        ]  # fmt: skip
        for text, number in (
            ("select * from #u where @p1 = @p2", 11502),
            ("select * from #u where i = @p1 + @p2", 11502),
            ("select * from #u where i = @p or n = @p", 11508),
            ("insert #u values (@p)", 213),
            ("insert #u select 1, 2, 3, @p, 5, 6", 213),
            ("insert #u (i, c) values (@p)", 109),
        ):
            with pytest.raises(pymssql.Error, match=str(number)):
                types(text)


def test_types_that_a_client_of_sybase_may_declare(clients: Clients) -> None:
    """ASE's Reference Manual, sp_datatype_info: fifteen columns, and types by ASE's names."""
    client = CtClient(clients.program, clients.configuration, "5.0", clients.server.reader)
    try:
        events = client.language("exec sp_datatype_info").events
    finally:
        client.close()
    columns = next(value for kind, value in events if kind == "columns")
    assert isinstance(columns, list)
    assert (len(columns), columns[-1]) == (15, "MAXIMUM_SCALE")
    names = {value[0] for kind, value in events if kind == "row" and isinstance(value, list)}
    assert {"univarchar", "bigdatetime", "unitext", "money"} <= names
    assert not {"nvarchar", "datetime2", "ntext", "sysname"} & names


def test_types_that_a_client_of_sql_server_may_declare(clients: Clients) -> None:
    """SQL Server's rows, from babelfish-for-postgresql (babelfishpg_tsql/src/datatype_info.h)."""
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:

        def types(call: str) -> dict[str, tuple[object, ...]]:
            cursor.execute(f"exec {call}")
            return {row[0]: row[1:] for row in cursor.fetchall()}

        found = types("sp_datatype_info_100 0, 3")
        assert len(found) == 37
        numbers = "1 0 1 tinyint identity 0 0 -6 None 10 None 5"
        assert " ".join(map(str, found["tinyint identity"][8:])) == numbers
        for name, expected in {
            "datetimeoffset": (-155, 34, "'", "'", "scale", 1, 0, 3),
            "sql_variant": (-150, 8000, None, None, None, 1, 0, 2),
            "sysname": (-9, 128, "N'", "'", None, 0, 1, 3),
            "varbinary": (-3, 8000, "0x", None, "max length", 1, 0, 2),
            "timestamp": (-2, 8, "0x", None, None, 0, 0, 2),
            "numeric() identity": (2, 38, None, None, "precision", 0, 0, 2),
            "money": (3, 19, "$", None, None, 1, 0, 2),
            "date": (91, 10, "'", "'", None, 1, 0, 3),
            "datetime2": (93, 27, "'", "'", "scale", 1, 0, 3),
        }.items():
            assert found[name][:8] == expected, name
        assert list(types("sp_datatype_info_100 93, 3")) == ["datetime2", "datetime", "smalldatetime"]
        assert list(types("sp_datatype_info_100 11")) == ["datetime2", "datetime", "smalldatetime"]
        # for older drivers these types are texts
        assert list(types("sp_datatype_info 93, 3")) == ["datetime", "smalldatetime"]
        assert {"date", "time", "datetime2", "datetimeoffset"} < types("sp_datatype_info -9").keys()
        assert (types("sp_datatype_info")["xml"][0], types("sp_datatype_info_90")["xml"][0]) == (-10, -152)


def test_indexes_and_types_have_their_declared_names(server: RunningServer) -> None:
    """`if exists (select * from sysindexes where name = …) drop index t.i`: the usual query of scripts."""
    login = Login("cataloguer", "cataloguer")
    with (
        author_with_schema(server, login, "catalogued"),
        server.connect(login.user, login.password, database="catalogued") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("create table indexed (a int, b int, x xml) create index by_b on indexed (b)")
        for query in (
            "select name from sys.indexes where object_id = object_id('indexed') and index_id > 0",
            "select name from sysindexes where id = object_id('indexed') and indid > 0",
        ):
            cursor.execute(query)
            assert cursor.fetchall() == [("by_b",)], query
        cursor.execute("exec sp_helpindex indexed")
        assert [row[0] for row in cursor.fetchall()] == ["by_b"]
        cursor.execute("if exists (select * from sysindexes where name = 'by_b') drop index indexed.by_b")
        assert rows_of(cursor, "select count(*) from sysindexes where name = 'by_b'") == [(0,)]
        # sys.types of SQL Server
        cursor.execute(
            "select t.name, t.system_type_id, c.max_length from sys.columns c "
            "join sys.types t on t.user_type_id = c.user_type_id "
            "where c.object_id = object_id('indexed') and c.name = 'x'"
        )
        assert cursor.fetchall() == [("xml", 241, -1)]
        cursor.execute("select data_type from information_schema.columns where column_name = 'x'")
        assert cursor.fetchall() == [("xml",)]


def test_an_insert_from_all_columns_of_another_table_gives_the_present_ones(
    clients: Clients, server: RunningServer
) -> None:
    """By a session that has the statement prepared, after a change that the gateway is not told."""
    login = Login("describer", "describer")
    with author_with_schema(server, login, "described") as admin, clients.pymssql(login).cursor() as cursor:
        cursor.execute("use described create table source (a int) create table target (a int, b int null)")
        cursor.execute("create procedure fills as insert target (a) select * from source")
        insert = "insert described..target (a) select * from described..source"
        cursor.execute("insert source values (1)")
        for text in (insert, "exec fills"):
            cursor.execute(text)
        assert rows_of(cursor, "select a, b from target") == [(1, None)] * 2
        admin.execute("alter table described.source add column z int default 3")
        admin.execute("grant select on described.source to describer")
        for text, numbers in ((insert, (121,)), ("exec fills", (121, 2801))):
            with pytest.raises(pymssql.Error) as refused:
                cursor.execute(text)
            assert refused.value.args[0] in numbers, (text, refused.value.args)
        insert = insert.replace("(a)", "(a, b)")
        cursor.execute(insert)
        assert rows_of(cursor, "select a, b from target where b is not null") == [(1, 3)]
