"""Bins of a table's rows by PostgreSQL's own aggregates, and the comparison of answers."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg
import pytest

Row = tuple[object, ...]

_BINS = """
with value as (
  select date_bin(%(width)s, time, %(origin)s) as bin, time, {value}::double precision as value
  from {table} where time >= %(begin)s and time < %(end)s
), with_number as (select *, case when value <> 'NaN' then value end as number from value)
select
  bin,
  count(number),
  min(number),
  max(number),
  avg(number),
  (array_agg(number order by time) filter (where number is not null))[1],
  (array_agg(number order by time desc) filter (where number is not null))[1],
  count(*) filter (where value = 'NaN'),
  count(*) filter (where value is null)
from with_number group by bin order by bin
"""


def bins_of_rows(
    connection: psycopg.Connection,
    value: str,
    begin: datetime,
    end: datetime,
    width: timedelta,
    origin: datetime,
    table: str = "weeks.magnets",
) -> list[Row]:
    """The columns of get_trend for an expression over the rows."""
    query = _BINS.format(value=value, table=table)
    given = {"width": width, "origin": origin, "begin": begin, "end": end}
    return connection.execute(query.encode(), given).fetchall()


def same(found: Sequence[Row], wanted: Sequence[Row], rel: float = 1e-12, abs: float = 1e-12) -> None:
    """Compares answers that are not empty, row by row; floats nearly."""
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        near = [
            pytest.approx(each, rel, abs, nan_ok=True) if isinstance(each, float) else each for each in other
        ]
        assert list(one) == near, (one, other)
