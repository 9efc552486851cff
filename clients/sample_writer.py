"""A writer of a table of samples: samples go to a spool on disk, and a thread sends them in large calls."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ringlog.clients import samples
from ringlog.clients.address import Address
from ringlog.clients.figures import Figures
from ringlog.clients.procedure import Argument, Refused
from ringlog.clients.readings import stored
from ringlog.clients.reconnecting import Interrupted
from ringlog.clients.samples import Samples
from ringlog.clients.spool.sender import Sender
from ringlog.clients.spool.spool import Spooled
from ringlog.clients.spool.stored import GiB
from ringlog.clients.writer import Writer
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import Column, SampleTable, Table

# Limits of a call: rows of the spool, and bytes of their samples.
_TOGETHER = 64
_BYTES = 2**21


class SampleWriter(Writer):
    """Writes one table of samples: each call of `take_samples` is a row of the spool, and the ledger counts
    samples.

    `byte_order` is the facility's. A sample that the server refuses is counted and named, and the others of
    its call are stored.
    """

    _shares = staticmethod(samples.shares)

    def __init__(
        self,
        table: SampleTable,
        address: Address,
        password: str,
        spool: Path,
        *,
        byte_order: str = "little",
        budget: int = GiB,
        take_over: bool = False,
        figures: Figures | None = None,
        ended: Callable[[], None] | None = None,
    ) -> None:
        self.kind = table.type
        self._swaps = byte_order == "big" and address.driver != "psycopg"
        # the columns of a row of the spool
        arrays = {"signals": Kind.INT, "times": Kind.BIGINT, "samples": table.type.kind}
        arrays |= {"severities": Kind.SMALLINT, "statuses": Kind.SMALLINT}
        arrays |= {"lengths": Kind.INT} if table.type.is_array else {}
        columns = tuple(Column(name, name, ColumnType(kind, is_array=True)) for name, kind in arrays.items())
        super().__init__(
            Table(table.name, 1, 1.0, columns, collect=table.collect),
            ZoneInfo("UTC"),
            address,
            password,
            spool,
            budget=budget,
            take_over=take_over,
            figures=figures,
            ended=ended,
        )

    def take_samples(self, taken: Samples) -> None:
        """Takes samples, which are on disk when this returns."""
        if len(taken):
            assert isinstance(self._sender, SampleSender)
            self._sender.taken += len(taken)
            for part in taken.parts(_BYTES) if self.kind.is_array else [taken]:
                self.take([(time.time_ns() // 1000, stored(part.stored(self.kind)))])

    def waiting_times(self) -> dict[int, int]:
        """The latest time of each signal in the spool, by their numbers, in nanoseconds since 1970."""
        found: dict[int, int] = {}
        row = 0
        while rows := self._spool.batch(row, self._spool.newest, _TOGETHER, _BYTES):
            kept = Samples.joined([each.readings for each in rows], self.kind)
            for signal, moment in zip(kept.signals, kept.times, strict=True):
                found[signal] = max(moment, found.get(signal, 0))
            row = rows[-1].id
        return found

    def _made_sender(self, zone: ZoneInfo, acknowledged: Any) -> Sender:
        sender = SampleSender(self._spool, self.table, zone, self._connection, self.figures)
        sender.kind, sender.swaps = self.kind, self._swaps
        return sender


class SampleSender(Sender):
    """Samples on their way from the spool to the server: in their order, and as many in a call as wait."""

    kind: ColumnType
    swaps: bool
    taken = 0
    """samples of the source"""

    def begin(self, take_over: bool = False) -> None:
        """Claims the table. Raises like the connection's call."""
        self._claim(take_over)
        self._spool.begin(0, None)
        self._rewind()

    def step(self, patience: float) -> bool:
        """Sends waiting samples when their time is over, or waits up to `patience` seconds for some."""
        left, newest = self._left(), self._spool.newest
        if left is not None and left <= 0:
            rows = self._spool.batch(self._live, newest, _TOGETHER, _BYTES)
            if not rows:
                # they were dropped
                self._live = newest
                return False
            self._figures.oldest = rows[0].time
            if self._store(rows):
                self._live = rows[-1].id
            return True
        if left is None:
            self._figures.oldest = 0
        self._wait(patience if left is None else min(left, patience))
        return False

    def _store(self, rows: Sequence[Spooled]) -> bool:
        """Whether the rows are finished."""
        sent = Samples.joined([row.readings for row in rows], self.kind)
        refused: list[tuple[int, str]] = []
        begun = time.perf_counter()
        try:
            self._put(sent, refused)
        except Interrupted as why:
            self._interrupted(why)
            return False
        self._figures.answered(time.perf_counter() - begun, len(sent) - len(refused))
        self._figures.bytes += (
            sum(len(value or b"") for value in sent.values)
            if self.kind.is_array
            else len(sent) * (self.kind.width or 0)
        )
        for moment, message in refused:
            self._figures.refused += 1
            self._figures.message = f"a sample is refused: {message}"
            self._spool.note("refused", moment, message, None, 1)
        self._spool.acknowledge(rows, refused=[(moment, 1) for moment, _ in refused])
        self._figures.spooled = self._spool.depth
        return True

    def _put(self, sent: Samples, refused: list[tuple[int, str]]) -> None:
        """Stores samples; those that the server refuses are added to `refused`, with their times."""
        try:
            arguments = sent.sent(self.kind, swaps=self.swaps)
            self._connection.attempt(f"put_{self._table}_batch", **arguments, _epoch=self._epoch)
        except (Refused, ValueError) as error:
            if len(sent) == 1:
                moment = sent.times[0] // 1000
                when = datetime.fromtimestamp(moment // 1_000_000, UTC).isoformat()
                (value,) = sent.values
                shown = f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
                message = f"signal {sent.signals[0]} at {when}, {shown}: {error}"
                refused.append((moment, message[:1000]))
                return
            half = len(sent) // 2
            self._put(sent.part(slice(half)), refused)
            self._put(sent.part(slice(half, None)), refused)

    def _status(self) -> dict[str, Argument]:
        return super()._status() | {"produced": self.taken}

    def _rewind(self) -> None:
        self._live = 0
        self._figures.oldest = self._spool.oldest or 0
