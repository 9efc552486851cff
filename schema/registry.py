"""The registry: the present and past contents of the facility, as recorded in the database."""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.schema import how_taken
from ringlog.schema.change import run
from ringlog.schema.facility import Facility, Table
from ringlog.schema.installing.report import differences, limits, quoted
from ringlog.schema.own_tables import boolean, double, integer, smallint, text, timestamp
from ringlog.schema.session import driver

metadata = sa.MetaData(schema="ringlog")

logged_table = sa.Table(
    "logged_table",
    metadata,
    text("table_name", key=True),
    text("description"),
    integer("rows", "size of the ring"),
    double("cycle", "seconds from row to row"),
    integer("log_nth", "rows 1, 1 + n, … of the ring go to the log"),
    double("log_period", "seconds; one row a period goes to the log", null=True),
    text("retention", "interval for which log rows are kept; null: for ever", null=True),
    boolean("retired", "it is no longer written; its rows can be read", default=sa.false()),
    comment="tables of the facility",
)

signal = sa.Table(
    "signal",
    metadata,
    text("signal", key=True),
    text("table_name"),
    text("column_name"),
    text("type", "as in the facility file"),
    text("unit"),
    text("description"),
    double("limit_low", null=True),
    double("limit_high", null=True),
    double("alarm_low", "wider limit, in the unit", null=True),
    double("alarm_high", "wider limit, in the unit", null=True),
    text("states", "names of whole numbers, as a JSON object", null=True),
    boolean("held", "each value holds until the next", default=sa.false()),
    smallint("decimals", "digits behind the point, as its source shows it", null=True),
    timestamp("valid_from", key=True, default=sa.func.now()),
    timestamp("valid_to", "null: now", null=True),
    comment="present and former place of each signal, with unit, description and limits",
)
_SignalRow: TypeAlias = tuple[Any, ...]
"""A row of `signal`, without when it is valid."""
FOREVER: sa.ColumnClause[datetime] = sa.literal_column("timestamptz 'infinity'")
"""The end of the validity of a signal's former name."""

_COLUMNS = [column for column in signal.c if column not in (signal.c.valid_from, signal.c.valid_to)]
_NOW = signal.c.valid_to.is_(None)
_OF_ROWS = sa.text("table_name not in (select table_name from ringlog.sample_table)")

sa.Index("signal_now", signal.c.signal, unique=True, postgresql_where=signal.c.valid_to.is_(None))
sa.Index("signal_place", signal.c.table_name, signal.c.column_name, signal.c.valid_from)

procedure = sa.Table(
    "procedure",
    metadata,
    text("name", key=True),
    text("source", "digest of the text it was made of"),
    text("definition", "digest of PostgreSQL's definition"),
    comment="procedures that the installer has made, so that it renews changed ones",
)


def exists(connection: sa.Connection) -> bool:
    return sa.inspect(connection).has_table(logged_table.name, logged_table.schema)


def ring_sizes(connection: sa.Connection) -> dict[str, int]:
    """The installed tables, each with the number of rows of its ring."""
    sizes = sa.select(logged_table.c.table_name, logged_table.c.rows)
    return {row.table_name: row.rows for row in connection.execute(sizes)}


def record_tables(connection: sa.Connection, tables: Sequence[Table]) -> list[str]:
    """Updates `logged_table`. Returns the changed tables, each with its differences."""
    names = sa.any_(sa.literal([table.name for table in tables], postgresql.ARRAY(sa.TEXT)))
    found = connection.execute(sa.select(logged_table).where(logged_table.c.table_name == names))
    known = {row["table_name"]: dict(row) for row in found.mappings()}
    changed = []
    how_taken.record(connection, tables)
    for table in tables:
        row = {
            "table_name": table.name,
            "description": table.description,
            "rows": table.rows,
            "cycle": table.cycle,
            "log_nth": table.log.nth,
            "log_period": table.log.period,
            "retention": table.retention and str(table.retention),
            "retired": table.retired,
        }
        if table.name not in known:
            connection.execute(logged_table.insert().values(row))
        elif row != known[table.name]:
            connection.execute(
                logged_table.update().where(logged_table.c.table_name == table.name).values(row)
            )
            changed.append(
                f"table {table.name}: {differences(_settings_text(known[table.name]), _settings_text(row))}"
            )
    return changed


def _settings_text(row: Mapping[str, Any]) -> dict[str, str]:
    """The recorded settings of a table, in the terms of the facility file."""
    log = f"nth = {row['log_nth']}" if row["log_period"] is None else f"period = {row['log_period']:g} s"
    return {
        "description": quoted(row["description"]),
        "rows": str(row["rows"]),
        "cycle": f"{row['cycle']:g} s",
        "log": "every row" if log == "nth = 1" else log,
        "retention": row["retention"] or "for ever",
        "retired": "yes" if row["retired"] else "no",
    }


def record_signals(connection: sa.Connection, facility: Facility, tables: Sequence[Table]) -> list[str]:
    """Updates `signal`: rows that no longer hold end now, and new ones of these tables begin now.

    Returns the signals that have ended, changed or begun again, each with its differences.
    """
    # the driver's own rows: through SQLAlchemy's they take five times as long
    cursor = connection.execute(sa.select(*_COLUMNS).where(_NOW, _OF_ROWS)).cursor
    assert cursor is not None
    known: dict[str, _SignalRow] = {row[0]: row for row in cursor.fetchall()}
    wanted = {row[0]: row for row in _signals(facility.tables)}
    ended = [name for name, row in known.items() if wanted.get(name) != row]
    if ended:
        connection.execute(signal.update().where(_NOW, _is_one_of(ended)).values(valid_to=sa.func.now()))
    begun = [row for row in _signals(tables) if known.get(row[0]) != row]
    again = _begin(connection, begun, known)
    if begun:
        # thousands of rows at once: without statistics listing all columns with their signals takes seconds
        run(connection, "analyze ringlog.signal")
    return [
        *(
            f"signal {name}: {differences(_signal_text(known[name]), _signal_text(wanted[name]))}"
            if name in wanted
            else f"signal {name}: ends; its rows can be read"
            for name in ended
        ),
        *again,
    ]


def begin_signals(connection: sa.Connection, tables: Sequence[Table]) -> list[str]:
    """Adds the signals of new tables to `signal`. Returns those that are there again."""
    return _begin(connection, [*_signals(tables)], ())


def _begin(connection: sa.Connection, begun: Sequence[_SignalRow], known: Container[str]) -> list[str]:
    """Adds these signals, which begin now. Returns those that are there again: not `known` now, but once."""
    if not begun:
        return []
    taken = _is_one_of([row[0] for row in begun])
    were = {*connection.scalars(sa.select(signal.c.signal).where(taken))}
    # a name from before a column was renamed that another signal has now
    connection.execute(
        signal.update().where(taken, signal.c.valid_to == FOREVER).values(valid_to=sa.func.now())
    )
    copied = sql.SQL("copy ringlog.signal ({}) from stdin").format(
        sql.SQL(", ").join(sql.Identifier(column.name) for column in _COLUMNS)
    )
    with driver(connection).cursor() as cursor, cursor.copy(copied) as copy:
        for row in begun:
            copy.write_row(row)
    return [f"signal {name}: is there again" for name in sorted(were) if name not in known]


def _is_one_of(names: Sequence[object]) -> sa.ColumnElement[bool]:
    """A condition on a signal's name. One array, because a statement has 65,535 parameters at most."""
    return signal.c.signal == sa.any_(sa.literal([*names], postgresql.ARRAY(sa.TEXT)))


def _signal_text(row: _SignalRow) -> dict[str, str]:
    _, table, column, kind, unit, description, low, high, alarm_low, alarm_high, states, held, _ = row
    return {
        "column": f"{table}.{column}",
        "type": kind,
        "unit": quoted(unit),
        "description": quoted(description),
        "limits": limits(low, high),
        "alarm_limits": limits(alarm_low, alarm_high),
        "states": states or "none",
        "held": "yes" if held else "no",
    }


def _signals(tables: Iterable[Table]) -> Iterator[_SignalRow]:
    """The rows of `signal`, without when they are valid."""
    for table in tables:
        for column in () if table.retired else table.written.columns:
            yield (
                column.signal,
                table.name,
                column.name,
                str(column.type),
                column.unit,
                column.description,
                *(column.limits or (None, None)),
                *(column.alarm_limits or (None, None)),
                json.dumps(dict(column.states), ensure_ascii=False) if column.states else None,
                column.held,
                None,
            )
