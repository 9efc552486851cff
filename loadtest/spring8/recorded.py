"""The records of a load's calls, read from their file during and after the load."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ringlog.loader.ack_log import Acknowledgement
from ringlog.loader.schedule import SECOND
from ringlog.loadtest.calls import RECORD, Kind
from ringlog.loadtest.spring8.results import Calls, TableFigures
from ringlog.schema.facility import Facility
from ringlog.schema.moments import moment_of

Records: TypeAlias = np.ndarray[Any, Any]

# The fields of ringlog.loadtest.calls.Call in the layout of RECORD.
_FIELDS = np.dtype(
    [
        ("kind", "u1"),
        ("answered", "u1"),
        ("table", "<u2"),
        ("number", "<u4"),
        ("begun", "<i8"),
        ("latency", "<u4"),
    ]
)
assert _FIELDS.itemsize == RECORD.size


class Recorded:
    """A file of records that grows; each record is read once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._parts: list[Records] = []
        self._read = 0

    def catch_up(self) -> Records:
        """The records since the last call."""
        if not self._file.exists():
            return np.empty(0, _FIELDS)
        with self._file.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        whole = len(content) // RECORD.size * RECORD.size
        self._read += whole
        new = np.frombuffer(content[:whole], _FIELDS)
        self._parts.append(new)
        return new

    @property
    def all(self) -> Records:
        """All records read so far."""
        return np.concatenate(self._parts) if self._parts else np.empty(0, _FIELDS)


def within(records: Records, begin: int, end: int) -> Records:
    """Those of calls answered between two moments, in microseconds since 1970."""
    answered = records["begun"] + records["latency"]
    chosen: Records = records[(answered >= begin) & (answered < end)]
    return chosen


def of_kind(records: Records, kind: Kind) -> Records:
    chosen: Records = records[records["kind"] == kind]
    return chosen


def well(records: Records) -> Records:
    """The records of successful calls."""
    chosen: Records = records[records["answered"] == 1]
    return chosen


def calls(records: Records) -> Calls:
    latencies = well(records)["latency"] / SECOND
    failed = len(records) - len(latencies)
    if not len(latencies):
        return Calls(0, failed, None, None, None, None)
    p50, p99 = (float(one) for one in np.quantile(latencies, (0.5, 0.99)))
    return Calls(len(latencies), failed, float(latencies.mean()), p50, p99, float(latencies.max()))


def of_tables(records: Records, facility: Facility, seconds: float) -> list[TableFigures]:
    """The figures of each table's writers in so many seconds; tables without a row are omitted."""
    figures = []
    for index, table in enumerate(facility.tables):
        latencies = records[records["table"] == index]["latency"] / SECOND
        if len(latencies):
            figures.append(
                TableFigures(
                    table.name,
                    len(table.columns),
                    len(latencies) / seconds,
                    float(latencies.mean()),
                    float(latencies.max()),
                )
            )
    return figures


def of_columns(records: Records, facility: Facility, columns: int) -> Records:
    """Those of tables with so many data columns."""
    indexes = [index for index, table in enumerate(facility.tables) if len(table.columns) == columns]
    chosen: Records = records[np.isin(records["table"], indexes)]
    return chosen


def values(records: Records, facility: Facility) -> int:
    """The total number of values in the rows of these records."""
    widths = np.array([len(table.columns) for table in facility.tables])
    return int(widths[records["table"]].sum())


def by_second(records: Records, begin: int, seconds: float) -> list[tuple[int, float]]:
    """Rows acknowledged in each second, and the longest time that one of them took."""
    since = (records["begun"] + records["latency"] - begin) // SECOND
    longest = np.zeros(int(np.ceil(seconds)))
    np.maximum.at(longest, np.clip(since, 0, len(longest) - 1), records["latency"] / SECOND)
    counts = np.bincount(np.clip(since, 0, len(longest) - 1), minlength=len(longest))
    return [(int(count), float(most)) for count, most in zip(counts, longest, strict=True)]


def acknowledgements(records: Records) -> Iterator[Acknowledgement]:
    """The keys of acknowledged rows."""
    for number, begun in zip(records["number"].tolist(), records["begun"].tolist(), strict=True):
        yield Acknowledgement(number, moment_of(begun))


def write_csv(records: Records, facility: Facility, file: Path) -> None:
    """All calls, one a line, in the order in which they were recorded."""
    kinds = {int(kind): kind.name.lower() for kind in Kind}
    names = [table.name for table in facility.tables]
    with gzip.open(file, "wt", compresslevel=5, newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["time", "kind", "answered", "table", "seq_no_or_rows_read", "latency_us"])
        for kind, answered, table, number, begun, latency in records.tolist():
            time = moment_of(begun).isoformat(timespec="microseconds")
            writer.writerow([time, kinds[kind], answered, names[table], number, latency])
