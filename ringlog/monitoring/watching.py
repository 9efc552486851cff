"""The state of the tables, whatever program writes them: for `ringlog status`, and for Prometheus."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import class_row

from ringlog.nodes.servers import Everywhere, placing_of
from ringlog.schema import catalogue, session
from ringlog.schema.catalogue import MAY_LOOK, WEEKS, has_pages
from ringlog.schema.many import by_connection
from ringlog.schema.trusted_clock import Clock
from ringlog.server import releases

# Seconds for which an answer is reused; longer where the query takes long, so that thousands of tables use
# only a part of a core.
_FRESH = 10.0
_PART = 0.05
_LONGEST_FRESH = 60.0
_FRESH_GROWTH = 600.0
# Timeout in seconds of connecting, and of sending until PostgreSQL's machine has acknowledged it.
_PATIENCE = 5
# Concurrent connections; few, to leave the machine to its writers.
_AT_ONCE = 2
# Seconds for which the metrics keep a connection, which caches statements of each week.
_KEPT = 86_400.0


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
        callers = _callers(connection)
        first, *others = by_connection(names) or [[]]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            found = [threads.submit(_states, connection, first, callers)]
            found += [threads.submit(_states_there, conninfo, some, callers) for some in others]
            return [state for states in found for state in states.result()]


def _callers(connection: psycopg.Connection) -> dict[str, list[Any]]:
    query = (
        "select table_name, host, program, login, called, failed, number, error from ringlog.table_callers()"
    )
    return {name: caller for name, *caller in connection.execute(query)}


def _states(
    connection: psycopg.Connection,
    names: Sequence[str] | None,
    callers: Mapping[str, list[Any]],
    *,
    again: bool = False,
) -> list[TableState]:
    query = (
        "select table_name, cycle, newest, age, silent, rows_per_second, in_default, unread, ahead"
        " from ringlog.table_states(%s, %s) order by table_name"
    )
    nobody = [None] * 7
    rows = connection.execute(query, [None if names is None else [*names], again])
    return [TableState(*state, *callers.get(state[0], nobody)) for state in rows]


def _states_there(conninfo: str, names: Sequence[str], callers: Mapping[str, list[Any]]) -> list[TableState]:
    with look(conninfo) as connection:
        return _states(connection, names, callers)


def _has_nodes(connection: psycopg.Connection) -> bool:
    if not catalogue.exists(connection, "ringlog", "node"):
        return False
    return connection.execute("select exists (select from ringlog.node)").fetchone() == (True,)


def states_everywhere(
    servers: Everywhere, states_of: Callable[[str], list[TableState]] = table_states
) -> dict[str | None, list[TableState]]:
    """The tables of every server that can be reached, without old copies of tables that move."""
    where = placing_of(servers.conninfo)
    return {
        node: [state for state in states_of(server) if where.get(state.table_name, node) == node]
        for node, server in servers
    }


def space(data: Path, a_day: float | None) -> Space:
    """The free space on the disk of a data directory, with the logs' growth per day."""
    free = psutil.disk_usage(str(data)).free
    return Space(free, a_day, free / a_day if a_day else None)


_WEEKS = f"""
select child.oid
from {WEEKS}
join pg_class as log on log.oid = inhparent
join pg_namespace on pg_namespace.oid = log.relnamespace
where nspname = 'weeks'
  and bounds[2]::timestamptz > now() - interval '28 days' and bounds[1]::timestamptz <= now()
  and exists (select from ringlog.every_table where table_name = log.relname)
"""

# Like pg_total_relation_size, but from file sizes: that function opens each week and waits for its lock.
_SIZE_OF_FILES = f"""
with recursive
  heap as materialized (
    select oid, reltoastrelid from pg_class
    where oid in ({_WEEKS}) and {has_pages("oid", True)}
  ),
  stored (oid) as (
    select oid from heap
    union all
    select reltoastrelid from heap where reltoastrelid <> 0
  ),
  part (oid) as (
    select oid from stored
    union all
    select indexrelid from pg_index join stored on indrelid = stored.oid
  ),
  segment (path, number, size) as (
    select path, 0, (pg_stat_file(path, true)).size
    from part
    cross join unnest('{{"", _fsm, _vm}}'::text[]) as fork
    cross join lateral concat(pg_relation_filepath(part.oid), fork) as path
    union all
    select path, number + 1, (pg_stat_file(format('%s.%s', path, number + 1), true)).size
    from segment where size = pg_size_bytes(current_setting('segment_size'))
  )
select sum(size) from segment
"""


def growth(connection: psycopg.Connection, conninfo: str) -> float | None:
    """The growth of the last month's weeks, in bytes a day; None: none, or unknown while a week is locked.
    `conninfo` is this connection's: a role that may not read the sizes of files opens the weeks instead, over
    further connections."""
    if connection.execute(MAY_LOOK).fetchone() == (True,):
        (size,) = connection.execute(_SIZE_OF_FILES.encode()).fetchone() or (None,)
        return float(size or 0) / 28 or None
    sizes = (
        "select sum(pg_total_relation_size(week)) from unnest(%s::oid[]) as weeks (week)"
        f" where {has_pages('week', False)}"
    )
    size = 0.0
    for some in by_connection([week for (week,) in connection.execute(_WEEKS.encode())]):
        with look(conninfo) as another:
            another.execute("set lock_timeout = '100ms'")
            try:
                (part,) = another.execute(sizes.encode(), [[*some]]).fetchone() or (None,)
            except psycopg.errors.LockNotAvailable:
                return None
            size += float(part or 0)
    return size / 28 or None


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
    query = """
        select
          application_name as name,
          coalesce(host(client_addr), 'local') as host,
          pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint as behind,
          coalesce(extract(epoch from replay_lag), 0)::float8 as seconds
        from pg_stat_replication
        where replay_lsn is not null and not pg_is_in_recovery()
        order by 1, 2
    """
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


@dataclass(frozen=True)
class _Kept:
    connection: psycopg.Connection
    until: float


class Watch:
    """The metrics of the tables for Prometheus, read from PostgreSQL at most every ten seconds, less often if
    that takes long."""

    def __init__(self, conninfo: str, data: Path | None) -> None:
        self._conninfo = conninfo
        self._data = data
        self._lock = threading.Lock()
        self._text = ""
        self._until = 0.0
        self._a_day: float | None = None
        self._growth_until = 0.0
        self._kept: dict[str, _Kept] = {}

    def ready(self) -> str | None:
        """Why the server could not serve now; None when it could."""
        try:
            with look(self._conninfo) as connection:
                connection.execute("select 1")
        except psycopg.Error as error:
            return " ".join(str(error).split())
        return None

    def text(self) -> str:
        """OpenMetrics text without its end; only `ringlog_up 0` while PostgreSQL does not answer."""
        with self._lock:
            if (began := time.monotonic()) > self._until:
                fresh = _FRESH
                try:
                    self._text = self._read()
                    fresh = min(max(_FRESH, (time.monotonic() - began) / _PART), _LONGEST_FRESH)
                except (psycopg.Error, OSError):
                    self._text = _family("ringlog_up", "1 while PostgreSQL answers.", [("", 0)])
                self._until = time.monotonic() + fresh
            return self._text

    def _read(self) -> str:
        first = self._states(self._conninfo)
        connection = self._kept[self._conninfo].connection
        states, nodes = first, {}
        looked_at: dict[str | None, str] = {None: self._conninfo}
        if _has_nodes(connection):
            servers = Everywhere(self._conninfo)
            order = []

            def states_of(server: str) -> list[TableState]:
                order.append(server)
                return first if server == self._conninfo else self._states(server)

            found = states_everywhere(servers, states_of)
            looked_at = dict(zip(found, order, strict=True))
            states = [state for own in found.values() for state in own]
            nodes = {name: name not in servers.away for name in servers.nodes}
        return _metrics(
            states,
            space(self._data, self._growth(connection)) if self._data else None,
            (connection.info.host, connection.info.port),
            standbys(connection),
            nodes,
            {
                name: clock_doubt(self._kept[server].connection) is not None
                for name, server in looked_at.items()
            },
            connection.info.server_version,
            safety(connection),
            [failure for server in looked_at.values() for failure in failures(self._kept[server].connection)],
        )

    def _states(self, server: str) -> list[TableState]:
        """The tables of a server, by a kept connection, which has opened each and planned its statement. A
        lost connection is made again."""
        kept = self._kept.pop(server, None)
        if kept is not None:
            try:
                if time.monotonic() < kept.until:
                    return self._ask(server, kept)
            except psycopg.OperationalError:
                pass
            kept.connection.close()
        return self._ask(server, _Kept(look(server, kept=True), time.monotonic() + _KEPT))

    def _ask(self, server: str, kept: _Kept) -> list[TableState]:
        states = _states(kept.connection, None, _callers(kept.connection), again=True)
        self._kept[server] = kept
        return states

    def _growth(self, connection: psycopg.Connection) -> float | None:
        """The growth of the logs, which is queried less often."""
        if (now := time.monotonic()) > self._growth_until:
            self._a_day, self._growth_until = growth(connection, self._conninfo), now + _FRESH_GROWTH
        return self._a_day


def _metrics(
    states: list[TableState],
    left: Space | None,
    server: tuple[str, int],
    behind: list[Standby],
    nodes: Mapping[str, bool],
    doubts: Mapping[str | None, bool],
    version: int,
    safe: Safety,
    failed: list[Failure],
) -> str:
    def of_tables(name: str, description: str, values: list[tuple[str, float | None]]) -> str:
        samples = [(f'{{table="{table}"}}', value) for table, value in values if value is not None]
        return _family(name, description, samples)

    parts = [
        _family("ringlog_up", "1 while PostgreSQL answers.", [("", 1)]),
        _family(
            "ringlog_postgresql_reached",
            "1 for the PostgreSQL that is used, of those that the connection string names.",
            [(_labels(host=server[0], port=str(server[1])), 1)],
        ),
        _family(
            "ringlog_postgresql_outdated",
            "1 for a minor release of PostgreSQL that is known to lack published fixes.",
            [(_labels(version=releases.version_text(version)), releases.outdated(version) is not None)],
        ),
        _family(
            "ringlog_wal_archive_failing",
            "1 when archiving the write-ahead log has failed since it last worked.",
            [("", safe.archiving_failed is not None)],
        ),
        _family(
            "ringlog_backup_age_seconds",
            "Age of the latest copy by ringlog backup; no sample where there is none.",
            [] if safe.backup_age is None else [("", safe.backup_age)],
        ),
        of_tables(
            "ringlog_table_newest_row_age_seconds",
            "Time since a row arrived; no sample for an empty ring.",
            [(state.table_name, state.age) for state in states],
        ),
        of_tables(
            "ringlog_table_cycle_seconds",
            "Seconds from row to row, from the facility file.",
            [(state.table_name, state.cycle) for state in states],
        ),
        of_tables(
            "ringlog_table_silent",
            "1 when no row has arrived for three cycles and a minute.",
            [(state.table_name, state.silent) for state in states],
        ),
        of_tables(
            "ringlog_table_ahead_seconds",
            "How far the newest row's time is ahead of the clock, if it is more than a minute; else 0.",
            [(state.table_name, None if state.unread else state.ahead or 0) for state in states],
        ),
        of_tables(
            "ringlog_table_rows_per_second",
            "Rows inserted into the log per second, over the last minute.",
            [(state.table_name, state.rows_per_second) for state in states],
        ),
        of_tables(
            "ringlog_table_default_partition_rows",
            "Rows of the log whose times belong to no week's partition.",
            [(state.table_name, state.in_default) for state in states],
        ),
        of_tables(
            "ringlog_table_unread",
            "1 for a table that is locked or cannot be read, and so has none of those samples.",
            [(state.table_name, state.unread is not None) for state in states],
        ),
        _family(
            "ringlog_table_last_call_timestamp_seconds",
            "Time of the last call of put over TDS, and its caller.",
            [
                (
                    _labels(
                        table=state.table_name,
                        host=state.host or "",
                        program=state.program or "",
                        login=state.login or "",
                    ),
                    state.called.timestamp(),
                )
                for state in states
                if state.called
            ],
        ),
        _family(
            "ringlog_table_last_error_timestamp_seconds",
            "Time of the last call of put that failed, and its error number.",
            [
                (_labels(table=state.table_name, number=str(state.number)), state.failed.timestamp())
                for state in states
                if state.failed
            ],
        ),
    ]
    parts.append(
        _family(
            "ringlog_housekeeping_failed",
            "1 for a table that housekeeping cannot read, and the work that it cannot do.",
            [(_labels(table=each.table, work=each.work), 1) for each in failed],
        )
    )
    parts.append(
        _family(
            "ringlog_clock_doubted",
            "1 while PostgreSQL's clock has jumped and no week leaves the log by it.",
            [(_labels(node=node) if node else "", int(doubted)) for node, doubted in doubts.items()],
        )
    )
    if nodes:
        samples: list[tuple[str, float]] = [(_labels(node=name), int(up)) for name, up in nodes.items()]
        parts.append(_family("ringlog_node_up", "1 while a node answers.", samples))
    if behind:
        labels = [_labels(standby=one.name, host=one.host) for one in behind]
        parts += [
            _family(
                "ringlog_standby_replay_lag_bytes",
                "Write-ahead log that a standby has not yet replayed.",
                list(zip(labels, (one.behind for one in behind), strict=True)),
            ),
            _family(
                "ringlog_standby_replay_lag_seconds",
                "Time from the commit of a row until it is visible on a standby.",
                list(zip(labels, (one.seconds for one in behind), strict=True)),
            ),
        ]
    if left is not None:
        parts.append(
            _family("ringlog_disk_free_bytes", "Free space of the data directory's disk.", [("", left.free)])
        )
        if left.days is not None:
            description = "Time until the disk is full, at the growth of the logs in the last 28 days."
            parts.append(_family("ringlog_disk_left_seconds", description, [("", left.days * 86_400)]))
    return "".join(parts)


def _labels(**values: str) -> str:
    """Labels in the text's form; names reported by clients may contain anything."""
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return "{" + ",".join(f'{name}="{value.translate(escapes)}"' for name, value in values.items()) + "}"


def _family(name: str, description: str, samples: list[tuple[str, float]]) -> str:
    lines = [f"# HELP {name} {description}", f"# TYPE {name} gauge"]
    lines += [f"{name}{labels} {value:.17g}" for labels, value in samples]
    return "\n".join(lines) + "\n"
