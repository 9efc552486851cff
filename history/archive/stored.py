"""The two forms of a log, rows and blocks of samples: how each is read, and how it is written to files."""

from collections.abc import Iterator, Mapping

import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive.books import enter_twice
from ringlog.history.archive.manifest import ColdWeek, form_of_table
from ringlog.history.archive.parquet import fields
from ringlog.history.archive.parquet.forms import SAMPLES
from ringlog.history.archive.parquet.sample_blocks import samples_of
from ringlog.history.connection import Connection, rows
from ringlog.schema.layout import ARCHIVE, LOG_TABLES
from ringlog.schema.relations.dropping import drop_rows
from ringlog.schema.relations.partitions import Week
from ringlog.schema.relations.sample_tables import blocks_of
from ringlog.schema.relations.tables import stored_columns
from ringlog.schema.sql_files import sql_file


class Rows:
    """The log of a table of rows."""

    key = "seq_no"
    """The column that identifies late rows, with the time."""
    count = "count(*)"
    """SQL of the number of rows or samples in a relation of the log"""
    _order = '"time", seq_no'

    def read(self, source: Connection, relation: sql.Identifier, week: Week) -> Iterator[pa.RecordBatch]:
        """The rows or samples of a week in a relation. Raises ReadError, BeyondArrow."""
        query = sql.SQL('select * from {} where "time" >= {} and "time" < {} order by {}').format(
            relation, sql.Literal(week.start), sql.Literal(week.end), sql.SQL(self._order)
        )
        return rows(source, query)

    def filed(self, stored: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same rows in the form of a file."""
        return stored

    def read_filed(
        self, source: Connection, relation: sql.Identifier, week: Week
    ) -> Iterator[pa.RecordBatch]:
        return self.filed(self.read(source, relation, week))

    def fields(self, connection: psycopg.Connection, table: str) -> dict[str, pa.Field]:
        """The columns whose ids a file has."""
        return fields.of_log(connection, table)

    def note_newest(self, connection: psycopg.Connection, week: ColdWeek, relation: sql.Composable) -> None:
        """Records data of a relation that becomes a week, where readers need them without the files."""

    def take_late(
        self, connection: psycopg.Connection, table: str, file: str, names: Mapping[str, sql.Composable]
    ) -> int:
        """Adds the rows or samples that arrived for a week to its partition, and enters repeated ones in the
        ledger. Returns the number of added ones. `names`: the relations `log`, `late` and `partition`, and
        `start` and `end`."""
        columns = ["seq_no", "time", *stored_columns(connection, LOG_TABLES, [table])[table]]
        of_came, of_kept = (
            sql.SQL(", ").join(sql.Identifier(alias, column) for column in columns)
            for alias in ("came", "kept")
        )
        names = {"columns": sql.SQL(", ").join(map(sql.Identifier, columns)), **names}
        twice = sql.SQL(
            'select came."time", to_json(came.*)::text, row ({of_came})::{log} *= row ({of_kept})::{log}'
            ' from {late} as came join {partition} as kept using ("time", seq_no)'
        )
        enter_twice(connection, table, file, twice.format(of_came=of_came, of_kept=of_kept, **names))
        late_rows = sql.SQL(
            "insert into {partition} ({columns}) select {columns} from {late}"
            ' where "time" >= {start} and "time" < {end} on conflict ("time", seq_no) do nothing'
        )
        return connection.execute(late_rows.format(**names)).rowcount

    def copied(self, name: str) -> str:
        """The table of schema log into which the file of a week is copied, whose partition has this name."""
        return name

    def make_copied(self, connection: psycopg.Connection, table: str, name: str) -> None:
        """Makes that table, unless it is the partition."""

    def take_copied(self, connection: psycopg.Connection, table: str, name: str) -> None:
        """Moves its content to the partition."""


class Samples(Rows):
    """The log of a table of samples."""

    key = "signal"
    count = "sum(n)"
    _order = 'signal, "time"'

    def filed(self, stored: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return samples_of(stored)

    def note_newest(self, connection: psycopg.Connection, week: ColdWeek, relation: sql.Composable) -> None:
        """Notes the newest sample of each signal: one without later ones still has this value."""
        connection.execute(
            sql.SQL(_NEWEST).format(
                relation=relation,
                samples_of_block=sql.SQL(blocks_of(connection, week.table).samples),
                table=sql.Literal(week.table),
                start=sql.Literal(week.begins),
                end=sql.Literal(week.ends),
            )
        )

    def take_late(
        self, connection: psycopg.Connection, table: str, file: str, names: Mapping[str, sql.Composable]
    ) -> int:
        of_block = sql.SQL(blocks_of(connection, table).samples)
        connection.execute(sql.SQL(_CAME).format(samples_of_block=of_block, **names))
        twice = 'select "time", to_json(came.*)::text, there = text from pg_temp.came where there is not null'
        enter_twice(connection, table, file, sql.SQL(twice))
        new = sql.SQL(
            'select number, ns as "time", value, severity, status from pg_temp.came where there is null'
        )
        connection.execute(_packing(connection, table).format(samples=new, **names))
        ((added,),) = connection.execute("select count(*) from pg_temp.came where there is null").fetchall()
        connection.execute("drop table pg_temp.came")
        return int(added)

    def copied(self, name: str) -> str:
        return f"{name} samples"

    def make_copied(self, connection: psycopg.Connection, table: str, name: str) -> None:
        samples = sql.Identifier("log", self.copied(name))
        drop_rows(connection, "log", self.copied(name))
        as_archived = sql.SQL("create unlogged table {} as select * from {} with no data")
        connection.execute(as_archived.format(samples, sql.Identifier(ARCHIVE, table)))

    def take_copied(self, connection: psycopg.Connection, table: str, name: str) -> None:
        samples = sql.Identifier("log", self.copied(name))
        of_file = (
            'select number, ringlog.nanoseconds("time") + nanoseconds as "time", value, severity, status'
            " from {}"
        )
        blocks = _packing(connection, table).format(
            partition=sql.Identifier("log", name), samples=sql.SQL(of_file).format(samples)
        )
        connection.execute(blocks)
        drop_rows(connection, "log", self.copied(name))


def stored(connection: psycopg.Connection, table: str) -> Rows:
    """The form of a table's log."""
    return Samples() if form_of_table(connection, table) is SAMPLES else Rows()


def _packing(connection: psycopg.Connection, table: str) -> sql.SQL:
    """The SQL that makes blocks in `partition` of `samples`: a query of number, time (nanoseconds since
    1970), value, severity and status."""
    blocks = blocks_of(connection, table)
    return sql.SQL(_PACK.format(column=blocks.column, value=blocks.value, hour=blocks.hour))


# no block is of two hours, and housekeeping merges up to 4096 samples
_PACK = sql_file(__file__, "stored_pack")

_CAME = sql_file(__file__, "stored_came")

_NEWEST = sql_file(__file__, "stored_newest")
