"""The weekly partitions of the logs: made ahead, filled from the default partition, dropped after the
retention time.

A week goes from Monday 00:00 UTC to the next; its partition is log.<table>_<year>w<week>, by ISO 8601. The
default partition takes every row without a week, so that no time, however wrong, loses a row. Rows leave it
when their week is made: ahead of time, or because rows wait for it and it is neither in the future nor past
retention. Other rows there (of a far future, of a clock never set, older than retention) stay until an
administrator has dealt with them.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema import recent
from ringlog.schema.change import is_lock_conflict, run, tried
from ringlog.schema.facility import KEY_COLUMNS
from ringlog.schema.many import by_connection
from ringlog.schema.roles import become_owner
from ringlog.schema.tiers import note_dropped

logger = logging.getLogger(__name__)

T = TypeVar("T")

WEEKS_AHEAD = 4

MAINTENANCE_LOCK = 0x7765656B73
"""The advisory lock of the maintenance of a database's logs. Its hexadecimal digits are "weeks"."""
_LOOK = "500ms"  # between two looks whether to wait for it any longer

PARTITION_OPTIONS = sql.SQL("toast.autovacuum_vacuum_insert_threshold = -1")
"""Of each partition: waveforms are never changed, and no query needs the visibility map of their pages. To
mark these, autovacuum would write most of them into the WAL again (docs/performance.md, Waveforms). The
vacuum against wraparound of transaction numbers is not affected."""

EARLIEST = datetime(1970, 1, 5, tzinfo=UTC)
"""No week is made before this: clocks that were never set count from 1970 or, in Sybase, from 1900."""


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


MAY_LOOK = "select has_function_privilege('pg_catalog.pg_stat_file(text, boolean)', 'execute')"
"""Whether one may look at PostgreSQL's files, as superusers may."""


def has_pages(relation: str, may_look: bool) -> str:
    """SQL: whether a relation, given by its oid, has, or had, rows.

    PostgreSQL reads all columns of a relation to open it, for its size too, and keeps them; who may looks at
    the file instead. A query that only names that function needs the right to it.
    """
    if may_look:
        return f"coalesce((pg_stat_file(pg_relation_filepath({relation}), true)).size, 0) > 0"
    return f"pg_relation_size({relation}) > 0"


@dataclass(frozen=True)
class MaintenanceReport:
    """The changes and findings of `maintain`; false when there are none."""

    made: tuple[str, ...]
    """partitions"""
    moved: dict[str, int]
    """rows that left the default partition, by the partition they went to"""
    dropped: tuple[str, ...]
    """partitions past retention"""
    postponed: tuple[str, ...]
    """partitions still to be made or dropped: others were using their table all the time"""
    kept: dict[str, int]
    """rows in default partitions, by table"""

    def __bool__(self) -> bool:
        return any((self.made, self.dropped, self.postponed, self.kept))

    def __str__(self) -> str:
        lines = [f"made log.{partition}" for partition in self.made]
        lines += [f"moved {rows} rows to log.{partition}" for partition, rows in self.moved.items()]
        lines += [f"dropped log.{partition}" for partition in self.dropped]
        lines += [f"postponed log.{partition}: its table is in use" for partition in self.postponed]
        lines += [
            f"kept {rows} rows outside every week in log.{table}_default" for table, rows in self.kept.items()
        ]
        return "\n".join(lines) or "nothing to do"


class Stopped(Exception):
    """A stop was asked for while another process maintained the logs."""


def maintain(
    engine: sa.Engine, now: datetime | None = None, stopped: Callable[[], bool] = lambda: False
) -> MaintenanceReport:
    """Makes the logs' coming weeks, moves rows to weeks just made and drops weeks past retention.

    `now` is PostgreSQL's clock when it is left out. Writers and readers may go on: each partition has a
    transaction of its own, which holds up the writers of one table for a moment, longer only when many rows
    are to be moved. What meets with a lock for too long is postponed to the next run.
    `stopped` is asked while another process maintains the logs; raises Stopped then.
    """
    if now is not None and now.tzinfo is None:
        raise ValueError(f"now must have a time zone: {now}")
    with alone(engine, stopped):
        return _maintain(engine, now)


def _maintain(engine: sa.Engine, now: datetime | None) -> MaintenanceReport:
    made: list[str] = []
    moved: dict[str, int] = {}
    dropped: list[str] = []
    postponed: list[str] = []
    with engine.begin() as connection:
        now = now or clock(connection)
        logs = [*_read_logs(connection, now)]
    for log in _with_fresh_connections(engine, logs):
        ahead = () if log.retired else _weeks_ahead(now)
        for week in sorted({*ahead, *log.waiting}):
            if any(there.start < week.end and week.start < there.end for there in log.partitions):
                continue
            name = week.partition(log.table)
            rows = tried(engine, partial(_make_week, table=log.table, week=week, now=now))
            if rows is None:
                postponed.append(name)
                continue
            made.append(name)
            if rows:
                moved[name] = rows
        for there in log.partitions:
            if log.keep_from is not None and there.end <= log.keep_from:
                done = tried(engine, partial(_drop, table=log.table, partition=there))
                (postponed if done is None else dropped).append(there.name)
    start = recent.since(Week.of(now).start)
    with engine.begin() as connection:
        behind = recent.behind(connection, [log.table for log in logs], start)
    for table in _with_fresh_connections(engine, behind):
        tried(engine, partial(_move_on, table=table, start=start))
    with engine.begin() as connection:
        counts = {
            table: _rows_in_default(connection, table)
            for table in _defaults_in_use(connection, [log.table for log in logs])
        }
    kept = {table: rows for table, rows in counts.items() if rows}
    return MaintenanceReport(tuple(made), moved, tuple(dropped), tuple(postponed), kept)


def _with_fresh_connections(engine: sa.Engine, tables: Sequence[T]) -> Iterator[T]:
    for number, some in enumerate(by_connection(tables)):
        if number:
            engine.dispose()
        yield from some


def make_first_partitions(connection: sa.Connection, table: str) -> None:
    """Gives a log that has just been created its default partition, this week and the weeks ahead."""
    log = sql.Identifier("log", table)
    run(
        connection,
        sql.SQL("create table {} partition of {} default with ({})").format(
            _default(table), log, PARTITION_OPTIONS
        ),
    )
    for week in _weeks_ahead(clock(connection)):
        make_partition(connection, table, Partition(week.partition(table), week.start, week.end))
    keep_statistics_small(connection, table)


def make_partition(connection: sa.Connection, table: str, partition: "Partition") -> None:
    """Makes an empty partition of a log whose default one has no rows of that time."""
    run(
        connection,
        sql.SQL("create table {} partition of {} for values from ({}) to ({}) with ({})").format(
            sql.Identifier("log", partition.name),
            sql.Identifier("log", table),
            sql.Literal(partition.start),
            sql.Literal(partition.end),
            PARTITION_OPTIONS,
        ),
    )


def renew_options(connection: sa.Connection, table: str) -> None:
    """Gives the partitions of a log their options again: a new column may have brought them a TOAST table."""
    for partition in log_partitions(connection, table):
        _renew_options(connection, sql.Identifier("log", partition.name))
    _renew_options(connection, _default(table))


def _renew_options(connection: sa.Connection, partition: sql.Identifier) -> None:
    run(connection, sql.SQL("alter table {} set ({})").format(partition, PARTITION_OPTIONS))


def keep_statistics_small(connection: sa.Connection, table: str, partition: str | None = None) -> None:
    """Spares a log, or one partition that has just joined it, the statistics of its data columns.

    A log that grows is analyzed again and again; 200 columns take 0.3 s of CPU each time from the first few
    thousand rows on, and no plan needs more than those of time and seq_no.
    """
    columns = connection.scalars(
        sa.text(
            "select attname from pg_attribute where attrelid = cast(:log as regclass) and attnum > 0"
            " and not attisdropped and not attname = any(:keys) order by attnum"
        ),
        {"log": sql.Identifier("log", table).as_string(), "keys": [*KEY_COLUMNS]},
    )
    actions = [
        sql.SQL("alter column {} set statistics 0").format(sql.Identifier(column)) for column in columns
    ]
    relation = sql.Identifier("log", partition or table)
    if actions:
        run(connection, sql.SQL("alter table {} {}").format(relation, sql.SQL(", ").join(actions)))


def clock(connection: sa.Connection) -> datetime:
    """PostgreSQL's clock, in UTC, as every time here: a session's zone may have two hours of one name, and
    Python's arithmetic is that of the clock on its walls."""
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
    """A log as it was found."""

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
        " from ringlog.logged_table order by table_name"
    )
    rows = connection.execute(statement, {"now": now})
    return [
        (table, None if keep_from is None else keep_from.astimezone(UTC), retired)
        for table, keep_from, retired in rows
    ]


def tables_of_logs(connection: sa.Connection) -> list[str]:
    return [*connection.scalars(sa.text("select table_name from ringlog.logged_table order by table_name"))]


def log_partitions(connection: sa.Connection, table: str) -> tuple[Partition, ...]:
    """The partitions of a log by time, without the default one."""
    return partitions_of_logs(connection, [table])[table]


def partitions_of_logs(
    connection: sa.Connection, tables: Collection[str]
) -> dict[str, tuple[Partition, ...]]:
    """The partitions of each of these logs by time, without the default one."""
    statement = sa.text(
        """
        select parent.relname, child.relname, cast(bounds[1] as timestamptz), cast(bounds[2] as timestamptz)
        from pg_inherits
        join pg_class as parent on parent.oid = inhparent
        join pg_class as child on child.oid = inhrelid
        cross join lateral regexp_match(
          pg_get_expr(child.relpartbound, 0), 'FROM \\(''(.+)''\\) TO \\(''(.+)''\\)'
        ) as bounds
        where inhparent = any(cast(:logs as regclass[])) and bounds is not null
        order by 3
        """
    )
    logs = [sql.Identifier("log", table).as_string() for table in tables]
    found: dict[str, list[Partition]] = {table: [] for table in tables}
    for table, name, start, end in connection.execute(statement, {"logs": logs}):
        found[table].append(Partition(name, start.astimezone(UTC), end.astimezone(UTC)))
    return {table: tuple(partitions) for table, partitions in found.items()}


def _defaults_in_use(connection: sa.Connection, tables: Collection[str]) -> list[str]:
    """Those of the tables whose default partition has, or had, rows: mostly none."""
    may_look = connection.scalar(sa.text(MAY_LOOK)) is True
    statement = sa.text(
        "select table_name"
        " from unnest(cast(:tables as text[]), cast(:defaults as regclass[])) as log (table_name, relation)"
        " where " + has_pages("relation", may_look)
    )
    defaults = [_default(table).as_string() for table in tables]
    return [*connection.scalars(statement, {"tables": [*tables], "defaults": defaults})]


def _read_logs(connection: sa.Connection, now: datetime) -> Iterator[_Log]:
    kept = _retentions(connection, now)
    tables = [table for table, _, _ in kept]
    partitions = partitions_of_logs(connection, tables)
    in_use = {*_defaults_in_use(connection, tables)}
    for table, keep_from, retired in kept:
        waiting = _waiting(connection, table, keep_from, now) if table in in_use else ()
        yield _Log(table, keep_from, partitions[table], waiting, retired)


def _waiting(
    connection: sa.Connection, table: str, keep_from: datetime | None, now: datetime
) -> tuple[Week, ...]:
    """The past weeks, and this one, of rows in the default partition."""
    waiting = sql.SQL(
        """
        select distinct date_trunc('week', "time", 'UTC') from {default}
        where "time" >= {since} and "time" < {end} and not exists (
          select from ringlog.cold_week
          where table_name = {table} and recalled_until is null and begins <= "time" and "time" < ends
        )
        order by 1
        """
    ).format(
        default=_default(table),
        table=sql.Literal(table),
        since=sql.Literal(max(keep_from or EARLIEST, EARLIEST)),
        end=sql.Literal(Week.of(now).end),
    )
    return tuple(Week.of(start) for (start,) in connection.exec_driver_sql(waiting.as_string()))


def _rows_in_default(connection: sa.Connection, table: str) -> int:
    return int(
        connection.scalar(sa.select(sa.func.count()).select_from(sa.table(f"{table}_default", schema="log")))
        or 0
    )


@contextmanager
def alone(engine: sa.Engine, stopped: Callable[[], bool] = lambda: False) -> Iterator[sa.Connection]:
    """Waits until no other process maintains the logs of this database, which may take hours. Gives the
    connection that keeps others out as long as it lasts. Raises Stopped when `stopped` is true first."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # it ends here, though the work may have begun with another pool of connections
        connection.detach()
        connection.execute(sa.select(sa.func.set_config("lock_timeout", _LOOK, False)))
        logged = False
        while True:
            try:
                connection.execute(sa.select(sa.func.pg_advisory_lock(MAINTENANCE_LOCK)))
                break
            except sa.exc.DBAPIError as error:
                if not is_lock_conflict(error):
                    raise
            if stopped():
                raise Stopped
            if not logged:
                logger.info("another process maintains the logs of this database: waiting until it ends")
                logged = True
        connection.execute(sa.text("reset lock_timeout"))
        try:
            yield connection
        finally:
            connection.execute(sa.select(sa.func.pg_advisory_unlock(MAINTENANCE_LOCK)))


def _make_week(connection: sa.Connection, table: str, week: Week, now: datetime) -> int:
    """Makes the partition of a week with the rows that wait for it. Returns how many."""
    made = sa.text("select ringlog.make_week(:table, :start, :now)")
    rows = connection.scalar(made, {"table": table, "start": week.start, "now": now})
    return int(rows or 0)


def _drop(connection: sa.Connection, table: str, partition: "Partition") -> int:
    become_owner(connection)
    run(connection, sql.SQL("drop table {}").format(sql.Identifier("log", partition.name)))
    note_dropped(connection, table, partition.end)
    return 0


def _move_on(connection: sa.Connection, table: str, start: datetime) -> int:
    become_owner(connection)
    recent.begin_at(connection, table, start)
    return 0


def view_recent(connection: sa.Connection, tables: Collection[str]) -> list[str]:
    """Makes the views of the latest weeks that these tables lack; of which."""
    return recent.create_missing(connection, tables, recent.since(Week.of(clock(connection)).start))


def _default(table: str) -> sql.Identifier:
    return sql.Identifier("log", f"{table}_default")
