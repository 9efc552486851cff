"""Makes the rings and logs of new tables of rows."""

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import online_view
from ringlog.schema.access import roles
from ringlog.schema.change import run_all
from ringlog.schema.facility import KEY_COLUMNS, Table
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.relations import logs, rings, tables
from ringlog.schema.relations.partitions import clock, first_partitions
from ringlog.schema.relations.statistics import turning_off

logger = logging.getLogger(__name__)

AT_ONCE = 5_000
"""About so many columns are made in one transaction. PostgreSQL's process keeps some 24 KB for each until it
ends, and 35 locks for each table until it commits."""

_PAUSE = 1.0  # seconds between two lines about the progress


class Progress:
    """Logs how far an installation, or its trial, is, if it takes longer than a second."""

    def __init__(self, total: int, what: str = "installing") -> None:
        self._total, self._made, self._what = total, 0, what
        self._last = time.monotonic()

    def made(self) -> None:
        """One more table is made."""
        self._made += 1
        self.at(f"{self._made} of {self._total} tables are made")

    def at(self, what: str) -> None:
        if time.monotonic() - self._last > _PAUSE:
            logger.info("%s the facility: %s", self._what, what)
            self._last = time.monotonic()


def create(connection: sa.Connection, new: Collection[Table], progress: Progress) -> None:
    """Makes these tables, with the rows of their rings and the log's first weeks."""
    tables.facility_tables(new, LOG_TABLES).create_all(connection, checkfirst=False)
    now = clock(connection)
    for table in new:
        names = [column.name for column in table.columns]
        every_column = [*KEY_COLUMNS, *names]
        statements: list[sql.Composable | str] = [*storing_waveforms(table, names)]
        statements += turning_off(sql.Identifier(LOG_TABLES, table.name), names)
        statements += first_partitions(table.name, now)
        if table.ring_refers_to_log:
            statements.append(ring_view(table, names))
        statements += [logs.view(table.name, every_column), roles.granting(table.name)]
        statements.append(rings.filling(tables.ring_schema(table), table.name, table.rows))
        run_all(connection, statements)
        progress.made()


def ring_view(table: Table, columns: Sequence[str]) -> str:
    """The statement for `online.<table>`, whose waveforms are those of the log; new columns come last."""
    waveforms = {column.name for column in table.columns if column.is_waveform}
    return online_view(table.name, [*columns], waveforms, tables.ring_schema(table))


def storing_waveforms(table: Table, names: Collection[str]) -> Iterator[sql.Composable]:
    """The statements that store waveforms out of line, uncompressed without compress = true."""
    for schema in (LOG_TABLES,) if table.ring_refers_to_log else ("online", LOG_TABLES):
        for column in table.columns:
            if column.is_waveform and column.name in names:
                yield sql.SQL("alter table {} alter column {} set storage {}").format(
                    sql.Identifier(schema, table.name),
                    sql.Identifier(column.name),
                    sql.SQL("extended" if column.compress else "external"),
                )


def steps(new: Iterable[Table]) -> Iterator[list[Table]]:
    """The tables in parts of about AT_ONCE columns: one at least, which may be empty."""
    step: list[Table] = []
    columns = 0
    for table in new:
        if step and columns + len(table.columns) > AT_ONCE:
            yield step
            step, columns = [], 0
        step.append(table)
        columns += len(table.columns)
    yield step
