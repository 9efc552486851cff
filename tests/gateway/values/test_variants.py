"""sql_variant on the wire: base type, properties and value (MS-TDS 2.2.5.5.4)."""

import struct
from collections.abc import Iterator

import pytest

from raw_client import RawClient, logged_in7
from raw_tds import batch7, rpc7
from servers import RunningServer
from tds_clients import Clients

BATCH, RPC = 1, 3
INFO = b"\x62" + struct.pack("<I", 8009)
"""the type and the longest value: 8000 bytes, and 9 for the type of an NVARCHAR"""
COLLATION = bytes.fromhex("0904d00034")


@pytest.fixture
def client(server: RunningServer) -> Iterator[RawClient]:
    with logged_in7(server, server.reader) as client:
        yield client


def answer(client: RawClient, kind: int, request: bytes) -> bytes:
    client.send(kind, request)
    return client.receive()


def sent(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


VALUES = [
    ("cast(1 as bit)", b"\x32\x00\x01"),
    ("cast(10 as tinyint)", b"\x30\x00\x0a"),
    ("cast(-10 as smallint)", b"\x34\x00\xf6\xff"),
    ("11", b"\x38\x00\x0b\x00\x00\x00"),
    ("cast(-20 as bigint)", b"\x7f\x00" + struct.pack("<q", -20)),
    ("cast(0.125 as real)", b"\x3b\x00" + struct.pack("<f", 0.125)),
    ("cast(0.125 as float)", b"\x3e\x00" + struct.pack("<d", 0.125)),
    ("cast(1.2345 as smallmoney)", b"\x7a\x00" + struct.pack("<i", 12345)),
    ("cast(1.2345 as money)", b"\x3c\x00" + struct.pack("<ii", 0, 12345)),
    ("cast(-0.5 as decimal(18,1))", b"\x6a\x02\x12\x01\x00" + struct.pack("<q", 5)),
    ("11.16", b"\x6c\x02\x04\x02\x01" + struct.pack("<i", 1116)),
    ("cast('2000-01-01' as datetime)", b"\x3d\x00" + struct.pack("<ii", 36524, 0)),
    ("cast('2000-01-01T12:13:00' as smalldatetime)", b"\x3a\x00" + struct.pack("<HH", 36524, 733)),
    ("cast('2000-01-01' as date)", b"\x28\x00" + (730119).to_bytes(3, "little")),
    ("cast('00:00:45.123' as time(3))", b"\x29\x01\x03" + (45123).to_bytes(4, "little")),
    ("cast(0x1234 as varbinary(16))", b"\xa5\x02\x10\x00\x12\x34"),
    ("cast(0x1234 as binary(2))", b"\xad\x02\x02\x00\x12\x34"),
    ("N'ab'", b"\xe7\x07" + COLLATION + b"\x04\x00a\x00b\x00"),
    ("'abc'", b"\xa7\x07" + COLLATION + b"\x03\x00abc"),
    ("cast('ab' as char(3))", b"\xaf\x07" + COLLATION + b"\x03\x00ab "),
    (
        "cast('01234567-89AB-CDEF-0123-456789ABCDEF' as uniqueidentifier)",
        b"\x24\x00" + bytes.fromhex("67452301ab89efcd0123456789abcdef"),
    ),
]


def test_results(client: RawClient) -> None:
    for text, value in VALUES:
        reply = answer(client, BATCH, batch7(f"select cast({text} as sql_variant) as v"))
        assert INFO in reply, text
        assert b"\xd1" + sent(value) in reply, (text, reply.hex(" "))
    reply = answer(client, BATCH, batch7("select cast(null as sql_variant) as v"))
    assert INFO in reply
    assert b"\xd1" + sent(b"") in reply


def text(words: str) -> bytes:
    raw = words.encode("utf-16-le")
    return b"\xe7" + struct.pack("<H", 8000) + COLLATION + struct.pack("<H", len(raw)) + raw


def executed(statement: str, value: bytes) -> bytes:
    """sp_executesql with a sql_variant input @a and a sql_variant output @b."""
    request = rpc7(
        "sp_executesql",
        [
            ("", text(statement)),
            ("", text("@a sql_variant, @b sql_variant output")),
            ("@a", INFO + sent(value)),
        ],
    )
    return request + b"\x02" + "@b".encode("utf-16-le") + b"\x01" + INFO + sent(b"")


def test_parameters_there_and_back(client: RawClient) -> None:
    for _, value in VALUES:
        reply = answer(client, RPC, executed("set @b = @a", value))
        assert INFO + sent(value) in reply, (value, reply.hex(" "))
    reply = answer(client, RPC, executed("set @b = @a", b""))
    assert INFO + sent(b"") in reply


def test_a_malformed_value_is_refused_by_name(client: RawClient) -> None:
    """An int of three bytes."""
    reply = answer(client, RPC, executed("set @b = @a", b"\x38\x00\x01\x02\x03"))
    assert "'@a': cannot convert a malformed value to SQL_VARIANT".encode("utf-16-le") in reply
    assert sent(b"\x38\x00\x0b\x00\x00\x00") in answer(
        client, BATCH, batch7("select cast(11 as sql_variant)")
    )


def test_tds5_has_no_type_for_it(clients: Clients) -> None:
    with clients.ct(clients.server.reader, "5.0") as client:
        refused = client.language("select cast(11 as sql_variant)")
        assert any("sql_variant has no type" in message.text for message in refused.messages)
        assert client.language("select cast(cast(11 as sql_variant) as int)").rows == [["11"]]
