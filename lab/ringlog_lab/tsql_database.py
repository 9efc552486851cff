"""A server without tables of a facility, and a login with a database of its own, for T-SQL over TDS."""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pymssql
from psycopg import sql

from ringlog.clients.drivers.freetds import tds_version
from ringlog.loadtest.experiment.server import Server, serving

# a server has at least one table
_FACILITY = """
timezone = "UTC"
[[table]]
name = "unused"
rows = 1
cycle = 1.0
log = "every"
[[table.column]]
name = "unused"
type = "double"
"""


@contextmanager
def server_without_tables(folder: Path) -> Iterator[Server]:
    """A server whose data are removed afterwards."""
    facility = folder / "facility.toml"
    facility.write_text(_FACILITY)
    with serving(facility, folder / "data", keep=False) as server:
        yield server


@contextmanager
def database(server: Server, owner: str, version: str = "7.4") -> Iterator[Any]:
    """A connection of a new login to its empty database of the same name; both are dropped afterwards."""
    password = secrets.token_hex(8)
    own = {"owner": sql.Identifier(owner), "password": sql.Literal(password)}
    administrator = server.administrator
    administrator.execute(
        sql.SQL(
            "create role {owner} login password {password}; create schema {owner} authorization {owner}"
        ).format(**own)
    )
    try:
        # pymssql has no name for TDS 5.0
        with tds_version(version):
            connection = pymssql.connect(
                server=server.host,
                port=str(server.port),
                user=owner,
                password=password,
                database=owner,
                autocommit=True,
            )
        with closing(connection):
            yield connection
    finally:
        administrator.execute(sql.SQL("drop owned by {owner} cascade; drop role {owner}").format(**own))
