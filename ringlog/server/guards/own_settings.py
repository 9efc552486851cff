"""Settings of logins: each may store its own (ALTER ROLE … SET), which no right forbids."""

import psycopg
from psycopg import sql

from ringlog.server.guards import limits

MOST = 8192
"""bytes of a login's own settings in a database"""
_LARGE = """
select rolname::text, datname::text, sum(length(setting))::integer, array_agg(name)
from pg_db_role_setting
join pg_roles on pg_roles.oid = setrole and not rolsuper
left join pg_database on pg_database.oid = setdatabase
cross join unnest(setconfig) as setting cross join split_part(setting, '=', 1) as name
where name <> all(%s)
group by rolname, datname, setconfig
having sum(length(setting)) > %s
"""


def large(connection: psycopg.Connection) -> list[tuple[str, str | None, int, list[str]]]:
    """Logins whose own settings are larger than MOST: the login, the database in which they hold, or
    None for all, their bytes, and their names. Limits that ringlog sets are not among them."""
    return connection.execute(_LARGE, [[*limits.NAMES], MOST]).fetchall()


def reset(connection: psycopg.Connection, role: str, database: str | None, names: list[str]) -> None:
    """Removes these settings of a login in a database; None: those that hold in all."""
    place = sql.SQL(" in database {}").format(sql.Identifier(database)) if database else sql.SQL("")
    for name in names:
        statement = sql.SQL("alter role {}{} reset {}")
        connection.execute(statement.format(sql.Identifier(role), place, sql.Identifier(*name.split("."))))
