"""Installs a facility file in a database. Existing objects are changed in one transaction, or not at all;
thousands of new tables are created in parts."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypeAlias

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import (
    FORMER,
    OF_A_TABLE,
    WRITING,
    Procedure,
    shared_procedures,
    superusers_procedure,
    table_procedures,
)
from ringlog.procedures.parameters import shared_procedures as shared_parameter_procedures
from ringlog.schema import ledger, marks, registry, registry_state
from ringlog.schema.access import rights, roles
from ringlog.schema.change import announce, change, run, run_all
from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Facility, Table
from ringlog.schema.installing import made, new_tables, obstacles, renaming, samples, unchanged, versions
from ringlog.schema.installing.database import missing_settings
from ringlog.schema.installing.made import Before
from ringlog.schema.installing.new_tables import Progress
from ringlog.schema.installing.obstacles import InstallRefused, Obstacle
from ringlog.schema.installing.report import InstallReport
from ringlog.schema.layout import LOG, LOG_TABLES, READER
from ringlog.schema.own_tables import create_missing, grant_select
from ringlog.schema.relations import (
    archive_tables,
    captures,
    comments,
    dropping,
    logs,
    parameter_tables,
    rings,
    sample_tables,
    statistics,
    summaries,
    tables,
    tiers,
)
from ringlog.schema.relations.partitions import renew_options, view_recent
from ringlog.schema.relations.tables import Columns
from ringlog.schema.session import driver

__all__ = ["InstallRefused", "InstallReport", "bring_up_to_date", "install"]

Part: TypeAlias = Callable[[sa.Connection], list[str]]
"""Creates another package's objects in the database, as ringlog_owner, and returns the changes."""


def install(
    engine: sa.Engine,
    facility: Facility,
    parts: Collection[Part] = (),
    before: Callable[[sa.Connection], None] | None = None,
) -> InstallReport:
    """Creates the missing objects of a facility, and procedures whose text has changed.

    `engine` is that of a superuser, or of a role with CREATEROLE that owns the database. It happens in one
    transaction, beside running writers; `before` comes first and `parts` last. Where there are more new
    tables than new_tables.AT_ONCE allows, the rest is made in further transactions and connections; if that
    is interrupted, the tables made so far can be used, and the next installation continues. Raises
    InstallRefused, before anything is changed, with the SQL to run by hand, for what would lose data: columns
    and tables that the file has no longer, columns of another type, smaller rings.

    A file that is installed already is compared with the database only if that may have changed
    (`ringlog.schema.installing.unchanged`); `rings.complete` then makes deleted rows of rings again.
    """

    progress = Progress(len(facility.tables))

    def work(connection: sa.Connection) -> tuple[InstallReport, list[list[Table]], bool]:
        if before:
            before(connection)
        installation = _Installation(connection, facility, parts, progress)
        return installation.run(), installation.later, installation.is_new

    def compare(connection: sa.Connection) -> InstallReport:
        return _Installation(connection, facility, parts, progress).run()

    report, later, is_new = rings.repaired(engine, partial(change, engine, work))
    for new in later:
        # PostgreSQL's process ends with its cache of the previous tables
        engine.dispose()
        report += change(engine, partial(_added, facility=facility, new=new, progress=progress))
    if report and facility.digest is not None:
        engine.dispose()
        if is_new:
            # nobody else has made anything here
            change(engine, partial(unchanged.note_now, facility=facility))
        else:
            # finds nothing to do, and records that
            report += change(engine, compare)
    engine.dispose()
    return report


def _added(
    connection: sa.Connection, facility: Facility, new: Sequence[Table], progress: Progress
) -> InstallReport:
    return _Installation(connection, facility, (), progress).add(new)


def procedures_of(connection: sa.Connection, facility: Facility, name: str) -> list[Procedure]:
    """The procedures of one table of a facility, as `install` makes them."""
    if sampled := [each for each in facility.sample_tables if each.name == name]:
        return [*sample_tables.procedures(sampled)]
    (table,) = (each for each in facility.tables if each.name == name)
    online = tables.stored_columns(connection, "online", [name])
    installation = _Installation(connection, facility, (), Progress(0))
    return [*installation.table_procedures([table], online)]


def difference(engine: sa.Engine, facility: Facility, parts: Collection[Part] = ()) -> InstallReport:
    """The changes that `install` would make: made and rolled back. Raises InstallRefused."""

    def tried(connection: sa.Connection) -> InstallReport:
        with connection.begin_nested() as attempt:
            progress = Progress(len(facility.tables), "trying")
            installation = _Installation(connection, facility, parts, progress)
            report = installation.run()
            for new in installation.later:
                report += _added(connection, facility, new, progress)
            attempt.rollback()
        return report

    return rings.repaired(engine, partial(change, engine, tried))


def bring_up_to_date(engine: sa.Engine, parts: Collection[Part] = ()) -> InstallReport:
    """Updates the objects of an earlier ringlog, independently of the facility: the registry by its
    migrations, the procedures over all tables, the catalogue of T-SQL. Raises InstallRefused."""

    def work(connection: sa.Connection) -> InstallReport:
        ringlogs = _Common(connection)
        ringlogs.prepare()
        ringlogs.renew_procedures([*shared_procedures(), *shared_parameter_procedures()])
        report = ringlogs.finish(parts)
        comments.bring_up_to_date(connection)
        return report

    return change(engine, work)


class _Common:
    """Installs the objects that every database has, whatever its facility."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.is_new = False
        """whether the database had nothing of ringlog"""
        self.created: list[str] = []
        self.changed: list[str] = []

    def prepare(self) -> None:
        """Makes roles, schemas and the registry; the rest is done as ringlog_owner."""
        self.created += [f"role {role}" for role in roles.create_missing_roles(self.connection)]
        self.created += [f"schema {schema}" for schema in roles.create_missing_schemas(self.connection)]
        self._make_array_bytes()
        roles.forbid_large_objects(driver(self.connection))
        self._prepare_archive()
        roles.become_owner(self.connection)
        _refuse_if(versions.obstacles(self.connection))
        self.is_new = not registry.exists(self.connection)
        if self.is_new:
            registry.metadata.create_all(self.connection, checkfirst=False)
            grant_select(self.connection, (registry.logged_table, registry.signal), READER)
        created = create_missing(self.connection)
        ledger.restrict_events(self.connection)
        tiers.begin_housekeeping(self.connection)
        for part in (sample_tables, parameter_tables, captures):
            if created & {table.name for table in part.TABLES}:
                part.prepare(self.connection)
        self.changed += versions.bring_up(self.connection, new=self.is_new)

    def _prepare_archive(self) -> None:
        """Makes the extension for the archive, which needs a superuser, if the facility has an archive."""

    def _make_array_bytes(self) -> None:
        """Makes the function that only a superuser can make, if the role is one."""
        text = (
            "select rolsuper and to_regprocedure('ringlog.array_bytes(anyarray)') is null"
            " from pg_roles where rolname = current_user"
        )
        if self.connection.scalar(sa.text(text)):
            run(self.connection, superusers_procedure().source)
            self.created.append(f"procedure {superusers_procedure().name}")

    def renew_procedures(self, wanted: Iterable[Procedure]) -> None:
        for name, before in made.renew(self.connection, wanted).items():
            self._note(f"procedure {name}", before)

    def _note(self, what: str, before: Before) -> None:
        by_hand = ": it was not as ringlog makes it" if before is Before.FOREIGN else ""
        (self.created if before is Before.ABSENT else self.changed).append(f"{what}{by_hand}")

    def finish(self, parts: Collection[Part]) -> InstallReport:
        """Makes the catalogue of T-SQL and other packages' objects in the database; notifies the gateway."""
        if before := made.renew_system(self.connection):
            self._note("catalogue of T-SQL", before)
        self.changed += [f"procedure {name}: dropped" for name in made.drop(self.connection, FORMER)]
        registry_state.watch(self.connection)
        marks.restrict(self.connection)
        for part in parts:
            self.changed += part(self.connection)
        rights.grant_missing(driver(self.connection))
        if self.created or self.changed:
            announce(self.connection)
        return InstallReport(tuple(self.created), tuple(self.changed))


class _Installation(_Common):
    def __init__(
        self, connection: sa.Connection, facility: Facility, parts: Collection[Part], progress: Progress
    ) -> None:
        super().__init__(connection)
        self.progress = progress
        self.facility = facility
        self.parts = parts
        self.later: list[list[Table]] = []
        """the new tables that `run` has left to `add`"""

    def _prepare_archive(self) -> None:
        if self.facility.history:
            self.created += archive_tables.prepare(self.connection)

    def run(self) -> InstallReport:
        """Makes everything but new tables beyond new_tables.AT_ONCE."""
        _refuse_if(obstacles.around(self.connection, self.facility))
        self.created += [f"role {role}" for role in roles.create_missing_roles(self.connection)]
        for name, setting in missing_settings(self.connection, self.facility).items():
            run(self.connection, setting.statement)
            self.changed.append(f"setting {name} of the database: {setting.before} → {setting.now}")
        self.prepare()
        state = unchanged.state(self.connection, self.facility)
        if unchanged.is_noted(self.connection, state):
            self._note_history()
            self._note_keeping()
            return self.finish(self.parts)

        known = registry.ring_sizes(self.connection)
        _refuse_if(renaming.obstacles(self.connection, self.facility, known))
        if renamed := renaming.rename(self.connection, self.facility, known):
            self.changed += renamed
            known = registry.ring_sizes(self.connection)
        names = {*known, *(table.name for table in self.facility.tables)}
        online = tables.stored_columns(self.connection, "online", names)
        in_logs = tables.stored_columns(self.connection, LOG_TABLES, names)
        views = tables.stored_columns(self.connection, LOG, names.difference(known))
        own = tables.stored_columns(self.connection, tables.RINGS, names)
        parameters = parameter_tables.known_parameters(self.connection)
        _refuse_if(self._conflicts(known, online, views | in_logs, own, parameters))

        new, *self.later = new_tables.steps(each for each in self.facility.tables if each.name not in known)
        self._create_tables(new)
        there = [table for table in self.facility.tables if table.name in known]
        short = self._short_rings(there)
        for table in there:
            self._grow(
                table, online[table.name], in_logs[table.name], own.get(table.name), table.name in short
            )
        now = [*there, *new]
        self.changed += registry.record_tables(self.connection, now)
        self.changed += registry.record_signals(self.connection, self.facility, now)
        self.changed += summaries.create_missing(self.connection, now)
        # they add the signals that the file lists
        self.renew_procedures(shared_procedures())
        created, changed = samples.install(self.connection, self.facility)
        self.created += created
        self.changed += changed
        self._note_history()
        self._note_keeping()
        self._view_logs(now)
        self.changed += rights.record_groups(driver(self.connection), dict(self.facility.groups))
        self.changed += captures.record_rules(self.connection, self.facility.captures)
        self._drop_writing()
        self.progress.at("parameter tables")
        created, changed = parameter_tables.install_tables(
            self.connection, self.facility.parameters, parameters
        )
        self.created += created
        self.changed += changed
        self.progress.at("procedures")
        self.renew_procedures(
            chain(
                self.table_procedures(now, online),
                sample_tables.procedures(self.facility.sample_tables),
                shared_parameter_procedures(),
                parameter_tables.procedures(self.facility.parameters, parameters),
            )
        )
        sampled = [table.name for table in self.facility.sample_tables]
        archive_tables.drop_others(self.connection, {*known, *(table.name for table in new), *sampled})
        self._view_archive(now, sampled)
        self._view_recent(now)
        self.changed += renaming.view_former_names(self.connection)
        logs.watch_manifest(self.connection)
        parameter_tables.watch_changes(self.connection)
        self.progress.at("T-SQL, comments")
        report = self.finish(self.parts)
        comments.bring_up_to_date(self.connection)
        if state is not None and not report and not self.later:
            unchanged.note(self.connection, state)
        return report

    def _conflicts(self, known: Mapping[str, int], *stored: Mapping[str, Columns]) -> Iterator[Obstacle]:
        """Conflicts with the columns of the installed tables: of rings, of logs, of rings without waveforms,
        of parameter tables."""
        online, in_logs, own, parameters = stored
        formers, archived = renaming.former_names(self.connection), tiers.archived_tables(self.connection)
        yield from obstacles.between(self.facility, known, online, in_logs, own, formers, archived)
        yield from dropping.obstacles(self.connection, self.facility)
        yield from sample_tables.obstacles(self.connection, self.facility, known)
        yield from parameter_tables.obstacles(self.connection, self.facility.parameters, parameters)

    def add(self, new: Sequence[Table]) -> InstallReport:
        """Makes new tables where `run` has made everything else."""
        roles.become_owner(self.connection)
        self._create_tables(new)
        self.changed += registry.record_tables(self.connection, new)
        self.changed += registry.begin_signals(self.connection, new)
        self.changed += summaries.create_missing(self.connection, new)
        self.renew_procedures(self.table_procedures(new, {}))
        self._view_archive(new)
        self._view_recent(new)
        rights.grant_missing(driver(self.connection))
        comments.bring_up_to_date(self.connection)
        announce(self.connection)
        return InstallReport(tuple(self.created), tuple(self.changed))

    def _note_history(self) -> None:
        history = self.facility.history
        wanted = [(str(history.online), history.archive, str(history.keep_replaced))] if history else []
        cold = sa.select(sa.func.count()).where(
            tiers.cold_week.c.recalled_until.is_(None), tiers.cold_week.c.rows > 0
        )
        if not wanted and (weeks := self.connection.scalar(cold)):
            what = (
                f"{weeks} weeks are in the archive, and [history] has its folder: keep it, with `online` as"
                " long as you like, and bring them back with ringlog recall"
            )
            query = "select table_name, file from ringlog.cold_week where recalled_until is null;"
            raise InstallRefused([Obstacle(what, query)])
        before = [tuple(row) for row in self.connection.execute(sa.select(tiers.history))]
        if before != wanted:
            self.connection.execute(tiers.history.delete())
            for row in wanted:
                self.connection.execute(tiers.history.insert().values(row))
            was, now = (
                "".join(f"{row[0]} in PostgreSQL, then {row[1]} (replaced files {row[2]})" for row in rows)
                or "none"
                for rows in (before, wanted)
            )
            self.changed.append(f"history of old weeks: {was} → {now}")

    def _note_keeping(self) -> None:
        wanted = str(self.facility.keep_dropped or "0")
        kept = tiers.housekeeping.c.keep_dropped
        before = self.connection.scalar(sa.select(kept))
        if before != wanted:
            self.connection.execute(tiers.housekeeping.update().values({kept: wanted}))
            self.changed.append(f"weeks past retention are set aside: for {before} → for {wanted}")

    def _create_tables(self, new: Collection[Table]) -> None:
        new_tables.create(self.connection, new, self.progress)
        self.created += [f"table {table.name}" for table in new]

    def _view_logs(self, of: Sequence[Table]) -> None:
        self._mention("log", logs.create_missing(self.connection, [table.name for table in of]))

    def _view_recent(self, of: Sequence[Table]) -> None:
        self._mention("recent", view_recent(self.connection, [table.name for table in of]))

    def _mention(self, schema: str, made: Iterable[str]) -> None:
        """Reports new views of tables, but for tables that are new or have grown."""
        grown = {
            thing.split()[1].split(".")[0]
            for thing in self.created
            if thing.startswith(("table ", "column "))
        }
        self.changed += [f"view {schema}.{table}" for table in made if table not in grown]

    def _view_archive(self, of: Sequence[Table], of_samples: Collection[str] = ()) -> None:
        """Makes the views of the archived weeks, where the facility has an archive."""
        if self.facility.history:
            names = [table.name for table in of]
            made = archive_tables.create_missing(self.connection, names, of_samples)
            self.created += [f"view archive.{table}" for table in made]

    def _grow(self, table: Table, ring: Columns, log: Columns, own: Columns | None, is_short: bool) -> None:
        """Adds the facility file's new columns and rows. `own`: the columns of a ring without waveforms;
        `is_short`: the ring lacks rows."""
        added: dict[str, None] = {}
        stored_by = {"online": ring, LOG_TABLES: log} if own is None else {tables.RINGS: own, LOG_TABLES: log}
        for schema, stored in stored_by.items():
            of_the_schema = tables.ring_columns(table) if schema == tables.RINGS else table.columns
            missing = {column.name: column.type for column in of_the_schema if column.name not in stored}
            if missing:
                actions = sql.SQL(", ").join(
                    sql.SQL("add column {} {}").format(sql.Identifier(name), sql.SQL(kind.sql))
                    for name, kind in missing.items()
                )
                run(
                    self.connection,
                    sql.SQL("alter table {} {}").format(sql.Identifier(schema, table.name), actions),
                )
                if schema == LOG_TABLES:
                    statistics.turn_off(self.connection, table.name)
                    renew_options(self.connection, table.name)
                added |= dict.fromkeys(missing)
        if added:
            run_all(self.connection, new_tables.storing_waveforms(table, added))
            if own is not None:
                names = [*ring, *(column.name for column in table.columns if column.name in added)]
                run(self.connection, new_tables.ring_view(table, names))
        self.created += [f"column {table.name}.{column}" for column in added]
        if is_short and (rows := self._fill_ring(table)):
            self.changed.append(f"ring {table.name}: {rows} rows more")

    def _short_rings(self, existing: Sequence[Table]) -> set[str]:
        """The tables whose rings lack rows."""
        sizes = [(tables.ring_schema(table), table.name, table.rows) for table in existing]
        return {name for _, name, _ in rings.short(self.connection, sizes)}

    def _fill_ring(self, table: Table) -> int:
        return rings.fill(self.connection, tables.ring_schema(table), table.name, table.rows)

    def _drop_writing(self) -> None:
        """Drops the procedures that write retired tables."""
        retired = [table.name for table in self.facility.tables if table.retired]
        formers = renaming.former_names(self.connection) if retired else {}
        for table in retired:
            names = (table, *formers.get(table, ()))
            writing = [OF_A_TABLE[kind].format(name) for name in names for kind in WRITING]
            dropped = made.drop(self.connection, writing)
            self.changed += [f"procedure {name}: dropped" for name in dropped]

    def table_procedures(self, of: Iterable[Table], online: Mapping[str, Columns]) -> Iterator[Procedure]:
        """The procedures of these tables, of which `online` has the columns that are stored already."""
        formers = renaming.former_names(self.connection)
        for table in of:
            for called in (table.name, *formers.get(table.name, ())):
                yield from self._procedures_of(table, called, online)

    def _procedures_of(self, table: Table, called: str, online: Mapping[str, Columns]) -> Iterator[Procedure]:
        # columns added later are the last of the ring, whatever their position in the file
        columns = dict.fromkeys([*online.get(table.name, ()), *(column.name for column in table.columns)])
        waveforms = {column.name: column.points for column in table.columns if column.points is not None}
        yield from table_procedures(
            table.name,
            table.rows,
            [*columns],
            table.log.nth,
            table.log.period,
            cycle=table.cycle,
            clock_tolerance=self.facility.clock_tolerance,
            without_nan=[column.name for column in table.columns if column.is_float and table.nan == "null"],
            decimals=[column.name for column in table.columns if column.type.kind is Kind.NUMERIC],
            waveforms=waveforms,
            ring_schema=tables.ring_schema(table),
            called=called,
            retired=table.retired,
        )


def _refuse_if(found: Iterator[Obstacle]) -> None:
    if refused := list(found):
        raise InstallRefused(refused)
