"""COLMETADATA of expressions over columns at TDS 7.4.

From SQL Server's documentation: "Precision, scale, and length" (arithmetic of decimals, concatenation, CASE
and UNION), "Data type precedence", "Arithmetic operators", the return types of SUM, AVG, MIN, MAX, ISNULL,
COALESCE, NULLIF, LEFT, UPPER, DATEADD, ABS, ROUND and POWER. Expressions are nullable but for ISNULL with a
constant ("Specify computed columns in a table")."""

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest
from case_tables import cases

import raw_tds
from described_columns import described
from raw_client import RawClient, logged_in7
from servers import RunningServer
from tds_clients import Clients, rows_of

COLUMNS = cases(__file__, "columns")
ROW = (
    "1, 2, 3, 4, 5, 1.25, 2.125, 3.5, 4.5, 5.5, 1.5, 2.5, 'ab', 'cd', N'ef', N'gh', "
    "'2026-01-02 03:04:05.123', '2026-01-02 03:04', '2026-01-02', '2026-01-02 03:04:05.123', 1, 0x0102"
)


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[RawClient]:
    with logged_in7(server, server.reader) as client:
        client.packet_size = 4096
        columns = ", ".join(f"{name} {of}" for name, of in COLUMNS.items())
        client.batch(f"create table #t ({columns}) insert #t values ({ROW})")
        yield client


@pytest.mark.parametrize(("expression", "expected"), cases(__file__, "types_of_expressions_over_columns"))
def test_types_of_expressions_over_columns(client: RawClient, expression: str, expected: str) -> None:
    assert described(client, f"declare @d decimal(5,3) select {expression} from #t") == [expected]


def test_types_of_unions_and_stars(client: RawClient) -> None:
    union = "select vc, d, dt, i from #t union all select c, e, sdt, s from #t"
    assert described(client, union) == ["varchar(20)", "decimal(11,3)", "datetime[8]", "int[4]"]
    # numeric is the synonym of decimal
    assert described(client, "select x.*, x.d * 2.5 as y from (select d, m from #t) x") == [
        "decimal(10,2)",
        "money[8]",
        "numeric(13,3)",
    ]


def test_a_literal_outside_the_code_page_makes_a_text_national(client: RawClient) -> None:
    assert described(client, "select vc + '電' from #t") == ["nvarchar(21)"]
    assert described(client, "select vc + 'x' from #t") == ["varchar(21)"]


def test_a_column_of_another_type_is_noticed(client: RawClient, server: RunningServer) -> None:
    """A statement prepared with a column's type does not run with another type."""
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute("create table public.of_types (d numeric(10,2))")
        admin.execute("grant select on public.of_types to public")
        try:
            for _ in range(3):
                assert described(client, "select d * 2 from [public].of_types") == ["numeric(12,2)"]
            admin.execute("alter table public.of_types alter column d type numeric(10,4)")
            admin.execute("insert into public.of_types values (1.2345)")
            for _ in range(3):
                assert described(client, "select d * 2 from [public].of_types") == ["numeric(12,4)"]
        finally:
            admin.execute("drop table public.of_types")


@pytest.mark.parametrize("batch", cases(__file__, "values_follow_a_column_of_another_type"))
def test_values_follow_a_column_of_another_type(clients: Clients, server: RunningServer, batch: str) -> None:
    """In a transaction, in a batch whose queries are sent ahead, with variables, and in TRY."""
    with (
        psycopg.connect(server.dsn, autocommit=True) as admin,
        clients.pymssql(clients.server.writer, autocommit=True) as connection,
    ):
        admin.execute("create table public.of_types (d numeric(10,2))")
        admin.execute("insert into public.of_types values (1.23)")
        admin.execute("grant select on public.of_types to public")
        try:
            cursor = connection.cursor()
            for value in ("1.23", "1.2345", "1.2"):
                digits = len(value) - 2
                admin.execute(f"alter table public.of_types alter column d type numeric(10,{digits})")
                admin.execute(f"update public.of_types set d = {value}")
                for _ in range(4):
                    found = [row[0] for row in rows_of(cursor, batch)]
                    doubled = [each for each in found if isinstance(each, Decimal)]
                    assert doubled == [Decimal(value) * 2] * batch.count("isnull")
        finally:
            admin.execute("drop table public.of_types")


# --- `select … for browse`: the client gets the tables of the columns, and the keys of the rows ---

TABLE = (
    "create table #t (Id int not null, b varchar(10), n int not null, primary key (Id, n)) "
    "insert #t values (1, 'x', 5)"
)
SELECT = "select b as B2, n, n * 2 as twice from #t for browse"
# the columns: b under another name, a part of the key, an expression, and the hidden other part of the key
ORIGINS = [(1, 1, 0x20, "b"), (2, 1, 0x08, ""), (3, 0, 0x04, ""), (4, 1, 0x18, "")]


@pytest.fixture
def raw(server: RunningServer) -> Iterator[RawClient]:
    with RawClient(server.host, server.port) as client:
        yield client


def test_tokens_of_sql_server(server: RunningServer, raw: RawClient) -> None:
    raw.log_in7(server.reader)
    raw.batch(TABLE)
    reply = raw.batch(SELECT)
    wide = {name: len(name).to_bytes(1) + name.encode("utf-16-le") for name in ("b", "#t")}
    tables = b"\x01" + len("#t").to_bytes(2, "little") + wide["#t"][1:]
    columns = b"".join(bytes([n, t, status]) + wide.get(name, b"") for n, t, status, name in ORIGINS)
    expected = b"".join(
        token + len(body).to_bytes(2, "little") + body
        for token, body in ((b"\xa4", tables), (b"\xa5", columns))
    )
    assert expected in reply
    # the key follows the list
    assert reply[reply.index(expected) + len(expected) :].startswith(
        b"\xd1\x01\x00x\x04\x05\x00\x00\x00\x04\x0a\x00\x00\x00\x04\x01\x00\x00\x00"
    )


def test_tokens_of_ase(server: RunningServer, raw: RawClient) -> None:
    raw.log_in5(server.reader)
    raw.language(TABLE)
    raw.send(raw_tds.NORMAL, raw_tds.language(SELECT))
    reply = raw.receive()
    columns = b"".join(
        bytes([n, t, status]) + (bytes([len(name)]) + name.encode() if name else b"")
        for n, t, status, name in ORIGINS
    )
    expected = b"\xa4\x03\x00\x02#t\xa5" + len(columns).to_bytes(2, "little") + columns
    assert expected in reply
    # ROWFMT2: catalogue, schema and table, which are empty, then the column's own name and its status
    for name, status in (("B2", 0), ("n", 2), ("twice", 0), ("Id", 3)):
        own = b"\x00\x00\x00" + len(name).to_bytes(1) + name.encode()
        assert reply[reply.index(own) + len(own)] & 3 == status, name


@pytest.mark.parametrize("section", ["5.0", "7.4"])
def test_rows_and_tables_without_a_key(clients: Clients, section: str) -> None:
    with clients.ct(clients.server.reader, section) as client:
        client.language(TABLE)
        assert client.language("select b, n, Id from #t where Id = 1 for browse").rows == [["x", "5", "1"]]
        client.language("create table #u (a int) insert #u values (7)")
        assert client.language("select a from #u for browse").rows == [["7"]]
        assert client.language("select count(*) from #u for browse").rows == [["1"]]
        for text in (
            "select a from #u union select a from #u for browse",
            "select a into #v from #u for browse",
            "declare @a int select @a = a from #u for browse",
            "select a from (select a from #u for browse) as d",
        ):
            assert [error.number for error in client.language(text).errors] == [102], text
