"""Reads closed rows from their blocks: closed.<table>, see ringlog.schema.relations.closed."""

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from psycopg import sql

from ringlog.history.connection import Connection
from ringlog.history.packing import DAMAGES, arrow_of, joined
from ringlog.history.summaries.copying import POSTGRES_EPOCH
from ringlog.schema.column_type import TYPES, Kind
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.moments import moment_of
from ringlog.schema.relations.closed import storage
from ringlog.schema.sql_files import sql_file

log = logging.getLogger(__name__)

_AT_ONCE = 512
"""the most values that a query reads, over all columns"""
_LONG = 16
"""the same if a column is a waveform or a text"""

_TYPES = {oid: arrow_of(kind) for oid, kind in TYPES.items()}
_NUMBERS = [oid for oid, kind in TYPES.items() if kind.width is not None or kind.kind is Kind.NUMERIC]

_WIDTHS = {kind: (kind.bit_width + 7) // 8 for kind in _TYPES.values() if pa.types.is_primitive(kind)}
_TOGETHER = 1 << 20
"""bytes of numbers that become one block"""

VALID = sql_file(__file__, "closed_valid")
"""Part of a query: the blocks that have all rows of their time. A mark stands for its whole span, of which it
may be the first moment."""

# The first block may begin before the start. A column of a block counts only if the table's column is still
# the same one.
_QUERY = sql_file(__file__, "closed_blocks").replace("{valid}", VALID)

_KNOWN = """
select from ringlog.closed
where table_name = $1 and has_table_privilege(to_regclass($2), 'select')
"""


@dataclass(frozen=True)
class Block:
    """All rows of the log from `begins` on and before `ends`, in microseconds since 1970, of one stored block
    or several. `rows` is None if there are none."""

    begins: int
    ends: int
    rows: pa.RecordBatch | None


@dataclass(frozen=True)
class Blocks:
    """Some blocks by time. `reached`: more blocks may begin there or later; None: these are all."""

    blocks: Sequence[Block]
    reached: int | None


def are_there(connection: Connection, table: str) -> bool:
    """Whether a table has closed rows that the reader may read. Raises ReadError."""
    if table not in connection.storages:
        known = connection.answer(_KNOWN, table.encode(), storage(table).as_string().encode())
        if not known.ntuples or sys.byteorder != "little":
            return False
        connection.storages.add(table)
    return True


def blocks(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    start: int | None,
    end: int | None,
    times: float = 1,
) -> Blocks:
    """The first blocks with times from `start` on and before `end`, with `time` and these columns, in one
    snapshot: those that have all rows of the log at the begin of the query. Times are in microseconds since
    1970, None is no bound. `times` multiplies the number of values read. Raises ReadError."""
    wanted = ["time", *columns]
    bounds = _moment(start, b"-infinity"), _moment(end, b"infinity")
    limits = (b"%d" % max(1, int(times * most) // len(wanted)) for most in (_AT_ONCE, _LONG))
    found = connection.answer(_text(table), *bounds, array(wanted), *limits)
    value, n = found.get_value, found.ntuples
    stored: dict[tuple[bytes | None, ...], dict[str, tuple[pa.DataType, bytes]]] = {}
    for row in range(n):
        columns_of = stored.setdefault((value(row, 0), value(row, 1), value(row, 2)), {})
        columns_of[(value(row, 3) or b"").decode()] = _TYPES[whole(value(row, 4))], value(row, 5) or b""
    packed = [
        _Packed(whole(begins) + POSTGRES_EPOCH, whole(ends) + POSTGRES_EPOCH, whole(rows), columns_of)
        for (begins, ends, rows), columns_of in stored.items()
    ]
    # one without rows has no columns; readers take rows without one of the columns from the log
    there = [block for block in packed if not block.rows or len(block.columns) == len(wanted)]
    made = [block for some in _together(there) for block in _unpacked(some, table, wanted)]
    is_full = packed and len(packed) == whole(value(0, 6))
    return Blocks(made, packed[-1].ends if is_full else None)


@dataclass(frozen=True)
class _Packed:
    """A block as PostgreSQL has it: `columns` are types and contents by name."""

    begins: int
    ends: int
    rows: int
    columns: Mapping[str, tuple[pa.DataType, bytes]]


def _together(packed: Iterable[_Packed]) -> Iterator[list[_Packed]]:
    """Blocks of numbers that follow each other, about _TOGETHER bytes of them; any other block alone."""
    some: list[_Packed] = []
    size = 0
    for block in packed:
        width = sum(_WIDTHS.get(kind, _TOGETHER) for kind, _ in block.columns.values())
        if some and (some[-1].ends != block.begins or not block.rows or size > _TOGETHER):
            yield some
            some, size = [], 0
        some.append(block)
        size += block.rows * width if block.rows else _TOGETHER + 1
    if some:
        yield some


def _unpacked(some: Sequence[_Packed], table: str, wanted: Sequence[str]) -> Iterator[Block]:
    """These blocks as one; if one of them is damaged, the others as one each."""
    begins, ends = some[0].begins, some[-1].ends
    if not some[0].rows:
        yield Block(begins, ends, None)
        return
    numbers = [block.rows for block in some]
    try:
        columns = [
            joined([block.columns[name][1] for block in some], some[0].columns[name][0], numbers)
            for name in wanted
        ]
    except DAMAGES as error:
        if len(some) == 1:
            # readers take its rows from the log instead
            log.error("a block of closed.%s is damaged: ringlog verify makes it again: %s", table, error)
        else:
            for block in some:
                yield from _unpacked([block], table, wanted)
        return
    yield Block(begins, ends, pa.RecordBatch.from_arrays(columns, wanted))


@cache
def _text(table: str) -> str:
    names = {
        "storage": storage(table),
        "table": sql.Literal(table),
        "log": sql.Literal(sql.Identifier(LOG_TABLES, table).as_string()),
        "numbers": sql.Literal(_NUMBERS),
    }
    return sql.SQL(_QUERY).format(**names).as_string()


def whole(content: bytes | None) -> int:
    """A whole number, or a time in microseconds since 2000, in PostgreSQL's binary format."""
    return int.from_bytes(content or b"", "big", signed=True)


def array(names: Sequence[str]) -> bytes:
    """An array of texts, as PostgreSQL writes it."""
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{{{}}}".format(",".join(f'"{name}"' for name in quoted)).encode()


def _moment(bound: int | None, otherwise: bytes) -> bytes:
    return otherwise if bound is None else text_of(bound)


def text_of(microseconds: int) -> bytes:
    """A time since 1970, as PostgreSQL reads it."""
    return moment_of(microseconds).isoformat().encode()
