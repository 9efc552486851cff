"""Ten years of a log: trends from its summaries, and the cost of weeks as files.

The summaries and partitions are synthetic: spans of ten years by COPY (spans shorter than an hour only for
the time whose trends read them), and one row per week in partitions like those of housekeeping.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive.folder import Folder
from ringlog.history.archive.parquet import files
from ringlog.history.summaries import blocks
from ringlog.history.summaries.spans import NAMES, Spans
from ringlog.history.summaries.summarising import Turn, summarise
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import ten_years
from ringlog.loadtest.experiment.server import READER, Server
from ringlog.schema import locks, session
from ringlog.schema.layout import OWNER
from ringlog.schema.relations.partitions import Week
from ringlog_lab.record import Figure

SPANS = {"a day": 1, "a month": 30, "a year": 365, "ten years": 3650}
"""of the trends, in days"""
POINTS = 1000
SIGNALS = (1, 10)
_SHORT = {60: 60, 600: 400, 1200: 400, 1800: 400}
"""Days of these spans."""
_AT_ONCE = 4800  # spans
_HOUR = 3600  # rows

COLUMNS = 100
HALF_ROWS = 252_000
"""of a table of HALF's load (papers/002): 7 hours at 10 Hz, three row groups"""
DAY_ROWS = 86_400
"""of a table written once a second"""
_READ_ROWS = 10_000
"""of a batch, as PostgreSQL's rows are read for a file"""


def measure_history(
    server: Server, folder: str, rounds: int, doing: Callable[[str], None], days: int = 3650
) -> Iterator[Figure]:
    """All figures of the part. `days` is the length of the log."""
    catch_up(server)
    doing("making ten years of summaries")
    table, columns = ten_years().names[0], ten_years().column_names
    with no_other_summaries(server):
        end = _fill(server, table, columns, days)
        doing("trends")
        yield from _trends(server, table, columns, end, rounds)
        doing("summarising")
        yield _summarising(server, table, columns, end)
    doing("files")
    half = partial(half_column, rows=HALF_ROWS)
    yield from _files(folder, "HALF's load", HALF_ROWS, pa.float64(), half, rounds)
    yield from _files(folder, "SPring-8's reals", DAY_ROWS, pa.float32(), _adc, rounds)


def _fill(server: Server, table: str, columns: list[str], days: int) -> datetime:
    administrator = server.administrator
    administrator.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
    now = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = now - timedelta(days=days)
    week = Week.of(since)
    while week.start < Week.of(now).start:
        administrator.execute(
            sql.SQL("create table {} partition of {} for values from ({}) to ({})").format(
                sql.Identifier("log", week.partition(table)),
                sql.Identifier("weeks", table),
                week.start,
                week.end,
            )
        )
        week = Week(week.end)
    values = sql.SQL(", ").join([sql.SQL("extract(epoch from moment) % 100")] * len(columns))
    insert = sql.SQL("insert into {} (seq_no, time, {}) select 1, moment, {}").format(
        sql.Identifier("weeks", table), sql.SQL(", ").join(map(sql.Identifier, columns)), values
    )
    weekly = sql.SQL("{} from generate_series({}, {}, interval '1 week') as moment")
    administrator.execute(weekly.format(insert, since, now - timedelta(seconds=1)))
    # the tail that is not summarised yet
    newest = sql.SQL("{} from generate_series({}, {}, interval '1 second') as moment")
    end = now + timedelta(minutes=10)
    administrator.execute(newest.format(insert, now, end - timedelta(seconds=1)))
    query = "select levels from ringlog.summarised where table_name = %s"
    (levels,) = administrator.execute(query, [table]).fetchone() or ([],)
    for level in levels:
        first = max(since, now - timedelta(days=_SHORT.get(level, days)))
        store_spans(administrator, table, columns, level, first, now)
    administrator.execute("update ringlog.summarised set until = %s where table_name = %s", [now, table])
    administrator.execute("reset role")
    administrator.execute(sql.SQL("vacuum analyze {}").format(sql.Identifier("summary", table)))
    return end


def store_spans(
    connection: psycopg.Connection,
    table: str,
    columns: list[str],
    level: int,
    since: datetime,
    until: datetime,
) -> None:
    dice = np.random.default_rng(level)
    first, last = (int(moment.timestamp()) // level for moment in (since, until))
    for start in range(first + 1, last, _AT_ONCE):
        numbers = np.arange(start, min(start + _AT_ONCE, last))
        shape = (len(numbers), len(columns))
        mean = dice.normal(size=shape)
        of = dict.fromkeys(NAMES, mean) | {"min": mean - 1, "max": mean + 1, "n": np.full(shape, level)}
        of |= {"squares": mean * mean, "nans": np.zeros(shape, int), "nulls": np.zeros(shape, int)}
        with connection.transaction():
            blocks.store(connection, table, level, columns, Spans(numbers, **of), True)


def _trends(server: Server, table: str, columns: list[str], end: datetime, rounds: int) -> Iterator[Figure]:
    with session.connect(server.conninfo(READER), autocommit=True) as connection:
        for title, days in SPANS.items():
            for count in SIGNALS:
                names = ",".join(f"{table}/{column}" for column in columns[:count])
                text = sql.SQL("select * from ringlog.get_trends({}, {}, {}, {})").format(
                    names, end - timedelta(days=days), end, POINTS
                )
                yield Figure(
                    f"trend {count} {title}", median_time(connection, text.as_bytes(connection), rounds), "ms"
                )


def median_time(connection: psycopg.Connection, query: bytes, rounds: int) -> float:
    """Milliseconds until a complete result has arrived, in PostgreSQL's binary form, not decoded."""
    took = []
    for round in range(-2, rounds):
        begun = time.perf_counter()
        result = connection.pgconn.exec_params(query, [], result_format=1)
        if round >= 0:
            took.append((time.perf_counter() - begun) * 1000)
        if not result.ntuples:
            raise LoadTestError(f"no answer: {result.error_message.decode(errors='replace')}")
    return float(np.median(took))


@contextmanager
def no_other_summaries(server: Server) -> Iterator[None]:
    """The server's own housekeeping makes no summaries during this."""
    with session.connect(server.administrator_conninfo) as connection:
        connection.execute(locks.statement(locks.SUMMARIES))
        yield


def catch_up(server: Server) -> None:
    """Makes the missing summaries of other tables, so that they are not measured with this part."""
    while summarise(server.administrator_conninfo, enough=1):
        pass


def _summarising(server: Server, table: str, columns: list[str], end: datetime) -> Figure:
    """Microseconds of CPU, ours and PostgreSQL's, for each row of an hour."""
    insert = sql.SQL(
        "insert into {} (seq_no, time, {}) select 1, moment, {}"
        " from generate_series({}, {}, interval '1 second') as moment on conflict do nothing"
    ).format(
        sql.Identifier("weeks", table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join([sql.SQL("extract(epoch from moment) % 100")] * len(columns)),
        end,
        end + timedelta(hours=1),
    )
    server.administrator.execute(insert)
    before, own = server.mark(), time.process_time()
    made = summarise(server.administrator_conninfo, end + timedelta(hours=2), turn=Turn.HELD)
    spent = server.mark().postgres - before.postgres + time.process_time() - own
    if (rows := made.get(table, 0)) < _HOUR:
        raise LoadTestError("the summaries of an hour could not be made: a transaction has gone on")
    return Figure("summarising a row", spent / rows * 1e6, "µs")


def _files(
    folder: str, title: str, length: int, kind: pa.DataType, column: Callable[[int], np.ndarray], rounds: int
) -> Iterator[Figure]:
    """A table as a file: its size, and the speed of writing and reading it with one core."""
    moments = pa.array(1_794_823_200_000_000 + 100_000 * np.arange(length), pa.timestamp("us", tz="UTC"))
    names = [f"c{number}" for number in range(COLUMNS)]
    values = [pa.array(column(number), kind) for number in range(COLUMNS)]
    seq_nos = pa.array(np.arange(length, dtype=np.int32) % 3000 + 1)
    batch = pa.record_batch([seq_nos, moments, *values], names=["seq_no", "time", *names])
    batches = [batch.slice(start, _READ_ROWS) for start in range(0, length, _READ_ROWS)]
    there = Folder(folder)
    count = length * COLUMNS
    written, whole, single = [], [], []
    for _ in range(rounds):
        begun = time.process_time()
        with there.created("table/2026w47.parquet") as stream:
            files.write(stream, iter(batches), {})
        written.append(count / (time.process_time() - begun))
        begun = time.perf_counter()
        rows = sum(each.num_rows for each in files.read(there, "table/2026w47.parquet"))
        whole.append(rows * COLUMNS / (time.perf_counter() - begun))
        begun = time.perf_counter()
        rows = sum(each.num_rows for each in files.read(there, "table/2026w47.parquet", ["time", "c7"]))
        single.append(rows / (time.perf_counter() - begun))
        if rows != length:
            raise LoadTestError(f"{rows} rows of {length} came back")
    yield Figure(f"file of {title}", there.size("table/2026w47.parquet") / count, "bytes/value")
    yield Figure(f"writing {title}", float(np.median(written)) / 1e6, "M values/s")
    yield Figure(f"reading {title}", float(np.median(whole)) / 1e6, "M values/s")
    yield Figure(f"reading one signal of {title}", float(np.median(single)) / 1e6, "M values/s")


def half_column(number: int, rows: int) -> np.ndarray:
    """HALF's channels: a quarter set points, half of a 16-bit ADC, a quarter with all bits in use."""
    dice, seconds = np.random.default_rng(number), np.arange(rows) / 10
    if number % 4 == 0:
        steps = np.cumsum(dice.random(rows) < 1 / 3000)
        return np.asarray(np.round(dice.uniform(-100, 100) + dice.normal(0, 1, steps[-1] + 1)[steps], 3))
    if number % 4 < 3:
        step = 20 / 65536
        slow = dice.uniform(-8, 8) + 0.2 * np.sin(2 * np.pi * seconds / dice.uniform(100, 2000))
        return np.asarray(np.round((slow + dice.normal(0, 3 * step, rows)) / step) * step)
    return np.asarray(dice.uniform(-50, 50) + np.cumsum(dice.normal(0, 1e-3, rows)))


def _adc(number: int) -> np.ndarray:
    """A magnet's current in steps of a 16-bit ADC: it drifts slowly, and the last bit or two flicker."""
    dice, seconds = np.random.default_rng(number), np.arange(DAY_ROWS)
    step = 1000 / 65536
    slow = dice.uniform(-400, 400) + 0.05 * np.sin(2 * np.pi * seconds / dice.uniform(1000, 20_000))
    return np.asarray(np.round((slow + dice.normal(0, 0.5 * step, DAY_ROWS)) / step) * step)
