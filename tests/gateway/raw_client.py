"""A client that sends TDS byte by byte."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from raw_replies import Reply, read_reply
from raw_tds import (
    BATCH7,
    HEADER,
    LAST,
    LITTLE,
    LOGIN5,
    LOGIN7,
    NORMAL,
    PRELOGIN,
    RPC7,
    Order,
    Param,
    Type,
    batch7,
    dbrpc,
    language,
    login5,
    login7,
    prelogin,
    rpc7,
)
from servers import Login, RunningServer
from waiting import PATIENCE


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
            struct.pack(
                ">BBHHBB", kind, LAST * (number == len(parts)), len(part) + HEADER, 0, number % 256, 0
            )
            + part
            for number, part in enumerate(parts, 1)
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

    def batch(self, *texts: str) -> bytes:
        """Batches at 7; the answer of the last."""
        answer = b""
        for text in texts:
            self.send(BATCH7, batch7(text))
            answer = self.receive()
        return answer

    def rpc(self, name: str, params: Sequence[tuple[str, bytes]] = ()) -> bytes:
        """The answer of a call at 7."""
        self.send(RPC7, rpc7(name, params))
        return self.receive()


@contextmanager
def logged_in7(server: RunningServer, login: Login, *texts: str) -> Iterator[RawClient]:
    """A session at 7.4 after these batches."""
    with RawClient(server.host, server.port) as client:
        client.log_in7(login)
        client.batch(*texts)
        yield client
