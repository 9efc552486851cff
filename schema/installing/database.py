"""Settings of the database: the meaning of times without a zone, names without a schema, and packed
waveforms."""

from dataclasses import dataclass

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.facility import Facility

SEARCH_PATH = ("online", "log", "ringlog", "public")
"""Rings first: `select * from sr_mag_ps` is the ring."""


BYTE_ORDER = "tsql.byte_order"
"""The order in which the gateway packs and unpacks arrays of numbers; where it is not set, little."""


@dataclass(frozen=True)
class Setting:
    """A setting of the database: its present and its wanted value, and the statement that sets it."""

    before: str
    now: str
    statement: sql.Composed


def missing_settings(connection: sa.Connection, facility: Facility) -> dict[str, Setting]:
    """The settings that differ.

    An existing search path of the database stays: it is the operator's choice.
    """
    statement = sa.text(
        "select split_part(setting, '=', 1) as name, substr(setting, strpos(setting, '=') + 1) as value"
        " from pg_db_role_setting, pg_database, unnest(setconfig) as setting"
        " where pg_database.oid = setdatabase and datname = current_database() and setrole = 0"
    )
    there = {row.name: row.value for row in connection.execute(statement)}
    wanted: dict[str, sql.Composable] = {}
    if there.get(BYTE_ORDER, "little") != facility.byte_order:
        wanted[BYTE_ORDER] = sql.Literal(facility.byte_order)
    if there.get("TimeZone") != facility.timezone:
        wanted["TimeZone"] = sql.Literal(facility.timezone)
    if "search_path" not in there:
        wanted["search_path"] = sql.SQL(", ").join(sql.Identifier(schema) for schema in SEARCH_PATH)
    database = sql.Identifier(str(connection.scalar(sa.select(sa.func.current_database()))))
    return {
        name: Setting(
            there.get(name, "none"),
            value.as_string().strip("'"),
            sql.SQL("alter database {} set {} = {}").format(
                database, sql.Identifier(*name.split(".")), value
            ),
        )
        for name, value in wanted.items()
    }


def may_set(connection: sa.Connection) -> bool:
    """Whether the connection's role may change the settings: it owns the database, or is a superuser."""
    statement = sa.text(
        "select pg_has_role(datdba, 'usage') from pg_database where datname = current_database()"
    )
    return bool(connection.scalar(statement))
