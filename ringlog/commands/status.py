"""The command `ringlog status`: whether the server runs, its tables and writers, the disk."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg.rows import class_row

from ringlog.commands.lines import age_text, coloured, columns, plain
from ringlog.commands.options import Data, Dsn
from ringlog.errors import UsageError
from ringlog.monitoring import presence
from ringlog.monitoring.watching import (
    Failure,
    Space,
    TableState,
    as_json,
    clock_doubt,
    failures,
    growth,
    look,
    space,
    states_everywhere,
)
from ringlog.nodes.servers import Everywhere, label
from ringlog.schema.layout import GATEWAY
from ringlog.schema.sql_files import sql_file
from ringlog.server.database import Embedded, External, chosen_database, demand_facility
from ringlog.server.embedded.data_lock import Service, latest_service
from ringlog.server.guards.disk import Disk

_AGES = 36_525  # days: a century
_PAUSE = 2.0  # seconds between two looks of --watch


@dataclass(frozen=True)
class Writer:
    """A writer of ringlog's own, as it has reported. Times in seconds."""

    table_name: str
    state: str
    name: str
    epoch: int
    acknowledged: int | None
    waiting: int | None
    oldest: datetime | None
    late: int | None
    refused: int | None
    repeated: int | None
    reconnected: int | None
    latency: float | None
    reported: datetime | None
    troubled: datetime | None
    trouble: str | None


_WRITERS = sql_file(__file__, "status_writers")


@dataclass(frozen=True)
class _Server:
    """The findings about one server."""

    states: list[TableState]
    writers: list[Writer]
    failed: list[Failure]
    doubt: str | None
    priority: str | None
    """of writers, as the running gateway reports it"""


def status(
    data: Data = None,
    dsn: Dsn = None,
    machine: Annotated[
        bool, typer.Option("--json", help="Print servers, tables, writers and disk as JSON, for programs.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also the last caller of each table, and all figures of the writers."),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Print it again every two seconds, until Ctrl-C.")
    ] = False,
) -> None:
    """Print whether the server runs, the free disk space, and a line for each table of all servers, those
    with a problem first. The command does not start PostgreSQL.

    Code 1: the server does not run, a table is silent or cannot be read, housekeeping cannot read a table, a
    node cannot be reached, or PostgreSQL's clock has jumped."""
    if watch and machine:
        raise UsageError("--watch is for people, --json for programs: choose one")
    database = chosen_database(data, dsn)
    if not watch:
        if not _print(database, machine, everything):
            raise typer.Exit(1)
        return
    with suppress(KeyboardInterrupt):
        while True:
            # from the top of an empty screen
            print("\x1b[H\x1b[2J", end="")
            _print(database, machine, everything)
            print(
                coloured(f"\n{datetime.now().astimezone():%H:%M:%S %Z}; Ctrl-C ends it", "quiet"), flush=True
            )
            time.sleep(_PAUSE)


def _print(database: Embedded | External, machine: bool, everything: bool) -> bool:
    """Prints the report once. Returns whether all is well."""
    disk = None
    if isinstance(database, Embedded):
        disk = database.data
        database.postgres.demand()
        service, runs = latest_service(disk)
        if not runs:
            _print_stopped(service, disk, machine)
            return False
    with database.opened() as conninfo:
        demand_facility(conninfo)
        servers = Everywhere(conninfo)
        states = states_everywhere(servers)
        by_node = {node: _server(server, states.get(node, [])) for node, server in servers}
        with look(conninfo) as connection:
            running = presence.servers(connection)
            left = None if disk is None else space(disk, growth(connection, conninfo))
        if machine:
            doubts = {node: each.doubt for node, each in by_node.items() if each.doubt}
            failed = {node: each.failed for node, each in by_node.items()}
            state = as_json(states, left, servers.away, doubts, failed)
            writers = [
                asdict(writer) | {"node": node} for node, each in by_node.items() for writer in each.writers
            ]
            everything_found = {"servers": presence.as_json(running)} | state | {"writers": writers}
            print(json.dumps(everything_found, default=lambda at: at.isoformat()))
        else:
            for one in running:
                print(one)
            if not running:
                print(coloured("no ringlog serve runs on this database", "red"))
            if left is not None and disk is not None:
                print(f"disk: {left.free / 1e9:.1f} GB free{lasting(left)}")
                _warn_of(disk)
            for node, each in by_node.items():
                print(f"\n{label(node)}:" if servers.nodes else "")
                for line in _lines(each, everything):
                    print(line)
        servers.demand_all()
    return bool(running) and not any(
        each.doubt or each.failed or any(state.silent or state.unread for state in each.states)
        for each in by_node.values()
    )


def _server(server: str, states: list[TableState]) -> _Server:
    with look(server) as connection:
        with connection.cursor(row_factory=class_row(Writer)) as cursor:
            writers = cursor.execute(_WRITERS).fetchall()
        return _Server(
            states, writers, failures(connection), clock_doubt(connection), _writer_priority(connection)
        )


def _print_stopped(service: Service | None, data: Path, machine: bool) -> None:
    """Prints that the server of a data directory does not run, and since when."""
    if machine:
        latest = {"latest": None if service is None else asdict(service)}
        state = as_json({}, space(data, None), {}, {}, {})
        print(json.dumps({"servers": []} | latest | state | {"writers": []}))
        return
    if service is None:
        when = "it has not run yet"
    elif service.until is None:
        when = f"it ran since {service.since} and ended without a stop"
    else:
        when = f"it stopped at {service.until}"
    print(coloured(f"ringlog serve does not run: {when}", "red"))
    _warn_of(data)


def _warn_of(data: Path) -> None:
    """Prints a warning when the disk of a data directory is nearly full."""
    disk = Disk.beneath(data)
    if disk.is_nearly_full:
        print(coloured(f"  {disk}: {disk.remedy}", "yellow"))


def _lines(server: _Server, everything: bool) -> Iterator[str]:
    """The report on a server: a line per table, first the tables with a problem, with its description."""
    now = datetime.now(UTC)
    troubles = {state.table_name: [*_troubles(state, server.writers, now)] for state in server.states}
    order = sorted(
        server.states,
        key=lambda state: (not _is_wrong(state), not troubles[state.table_name], state.table_name),
    )
    wrong = sum(_is_wrong(state) for state in order)
    if order:
        yield coloured(
            f"{wrong} of {len(order)} tables: silent or not to be read"
            if wrong
            else f"{len(order)} table{'s' * (len(order) != 1)}",
            "red" if wrong else "bold",
        )
        yield from _table(order, now)
    for state in order:
        yield from troubles[state.table_name]
    for failure in server.failed:
        yield coloured(plain(failure.message), "red")
    if server.doubt:
        yield coloured(server.doubt, "red")
    if server.priority:
        yield plain(server.priority)
    yield _of_writers(server.writers)
    if everything:
        yield from _callers(server.states)
        yield from _figures(server.writers)


def _is_wrong(state: TableState) -> bool:
    return bool(state.silent or state.unread)


def _table(states: Sequence[TableState], now: datetime) -> Iterator[str]:
    zone = now.astimezone().tzname()
    head = ["table", "state", f"newest row ({zone})", "age", "cycle", "rows/s"]
    rows = [
        [
            state.table_name,
            _word(state),
            _moment(state.newest),
            _age(state, now),
            "-" if state.cycle is None else f"{state.cycle:g} s",
            "-" if state.rows_per_second is None else f"{state.rows_per_second:.2f}",
        ]
        for state in states
    ]
    first, *lines = columns([head, *rows], right=(3, 4, 5))
    yield coloured(first, "quiet")
    for state, line in zip(states, lines, strict=True):
        ahead = state.ahead is not None
        yield coloured(line, "red") if _is_wrong(state) else coloured(line, "yellow") if ahead else line


def _word(state: TableState) -> str:
    if state.unread:
        return "unread"
    if state.silent:
        return "silent" if state.newest is not None else "never written"
    return "current" if state.ahead is None else "ahead of the clock"


def _moment(when: datetime | None) -> str:
    return "-" if when is None else f"{when.astimezone():%Y-%m-%d %H:%M:%S}"


def _age(state: TableState, now: datetime) -> str:
    if state.age is not None:
        return age_text(state.age)
    return "-" if state.newest is None else age_text((now - state.newest).total_seconds())


def _ago(when: datetime, now: datetime) -> str:
    return f"{_moment(when)} ({age_text((now - when).total_seconds())} ago)"


def _troubles(state: TableState, writers: Sequence[Writer], now: datetime) -> Iterator[str]:
    name = state.table_name
    if state.unread:
        yield coloured(f"  {name}: {plain(state.unread)}", "red")
    if state.in_default:
        yield coloured(
            f"  {name}: {state.in_default} rows have times that are of no week of the log", "yellow"
        )
    if state.failed:
        who = plain(f"{state.login}@{state.host} {state.program}").strip()
        line = f"  {name}: error {state.number} at {_ago(state.failed, now)}, by {who}: {plain(state.error)}"
        yield coloured(line, "yellow")
    for writer in writers:
        if writer.table_name == name and writer.trouble and writer.troubled:
            trouble = f"since {_ago(writer.troubled, now)}: {plain(writer.trouble)}"
            yield coloured(f"  {name}: writer {plain(writer.name)} {trouble}", "yellow")


def _of_writers(writers: Sequence[Writer]) -> str:
    if not writers:
        return "no writer has claimed a table"
    counts: dict[str, int] = {}
    for writer in writers:
        counts[writer.state] = counts.get(writer.state, 0) + 1
    states = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
    sums = [
        (sum(getattr(each, name) or 0 for each in writers), name) for name in ("waiting", "late", "refused")
    ]
    rows = "".join(f"; {number} rows {name}" for number, name in sums if number)
    text = f"{len(writers)} writer{'' if len(writers) == 1 else 's'}: {states}{rows}"
    return coloured(text, "yellow") if "silent" in counts else text


def _callers(states: Sequence[TableState]) -> Iterator[str]:
    called = [state for state in states if state.called]
    if called:
        yield ""
        head = ["table", "called", "last caller"]
        rows = [
            [state.table_name, _moment(state.called), f"{state.login}@{state.host} {state.program}"]
            for state in called
        ]
        yield from columns([head, *rows])


def _figures(writers: Sequence[Writer]) -> Iterator[str]:
    if writers:
        yield ""
        head = [
            "table",
            "state",
            "writer",
            "claim",
            "written",
            "waiting",
            "oldest",
            "late",
            "refused",
            "repeated",
        ]
        head += ["reconnected", "latency", "reported"]
        rows = [
            [
                *(each.table_name, each.state, each.name, each.epoch, each.acknowledged, each.waiting),
                *(_moment(each.oldest), each.late, each.refused, each.repeated, each.reconnected),
                *("-" if each.latency is None else f"{each.latency * 1000:.1f} ms", _moment(each.reported)),
            ]
            for each in writers
        ]
        cells = [["-" if cell is None else cell for cell in row] for row in rows]
        yield from columns([head, *cells], right=(3, 4, 5, 7, 8, 9, 10, 11))


def _writer_priority(connection: psycopg.Connection) -> str | None:
    """The running gateway's report on the priority of writers; None when none runs."""
    query = (
        "select application_name from pg_stat_activity"
        " where usename = %s and application_name like 'ringlog catalogue, %%'"
    )
    found = connection.execute(query, [GATEWAY]).fetchone()
    return None if found is None else str(found[0]).removeprefix("ringlog catalogue, ")


def lasting(left: Space) -> str:
    """The time for which the disk suffices, at the growth of the logs, which takes a day to measure."""
    if left.days is None or left.a_day is None:
        return ", its forecast is not known yet"
    days = f"{left.days:.0f} days" if left.days < _AGES else "more than 100 years"
    return f", {days} at {left.a_day / 1e6:.1f} MB a day"
