"""Moves tables from one server to another while they are written.

The rows of closed weeks are copied, then those that arrived meanwhile, repeatedly; the last ones while
writers wait. In the same moment the first server records that the table is elsewhere: the gateways are
notified, and calls that waited are refused on the old server with the error after which the gateway looks for
the table's new server. Then every row of the old copy is compared with the new one, and the old one is
dropped.

A move that was interrupted at any moment can be continued by the next call. Before the switch the old server
has everything. After it the new one has, except for rows that came to the old one when this ended between the
switch and the closing of the old copy: these are copied when it is continued, unless their writers have sent
them again.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import sqlalchemy as sa
from psycopg import errors, sql
from sqlalchemy.dialects import postgresql

from ringlog.errors import ServerError, UsageError
from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.nodes import signals
from ringlog.nodes.archived import copied_files
from ringlog.nodes.everywhere import as_it_is, install_everywhere, number_signals
from ringlog.nodes.servers import label, node_of_each_table, reached
from ringlog.nodes.under_way import Move, moves_under_way, no_other_move
from ringlog.procedures import Procedure
from ringlog.schema import catalogue, locks, registry
from ringlog.schema.access import rights
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import CHANNEL, MOVED, announce, change, run
from ringlog.schema.facility import Facility, Table
from ringlog.schema.installing import renaming
from ringlog.schema.installing.install import bring_up_to_date, install, procedures_of
from ringlog.schema.layout import LOG_TABLES, READER, SUMMARIES
from ringlog.schema.moving import elsewhere, moves, nodes
from ringlog.schema.moving.carrying import Carrier, Connection, Part, opened
from ringlog.schema.moving.carrying_samples import SampleCarrier
from ringlog.schema.relations import sample_tables
from ringlog.schema.relations.partitions import alone, log_partitions, make_partition
from ringlog.schema.relations.statistics import turn_off as turn_off_statistics
from ringlog.schema.relations.tables import stored_columns
from ringlog.schema.relations.tiers import summarised
from ringlog.schema.session import driver, engine

_FEW = 200
"""number of rows that may wait for the last step"""
_LOCK_TIMEOUT = "400ms"
_PAUSE = 0.2
"""seconds between attempts to get locks"""
_PATIENCE = 60.0
"""seconds after which the attempts end"""


def move_tables(conninfo: str, facility: Facility, names: Collection[str]) -> Iterator[str]:
    """Moves these tables, all if none are named, to where the facility says. Yields lines on the progress.

    Raises ServerError for problems that an operator can fix. An unfinished move continues, or is undone if
    the facility names the table's old server again.
    """
    wanted = {table.name: table for table in facility.every_table}
    unknown = [name for name in names if name not in wanted]
    if unknown:
        raise UsageError(f"the facility file has no table {', '.join(unknown)}")
    first = engine(conninfo)
    with no_other_move(conninfo):
        bring_up_to_date(first, [install_tsql])
        with first.connect() as connection:
            now = node_of_each_table(driver(connection))
            under_way = moves_under_way(connection)
        if not under_way:
            report = install_everywhere(first, as_it_is(facility, now))
            if report:
                yield str(report)
        with first.connect() as connection:
            by_name = {name: reached(dsn) for name, (dsn, _) in nodes.known_nodes(connection).items()}
        servers: dict[str | None, str] = {None: conninfo} | dict(by_name.items())
        moved = False
        for move in under_way:
            if names and move.table not in names:
                continue
            moved = True
            if move.switched:
                yield from _Moving(servers, move).finish()
            elif move.table not in wanted or wanted[move.table].node != move.target:
                yield from _Moving(servers, move).take_back()
        for name in names or wanted:
            target, source = wanted[name].node, now.get(name, wanted[name].node)
            if source == target:
                continue
            if target not in servers:
                raise UsageError(
                    f"node {target} is not known yet: first finish the moves that were begun, naming their"
                    " tables"
                )
            moved = True
            yield from _Moving(servers, Move(name, source, target, False)).run(facility)
        if not moved:
            yield "every table is where the facility file says"


class _Moving:
    def __init__(self, servers: dict[str | None, str], move: Move) -> None:
        self.move = move
        self.table = move.table
        self.first_conninfo = servers[None]
        self.first = engine(servers[None])
        try:
            self.source_conninfo = servers[move.source]
            self.target_conninfo = servers[move.target]
        except KeyError as error:
            raise ServerError(f"{move}: node {error.args[0]} is not known any more") from None
        self.source = engine(self.source_conninfo)
        self.target = engine(self.target_conninfo)
        self._procedures: list[Procedure] = []
        self._readable: list[sql.Identifier] = []
        """of a table that moves to the first server: made and granted at the switch"""

    def run(self, facility: Facility) -> Iterator[str]:
        """The whole move, continuing at its current step."""
        yield f"{self.move}: begins"
        bring_up_to_date(self.source, [install_tsql])
        bring_up_to_date(self.target, [install_tsql])
        self._note()
        with ExitStack() as stack:
            # housekeeping of partitions waits
            stack.enter_context(alone(self.source))
            stack.enter_context(alone(self.target))
            carrier = self._carrier(stack)
            change(self.source, partial(self._begin_recording, carrier.recording))
            self._install(facility)
            for name, rows in self._copy(carrier):
                yield f"{self.table}: {rows} rows of {name} copied"
            with self._summaries_waiting(carrier):
                waited = self._switch(carrier)
            yield f"{self.table}: on {label(self.move.target)} now; writers waited {waited:.3f} s"
        yield from self.finish()

    def take_back(self) -> Iterator[str]:
        """Cancels the move before the switch."""

        def end_recording(connection: sa.Connection) -> None:
            become_owner(connection)
            moves.end_recording(connection, self.table)

        stood_in = self._node_tables(self.source, self.move.source) if self.move.target is None else []

        def drop(connection: sa.Connection) -> None:
            become_owner(connection)
            moves.drop_copy(connection, self.table)
            if stood_in:
                nodes.placing([], stood_in)(connection)
                announce(connection)

        with alone(self.target):
            change(self.target, drop)
        change(self.source, end_recording)
        change(self.first, self._forget)
        yield f"{self.move}: taken back"

    def finish(self) -> Iterator[str]:
        """The last step after the switch: the old copy."""
        node_tables = self._node_tables(self.target, self.move.target)
        with ExitStack() as stack:
            stack.enter_context(alone(self.source))
            stack.enter_context(alone(self.target))
            with self.source.connect() as connection:
                is_there = self.table in sample_tables.names(connection)
            if is_there:
                carrier = self._carrier(stack)
                self._patiently(lambda: self._close(carrier))
                self._compare(carrier)
                yield f"{self.table}: every row of the old copy is on {label(self.move.target)}"
                carrier.source.close()

        def drop(connection: sa.Connection) -> None:
            become_owner(connection)
            if is_there:
                moves.drop_copy(connection, self.table)

        def clear(connection: sa.Connection) -> None:
            become_owner(connection)
            if self.move.source is None:
                drop(connection)
            nodes.placing([], node_tables)(connection)
            announce(connection, MOVED)

        def arrived(connection: sa.Connection) -> None:
            become_owner(connection)
            own = elsewhere.moved_part.c.table_name == self.table
            connection.execute(elsewhere.moved_part.delete().where(own))
            rights.grant_missing(driver(connection))

        if self.move.source is not None:
            change(self.source, drop)
        change(self.first, clear)
        change(self.target, arrived)
        change(self.first, self._forget)
        yield f"{self.move}: done"

    def _note(self) -> None:
        """Records the move on the first server, unless it is recorded."""

        def note(connection: sa.Connection) -> None:
            become_owner(connection)
            if any(each.table == self.table for each in moves_under_way(connection)):
                return
            with self.target.connect() as connected:
                if self.table in sample_tables.names(connected):
                    raise ServerError(f"{label(self.move.target)} has another table {self.table} already")
            row = {"table_name": self.table, "source": self.move.source, "target": self.move.target}
            connection.execute(elsewhere.move.insert().values(row))

        change(self.first, note)

    def _forget(self, connection: sa.Connection) -> None:
        become_owner(connection)
        connection.execute(elsewhere.move.delete().where(elsewhere.move.c.table_name == self.table))

    def _begin_recording(self, function: str, connection: sa.Connection) -> None:
        become_owner(connection)
        moves.begin_recording(connection, self.table, function)

    def _install(self, facility: Facility) -> None:
        """Creates the table on the target as on the source, with the partitions of its log."""
        with self.source.connect() as connection:
            order = [*stored_columns(connection, "online", [self.table])[self.table]]
            rows = registry.ring_sizes(connection).get(self.table, 0)
            partitions = log_partitions(connection, self.table)
            formers = renaming.former_names(connection).get(self.table, [])
        with self.target.connect() as connection:
            existing = sample_tables.names(connection)
        wanted = {*existing, self.table}
        own = replace(
            facility.of(self.move.target),
            tables=tuple(
                _as_stored(one, order, rows) if one.name == self.table else one
                for one in facility.tables
                if one.name in wanted
            ),
            # its signals come along
            sample_tables=tuple(
                replace(one, signals=()) if one.name == self.table else one
                for one in facility.sample_tables
                if one.name in wanted
            ),
        )
        if own.sample_tables and self.move.target is not None:
            with self.first.connect() as connection:
                number = nodes.numbers(connection)[self.move.target]
            number_signals(self.target, number)

        def name_formers(connection: sa.Connection) -> None:
            become_owner(connection)
            existing_names = renaming.former_names(connection).get(self.table, [])
            for former in formers:
                if former not in existing_names:
                    row = {"former": former, "table_name": self.table}
                    connection.execute(renaming.former_table.insert().values(row))

        def before(connection: sa.Connection) -> None:
            if self.move.target is None and self.table not in existing:
                become_owner(connection)
                nodes.make_room(connection, self.table)
                run(connection, "reset role")

        def unused(connection: sa.Connection) -> list[str]:
            # before the switch the first server has the table, but does not use it
            for node_table in stood_in:
                self._procedures = procedures_of(connection, own, self.table)
                self._readable = nodes.keep_away(connection, node_table)
            return []

        def begun(connection: sa.Connection) -> list[str]:
            row = postgresql.insert(elsewhere.moved_part).values(table_name=self.table, part=moves.BEGUN)
            connection.execute(row.on_conflict_do_nothing())
            return []

        def not_summarised(connection: sa.Connection) -> list[str]:
            # the target's summaries are the source's until it takes rows
            own = summarised.c.table_name == self.table
            connection.execute(summarised.update().where(own).values(levels=[]))
            return []

        def make_partitions(connection: sa.Connection) -> None:
            become_owner(connection)
            existing_partitions = log_partitions(connection, self.table)
            for one in partitions:
                if not any(other.start < one.end and one.start < other.end for other in existing_partitions):
                    make_partition(connection, self.table, one)
                    turn_off_statistics(connection, self.table, one.name)

        stood_in = self._node_tables(self.source, self.move.source) if self.move.target is None else []
        change(self.target, name_formers)
        install(self.target, own, [install_tsql, self._demand_same, begun, not_summarised, unused], before)
        change(self.target, make_partitions)

    def _demand_same(self, there: sa.Connection) -> list[str]:
        with self.source.connect() as here:
            for schema in ("online", "ring", LOG_TABLES, SUMMARIES):
                own, other = (
                    stored_columns(each, schema, [self.table]).get(self.table, {}) for each in (here, there)
                )
                if own != other or (schema == "online" and [*own] != [*other]):
                    differ = sorted({*own.items()} ^ {*other.items()})
                    how = ", ".join(f"{name} {kind}" for name, kind in differ) or "order of columns"
                    raise ServerError(
                        f"table {self.table} on {label(self.move.source)} differs from the facility file"
                        f" ({schema}: {how}): move it unchanged, then change it"
                    )
        return []

    def _carrier(self, stack: ExitStack) -> Carrier:
        source = stack.enter_context(opened(self.source_conninfo))
        target = stack.enter_context(opened(self.target_conninfo))
        with self.source.connect() as connection:
            if catalogue.is_of_samples(connection, self.table):
                log = sql.Identifier(LOG_TABLES, self.table)
                return SampleCarrier(source, target, self.table, log, to_first=self.move.target is None)
            is_view = self.table in stored_columns(connection, "ring", [self.table])
        return Carrier(
            source, target, self.table, sql.Identifier("ring" if is_view else "online", self.table)
        )

    def _parts(self) -> list[Part]:
        with self.source.connect() as connection:
            found = log_partitions(connection, self.table)
        return [
            Part(f"{self.table}_default", None, None),
            *(Part(one.name, one.start, one.end) for one in found),
        ]

    def _copy(self, carrier: Carrier) -> Iterator[tuple[str, int]]:
        """The closed parts, then the rows that arrived meanwhile, until few are left."""
        done = carrier.done()
        for part in self._parts():
            if part.name not in done:
                rows = carrier.copy(part)
                if rows:
                    yield f"log.{part.name}", rows
        yield from copied_files(self.source, self.target, self.table)
        if self.move.target is not None:
            carrier.copy_signals()
        if SUMMARIES not in done:
            carrier.copy_summaries()
        carrier.carry_books()
        self._ring_as_of = carrier.as_of()
        carrier.carry_ring(None)
        while carrier.carry_log(100_000) > _FEW:
            pass

    @contextmanager
    def _summaries_waiting(self, carrier: Carrier) -> Iterator[None]:
        """Inside the with block the source makes no summaries; the target has the existing ones."""
        with opened(self.source_conninfo) as alone, alone.transaction():
            alone.execute(locks.statement(locks.SUMMARIES))
            since = carrier.done()[SUMMARIES]
            if since is not None:
                carrier.carry_summaries(since)
            yield

    def _switch(self, carrier: Carrier) -> float:
        """Copies the last rows and sends calls to the target. Returns the seconds that writers waited."""
        node_tables = self._node_tables(self.target, self.move.target)
        with ExitStack() as stack:
            first = carrier.source
            if self.move.source is not None:
                first = stack.enter_context(opened(self.first_conninfo))
            return self._patiently(lambda: self._switch_once(carrier, first, node_tables))

    def _switch_once(self, carrier: Carrier, first: Connection, tables: Sequence[nodes.NodeTable]) -> float:
        # most of it without the lock
        carrier.carry_log()
        ring = carrier.as_of()
        carrier.carry_ring(self._ring_as_of)
        self._ring_as_of = ring
        with carrier.source.transaction():
            carrier.source.execute(_timeout())
            with first.transaction():
                first.execute(_timeout())
                first.execute(locks.statement(locks.CHANGES))
                for procedure in self._procedures:
                    first.execute(procedure.source.encode())
                began = time.monotonic()
                carrier.lock()
                with carrier.target.transaction():
                    carrier.carry_log()
                    carrier.carry_ring(ring)
                    carrier.hand_over()
                carrier.close()
                if self.move.target is None:
                    self._let_read(carrier, first)
                    replace(carrier, target=first).copy_signals()
                _route(first, self.table, tables)
                if self.move.target is not None:
                    # its signals are found there by their names from the same moment on
                    signals.note(first, carrier.target, self.move.target, [self.table])
            # the first server's transaction has ended: calls go to the target; with the source's, those that
            # wait there are refused
        return time.monotonic() - began

    def _close(self, carrier: Carrier) -> None:
        """Closes the old copy unless it is closed, and copies rows that arrived there after the switch."""
        with carrier.source.transaction():
            carrier.source.execute(_timeout())
            carrier.lock()
            carrier.carry_late_rows()
            carrier.close()
            carrier.carry_ring(None)
            # no writer waits for these: reports that arrive meanwhile are added on the target
            carrier.carry_books()

    def _compare(self, carrier: Carrier) -> None:
        with self.source.connect() as connection:
            kept = connection.scalar(
                sa.text(
                    "select now() - cast(retention as interval) from ringlog.every_table"
                    " where table_name = :name"
                ),
                {"name": self.table},
            )
        for part in self._parts():
            if kept is not None and part.end is not None and part.end <= kept:
                continue
            if row := carrier.missing(part):
                raise ServerError(
                    f"{label(self.move.target)} lacks this row of log.{part.name}, so the old copy stays:"
                    f" {row}"
                )
        if seq_no := carrier.missing_of_ring():
            raise ServerError(
                f"{label(self.move.target)} has an older or another row {seq_no} in the ring of"
                f" {self.table}, so the old copy stays"
            )

    def _let_read(self, carrier: Carrier, first: Connection) -> None:
        """Lets readers read the table on the first server, from the transaction's end on."""
        readable = sql.SQL(", ").join(self._readable)
        first.execute(sql.SQL("grant select on {} to {}").format(readable, sql.Identifier(READER)))
        carrier.let_read(first)

    def _node_tables(self, server: sa.Engine, of: str | None) -> list[nodes.NodeTable]:
        """The first server's description of the table on a node; for its own tables it needs none."""
        if of is None:
            return []
        with server.begin() as connection:
            return nodes.node_tables(connection, of, [self.table])

    def _patiently(self, work: Callable[[], float | None]) -> float:
        """Runs a step that needs locks which others may hold."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                return work() or 0.0
            except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
                if time.monotonic() > end:
                    raise ServerError(
                        f"table {self.table} was in use all the time, and is still on"
                        f" {label(self.move.source)}; the copied rows stay: try again ({error})"
                    ) from None
            time.sleep(_PAUSE)


def _timeout() -> sql.Composed:
    return sql.SQL("set local lock_timeout = {}").format(sql.Literal(_LOCK_TIMEOUT))


def _route(first: Connection, table: str, tables: Sequence[nodes.NodeTable]) -> None:
    """Lets the gateways call a table's procedures on the node of `tables`, here if there is none, from the
    transaction's end on."""
    first.execute("delete from ringlog.stand_in where table_name = %s", [table])
    first.execute("delete from ringlog.signal_elsewhere where table_name = %s", [table])
    for node_table in tables:
        first.execute(
            "insert into ringlog.stand_in (name, table_name, node)"
            " select name, %s, %s from unnest(%s::text[]) as name",
            [table, node_table.node, [procedure.name for procedure in node_table.procedures]],
        )
        first.execute("delete from ringlog.signal where table_name = %s", [table])
    first.execute("update ringlog.move set switched = now() where table_name = %s", [table])
    first.execute(sql.SQL("notify {}, {}").format(sql.Identifier(CHANNEL), sql.Literal(MOVED)))


def _as_stored(table: Table, order: Sequence[str], rows: int) -> Table:
    """A table of the file with the columns that are stored, in their order: calls by position rely on it."""
    columns = {column.name: column for column in table.columns}
    lost = [name for name in order if name not in columns]
    if lost:
        raise ServerError(
            f"table {table.name} has columns that the facility file lacks: {', '.join(lost)}: move it"
            " unchanged, then change it"
        )
    return replace(table, columns=tuple(columns[name] for name in order), rows=rows, renamed_from=None)
