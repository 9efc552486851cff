"""The columns in which signals are and have been stored, from ringlog's registry."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from ringlog.history.connection import Connection, records, transaction
from ringlog.schema.column_type import ColumnType


@dataclass(frozen=True)
class Location:
    """Where a signal's rows are stored from `since` on and before `until`: `column` of `log.<table>`, or of a
    table of samples the signal's number.

    None is no bound.
    """

    signal: str
    table: str
    column: str
    type: ColumnType
    unit: str
    since: datetime | None
    until: datetime | None
    is_of_samples: bool = False


def locations(database: str | Connection, signals: Sequence[str]) -> dict[str, tuple[Location, ...]]:
    """The locations of each of these signals, oldest first; a signal that never existed has none.

    A change of unit, limits or description begins another location in the same column. Raises ReadError.
    """
    stored: dict[str, tuple[Location, ...]] = dict.fromkeys(signals, ())
    query = sql.SQL(
        'select signal, table_name as "table", column_name as "column", type, unit,'
        " nullif(begins, '-infinity') as since, nullif(ends, 'infinity') as until"
        ", is_of_samples"
        " from ringlog.signal_places({}::text[]) as location"
        " join ringlog.every_table using (table_name)"
        " order by signal, begins"
    ).format(sql.Literal([*stored]))
    with transaction(database) as connection:
        for row in records(connection, query):
            location = Location(**row | {"type": ColumnType.of(row["type"])})
            stored[location.signal] += (location,)
    return stored
