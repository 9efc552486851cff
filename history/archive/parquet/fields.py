"""The fields of a log's files: Apache Iceberg knows a column by the id of its field, not by its name.

A column keeps its field while Iceberg widens its types (int to bigint, real to double, a numeric to more
digits). Any other type is another field of the column, and a column that is made again is one too. The first
field of a column has the column's name; no name is ever another field's, so a reader of a name never finds
values of two kinds in it. Files name the columns and have the ids of their fields; files of earlier versions
have no ids, and one field of each of their columns by its name.

https://iceberg.apache.org/spec/#schema-evolution
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive.manifest import form_of_table
from ringlog.history.archive.parquet.forms import SAMPLES
from ringlog.schema import catalogue
from ringlog.schema.access.roles import become_owner
from ringlog.schema.column_type import NUMBERS, NUMERIC_PRECISION, ColumnType, Kind
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.relations.archive_tables import sample_columns
from ringlog.schema.relations.tiers import archived_tables

_ID = "PARQUET:field_id"
"""pyarrow's name of a field's id in Parquet"""


@dataclass(frozen=True)
class Field:
    """A field of an Iceberg table. The id of a waveform's points is the next one."""

    id: int
    name: str
    """in the Iceberg table"""
    column: str
    type: ColumnType
    """the widest that its values had"""
    is_gone: bool = False
    """whether the column has left its log"""
    is_by_name: bool = False
    """whether files without ids have it"""

    def arrow(self, name: str, kind: pa.DataType | None = None) -> pa.Field:
        """Arrow's field of this name, with ids; `kind` is its type if that is another than the field's."""
        kind = stored_as(self.type) if kind is None else kind
        if pa.types.is_list(kind):
            kind = pa.list_(pa.field("element", kind.value_type, metadata={_ID: str(self.id + 1)}))
        return pa.field(name, kind, metadata={_ID: str(self.id)})


def field_id(field: pa.Field) -> int | None:
    """The id of a column in a file; None without one."""
    found = (field.metadata or {}).get(_ID.encode())
    return None if found is None else int(found)


def stored_as(kind: ColumnType) -> pa.DataType:
    """The type of a column in files. A numeric without a size, or with more digits than a decimal has, is
    text."""
    if kind.kind is Kind.NUMERIC and not (kind.digits and kind.digits <= NUMERIC_PRECISION):
        return pa.string()
    return kind.arrow


def of_log(connection: psycopg.Connection, table: str) -> dict[str, pa.Field]:
    """The fields of a log's next file by column, with their ids. Records new ones, and those whose columns
    are gone. None for a table with a column of a type that no log has."""
    become_owner(connection)
    if table not in archived_tables(connection):
        connection.execute("delete from ringlog.archive_field where table_name = %s", [table])
    fields = Fields(connection, table)
    types = _types(connection, table)
    fields.retire(types)
    return {
        name: fields.of(name, kind).arrow(name, stored_as(kind))
        for name, kind in types.items()
        if kind is not None and None not in types.values()
    }


def _types(connection: psycopg.Connection, table: str) -> dict[str, ColumnType | None]:
    columns = catalogue.columns(connection, sql.Identifier(LOG_TABLES, table))
    if form_of_table(connection, table) is SAMPLES:
        columns = sample_columns(columns)
    return {name: ColumnType.of_postgresql(kind) for name, kind in columns.items()}


class Fields:
    """All fields of a log that files have or had, as they are recorded."""

    def __init__(self, connection: psycopg.Connection, table: str) -> None:
        self._connection = connection
        self._table = table
        query = (
            "select field_id, name, column_name, type, is_gone, is_by_name from ringlog.archive_field"
            " where table_name = %s order by field_id"
        )
        self._fields: dict[int, Field] = {}
        for row in connection.execute(query, [table]):
            number, name, column, kind, *marks = row
            of_column = ColumnType.of_postgresql(kind)
            assert of_column is not None
            self._fields[number] = Field(number, name, column, of_column, *marks)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields.values())

    def get(self, number: int) -> Field | None:
        return self._fields.get(number)

    def retire(self, columns: Iterable[str]) -> None:
        """Records that the log has these columns only."""
        for field in [*self._fields.values()]:
            if not field.is_gone and field.column not in columns:
                self._record(replace(field, is_gone=True))

    def of(self, column: str, kind: ColumnType) -> Field:
        """The field for values of this type of a column; a new one if none of the column's takes them."""
        for field in self._fields.values():
            if field.column == column and not field.is_gone and (wide := _wider(field.type, kind)):
                return self._record(replace(field, type=wide))
        return self._record(Field(self._next_id(), self._free_name(column), column, kind))

    def by_name(self, column: str, kind: pa.DataType) -> Field | None:
        """The field of a column in files without ids; None if it takes no values of this type."""
        is_list = pa.types.is_list(kind)
        found = _SINGLE.get(kind.value_type if is_list else kind)
        if found is None:
            return None
        found = replace(found, is_array=is_list)
        named = (field for field in self._fields.values() if field.is_by_name and field.column == column)
        known = next(named, None)
        if known is None:
            return self._record(replace(self.of(column, found), is_by_name=True))
        wide = _wider(known.type, found)
        return None if wide is None else self._record(replace(known, type=wide))

    def _next_id(self) -> int:
        return max((field.id + field.type.is_array for field in self._fields.values()), default=0) + 1

    def _free_name(self, column: str) -> str:
        taken = {field.name for field in self._fields.values()}
        if column not in taken:
            return column
        taken |= {*_types(self._connection, self._table)}
        return next(name for number in count(2) if (name := f"{column}_{number}") not in taken)

    def _record(self, field: Field) -> Field:
        if self._fields.get(field.id) != field:
            self._fields[field.id] = field
            kind = field.type.sql.lower().replace(", ", ",")
            row = (self._table, field.id, field.name, field.column, kind, field.is_gone, field.is_by_name)
            self._connection.execute(
                "insert into ringlog.archive_field"
                " (table_name, field_id, name, column_name, type, is_gone, is_by_name)"
                " values (%s, %s, %s, %s, %s, %s, %s) on conflict (table_name, field_id) do update"
                " set name = excluded.name, column_name = excluded.column_name, type = excluded.type,"
                " is_gone = excluded.is_gone, is_by_name = excluded.is_by_name",
                row,
            )
        return field


def _wider(one: ColumnType, other: ColumnType) -> ColumnType | None:
    """The one of two types as which Iceberg reads values of both."""
    first, second = stored_as(one), stored_as(other)
    if reads(first, second):
        return one
    return other if reads(second, first) else None


def reads(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether Iceberg reads values of a type as another one, which has whole numbers of 32 and 64 bits."""
    if pa.types.is_list(wide) and pa.types.is_list(narrow):
        return reads(wide.value_type, narrow.value_type)
    for is_like in (pa.types.is_integer, pa.types.is_floating):
        if is_like(wide) and is_like(narrow):
            return bool(max(32, wide.bit_width) >= narrow.bit_width)
    if pa.types.is_decimal(wide) and pa.types.is_decimal(narrow):
        return bool(wide.scale == narrow.scale and wide.precision >= narrow.precision)
    return bool(wide == narrow)


_SINGLE = {ColumnType(kind).arrow: ColumnType(kind) for kind in (*NUMBERS, Kind.DATETIME, Kind.TEXT)}
