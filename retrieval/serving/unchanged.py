"""Entity tags of answers for closed time: they change only with the rows."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version

from psycopg import sql

from ringlog.history.closed import VALID, are_there, text_of
from ringlog.retrieval.samples import columns_of, within
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.signals import describe
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.moments import MICROSECOND, microseconds
from ringlog.schema.relations.closed import storage
from ringlog.schema.sql_files import sql_file

# The blocks with all rows of the time, and those before it up to one that has some: the newest row before the
# time may be part of an answer. A block that is made again is a new row of its table.
_BLOCKS = sql_file(__file__, "unchanged_blocks").replace("{valid}", VALID)


def tag_of(servers: Servers, names: Sequence[str], start: datetime, end: datetime) -> str | None:
    """The tag of an answer with these signals from `start` to `end` (inclusive). None if part of the time is
    not closed, or not in one location. Raises ReadError."""
    parts = [_version(), str(servers.registry(None)["version"]), str(start), str(end)]
    known = describe(servers, names)
    tables = set()
    for name in names:
        columns = columns_of(servers, known[name]) if name in known and known[name].nodes == (None,) else []
        if len(columns) != 1 or within(columns[0].location, start, end) != (start, end):
            return None
        tables.add(columns[0].location.table)
    for table in sorted(tables):
        if not are_there(servers.first, table):
            return None
        bounds = microseconds(start), microseconds(end + MICROSECOND)
        blocks = servers.first.answer(_text(table), *map(text_of, bounds))
        if not blocks.ntuples:
            return None
        parts.append((blocks.get_value(0, 0) or b"").decode())
    return f'W/"{sha256(repr(parts).encode()).hexdigest()[:32]}"'


@cache
def _version() -> str:
    """Another version of ringlog may write answers differently."""
    return version("ringlog")


@cache
def _text(table: str) -> str:
    log = sql.Literal(sql.Identifier(LOG_TABLES, table).as_string())
    return sql.SQL(_BLOCKS).format(storage=storage(table), table=sql.Literal(table), log=log).as_string()
