"""Merges old weeks of the logs into months, and old months into years, so that a log of ten years has few
partitions.

A month or a year has whole weeks: those whose Thursday is in it, as ISO 8601 counts years. Its partition is
log.<table>_<year>m<month> or log.<table>_<year>y. Months that ended a quarter ago and years that ended two
years ago are merged.

A merged partition is filled beside writers and readers, part by part, each in a transaction of its own with a
check that the copy is exact; rows that arrive meanwhile are recorded by a trigger. Then one short transaction
adds these rows and replaces the partitions by the new one. If it is killed at any moment, the next round
continues after the last part.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.change import change, is_lock_conflict, run
from ringlog.schema.partitions import (
    PARTITION_OPTIONS,
    Partition,
    Week,
    alone,
    clock,
    keep_statistics_small,
    partitions_of_logs,
    tables_of_logs,
)
from ringlog.schema.roles import become_owner
from ringlog.schema.tiers import cold_week, copied_part, late_row

MONTHS_AFTER = timedelta(weeks=13)
YEARS_AFTER = timedelta(days=2 * 365)

_PAUSES = 1.0
"""Copying pauses as long as it works, which leaves the disk to others."""
_LONGEST_PAUSE = 5.0  # seconds


@dataclass(frozen=True)
class Block:
    """A month or a year of whole weeks."""

    name: str
    start: datetime
    end: datetime

    @classmethod
    def month(cls, week: Week) -> "Block":
        thursday = week.start + timedelta(days=3)
        first = thursday.replace(day=1)
        after = (first + timedelta(days=31)).replace(day=1)
        return cls(f"{first:%Ym%m}", _first_week(first), _first_week(after))

    @classmethod
    def year(cls, week: Week) -> "Block":
        first = (week.start + timedelta(days=3)).replace(month=1, day=1)
        return cls(f"{first:%Y}y", _first_week(first), _first_week(first.replace(year=first.year + 1)))

    def partition(self, table: str) -> str:
        return f"{table}_{self.name}"


def _first_week(first_day: datetime) -> datetime:
    """The Monday of the first week whose Thursday is not before this day."""
    return Week.of(first_day + timedelta(days=(3 - first_day.weekday()) % 7)).start


@dataclass(frozen=True)
class Merge:
    """Partitions of a log that are to become one."""

    table: str
    block: Block
    parts: tuple[Partition, ...]

    @property
    def partition(self) -> str:
        return self.block.partition(self.table)

    def __str__(self) -> str:
        return f"log.{self.partition} of {', '.join(part.name for part in self.parts)}"


def merge(
    engine: sa.Engine, now: datetime | None = None, stopped: Callable[[], bool] = lambda: False
) -> tuple[str, ...]:
    """Merges what is old enough. Returns a line for each merge done, postponed or given up.

    `now` is PostgreSQL's clock when it is left out. `stopped` is asked between the parts, and
    while another process maintains the logs: raises partitions.Stopped then.
    """
    with alone(engine, stopped) as lock:
        with engine.begin() as connection:
            now = now or clock(connection)
            merges = [
                found
                for table, partitions in partitions_of_logs(connection, tables_of_logs(connection)).items()
                for found in _due(table, partitions, now)
                if not _archived(connection, found)
            ]
        lines = []
        for each in merges:
            if stopped():
                break
            if not _fill(engine, each, stopped):
                break
            lock.execute(sa.select(1))  # ends with PostgreSQL, and then another may have begun
            lines.append(_replaced(engine, each))
        return tuple(lines)


def _archived(connection: sa.Connection, merge: Merge) -> bool:
    """Whether weeks of the block are in the archive: its partition would take what comes for them, and the
    weeks that are recalled go again."""
    overlapping = sa.select(cold_week.c.begins).where(
        cold_week.c.table_name == merge.table,
        cold_week.c.begins < merge.block.end,
        cold_week.c.ends > merge.block.start,
    )
    return connection.scalar(sa.select(sa.exists(overlapping))) is True


def _due(table: str, partitions: tuple[Partition, ...], now: datetime) -> Iterator[Merge]:
    """The merges of a log, oldest first. A partition that reaches over a block's bounds stays as it is."""
    blocks: dict[Block, list[Partition]] = {}
    for there in partitions:
        week = Week(there.start)
        for block, after in ((Block.year(week), YEARS_AFTER), (Block.month(week), MONTHS_AFTER)):
            if block.end <= now - after and block.start <= there.start and there.end <= block.end:
                blocks.setdefault(block, []).append(there)
                break
    for block, parts in blocks.items():
        if len(parts) > 1:
            yield Merge(table, block, tuple(parts))


def _fill(engine: sa.Engine, merge: Merge, stopped: Callable[[], bool]) -> bool:
    """Copies what is not copied yet. False when it was stopped."""
    try:
        change(engine, partial(_prepare, merge=merge))
    except sa.exc.DBAPIError as error:
        if not is_lock_conflict(error):
            raise
        return True  # `_replaced` says so
    with engine.begin() as connection:
        done = _copied(connection, merge)
    for part in merge.parts:
        if part.name in done:
            continue
        if stopped():
            return False
        begun = time.monotonic()
        with (
            engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
            connection.begin(),
        ):
            _copy(connection, merge, part)
        time.sleep(min(_PAUSES * (time.monotonic() - begun), _LONGEST_PAUSE))
    return True


def _copied(connection: sa.Connection, merge: Merge) -> set[str]:
    copied = sa.select(copied_part.c.part).where(copied_part.c.partition == merge.partition)
    return set(connection.scalars(copied))


def _prepare(connection: sa.Connection, merge: Merge) -> None:
    """Makes the new partition, not yet in the log, and has the old ones note what comes from now on."""
    become_owner(connection)
    if sa.inspect(connection).has_table(merge.partition, "log"):
        # with the columns of an earlier day it could not join the log; a copied part that is not watched is
        # another one of that name
        stored = sa.text(
            "select count(*) from pg_attribute where attrelid = cast(:relation as regclass)"
            " and attnum > 0 and not attisdropped"
        )
        widths = {
            connection.scalar(stored, {"relation": sql.Identifier("log", name).as_string()})
            for name in (merge.table, merge.partition)
        }
        if len(widths) == 1 and _copied(connection, merge) <= _watched(
            connection, [part.name for part in merge.parts]
        ):
            watch(connection, [part.name for part in merge.parts])
            return
        run(connection, sql.SQL("drop table {}").format(sql.Identifier("log", merge.partition)))
    connection.execute(copied_part.delete().where(copied_part.c.partition == merge.partition))
    run(
        connection,
        # the check spares the attachment a look at every row
        sql.SQL(
            """
            create table {partition} (
              like {log} including all, constraint block check ("time" >= {start} and "time" < {end})
            ) with ({options})
            """
        ).format(
            options=PARTITION_OPTIONS,
            partition=sql.Identifier("log", merge.partition),
            log=sql.Identifier("log", merge.table),
            start=sql.Literal(merge.block.start),
            end=sql.Literal(merge.block.end),
        ),
    )
    watch(connection, [part.name for part in merge.parts])


def watch(connection: sa.Connection, partitions: Sequence[str]) -> None:
    """Has partitions note the rows that come from now on. This waits for those that are on their way."""
    there = _watched(connection, partitions)
    for name in partitions:
        if name not in there:
            run(
                connection,
                sql.SQL(
                    "create trigger record_late_row after insert on {}"
                    " for each row execute function ringlog.record_late_row()"
                ).format(sql.Identifier("log", name)),
            )


def _watched(connection: sa.Connection, partitions: Sequence[str]) -> set[str]:
    """Those of some partitions that have the trigger that records new rows."""
    return set(
        connection.scalars(
            sa.text(
                "select relname from pg_trigger join pg_class on pg_class.oid = tgrelid"
                " where tgname = 'record_late_row' and relname = any(:names)"
                " and relnamespace = 'log'::regnamespace"
            ),
            {"names": [*partitions]},
        )
    )


def _copy(connection: sa.Connection, merge: Merge, part: Partition) -> None:
    """Copies one part and compares the copy's rows with its own."""
    become_owner(connection)
    new, old = sql.Identifier("log", merge.partition), sql.Identifier("log", part.name)
    within = sql.SQL('"time" >= {} and "time" < {}').format(sql.Literal(part.start), sql.Literal(part.end))
    columns = sql.SQL(", ").join(
        sql.Identifier(column)
        for column in connection.scalars(
            sa.text(
                "select attname from pg_attribute where attrelid = cast(:log as regclass) and attnum > 0"
                " and not attisdropped order by attnum"
            ),
            {"log": sql.Identifier("log", merge.table).as_string()},
        )
    )
    run(
        connection,
        sql.SQL('insert into {} ({columns}) select {columns} from {} order by "time", seq_no').format(
            new, old, columns=columns
        ),
    )
    exact = [
        connection.exec_driver_sql(
            sql.SQL(
                "select count(*), coalesce(sum(hash_record_extended(row ({columns}), 0)::numeric), 0)"
                " from {relation} where {within}"
            )
            .format(columns=columns, relation=relation, within=within)
            .as_string(),
            execution_options={"no_parameters": True},
        ).one()
        for relation in (old, new)
    ]
    if exact[0] != exact[1]:
        raise RuntimeError(
            f"log.{merge.partition} is not what was copied from log.{part.name}: {exact[1]}, {exact[0]};"
            " nothing was replaced"
        )
    connection.execute(
        copied_part.insert().values(partition=merge.partition, part=part.name, rows=exact[0][0])
    )


def _replaced(engine: sa.Engine, merge: Merge) -> str:
    try:
        late = change(engine, partial(_replace, merge=merge))
    except sa.exc.DBAPIError as error:
        if not is_lock_conflict(error):
            raise
        return f"postponed {merge}: its table is in use"
    return f"merged {merge}" + (f", {late} rows came meanwhile" if late else "")


def _replace(connection: sa.Connection, merge: Merge) -> int:
    """Puts the new partition into the place of its parts. Returns how many rows had come meanwhile."""
    become_owner(connection)
    names = [part.name for part in merge.parts]
    log = sql.Identifier("log", merge.table)
    new = sql.Identifier("log", merge.partition)
    run(connection, sql.SQL("lock table only {} in share row exclusive mode").format(log))
    late = 0
    for part in merge.parts:
        late += run(
            connection,
            sql.SQL(
                "insert into {} select r.* from {} as r join ringlog.late_row as late"
                ' on late.partition = {} and late."time" = r."time" and late.seq_no = r.seq_no'
                ' on conflict ("time", seq_no) do nothing'
            ).format(new, sql.Identifier("log", part.name), sql.Literal(part.name)),
        )
    parts = sql.SQL(", ").join(sql.Identifier("log", name) for name in names)
    run(connection, sql.SQL("drop table {}").format(parts))
    run(
        connection,
        sql.SQL("alter table {} attach partition {} for values from ({}) to ({})").format(
            log, new, sql.Literal(merge.block.start), sql.Literal(merge.block.end)
        ),
    )
    run(connection, sql.SQL("alter table {} drop constraint block").format(new))
    keep_statistics_small(connection, merge.table, merge.partition)
    connection.execute(late_row.delete().where(late_row.c.partition.in_(names)))
    connection.execute(copied_part.delete().where(copied_part.c.partition == merge.partition))
    return late
