"""The storage of the logs' summaries: summary.<table>, and views of it in a schema for each span.

summary.<table> has a row for each length of spans (`level`, in seconds), column and block of spans: arrays of
one element a span. So the trend of a signal reads few rows, whatever the number of columns. A span without
numbers has n 0 and NaN in its other arrays. A waveform has five columns there, such as `trace.rms`: see
history.summaries.waveforms. A column of samples is a signal's number, such as `17`; `17.severity` has the
severities of blocks with an alarm: see history.summaries.sample_spans.
"""

from collections.abc import Collection, Container, Sequence

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.schema import catalogue
from ringlog.schema.change import run, run_all
from ringlog.schema.column_type import Kind
from ringlog.schema.facility import SUMMARY_LEVELS, Column, SampleTable, Table
from ringlog.schema.layout import BLOCK, READER, SCHEMA_OF_LEVEL, SUMMARIES
from ringlog.schema.relations.tiers import summarised
from ringlog.schema.sql_files import sql_file

NUMBERS = ("min", "max", "first", "last")
"""Arrays of the columns' own precision; `mean` and `squares` are double precision."""


_SINGLE = (Kind.REAL, Kind.SMALLINT, Kind.BIT)

_PAGE = 8160  # a row stays in its page: elsewhere its arrays would be fetched piece by piece


def stored_levels(wanted: Sequence[int]) -> tuple[int, ...]:
    """The stored levels of a table: all from the shortest wanted one on. The wanted ones have views."""
    return tuple(level for level in BLOCK if wanted and level >= wanted[0])


def is_summarised(column: Column) -> bool:
    return column.type.is_fixed or column.is_packed


def _is_single(table: Table | SampleTable) -> bool:
    if isinstance(table, SampleTable):
        return table.type.kind in _SINGLE
    return all(
        column.type.is_fixed and column.type.kind in _SINGLE
        for column in table.columns
        if is_summarised(column)
    )


def create_missing(connection: sa.Connection, tables: Collection[Table | SampleTable]) -> list[str]:
    """Creates the missing objects of these tables' summaries, and records their levels. Returns the
    changes."""
    names = [table.name for table in tables]
    known = catalogue.relations(connection, [SUMMARIES], [f"{name}_until" for name in names])
    of_these = summarised.c.table_name == sa.any_(sa.literal(names, postgresql.ARRAY(sa.TEXT)))
    noted = connection.execute(sa.select(summarised).where(of_these))
    levels = {row.table_name: tuple(row.levels) for row in noted}
    views = _todays_views(connection, names)
    changed = []
    for table in tables:
        single = _is_single(table)
        if (SUMMARIES, f"{table.name}_until") not in known:
            _create(connection, table.name, single)
        elif not single:
            _widen(connection, table.name)
        if levels.get(table.name) != stored_levels(table.summaries):
            _note(connection, table)
            if table.name in levels:
                before, now = map(_listed, (levels[table.name], stored_levels(table.summaries)))
                changed.append(f"summaries of {table.name}: {before} → {now}")
        _create_views(connection, table, views)
    return changed


def _listed(levels: Sequence[int]) -> str:
    spans = {seconds: span for span, seconds in SUMMARY_LEVELS.items()}
    return f"from {spans[levels[0]]} on" if levels else "none"


def storage(name: str, single: bool) -> sa.Table:
    number = sa.REAL if single else sa.DOUBLE_PRECISION
    return sa.Table(
        name,
        sa.MetaData(),
        sa.Column("level", sa.INTEGER, comment="seconds of a span"),
        sa.Column("column_name", sa.TEXT),
        sa.Column("begins", postgresql.TIMESTAMP(timezone=True), comment="first moment of the first span"),
        sa.Column("n", postgresql.ARRAY(sa.INTEGER), nullable=False, comment="numbers"),
        *(sa.Column(what, postgresql.ARRAY(number), nullable=False) for what in NUMBERS),
        sa.Column("mean", postgresql.ARRAY(sa.DOUBLE_PRECISION), nullable=False),
        sa.Column(
            "squares",
            postgresql.ARRAY(sa.DOUBLE_PRECISION),
            nullable=False,
            comment="sum of squared distances from the mean",
        ),
        sa.Column("nans", postgresql.ARRAY(sa.INTEGER), comment="null: none at all"),
        sa.Column("nulls", postgresql.ARRAY(sa.INTEGER), comment="null: none at all"),
        sa.PrimaryKeyConstraint("level", "column_name", "begins"),
        schema=SUMMARIES,
    )


def _create(connection: sa.Connection, name: str, single: bool) -> None:
    table = storage(name, single)
    table.create(connection, checkfirst=False)
    identifier = sql.Identifier(SUMMARIES, name)
    actions = [sql.SQL("set (toast_tuple_target = {})").format(sql.Literal(_PAGE))]
    for column in table.columns:
        if isinstance(column.type, postgresql.ARRAY):
            alter = sql.SQL("alter column {}").format(sql.Identifier(column.name))
            actions += [alter + sql.SQL(" set statistics 0"), alter + sql.SQL(" set storage main")]
    statements = [
        sql.SQL("alter table {} {}").format(identifier, sql.SQL(", ").join(actions)),
        sql.SQL("grant select on {} to {}").format(identifier, sql.Identifier(READER)),
        # microseconds since 1970: put reads it without a query, independently of its snapshot
        sql.SQL("create sequence {} minvalue 0").format(sql.Identifier(SUMMARIES, f"{name}_until")),
    ]
    run_all(connection, statements)


def _widen(connection: sa.Connection, name: str) -> None:
    """Gives the arrays double precision when a new column needs it."""
    if catalogue.columns(connection, sql.Identifier(SUMMARIES, name))["min"] == "real[]":
        for level in SCHEMA_OF_LEVEL.values():
            run(connection, sql.SQL("drop view if exists {}").format(sql.Identifier(level, name)))
        actions = sql.SQL(", ").join(
            sql.SQL("alter column {} type double precision[]").format(sql.Identifier(what))
            for what in NUMBERS
        )
        run(connection, sql.SQL("alter table {} {}").format(sql.Identifier(SUMMARIES, name), actions))


def _note(connection: sa.Connection, table: Table | SampleTable) -> None:
    """Records the levels. Changed ones are made from the first row on."""
    levels = list(stored_levels(table.summaries))
    insert = postgresql.insert(summarised).values(table_name=table.name, levels=levels)
    connection.execute(
        insert.on_conflict_do_update(index_elements=["table_name"], set_={"levels": levels, "until": None})
    )


_VIEW = sql_file(__file__, "summaries_view")


_TODAYS = sql_file(__file__, "summaries_todays")


def _todays_views(connection: sa.Connection, names: Collection[str]) -> set[tuple[str, str]]:
    """Schema and name of the existing views with today's text."""
    wanted = {"schemas": [*SCHEMA_OF_LEVEL.values()], "names": [*names]}
    return {(row.nspname, row.relname) for row in connection.execute(sa.text(_TODAYS), wanted)}


def _create_views(
    connection: sa.Connection, table: Table | SampleTable, there: Container[tuple[str, str]]
) -> None:
    """`there` has schema and name of the views that remain as they are."""
    statements = []
    for level in table.summaries:
        schema = SCHEMA_OF_LEVEL[level]
        if (schema, table.name) in there:
            continue
        view = sql.Identifier(schema, table.name)
        statements += [
            sql.SQL(_VIEW).format(
                view=view,
                storage=sql.Identifier(SUMMARIES, table.name),
                level=sql.Literal(level),
                length=sql.Literal(f"{level} seconds"),
            ),
            sql.SQL("grant select on {} to {}").format(view, sql.Identifier(READER)),
        ]
    run_all(connection, statements)
