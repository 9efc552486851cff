"""Brings a database to what a facility file says: in one transaction, or not at all."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import Procedure, shared_procedures, system_script, table_procedures
from ringlog.schema import ledger, obstacles, registry, roles, tables
from ringlog.schema.change import announce, change, run
from ringlog.schema.database import missing_settings
from ringlog.schema.facility import Facility, Table
from ringlog.schema.obstacles import InstallRefused, Obstacle
from ringlog.schema.partitions import keep_statistics_small, make_first_partitions
from ringlog.schema.tables import Columns

__all__ = ["InstallRefused", "InstallReport", "install"]

_FEW = 10


@dataclass(frozen=True)
class InstallReport:
    """What an installation created and changed, as "table sr_rf"; false when everything was there already."""

    created: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.created or self.changed)

    def __str__(self) -> str:
        """A line for each, or their number where they are many."""
        lines = []
        for verb, things in (("created", self.created), ("changed", self.changed)):
            kinds = Counter(thing.split()[0] for thing in things)
            lines += [f"{verb} {thing}" for thing in things if kinds[thing.split()[0]] <= _FEW]
            lines += [f"{verb} {number} {kind}s" for kind, number in kinds.items() if number > _FEW]
        return "\n".join(lines) or "nothing to do"


Part: TypeAlias = Callable[[sa.Connection], list[str]]
"""Makes what another package has in the database, as ringlog_owner, and tells what it has changed."""


def install(engine: sa.Engine, facility: Facility, parts: Collection[Part] = ()) -> InstallReport:
    """Creates what the database lacks of a facility and renews procedures that are not the same any more.

    `engine` is that of a superuser, or of a role with CREATEROLE that owns the database. It all happens in
    one transaction, beside running writers; `parts` come last. Raises InstallRefused, with the SQL to run by
    hand, for what would lose data: columns and tables that the file has no longer, columns of another type,
    smaller rings.
    """
    return change(engine, lambda connection: _Installation(connection, facility, parts).run())


class _Installation:
    def __init__(self, connection: sa.Connection, facility: Facility, parts: Collection[Part]) -> None:
        self.connection = connection
        self.facility = facility
        self.parts = parts
        self.created: list[str] = []
        self.changed: list[str] = []

    def run(self) -> InstallReport:
        self.created += [f"role {role}" for role in roles.create_missing_roles(self.connection)]
        _refuse_if(obstacles.around(self.connection, self.facility))
        for setting, statement in missing_settings(self.connection, self.facility).items():
            run(self.connection, statement)
            self.changed.append(f"setting {setting} of the database")
        self.created += [f"schema {schema}" for schema in roles.create_missing_schemas(self.connection)]
        roles.become_owner(self.connection)
        if not registry.exists(self.connection):
            registry.metadata.create_all(self.connection, checkfirst=False)
            roles.grant_registry(self.connection)
        ledger.create_missing(self.connection)

        known = registry.ring_sizes(self.connection)
        names = {*known, *(table.name for table in self.facility.tables)}
        rings = tables.stored_columns(self.connection, "online", names)
        logs = tables.stored_columns(self.connection, "log", names)
        _refuse_if(obstacles.between(self.facility, known, rings, logs))

        self._create_tables([table for table in self.facility.tables if table.name not in known])
        for table in self.facility.tables:
            if table.name in known:
                self._grow(table, rings[table.name], logs[table.name])
        self.changed += [f"table {name}" for name in registry.record_tables(self.connection, self.facility)]
        self.changed += [f"signal {name}" for name in registry.record_signals(self.connection, self.facility)]
        self._renew_procedures([*shared_procedures(), *self._table_procedures(rings)])
        self._renew_system()
        for part in self.parts:
            self.changed += part(self.connection)
        if self.created or self.changed:
            announce(self.connection)
        return InstallReport(tuple(self.created), tuple(self.changed))

    def _create_tables(self, new: Collection[Table]) -> None:
        tables.facility_tables(new).create_all(self.connection, checkfirst=False)
        for table in new:
            make_first_partitions(self.connection, table.name)
            roles.grant_table(self.connection, table.name)
            self._fill_ring(table)
            self.created.append(f"table {table.name}")

    def _grow(self, table: Table, ring: Columns, log: Columns) -> None:
        """Adds the columns and the rows that the facility file has more."""
        added: dict[str, None] = {}
        for schema, stored in (("online", ring), ("log", log)):
            missing = {column.name: column.type for column in table.columns if column.name not in stored}
            if missing:
                actions = sql.SQL(", ").join(
                    sql.SQL("add column {} {}").format(sql.Identifier(name), sql.SQL(tables.type_name(kind)))
                    for name, kind in missing.items()
                )
                run(
                    self.connection,
                    sql.SQL("alter table {} {}").format(sql.Identifier(schema, table.name), actions),
                )
                if schema == "log":
                    keep_statistics_small(self.connection, table.name)
                added |= dict.fromkeys(missing)
        self.created += [f"column {table.name}.{column}" for column in added]
        if rows := self._fill_ring(table):
            self.changed.append(f"ring {table.name}: {rows} rows more")

    def _fill_ring(self, table: Table) -> int:
        """Makes the rows of the ring, 1 to its size, that are not there. Returns how many."""
        statement = sql.SQL(
            "insert into {ring} (seq_no) select n from generate_series(1, {rows}) as n"
            " where not exists (select from {ring} as there where there.seq_no = n)"
        )
        ring = sql.Identifier("online", table.name)
        return run(self.connection, statement.format(ring=ring, rows=sql.Literal(table.rows)))

    def _table_procedures(self, rings: Mapping[str, Columns]) -> Iterator[Procedure]:
        for table in self.facility.tables:
            # columns added later come last in the ring, wherever they are in the file
            columns = dict.fromkeys([*rings.get(table.name, ()), *(column.name for column in table.columns)])
            yield from table_procedures(table.name, table.rows, [*columns], table.log.nth, table.log.period)

    def _renew_procedures(self, wanted: Collection[Procedure]) -> None:
        """Makes procedures that are not there, or are not what the installer made last time, or would now."""
        there = registry.made_procedures(self.connection)
        renewed = [procedure for procedure in wanted if there.get(procedure.name) != procedure.digest]
        for procedure in renewed:
            run(self.connection, procedure.source)
            (self.changed if procedure.name in there else self.created).append(f"procedure {procedure.name}")
        registry.record_procedures(self.connection, renewed)

    def _renew_system(self) -> None:
        """Makes the system procedures and views, all of them anew when any of them would be another now."""
        script = system_script()
        there = registry.made_system(self.connection)
        if there != script.digest:
            run(self.connection, script.source)
            registry.record_system(self.connection, script)
            (self.changed if there else self.created).append("catalogue of T-SQL")


def _refuse_if(found: Iterator[Obstacle]) -> None:
    if refused := list(found):
        raise InstallRefused(refused)
