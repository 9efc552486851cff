"""TDS written and read byte by byte: big-endian clients, which are not available here, and hostile ones.

TDS 5.0 with either byte order: login record, DBRPC, LANGUAGE, and the tokens of replies. TDS 7.4: PRELOGIN,
LOGIN7, RPC and batch, whose replies are only searched for errors. Layouts: FreeTDS src/tds/login.c, query.c,
token.c; MS-TDS 2.2.6.
"""

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

from servers import Login
from waiting import PATIENCE

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


class Error(NamedTuple):
    number: int
    severity: int
    text: str


@dataclass
class Reply:
    """The answer of a 5.0 server."""

    rows: list[list[Value]] = field(default_factory=list)
    columns: list[tuple[str, Type]] = field(default_factory=list)
    parameters: list[tuple[str, Type]] = field(default_factory=list)
    """of a dynamic statement"""
    outputs: dict[str, Value] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    messages: list[Error] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)
    """status and row count of each DONE token"""
    login: int | None = None
    """status of LOGINACK: 5 succeeded, 6 failed"""
    cursors: list[tuple[int, int]] = field(default_factory=list)
    """number and status of each CURINFO token"""
    pointers: list[tuple[bytes, bytes]] = field(default_factory=list)
    """to texts and images: pointer and timestamp of each that is not NULL"""
    tables: list[str] = field(default_factory=list)
    """of columns of texts and images"""

    @property
    def errors(self) -> list[Error]:
        return [message for message in self.messages if message.severity > 10]


# --- requests ---


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
    for place, text in enumerate(texts):
        raw = text.encode("utf-16-le")
        if place == 2:
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


class _Tokens:
    """A reply, read token by token."""

    def __init__(self, raw: bytes, order: Order) -> None:
        self.raw, self.order, self.at = raw, order, 0
        self.pointers: list[tuple[bytes, bytes]] = []
        self.tables: list[str] = []

    def take(self, count: int) -> bytes:
        raw = self.raw[self.at : self.at + count]
        assert len(raw) == count, f"the reply ends inside a token, at {self.at} of {len(self.raw)}"
        self.at += count
        return raw

    def number(self, code: str) -> int:
        (value,) = struct.unpack(self.order + code, self.take(struct.calcsize(code)))
        assert isinstance(value, int)
        return value

    def text(self, code: str = "B") -> str:
        return self.take(self.number(code)).decode()


def read_reply(raw: bytes, order: Order = LITTLE, columns: Sequence[tuple[str, Type]] = ()) -> Reply:
    """Reads the tokens of a whole TDS 5.0 reply. `columns`: of rows that the reply does not describe."""
    tokens, reply = _Tokens(raw, order), Reply()
    formats = list(columns)
    while tokens.at < len(raw):
        match tokens.number("B"):
            case 0xE5:
                _read_message(tokens, reply)
            case 0xAD:
                body = _Tokens(tokens.take(tokens.number("H")), order)
                reply.login = body.number("B")
            case 0xE3 | 0xE2 | 0xE7:
                tokens.take(tokens.number("H"))
            case 0xEE | 0xEC as token:
                body = _Tokens(tokens.take(tokens.number("H")), order)
                formats = _read_formats(body, wide=False)
                if token == 0xEE:
                    reply.columns = formats
                else:
                    reply.parameters = formats
            case 0x61:
                body = _Tokens(tokens.take(tokens.number("I")), order)
                reply.columns = formats = _read_formats(body, wide=True)
                reply.tables = body.tables
            case 0xD1:
                reply.rows.append([_read_value(tokens, type) for _, type in formats])
            case 0xD7:
                for place, (name, type) in enumerate(formats):
                    reply.outputs[name or str(place)] = _read_value(tokens, type)
            case 0x83:
                body = _Tokens(tokens.take(tokens.number("H")), order)
                number, _, status = (body.number(code) for code in "iBH")
                reply.cursors.append((number, status))
            case 0x79:
                reply.statuses.append(tokens.number("i"))
            case 0xFD | 0xFE | 0xFF:
                status, _, count = (tokens.number(code) for code in "HHI")
                reply.done.append((status, count))
            case other:
                raise AssertionError(f"token 0x{other:02x} in a reply of TDS 5.0")
    reply.pointers = tokens.pointers
    return reply


def _read_message(tokens: _Tokens, reply: Reply) -> None:
    body = _Tokens(tokens.take(tokens.number("H")), tokens.order)
    number = body.number("i")
    body.number("B")
    severity = body.number("B")
    body.text()
    body.take(3)
    reply.messages.append(Error(number, severity, body.text("H")))


def _read_formats(body: _Tokens, *, wide: bool) -> list[tuple[str, Type]]:
    formats = []
    for _ in range(body.number("H")):
        name = body.text()
        if wide:
            for _ in range(4):
                body.text()
            body.take(4)
        else:
            body.take(1)
        body.take(4)
        formats.append((name, _read_type(body)))
        body.text()
    assert body.at == len(body.raw)
    return formats


FIXED = {0x30: 1, 0x34: 2, 0x38: 4, 0x32: 1, 0x3B: 4, 0x3E: 8, 0x3C: 8, 0x3D: 8, 0x31: 4, 0x33: 4}


def _read_type(body: _Tokens) -> Type:
    token = body.number("B")
    match token:
        case _ if token in FIXED:
            return Type(token, FIXED[token])
        case 0x6C | 0x6A:
            return Type(0x6C, body.number("B"), body.number("B"), body.number("B"))
        case 0xBB | 0xBC:
            return Type(token, body.number("B"), 0, body.number("B"))
        case 0xAF | 0xE1:
            return Type(token, body.number("I"))
        case 0x23 | 0x22:
            size = body.number("I")
            body.tables.append(body.text("H"))
            return Type(token, size)
        case _:
            return Type(token, body.number("B"))


def _read_value(tokens: _Tokens, type: Type) -> Value:
    match type.token:
        case token if token in FIXED:
            raw = tokens.take(FIXED[token])
        case 0xAF | 0xE1:
            raw = tokens.take(tokens.number("I"))
        case 0x23 | 0x22:
            pointer = tokens.number("B")
            if pointer == 0:
                return None
            tokens.pointers.append((tokens.take(pointer), tokens.take(8)))
            raw = tokens.take(tokens.number("I"))
            return raw.decode() if type.token == 0x23 else raw
        case _:
            raw = tokens.take(tokens.number("B"))
    if not raw:
        return None
    return _from_raw(type.token, raw, tokens.order)


def _from_raw(token: int, raw: bytes, order: Order) -> Value:
    match token, len(raw):
        case 0x27 | 0x2F | 0xAF, _:
            return raw.decode()
        case 0x25 | 0x2D | 0xE1, _:
            return raw
        case 0x6C, _:
            magnitude = int.from_bytes(raw[1:], "big")
            return -magnitude if raw[0] else magnitude
        case 0x6D | 0x3B | 0x3E, length:
            (number,) = struct.unpack(order + ("f" if length == 4 else "d"), raw)
            return float(number)
        case 0x6E | 0x6F | 0x3C | 0x3D, 8:
            high, low = struct.unpack(order + "iI", raw)
            return int(high << 32 | low)
        case 0x6F, 4:
            days, minutes = struct.unpack(order + "HH", raw)
            return int(days << 16 | minutes)
        case 0xBB | 0xBC, _:
            return int.from_bytes(raw, "little" if order == LITTLE else "big")
        case _, 1:
            return raw[0]
        case _, length:
            return int(struct.unpack(order + {2: "h", 4: "i", 8: "q"}[length], raw)[0])


# --- the connection ---


class RawClient:
    """A TCP connection that sends bytes in packets."""

    def __init__(self, host: str, port: int, *, order: Order = LITTLE, timeout: float = PATIENCE) -> None:
        self.order = order
        self.packet_size = 512
        self.socket = socket.create_connection((host, port), timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def packets(self, kind: int, body: bytes) -> bytes:
        """`body` as packets of the current size."""
        room = self.packet_size - HEADER
        parts = [body[at : at + room] for at in range(0, len(body), room)] or [b""]
        return b"".join(
            struct.pack(">BBHHBB", kind, LAST * (place == len(parts)), len(part) + HEADER, 0, place % 256, 0)
            + part
            for place, part in enumerate(parts, 1)
        )

    def send(self, kind: int, body: bytes) -> None:
        self.socket.sendall(self.packets(kind, body))

    def receive(self) -> bytes:
        """The body of the next complete message. Raises EOFError if the server disconnects."""
        body = bytearray()
        while True:
            header = self._exactly(HEADER)
            kind, status, length = struct.unpack(">BBH", header[:4])
            assert kind == 4, f"a packet of type {kind} from the server"
            assert length <= max(self.packet_size, 4096), f"a packet of {length} bytes"
            body += self._exactly(length - HEADER)
            if status & LAST:
                return bytes(body)

    def _exactly(self, count: int) -> bytes:
        raw = b""
        while len(raw) < count:
            part = self.socket.recv(count - len(raw))
            if not part:
                raise EOFError(f"the server closed after {len(raw)} of {count} bytes")
            raw += part
        return raw

    def log_in5(self, login: Login, *, charset: str = "utf8", packet_size: int = 512) -> Reply:
        self.send(LOGIN5, login5(login, self.order, charset=charset, packet_size=packet_size))
        reply = read_reply(self.receive(), self.order)
        if reply.login == 5:
            self.packet_size = packet_size
        return reply

    def log_in7(self, login: Login, *, packet_size: int = 4096) -> bytes:
        """Logs in at 7.4 and returns the tokens of the reply."""
        self.packet_size = 4096
        self.send(PRELOGIN, prelogin())
        self.receive()
        self.send(LOGIN7, login7(login, packet_size=packet_size))
        reply = self.receive()
        self.packet_size = packet_size
        return reply

    def ask(self, request: bytes, columns: Sequence[tuple[str, Type]] = ()) -> Reply:
        """A request at 5.0. `columns`: of rows that the reply does not describe."""
        self.send(NORMAL, request)
        return read_reply(self.receive(), self.order, columns)

    def call(self, name: str, params: Sequence[Param] = ()) -> Reply:
        """A call at 5.0."""
        return self.ask(dbrpc(name, params, self.order))

    def language(self, text: str) -> Reply:
        """A batch at 5.0."""
        return self.ask(language(text, self.order))
