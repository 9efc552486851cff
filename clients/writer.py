"""A writer for your own program: rows go to a spool on disk, and a thread sends them to the server."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

from ringlog.clients.address import Address
from ringlog.clients.figures import Counts, Figures
from ringlog.clients.password import find_password
from ringlog.clients.readings import Content, Reading, restored, stored, text_of, waveform
from ringlog.clients.reconnecting import Failed, ReconnectingConnection, Released
from ringlog.clients.spool.file import Former
from ringlog.clients.spool.sender import Sender
from ringlog.clients.spool.spool import Spool
from ringlog.clients.spool.stored import GiB, one_row
from ringlog.schema.facility import Table
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.moments import microseconds, moment_of

log = logging.getLogger(__name__)

_NUL = r"\u0000"
# Seconds between two reports of a writer.
_REPORT_EVERY = 30.0
# Seconds in which an ending writer sends waiting rows, and then releases its table and reports: on a busy
# machine one answer may take seconds.
GRACE = 8.0


class Writer:
    """Writes one table. `put` never waits for the server: a thread sends the spool's rows.

    `spool` is the folder of spools, one file a table; `budget` is in bytes a table. A second writer of the
    same spool is a SpoolError. Used as a context manager it sends waiting rows before it ends; the rest stays
    in the spool for the next time.
    """

    _shares = staticmethod(one_row)

    def __init__(
        self,
        table: Table,
        zone: ZoneInfo,
        address: Address,
        password: str,
        spool: Path,
        *,
        budget: int = GiB,
        take_over: bool = False,
        figures: Figures | None = None,
        acknowledged: Callable[[int, datetime], None] | None = None,
        ended: Callable[[], None] | None = None,
    ) -> None:
        """`take_over` takes the table from another writer, which can write nothing afterwards. The sending
        thread calls `acknowledged` with seq_no and time of each row that the server has acknowledged, and
        `ended` when it ends."""
        self.table = table
        self.figures: Figures = Counts() if figures is None else figures
        self.error: Exception | None = None
        """the reason why sending has stopped"""
        columns = [column.name for column in table.columns]
        self._indexes = {name: index for index, name in enumerate(columns)}
        file = spool_file(spool, address, table.name)
        renamed = {each.renamed_from: each.name for each in table.columns if each.renamed_from}
        former = Former(table.renamed_from, renamed)
        self._spool = Spool(file, table.name, columns, table.rows, budget, former, self._shares)
        self._stop = threading.Event()
        self._began = threading.Event()
        self._ended = ended
        self._take_over = take_over
        self._connection = ReconnectingConnection(address, password, self.figures, self._sleep)
        self._sender = self._made_sender(zone, acknowledged)
        self.figures.spooled = self._spool.depth
        self._thread = threading.Thread(target=self._run, name=f"send {table.name}", daemon=True)
        self._thread.start()

    @classmethod
    def open(
        cls,
        url: str,
        facility: str | Path,
        table: str,
        spool: str | Path,
        *,
        password_file: str | Path | None = None,
        budget: int = GiB,
        take_over: bool = False,
    ) -> Self:
        """The writer of a facility's table, with the password that `find_password` finds.

        Raises FacilityError, AddressError, PasswordError, SpoolError, or LookupError for an unknown table.
        """
        loaded = load_facility(facility)
        address = Address.parse(url)
        for known in loaded.tables:
            if known.name == table and not known.retired:
                zone = ZoneInfo(loaded.timezone)
                password = find_password(address, password_file)
                return cls(
                    known.written, zone, address, password, Path(spool), budget=budget, take_over=take_over
                )
        raise LookupError(f"facility {loaded.name} has no table {table}")

    def put(self, time: datetime, **readings: Any) -> None:
        """Takes a row, which is on disk when this returns. Omitted columns have no reading. A waveform is a
        numpy array, a sequence of numbers, or their packed bytes.

        Raises TypeError for a time without a zone or a column the table does not have, and TypeError or
        ValueError for a waveform that its column cannot hold.
        """
        if time.tzinfo is None:
            raise TypeError(f"{self.table.name}: the time {time} has no zone")
        values: list[Reading] = [None] * len(self._indexes)
        for name, reading in readings.items():
            if name not in self._indexes:
                raise TypeError(f"{self.table.name} has no column {name}")
            index = self._indexes[name]
            column = self.table.columns[index]
            values[index] = (
                waveform(reading, column) if column.is_waveform and reading is not None else reading
            )
        self.take([(microseconds(time), stored(values))])

    def take(self, rows: Sequence[tuple[int, Content]]) -> None:
        """Takes rows, which are on disk when this returns: microseconds since 1970, and the readings in the
        order of the table's columns, in the form of a spool. A text with a NUL, which PostgreSQL cannot hold,
        is no reading, and an event."""
        self._spool.put([(time, self._without_nul(time, content)) for time, content in rows])
        self.figures.spooled = self._spool.depth
        self.figures.thinned = self._spool.thinned
        if self.figures.oldest == 0:
            self.figures.oldest = rows[0][0]
        self._sender.wake()

    def _without_nul(self, time: int, content: Content) -> Content:
        # JSON escapes it; a text with a backslash may look alike
        text = text_of(content)
        if not (_NUL in text if isinstance(text, str) else _NUL.encode() in text):
            return content
        readings = [*restored(content)]
        for index, reading in enumerate(readings):
            if isinstance(reading, str) and "\0" in reading:
                message = f"{self.table.columns[index].name}: a text with a NUL cannot be stored"
                self.note("unfit", time, message)
                readings[index] = None
        return stored(readings)

    def note(
        self, kind: str, time: int, message: str, until: int | None = None, rows: int | None = None
    ) -> None:
        """Takes an event, from `time` to `until` in microseconds since 1970."""
        self._spool.note(kind, time, message, until, rows)

    @property
    def began(self) -> bool:
        """Whether the position of the server's ring is known."""
        return self._began.is_set()

    @property
    def latest(self) -> datetime | None:
        """The time of the latest row, here or, once `began`, on the server."""
        return None if self._spool.time is None else moment_of(self._spool.time)

    @property
    def waiting(self) -> int:
        """Rows not yet acknowledged."""
        return self._spool.depth

    def drain(self, seconds: float) -> bool:
        """Waits until the server has every row; False if it does not get them in time, or cannot be reached.
        A broken connection is opened again first."""
        until = time.monotonic() + seconds
        while self.waiting and self._thread.is_alive() and not self._connection.gone:
            if time.monotonic() > until:
                break
            time.sleep(0.005)
        return not self.waiting

    def close(self, grace: float = GRACE) -> None:
        """Sends waiting rows at once, for at most so many seconds, and ends within the same time again. Logs
        a warning about rows that remain in the spool."""
        self._sender.collect = 0.0
        self._sender.wake()
        self.drain(grace)
        self._stop.set()
        self._sender.wake()
        self._thread.join(grace)
        if waiting := self.waiting:
            rows = "1 row waits" if waiting == 1 else f"{waiting} rows wait"
            log.warning("%s: %s in %s for the next writer", self.table.name, rows, self._spool.file)
        # a thread that still waits for an answer uses the spool; the row is sent again next time
        if not self._thread.is_alive():
            self._connection.close()
            self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _made_sender(self, zone: ZoneInfo, acknowledged: Callable[[int, datetime], None] | None) -> Sender:
        return Sender(self._spool, self.table, zone, self._connection, self.figures, acknowledged)

    def _run(self) -> None:
        try:
            with suppress(Released):
                self._send()
            if self.began and not self._connection.gone:
                self._spool.settle()
                self._sender.end()
        except Exception as error:
            self.error = error
            if not isinstance(error, Failed):
                self.figures.message = f"{type(error).__name__}: {error}"
            self._sender.release()
        if self._ended:
            self._ended()

    def _send(self) -> None:
        """Sends rows until it is time to end. Raises Failed, Released."""
        self._sender.begin(self._take_over)
        self._began.set()
        due = time.monotonic()
        while not self._stop.is_set():
            if time.monotonic() >= due:
                more = self._sender.report()
                due = time.monotonic() + (0.0 if more else _REPORT_EVERY)
            self._sender.step(max(0.0, due - time.monotonic()))

    def _sleep(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Released


def spool_file(folder: Path, address: Address, table: str) -> Path:
    """The file of a table's spool, one for each server."""
    server = ",".join(f"{one.host}-{one.port}" for one in address.each)
    server += f"-{address.database}" if address.database else ""
    return folder / server / f"{table}.spool"
