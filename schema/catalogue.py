"""Relations in PostgreSQL's catalogue: their names, their columns, the weeks of a log."""

from collections.abc import Collection
from typing import Any

from psycopg import sql

from ringlog.schema.session import AnyConnection, driver
from ringlog.schema.sql_files import sql_file

WEEKS = """pg_inherits
join pg_class as child on child.oid = inhrelid
cross join lateral regexp_match(
  pg_get_expr(child.relpartbound, 0), 'FROM \\(''(.+)''\\) TO \\(''(.+)''\\)'
) as bounds"""
"""Part of a query: the partitions of logs, as `child`, with begin and end as texts in the array `bounds`,
which is null for the default one; `inhparent` is the log."""

_COLUMNS = sql_file(__file__, "catalogue_columns")

_WRITE_LARGE_OBJECTS = sql_file(__file__, "catalogue_write_large_objects")

_DATABASES_OF_ALL = sql_file(__file__, "catalogue_databases_of_all")


def _rows(connection: AnyConnection, query: str, parameters: dict[str, Any]) -> list[Any]:
    return driver(connection).execute(query.encode(), parameters).fetchall()


def large_objects_of_all(connection: AnyConnection) -> list[str]:
    """The functions by which everybody may write large objects in this database, or messages to the WAL, with
    types, as PostgreSQL quotes them."""
    return [function for (function,) in _rows(connection, _WRITE_LARGE_OBJECTS, {})]


def databases_of_all(connection: AnyConnection) -> list[str]:
    """PostgreSQL's own databases to which everybody may connect."""
    return [name for (name,) in _rows(connection, _DATABASES_OF_ALL, {})]


def columns(connection: AnyConnection, relation: sql.Identifier) -> dict[str, str]:
    """All columns of a relation in their order, with types as format_type writes them; none where there is no
    such relation. `relations.tables.stored_columns` has the data columns of many tables at once."""
    return dict(_rows(connection, _COLUMNS, {"relation": relation.as_string()}))


def exists(connection: AnyConnection, schema: str, name: str) -> bool:
    """Whether there is a relation of this name."""
    parameters = {"relation": sql.Identifier(schema, name).as_string()}
    return _rows(connection, "select to_regclass(%(relation)s) is not null", parameters)[0][0] is True


def is_of_samples(connection: AnyConnection, table: str) -> bool:
    """Whether a table of the facility has samples, and not rows."""
    query = "select is_of_samples from ringlog.every_table where table_name = %(table)s"
    return any(samples for (samples,) in _rows(connection, query, {"table": table}))


def relations(
    connection: AnyConnection, schemas: Collection[str], names: Collection[str]
) -> dict[tuple[str, str], str]:
    """The relations of these names in these schemas: schema and name, and pg_class.relkind. In order of the
    names, a view before a table of the same name."""
    query = sql_file(__file__, "catalogue_relations")
    found = _rows(connection, query, {"schemas": [*schemas], "names": [*names]})
    return {(schema, name): kind for schema, name, kind in found}


MAY_LOOK = "select has_function_privilege('pg_catalog.pg_stat_file(text, boolean)', 'execute')"
"""Query: whether the role may read the sizes of PostgreSQL's files, as superusers may."""


def has_pages(relation: str, may_look: bool) -> str:
    """SQL: whether a relation, given by its oid, has, or had, rows.

    To open a relation, even for its size, PostgreSQL reads and caches all its columns; a role that may reads
    the file's size instead. A query that only contains that function needs the right to it.
    """
    if may_look:
        return f"coalesce((pg_stat_file(pg_relation_filepath({relation}), true)).size, 0) > 0"
    return f"pg_relation_size({relation}) > 0"
