"""Installs schema `tsql` in a database: the semantics of T-SQL as functions, operators and types."""

from hashlib import sha256
from importlib.resources import files

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.change import run

_COMMENT = "The meaning of T-SQL, which translated queries name; made of "


def install(connection: sa.Connection) -> list[str]:
    """Updates the existing schema, which the role owns, to the sources. Returns the changes.

    Nothing is dropped: tables and views may use its types and functions.
    """
    scripts = _scripts()
    made_of = _COMMENT + sha256("".join(scripts).encode()).hexdigest()
    there = connection.scalar(sa.text("select obj_description('tsql'::regnamespace, 'pg_namespace')"))
    if there == made_of:
        return []
    for script in scripts:
        run(connection, script)
    run(connection, sql.SQL("comment on schema tsql is {}").format(sql.Literal(made_of)))
    return ["schema tsql"]


def _scripts() -> list[str]:
    """In the order in which they are run, which their names begin with."""
    folder = files(__name__.rpartition(".")[0]).joinpath("sql")
    return [file.read_text() for file in sorted(folder.iterdir(), key=lambda file: file.name)]
