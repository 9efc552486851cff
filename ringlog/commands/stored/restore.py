"""`ringlog restore`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ringlog.commands.options import Programs
from ringlog.copies.backup_set import NODES, copy_of, nodes_in, restore_copy
from ringlog.copies.restore import restore_embedded
from ringlog.errors import UsageError
from ringlog.loader.cli import option
from ringlog.server.embedded.account import account_for
from ringlog.server.embedded.postgres import Postgres


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The backup folder.")],
    to: Annotated[
        str | None,
        option(
            metavar="TIME",
            help="The time to restore to, as 2026-11-20T14:00+01:00; without an offset it is in this "
            "machine's time zone. Default: the end of the archived log. Of servers without an archived "
            "log, such as nodes: the name of one of their copies.",
        ),
    ] = None,
    node: Annotated[
        str | None,
        option(
            metavar="NAME", help="Restore this node, as of its latest copy, or of the one that --to names."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Restore all servers, to first and nodes/NAME in --data.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="A new data directory, which must not exist yet."),
    ] = None,
    postgres: Programs = None,
) -> None:
    """Make a new data directory with the database as of a given time. The backup is not changed."""
    if data is None:
        raise UsageError("name a new data directory with --data: restore does not overwrite an existing one")
    if every and (node or to):
        raise UsageError("--all restores the latest copies of all servers: give neither --node nor --to")
    folder, data = folder.resolve(), data.resolve()
    if every:
        account_for(data).make_folder(data)
    if node is not None or not (folder / "wal").exists():
        restore_copy(copy_of(folder, node, to), data / "first" if every else data, node)
    else:
        moment = None if to is None else _moment(to)
        restore_embedded(folder, moment, Postgres(data / "first" if every else data, postgres))
    for each in nodes_in(folder) if every else ():
        restore_copy(copy_of(folder, each, None), data / NODES / each, each)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise UsageError(f"{text!r} is not a time: write it as 2026-11-20T14:00+01:00") from None
    if moment > datetime.now(UTC):
        raise UsageError(f"{text} is in the future: omit --to to restore to the end of the archived log")
    return moment
