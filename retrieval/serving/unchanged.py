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

# The blocks with all rows of the time, and those before it up to one that has some: the newest row before the
# time may be part of an answer. A block that is made again is a new row of its table.
_BLOCKS = (
    """
with bound as materialized (
  select (
    select begins from {storage}
    where column_name = 'time' and begins < first.begins and rows > 0
    order by begins desc
    limit 1
  ) as begins
  from (
    select begins from {storage}
    where column_name = 'time' and begins < $1::timestamptz
    order by begins desc
    limit 1
  ) as first
), valid as (
  select block.begins, block.ends, block.xmin::text as made, lag(block.ends) over (
    order by block.begins
  ) as until
  from bound
  cross join """
    + VALID
    + """
    and block.begins >= bound.begins
    and block.begins < $2::timestamptz
  order by block.begins
  limit 5001
)
select md5(string_agg(concat_ws(' ', begins, made), ',' order by begins))
from valid
having count(*) < 5001 and min(begins) = (select begins from bound) and max(ends) >= $2
  and bool_and(until is null or until = begins)
"""
)


def tag_of(servers: Servers, names: Sequence[str], start: datetime, end: datetime) -> str | None:
    """The tag of an answer with these signals from `start` to `end` (inclusive). None if part of the time is
    not closed, or not in one place. Raises ReadError."""
    parts = [_version(), str(servers.registry(None)["version"]), str(start), str(end)]
    known = describe(servers, names)
    tables = set()
    for name in names:
        columns = columns_of(servers, known[name]) if name in known and known[name].nodes == (None,) else []
        if len(columns) != 1 or within(columns[0].place, start, end) != (start, end):
            return None
        tables.add(columns[0].place.table)
    for table in sorted(tables):
        if not are_there(servers.first, table):
            return None
        bounds = microseconds(start), microseconds(end + MICROSECOND)
        found = servers.first.answer(_text(table), *map(text_of, bounds))
        if not found.ntuples:
            return None
        parts.append((found.get_value(0, 0) or b"").decode())
    return f'W/"{sha256(repr(parts).encode()).hexdigest()[:32]}"'


@cache
def _version() -> str:
    """Another version of ringlog may write answers differently."""
    return version("ringlog")


@cache
def _text(table: str) -> str:
    log = sql.Literal(sql.Identifier(LOG_TABLES, table).as_string())
    return sql.SQL(_BLOCKS).format(storage=storage(table), table=sql.Literal(table), log=log).as_string()
