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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import psycopg
from psycopg import errors, sql

from ringlog.history.summaries.making_spans import VALUES, make_cold, make_part, oldest
from ringlog.history.summaries.span_numbers import begin_at, number_at, runs_of, times_of, unique
from ringlog.history.summaries.summary_table import (
    Bounds,
    SummaryTable,
    reached,
    summary_table,
    summary_tables,
)
from ringlog.schema import locks, session
from ringlog.schema.catalogue import MAY_LOOK, WEEKS, has_pages
from ringlog.schema.layout import EARLIEST, LOG_TABLES, OWNER
from ringlog.schema.many import by_connection
from ringlog.schema.moments import microseconds
from ringlog.schema.relations import closed
from ringlog.schema.sql_files import sql_file
from ringlog.schema.trusted_clock import JUMP

log = logging.getLogger(__name__)

ENOUGH = 10
"""Shortest spans that must be over before a round writes."""

PATIENCE = 5.0  # seconds of waiting for running transactions


class Turn(Enum):
    """How `summarise` takes the lock of the process that makes summaries."""

    AWAITED = "it waits while another process makes summaries"
    SKIPPED = "it does nothing then"
    HELD = "the caller has the lock"


_CLOCK = "select least(now(), (select trusted + %s from ringlog.housekeeping))"
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
                for table in summary_tables(worker, some):
                    rows, whole = _summarise_readable(
                        worker, conninfo, table, moment, enough, stopped, held_up
                    )
                    if not whole:
                        failed.append(table.name)
                    if rows:
                        done[table.name] = rows
        with connection.transaction():
            connection.execute(sql.SQL("set local role {}").format(sql.Identifier(OWNER)))
            repaired = "delete from ringlog.damage where work = 'summaries' and table_name <> all(%s)"
            connection.execute(repaired, [failed])
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


def _summarise_readable(
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
        table = replace(table, until=reached(connection, table.name), damaged=(*weeks,))
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
    """The tables that may have spans to summarise, for `summary_tables`; usually few of thousands."""
    query = sql_file(__file__, "summarising_due").format(has_pages=has_pages("inhrelid", may_look))
    return connection.execute(
        query,
        {"enough": enough, "now": now, "earliest": EARLIEST},
    ).fetchall()


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
    end = begin_at(now - shortest, table.levels[0])  # a span late, since the writers' clocks may differ
    begin = table.until
    if begin is None:
        begin = max(EARLIEST, begin_at(oldest(connection, table, EARLIEST, end) or end, table.levels[-1]))
    until = end if table.until is None else min(begin, end)
    rows = _summarise_cold(connection, conninfo, table, until, stopped)
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
        upto = min(end, begin_at(reach + step, table.levels[0]))
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read")
            made = _make(connection, table, begin, upto, earlier)
        rows += made
        if upto == end:
            break
        begin = reach = earlier = upto
        if not made:  # two rows may be years apart
            following = oldest(connection, table, begin, end) or end
            reach = max(begin, min(end, begin_at(following, table.levels[0])))
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
    from ringlog.history.archive.folder import Damaged  # needs the extra `history`

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
                for part, marked, is_new in table.as_it_is(connection).parts(taken):
                    runs = [*runs_of(marked)]
                    if table.until is None and is_new:
                        runs = [(number_at(begins, level), number_at(ends, level))]
                    rows += make_cold(connection, conninfo, part, runs, end)
        except Damaged as error:
            if str(error) not in _logged:
                _logged.add(str(error))
                log.error("summaries of %s do not have the rows that arrived since: %s", file, error)
    return rows


def reach(conninfo: str, name: str, end: datetime) -> None:
    """Begins the summaries of a table without rows before `end`, so that those of older rows can be
    entered: see `enter_spans`. Waits for the process that makes summaries."""
    with connected(conninfo) as connection:
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
        table = summary_table(connection, name)
        if table is None or (table.until is not None and table.until >= end):
            return
        if table.until is None and oldest(connection, table, EARLIEST, end) is None:
            begin = "update ringlog.summarised set until = %s where table_name = %s and until is null"
            connection.execute(begin, [EARLIEST, name])
    summarise(conninfo, enough=1)


def _closed(connection: psycopg.Connection, table: SummaryTable, end: datetime, patience: float) -> bool:
    """From now on rows before `end` are marked. Returns False if older transactions do not end in time."""
    moment = microseconds(end)
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
    marked = unique(number for number, _ in taken)
    # a table whose summaries begin again may have marks of other spans
    late = (
        [(EARLIEST, _FOREVER)]
        if earlier is None
        else times_of(marked[marked >= number_at(EARLIEST, level)], level)
    )
    closed.reopen(connection, table.name, late)
    first, last = number_at(begin, level), number_at(end, level)
    rows = 0
    for part, marked, is_new in table.as_it_is(connection).parts(taken):
        marked = marked[(marked < first) & (marked >= number_at(EARLIEST, level))]
        rows += make_part(connection, part, marked, first, last if is_new else first, earlier, end)
    for week in table.damaged:
        connection.execute(
            "insert into ringlog.summary_mark select %s, moment"
            " from generate_series(%s::timestamptz, %s::timestamptz - interval '1 us', %s) as moment",
            [table.name, max(begin, week.start), min(end, week.end), timedelta(seconds=level)],
        )
    connection.execute("update ringlog.summarised set until = %s where table_name = %s", [end, table.name])
    return rows


def _row(connection: psycopg.Connection, query: str, *values: object) -> tuple[Any, ...]:
    row = connection.execute(query, values or None).fetchone()
    assert row is not None
    return row
