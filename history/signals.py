"""The columns in which signals are and have been stored, from ringlog's registry."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from ringlog.history.connection import Connection, records, transaction
from ringlog.schema.column_type import ColumnType


@dataclass(frozen=True)
class Place:
    """The place of a signal's rows from `since` on and before `until`: `column` of `log.<table>`, or of a
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


def places(database: str | Connection, signals: Sequence[str]) -> dict[str, tuple[Place, ...]]:
    """The places of each of these signals, oldest first; a signal that never existed has none.

    A change of unit, limits or description begins another place in the same column. Raises ReadError.
    """
    found: dict[str, tuple[Place, ...]] = dict.fromkeys(signals, ())
    query = sql.SQL(
        'select signal, table_name as "table", column_name as "column", type, unit,'
        " nullif(begins, '-infinity') as since, nullif(ends, 'infinity') as until"
        ", is_of_samples"
        " from ringlog.signal_places({}::text[]) as place"
        " join ringlog.every_table using (table_name)"
        " order by signal, begins"
    ).format(sql.Literal([*found]))
    with transaction(database) as connection:
        for row in records(connection, query):
            place = Place(**row | {"type": ColumnType.of(row["type"])})
            found[place.signal] += (place,)
    return found
