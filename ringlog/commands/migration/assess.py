"""The command `ringlog assess`."""

from pathlib import Path
from typing import Annotated

import typer


def assess(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Scripts of T-SQL, or folders of files *.sql.")
    ],
    sybase: Annotated[
        bool, typer.Option("--sybase", help="The scripts are of Sybase ASE, not of SQL Server.")
    ] = False,
    charset: Annotated[
        str, typer.Option(metavar="NAME", help="Character set of files without a mark of Unicode.")
    ] = "utf8",
) -> None:
    """Print which batches of scripts ringlog runs, and why it refuses the others. No server is needed.

    Each batch is compiled by itself, without the tables that it names. Code 1: a batch is refused.
    """
    from ringlog.adoption.conversion.script_files import assess as assessed
    from ringlog.adoption.conversion.script_files import batches, files, report, text_of

    found = files(paths)
    every = [each for file in found for each in batches(file, text_of(file, charset), sybase)]
    verdicts = assessed(every, sybase)
    for line in report(verdicts, len(found)):
        print(line)
    if any(each.is_refused for each in verdicts):
        raise typer.Exit(1)
