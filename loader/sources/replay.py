"""Replay of recordings: a folder with a file for each table, at the recorded or another speed."""

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar
from zoneinfo import ZoneInfo

from ringlog.loader.schedule import SECOND
from ringlog.loader.sources import Note, Row, SourceError, Wait
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Facility, Table
from ringlog.schema.moments import microseconds

BLOCK_ROWS, BLOCK_BYTES = 256, 2**16
"""Limits of a block: rows, and about as many characters of readings; the smallest spool's log has 128 KiB."""


@dataclass(frozen=True)
class Replay(ABC):
    """The files of a folder, at `speed` times the recorded speed; math.inf: as fast as rows are taken."""

    folder: Path
    zone: ZoneInfo
    speed: float = 1.0
    recorded: ClassVar[bool] = True
    suffix: ClassVar[str]
    """of the files: <table>.<suffix>"""
    form: ClassVar[str]
    """the name of the format, for messages"""

    @property
    def unhindered(self) -> bool:
        return math.isinf(self.speed)

    def tables(self, facility: Facility) -> list[Table]:
        """The tables that have a file. Raises SourceError for a file without a table of its name."""
        if not self.folder.is_dir():
            raise SourceError(f"{self.folder} is not a folder of {self.form} files")
        tables = {table.name: table for table in facility.tables}
        files = sorted(self.folder.glob(f"*.{self.suffix}"))
        if not files:
            raise SourceError(
                f"{self.folder} has no {self.form} file: one is needed for each table, <table>.{self.suffix}"
            )
        for file in files:
            if file.stem not in tables:
                raise SourceError(f"{file}: the facility has no table {file.stem}")
        return [tables[file.stem] for file in files]

    def check(self, tables: Sequence[Table]) -> None:
        """Reads the files of `tables` to their ends. Raises SourceError naming file and row."""
        for table in tables:
            for _ in self.read(table):
                pass

    def rows(
        self,
        table: Table,
        after: datetime | None,
        wait: Wait,
        statistics: Statistics,
        note: Note | None = None,
    ) -> Iterator[Sequence[Row]]:
        """The rows later than `after`, with the recording's pauses between them."""
        last = None if after is None else microseconds(after)
        start: tuple[float, int] | None = None
        for block in self.read(table):
            rows = [row for row in block if last is None or row.time > last]
            statistics.skipped += len(block) - len(rows)
            while rows:
                if start is None:
                    start = time.monotonic(), rows[0].time
                # by the monotonic clock, so that a change of the wall clock does not delay the recording
                passed = time.monotonic() - start[0]
                wait((rows[0].time - start[1]) / SECOND / self.speed - passed)
                passed = max(0.0, time.monotonic() - start[0]) * SECOND
                # the first one is due, however its wait is rounded
                due = 1
                while due < len(rows) and (rows[due].time - start[1]) / self.speed <= passed:
                    due += 1
                yield rows[:due]
                rows = rows[due:]

    @abstractmethod
    def read(self, table: Table) -> Iterator[Sequence[Row]]:
        """All rows of the table's file, in blocks that a spool takes in one transaction. Raises SourceError
        naming the file and row at fault."""

    def file(self, table: Table) -> Path:
        """The table's file."""
        return self.folder / f"{table.name}.{self.suffix}"


def files_of(folder: Path, table: str, suffix: str) -> Sequence[Path]:
    """<table>.<suffix>, or the files with this suffix in the folder <table>, by name."""
    one = folder / f"{table}.{suffix}"
    return [one] if one.is_file() else sorted((folder / table).glob(f"*.{suffix}"))


def index_of(table: Table, name: str) -> int:
    """The index of a column, by its name or its signal's. Raises ValueError."""
    for index, column in enumerate(table.columns):
        if name in (column.name, column.signal):
            return index
    raise ValueError(f"table {table.name} has no column or signal '{name}'")


def indexes_of(table: Table, names: Sequence[str]) -> list[int]:
    """The indexes of columns. Raises ValueError for one that is unknown or named twice."""
    indexes = [index_of(table, name) for name in names]
    for name, index in zip(names, indexes, strict=True):
        if indexes.count(index) > 1:
            raise ValueError(f"column {name} is named twice")
    return indexes


def in_zone(moment: datetime, text: str, zone: ZoneInfo) -> datetime:
    """A time in UTC; one without a zone is in `zone`. Raises ValueError if it is ambiguous or missing
    there."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
        if moment.utcoffset() != moment.replace(fold=1).utcoffset():
            raise ValueError(
                f"time {text} is ambiguous or does not exist in {zone.key}: write it with its offset"
            )
    return moment.astimezone(UTC)


def below_microseconds(text: str) -> tuple[str, int]:
    """A time's text up to its microseconds, and the nanoseconds below them."""
    found = re.search(r"(?<=[.,]\d{6})\d{1,3}(?!\d)", text)
    if found is None:
        return text, 0
    return text[: found.start()] + text[found.end() :], int(found[0].ljust(3, "0"))


def moment_from(text: str, zone: ZoneInfo) -> datetime:
    """An ISO 8601 time in UTC; without an offset it is meant in `zone`. Raises ValueError."""
    if re.search(r"[.,]\d{6}\d*[1-9]", text):
        raise ValueError(f"time {text} is finer than a microsecond")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text}' is not an ISO 8601 time") from None
    return in_zone(moment, text, zone)
