"""Conflicts between a database and a facility file that need a decision, with the SQL for each."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import OF_A_TABLE
from ringlog.schema import layout
from ringlog.schema.access import roles
from ringlog.schema.facility import Facility, Table
from ringlog.schema.installing.database import may_set, missing_settings
from ringlog.schema.relations.tables import Columns, ring_schema


@dataclass(frozen=True)
class Obstacle:
    """A conflict, and the SQL by which an administrator can remove it."""

    what: str
    sql: str


class InstallRefused(Exception):
    """The database and the facility file have conflicts that need a decision. Nothing was changed."""

    def __init__(self, obstacles: Collection[Obstacle]) -> None:
        self.obstacles = tuple(obstacles)
        super().__init__(
            "nothing was installed. Change the facility file or, as the database's administrator, run:\n"
            + "\n".join(f"\n-- {obstacle.what}\n{obstacle.sql}" for obstacle in self.obstacles)
        )

    def __reduce__(self) -> tuple[type["InstallRefused"], tuple[tuple[Obstacle, ...]]]:
        """For pickle: it is passed from one process to another."""
        return InstallRefused, (self.obstacles,)


def around(connection: sa.Connection, facility: Facility) -> Iterator[Obstacle]:
    """Obstacles in roles, schemas and settings of the database."""
    owner = sql.Identifier(layout.OWNER)
    if roles.owner_logs_in(connection):
        yield Obstacle(
            f"{layout.OWNER} may log in, and could write without the procedures",
            sql.SQL("alter role {} nologin;").format(owner).as_string(),
        )
    made = "" if roles.has_owner(connection) else f"create role {layout.OWNER} nologin; "
    for schema, its_owner in roles.foreign_schemas(connection):
        yield Obstacle(
            f"schema {schema} belongs to {its_owner} and was not made by ringlog",
            made + sql.SQL("alter schema {} owner to {};").format(sql.Identifier(schema), owner).as_string(),
        )
    if not may_set(connection):
        for name, setting in missing_settings(connection, facility).items():
            yield Obstacle(
                f"only the database's owner may change its setting {name}",
                f"{setting.statement.as_string()};",
            )


def between(
    facility: Facility,
    known: Mapping[str, int],
    rings: Mapping[str, Columns],
    logs: Mapping[str, Columns],
    own: Mapping[str, Columns],
    formers: Mapping[str, Sequence[str]],
    archived: Collection[str],
) -> Iterator[Obstacle]:
    """Obstacles in the tables.

    `known` has the ring size of each table that an earlier installation made; `rings` and `logs` have the
    data columns stored under the names of these and of the facility's tables; `own` those of rings
    that leave their waveforms to the log; `formers` the names that tables had before; `archived` the tables
    of which rows are in the archive.
    """
    wanted = {table.name: table for table in facility.tables}
    new = [name for name in wanted if name not in known]
    for name in known:
        if name not in wanted:
            why = "is not in the facility file any more"
            yield _gone(name, why, name in own, formers.get(name, ()), _instead(name, new))
    for name, table in wanted.items():
        missing = [schema for schema, there in (("online", rings), ("log", logs)) if name not in there]
        if name not in known:
            for schema in {"online", "log"}.difference(missing):
                yield _foreign(schema, name)
        elif missing:
            yield _gone(name, f"has lost {missing[0]}.{name}", name in own, formers.get(name, ()))
        elif table.ring_refers_to_log != (name in own):
            yield _other_ring(table)
        else:
            columns = (rings[name], logs[name])
            yield from _columns_of(table, *columns, name in own, formers.get(name, ()), name in archived)
            if table.rows < known[name]:
                yield _smaller(table, known[name], ring_schema(table))


def _columns_of(
    table: Table, ring: Columns, log: Columns, is_view: bool, formers: Sequence[str], is_archived: bool
) -> Iterator[Obstacle]:
    wanted = {column.name: column.type.sql for column in table.columns}
    if wanted == ring == log:
        return
    new = [name for name in wanted if name not in log]
    for column in {**ring, **log}:
        stored = {
            schema: part[column]
            for schema, part in (("online", ring), (layout.LOG_TABLES, log))
            if column in part
        }
        where = f"table {table.name}, column {column}"
        name = sql.Identifier(column)
        changed = column not in wanted or any(kind != wanted[column] for kind in stored.values())
        if changed and is_view:
            yield Obstacle(
                f"{where}: a column of a table with waveforms stays as it is; keep it in the facility file",
                "-- writers that leave it out store NULL",
            )
        elif column not in wanted and is_archived:
            # archived files are never rewritten: those with this name contain its values
            yield Obstacle(
                f"{where}: is not in the facility file any more, and cannot be dropped: weeks in the archive "
                "have its values, which a later column of its name would show. " + _instead(column, new),
                sql.SQL("select begins, file from ringlog.cold_week where table_name = {};")
                .format(sql.Literal(table.name))
                .as_string(),
            )
        elif column not in wanted:
            yield Obstacle(
                f"{where}: is not in the facility file any more; this drops it with its history. "
                + _instead(column, new),
                as_owner(
                    *_drop_views(table.name, formers),
                    *(
                        sql.SQL("alter table {} drop column {}").format(
                            sql.Identifier(schema, table.name), name
                        )
                        for schema in stored
                    ),
                    sql.SQL("delete from ringlog.signal where table_name = {} and column_name = {}").format(
                        sql.Literal(table.name), sql.Literal(column)
                    ),
                    sql.SQL("delete from {} where split_part(column_name, '.', 1) = {}").format(
                        sql.Identifier("summary", table.name), sql.Literal(column)
                    ),
                ),
            )
        elif others := {schema: kind for schema, kind in stored.items() if kind != wanted[column]}:
            yield Obstacle(
                f"{where}: is {next(iter(others.values()))} in the database and {wanted[column]} in the "
                "facility file; this rewrites the table, and refuses values that do not fit",
                as_owner(
                    *_drop_views(table.name, formers),
                    *(
                        sql.SQL("alter table {} alter column {} type {} using {}::{}").format(
                            sql.Identifier(schema, table.name),
                            name,
                            sql.SQL(wanted[column]),
                            name,
                            sql.SQL(wanted[column]),
                        )
                        for schema in others
                    ),
                ),
            )


def _other_ring(table: Table) -> Obstacle:
    """A ring leaves its waveforms to a log that has every row: this is decided when the table is made."""
    return Obstacle(
        f"table {table.name}: its first waveform, or another log policy for a table with waveforms, needs a "
        "table of its own; give the waveforms another table name, or keep the log policy",
        sql.SQL("-- the stored rows of {} can be had by get_{}_range")
        .format(sql.SQL(table.name), sql.SQL(table.name))
        .as_string(),
    )


def _smaller(table: Table, rows: int, schema: str) -> Obstacle:
    return Obstacle(
        f"table {table.name}: its ring has {rows} rows and the facility file has {table.rows}; "
        "this drops the rows above",
        as_owner(
            sql.SQL("delete from {} where seq_no > {}").format(
                sql.Identifier(schema, table.name), sql.Literal(table.rows)
            ),
            sql.SQL("update ringlog.logged_table set rows = {} where table_name = {}").format(
                sql.Literal(table.rows), sql.Literal(table.name)
            ),
        ),
    )


def _foreign(schema: str, name: str) -> Obstacle:
    return Obstacle(
        f"table {name}: there is a {schema}.{name} already, which was not made by ringlog",
        sql.SQL("alter table {} rename to {};")
        .format(sql.Identifier(schema, name), sql.Identifier(f"{name[:56]}_before"))
        .as_string(),
    )


def _instead(name: str, new: Sequence[str]) -> str:
    """Advice on how a missing object keeps its history: it may have been renamed to a new one."""
    kept = "Put it back with retired = true, and it keeps its history"
    if not new:
        return kept
    names = new[0] if len(new) == 1 else f"one of {', '.join(new)}"
    return f'{kept}; or, if it is {names} now, write renamed_from = "{name}" there'


# rows about a table in ringlog's own tables
_OF_A_TABLE = (
    *("signal", "logged_table", "summarised", "summary_mark", "dropped", "former_table", "cold_week"),
    "archive_field",
    *("writer", "writer_run", "how_taken", "arrival", "imported_file", "ledger", "event", "table_right"),
    "migration",
)


def _gone(name: str, why: str, is_view: bool, formers: Sequence[str], instead: str = "") -> Obstacle:
    return Obstacle(
        f"table {name}: {why}; this drops all of it, its history too, as ringlog facility drop {name} does"
        + (instead and f". {instead}"),
        dropped(name, is_view, formers),
    )


def dropped(name: str, is_view: bool, formers: Sequence[str]) -> str:
    """The SQL that drops a table of rows; `is_view`: its ring leaves waveforms to the log."""
    procedures = [pattern.format(each) for each in (name, *formers) for pattern in OF_A_TABLE.values()]
    return as_owner(
        *drop_procedures(procedures),
        *_drop_views(name, formers),
        *(
            sql.SQL("drop {} if exists {}").format(sql.SQL(kind), sql.Identifier(schema, name))
            for kind, schema in (
                [("view", "online"), ("table", "ring"), ("table", layout.LOG_TABLES)]
                if is_view
                else [("table", "online"), ("table", layout.LOG_TABLES)]
            )
        ),
        *(
            sql.SQL("drop {} if exists {}").format(
                sql.SQL(kind), sql.Identifier(layout.ARCHIVE_FILES, f"{name}{end}")
            )
            for kind, end in (("foreign table", " files"), ("foreign table", " alone"), ("table", ""))
        ),
        sql.SQL("drop table if exists {}").format(sql.Identifier(layout.CLOSED, name)),
        sql.SQL("drop table if exists {} cascade").format(sql.Identifier("summary", name)),
        sql.SQL("drop sequence if exists {}").format(sql.Identifier("summary", f"{name}_until")),
        weeks_leave_manifest(name),
        *unregister(name, _OF_A_TABLE),
    )


def drop_procedures(names: Iterable[str]) -> Iterator[sql.Composable]:
    for name in names:
        yield sql.SQL("drop function if exists {}").format(sql.Identifier("ringlog", name))


def unregister(name: str, registries: Iterable[str]) -> Iterator[sql.Composable]:
    """Deletes the rows on a table from these tables of schema ringlog."""
    for registry in registries:
        yield sql.SQL("delete from {} where table_name = {}").format(
            sql.Identifier("ringlog", registry), sql.Literal(name)
        )


def weeks_leave_manifest(name: str) -> sql.Composable:
    """Takes a table's weeks out of the manifest: their files are deleted later, and another table of its name
    does not get them."""
    return sql.SQL(
        "insert into ringlog.archive_file (file, left_at)"
        " select file, now() from ringlog.cold_week where table_name = {}"
        " on conflict (file) do update set left_at = excluded.left_at"
    ).format(sql.Literal(name))


def _drop_views(table: str, formers: Sequence[str]) -> Iterator[sql.Composable]:
    """Drops the views that depend on ring and log. The installer makes them again."""
    views = [
        (layout.RECENT, table),
        (layout.ARCHIVE, table),
        *((schema, former) for former in formers for schema in ("online", layout.LOG)),
        (layout.LOG, table),
    ]
    for view in views:
        yield sql.SQL("drop view if exists {}").format(sql.Identifier(*view))


def as_owner(*statements: sql.Composable) -> str:
    """A script of these statements, all of them or none."""
    lines = [
        sql.SQL("begin"),
        sql.SQL("set local role {}").format(sql.Identifier(layout.OWNER)),
        *statements,
        sql.SQL("commit"),
    ]
    return "\n".join(f"{line.as_string()};" for line in lines)
