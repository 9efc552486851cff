"""Queries of requests: at most a fixed number at once, streamed with bounded memory, cancelled when the
client disconnects."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from adbc_driver_manager import Error
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ringlog.history.connection import ReadError
from ringlog.history.folder import Damaged
from ringlog.retrieval.access import Login
from ringlog.retrieval.connections import Connections
from ringlog.retrieval.limits import Limits
from ringlog.retrieval.refused import Refused, refused
from ringlog.retrieval.servers import Servers

log = logging.getLogger(__name__)

Result = TypeVar("Result")
_HELD = 1 << 16  # bytes held back: an error before they are sent has its own HTTP status
_SENT = 1 << 18  # bytes given to a connection at once: so many may lie there when the query has ended
Part: TypeAlias = bytes | memoryview
"""of an answer; a memoryview is of bytes that do not change"""
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
                raise refused(error) from error

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
                raise refused(error) from error

    async def _run(self, servers: Servers, work: Work, send: Callable[[Part], Any]) -> None:
        await self._in_thread(servers.__enter__)
        failure: BaseException | None = None
        iterator = work(servers)
        # the next part is made while one is sent
        ahead = asyncio.ensure_future(self._step(servers, iterator))
        try:
            while True:
                # unlike awaiting it, this leaves it be when this is cancelled
                await asyncio.wait([ahead])
                if (part := ahead.result()) is None:
                    break
                ahead = asyncio.ensure_future(self._step(servers, iterator))
                if part:
                    await send(part)
        except BaseException as error:
            failure = error
            raise
        finally:
            with anyio.CancelScope(shield=True):
                ahead.cancel()
                await asyncio.gather(ahead, return_exceptions=True)
                await self._in_thread(lambda: _leave(servers, failure))

    async def _step(self, servers: Servers, iterator: Iterator[Part]) -> Part | None:
        """The next part; a cancellation meanwhile ends the query, so that the thread is free at once."""
        try:
            return await anyio.to_thread.run_sync(
                lambda: next(iterator, None), limiter=self._threads, abandon_on_cancel=True
            )
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._in_thread(servers.cancel)
                # the thread gives the iterator free when PostgreSQL has answered
                await self._in_thread(lambda: _end(iterator))
            raise

    async def _in_thread(self, call: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(call, limiter=self._threads)


def _leave(servers: Servers, failure: BaseException | None) -> None:
    """Gives the connections back; a failure is reported by its caller."""
    if failure is None:
        servers.__exit__(None, None, None)
        return
    with suppress(BaseException):
        servers.__exit__(type(failure), failure, None)


def _end(iterator: Iterator[Part]) -> None:
    """Waits until an iterator that another thread may still be in has ended."""
    while True:
        try:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()
            return
        except ValueError:  # "generator already executing"
            time.sleep(0.01)
        except (ReadError, Damaged, Error):
            return


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
        super().__init__(media_type=media_type, headers=headers)
        del self.headers["content-length"]
        self._queries, self._login, self._work = queries, login, work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False
        held = bytearray()

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
                await self._queries.run(self._login, self._work, give)
                await give(b"", more=False)
            except Refused as error:
                refusal = error
            tasks.cancel_scope.cancel()
        if refusal is not None:
            if begun:
                log.warning("an answer was aborted: %s", refusal)
            raise refusal
