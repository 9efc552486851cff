"""SQL over ten years of archived weeks.

The files are synthetic. One table has a row an hour in all of its weeks but the newest, which has a row a
second; another one has one signal, a row a second.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from types import MappingProxyType

import numpy as np
import psutil
import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive.folder import Folder
from ringlog.history.archive.parquet import files
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables, archived_signal, archived_years, write_facility
from ringlog.loadtest.experiment.server import READER, Server, serving
from ringlog.schema import session
from ringlog.schema.layout import OWNER
from ringlog.schema.relations.partitions import Week
from ringlog_lab.bench.history import POINTS, median_time, no_other_summaries, store_spans
from ringlog_lab.record import Figure

_WEEK = timedelta(weeks=1)
_AGO = timedelta(weeks=10)
"""since the end of the newest archived week"""
TABLES = YEARS, SIGNAL = archived_years(), archived_signal()
_DAY = 86_400
_HOUR = 3600
_STARTS = 120.0
"""seconds in which the archive server answers"""


@dataclass(frozen=True)
class Size:
    """The archived weeks of the tables, and the rows of a week with a row a second."""

    weeks: int = 520
    weeks_of_signal: int = 52
    rows: int = 7 * _DAY


def measure_old_weeks(
    folder: Path, size: Size, rounds: int, doing: Callable[[str], None]
) -> Iterator[Figure]:
    """All figures of the part, on a separate server."""
    with _serving(folder, size, doing) as server:
        process = _archive_server(server)
        with session.connect(server.conninfo(READER), autocommit=True) as connection:
            yield from _queries(connection, server.administrator, size, rounds, doing)
        status = Path(f"/proc/{process.pid}/status").read_text()
        (most,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
        yield Figure("memory of the archive server", int(most) * 1024 / 1e6, "MB")


@contextmanager
def _serving(folder: Path, size: Size, doing: Callable[[str], None]) -> Iterator[Server]:
    """A server with the archived weeks, and no row in PostgreSQL."""
    where, facility = folder / "archive", folder / "archive.toml"
    where.mkdir(mode=0o755)
    write_facility(facility, TABLES)
    with facility.open("a") as file:
        file.write(f'[history]\nonline = "8 weeks"\narchive = "{where}"\n')
    with serving(facility, folder / "data", keep=False) as server, no_other_summaries(server):
        for tables, weeks in zip(TABLES, (size.weeks, size.weeks_of_signal), strict=True):
            doing(f"making {weeks} archived weeks of {tables.columns} columns")
            _archive(server.administrator, Folder(str(where)), tables, weeks, size.rows)
        yield server


def _archive_server(server: Server) -> psutil.Process:
    """The process, when it answers. Raises LoadTestError."""
    end = time.monotonic() + _STARTS
    while time.monotonic() < end:
        with suppress(psycopg.OperationalError):
            server.administrator.execute("select 1 from archive.signal_0 limit 1")
            return next(
                child
                for child in server.gateway.children(recursive=True)
                if "ringlog.server.processes.archive_process" in child.cmdline()
            )
        time.sleep(0.1)
    raise LoadTestError("the archive server did not start")


def _queries(
    connection: psycopg.Connection,
    administrator: psycopg.Connection,
    size: Size,
    rounds: int,
    doing: Callable[[str], None],
) -> Iterator[Figure]:
    def took(query: str) -> float:
        return median_time(connection, query.encode(), rounds)

    (table,), (signal,) = (tables.names for tables in TABLES)
    newest = _newest()
    week = f"time >= '{newest.start}' and time < '{newest.end}'"
    few = "time, current_1, current_2"
    doing("reading a week")
    yield Figure(
        "one column of a week", took(f"select time, current_7 from log.{table} where {week}") / 1e3, "s"
    )
    doing("calculating over a year")
    year = f"select count(*), min(current_1), max(current_1), avg(current_1) from archive.{signal}"
    yield Figure("count, min, max, avg of a year of one signal", took(year) / 1e3, "s")
    doing("the trend of all weeks")
    first = newest.end - size.weeks * _WEEK
    _summarise(administrator, table, first, newest.end)
    points = min(POINTS, 7 * size.weeks // 2)  # of two days or more
    trend = f"select * from ringlog.get_trends('{table}/current_1', '{first}', '{newest.end}', {points})"
    yield Figure("a trend of all weeks", took(trend), "ms")
    doing("ten rows")
    for tier in ("in the archive", "in PostgreSQL"):
        if tier == "in PostgreSQL":
            administrator.execute(
                f"insert into weeks.{table} (seq_no, time, current_1)"
                " select n, now() - n * interval '1 second', n from generate_series(1, 20) as n".encode()
            )
        for columns, what in ((few, ""), ("*", ", all columns")):
            newest_rows = f"select {columns} from log.{table} order by time desc limit 10"
            yield Figure(f"the newest ten rows, {tier}{what}", took(newest_rows), "ms")
    for columns, what in ((few, ""), ("*", ", all columns")):
        oldest_rows = f"select {columns} from log.{table} order by time limit 10"
        yield Figure(f"the oldest ten rows{what}", took(oldest_rows), "ms")
    doing("a recent day")
    day = f"select {few} from {{}}.{table} where time >= now() - interval '1 day'"
    explained = [_planned(connection, day.format("log")) for _ in range(rounds)]
    yield Figure("planning a query of a recent day", median(explained), "ms")
    yield Figure(
        "a query of a recent day, more than without the archive",
        took(day.format("log")) - took(day.format("weeks")),
        "ms",
    )


def _planned(connection: psycopg.Connection, query: str) -> float:
    """Milliseconds of PostgreSQL's planning."""
    (found,) = connection.execute(f"explain (summary, format json) {query}".encode()).fetchone() or ([{}],)
    return float(found[0]["Planning Time"])


def _summarise(administrator: psycopg.Connection, table: str, since: datetime, until: datetime) -> None:
    """Synthetic summaries of the first column."""
    (levels,) = administrator.execute(
        "select levels from ringlog.summarised where table_name = %s", [table]
    ).fetchone() or ([],)
    administrator.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
    for level in levels:
        if level >= _HOUR:
            store_spans(administrator, table, YEARS.column_names[:1], level, since, until)
    administrator.execute("update ringlog.summarised set until = now() where table_name = %s", [table])
    administrator.execute("reset role")


def _newest() -> Week:
    return Week.of(datetime.now(UTC) - _AGO)


def _archive(
    administrator: psycopg.Connection, folder: Folder, tables: Tables, weeks: int, rows: int
) -> None:
    (table,) = tables.names
    newest = _newest()
    entries = []
    for ago in range(weeks):
        week = Week(newest.start - ago * _WEEK)
        is_short = tables is YEARS and ago > 0
        seconds, count = (_HOUR, -(-rows // _HOUR)) if is_short else (1, rows)
        entries.append(write_week(folder, table, week, _rows(tables, week, seconds, count)))
    enter_weeks(administrator, table, entries)


Entry = tuple[datetime, datetime, str, int, int, str]
"""A week of the manifest: begin, end, file, rows, bytes, digest of the footer"""


def write_week(
    folder: Folder,
    table: str,
    week: Week,
    batches: Iterator[pa.RecordBatch],
    fields: Mapping[str, pa.Field] = MappingProxyType({}),
) -> Entry:
    """Writes a week's file."""
    name = f"{table}/{week.start:%Gw%V}.parquet"
    with folder.created(name) as stream:
        rows = files.write(stream, batches, {}, fields)
    return week.start, week.end, name, rows, folder.size(name), files.footer(folder, name)


def enter_weeks(administrator: psycopg.Connection, table: str, entries: list[Entry]) -> None:
    """Enters the weeks of a table in the manifest, without the digests of the whole files."""
    with administrator.transaction():
        administrator.execute("select ringlog.view_archive(%s, %s)", [table, table])
        # one statement: each changes the foreign tables
        administrator.execute(
            "insert into ringlog.cold_week (table_name, begins, ends, file, rows, bytes, footer, sha256)"
            " select %s, *, '' from unnest(%s::timestamptz[], %s::timestamptz[], %s::text[], %s::int[],"
            " %s::bigint[], %s::text[])",
            [table, *map(list, zip(*entries, strict=True))],
        )


def _rows(tables: Tables, week: Week, seconds: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Readings that use some of their bits, like those of an ADC, a day at a time."""
    begins = int(week.start.timestamp()) * 10**6
    dice = np.random.default_rng(1)
    length = min(rows, _DAY)
    columns = [np.round(65_536 * dice.random(length, np.float32)) / 64 for _ in range(tables.columns)]
    for first in range(0, rows, length):
        numbers = np.arange(first, min(first + length, rows))
        yield pa.record_batch(
            {
                "seq_no": pa.array(numbers % tables.rows + 1, pa.int32()),
                "time": pa.array(begins + 10**6 * seconds * numbers, pa.timestamp("us", "UTC")),
                **{
                    name: pa.array(column[: len(numbers)])
                    for name, column in zip(tables.column_names, columns, strict=True)
                },
            }
        )
