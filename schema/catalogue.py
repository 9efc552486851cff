"""What PostgreSQL's catalogue says of a relation: its columns, the bounds of a week."""

from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql

WEEK_BOUNDS = """cross join lateral regexp_match(
  pg_get_expr(child.relpartbound, 0), 'FROM \\(''(.+)''\\) TO \\(''(.+)''\\)'
) as bounds"""
"""Part of a query: the begin and end, as texts, of the week that `child`, a row of pg_class, is; null for a
relation that is no week of a log."""

_COLUMNS = """
select attname::text, format_type(atttypid, atttypmod)
from pg_attribute
where attrelid = to_regclass(%(relation)s) and attnum > 0 and not attisdropped
order by attnum
"""


def columns(connection: psycopg.Connection[Any] | sa.Connection, relation: sql.Identifier) -> dict[str, str]:
    """All columns of a relation in their order, with types as format_type writes them; none where there is no
    such relation. `ringlog.schema.tables.stored_columns` has the data columns of many tables at once."""
    words = {"relation": relation.as_string()}
    if isinstance(connection, sa.Connection):
        return {row[0]: row[1] for row in connection.exec_driver_sql(_COLUMNS, words)}
    return dict(connection.execute(_COLUMNS, words).fetchall())
