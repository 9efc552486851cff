"""Calls of functions of T-SQL by RPC: the value is a RETURNVALUE of status 2 and no row (MS-TDS 2.2.7.19)."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from authors import author_with_schema
from raw_client import RawClient, logged_in7
from raw_tds import RPC7, rpc7
from servers import Login, RunningServer
from tds_clients import Clients, Param

AUTHOR = Login("valued", "valued")
COLLATION = bytes.fromhex("0904d00034")
DONE = struct.pack("<BHHQ", 0xFE, 0, 0xE0, 0)


@pytest.fixture(scope="module")
def author(server: RunningServer) -> Iterator[Login]:
    """Who may make functions, in the database `valued`."""
    with author_with_schema(server, AUTHOR, "valued"):
        yield AUTHOR


@contextmanager
def connected(server: RunningServer) -> Iterator[RawClient]:
    with logged_in7(server, AUTHOR) as client:
        client.batch("use valued")
        yield client


def number(value: int | None) -> bytes:
    """An int as a parameter, by position."""
    return b"\0\0\x26\x04" + (b"\0" if value is None else struct.pack("<Bi", 4, value))


def returned(type_and_value: bytes) -> bytes:
    """RETURNVALUE: no ordinal, no name, status 2, no user type, nullable."""
    return b"\xac\0\0\0\x02\0\0\0\0\x01\0" + type_and_value


def text(token: int, length: int, value: bytes | None) -> bytes:
    size = 0xFFFF if value is None else len(value)
    return struct.pack("<BH", token, length) + COLLATION + struct.pack("<H", size) + (value or b"")


@pytest.mark.parametrize(
    ("of", "expression", "expected"),
    [
        ("varchar(10)", "'abcdefghijkl'", text(0xA7, 10, b"abcdefghij")),
        ("varchar(10)", "null", text(0xA7, 10, None)),
        ("char(4)", "'ab'", text(0xAF, 4, b"ab  ")),
        ("nvarchar(3)", "N'\u03b1'", text(0xE7, 6, b"\xb1\x03")),
        ("decimal(10, 2)", "1.5", b"\x6a\x09\x0a\x02\x09\x01" + struct.pack("<q", 150)),
        ("tinyint", "7", b"\x26\x01\x01\x07"),
        ("bigint", "null", b"\x26\x08\x00"),
        ("bit", "1", b"\x68\x01\x01\x01"),
        ("money", "2.5", b"\x6e\x08\x08" + struct.pack("<ii", 0, 25000)),
        ("float", "0.5", b"\x6d\x08\x08" + struct.pack("<d", 0.5)),
        ("datetime", "'1900-01-02'", b"\x6f\x08\x08" + struct.pack("<iI", 1, 0)),
        ("date", "'0001-01-02'", b"\x28\x03\x01\0\0"),
        ("binary(3)", "0x01", b"\xad\x03\0\x03\0\x01\0\0"),
        ("sql_variant", "11", b"\x62" + struct.pack("<II", 8009, 6) + b"\x38\0" + struct.pack("<i", 11)),
    ],
)
def test_the_value_has_the_declared_type(
    server: RunningServer, author: Login, of: str, expression: str, expected: bytes
) -> None:
    with connected(server) as client:
        made = f"create function gives(@a int) returns {of} as begin return {expression} end"
        try:
            for request in (made, "select 1"):
                answer = client.batch(request)
            assert struct.pack("<BBi", 0xD1, 4, 1) in answer
            for _ in range(2):
                client.send(RPC7, rpc7("gives") + number(1))
                answer = client.receive()
                # a small number is also the status
                status, answer = (answer[:5], answer[5:]) if answer[0] == 0x79 else (b"", answer)
                assert answer == returned(expected) + DONE, answer.hex(" ")
                assert bool(status) == (of == "tinyint")
        finally:
            client.batch("drop function gives")


def test_a_function_that_makes_a_table_variable(server: RunningServer, author: Login) -> None:
    """PostgreSQL treats it as a function that writes. The number is also the status."""
    with connected(server) as client:
        made = "create function counts(@a int) returns int as begin declare @t table (a int) " + (
            "insert @t values (1), (@a) declare @n int select @n = sum(a) from @t return @n end"
        )
        client.batch(made)
        for value in (1, 5, None):
            client.send(RPC7, rpc7("dbo.counts") + number(value))
            total = (value or 0) + 1
            status = b"\x79" + struct.pack("<i", total)
            assert client.receive() == status + returned(b"\x26\x04\x04" + struct.pack("<i", total)) + DONE


def test_in_a_text_it_returns_no_rows(server: RunningServer, clients: Clients, author: Login) -> None:
    with connected(server) as client:
        client.batch("create function says(@a int) returns varchar(5) as begin return 'x' end")
        answer = client.batch("exec says 1 declare @v varchar(5) exec @v = says 1 select @v + 'y'")
        assert (answer.count(b"\x81\x01\0"), b"\xd1\x02\0xy" in answer) == (1, True), answer.hex(" ")
    # ASE documents no calls of functions: the answer is a row
    with clients.ct(author) as ase:
        assert ase.call("valued..says", [Param("int", "1")]).rows == [["x"]]
