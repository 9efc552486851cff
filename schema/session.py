"""Sessions of ringlog's own: the one place that opens them.

PostgreSQL searches names without a schema, operators among them, along the search path. Those of databases
and roles may have schemas in which others make objects, and an operator that fits better than PostgreSQL's
own would run as the administrator. So the path of these sessions has only schemas of PostgreSQL and ringlog.
It is set when they start, which takes precedence over the settings of databases and roles.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

if TYPE_CHECKING:
    import adbc_driver_manager.dbapi
    import sqlalchemy

AnyConnection: TypeAlias = "psycopg.Connection[Any] | sqlalchemy.Connection"

PATH = ("pg_catalog", "online", "log", "ringlog", "pg_temp")
"""Temporary tables come last: they hide nothing."""


def pinned(conninfo: str) -> str:
    """The connection string with ringlog's search path."""
    options = str(conninfo_to_dict(conninfo).get("options") or "")
    return make_conninfo(conninfo, options=f"{options} -c search_path={','.join(PATH)}".strip())


def connect(
    conninfo: str = "", *, autocommit: bool = False, **settings: str | int
) -> psycopg.Connection[Any]:
    """Logs in; `settings` are libpq's, and replace those of the connection string."""
    return psycopg.connect(pinned(make_conninfo(conninfo, **settings)), autocommit=autocommit)


def databases(conninfo: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to each database of a server, one after the other."""
    # -2: a half-dropped one, to which nobody can connect
    query = "select datname from pg_database where datallowconn and datconnlimit <> -2"
    with connect(conninfo) as connection:
        names = connection.execute(query).fetchall()
    for (name,) in names:
        with connect(conninfo, autocommit=True, dbname=name) as connection:
            yield connection


def engine(conninfo: str) -> "sqlalchemy.Engine":
    """A SQLAlchemy engine of such sessions."""
    # not every command needs it
    import sqlalchemy

    # a connection of the pool is tested before it is used: PostgreSQL may have restarted meanwhile
    return sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: connect(conninfo), pool_pre_ping=True
    )


def begun(database: "str | sqlalchemy.Engine") -> AbstractContextManager[Any]:
    """A transaction of a new session, or of an engine's connection."""
    return connect(database) if isinstance(database, str) else database.begin()


def driver(connection: AnyConnection) -> psycopg.Connection[Any]:
    """The driver's connection, in the same transaction."""
    if isinstance(connection, psycopg.Connection):
        return connection
    return cast(psycopg.Connection, connection.connection.dbapi_connection)


def arrow(conninfo: str, **settings: str) -> "adbc_driver_manager.dbapi.Connection":
    """Logs in by ADBC; `settings` are the driver's. Raises its errors."""
    # an extra, with which ringlog need not be installed
    from adbc_driver_postgresql import dbapi

    connection: adbc_driver_manager.dbapi.Connection = dbapi.connect(pinned(conninfo), db_kwargs=settings)
    return connection
