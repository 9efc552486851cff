"""The queries of this package, each in a file in sql/, as templates of psycopg.sql."""

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from psycopg import sql


def query(name: str, **parts: sql.Composable) -> sql.Composed:
    """The query sql/<name>.sql with these parts inserted."""
    return sql.SQL(text(name)).format(**parts)


def moment(when: datetime) -> sql.Composable:
    """An instant in a query's text."""
    return sql.SQL("timestamptz {}").format(sql.Literal(when.astimezone(UTC).isoformat()))


@cache
def text(name: str) -> str:
    """The text of sql/<name>.sql."""
    return files(__name__.rpartition(".")[0]).joinpath(f"sql/{name}.sql").read_text()
