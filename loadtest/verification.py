"""Checks that the database has every row that was acknowledged to the writers."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
from psycopg import sql

from ringlog.loader.ack_log import Acknowledgement, read_acknowledgements
from ringlog.loader.sources import Reading
from ringlog.loader.sources.simulator import Simulator
from ringlog.schema import session
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import Table
from ringlog.schema.moments import microseconds


@dataclass(frozen=True)
class Verified:
    """One table's acknowledged rows: the numbers of those that are where they must be."""

    table: Table
    acknowledged: int
    # rows that are in the ring (or replaced by a later lap), and in the log
    in_ring: int
    in_log: int
    # stored rows with other values than were sent
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


def verify(
    conninfo: str, tables: Sequence[Table], acknowledgements: Path, simulator: Simulator
) -> list[Verified]:
    """Looks up every acknowledgement of the folder (a file for each table) in rings and logs, and computes
    the readings of every stored row again. `conninfo` is the administrator's."""
    with _connected(conninfo) as connection:
        return [
            _verify(
                connection,
                table,
                read_acknowledgements(acknowledgements / table.name),
                partial(_altered_beside_simulator, table=table, simulator=simulator),
            )
            for table in tables
        ]


def verify_sets(
    conninfo: str,
    written: Mapping[Table, Iterable[Acknowledgement]],
    sets: Callable[[Table], Sequence[Mapping[str, Reading]]],
) -> list[Verified]:
    """Looks up the acknowledgements of each table in rings and logs, and compares every stored row with the
    set of readings that was sent: of number t modulo the number of sets, t being the row's time in
    microseconds since 1970. `conninfo` may be of any login that may select."""
    with _connected(conninfo) as connection:
        return [
            _verify(
                connection,
                table,
                acknowledgements,
                partial(_altered_beside_sets, table=table, sets=sets(table)),
            )
            for table, acknowledgements in written.items()
        ]


def _connected(conninfo: str) -> psycopg.Connection:
    return session.connect(conninfo, options="-c timezone=UTC")


def _verify(
    connection: psycopg.Connection,
    table: Table,
    acknowledgements: Iterable[Acknowledgement],
    altered: Callable[[psycopg.Cursor], int],
) -> Verified:
    """Looks the acknowledgements up; `altered` counts stored rows with other values, and finds the
    acknowledgements in a temporary table `acknowledgement`."""
    ring, log = sql.Identifier("online", table.name), sql.Identifier("log", table.name)
    number = 0
    with connection.cursor() as cursor:
        cursor.execute(
            "create temporary table acknowledgement (seq_no integer, time timestamptz) on commit drop"
        )
        with cursor.copy("copy acknowledgement from stdin") as copy:
            for number, acknowledgement in enumerate(acknowledgements, start=1):  # noqa: B007
                copy.write_row(acknowledgement)
        cursor.execute("analyze acknowledgement")
        in_ring = _count(
            cursor, "exists (select from {table} t where t.seq_no = r.seq_no and t.time >= r.time)", ring
        )
        in_log = _count(
            cursor,
            # the bounds exclude the other weeks
            "exists (select from {table} t where t.seq_no = r.seq_no and t.time = r.time"
            " and t.time between (select min(time) from acknowledgement)"
            " and (select max(time) from acknowledgement))",
            log,
        )
        other_values = altered(cursor)
        connection.commit()
    return Verified(table, number, in_ring, in_log, other_values)


def _altered_beside_simulator(cursor: psycopg.Cursor, table: Table, simulator: Simulator) -> int:
    columns = sql.SQL(", ").join(sql.Identifier("t", column.name) for column in table.columns)
    stored = sql.SQL("select t.time, {columns} from {table} t join acknowledgement r using (seq_no, time)")
    altered = 0
    signals = simulator.signals(table)
    for schema in ("online", "log"):
        cursor.execute(stored.format(columns=columns, table=sql.Identifier(schema, table.name)))
        for time, *values in cursor:
            sent = simulator.row(table, signals, microseconds(time)).values
            altered += not all(
                _same(column.type, value, other)
                for column, value, other in zip(table.columns, values, sent, strict=True)
            )
    return altered


def _altered_beside_sets(cursor: psycopg.Cursor, table: Table, sets: Sequence[Mapping[str, Reading]]) -> int:
    # A name that no column can have.
    number = sql.Identifier("#set")
    names = [sql.Identifier(name) for name in sets[0]]
    columns = sql.SQL(", ").join(names)
    cursor.execute(
        sql.SQL(
            "create temporary table sent on commit drop as"
            " select 0 as {number}, {columns} from {ring} limit 0"
        ).format(number=number, columns=columns, ring=sql.Identifier("online", table.name))
    )
    values = sql.SQL(", ").join(sql.Placeholder() * (len(names) + 1))
    cursor.executemany(
        sql.SQL("insert into sent ({number}, {columns}) values ({values})").format(
            number=number, columns=columns, values=values
        ),
        [(index, *one.values()) for index, one in enumerate(sets)],
    )
    query = sql.SQL(
        "select count(*) from {table} t join acknowledgement r using (seq_no, time) join sent"
        " on sent.{number} = (extract(epoch from t.time) * 1000000)::bigint % {count}"
        " where ({stored}) is distinct from ({sent})"
        " and t.time between (select min(time) from acknowledgement)"
        " and (select max(time) from acknowledgement)"
    )
    altered = 0
    for schema in ("online", "log"):
        row = cursor.execute(
            query.format(
                table=sql.Identifier(schema, table.name),
                number=number,
                count=sql.Literal(len(sets)),
                stored=sql.SQL(", ").join(sql.Identifier("t", name) for name in sets[0]),
                sent=sql.SQL(", ").join(sql.Identifier("sent", name) for name in sets[0]),
            )
        ).fetchone()
        assert row is not None
        altered += row[0]
    return altered


def _count(cursor: psycopg.Cursor[tuple[int]], condition: str, table: sql.Identifier) -> int:
    query = sql.SQL("select count(*) from acknowledgement r where " + condition)
    row = cursor.execute(query.format(table=table)).fetchone()
    assert row is not None
    return row[0]


def _same(kind: ColumnType, stored: Reading, sent: Reading) -> bool:
    if kind.kind is Kind.REAL and isinstance(stored, float) and isinstance(sent, float):
        return struct.pack("<f", stored) == struct.pack("<f", sent)
    return stored == sent
