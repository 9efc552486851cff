"""Queries of requests: at most a fixed number at once, streamed with bounded memory, cancelled when the
client disconnects."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ringlog.history.archive.folder import Damaged
from ringlog.history.connection import ReadError
from ringlog.history.memory import give_back_memory
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.access import Login
from ringlog.retrieval.serving.compression import coding, compressed
from ringlog.retrieval.serving.connections import Connections
from ringlog.retrieval.serving.limits import Limits
from ringlog.retrieval.serving.parts import Part, gathered
from ringlog.retrieval.serving.refused import Refused, refused

log = logging.getLogger(__name__)

Result = TypeVar("Result")
_TOGETHER = 1 << 18  # bytes sent at once: an error before the first block has its own HTTP status
_SENT = 1 << 18  # bytes given to a connection at once: so many may be unsent when the query has ended
_AHEAD = 8 << 20  # bytes of an answer that may be made before they are sent
_AHEAD_OF_ALL = 128 << 20  # bytes of all answers
_LOOK = 0.05  # seconds between two looks whether enough is sent
_CANCELLED = 1.0  # seconds between two cancellations
_TIDIED = 30.0  # seconds between two looks at what queries have left behind
_SHORT = 2  # slots that long answers leave
_SLOW = 10.0  # seconds for a block, after which an unfinished answer ends if others wait
Work = Callable[[Servers], Iterator[Part]]
Tag = Callable[[Servers], str | None]
"""the part of an entity tag that changes with the answer; None: the answer may change at any time"""


class Queries:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.connections = Connections(limits.trusted)
        self._slots = anyio.Semaphore(limits.queries)
        # the others are for logins and short answers
        self._long = anyio.Semaphore(max(limits.queries - _SHORT, 1))
        self._ahead = 0
        """bytes of all answers that are made and not sent"""
        # a thread per query, and a few to cancel queries
        self._threads = ThreadPoolExecutor(2 * limits.queries + 4, "query")
        self._waiting = 0
        self._begun = self._running = 0
        """queries since the start, and of the present"""

    async def answer(self, login: Login, work: Callable[[Servers], Result]) -> Result:
        """The result of `work` with the servers, run in a thread. Raises Refused."""

        def run() -> Result:
            with Servers(self.connections, login) as servers:
                return work(servers)

        async with self._turn(self._slots):
            try:
                return await self._in_thread(run)
            except (ReadError, Damaged) as error:
                raise refused(error, login.name) from error

    async def tidied(self) -> None:
        """For ever closes old connections, and gives back memory a while after the last query."""
        given_back = self._begun
        while True:
            before = self._begun
            await asyncio.sleep(_TIDIED)
            await self._in_thread(self.connections.close_old)
            if self._begun == before != given_back and self._running == 0:
                await self._in_thread(give_back_memory)
                given_back = before

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
    async def _turn(self, *slots: anyio.Semaphore) -> AsyncIterator[Callable[[], None]]:
        """Holds a slot of each kind until the end, or until the function that this yields is called."""
        if self._waiting >= self.limits.waiting:
            raise _busy()
        taken: list[anyio.Semaphore] = []

        def release() -> None:
            while taken:
                taken.pop().release()

        self._waiting += 1
        try:
            with anyio.fail_after(self.limits.patience):
                for slot in slots:
                    await slot.acquire()
                    taken.append(slot)
        except BaseException as error:
            release()
            if isinstance(error, TimeoutError):
                raise _busy() from None
            raise
        finally:
            self._waiting -= 1
        self._begun += 1
        self._running += 1
        try:
            yield release
        finally:
            self._running -= 1
            release()

    async def run(self, login: Login, work: Work, send: Callable[[Sequence[Part], bool], Any]) -> None:
        """Passes the parts that `work` makes to `send`, with a flag whether more follow; cancelling it
        cancels the query. Raises Refused."""
        async with self._turn(self._long, self._slots) as release:
            servers = Servers(self.connections, login)
            try:
                await self._run(servers, work, send, release)
            except (ReadError, Damaged) as error:
                raise refused(error, login.name) from error

    async def _run(
        self,
        servers: Servers,
        work: Work,
        send: Callable[[Sequence[Part], bool], Any],
        release: Callable[[], None],
    ) -> None:
        """Calls `release` when the answer is made: sending it needs no slot."""
        loop = asyncio.get_running_loop()
        made: asyncio.Queue[list[Part] | None] = asyncio.Queue()
        # the next parts are made while these are sent
        room, stopped = threading.Semaphore(_AHEAD // _TOGETHER), threading.Event()
        unsent = 0

        def put(parts: list[Part]) -> None:
            nonlocal unsent
            size = sum(map(len, parts))
            unsent += size
            self._ahead += size
            made.put_nowait(parts)

        def make() -> list[Part]:
            """The last parts, often the only ones."""
            held: list[Part] = []
            size = 0
            with servers, _ended(work(servers)) as parts:
                for part in gathered(parts):
                    if size >= _TOGETHER:
                        room.acquire()
                        while unsent and self._ahead > _AHEAD_OF_ALL and not stopped.wait(_LOOK):
                            pass
                        if stopped.is_set():
                            raise ReadError("the request has ended", "57014")
                        loop.call_soon_threadsafe(put, held)
                        held, size = [], 0
                    held.append(part)
                    size += len(part)
            return held

        making = loop.run_in_executor(self._threads, make)

        def ended(_: object) -> None:
            release()
            made.put_nowait(None)

        making.add_done_callback(ended)
        try:
            while (parts := await made.get()) is not None:
                await self._sent(send(parts, True), making)
                size = sum(map(len, parts))
                unsent -= size
                self._ahead -= size
                room.release()
            await send(making.result(), False)
        finally:
            self._ahead -= unsent
            if not making.done():
                stopped.set()
                room.release()
                with anyio.CancelScope(shield=True):
                    # again, since the first one may come between two queries
                    while not making.done():
                        await self._in_thread(servers.cancel)
                        await asyncio.wait({making}, timeout=_CANCELLED)
                    making.exception()

    async def _sent(self, sending: Coroutine[Any, Any, None], making: "asyncio.Future[list[Part]]") -> None:
        """Sends a block. Raises Refused if the client is so slow that its answer keeps others waiting."""
        task = asyncio.ensure_future(sending)
        try:
            while not (await asyncio.wait({task}, timeout=_SLOW))[0]:
                if (self._waiting and not making.done()) or self._ahead > _AHEAD_OF_ALL:
                    raise Refused(503, "the client read its answer too slowly while others waited")
            await task
        finally:
            task.cancel()

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
