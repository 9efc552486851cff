"""The two forms of a log, rows and blocks of samples: how each is read, and how it is written to files."""

from collections.abc import Iterator

import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql

from ringlog.history import fields
from ringlog.history.connection import Connection, rows
from ringlog.history.manifest import ColdWeek, is_of_samples
from ringlog.history.sample_blocks import samples_of
from ringlog.schema.change import run
from ringlog.schema.partitions import Week
from ringlog.schema.sample_tables import blocks_of


class Rows:
    """The log of a table of rows."""

    key = "seq_no"
    """The column that identifies late rows, with the time."""
    _order = '"time", seq_no'

    def read(self, source: Connection, relation: sql.Identifier, week: Week) -> Iterator[pa.RecordBatch]:
        """The rows or samples of a week in a relation. Raises ReadError, BeyondArrow."""
        query = sql.SQL('select * from {} where "time" >= {} and "time" < {} order by {}').format(
            relation,
            sql.Literal(week.start),
            sql.Literal(week.end),
            sql.SQL(self._order),
        )
        return rows(source, query)

    def filed(self, stored: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same rows in the form of a file."""
        return stored

    def read_filed(
        self, source: Connection, relation: sql.Identifier, week: Week
    ) -> Iterator[pa.RecordBatch]:
        return self.filed(self.read(source, relation, week))

    def fields(self, connection: sa.Connection, table: str) -> dict[str, pa.Field]:
        """The columns whose ids a file has."""
        return fields.of_log(connection, table)

    def note_newest(self, connection: sa.Connection, week: ColdWeek, relation: sql.Composable) -> None:
        """Records data of a relation that becomes a week, where readers need them without the files."""


class Samples(Rows):
    """The log of a table of samples."""

    key = "signal"
    _order = 'signal, "time"'

    def filed(self, stored: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return samples_of(stored)

    def note_newest(self, connection: sa.Connection, week: ColdWeek, relation: sql.Composable) -> None:
        """Notes the newest sample of each signal: one without later ones still has this value."""
        run(
            connection,
            sql.SQL(_NEWEST).format(
                relation=relation,
                samples_of_block=sql.SQL(blocks_of(connection, week.table).samples),
                table=sql.Literal(week.table),
                start=sql.Literal(week.begins),
                end=sql.Literal(week.ends),
            ),
        )


def stored(connection: sa.Connection, table: str) -> Rows:
    """The form of a table's log."""
    return Samples() if is_of_samples(connection, table) else Rows()


_NEWEST = """
insert into ringlog.last_archived as known (number, table_name, "time", value, severity, status)
select block.signal, {table}, newest.* from (
  select distinct on (signal) * from {relation} where "time" >= {start} and "time" < {end}
  order by signal, "time" desc, times[cardinality(times)] desc
) as block
cross join lateral (
  select each."time", each.value::text, coalesce(each.severity, 0), coalesce(each.status, 0)
  from {samples_of_block} as each ("time", value, severity, status)
  order by each."time" desc
  limit 1
) as newest
on conflict (number) do update
set "time" = excluded."time", value = excluded.value, severity = excluded.severity, status = excluded.status
where excluded."time" > known."time"
"""
