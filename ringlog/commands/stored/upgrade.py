"""`ringlog upgrade`."""

from pathlib import Path
from typing import Annotated

import typer

from ringlog.commands.options import Data, Programs
from ringlog.copies.upgrade import Upgrade, delete_cluster, older_cluster
from ringlog.errors import UsageError
from ringlog.loader.cli import option
from ringlog.server.database import Embedded, chosen_database
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.programs import MAJOR_VERSION, PACKAGED


def upgrade(
    check: Annotated[
        bool,
        typer.Option("--check", help=("Check whether the upgrade is possible, without changing anything.")),
    ] = False,
    old_programs: Annotated[
        Path | None,
        option(
            "--old-programs",
            metavar="DIR",
            help="Folder of the old PostgreSQL's programs, as /usr/lib/postgresql/15/bin. Default: those that"
            " come with ringlog.",
        ),
    ] = None,
    delete_old: Annotated[
        bool, typer.Option("--delete-old", help="Delete the old cluster of a checked upgrade.")
    ] = False,
    data: Data = None,
    postgres: Programs = None,
) -> None:
    """Upgrade the cluster of an older PostgreSQL to this version's. The server must be stopped."""
    database = chosen_database(data, None)
    if not isinstance(database, Embedded):
        raise UsageError("ringlog upgrade is for the embedded PostgreSQL; upgrade your own by its own tools")
    used = database.postgres
    new = Postgres(database.data, postgres) if postgres else used
    with new.alone():
        old = older_cluster(new)
        if delete_old:
            delete_cluster(new, old)
            return
        if new.exists:
            raise UsageError(
                f"{new.cluster} exists already: {new.data} needs no upgrade"
                + (f" (ringlog upgrade --delete-old deletes {old})" if old else "")
                + (
                    f"; --postgres {PACKAGED} is PostgreSQL {MAJOR_VERSION}"
                    if new.version < MAJOR_VERSION
                    else ""
                )
            )
        if old is None:
            raise UsageError(f"there is no older cluster in {new.data}")
        if old_programs is None and old == used.cluster:
            old_programs = used.programs
        Upgrade(new, old, old_programs).run(check=check)
