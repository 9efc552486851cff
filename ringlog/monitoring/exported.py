"""The state of the tables for Prometheus, as gauges."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from prometheus_client.core import GaugeMetricFamily, Metric

from ringlog.monitoring.metrics import exposition
from ringlog.monitoring.watching import (
    Space,
    Standby,
    TableState,
    callers,
    clock_doubt,
    failures,
    growth,
    has_nodes,
    look,
    safety,
    space,
    standbys,
    states_everywhere,
    states_of,
)
from ringlog.nodes.servers import Everywhere
from ringlog.server.embedded import releases

# Seconds for which an answer is reused; longer where the query takes long, so that thousands of tables use
# only a part of a core.
_FRESH = 10.0
_PART = 0.05
_LONGEST_FRESH = 60.0
_FRESH_GROWTH = 600.0
# Seconds for which the metrics keep a connection, which caches statements of each week.
_KEPT = 86_400.0
_UP = "1 while PostgreSQL answers."
_OF_TABLES: Mapping[str, tuple[str, Callable[[TableState], float | None]]] = {
    "newest_row_age_seconds": (
        "Time since a row arrived; no sample for an empty ring.",
        lambda state: state.age,
    ),
    "cycle_seconds": ("Seconds from row to row, from the facility file.", lambda state: state.cycle),
    "silent": ("1 when no row has arrived for three cycles and a minute.", lambda state: state.silent),
    "ahead_seconds": (
        "How far the newest row's time is ahead of the clock, if it is more than a minute; else 0.",
        lambda state: None if state.unread else state.ahead or 0,
    ),
    "rows_per_second": (
        "Rows inserted into the log per second, over the last minute.",
        lambda state: state.rows_per_second,
    ),
    "default_partition_rows": (
        "Rows of the log whose times belong to no week's partition.",
        lambda state: state.in_default,
    ),
    "unread": (
        "1 for a table that is locked or cannot be read, and so has none of those samples.",
        lambda state: state.unread is not None,
    ),
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
                    self._text = exposition([_gauge("up", _UP, 0)])
                self._until = time.monotonic() + fresh
            return self._text

    def _read(self) -> str:
        first = self._states(self._conninfo)
        connection = self._kept[self._conninfo].connection
        states, nodes = first, {}
        looked_at: dict[str | None, str] = {None: self._conninfo}
        if has_nodes(connection):
            servers = Everywhere(self._conninfo)
            order = []

            def states_there(server: str) -> list[TableState]:
                order.append(server)
                return first if server == self._conninfo else self._states(server)

            found = states_everywhere(servers, states_there)
            looked_at = dict(zip(found, order, strict=True))
            states = [state for own in found.values() for state in own]
            nodes = {name: name not in servers.away for name in servers.nodes}
        first_server = [*_of_server(connection)]
        left = space(self._data, self._growth(connection)) if self._data else None
        others = {server: self._kept[server].connection for server in looked_at.values()}
        failed = [failure for other in others.values() for failure in failures(other)]
        doubts = [(node or "", clock_doubt(others[server]) is not None) for node, server in looked_at.items()]
        return exposition(
            [
                *first_server,
                *_of_tables(states),
                _gauge(
                    "housekeeping_failed",
                    "1 for a table that housekeeping cannot read, and the work that it cannot do.",
                    [(failure.table, failure.work, 1) for failure in failed],
                    ["table", "work"],
                ),
                _gauge(
                    "clock_doubted",
                    "1 while PostgreSQL's clock has jumped and no week leaves the log by it.",
                    doubts,
                    ["node"],
                ),
                *_of_nodes(nodes, standbys(connection)),
                *_of_disk(left),
            ]
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
        states = states_of(kept.connection, None, callers(kept.connection), again=True)
        self._kept[server] = kept
        return states

    def _growth(self, connection: psycopg.Connection) -> float | None:
        """The growth of the logs, which is queried less often."""
        if (now := time.monotonic()) > self._growth_until:
            self._a_day, self._growth_until = growth(connection, self._conninfo), now + _FRESH_GROWTH
        return self._a_day


def _gauge(
    name: str,
    description: str,
    samples: float | Sequence[tuple[str | float | None, ...]],
    labels: Sequence[str] = (),
) -> Metric:
    """A gauge with one value without labels, or with samples: the values of its labels, then its own."""
    gauge = GaugeMetricFamily(f"ringlog_{name}", description, labels=labels)
    for *values, value in [(samples,)] if isinstance(samples, int | float) else samples:
        if value is not None:
            gauge.add_metric([str(one) for one in values], float(value))
    return gauge


def _of_server(connection: psycopg.Connection) -> Iterator[Metric]:
    host, port, version = connection.info.host, connection.info.port, connection.info.server_version
    safe = safety(connection)
    yield _gauge("up", _UP, 1)
    yield _gauge(
        "postgresql_reached",
        "1 for the PostgreSQL that is used, of those that the connection string names.",
        [(host, port, 1)],
        ["host", "port"],
    )
    yield _gauge(
        "postgresql_outdated",
        "1 for a minor release of PostgreSQL that is known to lack published fixes.",
        [(releases.version_text(version), releases.outdated(version) is not None)],
        ["version"],
    )
    yield _gauge(
        "wal_archive_failing",
        "1 when archiving the write-ahead log has failed since it last worked.",
        safe.archiving_failed is not None,
    )
    yield _gauge(
        "backup_age_seconds",
        "Age of the latest copy by ringlog backup; no sample where there is none.",
        [(safe.backup_age,)],
    )


def _of_tables(states: Sequence[TableState]) -> Iterator[Metric]:
    for name, (description, value) in _OF_TABLES.items():
        samples = [(state.table_name, value(state)) for state in states]
        yield _gauge(f"table_{name}", description, samples, ["table"])
    called = [
        (state.table_name, state.host or "", state.program or "", state.login or "", state.called.timestamp())
        for state in states
        if state.called
    ]
    yield _gauge(
        "table_last_call_timestamp_seconds",
        "Time of the last call of put over TDS, and its caller.",
        called,
        ["table", "host", "program", "login"],
    )
    yield _gauge(
        "table_last_error_timestamp_seconds",
        "Time of the last call of put that failed, and its error number.",
        [(state.table_name, state.number, state.failed.timestamp()) for state in states if state.failed],
        ["table", "number"],
    )


def _of_nodes(nodes: Mapping[str, bool], behind: Sequence[Standby]) -> Iterator[Metric]:
    if nodes:
        yield _gauge("node_up", "1 while a node answers.", [*nodes.items()], ["node"])
    if behind:
        labels = ["standby", "host"]
        yield _gauge(
            "standby_replay_lag_bytes",
            "Write-ahead log that a standby has not yet replayed.",
            [(one.name, one.host, one.behind) for one in behind],
            labels,
        )
        yield _gauge(
            "standby_replay_lag_seconds",
            "Time from the commit of a row until it is visible on a standby.",
            [(one.name, one.host, one.seconds) for one in behind],
            labels,
        )


def _of_disk(left: Space | None) -> Iterator[Metric]:
    if left is not None:
        yield _gauge("disk_free_bytes", "Free space of the data directory's disk.", left.free)
        if left.days is not None:
            description = (
                "Time until the disk is full, at the growth of the logs in the last 28 days; after a day."
            )
            yield _gauge("disk_left_seconds", description, left.days * 86_400)
