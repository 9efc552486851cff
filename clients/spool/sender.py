"""Sends the rows of a spool until they are acknowledged."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from ringlog.clients.figures import Figures, State
from ringlog.clients.procedure import Argument, Refused, output
from ringlog.clients.readings import Reading, array_text, stored, swapped
from ringlog.clients.reconnecting import Failed, Interrupted, ReconnectingConnection
from ringlog.clients.spool.books import EVENTS, Event
from ringlog.clients.spool.spool import Spool, Spooled
from ringlog.gateway import _core
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import Table
from ringlog.schema.moments import microseconds, moment_of

# After so many live rows without a pause the backlog has its turn.
_LIVE_IN_A_ROW = 4
# Limits of a batch of the backlog: rows, characters of readings, and approximate seconds of the call, because
# live rows wait meanwhile.
_TOGETHER = 1000
_CHARACTERS = 2**18
_HOLD = 0.1
# Seconds without a new row after which acknowledged rows are removed from the spool: until then the next
# row's commit does it.
_QUIET = 1.0
# Attempts to release the table at the end: each after the first has a new connection.
_RELEASES = 3
# Errors of a row whose key in the log (seq_no and time) belongs to another row: raised by put, or by the key.
_KEY_TAKEN = frozenset({2601, 2627})


class Sender:
    """One table's rows on their way from the spool to the server.

    The backlog is all rows that were put before the last reconnect, except the newest one. Live rows are sent
    first, so that the ring is current; the backlog is sent in order between them. Rows that wait go together,
    many in a call.
    """

    def __init__(
        self,
        spool: Spool,
        table: Table,
        zone: ZoneInfo,
        connection: ReconnectingConnection,
        figures: Figures,
        acknowledged: Callable[[int, datetime], None] | None = None,
    ) -> None:
        self._spool = spool
        self._table = table.name
        self._columns = [column.name for column in table.columns]
        types = [column.type for column in table.columns]
        reals = [each == ColumnType(Kind.REAL) for each in types]
        self._batch = _core.Batch([*zip(self._columns, reals, strict=True)])
        self._texts = [index for index, each in enumerate(types) if not each.is_fixed]
        # long rows gain nothing from a batch, and JSON would make them longer
        self._one_by_one = any(column.is_waveform for column in table.columns)
        self._packed = {index: column for index, column in enumerate(table.columns) if column.is_packed}
        self._width = sum(each.width or 0 for each in types if each.is_fixed)
        self._zone = zone
        self.collect = table.collect
        """seconds that live rows wait for others"""
        self._connection = connection
        self._figures = figures
        self._acknowledged = acknowledged
        self._wake = threading.Event()
        self._first = spool.newest
        # ids: of the last row sent live, of the last row sent of the backlog, of the last row of the backlog
        self._live = self._backlog = self._mark = 0
        # when the oldest waiting live row was seen
        self._since: float | None = None
        # rows of the next batch, and the ids up to which late (True) and live rows are sent singly after a
        # refused batch
        self._together = 16
        self._alone = {True: 0, False: 0}
        self._in_a_row = 0
        self._epoch = 0

    def wake(self) -> None:
        """Wakes the sender: a row was put, or it must end."""
        self._wake.set()

    def begin(self, take_over: bool = False) -> None:
        """Claims the table and reads the position of its ring. Raises like the connection's call: Failed when
        another writer has the table and must not be replaced."""
        self._claim(take_over)
        # Text keeps the exact time; the driver's own datetime parameter has steps of 1/300 s.
        seq_no, text = self._connection.call(f"last_{self._table}", output(int), output(str)).outputs
        time = None
        if text is not None:
            moment = datetime.fromisoformat(str(text))
            # A time in the hour that occurs twice is read as the earlier one: a recording's row may then be
            # stored twice, but none is omitted.
            time = microseconds(moment if moment.tzinfo else moment.replace(tzinfo=self._zone))
        self._spool.begin(0 if seq_no is None else int(str(seq_no)), time)
        self._rewind()

    def _claim(self, take_over: bool) -> None:
        name = f"{socket.gethostname()} process {os.getpid()}"
        claim = ("claim_writer", self._table, self._spool.name, name, take_over, output(int))
        (epoch,) = self._connection.call(*claim).outputs
        self._epoch = int(str(epoch))

    def step(self, patience: float) -> bool:
        """Sends a row or a batch, or waits up to `patience` seconds for one. False when there was none.

        Raises Failed when nothing can be sent to this server, Released when the process is to end.
        """
        left, newest = self._left(), self._spool.newest
        is_due = left is not None and left <= 0
        if is_due and (self._in_a_row < _LIVE_IN_A_ROW or self._backlog >= self._mark):
            self._in_a_row += 1
            if live := self._next(self._live, newest, late=False):
                if self._backlog >= self._mark:
                    self._figures.oldest = live[0].time
                if self._send_all(live, late=False):
                    self._live = live[-1].id
            else:
                # the rows were dropped
                self._live = newest
            return True
        self._in_a_row = 0
        if self._backlog < self._mark and (late := self._next(self._backlog, self._mark, late=True)):
            self._figures.oldest = late[0].time
            if self._send_all(late, late=True):
                self._backlog = late[-1].id
            return True
        self._backlog = self._mark
        if is_due:
            return True
        if left is None:
            self._figures.oldest = 0
        self._wait(patience if left is None else min(left, patience))
        return False

    def _left(self) -> float | None:
        """Seconds for which the live rows wait for others; None: there are none."""
        if self._spool.newest <= self._live:
            self._since = None
            return None
        if self._since is None:
            self._since = time.monotonic()
        return self._since + self.collect - time.monotonic()

    def _wait(self, patience: float) -> None:
        """Waits for a row or the end."""
        if not self._wake.wait(min(patience, _QUIET)):
            self._spool.settle()
            self._wake.wait(max(0.0, patience - _QUIET))
        # clear the event before checking for rows and the end, or a wake-up is lost
        self._wake.clear()

    def report(self) -> bool:
        """Sends the ledger, some of the events and the writer's state to the server. Returns whether more
        events wait."""
        with suppress(Interrupted):
            more = self._send_books()
            self._connection.attempt("report_writer", **self._status())
            return more
        return False

    def end(self) -> None:
        """Reports for the last time and releases the table. This precedes ledger and events, which may take
        long while others wait for the process."""
        with suppress(Interrupted):
            self._connection.attempt("report_writer", **self._status())
        self.release()
        with suppress(Interrupted):
            while self._send_books():
                pass

    def release(self) -> None:
        """Releases the table, so that the next writer need not take it over."""
        claim = (self._table, self._spool.name)
        for _ in range(_RELEASES):
            with suppress(Interrupted, Refused, Failed):
                self._connection.attempt("release_claim", *claim, self._epoch)
                return

    def _send_books(self) -> bool:
        """Sends changed hours of the ledger and a batch of events. Returns whether more events wait."""
        spool = self._spool
        for hour in spool.hours():
            self._connection.attempt(
                "report_ledger", self._table, spool.name, moment_of(hour.hour), *hour[1:]
            )
            spool.hour_reported(hour)
        events = spool.events()
        if events:
            self._send_events(events)
            spool.events_reported(events[-1])
        return len(events) == EVENTS

    def _send_events(self, events: Sequence[Event]) -> None:
        described = [
            {
                "number": event.id,
                "time": moment_of(event.time),
                "kind": event.kind,
                "message": (event.message or "-").replace("\0", ""),
                "until": None if event.until is None else moment_of(event.until),
                "rows": event.rows,
            }
            for event in events
        ]
        whose = {"table_name": self._table, "spool": self._spool.name}
        text = json.dumps(described, separators=(",", ":"), default=datetime.isoformat)
        self._connection.attempt("report_events", **whose, events=text)

    def _status(self) -> dict[str, Argument]:
        figures, oldest = self._figures, self._spool.oldest
        return {
            "table_name": self._table,
            "spool": self._spool.name,
            "state": State(figures.state).name.lower(),
            "trouble": figures.message or None,
            "produced": self._spool.newest - self._first,
            "acknowledged": figures.acknowledged,
            "waiting": self._spool.depth,
            "oldest": None if oldest is None else moment_of(oldest),
            "late": figures.late,
            "refused": figures.refused,
            "repeated": figures.repeated,
            "reconnected": figures.reconnected,
            "latency": figures.last_latency,
        }

    def _next(self, after: int, until: int, *, late: bool) -> Sequence[Spooled]:
        """The rows of the next call."""
        rows = 1 if self._one_by_one or after < self._alone[late] else self._together
        return self._spool.batch(after, until, rows, _CHARACTERS)

    def _send_all(self, rows: Sequence[Spooled], late: bool) -> bool:
        """Whether the rows are finished."""
        return self._send(rows[0], late) if len(rows) == 1 else self._send_together(rows, late)

    def _send(self, row: Spooled, late: bool) -> bool:
        """Whether the row is finished."""
        moment = moment_of(row.time)
        begun = time.perf_counter()
        try:
            # By name: the ring's columns have another order after columns were added to the facility file.
            readings: dict[str, Argument] = dict(zip(self._columns, self._sent(row), strict=True))
            readings |= {"seq_no": row.seq_no, "time": moment, "_epoch": self._epoch}
            try:
                self._connection.attempt(f"put_{self._table}_claimed", **readings)
            except (ValueError, TypeError):
                # the driver cannot send some texts, for example an empty one; JSON can
                self._send_as_json(row)
        except (Refused, ValueError, TypeError) as error:
            if isinstance(error, Refused) and error.number in _KEY_TAKEN:
                # the clock was set back by the duration of one round of the ring
                other = self._spool.renumber(row)
                return other is not row and self._send(other, late)
            self._figures.refused += 1
            self._figures.message = f"row of {moment.isoformat()} refused: {error}"
            self._spool.refuse(row, str(error))
            self._figures.spooled = self._spool.depth
        except Interrupted as why:
            self._interrupted(why)
            return False
        else:
            self._figures.answered(time.perf_counter() - begun)
            if not late:
                self._figures.seq_no = row.seq_no or 0
            self._stored([row], late)
        return True

    def _send_as_json(self, row: Spooled) -> None:
        """Sends a row as a batch of one."""
        text = self._as_json([row])
        self._connection.attempt(f"put_{self._table}_batch", rows=text, _epoch=self._epoch)

    def _sent(self, row: Spooled) -> Sequence[Reading]:
        """A row's readings in the form for the server."""
        if not self._packed:
            return row.readings
        readings = list(row.readings)
        for index, column in self._packed.items():
            elements = readings[index]
            if elements == b"":
                # the drivers send empty binary data as NULL
                readings[index] = "{}"
            elif isinstance(elements, bytes) and column.byte_order == "big" and self._connection.over_tds:
                readings[index] = swapped(elements, column)
        return readings

    def _send_together(self, rows: Sequence[Spooled], late: bool) -> bool:
        """Whether the rows are finished. If the server refuses them, they are sent singly."""
        begun = time.perf_counter()
        text = self._as_json(rows)
        try:
            self._connection.attempt(f"put_{self._table}_batch", rows=text, _epoch=self._epoch)
        except (Refused, ValueError):
            self._alone[late] = rows[-1].id
            return False
        except Interrupted as why:
            # fewer next time: their number may be the problem
            self._together = max(2, self._together // 2)
            self._interrupted(why)
            return False
        took = time.perf_counter() - begun
        self._figures.answered(took, len(rows))
        self._figures.batches += 1
        if not late:
            self._figures.seq_no = rows[-1].seq_no or 0
        self._stored(rows, late)
        if took < _HOLD / 2 and len(rows) == self._together:
            self._together = min(_TOGETHER, self._together * 2)
        elif took > _HOLD:
            self._together = max(2, self._together // 2)
        return True

    def _as_json(self, rows: Sequence[Spooled]) -> str:
        """Rows in the form of the batch's procedure, with the same values as in single calls."""
        return self._batch.text([(row.seq_no, row.time, self._as_text(row)) for row in rows])

    def _as_text(self, row: Spooled) -> str:
        """A row's readings in JSON."""
        if isinstance(row.content, str):
            return row.content
        readings = [*row.readings]
        for index, column in self._packed.items():
            if isinstance(elements := readings[index], bytes):
                readings[index] = array_text(elements, column)
        return str(stored(readings))

    def _stored(self, rows: Sequence[Spooled], late: bool) -> None:
        """The server has stored these rows."""
        self._spool.acknowledge(rows, late)
        self._figures.bytes += len(rows) * self._width
        if self._texts:
            for readings in (row.readings for row in rows):
                self._figures.bytes += sum(_length(readings[index]) for index in self._texts)
        if self._acknowledged:
            for row in rows:
                self._acknowledged(row.seq_no or 0, moment_of(row.time))
        self._figures.late += late * len(rows)
        self._figures.spooled = self._spool.depth

    def _interrupted(self, why: Interrupted) -> None:
        if why.made:
            self._spool.repeat(why.unknown)
        self._connection.pause()
        self._rewind()

    def _rewind(self) -> None:
        """Declares all waiting rows except the newest as the backlog."""
        self._spool.settle()
        self._mark = self._live = self._spool.newest - 1
        self._backlog = 0
        self._figures.oldest = self._spool.oldest or 0


def _length(reading: Reading) -> int:
    """Bytes of a text or a waveform."""
    return len(reading) if isinstance(reading, bytes) else len(str(reading or "").encode())
