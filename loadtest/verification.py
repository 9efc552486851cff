"""Whether the database holds what the writers were told it holds."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from ringlog.loader.receipts import EPOCH, MICROSECOND, Receipt, read_receipts
from ringlog.loader.sources import Reading
from ringlog.loader.sources.simulator import Simulator
from ringlog.schema.facility import Table


@dataclass(frozen=True)
class Found:
    """One table's acknowledged rows: how many of them are where they must be."""

    table: Table
    acknowledged: int
    # rows whose ring row has them (or a later lap), and whose log row is there
    in_ring: int
    in_log: int
    # stored rows that hold other values than were sent
    altered: int

    @property
    def left_out(self) -> int:
        """Rows that the table's policy keeps out of the log."""
        log = self.table.log
        return 0 if log.nth == 1 and log.period is None else self.acknowledged - self.in_log

    @property
    def lost(self) -> int:
        """Acknowledged rows missing in the ring or, where every row is logged, in the log."""
        return self.acknowledged - min(self.in_ring, self.in_log + self.left_out)


def verify(conninfo: str, tables: Sequence[Table], receipts: Path, simulator: Simulator) -> list[Found]:
    """Looks up every receipt of the folder `receipts` (a file for each table) in rings and logs, and
    computes the readings of every stored row again. `conninfo` is the administrator's."""
    with psycopg.connect(conninfo) as connection:
        connection.execute("set timezone to 'UTC'")
        return [
            _verify(connection, table, read_receipts(receipts / table.name), simulator) for table in tables
        ]


def _verify(
    connection: psycopg.Connection, table: Table, receipts: Sequence[Receipt], simulator: Simulator
) -> Found:
    ring, log = sql.Identifier("online", table.name), sql.Identifier("log", table.name)
    with connection.cursor() as cursor:
        cursor.execute("create temporary table receipt (seq_no integer, time timestamptz) on commit drop")
        with cursor.copy("copy receipt from stdin") as copy:
            for receipt in receipts:
                copy.write_row(receipt)
        in_ring = _count(
            cursor, "exists (select from {table} t where t.seq_no = r.seq_no and t.time >= r.time)", ring
        )
        in_log = _count(
            cursor, "exists (select from {table} t where t.seq_no = r.seq_no and t.time = r.time)", log
        )
        columns = sql.SQL(", ").join(sql.Identifier("t", column.name) for column in table.columns)
        stored = sql.SQL("select t.time, {columns} from {table} t join receipt r using (seq_no, time)")
        altered = 0
        signals = simulator.signals(table)
        for place in (ring, log):
            cursor.execute(stored.format(columns=columns, table=place))
            for time, *values in cursor:
                sent = simulator.row(table, signals, (time - EPOCH) // MICROSECOND).values
                altered += not all(
                    _same(column.type, value, other)
                    for column, value, other in zip(table.columns, values, sent, strict=True)
                )
        connection.commit()
    return Found(table, len(receipts), in_ring, in_log, altered)


def _count(cursor: psycopg.Cursor[tuple[int]], condition: str, table: sql.Identifier) -> int:
    query = sql.SQL("select count(*) from receipt r where " + condition)
    row = cursor.execute(query.format(table=table)).fetchone()
    assert row is not None
    return row[0]


def _same(kind: str, stored: Reading, sent: Reading) -> bool:
    if kind == "real" and isinstance(stored, float) and isinstance(sent, float):
        return struct.pack("<f", stored) == struct.pack("<f", sent)
    return stored == sent
