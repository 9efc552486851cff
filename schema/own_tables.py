"""Ringlog's own tables in schema ringlog, and their columns."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.schema import locks
from ringlog.schema.change import run
from ringlog.schema.layout import READER

_EVERYWHERE = sa.MetaData(schema="ringlog")


def own_table(name: str, *parts: sa.schema.SchemaItem, comment: str, **options: Any) -> sa.Table:
    """A table that every database has and all readers may read."""
    return sa.Table(name, _EVERYWHERE, *parts, comment=comment, **options)


for _lock in locks.LOCKS:
    own_table(_lock.name, comment=_lock.comment)


def create_missing(connection: sa.Connection) -> set[str]:
    """Creates the tables of `own_table` that the database does not have; their names."""
    query = sa.text("select name from unnest(cast(:names as text[])) as name where to_regclass(name) is null")
    names = {*connection.scalars(query, {"names": [*_EVERYWHERE.tables]})}
    missing = [table for table in _EVERYWHERE.sorted_tables if table.fullname in names]
    if missing:
        _EVERYWHERE.create_all(connection, tables=missing, checkfirst=False)
        grant_select(connection, missing, READER)
    return {table.name for table in missing}


def grant_select(connection: sa.Connection, tables: Iterable[sa.Table], role: str) -> None:
    """Lets a role read these tables."""
    names = sql.SQL(", ").join(sql.Identifier("ringlog", table.name) for table in tables)
    run(connection, sql.SQL("grant select on {} to {}").format(names, sql.Identifier(role)))


def restrict_rows(connection: sa.Connection, table: sa.Table, policy: str) -> None:
    """Shows the rows of a table by a policy, if the database does not do so yet. As ringlog_owner."""
    query = sa.text("select relrowsecurity from pg_class where oid = cast(:name as regclass)")
    if not connection.scalar(query, {"name": f"ringlog.{table.name}"}):
        run(
            connection,
            sql.SQL(policy).format(table=sql.Identifier("ringlog", table.name), reader=sql.Literal(READER)),
        )


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
