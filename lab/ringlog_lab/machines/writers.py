"""Writers that record when each of their rows was acknowledged."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle, pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

from psycopg import sql

from ringlog.clients.address import Address
from ringlog.clients.figures import Counts, State
from ringlog.clients.writer import Writer
from ringlog.schema import session
from ringlog.schema.facility_files.facility_file import load_facility


@dataclass
class Rows:
    produced: dict[datetime, int] = field(default_factory=dict)
    """row's time and value"""
    acknowledged: list[tuple[float, datetime]] = field(default_factory=list)
    """time by the monotonic clock, and the row's time"""


class Logged(Counts):
    """Figures that keep the time of each change of a writer's state and trouble."""

    def __init__(self) -> None:
        self.log: list[str] = []
        super().__init__()

    def __setattr__(self, name: str, value: object) -> None:
        if name in {"state", "message"} and value != getattr(self, name):
            now = datetime.now(UTC).time().isoformat("milliseconds")
            self.log.append(f"{now} {value.name if isinstance(value, State) else value}")
        super().__setattr__(name, value)


@dataclass(frozen=True)
class Count:
    """All rows of all writers."""

    produced: int
    acknowledged: int
    lost: int
    """acknowledged, and not in the log with its value"""
    repeated: int


class Writers:
    """One writer per table of the facility, each at the same number of rows per second. The writers begin at
    different gateways."""

    def __init__(
        self,
        urls: Sequence[str],
        password: str,
        facility: Path,
        spool: Path,
        rate: float,
        readings: Mapping[str, float] | None = None,
    ) -> None:
        """`readings` are in every row, in addition to the column `count`."""
        self._readings = dict(readings or {})
        loaded = load_facility(facility)
        addresses = cycle(map(Address.parse, urls))
        self.rows = {table.name: Rows() for table in loaded.tables}
        self._figures = {table.name: Logged() for table in loaded.tables}
        self._stop = threading.Event()
        self._writers = []
        for table in loaded.tables:
            rows = self.rows[table.name]

            def acknowledged(_: int, moment: datetime, rows: Rows = rows) -> None:
                rows.acknowledged.append((time.monotonic(), moment))

            zone = ZoneInfo(loaded.timezone)
            self._writers.append(
                Writer(
                    table.written,
                    zone,
                    next(addresses),
                    password,
                    spool,
                    figures=self._figures[table.name],
                    acknowledged=acknowledged,
                )
            )
        self._threads = [
            threading.Thread(target=self._give, args=(writer, index / rate / len(self._writers), 1 / rate))
            for index, writer in enumerate(self._writers)
        ]
        for thread in self._threads:
            thread.start()

    def _give(self, writer: Writer, first: float, cycle: float) -> None:
        rows = self.rows[writer.table.name]
        due = time.monotonic() + first
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due += cycle
            moment = datetime.now(UTC)
            number = len(rows.produced) + 1
            rows.produced[moment] = number
            writer.put(moment, count=number, **self._readings)

    def log(self) -> str:
        """For each writer, its numbers of rows and the times when its state or its error changed."""
        return "\n".join(
            f"== writer of {name}: {len(self.rows[name].produced)} rows produced, "
            f"{len(self.rows[name].acknowledged)} acknowledged, {writer.waiting} waiting\n"
            + "\n".join(figures.log)
            for (name, figures), writer in zip(self._figures.items(), self._writers, strict=True)
        )

    def wrote_since(self, moment: datetime) -> bool:
        """Whether every writer has an acknowledged row that is younger, and no older row waits."""
        return all(
            rows.acknowledged and rows.acknowledged[-1][1] > moment and writer.waiting < 5
            for rows, writer in zip(self.rows.values(), self._writers, strict=True)
        )

    def pauses(self, begin: float, end: float, tables: Sequence[str] | None = None) -> list[float]:
        """The longest pause between acknowledgements of each writer, or of those of some tables, between two
        moments of the monotonic clock, in seconds."""
        found = []
        for rows in self.rows.values() if tables is None else map(self.rows.__getitem__, tables):
            moments = [moment for moment, _ in list(rows.acknowledged) if begin <= moment <= end]
            found.append(max((b - a for a, b in pairwise(moments)), default=end - begin))
        return found

    def stop(self) -> None:
        """Waits until the server has every row, or for a minute."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for writer in self._writers:
            writer.drain(60)
        for writer in self._writers:
            writer.close()

    def count(self, conninfo_of: Callable[[str], str]) -> Count:
        """Compares every acknowledged row with the log, on the server that has its table."""
        lost = repeated = 0
        for name, written in self.rows.items():
            with session.connect(conninfo_of(name)) as connection:
                # the log may have had rows before
                query = sql.SQL('select "time", "count" from {} where "time" >= %s').format(
                    sql.Identifier("log", name)
                )
                since = min(written.produced, default=datetime.now(UTC))
                rows: Sequence[tuple[datetime, int]] = connection.execute(query, [since]).fetchall()
                found = dict(rows)
                repeated += len(rows) - len(found)
                lost += sum(
                    found.get(moment) != written.produced[moment] for _, moment in written.acknowledged
                )
        return Count(
            sum(len(written.produced) for written in self.rows.values()),
            sum(len({moment for _, moment in written.acknowledged}) for written in self.rows.values()),
            lost,
            repeated,
        )
