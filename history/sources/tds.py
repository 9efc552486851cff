"""Rows of a server that speaks TDS, read as Arrow by the gateway's client, by several connections."""

import socket
import threading
from collections.abc import Callable, Iterator
from queue import Full, Queue
from typing import Protocol, TypeVar

import pyarrow as pa

from ringlog.clients import Address
from ringlog.gateway import OldServer
from ringlog.history.sources.buffers import batch_of, schema_of

BATCH_BYTES = 4 << 20
"""of a record batch on the wire"""
AHEAD = 4
"""batches of a connection that wait for those of the connections before it"""
_TIMEOUT = 600
"""seconds until an answer begins or continues"""
_ALL = 1 << 62
_Part = TypeVar("_Part")


def session(address: Address, password: str, version: str) -> OldServer:
    """A session at an old server; without a limit to the length of texts. Raises OldServerError."""
    found = OldServer(
        host=address.host,
        port=address.port,
        user=address.user,
        password=password,
        database=address.database,
        version=version,
        client=socket.gethostname(),
        application="ringlog migrate",
        timeout=_TIMEOUT,
    )
    found.query("set textsize 2147483647")
    return found


def rows(server: OldServer, query: str, most: int = _ALL) -> Iterator[pa.RecordBatch]:
    """The rows of a query in batches of at most `most` rows, and of about BATCH_BYTES. Raises
    OldServerError."""
    schema = schema_of(server.query(query))
    while (found := server.read(most, BATCH_BYTES)) is not None:
        yield batch_of(schema, *found)


class Parts(Protocol[_Part]):
    """The parts that connections read, in their order."""

    def next(self) -> _Part | None:
        """The next part; None: there is no more. No two threads call it at once."""
        ...

    def rows(self, server: OldServer, part: _Part, ended: threading.Event) -> Iterator[pa.RecordBatch]: ...


def in_order(
    parts: Parts[_Part], connections: int, connect: Callable[[], OldServer]
) -> Iterator[tuple[_Part, pa.RecordBatch | None]]:
    """The batches of all parts, part by part, and None at the end of each. Each connection has a thread,
    which reads a part at a time, at most AHEAD batches before they are used. Raises OldServerError and
    IncomingError."""
    begun: Queue[tuple[_Part, Queue[pa.RecordBatch | BaseException | None]] | None] = Queue()
    lock, ended = threading.Lock(), threading.Event()

    def put(
        queue: Queue[pa.RecordBatch | BaseException | None], what: pa.RecordBatch | BaseException | None
    ) -> None:
        while not ended.is_set():
            try:
                return queue.put(what, timeout=0.2)
            except Full:
                pass

    def work() -> None:
        server = None
        try:
            while not ended.is_set():
                with lock:
                    if (part := parts.next()) is None:
                        return
                    came: Queue[pa.RecordBatch | BaseException | None] = Queue(AHEAD)
                    begun.put((part, came))
                try:
                    server = server or connect()
                    for batch in parts.rows(server, part, ended):
                        put(came, batch)
                    put(came, None)
                except BaseException as error:  # raised where the rows are used
                    return put(came, error)
        finally:
            begun.put(None)
            if server is not None:
                server.close()

    threads = [
        threading.Thread(target=work, name=f"old {number}", daemon=True) for number in range(connections)
    ]
    for thread in threads:
        thread.start()
    left = connections
    try:
        while left:
            if (found := begun.get()) is None:
                left -= 1
                continue
            part, came = found
            while (batch := came.get()) is not None:
                if isinstance(batch, BaseException):
                    raise batch
                yield part, batch
            yield part, None
    finally:
        ended.set()
