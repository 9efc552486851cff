"""Reads closed rows from their blocks: closed.<table>, see ringlog.schema.closed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
from psycopg import sql

from ringlog.history.blocks import EPOCH
from ringlog.history.connection import Connection, answer
from ringlog.history.packing import unpacked
from ringlog.schema import closed

TIME = pa.timestamp("us", tz="UTC")

_AT_ONCE = 512
"""values of blocks that are read by one query, for all columns together"""
_LONG = 16
"""where some of the columns are waveforms or texts"""

# by their numbers in pg_type.dat
_TYPES = {
    16: pa.bool_(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    25: pa.string(),
    700: pa.float32(),
    701: pa.float64(),
    1043: pa.string(),
    1184: TIME,
} | {
    number: pa.list_(kind)
    for number, kind in {
        1000: pa.bool_(),
        1005: pa.int16(),
        1007: pa.int32(),
        1016: pa.int64(),
        1021: pa.float32(),
        1022: pa.float64(),
    }.items()
}
_NUMBERS = {number for number, kind in _TYPES.items() if pa.types.is_primitive(kind)}

# A mark may be of the first moment of its span. The first block may have begun before the start.
_QUERY = """
with block as materialized (
  select block.begins, block.ends, block.rows
  from {storage} as block
  join ringlog.summarised on summarised.table_name = {table} and summarised.until >= block.ends
  where block.column_name = 'time'
    and block.begins >= coalesce(
      (select max(begins) from {storage} where column_name = 'time' and begins <= $1), '-infinity'
    )
    and block.begins < $2
    and block.ends > $1
    and exists (select from pg_inherits where inhrelid = block.part and inhparent = {log}::regclass)
    and not exists (
      select from ringlog.summary_mark as mark
      where mark.table_name = {table}
        and mark."time" > block.begins - summarised.levels[1] * interval '1 second'
        and mark."time" < block.ends
    )
  order by block.begins
  limit $4
)
select
  block.begins, block.ends, block.rows, part.column_name, part.attnum, part.type::integer, part.modifier,
  part.content
from block
join {storage} as part on part.begins = block.begins and part.column_name = any($3)
order by block.begins
"""


@dataclass(frozen=True)
class Block:
    """Rows from `begins` on and before `ends`, all that the log has of that time; in microseconds since
    1970. `rows` is none where it has none."""

    begins: int
    ends: int
    rows: pa.RecordBatch | None


@dataclass(frozen=True)
class Blocks:
    """Some blocks by time. `reached`: others may begin there or later; None: there are no others."""

    blocks: Sequence[Block]
    reached: int | None


@dataclass(frozen=True)
class Column:
    """A column as the log has it."""

    attnum: int
    type: int
    modifier: int


def blocks(
    connection: Connection,
    table: str,
    columns: Mapping[str, Column],
    start: int | None,
    end: int | None,
    times: int = 1,
) -> Blocks:
    """The first blocks that have times from `start` on and before `end`, with `time` and these columns: those
    that hold all rows of the log that are there when the query begins. Times are in microseconds since 1970,
    None is no bound. More of them than else, by `times`. Raises ReadError."""
    long = any(column.type not in _NUMBERS for column in columns.values())
    most = max(1, times * (_LONG if long else _AT_ONCE) // (len(columns) + 1))
    text = sql.SQL(_QUERY).format(
        storage=closed.storage(table),
        table=sql.Literal(table),
        log=sql.Literal(sql.Identifier("log", table).as_string()),
    )
    values = (
        _moment(start, "-infinity"),
        _moment(end, "infinity"),
        sql.Literal(["time", *columns]),
        sql.Literal(most),
    )
    found = answer(connection, text, ("timestamptz", "timestamptz", "text[]", "integer"), values)
    if not found.num_rows:
        return Blocks([], None)
    begins, ends = (found.column(place).cast(pa.int64()).to_pylist() for place in (0, 1))
    counts, names, *known = (found.column(place).to_pylist() for place in range(2, 7))
    arrays: dict[int, dict[str, pa.Array]] = {}
    heads: dict[int, tuple[int, int]] = {}
    for place, content in enumerate(found.column(7)):
        n, name = counts[place], names[place]
        heads[begins[place]] = ends[place], n
        there = arrays.setdefault(begins[place], {})
        if name == "time":
            there[name] = unpacked(content.as_buffer(), TIME, n)
        elif columns[name] == Column(*(each[place] for each in known)):
            there[name] = unpacked(content.as_buffer(), _TYPES[columns[name].type], n)
    wanted = ["time", *columns]
    made = []
    for begin, (stop, n) in heads.items():
        there = arrays[begin]
        if not n:
            made.append(Block(begin, stop, None))
        elif len(there) == len(wanted):
            made.append(
                Block(begin, stop, pa.RecordBatch.from_arrays([there[name] for name in wanted], wanted))
            )
    return Blocks(made, stop if len(heads) == most else None)


def _moment(bound: int | None, otherwise: str) -> sql.Composable:
    text = otherwise if bound is None else moment_of(bound).isoformat()
    return sql.SQL("timestamptz {}").format(sql.Literal(text))


def moment_of(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
