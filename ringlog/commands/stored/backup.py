"""`ringlog backup`."""

from pathlib import Path
from typing import Annotated

import typer

from ringlog.commands.options import Data, Dsn
from ringlog.copies.backup import back_up
from ringlog.loader.cli import option
from ringlog.server.database import chosen_database


def backup(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The backup folder; it should be on another machine's disk.")
    ],
    keep: Annotated[
        int | None,
        option(
            metavar="N", help="Delete older copies than the N newest of each server. Default: none.", min=1
        ),
    ] = None,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Copy all servers while they run, and archive the embedded one's log from now on for a restore to any
    moment.

    Nodes, and a first server of your own, are copied by pg_basebackup through their connection strings. Code
    1: a node cannot be reached.
    """
    back_up(chosen_database(data, dsn), folder.resolve(), keep).demand_all()
