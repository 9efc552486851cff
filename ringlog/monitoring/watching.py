"""The state of the tables, whatever program writes them: for `ringlog status` and metrics."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import class_row

from ringlog.nodes.servers import Everywhere, nodes_of_tables
from ringlog.schema import catalogue, session
from ringlog.schema.catalogue import MAY_LOOK, WEEKS, has_pages
from ringlog.schema.many import by_connection
from ringlog.schema.sql_files import sql_file
from ringlog.schema.trusted_clock import Clock

# Timeout in seconds of connecting, and of sending until PostgreSQL's machine has acknowledged it.
_PATIENCE = 5
# Concurrent connections; few, to leave the machine to its writers.
_AT_ONCE = 2


@dataclass(frozen=True)
class TableState:
    """A table, as the function ringlog.table_states returns it. Times in seconds."""

    table_name: str
    cycle: float | None
    """None: a table of samples, whose signals have times of their own"""
    newest: datetime | None
    age: float | None
    """since a row arrived"""
    silent: bool | None
    rows_per_second: float | None
    in_default: int | None
    unread: str | None
    """why the previous five are missing: the table is locked, or cannot be read"""
    ahead: float | None
    """by which the newest row's time is ahead of the clock, from a minute on"""
    host: str | None
    """of the last caller of put over TDS, as reported at its login, like the program. None: no call yet"""
    program: str | None
    login: str | None
    called: datetime | None
    failed: datetime | None
    """time of the last call that failed; number and text of its error"""
    number: int | None
    error: str | None


@dataclass(frozen=True)
class Space:
    """Free bytes on the data's disk, the logs' growth per day, and the days until the disk is full."""

    free: int
    a_day: float | None
    days: float | None


def look(conninfo: str, *, kept: bool = False) -> psycopg.Connection:
    """A connection that is made within seconds, or fails. One that is `kept` fails as soon if PostgreSQL's
    machine is lost later."""
    if kept:
        conninfo = make_conninfo(conninfo, tcp_user_timeout=1000 * _PATIENCE)
    return session.connect(conninfo, connect_timeout=_PATIENCE, autocommit=kept)


def table_states(conninfo: str) -> list[TableState]:
    """Every table of a server, by name."""
    with look(conninfo) as connection:
        query = "select table_name from ringlog.every_table where not retired order by 1"
        names = [name for (name,) in connection.execute(query)]
        every_caller = callers(connection)
        first, *others = by_connection(names) or [[]]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            found = [threads.submit(states_of, connection, first, every_caller)]
            found += [threads.submit(_states_there, conninfo, some, every_caller) for some in others]
            return [state for states in found for state in states.result()]


def callers(connection: psycopg.Connection) -> dict[str, list[Any]]:
    query = (
        "select table_name, host, program, login, called, failed, number, error from ringlog.table_callers()"
    )
    return {name: caller for name, *caller in connection.execute(query)}


def states_of(
    connection: psycopg.Connection,
    names: Sequence[str] | None,
    every_caller: Mapping[str, list[Any]],
    *,
    again: bool = False,
) -> list[TableState]:
    query = (
        "select table_name, cycle, newest, age, silent, rows_per_second, in_default, unread, ahead"
        " from ringlog.table_states(%s, %s) order by table_name"
    )
    nobody = [None] * 7
    rows = connection.execute(query, [None if names is None else [*names], again])
    return [TableState(*state, *every_caller.get(state[0], nobody)) for state in rows]


def _states_there(
    conninfo: str, names: Sequence[str], every_caller: Mapping[str, list[Any]]
) -> list[TableState]:
    with look(conninfo) as connection:
        return states_of(connection, names, every_caller)


def has_nodes(connection: psycopg.Connection) -> bool:
    if not catalogue.exists(connection, "ringlog", "node"):
        return False
    return connection.execute("select exists (select from ringlog.node)").fetchone() == (True,)


def states_everywhere(
    servers: Everywhere, states: Callable[[str], list[TableState]] = table_states
) -> dict[str | None, list[TableState]]:
    """The tables of every server that can be reached, without old copies of tables that move."""
    where = nodes_of_tables(servers.conninfo)
    return {
        node: [state for state in states(server) if where.get(state.table_name, node) == node]
        for node, server in servers
    }


def space(data: Path, a_day: float | None) -> Space:
    """The free space on the disk of a data directory, with the logs' growth per day."""
    free = psutil.disk_usage(str(data)).free
    return Space(free, a_day, free / a_day if a_day else None)


_DAY = timedelta(days=1)

# The weeks of logs of the last 28 days, whole.
_WEEKS = sql_file(__file__, "watching_weeks").format(weeks=WEEKS)

_OLDEST = sql_file(__file__, "watching_oldest")

_SINCE_ROW = """
select min("time") from {}
"""
# an index has the times by signal
_SINCE_SAMPLE = """
select min(first) from ringlog.sample_signal
cross join lateral (select min("time") as first from {} where signal = number) as stored
where table_name = %s
"""


def measured(connection: psycopg.Connection, may_look: bool) -> timedelta | None:
    """The time in which the weeks of `_WEEKS` have grown: since the first row in them, or since their begin
    if a week is in the archive; None: no rows. Raises LockNotAvailable while a week is locked."""
    query = _OLDEST.format(weeks=WEEKS, those=_WEEKS, has_pages=has_pages("child.oid", may_look))
    oldest = connection.execute(query.encode()).fetchall()
    (now, archived) = connection.execute(
        "select now(), exists (select from ringlog.cold_week)"
    ).fetchone() or (None, False)
    if not oldest or now is None:
        return None
    begins = min(begin for _, begin, _ in oldest)
    if archived or begins <= now - 28 * _DAY:
        return timedelta(seconds=(now - begins).total_seconds())
    firsts = []
    with connection.transaction():
        connection.execute("set local lock_timeout = '100ms'")
        for week, _, sampled in oldest:
            relation = sql.Identifier("log", week)
            if sampled is None:
                row = connection.execute(sql.SQL(_SINCE_ROW).format(relation)).fetchone()
            else:
                row = connection.execute(sql.SQL(_SINCE_SAMPLE).format(relation), [sampled]).fetchone()
            firsts += [first for first in row or () if first is not None]
    return max(now - min(firsts), timedelta()) if firsts else None


# Like pg_total_relation_size, but from file sizes: that function opens each week and waits for its lock.
_SIZE_OF_FILES = sql_file(__file__, "watching_files").format(weeks=_WEEKS, has_pages=has_pages("oid", True))


def growth(connection: psycopg.Connection, conninfo: str) -> float | None:
    """The growth of the last month's weeks, in bytes a day; None: none, unknown before a day is measured, or
    while a week is locked. `conninfo` is this connection's: a role that may not read the sizes of files opens
    the weeks instead, over further connections."""
    may_look = connection.execute(MAY_LOOK).fetchone() == (True,)
    try:
        time = measured(connection, may_look)
        if time is None or time < _DAY:
            return None
        size = _size(connection, conninfo, may_look)
    except psycopg.errors.LockNotAvailable:
        return None
    return size / (time / _DAY) or None


def _size(connection: psycopg.Connection, conninfo: str, may_look: bool) -> float:
    if may_look:
        (size,) = connection.execute(_SIZE_OF_FILES.encode()).fetchone() or (None,)
        return float(size or 0)
    sizes = (
        "select sum(pg_total_relation_size(week)) from unnest(%s::oid[]) as weeks (week)"
        f" where {has_pages('week', False)}"
    )
    total = 0.0
    for some in by_connection([week for (week,) in connection.execute(_WEEKS.encode())]):
        with look(conninfo) as another:
            another.execute("set lock_timeout = '100ms'")
            (part,) = another.execute(sizes.encode(), [[*some]]).fetchone() or (None,)
            total += float(part or 0)
    return total


@dataclass(frozen=True)
class Standby:
    """A standby of the primary, and how far its data are behind."""

    name: str
    """its application_name; Patroni sets it to the member's name"""
    host: str
    behind: int
    """bytes of write-ahead log"""
    seconds: float
    """from the commit of the newest record to its replay; 0 when all is replayed"""


def standbys(connection: psycopg.Connection) -> list[Standby]:
    """The connected standbys that the role may see (pg_monitor)."""
    query = sql_file(__file__, "watching_standbys")
    with connection.cursor(row_factory=class_row(Standby)) as cursor:
        return cursor.execute(query).fetchall()


def clock_doubt(connection: psycopg.Connection) -> str | None:
    """Why PostgreSQL's clock is not trusted; None: it is trusted. See ringlog.schema.clock."""
    query = "select now(), trusted from ringlog.housekeeping where jumped is not null"
    found = connection.execute(query).fetchone()
    if found is None:
        return None
    return Clock(*(moment.astimezone(UTC) for moment in found)).doubt


@dataclass(frozen=True)
class Failure:
    """Work of housekeeping on a table that fails, until it succeeds."""

    work: str
    table: str
    message: str


def failures(connection: psycopg.Connection) -> list[Failure]:
    query = "select work, table_name, message from ringlog.damage order by table_name, work"
    return [Failure(*row) for row in connection.execute(query)]


@dataclass(frozen=True)
class Safety:
    """Whether the data can be restored after the loss of a disk."""

    archiving_failed: datetime | None
    """time of the last failure of archiving the write-ahead log; None: none since the last success"""
    segment: str | None
    """the segment of the log that it could not archive"""
    backup_age: float | None
    """seconds since the latest copy by ringlog backup; None: there is none"""


def safety(connection: psycopg.Connection) -> Safety:
    """The state of a server's archived log and backups, as far as the role may see it."""
    failed = connection.execute(
        "select last_failed_time, last_failed_wal from pg_stat_archiver"
        " where last_failed_time > coalesce(last_archived_time, '-infinity')"
    ).fetchone()
    age = None
    if catalogue.exists(connection, "ringlog", "backup"):
        query = "select extract(epoch from now() - max(made))::float8 from ringlog.backup"
        (age,) = connection.execute(query).fetchone() or (None,)
    when, segment = failed or (None, None)
    return Safety(when, segment, age)


def as_json(
    found: Mapping[str | None, list[TableState]],
    left: Space | None,
    away: Mapping[str, str],
    doubts: Mapping[str | None, str],
    failed: Mapping[str | None, list[Failure]],
) -> dict[str, object]:
    """For programs: `tables` of all servers, each with its `node`; `space` of an embedded database; nodes
    that are `away`, servers with a doubted `clock`, and `failed` work, each with its reason."""
    tables = [
        {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(state).items()
        }
        | {"node": node}
        for node, states in found.items()
        for state in states
    ]
    clock = [{"node": node, "doubt": doubt} for node, doubt in doubts.items()]
    left_undone = [asdict(each) | {"node": node} for node, those in failed.items() for each in those]
    return {
        "tables": tables,
        "space": left and asdict(left),
        "away": dict(away),
        "clock": clock,
        "failed": left_undone,
    }
