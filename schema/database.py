"""Settings of the database: what a time without a zone and a name without a schema mean."""

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.facility import Facility

SEARCH_PATH = ("online", "log", "ringlog", "public")
"""Rings first: `select * from sr_mag_ps` is the ring."""


def missing_settings(connection: sa.Connection, facility: Facility) -> dict[str, sql.Composed]:
    """The settings that are not so yet, and the statements that make them so.

    A search path that the database has already is somebody's choice and stays.
    """
    statement = sa.text(
        "select split_part(setting, '=', 1) as name, substr(setting, strpos(setting, '=') + 1) as value"
        " from pg_db_role_setting, pg_database, unnest(setconfig) as setting"
        " where pg_database.oid = setdatabase and datname = current_database() and setrole = 0"
    )
    there = {row.name: row.value for row in connection.execute(statement)}
    wanted: dict[str, sql.Composable] = {}
    if there.get("TimeZone") != facility.timezone:
        wanted["TimeZone"] = sql.Literal(facility.timezone)
    if "search_path" not in there:
        wanted["search_path"] = sql.SQL(", ").join(sql.Identifier(schema) for schema in SEARCH_PATH)
    database = sql.Identifier(str(connection.scalar(sa.select(sa.func.current_database()))))
    return {
        name: sql.SQL("alter database {} set {} = {}").format(database, sql.Identifier(name), value)
        for name, value in wanted.items()
    }


def may_set(connection: sa.Connection) -> bool:
    """Whether the connection's role may change the settings: it owns the database, or is a superuser."""
    statement = sa.text(
        "select pg_has_role(datdba, 'usage') from pg_database where datname = current_database()"
    )
    return bool(connection.scalar(statement))
