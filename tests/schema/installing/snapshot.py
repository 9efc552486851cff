"""The state that an installation could change in a database, for comparison."""

import psycopg
from psycopg import sql

# xmin is the transaction that wrote a row: it reveals a row written again with the same values
_CATALOGUES = (
    "pg_class",
    "pg_attribute",
    "pg_attrdef",
    "pg_constraint",
    "pg_index",
    "pg_inherits",
    "pg_namespace",
    "pg_proc",
    "pg_type",
    "pg_description",
    "pg_authid",
    "pg_auth_members",
    "pg_db_role_setting",
    "pg_partitioned_table",
)


def snapshot(connection: psycopg.Connection) -> dict[str, tuple[int, str]]:
    """For each catalogue and each table of ringlog: the number of rows and a digest of them."""
    tables = connection.execute(
        "select nspname, relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace"
        " where nspname in ('online', 'log', 'weeks', 'ringlog') and relkind in ('r', 'p') order by 1, 2"
    ).fetchall()
    relations = [("pg_catalog", catalogue) for catalogue in _CATALOGUES] + tables
    return {f"{schema}.{name}": _digest(connection, schema, name) for schema, name in relations}


def _digest(connection: psycopg.Connection, schema: str, name: str) -> tuple[int, str]:
    # relpages, reltuples and similar columns change by themselves
    row = "(xmin, ctid)" if schema == "pg_catalog" else "(xmin, ctid, t)"
    statement = sql.SQL("select count(*), md5(string_agg({}::text, ' ' order by ctid)) from {} as t")
    found = connection.execute(statement.format(sql.SQL(row), sql.Identifier(schema, name))).fetchone()
    assert found is not None
    return found
