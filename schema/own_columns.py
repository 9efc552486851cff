"""Columns of ringlog's own tables."""

from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql


def own_column(
    kind: Any,
    name: str,
    comment: str | None = None,
    *constraints: Any,
    key: bool = False,
    null: bool = False,
    default: Any = None,
    **options: Any,
) -> sa.Column[Any]:
    """A column of a type. `key`: a part of the primary key; `null`: it may be null; `default` is
    PostgreSQL's."""
    options |= {"nullable": null and not key, "primary_key": key, "server_default": default}
    return sa.Column(name, kind, *constraints, comment=comment, **options)


text = partial(own_column, sa.TEXT)
timestamp = partial(own_column, postgresql.TIMESTAMP(timezone=True))
smallint = partial(own_column, sa.SMALLINT)
integer = partial(own_column, sa.INTEGER)
bigint = partial(own_column, sa.BIGINT)
real = partial(own_column, sa.REAL)
double = partial(own_column, sa.DOUBLE_PRECISION)
boolean = partial(own_column, sa.BOOLEAN)
