"""`ringlog facility drop`: drops a table that the facility file no longer lists, after a question."""

import sys
from collections.abc import Iterator
from typing import Annotated

import sqlalchemy as sa
import typer
from psycopg import sql

from ringlog.commands.options import Data, Dsn
from ringlog.errors import ServerError, UsageError
from ringlog.nodes.servers import nodes_of_tables
from ringlog.schema import registry, session
from ringlog.schema.change import CHANNEL
from ringlog.schema.installing import obstacles, renaming
from ringlog.schema.relations import parameter_tables, sample_tables, tables
from ringlog.schema.session import engine
from ringlog.schema.sql_files import sql_file
from ringlog.server.database import facility_opened

_PATIENCE = "10s"  # for locks of readers and writers, who wait meanwhile

_STORED = sql_file(__file__, "stored_parts")

_ARCHIVED = """
select count(*), coalesce(sum(rows), 0)::bigint, coalesce(sum(bytes), 0)::bigint
from ringlog.cold_week where table_name = :table
"""


def facility_drop(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table of any kind.")],
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Drop a table with its history, after it was taken out of the facility file.

    Prints what would be deleted, and asks for the table's name, also from a pipe."""
    with facility_opened(data, dsn) as conninfo:
        if (node := nodes_of_tables(conninfo).get(table)) is not None:
            raise ServerError(f"table {table} is on node {node}: move it here first (ringlog node)")
        administrator = engine(conninfo)
        with administrator.begin() as connection:
            script = _script(connection, table)
            print(f"This deletes all of {table}:")
            for line in _contents(connection, table):
                print(f"  {line}")
        administrator.dispose()
        print("A server whose facility file still lists it makes it again, empty.")
        print("Type the name of the table to drop it: ", end="", flush=True)
        if sys.stdin.readline().strip() != table:
            raise ServerError(f"nothing was dropped: that is not {table}")
        with session.connect(conninfo, autocommit=True) as connection:
            connection.execute(f"set lock_timeout = '{_PATIENCE}'")
            connection.execute(script.encode())
            connection.execute(sql.SQL("notify {}, ''").format(sql.Identifier(CHANNEL)))
    print(f"dropped {table}")


def _script(connection: sa.Connection, table: str) -> str:
    if table in registry.ring_sizes(connection):
        is_view = bool(tables.stored_columns(connection, tables.RINGS, [table]))
        return obstacles.dropped(table, is_view, renaming.former_names(connection).get(table, ()))
    if table in sample_tables.known_tables(connection):
        return sample_tables.dropped(table)
    if table in parameter_tables.known_parameters(connection):
        return parameter_tables.dropped(table)
    raise UsageError(f"there is no table '{table}': ringlog status lists them")


def _contents(connection: sa.Connection, table: str) -> Iterator[str]:
    """A line for each part that is stored."""
    for part, relations, rows, size in connection.execute(sa.text(_STORED), {"table": table}):
        weeks = f" in {relations} partitions" if part == "log" else ""
        number = "" if rows is None else f"about {rows} rows, "
        yield f"{part}: {number}{size / 1e6:.1f} MB{weeks}"
    weeks, rows, size = connection.execute(sa.text(_ARCHIVED), {"table": table}).one()
    if weeks:
        yield f"archive: {weeks} weeks, {rows} rows, {size / 1e6:.1f} MB; the files go after keep_replaced"
