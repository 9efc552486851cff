"""Databases of an old server, and their names here."""

from collections.abc import Collection, Sequence

import pymssql

from ringlog.adoption.errors import AdoptionError
from ringlog.adoption.server.session import is_of_server, rows_of
from ringlog.procedures import SYSTEM_SCHEMAS
from ringlog.schema.layout import SCHEMAS

# the servers' own (SQL Server: "System databases"; SAP ASE, System Administration Guide: "System databases")
_OF_SERVER = frozenset(
    {"master", "model", "msdb", "tempdb", "resource", "mssqlsystemresource", "distribution"}
    | {"ssisdb", "reportserver", "reportservertempdb"}
    | {"sybsystemdb", "sybsystemprocs", "sybsecurity", "sybmgmtdb", "sybpcidb", "dbccdb", "dbccalt"}
)
# schemas that ringlog and PostgreSQL have
_TAKEN = frozenset({*SCHEMAS, *SYSTEM_SCHEMAS, "public", "information_schema"})
# SQL Server's, and ASE's
_QUESTIONS = (
    "select name from sys.databases order by name",
    "select name from master..sysdatabases order by name",
)


def is_system(database: str, known: Collection[str]) -> bool:
    """Whether a database is the server's own and not a site's. All names in small letters.

    `known`: all databases of the server. Ringlog as the old server has its own schemas among them.
    """
    return database in _OF_SERVER or ("ringlog" in known and database in _TAKEN)


def listed(connection: pymssql.Connection) -> list[str]:
    """The names of all databases of a server, its own too. Raises pymssql.Error."""
    error: pymssql.Error | None = None
    for question in _QUESTIONS:
        try:
            with connection.cursor() as cursor:
                cursor.execute(question)
                return [str(name) for (name,) in rows_of(cursor)]
        except pymssql.Error as refused:
            if not is_of_server(refused):
                raise
            error = refused
    raise error or AssertionError


def reason_against(name: str) -> str:
    """Why a database cannot have a schema of its name here; empty where it can."""
    here = name.lower()
    if here in _TAKEN or here.startswith("pg_"):
        return f"the schema {here} is ringlog's or PostgreSQL's own"
    return ""


def demand_names(names: Sequence[str]) -> None:
    """Raises AdoptionError for databases that cannot have a schema of their name here."""
    first: dict[str, str] = {}
    for name in names:
        if why := reason_against(name):
            raise AdoptionError(f"the database {name!r} cannot be migrated under its name: {why}")
        here = name.lower()
        if first.setdefault(here, name) != name:
            raise AdoptionError(
                f"the databases {first[here]!r} and {name!r} differ by their case only, and names here do not"
            )


def site_databases(names: Sequence[str]) -> list[str]:
    """Those that are a site's, in their order."""
    known = {name.lower() for name in names}
    return [name for name in names if not is_system(name.lower(), known)]
