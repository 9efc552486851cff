"""Queries of requests: at most a fixed number at once, streamed with bounded memory, cancelled when the
client disconnects."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
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
_TOGETHER = 1 << 18  # bytes sent at once: an error before the first block has its own HTTP status
_SENT = 1 << 18  # bytes given to a connection at once: so many may be unsent when the query has ended
Work = Callable[[Servers], Iterator[Part]]
Tag = Callable[[Servers], str | None]
"""the part of an entity tag that changes with the answer; None: the answer may change at any time"""


class Queries:
    """Runs the queries of all requests."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.connections = Connections()
        self._slots = anyio.Semaphore(limits.queries)
        # a thread per query, and a few to cancel queries
        self._threads = ThreadPoolExecutor(2 * limits.queries + 4, "query")
        self._waiting = 0

    async def answer(self, login: Login, work: Callable[[Servers], Result]) -> Result:
        """The result of `work` with the servers, run in a thread. Raises Refused."""

        def run() -> Result:
            with Servers(self.connections, login) as servers:
                return work(servers)

        async with self._turn():
            try:
                return await self._in_thread(run)
            except (ReadError, Damaged) as error:
                raise refused(error, login.name) from error

    def stream(
        self,
        login: Login,
        work: Work,
        media_type: str,
        headers: Mapping[str, str] | None = None,
        tag: Tag | None = None,
    ) -> Response:
        """A response with the bytes that `work` makes from the servers, or 304 to a client that has the
        answer with this `tag`.

        A failure within the first 256 KiB is an HTTP error; a later one breaks the connection, so that no
        client takes a partial answer for a complete one.
        """
        return _Streamed(self, login, work, media_type, headers, tag)

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

    async def run(self, login: Login, work: Work, send: Callable[[Sequence[Part], bool], Any]) -> None:
        """Passes the parts that `work` makes to `send`, with a flag whether more follow; cancelling it
        cancels the query. Raises Refused."""
        async with self._turn():
            servers = Servers(self.connections, login)
            try:
                await self._run(servers, work, send)
            except (ReadError, Damaged) as error:
                raise refused(error, login.name) from error

    async def _run(self, servers: Servers, work: Work, send: Callable[[Sequence[Part], bool], Any]) -> None:
        loop = asyncio.get_running_loop()
        made: asyncio.Queue[list[Part] | None] = asyncio.Queue()
        # the next parts are made while these are sent
        room, stopped = threading.Semaphore(), threading.Event()

        def make() -> list[Part]:
            """The last parts, often the only ones."""
            held: list[Part] = []
            size = 0
            with servers, _ended(work(servers)) as parts:
                for part in gathered(parts):
                    if size >= _TOGETHER:
                        loop.call_soon_threadsafe(made.put_nowait, held)
                        held, size = [], 0
                        room.acquire()
                        if stopped.is_set():
                            raise ReadError("the request has ended", "57014")
                    held.append(part)
                    size += len(part)
            return held

        making = loop.run_in_executor(self._threads, make)
        making.add_done_callback(lambda _: made.put_nowait(None))
        try:
            while (parts := await made.get()) is not None:
                await send(parts, True)
                room.release()
            await send(making.result(), False)
        finally:
            if not making.done():
                stopped.set()
                room.release()
                with anyio.CancelScope(shield=True):
                    await self._in_thread(servers.cancel)
                    await asyncio.gather(making, return_exceptions=True)

    async def _in_thread(self, call: Callable[[], Result]) -> Result:
        """Returns the result of `call`, which runs to its end even if this coroutine is cancelled."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, call)
        try:
            return await asyncio.shield(running)
        finally:
            if not running.done():
                with anyio.CancelScope(shield=True):
                    await asyncio.gather(running, return_exceptions=True)


@contextmanager
def _ended(parts: Iterator[Part]) -> Iterator[Iterator[Part]]:
    """The parts; the generator is closed at the end."""
    try:
        yield parts
    finally:
        if isinstance(parts, Generator):
            parts.close()


def _busy() -> Refused:
    return Refused(429, "too many queries are running: try again in some seconds", {"Retry-After": "5"})


class _Streamed(Response):
    """A response with the bytes of a query."""

    def __init__(
        self,
        queries: Queries,
        login: Login,
        work: Work,
        media_type: str,
        headers: Mapping[str, str] | None,
        tag: Tag | None,
    ) -> None:
        super().__init__(media_type=media_type, headers={"Vary": "Accept-Encoding", **(headers or {})})
        del self.headers["content-length"]
        self._queries, self._login, self._work, self._tag = queries, login, work, tag

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False
        given = Headers(scope=scope)
        accepted, had = given.get("accept-encoding", ""), given.get("if-none-match", "")
        if (chosen := coding(accepted, self.media_type or "")) is not None:
            self.headers["content-encoding"] = chosen

        def work(servers: Servers) -> Iterator[Part]:
            tag = None if self._tag is None else self._tag(servers)
            if tag is not None:
                # a browser keeps it, and revalidates it
                self.headers.update({"etag": tag, "cache-control": "private, no-cache"})
                if tag in (each.strip() for each in had.split(",")):
                    self.status_code = 304
                    return iter(())
            parts = self._work(servers)
            return parts if chosen is None else compressed(chosen, parts)

        async def give(parts: Sequence[Part], more: bool) -> None:
            nonlocal begun
            if not begun:
                begun = True
                if self.status_code == 304:
                    del self.headers["content-type"]
                elif not more:
                    self.headers["content-length"] = str(sum(map(len, parts)))
                start = {"type": "http.response.start", "status": self.status_code}
                await send({**start, "headers": self.raw_headers})
            for part in parts:
                each = memoryview(part)
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
            except Refused as error:
                refusal = error
            tasks.cancel_scope.cancel()
        if refusal is not None:
            if begun:
                log.warning("an answer was aborted: %s", refusal)
            raise refusal
