"""Replies of TDS 5.0 read byte by byte, in either byte order."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from raw_tds import LITTLE, Order, Type, Value


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
                for index, (name, type) in enumerate(formats):
                    reply.outputs[name or str(index)] = _read_value(tokens, type)
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
