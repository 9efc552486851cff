"""Checks that the logs have every acknowledged call, with its values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.server import Server, log_rows

# As in ../native/load_generator.h.
SETS = 8
_SAMPLE = 20  # rows of each table whose values are compared
_WORD = 2**32


@dataclass(frozen=True)
class Check:
    """Acknowledged calls, rows found in the logs, and values compared with the sent ones."""

    acknowledged: int
    stored: int
    compared: int


def reading(table: int, chosen: int, column: int) -> float:
    """The value that the C clients send: `reading` of ../native/load_generator.c."""
    word = (table * 0x9E3779B1 ^ chosen * 0x85EBCA77 ^ column * 0xC2B2AE3D) % _WORD
    word = (word ^ word >> 15) * 0x2C1B3C6D % _WORD
    word = (word ^ word >> 12) * 0x297A2D39 % _WORD
    word ^= word >> 15
    return float(((word >> 8) - 2**23) / 1024)


def verify(server: Server, acknowledged: Mapping[Tables, int]) -> Check:
    """Counts the rows of all logs and compares the values of some of them.

    Raises LoadTestError when a group of tables has other rows than were acknowledged, or other values.
    """
    stored = compared = 0
    for tables, expected in acknowledged.items():
        found = sum(log_rows(server.administrator, name) for name in tables.names)
        if found != expected:
            raise LoadTestError(
                f"{expected} calls on the tables {tables.prefix}0 … were acknowledged, "
                f"and their logs have {found} rows"
            )
        stored += found
        compared += sum(_compare(server, tables, number) for number in range(tables.count))
    return Check(sum(acknowledged.values()), stored, compared)


def _compare(server: Server, tables: Tables, number: int) -> int:
    """Compares the values of some rows of a log and of the ring. Returns the number of values."""
    name = tables.names[number]
    sent = {
        readings[0]: readings
        for readings in (
            [reading(number, chosen, column) for column in range(tables.columns)] for chosen in range(SETS)
        )
    }
    columns = sql.SQL(", ").join(map(sql.Identifier, tables.column_names))
    compared = 0
    for query in (
        "select {columns} from {log} order by time desc limit {sample}",
        "select {columns} from {ring} where time is not null order by time desc limit {sample}",
    ):
        rows: Iterable[tuple[Any, ...]] = server.administrator.execute(
            sql.SQL(query).format(
                columns=columns,
                log=sql.Identifier("log", name),
                ring=sql.Identifier("online", name),
                sample=sql.Literal(_SAMPLE),
            ),
            binary=True,  # the text of a real is rounded
        )
        for row in rows:
            if sent.get(row[0]) != [*row]:
                raise LoadTestError(f"{name} has a row with other values than were sent")
            compared += len(row)
    return compared
