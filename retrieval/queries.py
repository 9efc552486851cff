"""Queries of requests: at most a fixed number at once, streamed with bounded memory, cancelled when the
client disconnects."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ringlog.history.connection import ReadError
from ringlog.history.folder import Damaged
from ringlog.retrieval.access import Login
from ringlog.retrieval.compression import coding, compressed
from ringlog.retrieval.connections import Connections
from ringlog.retrieval.limits import Limits
from ringlog.retrieval.parts import Part, gathered
from ringlog.retrieval.refused import Refused, refused
from ringlog.retrieval.servers import Servers

log = logging.getLogger(__name__)

Result = TypeVar("Result")
_HELD = 1 << 16  # bytes held back: an error before they are sent has its own HTTP status
_SENT = 1 << 18  # bytes given to a connection at once: so many may lie there when the query has ended
Work = Callable[[Servers], Iterator[Part]]


class Queries:
    """Runs the queries of all requests."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.connections = Connections()
        self._slots = anyio.Semaphore(limits.queries)
        # a thread a query, and a few to end them
        self._threads = anyio.CapacityLimiter(2 * limits.queries + 4)
        self._waiting = 0

    async def answer(self, login: Login, work: Callable[[Servers], Result]) -> Result:
        """What `work` makes of the servers, in a thread. Raises Refused."""

        def run() -> Result:
            with Servers(self.connections, login) as servers:
                return work(servers)

        async with self._turn():
            try:
                return await anyio.to_thread.run_sync(run, limiter=self._threads)
            except (ReadError, Damaged) as error:
                raise refused(error, login.name) from error

    def stream(
        self, login: Login, work: Work, media_type: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A response with the bytes that `work` makes of the servers.

        What fails before 64 KiB of them is an error of HTTP; what fails later breaks the connection, so that
        nobody takes a part for the whole.
        """
        return _Streamed(self, login, work, media_type, headers)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= self.limits.waiting:
            raise _busy()
        self._waiting += 1
        try:
            with anyio.fail_after(self.limits.patience):
                await self._slots.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._slots.release()

    async def run(self, login: Login, work: Work, send: Callable[[Part], Any]) -> None:
        """Gives each part of what `work` makes to `send`; cancelling it cancels the query. Raises Refused."""
        async with self._turn():
            servers = Servers(self.connections, login)
            try:
                await self._run(servers, work, send)
            except (ReadError, Damaged) as error:
                raise refused(error, login.name) from error

    async def _run(self, servers: Servers, work: Work, send: Callable[[Part], Any]) -> None:
        loop = asyncio.get_running_loop()
        made: asyncio.Queue[Part | None] = asyncio.Queue()
        # the next part is made while one is sent
        room, stopped = threading.Semaphore(), threading.Event()

        def make() -> None:
            with servers, _ended(work(servers)) as parts:
                for part in gathered(parts):
                    loop.call_soon_threadsafe(made.put_nowait, part)
                    room.acquire()
                    if stopped.is_set():
                        raise ReadError("the request has ended", "57014")

        making = asyncio.ensure_future(self._in_thread(make))
        making.add_done_callback(lambda _: made.put_nowait(None))
        try:
            while (part := await made.get()) is not None:
                await send(part)
                room.release()
            making.result()
        finally:
            stopped.set()
            room.release()
            with anyio.CancelScope(shield=True):
                if not making.done():
                    await self._in_thread(servers.cancel)
                await asyncio.gather(making, return_exceptions=True)

    async def _in_thread(self, call: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(call, limiter=self._threads)


@contextmanager
def _ended(parts: Iterator[Part]) -> Iterator[Iterator[Part]]:
    """The parts, of which no more are made at the end."""
    try:
        yield parts
    finally:
        if isinstance(parts, Generator):
            parts.close()


def _busy() -> Refused:
    return Refused(429, "too many queries are running: try again in some seconds", {"Retry-After": "5"})


class _Streamed(Response):
    """A response whose bytes come from a query."""

    def __init__(
        self,
        queries: Queries,
        login: Login,
        work: Work,
        media_type: str,
        headers: Mapping[str, str] | None,
    ) -> None:
        super().__init__(media_type=media_type, headers={"Vary": "Accept-Encoding", **(headers or {})})
        del self.headers["content-length"]
        self._queries, self._login, self._work = queries, login, work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False
        held = bytearray()
        accepted = Headers(scope=scope).get("accept-encoding", "")
        if (chosen := coding(accepted, self.media_type or "")) is not None:
            self.headers["content-encoding"] = chosen

        def work(servers: Servers) -> Iterator[Part]:
            parts = self._work(servers)
            return parts if chosen is None else compressed(chosen, parts)

        async def give(part: Part, more: bool = True) -> None:
            nonlocal begun
            parts: tuple[Part, ...] = (part,)
            if not begun:
                if more and len(held) + len(part) < _HELD:
                    held.extend(part)
                    return
                begun, parts = True, (bytes(held), part)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            for given in parts:
                each = memoryview(given)
                for begin in range(0, len(each), _SENT):
                    body = each[begin : begin + _SENT]
                    await send({"type": "http.response.body", "body": body, "more_body": True})
            if not more:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        async def watch(scope_of_all: anyio.CancelScope) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            scope_of_all.cancel()

        refusal: Refused | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, tasks.cancel_scope)
            try:
                await self._queries.run(self._login, work, give)
                await give(b"", more=False)
            except Refused as error:
                refusal = error
            tasks.cancel_scope.cancel()
        if refusal is not None:
            if begun:
                log.warning("an answer was aborted: %s", refusal)
            raise refusal
