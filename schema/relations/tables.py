"""Rings and logs of a facility, as SQLAlchemy tables."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ringlog.schema.facility import KEY_COLUMNS, Column, Table
from ringlog.schema.layout import LOG
from ringlog.schema.session import AnyConnection, driver

_NEVER = 2**31 - 1  # changed rows; the most PostgreSQL takes

Columns: TypeAlias = Mapping[str, str]
"""The data columns of a stored table in their order: name and SQL type."""


def facility_tables(tables: Iterable[Table], logs: str = LOG) -> sa.MetaData:
    """The ring `online.<table>` and the log `log.<table>` of each of these tables. Logs are stored in schema
    LOG_TABLES."""
    metadata = sa.MetaData()
    for table in tables:
        ring(table, metadata)
        log(table, metadata, logs)
    return metadata


RINGS = "ring"
"""Schema of rings that leave their waveforms to the log; online.<table> is then a view of ring and log."""


def ring_schema(table: Table) -> str:
    """The schema of the table in which the ring's rows are stored."""
    return RINGS if table.ring_refers_to_log else "online"


def ring(table: Table, metadata: sa.MetaData) -> sa.Table:
    """The ring of a table. Its rows 1 to `table.rows` always exist; time is null in a row that was never
    written.

    If the log has every row, the ring has no waveforms: a view, `online.<table>`, takes them from the log.

    The B-tree on time finds the latest rows, and prevents HOT updates: a put of 200 reals costs 4 % more CPU
    time than with a BRIN index, reading the latest row two thirds less.

    Autovacuum never analyzes it: its rows change all the time, statistics of 200 columns take 60 to 90 ms
    each time, and no procedure's plan depends on them.
    """
    return sa.Table(
        table.name,
        metadata,
        sa.Column("seq_no", sa.INTEGER, primary_key=True, autoincrement=False),
        sa.Column("time", postgresql.TIMESTAMP(timezone=True)),
        *_data_columns(ring_columns(table)),
        sa.Index(f"{table.name}_time_idx", "time", "seq_no"),
        schema=ring_schema(table),
        postgresql_with={"autovacuum_analyze_threshold": _NEVER},
    )


def log(table: Table, metadata: sa.MetaData, schema: str) -> sa.Table:
    """The log of a table, partitioned by week: see ringlog.schema.relations.partitions."""
    return sa.Table(
        table.name,
        metadata,
        sa.Column("seq_no", sa.INTEGER, nullable=False),
        sa.Column("time", postgresql.TIMESTAMP(timezone=True), nullable=False),
        *_data_columns(table.columns),
        sa.PrimaryKeyConstraint("time", "seq_no"),
        schema=schema,
        postgresql_partition_by='range ("time")',
    )


def ring_columns(table: Table) -> list[Column]:
    """The data columns that the ring itself stores."""
    return [column for column in table.columns if not (table.ring_refers_to_log and column.is_waveform)]


def _data_columns(columns: Iterable[Column]) -> Iterator[sa.Column[Any]]:
    for column in columns:
        yield sa.Column(column.name, column.type.sqlalchemy)


def stored_columns(connection: AnyConnection, schema: str, names: Collection[str]) -> dict[str, Columns]:
    """The data columns of the relations of a schema with these names, by name."""
    # reading them by SQLAlchemy's reflection takes five times as long
    statement = (
        "select relname, coalesce(json_object_agg(attname, format_type(atttypid, atttypmod) order by attnum)"
        " filter (where attname <> all(%(keys)s)), '{}')"
        " from pg_class left join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped"
        " where relnamespace = to_regnamespace(%(schema)s) and relname = any(%(names)s)"
        " and relkind in ('r', 'p', 'f', 'v', 'm')"
        " group by relname"
    )
    parameters = {"schema": schema, "names": [*names], "keys": [*KEY_COLUMNS]}
    return {
        name: {column: _as_sqlalchemy_writes(kind) for column, kind in columns.items()}
        for name, columns in driver(connection).execute(statement, parameters)
    }


@cache
def _as_sqlalchemy_writes(kind: str) -> str:
    """A type as `ColumnType.sql` writes it, from PostgreSQL's format_type."""
    return kind.upper().replace("CHARACTER VARYING", "VARCHAR").replace(",", ", ")
