"""The weekly partitions of the logs: made ahead, filled from the default partition, set aside after the
retention time (ringlog.schema.relations.dropping).

A week goes from Monday 00:00 UTC to the next; its partition is log.<table>_<year>w<week>, by ISO 8601. The
default partition takes every row without a week, so that no time, however wrong, loses a row. Rows leave it
when their week is made: ahead of time, or because rows wait for it and it is neither in the future nor past
retention. A week that is long over is made only for ENOUGH rows: a device that invents times would make
thousands. Other rows there (of a far future, of a clock never set, older than retention, of weeks with few)
stay until an administrator has dealt with them.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import psycopg
import sqlalchemy as sa
from psycopg import sql

from ringlog.schema import ledger, locks
from ringlog.schema.access.roles import become_owner
from ringlog.schema.catalogue import MAY_LOOK, WEEKS, has_pages
from ringlog.schema.change import ERRORS, cause_of, is_lock_conflict, run, run_all, tried
from ringlog.schema.clock import judge, sure
from ringlog.schema.layout import EARLIEST, LOG_TABLES
from ringlog.schema.many import by_connection
from ringlog.schema.relations import recent
from ringlog.schema.relations.dropping import drop_emptied, drop_for_good, set_week_aside, weeks_aside
from ringlog.schema.session import AnyConnection, begun, driver
from ringlog.schema.sql_files import sql_file
from ringlog.schema.trusted_clock import Clock

logger = logging.getLogger(__name__)

T = TypeVar("T")

WEEKS_AHEAD = 4

ENOUGH = 100
"""Number of rows for which a week that ended more than LATELY ago is made."""
LATELY = timedelta(weeks=26)

_LOOK = "500ms"  # between two looks whether to wait for it any longer

PARTITION_OPTIONS = sql.SQL("toast.autovacuum_vacuum_insert_threshold = -1")
"""Storage parameters of each partition: waveforms are never changed, and no query needs the visibility map of
their pages. To mark these, autovacuum would write most of them into the WAL again
(docs/explanation/decisions.md). The vacuum against wraparound of transaction numbers is not affected."""


@dataclass(frozen=True, order=True)
class Week:
    """A week, by its first moment."""

    start: datetime

    @classmethod
    def of(cls, moment: datetime) -> "Week":
        day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return cls(day - timedelta(days=day.weekday()))

    @property
    def end(self) -> datetime:
        return self.start + timedelta(days=7)

    def partition(self, table: str) -> str:
        return f"{table}_{self.start:%Gw%V}"


@dataclass(frozen=True)
class MaintenanceReport:
    """The changes and findings of `maintain`; false when there are none."""

    made: tuple[str, ...]
    """partitions"""
    moved: dict[str, int]
    """rows that left the default partition, by the partition they went to"""
    set_aside: tuple[str, ...]
    """partitions past retention"""
    dropped: tuple[str, ...]
    """partitions past retention that were set aside for long enough, or are not set aside"""
    postponed: tuple[str, ...]
    """partitions still to be made or dropped: others were using their table all the time"""
    kept: dict[str, int]
    """rows in default partitions, by table"""
    failed: tuple[str, ...] = ()
    """changes that PostgreSQL has refused, each with its table and error"""
    emptied: tuple[str, ...] = ()
    """empty tables of dropped weeks, each with the objects that depend on it"""
    doubt: str | None = None
    """why PostgreSQL's clock is not trusted; None: it is trusted"""

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def __str__(self) -> str:
        lines = [] if self.doubt is None else [self.doubt]
        lines += [f"made log.{partition}" for partition in self.made]
        lines += [f"moved {rows} rows to log.{partition}" for partition, rows in self.moved.items()]
        lines += [f"set aside log.{partition}: past retention" for partition in self.set_aside]
        lines += [f"dropped log.{partition}" for partition in self.dropped]
        lines += [f"postponed log.{partition}: its table is in use" for partition in self.postponed]
        lines += [
            f"kept {rows} rows outside every week in log.{table}_default" for table, rows in self.kept.items()
        ]
        lines += [*self.failed, *self.emptied]
        return "\n".join(lines) or "weeks: the coming ones exist, none is past retention"


class Stopped(Exception):
    """A stop was requested while another process maintained the logs."""


def maintain(
    engine: sa.Engine, now: datetime | None = None, stopped: Callable[[], bool] = lambda: False
) -> MaintenanceReport:
    """Makes the logs' coming weeks, moves rows to weeks just made and sets aside weeks past retention.

    `now` is a time that the caller trusts; without it PostgreSQL's clock is examined first
    (ringlog.schema.clock). Writers and readers continue: each partition has a transaction of its own, which
    delays the writers of one table for a moment, longer only when many rows are to be moved. A step that
    waits too long for a lock is postponed to the next run.
    `stopped` is called while another process maintains the logs; if it is true, raises Stopped.
    """
    if now is not None and now.tzinfo is None:
        raise ValueError(f"now must have a time zone: {now}")
    with alone(engine, stopped):
        return _Round(engine).run(now and now.astimezone(UTC))


class _Round:
    """A round of maintenance, which collects its results."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.made: list[str] = []
        self.moved: dict[str, int] = {}
        self.set_aside: list[str] = []
        self.dropped: list[str] = []
        self.postponed: list[str] = []
        self.failed: list[str] = []

    def run(self, now: datetime | None) -> MaintenanceReport:
        with self.engine.begin() as connection:
            clock = sure(now) if now is not None else self._judged(connection)
        with self.engine.begin() as connection:
            logs = [*_read_logs(connection, clock, self.failed)]
        for log in _with_fresh_connections(self.engine, logs):
            self._make_weeks(log, clock)
            for there in log.partitions:
                if log.keep_from is not None and there.end <= log.keep_from:
                    self._leave(log, there, clock)
        self._drop_for_good(clock)
        with self.engine.begin() as connection:
            ledger.forget_past_retention(connection, clock.trusted)
        tables = [log.table for log in logs]
        start = recent.since(Week.of(clock.trusted).start)
        with self.engine.begin() as connection:
            behind = recent.behind(connection, tables, start)
        for table in _with_fresh_connections(self.engine, behind):
            self._tried(table, partial(_move_on, table=table, start=start))
        return MaintenanceReport(
            tuple(self.made),
            self.moved,
            tuple(self.set_aside),
            tuple(self.dropped),
            tuple(self.postponed),
            self._kept(tables),
            tuple(self.failed),
            tuple(self._tried("emptied", drop_emptied) or ()),
            clock.doubt,
        )

    def _judged(self, connection: sa.Connection) -> Clock:
        tables = tables_of_logs(connection)
        ahead = timedelta(weeks=WEEKS_AHEAD)
        ends = (there[-1].end - ahead for there in partitions_of_logs(connection, tables).values() if there)
        return judge(connection, ends, tables)

    def _tried(self, what: str, work: Callable[[sa.Connection], T]) -> T | None:
        """Makes a change. None: it met with locks for too long, or PostgreSQL has refused it; the other
        tables and weeks are not affected."""
        try:
            done = tried(self.engine, work)
        except ERRORS as error:
            self.failed.append(refusal(f"log.{what}", error))
            return None
        if done is None:
            self.postponed.append(what)
        return done

    def _make_weeks(self, log: "_Log", clock: Clock) -> None:
        for week in sorted({*(() if log.retired else _weeks_ahead(clock.now)), *log.waiting}):
            if any(there.start < week.end and week.start < there.end for there in log.partitions):
                continue
            name = week.partition(log.table)
            now = clock.trusted if week in log.waiting else clock.now
            made = self._tried(name, partial(_make_week, table=log.table, week=week, now=now))
            if made:
                self.made.append(name)
                if made.rows:
                    self.moved[name] = made.rows

    def _leave(self, log: "_Log", there: "Partition", clock: Clock) -> None:
        bounds = (log.table, there.name, there.start, there.end)
        aside = self._tried(there.name, lambda connection: set_week_aside(connection, *bounds, clock))
        if aside is not None:
            (self.set_aside if aside else self.dropped).append(there.name)

    def _drop_for_good(self, clock: Clock) -> None:
        with self.engine.begin() as connection:
            over = [week for week in weeks_aside(connection) if week.until <= clock.trusted]
        for week in over:
            if self._tried(week.relation, partial(drop_for_good, week=week)) is not None:
                self.dropped.append(week.relation)

    def _kept(self, tables: Sequence[str]) -> dict[str, int]:
        with self.engine.begin() as connection:
            in_use = _defaults_in_use(connection, tables)
        counts: dict[str, int] = {}
        for table in in_use:
            try:
                with self.engine.begin() as connection:
                    counts[table] = _rows_in_default(connection, table)
            except ERRORS as error:
                self.failed.append(refusal(f"log.{table}_default", error))
        return {table: rows for table, rows in counts.items() if rows}


def refusal(table: str, error: Exception) -> str:
    """PostgreSQL's error about a table, as a line. Raises it again if the connection is lost."""
    cause = cause_of(error)
    if isinstance(cause, psycopg.OperationalError) and (cause.sqlstate or "57P").startswith("57P"):
        raise error
    return f"failed at {table}: {' '.join(str(cause).split())}"


def _with_fresh_connections(engine: sa.Engine, tables: Sequence[T]) -> Iterator[T]:
    for number, some in enumerate(by_connection(tables)):
        if number:
            engine.dispose()
        yield from some


def make_first_partitions(connection: sa.Connection, table: str) -> None:
    """Gives a log that has just been created its default partition, this week and the weeks ahead."""
    run_all(connection, first_partitions(table, clock(connection)))


def first_partitions(table: str, now: datetime) -> Iterator[sql.Composable]:
    """The statements for that; `relations.statistics` turns statistics of the partitions off later."""
    log = sql.Identifier(LOG_TABLES, table)
    yield sql.SQL("create table {} partition of {} default with ({})").format(
        _default(table), log, PARTITION_OPTIONS
    )
    for week in _weeks_ahead(now):
        yield _partition_of(table, Partition(week.partition(table), week.start, week.end))


def make_partition(connection: sa.Connection, table: str, partition: "Partition") -> None:
    """Creates an empty partition of a log whose default partition has no rows of that time."""
    run(connection, _partition_of(table, partition))


def _partition_of(table: str, partition: "Partition") -> sql.Composable:
    return sql.SQL("create table {} partition of {} for values from ({}) to ({}) with ({})").format(
        sql.Identifier("log", partition.name),
        sql.Identifier(LOG_TABLES, table),
        sql.Literal(partition.start),
        sql.Literal(partition.end),
        PARTITION_OPTIONS,
    )


def renew_options(connection: sa.Connection, table: str) -> None:
    """Sets the options of a log's partitions again: a new column may have added a TOAST table."""
    for partition in log_partitions(connection, table):
        _renew_options(connection, sql.Identifier("log", partition.name))
    _renew_options(connection, _default(table))


def _renew_options(connection: sa.Connection, partition: sql.Identifier) -> None:
    run(connection, sql.SQL("alter table {} set ({})").format(partition, PARTITION_OPTIONS))


def clock(connection: sa.Connection) -> datetime:
    """PostgreSQL's clock, in UTC, as every time here: in a session's zone an hour may occur twice, and Python
    calculates with local times."""
    now: datetime | None = connection.scalar(sa.select(sa.func.now()))
    assert now is not None
    return now.astimezone(UTC)


@dataclass(frozen=True)
class Partition:
    """A partition of a log, from `start` on and before `end`, in UTC."""

    name: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class _Log:
    table: str
    keep_from: datetime | None
    partitions: tuple[Partition, ...]
    waiting: tuple[Week, ...]
    retired: bool


def _weeks_ahead(now: datetime) -> Iterator[Week]:
    """The week of `now` and those after it."""
    for number in range(WEEKS_AHEAD + 1):
        yield Week(Week.of(now).start + timedelta(days=7 * number))


def _retentions(connection: sa.Connection, now: datetime) -> list[tuple[str, datetime | None, bool]]:
    """Each table, the time from which its log is kept, and whether it is retired."""
    statement = sa.text(
        "select table_name, cast(:now as timestamptz) - cast(retention as interval), retired"
        " from ringlog.every_table order by table_name"
    )
    rows = connection.execute(statement, {"now": now})
    return [
        (table, None if keep_from is None else keep_from.astimezone(UTC), retired)
        for table, keep_from, retired in rows
    ]


def tables_of_logs(connection: sa.Connection) -> list[str]:
    """The tables that have a log: of rows and of samples."""
    return [*connection.scalars(sa.text("select table_name from ringlog.every_table order by 1"))]


def log_partitions(connection: AnyConnection, table: str) -> tuple[Partition, ...]:
    """The partitions of a log by time, without the default one."""
    return partitions_of_logs(connection, [table])[table]


def partitions_of_logs(
    connection: AnyConnection, tables: Collection[str]
) -> dict[str, tuple[Partition, ...]]:
    """The partitions of each of these logs by time, without the default one."""
    statement = f"""
        select parent.relname, child.relname, cast(bounds[1] as timestamptz), cast(bounds[2] as timestamptz)
        from {WEEKS}
        join pg_class as parent on parent.oid = inhparent
        where inhparent = any(%s::regclass[]) and bounds is not null
        order by 3
        """.encode()
    logs = [sql.Identifier(LOG_TABLES, table).as_string() for table in tables]
    found: dict[str, list[Partition]] = {table: [] for table in tables}
    for table, name, start, end in driver(connection).execute(statement, [logs]):
        found[table].append(Partition(name, start.astimezone(UTC), end.astimezone(UTC)))
    return {table: tuple(partitions) for table, partitions in found.items()}


def _defaults_in_use(connection: sa.Connection, tables: Collection[str]) -> list[str]:
    """The tables whose default partition has, or had, rows: usually none."""
    may_look = connection.scalar(sa.text(MAY_LOOK)) is True
    statement = sa.text(
        "select table_name"
        " from unnest(cast(:tables as text[]), cast(:defaults as regclass[])) as log (table_name, relation)"
        " where " + has_pages("relation", may_look)
    )
    defaults = [_default(table).as_string() for table in tables]
    return [*connection.scalars(statement, {"tables": [*tables], "defaults": defaults})]


def _read_logs(connection: sa.Connection, clock: Clock, failed: list[str]) -> Iterator[_Log]:
    kept = _retentions(connection, clock.trusted)
    tables = [table for table, _, _ in kept]
    partitions = partitions_of_logs(connection, tables)
    in_use = {*_defaults_in_use(connection, tables)}
    for table, keep_from, retired in kept:
        waiting: tuple[Week, ...] = ()
        if table in in_use:
            try:
                with connection.begin_nested():
                    waiting = _waiting(connection, table, keep_from, clock.trusted)
            except ERRORS as error:
                failed.append(refusal(f"log.{table}_default", error))
        yield _Log(table, keep_from, partitions[table], waiting, retired)


def _waiting(
    connection: sa.Connection, table: str, keep_from: datetime | None, now: datetime
) -> tuple[Week, ...]:
    """The past weeks, and this one, of rows in the default partition, if they are enough."""
    waiting = sql.SQL(sql_file(__file__, "partitions_waiting")).format(
        default=_default(table),
        table=sql.Literal(table),
        since=sql.Literal(max(keep_from or EARLIEST, EARLIEST)),
        end=sql.Literal(Week.of(now).end),
        enough=sql.Literal(ENOUGH),
        lately=sql.Literal(now - LATELY),
    )
    return tuple(Week.of(start) for (start,) in connection.exec_driver_sql(waiting.as_string()))


def _rows_in_default(connection: sa.Connection, table: str) -> int:
    return int(
        connection.scalar(sa.select(sa.func.count()).select_from(sa.table(f"{table}_default", schema="log")))
        or 0
    )


@contextmanager
def alone(
    database: str | sa.Engine, stopped: Callable[[], bool] = lambda: False
) -> Iterator[psycopg.Connection]:
    """Waits until no other process maintains the logs of this database, which may take hours, and keeps
    others out to its end: by a transaction of the connection that it gives. Raises Stopped when `stopped` is
    true first."""
    with begun(database) as opened:
        if not isinstance(database, str):
            # closed here: the engine's pool may be replaced during the work
            opened.detach()
        connection, logged = driver(opened), False
        while True:
            become_owner(connection)
            # it is idle as long as the work lasts
            run(
                connection,
                f"set local idle_in_transaction_session_timeout = 0; set local lock_timeout = '{_LOOK}'",
            )
            try:
                run(connection, locks.statement(locks.MAINTENANCE))
            except psycopg.Error as error:
                if not is_lock_conflict(error):
                    raise
                connection.rollback()
            else:
                yield connection
                return
            if stopped():
                raise Stopped
            if not logged:
                logger.info("another process maintains the logs of this database: waiting until it ends")
                logged = True


@dataclass(frozen=True)
class _Made:
    """A call of make_week. False when the week needs no partition: another process has made it, or it is in
    the archive or past retention."""

    rows: int | None
    """that waited for the week"""

    def __bool__(self) -> bool:
        return self.rows is not None


def _make_week(connection: sa.Connection, table: str, week: Week, now: datetime) -> _Made:
    """Makes the partition of a week with the rows that wait for it."""
    made = sa.text("select ringlog.make_week(:table, :start, :now)")
    return _Made(connection.scalar(made, {"table": table, "start": week.start, "now": now}))


def _move_on(connection: sa.Connection, table: str, start: datetime) -> int:
    become_owner(connection)
    recent.begin_at(connection, table, start)
    return 0


def view_recent(connection: sa.Connection, tables: Collection[str]) -> list[str]:
    """Makes the missing views of the latest weeks of these tables. Returns these tables."""
    return recent.create_missing(connection, tables, recent.since(Week.of(clock(connection)).start))


def _default(table: str) -> sql.Identifier:
    return sql.Identifier("log", f"{table}_default")
