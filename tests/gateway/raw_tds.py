"""TDS written and read byte by byte: big-endian clients, which are not available here, and hostile ones.

TDS 5.0 with either byte order: login record, DBRPC, LANGUAGE, and the tokens of replies. TDS 7.4: PRELOGIN,
LOGIN7, RPC and batch, whose replies are only searched for errors. Layouts: FreeTDS src/tds/login.c, query.c,
token.c; MS-TDS 2.2.6.
"""

import struct
from collections.abc import Sequence
from typing import Literal, NamedTuple

from servers import Login

Order = Literal["<", ">"]
LITTLE: Order = "<"
BIG: Order = ">"

LAST, IGNORE = 1, 2
HEADER = 8
LOGIN5, RPC7, ATTENTION, NORMAL, LOGIN7, PRELOGIN, BATCH7 = 0x02, 0x03, 0x06, 0x0F, 0x10, 0x12, 0x01
BULK = 0x07

Value = int | float | str | bytes | None
"""Integers of dates, times and money are those on the wire; a datetime is days << 32 | ticks."""


class Type(NamedTuple):
    """A TDS 5.0 type as declared by a call."""

    token: int
    size: int
    precision: int = 0
    scale: int = 0


INT1, INT2, INT4, INT8 = (Type(0x26, size) for size in (1, 2, 4, 8))
REAL, FLOAT = Type(0x6D, 4), Type(0x6D, 8)
BIT = Type(0x32, 1)
MONEY, SMALLMONEY = Type(0x6E, 8), Type(0x6E, 4)
DATETIME, SMALLDATETIME = Type(0x6F, 8), Type(0x6F, 4)
DATE, TIME = Type(0x7B, 4), Type(0x93, 4)
BIGDATETIME, BIGTIME = Type(0xBB, 8), Type(0xBC, 8)
VARCHAR, CHAR = Type(0x27, 255), Type(0x2F, 255)
LONGCHAR, LONGBINARY = Type(0xAF, 1 << 20), Type(0xE1, 1 << 20)
VARBINARY = Type(0x25, 255)
# contents of a BLOB: 3 is text, 4 is binary (jTDS, TdsData.java)
BLOB, BLOB_TEXT = Type(0x24, 4), Type(0x24, 3)
CHUNK = 8192


def numeric(precision: int, scale: int) -> Type:
    """A numeric; its values are integers, the number times 10 ** scale."""
    magnitude = 10**precision - 1
    return Type(0x6C, 1 + (magnitude.bit_length() + 7) // 8, precision, scale)


class Param(NamedTuple):
    type: Type
    value: Value
    name: str = ""
    out: bool = False


def login5(login: Login, order: Order = LITTLE, *, charset: str = "utf8", packet_size: int = 512) -> bytes:
    """The login record of TDS 5.0 with capabilities that allow every type."""

    def text(value: str, width: int) -> bytes:
        raw = value.encode()
        assert len(raw) <= width
        return raw.ljust(width, b"\0") + bytes([len(raw)])

    orders = bytes([3, 1, 6, 10, 9]) if order == LITTLE else bytes([2, 0, 6, 4, 8])
    record = text("host", 30) + text(login.user, 30) + text(login.password, 30) + text("1234", 30)
    record += orders + bytes([1]) + bytes([1, 2, 0, 0, 0, 0, 0, 0, 0, 0])[:10]
    record += text("raw_tds", 30) + text("server", 30)
    password = login.password.encode()
    record += (bytes([0, len(password)]) + password).ljust(255, b"\0") + bytes([len(password) + 2])
    record += bytes([5, 0, 0, 0]) + text("raw_tds", 10) + bytes([1, 0, 0, 0])
    record += bytes([13, 17]) if order == LITTLE else bytes([12, 16])
    record += bytes([0]) + text("us_english", 30) + bytes([0]) + bytes(2) + bytes([0]) + bytes(10)
    record += text(charset, 30) + bytes([1]) + text(str(packet_size), 6) + bytes(4)
    everything = bytes([1, 14]) + b"\xff" * 14 + bytes([2, 14]) + bytes(14)
    return record + b"\xe2" + struct.pack(order + "H", len(everything)) + everything


def dbrpc(name: str, params: Sequence[Param] = (), order: Order = LITTLE) -> bytes:
    """A call: DBRPC, and PARAMFMT and PARAMS if it has parameters."""
    raw = name.encode()
    options = 2 if params else 0
    call = (
        b"\xe6" + struct.pack(order + "HB", len(raw) + 3, len(raw)) + raw + struct.pack(order + "H", options)
    )
    return call + _params(params, order) if params else call


def _params(params: Sequence[Param], order: Order) -> bytes:
    """PARAMFMT and PARAMS."""
    formats = struct.pack(order + "H", len(params))
    for param in params:
        label = param.name.encode()
        formats += bytes([len(label)]) + label + bytes([int(param.out)]) + struct.pack(order + "I", 0)
        formats += _type(param.type, order) + bytes([0])
    values = b"".join(_value(param.type, param.value, order) for param in params)
    return b"\xec" + struct.pack(order + "H", len(formats)) + formats + b"\xd7" + values


def language(text: str, order: Order = LITTLE) -> bytes:
    raw = b"\0" + text.encode()
    return b"\x21" + struct.pack(order + "I", len(raw)) + raw


CHAINED, DATEFORMAT = 25, 7


def declare_cursor(name: str, text: str, order: Order = LITTLE, *, dynamic: bool = False) -> bytes:
    """CURDECLARE: a read-only cursor on a text or on a dynamic statement."""
    raw = bytes([len(name)]) + name.encode() + bytes([9 if dynamic else 1, 0])
    raw += struct.pack(order + "H", len(text)) + text.encode() + b"\0"
    return b"\x86" + struct.pack(order + "H", len(raw)) + raw


def declare_scrollable(name: str, text: str, order: Order = LITTLE) -> bytes:
    """CURDECLARE3."""
    raw = bytes([len(name)]) + name.encode() + struct.pack(order + "IBI", 0x101, 0, len(text))
    raw += text.encode() + bytes(2)
    return b"\x10" + struct.pack(order + "I", len(raw)) + raw


def cursor_rows(cursor: str | int, rows: int, order: Order = LITTLE) -> bytes:
    """CURINFO: the number of rows of each fetch."""
    return _of_cursor(0x83, cursor, struct.pack(order + "BHi", 1, 0x20, rows), order)


def open_cursor(cursor: str | int, order: Order = LITTLE, params: Sequence[Param] = ()) -> bytes:
    opened = _of_cursor(0x84, cursor, bytes([bool(params)]), order)
    return opened + _params(params, order) if params else opened


def prepare(name: str, text: str, order: Order = LITTLE) -> bytes:
    """DYNAMIC: a statement with `?` for its parameters."""
    raw = bytes([1, 0, len(name)]) + name.encode() + struct.pack(order + "H", len(text)) + text.encode()
    return b"\xe7" + struct.pack(order + "H", len(raw)) + raw


def execute(name: str, params: Sequence[Param], order: Order = LITTLE) -> bytes:
    """DYNAMIC: executes a prepared statement."""
    raw = bytes([2, 1, len(name)]) + name.encode() + bytes(2)
    return b"\xe7" + struct.pack(order + "H", len(raw)) + raw + _params(params, order)


def fetch_cursor(cursor: str | int, direction: int, row: int | None = None, order: Order = LITTLE) -> bytes:
    tail = b"" if row is None else struct.pack(order + "i", row)
    return _of_cursor(0x82, cursor, bytes([direction]) + tail, order)


def close_cursor(cursor: str | int, order: Order = LITTLE, *, deallocate: bool = False) -> bytes:
    return _of_cursor(0x80, cursor, bytes([deallocate]), order)


def delete_by_cursor(cursor: str | int, table: str, order: Order = LITTLE) -> bytes:
    return _of_cursor(0x81, cursor, bytes([0, len(table)]) + table.encode(), order)


def _of_cursor(token: int, cursor: str | int, tail: bytes, order: Order) -> bytes:
    if isinstance(cursor, int):
        raw = struct.pack(order + "i", cursor) + tail
    else:
        raw = struct.pack(order + "iB", 0, len(cursor)) + cursor.encode() + tail
    return bytes([token]) + struct.pack(order + "H", len(raw)) + raw


def option(command: int, number: int, value: bytes, order: Order = LITTLE) -> bytes:
    """OPTIONCMD: sets (1) an option or resets it to its default (2)."""
    return b"\xa6" + struct.pack(order + "H", 3 + len(value)) + bytes([command, number, len(value)]) + value


def _type(type: Type, order: Order) -> bytes:
    match type.token:
        case 0x32:
            return bytes([type.token])
        case 0x6C:
            return bytes([type.token, type.size, type.precision, type.scale])
        case 0xBB | 0xBC:
            return bytes([type.token, type.size, 6])
        case 0xAF | 0xE1:
            return bytes([type.token]) + struct.pack(order + "I", type.size)
        case 0x24:
            return bytes([type.token, type.size, 0, 0])
        case _:
            return bytes([type.token, type.size])


def _value(type: Type, value: Value, order: Order) -> bytes:
    wide = type.token in (0xAF, 0xE1)
    if type.token == 0x24:
        raw = b"" if value is None else _raw(type, value, order)
        chunks = (raw[at : at + CHUNK] for at in range(0, len(raw), CHUNK))
        framed = (struct.pack(order + "I", len(chunk) | 1 << 31) + chunk for chunk in chunks)
        return bytes(3) + b"".join(framed) + bytes(4)
    if value is None:
        assert type.token != 0x32, "a BIT of TDS 5.0 is never NULL"
        return bytes(4) if wide else bytes(1)
    raw = _raw(type, value, order)
    if type.token == 0x32:
        return raw
    return (struct.pack(order + "I", len(raw)) if wide else bytes([len(raw)])) + raw


def _raw(type: Type, value: Value, order: Order) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return struct.pack(order + ("f" if type.size == 4 else "d"), value)
    assert value is not None
    match type:
        case Type(0x32):
            return bytes([value])
        case Type(0x26, 1):
            return bytes([value])
        case Type(0x6C):
            return bytes([value < 0]) + abs(value).to_bytes(type.size - 1, "big")
        case Type(0x6E | 0x6F, 8):
            return struct.pack(order + "iI", value >> 32, value & 0xFFFFFFFF)
        case Type(0x6F, 4):
            return struct.pack(order + "HH", value >> 16, value & 0xFFFF)
        case Type(0xBB | 0xBC):
            return struct.pack(order + "Q", value)
    return struct.pack(order + {2: "h", 4: "i", 8: "q"}[type.size], value)


# --- 7.4 ---


def prelogin() -> bytes:
    options = [(0, bytes([16, 0, 0, 0, 0, 0])), (1, b"\x02"), (2, b"\0"), (3, bytes(4)), (4, b"\0")]
    offset = len(options) * 5 + 1
    head, tail = b"", b""
    for token, data in options:
        head += struct.pack(">BHH", token, offset + len(tail), len(data))
        tail += data
    return head + b"\xff" + tail


def login7(login: Login, *, packet_size: int = 4096, version: int = 0x74000004, database: str = "") -> bytes:
    """A LOGIN7 record."""
    texts = ["host", login.user, login.password, "raw_tds", "server", "", "raw_tds", "", database]
    fixed = struct.pack("<III", version, packet_size, 7) + struct.pack("<II", 1234, 0)
    fixed += bytes([0xE0, 0x03, 0, 0]) + bytes(8)
    tail = b""
    for index, text in enumerate(texts):
        raw = text.encode("utf-16-le")
        if index == 2:
            raw = bytes(((byte << 4 | byte >> 4) & 0xFF) ^ 0xA5 for byte in raw)
        fixed += struct.pack("<HH", 94 + len(tail), len(raw) // 2)
        tail += raw
    fixed = fixed.ljust(90, b"\0")
    return struct.pack("<I", 94 + len(tail)) + fixed + tail


HEADERS = struct.pack("<IIHQI", 22, 18, 2, 0, 1)
"""ALL_HEADERS with a transaction descriptor, as every 7.2 request has"""


def rpc7(name: str, params: Sequence[tuple[str, bytes]] = ()) -> bytes:
    """A call at 7.4; each parameter is a name and its TYPE_INFO followed by the value."""
    body = HEADERS + struct.pack("<H", len(name)) + name.encode("utf-16-le") + struct.pack("<H", 0)
    for label, raw in params:
        body += bytes([len(label)]) + label.encode("utf-16-le") + b"\0" + raw
    return body


def batch7(text: str) -> bytes:
    return HEADERS + text.encode("utf-16-le")


# --- replies ---
