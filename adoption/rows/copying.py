"""Copies rows of an old database: rings and logs, week by week, while the old server runs.

A week is read at the old server, stored by COPY, read back in the same transaction and compared value by
value. A second run leaves out the weeks that have as many rows as when they were copied.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
from psycopg import sql

from ringlog.adoption.rings import Ring
from ringlog.adoption.rows.arriving import OldSession, Row, digest_of, names_of, sessions, stage, why
from ringlog.adoption.rows.source import Source
from ringlog.adoption.rows.threads import in_threads
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import OldColumn
from ringlog.adoption.server.texts import Reading, Unreadable, reading
from ringlog.schema import session
from ringlog.schema.layout import LOG_TABLES

_EPOCH = datetime(1970, 1, 5)  # a Monday
WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Part:
    """The rows of a ring's log of one week, or those of the ring itself."""

    ring: Ring
    begins: datetime | None
    """a moment of the old server's own time, from which on a week's rows are meant; None: the ring"""
    since: datetime | None = None
    """rows before it are in the archive"""

    def __str__(self) -> str:
        where = "ring" if self.begins is None else f"week of {self.begins:%Y-%m-%d}"
        return f"{self.ring.table.name}, {where}"


@dataclass(frozen=True)
class Copied:
    """The result of a copy: the number of rows on both sides, and whether their checksums are equal."""

    part: Part
    rows: int
    new: int
    """rows that were added"""
    checksum: str
    same: bool
    why: str = ""
    """why it could not be copied"""


class Ledger:
    """A file that lists the weeks copied to a database, with their numbers of rows, so that a second run
    leaves them out; and the differences that the last run has found."""

    def __init__(self, file: Path, target: str) -> None:
        """`target` is the database's `identity`: copies to another database do not count."""
        self._file = file
        self._target = target
        content = json.loads(file.read_text()) if file.exists() else {}
        is_same = content.get("target") == target
        self.weeks: dict[str, int] = content["weeks"] if is_same else {}
        self.compared: str | None = content.get("compared") if is_same else None
        """when the last complete run ended, UTC"""
        self.differences: list[str] = content.get("differences", []) if is_same else []
        self._lock = threading.Lock()

    def has(self, part: Part, rows: int) -> bool:
        """Whether it was copied when it had as many rows as now."""
        return part.begins is not None and self.weeks.get(str(part)) == rows

    def note(self, copied: Copied) -> None:
        with self._lock:
            if copied.same:
                self.weeks[str(copied.part)] = copied.rows
            else:
                self.weeks.pop(str(copied.part), None)
            self._write()

    def end(self, differences: Sequence[str]) -> None:
        """Notes the differences of a run that has compared all."""
        self.compared, self.differences = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", sorted(differences)
        self._write()

    def _write(self) -> None:
        content = {
            "target": self._target,
            "weeks": self.weeks,
            "compared": self.compared,
            "differences": self.differences,
        }
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(content, indent=1))
        beside.replace(self._file)


def identity(conninfo: str) -> str:
    """Unique among databases, of this and other servers."""
    with session.connect(conninfo) as connection:
        row = connection.execute(
            "select concat(system_identifier, '/', oid) from pg_control_system(), pg_database"
            " where datname = current_database()"
        ).fetchone()
    assert row is not None
    return str(row[0])


def archived(conninfo: str) -> dict[str, datetime]:
    """The time before which an old server's rows are in the archive already (`ringlog migrate`), by table."""
    with session.connect(conninfo) as connection:
        found = connection.execute(
            "select table_name, max(reached) from ringlog.migration"
            " where source like 'tds%' and reached is not null group by 1"
        ).fetchall()
    return dict(found)


def parts(source: Source, rings: Sequence[Ring], reached: Mapping[str, datetime]) -> Iterator[Part]:
    """All that is to be copied: the weeks of each log in which there may be rows, then the ring. `reached`:
    see `archived`."""
    with closing(OldSession(source)) as old:
        for ring in rings:
            if (bounds := log_bounds(old, ring, source.timezone)) is not None:
                first, last, zone = bounds
                since = reached.get(ring.table.name.lower())
                if since is not None:
                    since = since.astimezone(zone).replace(tzinfo=None)
                    first = max(first, since)
                begins = _EPOCH + (first - _EPOCH) // WEEK * WEEK
                while begins <= last:
                    yield Part(ring, begins, since)
                    begins += WEEK
            yield Part(ring, None)


def log_bounds(old: OldSession, ring: Ring, timezone: str) -> tuple[datetime, datetime, tzinfo] | None:
    """The first and the last time of a ring's log as the old server compares them with texts, and their zone:
    `timezone`, or UTC where they have offsets; None: no rows."""
    if ring.log is None:
        return None
    time = quoted(ring.time)
    ((first, last),) = old.rows(f"select min({time}), max({time}) from {ring.log.qualified_name}")
    if first is None:
        return None
    zone = ZoneInfo(timezone) if first.tzinfo is None else UTC
    return first.replace(tzinfo=None), last.replace(tzinfo=None), zone


def without_time(source: Source, rings: Sequence[Ring]) -> Iterator[str]:
    """A line for each ring and log with rows that have readings and no time: these are not copied."""
    with closing(OldSession(source)) as old:
        for ring in rings:
            readings = [each.name for each in ring.table.columns if each.name not in (ring.seq_no, ring.time)]
            any_reading = " or ".join(f"{quoted(name)} is not null" for name in readings)
            for table in (ring.table, ring.log):
                if table is not None:
                    within = f"{quoted(ring.time)} is null and ({any_reading})"
                    if count := _count(old, table.qualified_name, within):
                        yield f"{count} rows of {table.name} have no {ring.time}: not copied"


def copy(
    source: Source,
    conninfo: str,
    rings: Sequence[Ring],
    connections: int,
    ledger: Ledger,
    report: Callable[[Copied], None],
) -> list[Copied]:
    """Copies rings and logs by so many connections to each side. Raises OldServerError and psycopg.Error."""

    def work(waiting: Iterator[Part]) -> Iterator[Copied]:
        with sessions(source, conninfo) as (old, new):
            for part in waiting:
                try:
                    if ledger.has(part, _count(old, _table(part), within(part))):
                        continue
                    copied = _copy(old, new, part, source)
                except Unreadable as error:
                    copied = Copied(part, 0, 0, "", False, str(error))
                except psycopg.Error as error:
                    if new.broken:
                        raise
                    copied = Copied(part, 0, 0, "", False, why(error))
                ledger.note(copied)
                yield copied

    return in_threads(parts(source, rings, archived(conninfo)), connections, work, report)


def _table(part: Part) -> str:
    ring = part.ring
    return (ring.table if part.begins is None or ring.log is None else ring.log).qualified_name


def within(part: Part) -> str:
    """The condition that the rows of a part fulfil at the old server."""
    time = quoted(part.ring.time)
    if part.begins is None:
        return f"{time} is not null"
    first = max(part.begins, part.since or part.begins)
    return f"{time} >= '{as_text(first)}' and {time} < '{as_text(part.begins + WEEK)}'"


def as_text(time: datetime) -> str:
    """A time as old servers of all kinds and languages read it."""
    day = f"{time:%Y%m%d}"
    return day if time.time() == time.min.time() else f"{day} {time:%H:%M:%S}.{time.microsecond // 1000:03}"


def _count(old: OldSession, table: str, condition: str) -> int:
    ((count,),) = old.rows(f"select count(*) from {table} where {condition}")
    return int(count)


def _copy(old: OldSession, new: psycopg.Connection[Any], part: Part, source: Source) -> Copied:
    ring, zone, is_local = part.ring, ZoneInfo(source.timezone), False
    readings = selected(ring, source)
    columns = ["seq_no", "time", *(column.name.lower() for column in readings)]
    query = selection(ring, readings.values(), _table(part), within(part))

    def received() -> Iterator[Row]:
        nonlocal is_local
        for seq_no, time, *values in old.rows(query):
            is_local = time.tzinfo is None
            read = (of.value(value) for of, value in zip(readings.values(), values, strict=True))
            yield int(seq_no), time, *read

    def stored(row: Row) -> Row:
        seq_no, time, *values = row
        return seq_no, (time.replace(tzinfo=zone) if is_local else time).astimezone(UTC), *values

    def compared(row: Row) -> Row:
        # the old server's time is compared as it was read
        seq_no, time, *values = row
        return seq_no, time.astimezone(zone).replace(tzinfo=None) if is_local else time, *values

    with new.transaction():
        log = sql.Identifier("log", ring.table.name.lower())
        came = stage(new, log, columns, received(), stored)
        count = _store(new, ring, columns, part)
        back = digest_of(new, _arrived(ring, columns, part), compared)
    return Copied(part, came.rows, count, came.text(), came.text() == back.text())


def selected(ring: Ring, source: Source) -> dict[OldColumn, Reading]:
    """The columns of readings, and how each is read."""
    return {
        column: reading(column, source.charset, source.is_ase)
        for column in ring.table.columns
        if column.name not in (ring.seq_no, ring.time)
    }


def selection(ring: Ring, readings: Iterable[Reading], table: str, condition: str) -> str:
    """The query of rows of a ring or log."""
    names = ", ".join([quoted(ring.seq_no), quoted(ring.time), *(each.expression for each in readings)])
    return f"select {names} from {table} where {condition}"


def _store(new: psycopg.Connection[Any], ring: Ring, columns: Sequence[str], part: Part) -> int:
    name = ring.table.name.lower()
    if part.begins is None:
        statement = sql.SQL(
            "update {ring} as ring set {assignments} from arrived where arrived.seq_no = ring.seq_no"
            ' and (ring."time" < arrived."time" or ring."time" is null)'
        ).format(
            ring=sql.Identifier("online", name),
            assignments=sql.SQL(", ").join(
                sql.SQL("{} = {}").format(sql.Identifier(column), sql.Identifier("arrived", column))
                for column in columns
                if column != "seq_no"
            ),
        )
    else:
        statement = sql.SQL(
            'insert into {} ({columns}) select {columns} from arrived on conflict ("time", seq_no) do nothing'
        ).format(sql.Identifier(LOG_TABLES, name), columns=names_of(columns))
    return new.execute(statement).rowcount


def _arrived(ring: Ring, columns: Sequence[str], part: Part) -> sql.Composed:
    """The query of the rows that have arrived, as they are stored now."""
    schema = "online" if part.begins is None else LOG_TABLES
    same = '"time" = stored."time" and arrived.seq_no = stored.seq_no'
    return sql.SQL("select {} from {} as stored where exists (select from arrived where arrived.{})").format(
        sql.SQL(", ").join(sql.Identifier("stored", column) for column in columns),
        sql.Identifier(schema, ring.table.name.lower()),
        sql.SQL(same),
    )
