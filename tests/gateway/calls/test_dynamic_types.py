"""The described types of parameters of dynamic statements (TDS 5.0, PARAMFMT)."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

import raw_tds
from raw_tds import BIG, LITTLE, Order, Param, RawClient
from servers import RunningServer
from tds_clients import Clients

INT, FLOAT, DATETIME, MONEY, TEXT, BYTES = 0x26, 0x6D, 0x6F, 0x6E, 0x27, 0x25
NUMERIC = raw_tds.numeric(12, 3)


@pytest.fixture(params=[LITTLE, BIG], ids=["little", "big"])
def client(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    order: Order = request.param
    with RawClient(server.host, server.port, order=order) as client:
        assert client.log_in5(server.reader).login == 5
        types = "i int,b bigint,f float,d datetime,m money,n numeric(12.3),c char(3),y varbinary(9)"
        columns = ", ".join(f"{column} null" for column in types.split(",")).replace("12.3", "12, 3")
        assert client.language(f"create table #given (id numeric(5,0) identity, {columns})").errors == []
        yield client


def described(client: RawClient, text: str) -> list[tuple[int, int]]:
    reply = client.ask(raw_tds.prepare("d", f"create proc d as {text}", client.order))
    assert reply.errors == []
    return [(type.token, type.size) for _, type in reply.parameters]


ALL = [(INT, 4), (INT, 8), (FLOAT, 8), (DATETIME, 8), (MONEY, 8), (0x6C, 6), (TEXT, 255), (BYTES, 9)]


def test_a_placeholder_has_the_type_of_its_column(client: RawClient) -> None:
    """As in ASE: go-ase sends values in the described type, an int64 described as a varchar as raw bytes."""
    assert described(client, "insert #given values (?, ?, ?, ?, ?, ?, ?, ?)") == ALL
    # by the named columns, whatever else the text has
    assert described(client, "insert into #given (f, m, i) values (?, 1, ?)") == [(FLOAT, 8), (INT, 4)]
    update = "update #given set d = ?, i = i + 1, n = ? where b = ?"
    assert described(client, update) == [(DATETIME, 8), (0x6C, 6), (INT, 8)]
    assert described(client, "insert #given (c) select ?") == [(TEXT, 255)]


def test_values_of_the_described_types(client: RawClient) -> None:
    assert described(client, "insert #given (i, b, f, n) values (?, ?, ?, ?)")[1] == (INT, 8)
    params = [
        Param(raw_tds.INT4, -7),
        Param(raw_tds.INT8, 1 << 40),
        Param(raw_tds.FLOAT, 0.1),
        Param(NUMERIC, -1_234_567),
    ]
    assert client.ask(raw_tds.execute("d", params, client.order)).errors == []
    row = client.language("select i, b, f, convert(varchar(20), n) from #given").rows
    assert row == [[-7, 1 << 40, 0.1, str(Decimal("-1234.567"))]]


def test_ct_library_converts_texts_itself_and_gets_no_types(clients: Clients) -> None:
    """DBD::Sybase makes numbers of its texts by atoi and atof (dbdimp.c, _dbd_rebind_ph): abc would be 0."""
    with clients.ct(clients.server.reader) as client:
        assert client.language("create table #given (i int, f float, n numeric(12,3))").errors == []
        assert client.prepare("one", "insert #given values (?, ?, ?)").errors == []
        char_type = 0
        assert client.describe("in", "one").description == [("", char_type)] * 3


@pytest.mark.parametrize("size", [4, 8])
def test_an_int_that_is_shorter_than_its_type_may_be_unsigned(client: RawClient, size: int) -> None:
    """go-ase writes the four bytes of a uint32 into an INTN of eight (SAP/go-dblib asetypes/bytes.go)."""
    assert described(client, "insert #given (b) values (?)") == [(INT, 8)]
    request = bytearray(raw_tds.execute("d", [Param(raw_tds.INT4, -1)], client.order))
    at = request.rindex(bytes([INT, 4, 0]))
    request[at + 1] = size
    errors = [error.number for error in client.ask(bytes(request)).errors]
    stored = client.language("select b from #given").rows
    assert (errors, stored) == (([], [[-1]]) if size == 4 else ([8114], []))


def test_temporary_tables_end_with_the_statement(clients: Clients) -> None:
    """Client-Library/C Programmer's Guide: "destroyed when the prepared statement is deallocated"."""
    with clients.ct(clients.server.reader) as client:
        assert client.language("create table #before (a int)").errors == []
        assert client.prepare("making", "create table #made (a int)").errors == []
        assert client.execute("making").errors == []
        assert client.language("select count(*) from #made").rows == [["0"]]
        client.close_dynamic("making")
        assert [error.number for error in client.language("select count(*) from #made").errors] == [208]
        assert client.language("select count(*) from #before").rows == [["0"]]
