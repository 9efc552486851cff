"""Parameter tables in the database: as SQLAlchemy tables, their views, and their entries in the registry.

`parameter_rows.<p>` has all versions of all rows, with the range of times in which each is valid: those of
one key never overlap. `parameter.<p>` shows the current ones, `parameter_history.<p>` all of them with their
authors.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.procedures import Procedure
from ringlog.procedures.parameters import HISTORY, NOW, OF_A_PARAMETER, ROWS, parameter_procedures, views
from ringlog.schema import layout
from ringlog.schema.change import run, run_all
from ringlog.schema.facility_files.parameters import Parameter, ParameterColumn
from ringlog.schema.installing.obstacles import Obstacle, as_owner, drop_procedures, unregister
from ringlog.schema.installing.report import differences, limits, quoted
from ringlog.schema.own_tables import (
    bigint,
    boolean,
    double,
    grant_select,
    integer,
    own_column,
    own_table,
    text,
    timestamp,
)
from ringlog.schema.relations.tables import Columns

_OWN = ("version", "change", "ended", "valid")


class _TransactionNumber(sa.types.UserDefinedType[Any]):
    """PostgreSQL's xid8."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


parameter_table = own_table(
    "parameter_table",
    text("table_name", key=True),
    text("description"),
    comment="parameter tables of the facility",
)

parameter_column = own_table(
    "parameter_column",
    text("table_name", key=True),
    text("column_name", key=True),
    integer("place", "from 1: the key, then the others"),
    boolean("is_key"),
    text("type", "as in the facility file"),
    text("unit"),
    text("description"),
    double("limit_low", null=True),
    double("limit_high", null=True),
    comment="columns of the parameter tables; no value outside the limits is stored",
)

parameter_change = own_table(
    "parameter_change",
    bigint("change", None, sa.Identity(always=True), key=True),
    timestamp("time", "each later than the one before", unique=True),
    text("login"),
    text("program"),
    text("machine"),
    text("comment", null=True),
    own_column(_TransactionNumber(), "transaction"),
    comment="who changed parameters, when, with which program, and why",
)

parameter_snapshot = own_table(
    "parameter_snapshot",
    text("name", key=True),
    timestamp("time"),
    text("login"),
    text("program"),
    text("comment", null=True),
    comment="named states of all parameter tables",
)

TABLES = (parameter_table, parameter_column, parameter_change, parameter_snapshot)


def rows_table(parameter: Parameter, of: sa.MetaData) -> sa.Table:
    """The stored rows of a parameter table.

    A constraint ensures that two rows of one key are never valid at the same time. Without an extension GiST
    has operators for ranges, but not for single numbers and texts, so each part of the key is in it as a
    range of one value.
    """
    key = [sa.Column(each.name, each.type.sqlalchemy, nullable=False) for each in parameter.key_columns]
    valid = sa.Column("valid", postgresql.TSTZRANGE(), nullable=False)
    change = parameter_change.c.change
    return sa.Table(
        parameter.name,
        of,
        *key,
        sa.Column("version", sa.INTEGER, nullable=False),
        sa.Column("change", sa.BIGINT, sa.ForeignKey(change), nullable=False),
        sa.Column("ended", sa.BIGINT, sa.ForeignKey(change), comment="the change that ended it"),
        valid,
        *(sa.Column(each.name, each.type.sqlalchemy) for each in parameter.data_columns),
        sa.PrimaryKeyConstraint(*parameter.key, "version"),
        sa.CheckConstraint("not isempty(valid)"),
        postgresql.ExcludeConstraint(
            *((_alone(column), "&&") for column in key), (valid, "&&"), using="gist"
        ),
        schema=ROWS,
    )


def _alone(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """The range of one value."""
    both: sa.ColumnElement[str] = sa.literal_column("'[]'")
    if isinstance(column.type, sa.VARCHAR):
        return sa.func.parameter_rows.text_range(column, column, both)
    return sa.func.int8range(column, column, both)


def prepare(connection: sa.Connection) -> None:
    """Lets writers of parameters read the tables about them, and makes the type of ranges of texts."""
    grant_select(connection, TABLES, layout.PARAMETER_WRITER)
    if connection.scalar(sa.text(f"select to_regtype('{ROWS}.text_range')")) is None:
        run(connection, f'create type {ROWS}.text_range as range (subtype = text, collation = "C")')


def watch_changes(connection: sa.Connection) -> None:
    """Makes the trigger that checks each change at its commit, once its function exists."""
    trigger = sa.text(
        "select 1 from pg_trigger where tgname = 'in_time' and tgrelid = 'ringlog.parameter_change'::regclass"
    )
    if connection.scalar(trigger) is None:
        run(
            connection,
            "create constraint trigger in_time after insert on ringlog.parameter_change"
            " deferrable initially deferred"
            " for each row execute function ringlog.parameter_change_in_time()",
        )


def known_parameters(connection: sa.Connection) -> dict[str, Columns]:
    """The parameter tables that are installed, and the columns that are stored of each, in their order."""
    names = [*connection.scalars(sa.select(parameter_table.c.table_name))]
    if not names:
        return {}
    found = sa.inspect(connection).get_multi_columns(schema=ROWS, filter_names=names)
    return {
        str(name): {
            column["name"]: column["type"].compile(dialect=connection.dialect)
            for column in columns
            if column["name"] not in _OWN
        }
        for (_, name), columns in found.items()
    }


def obstacles(
    connection: sa.Connection, parameters: Collection[Parameter], known: Mapping[str, Columns]
) -> Iterator[Obstacle]:
    """Conflicts that need a decision: missing tables and columns, other types, another key."""
    wanted = {parameter.name: parameter for parameter in parameters}
    is_key = sa.select(parameter_column.c.table_name, parameter_column.c.column_name).where(
        parameter_column.c.is_key
    )
    keys: dict[str, list[str]] = {}
    for table, column in connection.execute(is_key.order_by(parameter_column.c.place)):
        keys.setdefault(table, []).append(column)
    for name, stored in known.items():
        if name not in wanted:
            yield _gone(name)
            continue
        parameter = wanted[name]
        if [*parameter.key] != keys.get(name):
            yield Obstacle(
                f"parameter {name}: its key is {', '.join(keys.get(name, ()))} and stays so; give the table "
                "with another key another name",
                "-- see parameter_history for its former values",
            )
        types = {column.name: column.type.sql for column in parameter.columns}
        for column, kind in stored.items():
            if types.get(column) != kind:
                yield Obstacle(
                    f"parameter {name}, column {column}: is {kind} in the database and "
                    f"{types.get(column, 'missing')} in the facility file; a column of a parameter table "
                    "stays as it is: keep it in the file, and give a new one another name",
                    "-- callers may leave it out: it is null in new rows",
                )


def _gone(name: str) -> Obstacle:
    return Obstacle(
        f"parameter {name}: is not in the facility file any more; this drops all of it, its history too, as"
        f" ringlog facility drop {name} does",
        dropped(name),
    )


def dropped(name: str) -> str:
    """The SQL that drops a parameter table."""
    return as_owner(
        *drop_procedures(pattern.format(name) for pattern in OF_A_PARAMETER.values()),
        sql.SQL("drop view {}, {}").format(sql.Identifier(NOW, name), sql.Identifier(HISTORY, name)),
        sql.SQL("drop type {}").format(sql.Identifier(NOW, f"{name}_row")),
        sql.SQL("drop table {}").format(sql.Identifier(ROWS, name)),
        *unregister(name, ("parameter_column", "parameter_table")),
    )


def install_tables(
    connection: sa.Connection, parameters: Collection[Parameter], known: Mapping[str, Columns]
) -> tuple[list[str], list[str]]:
    """Creates and registers new tables, columns and views. Returns the created and the changed ones."""
    created = []
    shown: list[sql.Composable | str] = []
    new = [parameter for parameter in parameters if parameter.name not in known]
    made = sa.MetaData()
    for parameter in new:
        rows_table(parameter, made)
    # the table of changes is another collection's
    made.create_all(connection, tables=[t for t in made.sorted_tables if t.schema == ROWS], checkfirst=False)
    for parameter in parameters:
        stored = known.get(parameter.name)
        if stored is None:
            shown += [_row_type(parameter), _views(parameter, stored_order(parameter, ()))]
            shown.append(_granting(parameter.name))
            created.append(f"parameter {parameter.name}")
        elif added := [column for column in parameter.data_columns if column.name not in stored]:
            for column in added:
                _add(connection, parameter, column)
                created.append(f"column {parameter.name}.{column.name}")
            shown.append(_views(parameter, stored_order(parameter, stored)))
    run_all(connection, shown)
    noted = _note(connection, parameters)
    return created, [f"parameter {name}: {what}" for name, what in noted.items() if name in known]


def stored_order(parameter: Parameter, stored: Collection[str]) -> list[ParameterColumn]:
    """The data columns in the order they are stored in: those added later come last."""
    named = {column.name: column for column in parameter.data_columns}
    before = [name for name in stored if name in named]
    return [named[name] for name in dict.fromkeys([*before, *named])]


def procedures(parameters: Collection[Parameter], known: Mapping[str, Columns]) -> Iterator[Procedure]:
    for parameter in parameters:
        data = stored_order(parameter, known.get(parameter.name, ()))
        yield from parameter_procedures(
            parameter.name,
            {column.name: column.type.sql for column in parameter.key_columns},
            {column.name: column.type.sql for column in data},
            {column.name: column.limits for column in data if column.limits is not None},
            [column.name for column in data if column.may_be_nan],
        )


def _row_type(parameter: Parameter) -> sql.Composed:
    """The row type for callers: the key, then the other columns in the order of the file."""
    return sql.SQL("create type {} as ({})").format(
        sql.Identifier(NOW, f"{parameter.name}_row"),
        sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.type.sql))
            for column in (*parameter.key_columns, *parameter.data_columns)
        ),
    )


def _add(connection: sa.Connection, parameter: Parameter, column: ParameterColumn) -> None:
    name, kind = sql.Identifier(column.name), sql.SQL(column.type.sql)
    for statement in ("alter table {} add column {} {}", "alter type {} add attribute {} {} cascade"):
        where = (ROWS, parameter.name) if "table" in statement else (NOW, f"{parameter.name}_row")
        run(connection, sql.SQL(statement).format(sql.Identifier(*where), name, kind))


def _views(parameter: Parameter, data: Collection[ParameterColumn]) -> str:
    return views(parameter.name, parameter.key, [column.name for column in data])


def _granting(name: str) -> sql.Composable:
    relations = sql.SQL(", ").join(sql.Identifier(schema, name) for schema in (ROWS, NOW, HISTORY))
    readers = sql.SQL(", ").join(sql.Identifier(role) for role in (layout.READER, layout.PARAMETER_WRITER))
    return sql.SQL("grant select on {} to {}").format(relations, readers)


def _note(connection: sa.Connection, parameters: Collection[Parameter]) -> dict[str, str]:
    """Updates the registered tables and columns. Returns the changed tables, each with its differences."""
    tables = {parameter.name: parameter.description for parameter in parameters}
    columns = {(row["table_name"], row["column_name"]): row for row in _columns(parameters)}
    known_tables = {row.table_name: row.description for row in connection.execute(sa.select(parameter_table))}
    known = {
        (row["table_name"], row["column_name"]): dict(row)
        for row in connection.execute(sa.select(parameter_column)).mappings()
    }
    changed = {
        name: [
            differences({"description": quoted(known_tables.get(name, ""))}, {"description": quoted(text)})
        ]
        for name, text in tables.items()
        if known_tables.get(name) != text
    }
    for (table, column), row in columns.items():
        if (before := known.get((table, column))) != row:
            changes = changed.setdefault(table, [])
            if before and (what := differences(_settings_text(before), _settings_text(row))):
                changes.append(f"column {column}: {what}")
    if changed:
        for noted in (parameter_table, parameter_column):
            connection.execute(noted.delete().where(noted.c.table_name.in_(changed)))
        connection.execute(
            parameter_table.insert(),
            [{"table_name": name, "description": tables[name]} for name in sorted(changed)],
        )
        connection.execute(
            parameter_column.insert(), [row for key, row in columns.items() if key[0] in changed]
        )
    return {name: "; ".join(changed[name]) or "columns more" for name in sorted(changed)}


def _settings_text(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "unit": quoted(row["unit"]),
        "description": quoted(row["description"]),
        "limits": limits(row["limit_low"], row["limit_high"]),
    }


def _columns(parameters: Collection[Parameter]) -> Iterator[dict[str, Any]]:
    for parameter in parameters:
        for position, column in enumerate((*parameter.key_columns, *parameter.data_columns), 1):
            low, high = column.limits or (None, None)
            yield {
                "table_name": parameter.name,
                "column_name": column.name,
                "place": position,
                "is_key": column.name in parameter.key,
                "type": str(column.type),
                "unit": column.unit,
                "description": column.description,
                "limit_low": low,
                "limit_high": high,
            }
