"""The commands `ringlog node …`: the servers with tables of their own, and moving tables between them."""

from pathlib import Path
from typing import Annotated

import psycopg
import typer

from ringlog.commands.options import Data, Dsn
from ringlog.nodes.moving import move_tables
from ringlog.nodes.servers import label, node_of_each_table, nodes_of, reached
from ringlog.nodes.under_way import Move, moves_under_way
from ringlog.schema import session
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.session import driver, engine
from ringlog.server.database import facility_opened

node_app = typer.Typer(help="Several servers, each with some of the tables.", no_args_is_help=True)


@node_app.command("list")
def show(data: Data = None, dsn: Dsn = None) -> None:
    """Show all servers with their tables, and unfinished moves.

    Code 1: a node does not answer, or a move is unfinished.
    """
    with facility_opened(data, dsn) as conninfo:
        with engine(conninfo).connect() as connection:
            node_of = node_of_each_table(driver(connection))
            under_way = moves_under_way(connection)
        servers = {None: conninfo} | {name: reached(dsn) for name, (dsn, _) in nodes_of(conninfo).items()}
        failed = bool(under_way)
        for name, server in servers.items():
            tables = sorted(table for table, node in node_of.items() if node == name)
            size = _size(server)
            failed = failed or not isinstance(size, int)
            how = f"{size / 1e6:,.0f} MB" if isinstance(size, int) else f"cannot be reached: {size}"
            listed = f": {', '.join(tables)}" if tables else ""
            print(f"{label(name)}: {how}; {len(tables)} table{'s' * (len(tables) != 1)}{listed}")
        for move in under_way:
            print(_state(move))
    if failed:
        raise typer.Exit(1)


@node_app.command("move")
def move(
    facility: Annotated[
        Path,
        typer.Option("--facility", metavar="FILE", help="Facility file (TOML) with the node of each table."),
    ],
    table: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...",
            show_default=False,
            help="Tables to move. Default: all that are not on the file's node.",
        ),
    ] = None,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Move tables with their rows to the nodes that the facility file names, while they are written and read.

    Run it again, on any machine, to continue an interrupted move. It also installs the file's other changes,
    as ringlog init does.
    """
    loaded = load_facility(facility)
    with facility_opened(data, dsn) as conninfo:
        for line in move_tables(conninfo, loaded, table or ()):
            print(line, flush=True)


def _size(conninfo: str) -> int | str:
    """Bytes of a database, or the reason why it cannot be reached."""
    try:
        with session.connect(conninfo) as connection:
            row = connection.execute("select pg_database_size(current_database())").fetchone()
    except psycopg.OperationalError as error:
        return " ".join(str(error).split())
    assert row is not None
    return int(row[0])


def _state(move: Move) -> str:
    state = "its old copy is not dropped yet" if move.switched else "unfinished"
    return f"{move}: {state}; ringlog node move {move.table} --facility FILE continues it"
