"""Settings of logins: each may store its own (ALTER ROLE … SET), which no right forbids."""

import psycopg
from psycopg import sql

from ringlog.schema.sql_files import sql_file
from ringlog.server.guards import limits

MOST = 8192
"""bytes of a login's own settings in a database"""
_LARGE = sql_file(__file__, "own_settings_large")


def large(connection: psycopg.Connection) -> list[tuple[str, str | None, int, list[str]]]:
    """Logins whose own settings are larger than MOST: the login, the database in which they hold, or
    None for all, their bytes, and their names. Limits that ringlog sets are not among them."""
    return connection.execute(_LARGE, [[*limits.NAMES], MOST]).fetchall()


def reset(connection: psycopg.Connection, role: str, database: str | None, names: list[str]) -> None:
    """Removes these settings of a login in a database; None: those that hold in all."""
    scope = sql.SQL(" in database {}").format(sql.Identifier(database)) if database else sql.SQL("")
    for name in names:
        statement = sql.SQL("alter role {}{} reset {}")
        connection.execute(statement.format(sql.Identifier(role), scope, sql.Identifier(*name.split("."))))
