"""Maintains the summaries of the logs: makes them when a span is over, and again when a row arrived late.

A round for a table advances its sequence summary.<table>_until: from then on the put procedures mark each row
before that time (ringlog.summary_mark). They read the sequence after storing the row, so once the running
transactions have ended, every row of those times is stored or will be marked. Then one transaction with one
snapshot computes the spans of the rows and of the marks, longer ones from shorter ones, records the progress
(ringlog.summarised) and deletes the marks. A kill at any moment rolls that transaction back. Marks that
arrive meanwhile are left for the next round.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
from psycopg import errors, sql
from psycopg.types.range import Range

from ringlog.history import blocks, sample_spans, waveforms
from ringlog.history.copying import copied, copied_waveforms
from ringlog.history.spans import Spans, combined, of_rows
from ringlog.schema import catalogue, closed, locks, session
from ringlog.schema.believed import JUMP
from ringlog.schema.catalogue import MAY_LOOK, WEEKS, has_pages
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import KEY_COLUMNS
from ringlog.schema.layout import BLOCK, EARLIEST, LOG_TABLES, OWNER
from ringlog.schema.many import by_connection

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

ENOUGH = 10
"""Shortest spans that must be over before a round writes."""

VALUES = 1_000_000
"""approximate number of values in memory at once"""

NEAR = 100
"""The most values between two spans that are read with them."""

SIGNALS = 2000
"""the most signals of samples that are summarised together"""

PATIENCE = 5.0  # seconds of waiting for running transactions


class Turn(Enum):
    """How `summarise` takes the lock of the process that makes summaries."""

    AWAITED = "it waits while another process makes summaries"
    SKIPPED = "it does nothing then"
    HELD = "the caller has the lock"


_CLOCK = "select least(now(), (select believed + %s from ringlog.housekeeping))"
"""PostgreSQL's clock, unless it has jumped ahead: spans would end early, and their rows be late. See
ringlog.schema.clock."""

_ONLINE = (
    "not exists (select from ringlog.cold_week as week where week.table_name = mark.table_name"
    " and recalled_until is null and begins <= mark.time and mark.time < ends)"
)
"""Marks of weeks that are not in the archive."""

_READABLE = "not (mark.time <@ any(%s::tstzrange[]))"
"""Marks outside damaged weeks."""

_NUMBER = "floor(extract(epoch from time) * 1000000 / %s)::bigint / 1000000"
"""The number of the span of a time, for a length in seconds."""

_FOREVER = datetime.max.replace(tzinfo=UTC)

_logged: set[str] = set()
"""Damages that are already in the log of the process."""

AGAIN = 3600.0
"""Seconds until a damaged week is tried again."""

_damaged: dict[tuple[str, str], dict["Bounds", float]] = {}
"""By server and table: the unreadable weeks, and the time of the next try."""


@dataclass(frozen=True, order=True)
class Bounds:
    """A week of a log."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class SummaryTable:
    """A table with its summarised columns and how far its summaries are."""

    name: str
    levels: tuple[int, ...]
    until: datetime | None
    cycle: float
    """seconds from row to row; of samples the shortest span"""
    numbers: dict[str, ColumnType]
    """Columns of single numbers."""
    waveforms: dict[str, ColumnType]
    single: bool
    """whether the summaries have single precision"""
    kept_from: datetime
    """time before which rows are past retention"""
    dropped_until: datetime | None
    """time before which rows were dropped by a former retention, most of them"""
    damaged: tuple[Bounds, ...] = ()
    """unreadable weeks, in order: their spans are marked until they can be read"""
    signals: tuple[int, ...] | None = None
    """numbers of its signals, ascending, where it is a table of samples"""

    @property
    def unreadable(self) -> list[Range[datetime]]:
        return [Range(week.start, week.end) for week in self.damaged]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the summarised columns."""
        if self.signals is not None:
            return tuple(f"{number}{what}" for what in ("", sample_spans.SEVERITY) for number in self.signals)
        return (*self.numbers, *(name for column in self.waveforms for name in waveforms.names(column)))

    def read(self, connection: psycopg.Connection, level: int, numbers: np.ndarray) -> Spans:
        """The stored ones of these spans."""
        are_rows = self.signals is None
        spans = blocks.read(connection, self.name, level, self.columns, numbers, are_rows=are_rows)
        return spans if are_rows else sample_spans.filled(spans)

    def store(self, connection: psycopg.Connection, level: int, spans: Spans) -> Spans:
        """Stores spans. Returns all spans of their blocks."""
        are_rows = self.signals is None
        if not are_rows:
            spans = sample_spans.without_alarms(spans)
        stored = blocks.store(
            connection, self.name, level, self.columns, spans, self.single, are_rows=are_rows
        )
        return stored if are_rows else sample_spans.filled(stored)

    def with_signals(self, connection: psycopg.Connection) -> "SummaryTable":
        """The same with the signals that it has in this transaction."""
        return self if self.signals is None else replace(self, signals=_signals(connection, self.name))

    def parts(
        self, marks: Iterable[tuple[int, str | None]]
    ) -> Iterator[tuple["SummaryTable", np.ndarray, bool]]:
        """The parts that are summarised one after the other: each with its spans among these marks, which are
        of a column or of all, and whether new spans are made for it."""
        if self.signals is None:
            yield self, _unique(number for number, _ in marks), True
            return
        of_signal: dict[int, set[int]] = {}
        of_all: set[int] = set()
        for number, column in marks:
            (of_all if column is None else of_signal.setdefault(int(column), set())).add(number)
        for place in range(0, len(self.signals), SIGNALS):
            yield replace(self, signals=self.signals[place : place + SIGNALS]), _unique(of_all), True
        together: dict[frozenset[int], list[int]] = {}
        for signal in sorted({*of_signal} & {*self.signals}):
            together.setdefault(frozenset(of_signal[signal]), []).append(signal)
        for numbers, signals in together.items():
            yield replace(self, signals=(*signals,)), _unique(numbers), False


def summarise(
    conninfo: str,
    now: datetime | None = None,
    stopped: Callable[[], bool] = lambda: False,
    *,
    enough: int = ENOUGH,
    turn: Turn = Turn.AWAITED,
) -> dict[str, int]:
    """Brings the summaries of all tables up to date. Returns the number of rows read, by table.

    `now` is by default PostgreSQL's clock. Tables with fewer new spans than `enough` and without late rows
    are left for a later round. `stopped` is called between transactions. One process at a time does this
    (`turn`).
    """
    done: dict[str, int] = {}
    held_up: list[str] = []
    failed: list[str] = []
    with ExitStack() as stack:
        connection = stack.enter_context(connected(conninfo))
        if turn is not Turn.HELD:
            try:
                stack.enter_context(alone(conninfo, turn))
            except errors.LockNotAvailable:
                return done
        moment: datetime = now or _row(connection, _CLOCK, JUMP)[0]
        (may_look,) = _row(connection, MAY_LOOK)
        if not may_look:
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
        due = _due(connection, moment, enough, may_look)
        for some in by_connection(due):
            with connected(conninfo) as worker:
                worker.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
                for table in _tables(worker, some):
                    rows, whole = _what_can_be_read(worker, conninfo, table, moment, enough, stopped, held_up)
                    if not whole:
                        failed.append(table.name)
                    if rows:
                        done[table.name] = rows
        with connection.transaction():
            connection.execute(sql.SQL("set local role {}").format(sql.Identifier(OWNER)))
            mended = "delete from ringlog.damage where work = 'summaries' and table_name <> all(%s)"
            connection.execute(mended, [failed])
        if held_up:
            log.warning(
                "summaries of %s are not made yet: %s, which may write rows",
                ", ".join(held_up),
                _oldest_transaction(connection),
            )
    return done


@contextmanager
def alone(conninfo: str, turn: Turn) -> Iterator[None]:
    """Holds the lock of summaries. Raises LockNotAvailable if another process holds it and `turn` does not
    wait."""
    with connected(conninfo) as connection, connection.transaction():
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(OWNER)))
        # this transaction is idle for as long as the work takes
        connection.execute("set local idle_in_transaction_session_timeout = 0")
        nowait = sql.SQL(" nowait" if turn is Turn.SKIPPED else "")
        connection.execute(locks.statement(locks.SUMMARIES) + nowait)
        yield


@contextmanager
def connected(conninfo: str) -> Iterator[psycopg.Connection]:
    """A connection with times in UTC. In the database's zone two moments of autumn may have one name, and
    Python takes neither as equal to its moment in UTC (PEP 495)."""
    with session.connect(conninfo, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        yield connection


def _what_can_be_read(
    connection: psycopg.Connection,
    conninfo: str,
    table: SummaryTable,
    now: datetime,
    enough: int,
    stopped: Callable[[], bool],
    held_up: list[str],
) -> tuple[int, bool]:
    """Summarises a table without its damaged weeks, so that other weeks and tables still get summaries.
    Returns the number of rows read, and whether the table is complete."""
    damaged = _damaged.setdefault((conninfo, table.name), {})
    rows = 0
    while True:
        weeks = sorted(week for week, again in damaged.items() if time.monotonic() < again)
        (until,) = _row(connection, "select until from ringlog.summarised where table_name = %s", table.name)
        table = replace(table, until=until, damaged=(*weeks,))
        try:
            rows += _summarise(connection, conninfo, table, now, enough, stopped, held_up)
        except psycopg.Error as error:
            if connection.broken or error.sqlstate is None:
                raise
            week = _note_damage(connection, table.name, error)
            if week is None or week in weeks:
                return rows, False
            damaged[week] = time.monotonic() + AGAIN
            continue
        if not weeks:
            damaged.clear()
        return rows, not weeks


def _note_damage(connection: psycopg.Connection, table: str, error: psycopg.Error) -> Bounds | None:
    """The week that PostgreSQL's error message names."""
    message = " ".join(str(error).split())
    (sentence,) = _row(connection, "select ringlog.note_damage('summaries', %s, %s)", table, message)
    if sentence not in _logged:
        _logged.add(sentence)
        log.error("%s", sentence)
    found = connection.execute(
        f"""
        select cast(bounds[1] as timestamptz), cast(bounds[2] as timestamptz)
        from {WEEKS}
        where child.oid = ringlog.damaged_place(%s)::regclass and inhparent = %s::regclass
          and bounds is not null
        """,
        [message, sql.Identifier(LOG_TABLES, table).as_string()],
    ).fetchone()
    return Bounds(*found) if found else None


def _due(connection: psycopg.Connection, now: datetime, enough: int, may_look: bool) -> list[tuple[Any, ...]]:
    """The tables that may have spans to summarise, for `_tables`; usually few of thousands."""
    return connection.execute(
        """
        select table_name, levels, until, period,
          greatest(%(now)s::timestamptz - retention::interval, %(earliest)s),
          (select dropped.until from ringlog.dropped where dropped.table_name = summarised.table_name)
        from ringlog.summarised
        join (
          select table_name, coalesce(log_period, cycle * log_nth) as period, retention
          from ringlog.logged_table
          union all
          select table_name, null, retention from ringlog.sample_table
        ) as known using (table_name)
        where levels <> '{}'
          and (
            until + %(enough)s * levels[1] * interval '1 second' <= %(now)s
            or exists (
              select from ringlog.summary_mark as mark where mark.table_name = summarised.table_name
            )
            -- none yet: the log has, or had, rows, or weeks of it are in the archive
            or until is null and exists (
              select from pg_inherits
              where inhparent = to_regclass(format('weeks.%%I', summarised.table_name))
                and """
        + has_pages("inhrelid", may_look)
        + """
            )
            or until is null and exists (
              select from ringlog.cold_week as week where week.table_name = summarised.table_name
            )
          )
        order by table_name
        """,
        {"enough": enough, "now": now, "earliest": EARLIEST},
    ).fetchall()


def summarised_columns(connection: psycopg.Connection, table: str) -> dict[str, ColumnType]:
    """The columns of a log that are summarised: numbers, and waveforms of numbers."""
    stored = catalogue.columns(connection, sql.Identifier(LOG_TABLES, table))
    types = {column: ColumnType.of_postgresql(kind) for column, kind in stored.items()}
    return {
        column: kind
        for column, kind in types.items()
        if kind is not None and (kind.is_fixed or kind.is_packed) and column not in KEY_COLUMNS
    }


def _tables(connection: psycopg.Connection, due: Iterable[tuple[Any, ...]]) -> Iterator[SummaryTable]:
    """These tables with their columns, which are looked up one table at a time."""
    for name, levels, until, period, kept_from, dropped_until in due:
        columns = {} if period is None else summarised_columns(connection, name)
        arrays = catalogue.columns(connection, sql.Identifier("summary", name))
        table = SummaryTable(
            name,
            tuple(levels),
            until,
            period or levels[0],
            {column: kind for column, kind in columns.items() if kind.is_fixed},
            {column: kind for column, kind in columns.items() if kind.is_packed},
            arrays["min"] == "real[]",
            kept_from,
            dropped_until,
            signals=_signals(connection, name) if period is None else None,
        )
        if table.columns:
            yield table


def _signals(connection: psycopg.Connection, table: str) -> tuple[int, ...]:
    query = "select number from ringlog.sample_signal where table_name = %s order by number"
    return tuple(number for (number,) in connection.execute(query, [table]))


def _summarise(
    connection: psycopg.Connection,
    conninfo: str,
    table: SummaryTable,
    now: datetime,
    enough: int,
    stopped: Callable[[], bool],
    held_up: list[str],
) -> int:
    shortest = timedelta(seconds=table.levels[0])
    end = _floor(now - shortest, table.levels[0])  # a span late, since the writers' clocks may differ
    begin = table.until
    if begin is None:
        begin = max(EARLIEST, _floor(_oldest(connection, table, EARLIEST, end) or end, table.levels[-1]))
    reached = end if table.until is None else min(begin, end)
    rows = _summarise_cold(connection, conninfo, table, reached, stopped)
    (marked,) = _row(
        connection,
        "select exists (select from ringlog.summary_mark as mark where table_name = %s and time < %s and "
        + f"{_ONLINE} and {_READABLE})",
        table.name,
        min(begin, end),
        table.unreadable,
    )
    if end - begin < enough * shortest and not (marked and end > EARLIEST):
        return rows
    end = max(begin, end)
    # after one table has waited too long for open transactions, the others do not wait again
    if not _closed(connection, table, end, 0.0 if held_up else PATIENCE):
        held_up.append(table.name)
        return rows
    step = max(timedelta(seconds=VALUES / len(table.columns) * table.cycle), shortest)
    reach, earlier = begin, table.until
    while not stopped():
        upto = min(end, _floor(reach + step, table.levels[0]))
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read")
            made = _make(connection, table, begin, upto, earlier)
        rows += made
        if upto == end:
            break
        begin = reach = earlier = upto
        if not made:  # two rows may be years apart
            following = _oldest(connection, table, begin, end) or end
            reach = max(begin, min(end, _floor(following, table.levels[0])))
    return rows


def _summarise_cold(
    connection: psycopg.Connection,
    conninfo: str,
    table: SummaryTable,
    end: datetime,
    stopped: Callable[[], bool],
) -> int:
    """Summarises weeks in the archive: spans with late rows, or all after a change of levels. Returns the
    number of rows read."""
    level = table.levels[0]
    weeks = connection.execute(
        "select begins, ends, file from ringlog.cold_week as week"
        " where table_name = %s and recalled_until is null and (rows > 0 or %s) and begins < %s"
        " and (%s or exists ("
        "   select from ringlog.summary_mark as mark where mark.table_name = week.table_name"
        "   and mark.time >= begins and mark.time < ends)) order by begins",
        [table.name, table.until is not None, end, table.until is None],
    ).fetchall()
    if not weeks:
        return 0
    from ringlog.history.folder import Damaged  # needs the extra `history`

    rows = 0
    for begins, ends, file in weeks:
        if stopped():
            break
        try:
            with connection.transaction():
                connection.execute("set transaction isolation level repeatable read")
                taken = connection.execute(
                    "delete from ringlog.summary_mark where table_name = %s and time >= %s and time < %s"
                    f" returning {_NUMBER}, column_name",
                    [table.name, begins, min(ends, end), level],
                ).fetchall()
                for part, marked, is_new in table.with_signals(connection).parts(taken):
                    runs = [*_runs(marked)]
                    if table.until is None and is_new:
                        runs = [(_number(begins, level), _number(ends, level))]
                    rows += _make_cold(connection, conninfo, part, runs, end)
        except Damaged as error:
            if str(error) not in _logged:
                _logged.add(str(error))
                log.error("summaries of %s do not have the rows that came since: %s", file, error)
    return rows


def _make_cold(
    connection: psycopg.Connection,
    conninfo: str,
    table: SummaryTable,
    runs: Iterable[tuple[int, int]],
    end: datetime,
) -> int:
    """Makes runs of spans of a week in the archive. Returns the number of rows read."""
    rows = 0
    changed = [np.empty(0, np.int64)]
    at_once = _spans_at_once(table)
    for start, stop in runs:
        for first in range(start, stop, at_once):
            count, spans = _of_all_tiers(conninfo, table, first, min(stop, first + at_once))
            rows += count
            if spans is not None:
                table.store(connection, table.levels[0], spans)
                changed.append(spans.numbers)
    _make_longer(connection, table, np.unique(np.concatenate(changed)), end, end)
    return rows


def _spans_at_once(table: SummaryTable) -> int:
    return max(1, int(VALUES / len(table.columns) * table.cycle / table.levels[0]))


def _of_all_tiers(conninfo: str, table: SummaryTable, start: int, stop: int) -> tuple[int, Spans | None]:
    """As _of_the_log, including the rows in the archive."""
    from ringlog.history import sampled
    from ringlog.history.reading import read

    level = table.levels[0]
    times, parts = [], []
    bounds = [blocks.EPOCH + timedelta(seconds=number * level) for number in (start, stop)]
    if table.signals is not None:
        batches = sampled.every(conninfo, table.name, table.signals, *bounds)
        return sample_spans.spans_of(map(sample_spans.of_batch, batches), table.signals, level)
    for batch in read(conninfo, table.name, [*table.numbers, *table.waveforms], *bounds):
        times.append(batch["time"].cast("int64").to_numpy())
        parts.append(_scalars(table, batch))
    if not any(map(len, times)):
        return 0, None
    every = np.concatenate(times)
    return len(every), of_rows(
        every // (level * 1_000_000), *(np.concatenate(each) for each in zip(*parts, strict=True))
    )


def _scalars(table: SummaryTable, batch: "pa.RecordBatch") -> waveforms.Scalars:
    """The summarised values of a batch's rows, and the mask of the nulls."""
    if not table.waveforms and not any(batch[name].null_count for name in table.numbers):
        numbers = np.empty((batch.num_rows, len(table.numbers)), order="F")
        for place, name in enumerate(table.numbers):
            numbers[:, place] = batch[name].to_numpy(zero_copy_only=False)
        return numbers, np.zeros(numbers.shape, bool)
    columns = [batch[name].cast("float64", safe=False) for name in table.numbers]
    values = [column.to_numpy(zero_copy_only=False)[:, None] for column in columns]
    nulls = [column.is_null().to_numpy(zero_copy_only=False)[:, None] for column in columns]
    scalars = [waveforms.of_lists(batch[name]) for name in table.waveforms]
    return _side_by_side([*zip(values, nulls, strict=True), *scalars])


def spans_of(table: SummaryTable, batch: "pa.RecordBatch") -> Spans:
    """The shortest spans of a batch of the log's rows, ordered by time."""
    numbers = batch["time"].cast("int64").to_numpy() // (table.levels[0] * 1_000_000)
    return of_rows(numbers, *_scalars(table, batch))


def summary_table(connection: psycopg.Connection, name: str) -> SummaryTable | None:
    """A table as its summaries are; None: it has none."""
    found = connection.execute(
        "select table_name, levels, until, coalesce(log_period, cycle * log_nth), %s, null"
        " from ringlog.summarised join ringlog.logged_table using (table_name)"
        " where table_name = %s and levels <> '{}'",
        [EARLIEST, name],
    ).fetchall()
    return next(_tables(connection, found), None)


def reach(conninfo: str, name: str, end: datetime) -> None:
    """Has the summaries of a table without rows before `end` begin, so that those of older rows can be
    entered: see `enter_spans`. Waits for the process that makes summaries."""
    with connected(conninfo) as connection:
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
        table = summary_table(connection, name)
        if table is None or (table.until is not None and table.until >= end):
            return
        if table.until is None and _oldest(connection, table, EARLIEST, end) is None:
            begin = "update ringlog.summarised set until = %s where table_name = %s and until is null"
            connection.execute(begin, [EARLIEST, name])
    summarise(conninfo, enough=1)


def enter_spans(connection: psycopg.Connection, table: SummaryTable, parts: Iterable[Spans]) -> None:
    """Stores the shortest spans of rows that come into the archive by another way than the log, in place of
    those that there are, and makes the longer ones, up to where the summaries are. The caller has the lock of
    summaries."""
    (until,) = _row(connection, "select until from ringlog.summarised where table_name = %s", table.name)
    shortest, *longer = table.levels
    changed, made = [], []
    waiting: list[Spans] = []
    # those that are whole in a block of the shortest need not read it again
    is_whole = bool(longer) and until is not None and BLOCK[shortest] * shortest % longer[0] == 0
    for spans in parts:
        stored = table.store(connection, shortest, spans)
        changed.append(spans.numbers)
        if is_whole:
            factor = longer[0] // shortest
            over = _number(until, longer[0])
            numbers = spans.numbers // factor
            of_part = combined(stored, factor)
            waiting.append(of_part.chosen(np.isin(of_part.numbers, numbers[numbers < over])))
            if sum(map(len, waiting)) * len(table.columns) > VALUES:
                made.append(_stored_together(connection, table, longer[0], waiting))
                waiting = []
    if any(map(len, waiting)):
        made.append(_stored_together(connection, table, longer[0], waiting))
    if changed and until is not None:
        numbers_of = {longer[0]: np.unique(np.concatenate(made))} if made else {}
        _make_longer(connection, table, np.unique(np.concatenate(changed)), None, until, numbers_of)


def _stored_together(
    connection: psycopg.Connection, table: SummaryTable, level: int, parts: Sequence[Spans]
) -> np.ndarray:
    """Stores spans. Returns their numbers."""
    spans = Spans.together(parts)
    table.store(connection, level, spans)
    return spans.numbers


def _side_by_side(columns: list[waveforms.Scalars]) -> waveforms.Scalars:
    """Values and the mask of the nulls of some columns, extended to all columns."""
    values, nulls = zip(*columns, strict=True)
    return np.concatenate(values, axis=1), np.concatenate(nulls, axis=1)


def _oldest(
    connection: psycopg.Connection, table: SummaryTable, since: datetime, end: datetime
) -> datetime | None:
    """The time of the first row from `since` on and before `end`, at most in the year 9999, where Python's
    times end. An unreadable week counts as one with rows."""
    for week in table.damaged:
        if since < week.end and week.start < end:
            start = max(since, week.start)
            return (
                _oldest(connection, replace(table, damaged=()), since, start) if since < start else None
            ) or start
    query = sql.SQL(
        'select "time" from {} where "time" >= {} and "time" < {} order by "time" limit 1'
    ).format(sql.Identifier(LOG_TABLES, table.name), sql.Literal(since), sql.Literal(end))
    found = connection.execute(query).fetchone()
    return found[0] if found else None


def _closed(connection: psycopg.Connection, table: SummaryTable, end: datetime, patience: float) -> bool:
    """Has rows before `end` marked from now on. Returns False if older transactions do not end in time."""
    moment = (end - blocks.EPOCH) // timedelta(microseconds=1)
    sequence = sql.Identifier("summary", f"{table.name}_until")
    with connection.transaction():
        connection.execute(
            "select setval(%s::regclass, greatest(%s, pg_sequence_last_value(%s::regclass)))",
            [sequence.as_string(), moment, sequence.as_string()],
        )
    (running,) = _row(connection, "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
    end_of_wait = time.monotonic() + patience
    while True:
        (oldest,) = _row(connection, "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        if oldest >= running:
            return True
        if time.monotonic() > end_of_wait:
            return False
        time.sleep(0.01)


def _oldest_transaction(connection: psycopg.Connection) -> str:
    """A description of the oldest open transaction that has written."""
    found = connection.execute(
        "select pid, xact_start from pg_stat_activity where backend_xid is not null"
        " order by age(backend_xid) desc limit 1"
    ).fetchone()
    if found is None:
        return "a transaction of PostgreSQL was open"
    return (
        f"process {found[0]} of PostgreSQL has had a transaction open since {found[1]:%Y-%m-%d %H:%M:%S} UTC"
    )


def _make(
    connection: psycopg.Connection,
    table: SummaryTable,
    begin: datetime,
    end: datetime,
    earlier: datetime | None,
) -> int:
    """Makes the spans from `begin` to `end`, and earlier ones with marks. Returns the number of rows read.

    `earlier` is as in _make_longer.
    """
    # locked before the snapshot is taken, so that no week is dropped or moved until the transaction ends
    connection.execute(locks.wait_for_change(table.name))
    level = table.levels[0]
    taken = connection.execute(
        "delete from ringlog.summary_mark as mark where table_name = %s and time < %s and "
        + f"{_ONLINE} and {_READABLE} returning {_NUMBER}, column_name",
        [table.name, end, table.unreadable, level],
    ).fetchall()
    marked = _unique(number for number, _ in taken)
    # a table that begins anew may have marks of other spans
    late = (
        [(EARLIEST, _FOREVER)]
        if earlier is None
        else _times(marked[marked >= _number(EARLIEST, level)], level)
    )
    closed.reopen(connection, table.name, late)
    first, last = _number(begin, level), _number(end, level)
    rows = 0
    for part, marked, is_new in table.with_signals(connection).parts(taken):
        marked = marked[(marked < first) & (marked >= _number(EARLIEST, level))]
        rows += _make_part(connection, part, marked, first, last if is_new else first, earlier, end)
    for week in table.damaged:
        connection.execute(
            "insert into ringlog.summary_mark select %s, moment"
            " from generate_series(%s::timestamptz, %s::timestamptz - interval '1 us', %s) as moment",
            [table.name, max(begin, week.start), min(end, week.end), timedelta(seconds=level)],
        )
    connection.execute("update ringlog.summarised set until = %s where table_name = %s", [end, table.name])
    return rows


def _make_part(
    connection: psycopg.Connection,
    table: SummaryTable,
    marked: np.ndarray,
    first: int,
    last: int,
    earlier: datetime | None,
    end: datetime,
) -> int:
    """Makes the spans from `first` to before `last`, and the marked ones. Returns the number of rows read."""
    level = table.levels[0]
    rows = 0
    changed: list[np.ndarray] = [marked]
    # nearby runs are joined: reading the spans between them takes less time than another run
    near = int(NEAR / len(table.columns) * table.cycle / level)
    damaged = [(_number(week.start, level), _number(week.end, level)) for week in table.damaged]
    cold = sorted([*_cold(connection, table), *damaged])
    runs = [run for each in _runs(marked, max(1, near)) for run in _online(cold, *each)]
    most = _spans_at_once(table)
    for part in _together([*runs, *_online(cold, first, last)], most):
        while part:
            count, spans = _of_the_log(
                connection, table, [(start, min(stop, start + most)) for start, stop in part]
            )
            rows += count
            if spans is not None:
                spans = _that_are_whole(connection, table, spans)
                table.store(connection, level, spans)
                changed.append(spans.numbers)
            # an imported year is one run
            part = [(start + most, stop) for start, stop in part if stop - start > most]
            if part and spans is None:  # two rows may be years apart
                ((after, stop),) = part
                at, past = (blocks.EPOCH + timedelta(seconds=number * level) for number in (after, stop))
                following = _oldest(connection, table, at, past)
                part = [] if following is None else [(max(after, _number(following, level)), stop)]
    _make_longer(connection, table, np.unique(np.concatenate(changed)), earlier, end)
    return rows


def _that_are_whole(connection: psycopg.Connection, table: SummaryTable, spans: Spans) -> Spans:
    """Spans without those whose summaries cannot be made again, because their rows were dropped past
    retention; late rows of that time have no week any more."""
    level = table.levels[0]
    begin, last = (blocks.EPOCH + timedelta(seconds=int(spans.numbers[at]) * level) for at in (0, -1))
    gone = np.empty(0, np.int64)
    if table.dropped_until is not None and begin < table.dropped_until:
        gone = spans.numbers[spans.numbers < _number(table.dropped_until, level)]
    if begin < table.kept_from:
        query = sql.SQL(
            "select distinct floor(extract(epoch from time) * 1000000 / %s)::bigint / 1000000"
            " from {} where time >= %s and time < %s"
        ).format(sql.Identifier("log", f"{table.name}_default"))
        end = min(last + timedelta(seconds=level), table.kept_from)
        alone = [number for (number,) in connection.execute(query, [level, begin, end])]
        gone = np.union1d(gone, np.array(alone, np.int64))
    if not len(gone):
        return spans
    made = table.read(connection, level, gone)
    return spans.chosen(~np.isin(spans.numbers, made.numbers))


def _cold(connection: psycopg.Connection, table: SummaryTable) -> list[tuple[int, int]]:
    """The spans with rows in the archive: the log has only late rows of them."""
    weeks = connection.execute(
        "select begins, ends from ringlog.cold_week"
        " where table_name = %s and recalled_until is null and rows > 0 order by begins",
        [table.name],
    ).fetchall()
    level = table.levels[0]
    return [(_number(begins, level), _number(ends, level)) for begins, ends in weeks]


def _online(cold: Iterable[tuple[int, int]], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The parts of these spans outside the archive."""
    for start, stop in cold:
        if first < min(start, last):
            yield first, min(start, last)
        first = max(first, stop)
    if first < last:
        yield first, last


def _make_longer(
    connection: psycopg.Connection,
    table: SummaryTable,
    changed: np.ndarray,
    earlier: datetime | None,
    end: datetime,
    made: Mapping[int, np.ndarray] = MappingProxyType({}),
) -> None:
    """The longer spans that have changed or are over, each made from the longest possible shorter spans.

    `earlier` is the end of the spans made before; None: there are none. `made` has the numbers of those that
    are made already, by their level.
    """
    numbers_of = {table.levels[0]: changed, **made}
    for level in [each for each in table.levels[1:] if each not in made]:
        shorter = max(each for each in numbers_of if level % each == 0)
        factor = level // shorter
        numbers = np.unique(numbers_of[shorter] // factor)
        if earlier is not None:
            # of the spans that were begun before `earlier` only one can have ended
            numbers = np.union1d(numbers, [_number(earlier, level)])
        numbers = numbers[(numbers + 1) * level <= (end - blocks.EPOCH).total_seconds()]
        numbers_of[level] = numbers
        for part in np.array_split(numbers, max(1, len(numbers) * factor * len(table.columns) // VALUES)):
            if not len(part):
                continue
            parts = (part[:, None] * factor + np.arange(factor)).reshape(-1)
            spans = table.read(connection, shorter, parts)
            if len(spans):
                table.store(connection, level, combined(spans, factor))


def _of_the_log(
    connection: psycopg.Connection, table: SummaryTable, runs: Sequence[tuple[int, int]]
) -> tuple[int, Spans | None]:
    """Rows and spans of the log for runs of spans, each from one number on and before another."""
    level = table.levels[0]
    bounds = [[blocks.EPOCH + timedelta(seconds=run[end] * level) for run in runs] for end in (0, 1)]
    if table.signals is not None:
        of_runs = (
            sample_spans.of_blocks(connection, table.name, table.signals, *run)
            for run in zip(*bounds, strict=True)
        )
        return sample_spans.spans_of(chain.from_iterable(of_runs), table.signals, level)
    log = sql.Identifier(LOG_TABLES, table.name)
    within = sql.SQL('select logged.* from {} as logged where logged."time" >= {} and logged."time" < {}')
    if len(runs) == 1:
        # constants let the planner exclude the other weeks
        rows = within.format(log, *(sql.Literal(bound) for (bound,) in bounds))
    else:
        rows = sql.SQL(
            "select came.* from unnest({}::timestamptz[], {}::timestamptz[]) as run (start, stop)"
            # offset 0 makes the planner go from run to run
            " cross join lateral ({} offset 0) as came"
        ).format(
            *(sql.Literal(each) for each in bounds),
            within.format(log, sql.Identifier("run", "start"), sql.Identifier("run", "stop")),
        )

    def of(columns: Iterable[str]) -> sql.Composed:
        return sql.SQL('select {} from ({}) as came order by came."time", came.seq_no').format(
            sql.SQL(", ").join(sql.Identifier("came", column) for column in columns), rows
        )

    times, values, nulls = copied(connection, of(["time", *table.numbers]), [*table.numbers.values()])
    if not len(times):
        return 0, None
    # row by row, because the waveforms of one span may exceed the memory
    scalars = [
        waveforms.of_rows(copied_waveforms(connection, of([column]), kind))
        for column, kind in table.waveforms.items()
    ]
    numbers = times // (level * 1_000_000)
    return len(times), of_rows(numbers, *_side_by_side([(values, nulls), *scalars]))


def _unique(numbers: Iterable[int]) -> np.ndarray:
    return np.unique(np.array([*numbers], np.int64))


def _runs(numbers: np.ndarray, near: int = 1) -> Iterator[tuple[int, int]]:
    """Runs of numbers with distances of at most `near`, as the first number and the one after the last."""
    if len(numbers):
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > near) + 1):
            yield int(run[0]), int(run[-1]) + 1


def _times(numbers: np.ndarray, level: int) -> list[tuple[datetime, datetime]]:
    """The runs of these spans as times, from one on and before another."""
    bounds = [[blocks.EPOCH + timedelta(seconds=number * level) for number in run] for run in _runs(numbers)]
    return [(start, stop) for start, stop in bounds]


def _together(runs: Iterable[tuple[int, int]], most: int) -> Iterator[list[tuple[int, int]]]:
    """Groups of consecutive runs with at most `most` spans together; a longer run is a group of its own."""
    together: list[tuple[int, int]] = []
    count = 0
    for start, stop in runs:
        count += stop - start
        if together and count > most:
            yield together
            together, count = [], stop - start
        together.append((start, stop))
    if together:
        yield together


def _floor(moment: datetime, level: int) -> datetime:
    return blocks.EPOCH + timedelta(seconds=_number(moment, level) * level)


def _number(moment: datetime, level: int) -> int:
    return (moment.astimezone(UTC) - blocks.EPOCH) // timedelta(seconds=level)


def _row(connection: psycopg.Connection, query: str, *values: object) -> tuple[Any, ...]:
    row = connection.execute(query, values or None).fetchone()
    assert row is not None
    return row
