"""Live values as Server-Sent Events: the rings are checked for new rows once a second."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import anyio
import orjson
import pyarrow as pa
from psycopg import sql

from ringlog.history.connection import rows as query_rows
from ringlog.history.connection import time_literal
from ringlog.retrieval.samples import samples
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.access import Login
from ringlog.retrieval.serving.queries import Queries
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.signals import Signal, reduced
from ringlog.retrieval.texts import query
from ringlog.schema.moments import MICROSECOND, moment_of

_PASSING = (429, 503, 504)
"""Statuses of errors that may be over at the next check."""
PAUSE = 1.0  # seconds between two checks
_END = datetime(2262, 1, 1, tzinfo=UTC)
_MOST = 10_000
"""samples of a signal in one event, as rows of a ring in since.sql"""
_SILENCE = 15.0  # seconds after which a comment keeps the connection alive


class Live:
    """One client's live values. `since` is the instant after which rows are new."""

    def __init__(self, queries: Queries, login: Login, signals: list[Signal], since: datetime) -> None:
        self._queries = queries
        self._login = login
        by_table = sorted(
            (signal for signal in signals if not signal.is_of_samples), key=lambda signal: signal.table
        )
        self._tables = {
            table: [*group] for table, group in groupby(by_table, key=lambda signal: signal.table)
        }
        self._sampled = [signal for signal in signals if signal.is_of_samples]
        self._since = dict.fromkeys([*self._tables, *(signal.name for signal in self._sampled)], since)

    async def events(self) -> AsyncIterator[bytes]:
        """The stream: `values` events of {signal: [[milliseconds, value], …]}; it ends with the client."""
        yield b"retry: 2000\n\n"
        quiet = anyio.current_time()
        while True:
            try:
                values = await self._queries.answer(self._login, self._look)
            except Refused as error:
                if error.status not in _PASSING:
                    yield b"event: refused\ndata: " + orjson.dumps({"error": str(error)}) + b"\n\n"
                    return
                values = {}
            if values:
                quiet = anyio.current_time()
                yield b"event: values\ndata: " + orjson.dumps(values) + b"\n\n"
            elif anyio.current_time() - quiet > _SILENCE:
                quiet = anyio.current_time()
                yield b": nothing new\n\n"
            await anyio.sleep(PAUSE)

    def _look(self, servers: Servers) -> dict[str, list[list[Any]]]:
        found = {signal.name: new for signal in self._sampled if (new := self._samples(servers, signal))}
        for table, signals in self._tables.items():
            try:
                connection = servers.of(signals[0].node)
            except Refused as error:
                if error.status not in _PASSING:
                    raise
                # the streams of other servers continue
                continue
            text = query(
                "plain/since",
                columns=sql.SQL(", ").join(sql.Identifier("ring", signal.column) for signal in signals),
                ring=sql.Identifier("online", table),
                start=time_literal(self._since[table]),
            )
            for batch in query_rows(connection, text):
                if not batch.num_rows:
                    continue
                time = batch.column(0).cast(pa.int64()).to_pylist()
                for index, signal in enumerate(signals, 1):
                    values = reduced(batch.column(index), signal.scalar)
                    pairs = zip(time, values.to_pylist(), strict=True)
                    found.setdefault(signal.name, []).extend(
                        [micros / 1000, value] for micros, value in pairs
                    )
                self._since[table] = moment_of(time[-1])
        return found

    def _samples(self, servers: Servers, signal: Signal) -> list[list[Any]]:
        """The new samples of a signal that has times of its own."""
        since = self._since[signal.name] + MICROSECOND
        found: list[list[Any]] = []
        for part in samples(servers, signal, since, _END, limit=_MOST):
            times = part.time.tolist()
            found += [
                [micros / 1000, value] for micros, value in zip(times, part.values.to_pylist(), strict=True)
            ]
            self._since[signal.name] = moment_of(times[-1])
        return found
