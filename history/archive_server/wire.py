"""The server's side of PostgreSQL's wire protocol, the part that a libpq client without TLS needs.

https://www.postgresql.org/docs/current/protocol.html
"""

import base64
import hashlib
import hmac
import secrets
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PROTOCOL = 3 << 16
CANCEL = 80877102
_ASKS = (80877103, 80877104)
"""Requests for TLS and for GSSAPI."""

_LONGEST = 64 << 20
"""the most bytes of a message: a list of the files of ten years has 100 KB"""
_LONGEST_START = 10_000
_ITERATIONS = 4096
_TEXT = 25
"""oid of PostgreSQL's type text"""


class Closed(Exception):
    """The client has disconnected or violated the protocol."""


class Wrong(Exception):
    """The client does not know the password."""


@dataclass(frozen=True)
class Startup:
    """The first packet of a client: the version of the protocol, or CANCEL, and the rest of the packet."""

    code: int
    content: bytes


class Wire:
    """The messages of one connection."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._in = client.makefile("rb", buffering=65_536)
        self._out = bytearray()

    def startup(self) -> Startup:
        while True:
            length, code = struct.unpack("!II", self._exactly(8))
            if not 8 <= length <= _LONGEST_START:
                raise Closed("no startup message")
            content = self._exactly(length - 8)
            if code not in _ASKS:
                return Startup(code, content)
            self._client.sendall(b"N")

    def read(self) -> tuple[bytes, bytes]:
        """The next message: its kind and its content."""
        kind, length = struct.unpack("!cI", self._exactly(5))
        if not 4 <= length <= _LONGEST:
            raise Closed("no message")
        return kind, self._exactly(length - 4)

    def _exactly(self, count: int) -> bytes:
        try:
            data = self._in.read(count)
        except OSError as error:
            raise Closed(str(error)) from None
        if data is None or len(data) < count:
            raise Closed("the client has gone")
        return bytes(data)

    def put(self, kind: bytes, *content: bytes | memoryview) -> None:
        """Queues a message for `flush`."""
        self._out += struct.pack("!cI", kind, 4 + sum(map(len, content)))
        for part in content:
            self._out += part

    def put_rows(self, messages: memoryview) -> None:
        """Queues encoded messages for `flush`."""
        self._out += messages

    def put_columns(self, names: Sequence[str]) -> None:
        fields = (name.encode() + b"\0" + struct.pack("!IhIhih", 0, 0, _TEXT, -1, -1, 0) for name in names)
        self.put(b"T", struct.pack("!h", len(names)), *fields)

    def put_error(self, state: str, message: str, severity: str = "ERROR") -> None:
        parts = (("S", severity), ("V", severity), ("C", state), ("M", message))
        self.put(b"E", *(f"{kind}{text}\0".encode() for kind, text in parts), b"\0")

    def flush(self) -> None:
        data, self._out = self._out, bytearray()
        try:
            self._client.sendall(data)
        except OSError as error:
            raise Closed(str(error)) from None

    def close(self) -> None:
        self._in.close()
        self._client.close()


class Password:
    """A password for logins by SCRAM-SHA-256 (RFC 5802, RFC 7677)."""

    def __init__(self, password: str) -> None:
        self._salt = secrets.token_bytes(16)
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), self._salt, _ITERATIONS)
        self._stored = hashlib.sha256(_mac(salted, b"Client Key")).digest()
        self._server = _mac(salted, b"Server Key")

    def demand(self, wire: Wire) -> None:
        """Verifies that a client knows the password, and proves the server's knowledge to it. Raises Wrong,
        Closed."""
        wire.put(b"R", struct.pack("!I", 10), b"SCRAM-SHA-256\0\0")
        wire.flush()
        mechanism, _, rest = _answer(wire).partition(b"\0")
        first = rest[4:].decode(errors="replace")
        if mechanism != b"SCRAM-SHA-256" or not first.startswith(("n,", "y,")):
            raise Wrong
        header, name, bare = first.split(",", 2)
        fields = _fields(bare)
        nonce = fields.get("r", "") + secrets.token_urlsafe(18)
        offer = f"r={nonce},s={_base64(self._salt)},i={_ITERATIONS}"
        wire.put(b"R", struct.pack("!I", 11), offer.encode())
        wire.flush()
        final = _answer(wire).decode(errors="replace")
        without, _, proof = final.rpartition(",p=")
        sent = _fields(without)
        signed = f"{bare},{offer},{without}".encode()
        try:
            given = base64.b64decode(proof, validate=True)
        except ValueError:
            raise Wrong from None
        signature = _mac(self._stored, signed)
        key = bytes(a ^ b for a, b in zip(given, signature, strict=False))
        is_bound = sent.get("c") == _base64(f"{header},{name},".encode()) and sent.get("r") == nonce
        if len(given) != len(signature) or not is_bound:
            raise Wrong
        if not hmac.compare_digest(hashlib.sha256(key).digest(), self._stored):
            raise Wrong
        wire.put(b"R", struct.pack("!I", 12), f"v={_base64(_mac(self._server, signed))}".encode())


def _answer(wire: Wire) -> bytes:
    kind, content = wire.read()
    if kind != b"p":
        raise Closed("the client sent no password")
    return content


def _fields(text: str) -> dict[str, str]:
    return {
        name: value for name, is_there, value in (each.partition("=") for each in text.split(",")) if is_there
    }


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def texts(data: bytes) -> Iterable[str]:
    """Strings that are terminated by a zero byte."""
    return (each.decode() for each in data.split(b"\0"))
