"""Sends what a spool holds, until it is acknowledged."""

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from ringlog.clients.figures import Figures, State
from ringlog.clients.line import Failed, Interrupted, Line
from ringlog.clients.procedure import Argument, Refused, output
from ringlog.clients.spool import Spool, Spooled, microseconds, moment_of

# After so many live rows without a pause a row of the backlog has its turn.
_LIVE_IN_A_ROW = 4


class Sender:
    """One table's rows on their way from the spool to the server.

    What was put before the line last came up, but for the newest row, is the backlog. Live rows go first, so
    that the ring is up to date; the backlog goes in order in between and takes at most half of the time that
    they leave, so that 60 writers that come back together leave the server room.
    """

    def __init__(
        self,
        spool: Spool,
        table: str,
        columns: Sequence[str],
        zone: ZoneInfo,
        line: Line,
        figures: Figures,
        acknowledged: Callable[[int, datetime], None] | None = None,
    ) -> None:
        self._spool = spool
        self._table = table
        self._columns = columns
        self._zone = zone
        self._line = line
        self._figures = figures
        self._acknowledged = acknowledged
        self._wake = threading.Event()
        self._first = spool.newest
        # ids: of the last row sent live, of the last row sent of the backlog, of the last row of the backlog
        self._live = self._backlog = self._mark = 0
        self._in_a_row = 0
        self._epoch = 0

    def wake(self) -> None:
        """There is something to do: a row was put, or it is time to end."""
        self._wake.set()

    def begin(self, take_over: bool = False) -> None:
        """Claims the table and asks where its ring stands. Raises as Line.call does: Failed when somebody
        else writes the table and shall not be taken over."""
        name = f"{socket.gethostname()} process {os.getpid()}"
        claim = ("claim_writer", self._table, self._spool.name, name, take_over, output(int))
        (epoch,) = self._line.call(*claim).outputs
        self._epoch = int(str(epoch))
        # As text the time comes exactly; the driver's own datetime parameter counts 1/300 s.
        seq_no, text = self._line.call(f"last_{self._table}", output(int), output(str)).outputs
        time = None
        if text is not None:
            # A time of the hour that is twice, when clocks go back, is taken for the earlier one: a
            # recording's row may then be stored twice, but none is left out.
            time = microseconds(datetime.fromisoformat(str(text)).replace(tzinfo=self._zone))
        self._spool.begin(0 if seq_no is None else int(str(seq_no)), time)
        self._rewind()

    def step(self, patience: float) -> bool:
        """Sends a row, or waits up to `patience` seconds for one. False when there was none to send.

        Raises Failed when nothing can be sent to this server, Released when told to end.
        """
        self._wake.clear()
        row = self._spool.after(self._live)
        if row is not None and (self._in_a_row < _LIVE_IN_A_ROW or self._backlog >= self._mark):
            self._in_a_row += 1
            if self._send(row, late=False):
                self._live = row.id
            return True
        late = self._spool.after(self._backlog, self._mark) if self._backlog < self._mark else None
        if late is not None:
            begun = time.monotonic()
            if self._send(late, late=True):
                self._backlog = late.id
                if row is None:
                    self._wake.wait(time.monotonic() - begun)
        else:
            self._backlog = self._mark
        if row is None:
            self._spool.settle()
        self._in_a_row = 0
        if row is None and late is None:
            self._wake.wait(patience)
            return False
        return True

    def tell(self) -> bool:
        """Brings the books, the events and how it goes to the server; whether it has all of them now."""
        spool = self._spool
        try:
            for hour in spool.hours():
                self._line.attempt("tell_ledger", self._table, spool.name, moment_of(hour.hour), *hour[1:])
                spool.hour_told(hour)
            events = spool.events()
            for event in events:
                until = None if event.until is None else moment_of(event.until)
                what = (moment_of(event.time), event.kind, event.words or "-", until, event.rows)
                self._line.attempt("tell_event", self._table, spool.name, event.id, *what)
            if events:
                spool.events_told(events[-1])
            self._line.attempt("tell_writer", **self._status())
        except Interrupted:
            return False
        return True

    def release(self) -> None:
        """Gives the table up, so that the next writer need not take it over."""
        with suppress(Interrupted, Refused, Failed):
            self._line.attempt("release_writer", self._table, self._spool.name)

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

    def _send(self, row: Spooled, late: bool) -> bool:
        """Whether the row is done with."""
        moment = moment_of(row.time)
        begun = time.perf_counter()
        try:
            # By name: the ring's columns are in another order when the facility file gained some.
            readings: dict[str, Argument] = dict(zip(self._columns, row.readings, strict=True))
            readings |= {"seq_no": row.seq_no, "time": moment, "_epoch": self._epoch}
            self._line.attempt(f"put_{self._table}_claimed", **readings)
        except (Refused, ValueError, TypeError) as error:
            self._figures.refused += 1
            self._figures.message = f"row of {moment.isoformat()} refused: {error}"
            self._spool.refuse(row, str(error))
        except Interrupted:
            self._spool.repeat()
            self._line.pause()
            self._rewind()
            return False
        else:
            self._figures.answered(time.perf_counter() - begun)
            if not late:
                self._figures.seq_no = row.seq_no or 0
            self._figures.late += late
            self._spool.acknowledge(row, late)
            if self._acknowledged:
                self._acknowledged(row.seq_no or 0, moment)
        self._figures.spooled = self._spool.depth
        return True

    def _rewind(self) -> None:
        """What waits now is the backlog, but for the newest row."""
        self._spool.settle()
        self._mark = self._live = self._spool.newest - 1
        self._backlog = 0
