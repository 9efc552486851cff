"""HTTP/1.1 with deadlines: uvicorn has none for heads, bodies and clients that do not read."""

import asyncio
from collections import Counter
from typing import Any, ClassVar

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD = 20.0  # seconds for the head of a request
_BODY = 60.0  # seconds for its body
_READ = 60.0  # seconds in which a client must make room for another part of its answer
MOST_WAITING = 1500
"""connections without a request; a further one closes the oldest of them"""
MOST_WAITING_OF_ADDRESS = 1000
"""the same for one address"""


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 also for clients that offer another protocol: the offer may be ignored (RFC 9110, 7.8).

    Java's HTTP client, and so Phoebus and the appliance's, offers HTTP/2 with each request. After such a head
    the parser takes the body for the other protocol and loses it, so it gets the head again without the
    offer.
    """

    _waiting: ClassVar[dict["Protocol", str]] = {}
    """connections without a request, the oldest first, with their addresses"""
    _waiting_of: ClassVar[Counter[str]] = Counter()
    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        self._set_deadline(_HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._set_deadline(None)
        self._set_reading(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._set_deadline(_HEAD)

    def on_headers_complete(self) -> None:
        if not self._offered():
            self._leave()
            self._set_deadline(_BODY)
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._offered():
            self._set_deadline(None)
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.timeout_keep_alive_task is not None:
            self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._set_reading(_READ)

    def resume_writing(self) -> None:
        self._set_reading(None)
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        # close() would wait until the client has read everything
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as offer:
            if self._offered():
                self.data_received(self._head() + data[offer.args[0] :])
        except HttpParserError:
            message = "Invalid HTTP request received."
            self.logger.warning(message)
            self.send_400_response(message)

    def _wait(self) -> None:
        """The connection has no request: it may be closed for others."""
        address = self.client[0] if self.client else ""
        self._leave()
        self._waiting[self] = address
        self._waiting_of[address] += 1
        if self._waiting_of[address] > MOST_WAITING_OF_ADDRESS:
            next(other for other, its in self._waiting.items() if its == address)._abort()
        elif len(self._waiting) > MOST_WAITING:
            next(iter(self._waiting))._abort()

    def _leave(self) -> None:
        address = self._waiting.pop(self, None)
        if address is not None:
            self._waiting_of[address] -= 1
            if not self._waiting_of[address]:
                del self._waiting_of[address]

    def _abort(self) -> None:
        self._leave()
        # connection_lost comes later, and uvicorn counts connections until then
        self.connections.discard(self)
        self.transport.abort()

    def _set_deadline(self, seconds: float | None) -> None:
        """The request must have arrived in this time."""
        self._deadline = self._timer(self._deadline, seconds)

    def _set_reading(self, seconds: float | None) -> None:
        """The client must have read the sent parts in this time."""
        self._reading = self._timer(self._reading, seconds)

    def _timer(self, before: asyncio.TimerHandle | None, seconds: float | None) -> Any:
        if before is not None:
            before.cancel()
        return None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

    def _offered(self) -> bool:
        return self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)

    def _head(self) -> bytes:
        """The head of the request, without its offer."""
        lines = [
            b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        ]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])
