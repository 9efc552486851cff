"""The queries of this package, each in a file in sql/, as templates of psycopg.sql."""

from typing import LiteralString

from psycopg import sql

from ringlog.schema.sql_files import sql_file


def query(name: str, **parts: sql.Composable) -> sql.Composed:
    """The query sql/<name>.sql with these parts inserted."""
    return sql.SQL(text(name)).format(**parts)


def text(name: str) -> LiteralString:
    """The text of sql/<name>.sql."""
    return sql_file(__file__, name)
