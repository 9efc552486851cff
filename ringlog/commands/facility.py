"""The commands `ringlog init` and `ringlog facility`: check and install a facility file, and show its
changes."""

from pathlib import Path
from typing import Annotated

import typer

from ringlog.commands.drop import facility_drop
from ringlog.commands.options import Data, Dsn, Programs
from ringlog.nodes.everywhere import difference_everywhere, install_everywhere
from ringlog.schema.facility_files.facility_file import FacilityError, load_facility
from ringlog.schema.session import engine
from ringlog.server.database import chosen_database

facility_app = typer.Typer(help="Facility files.", no_args_is_help=True)

FacilityFile = Annotated[Path, typer.Option("--facility", metavar="FILE", help="Facility file (TOML).")]


def init(facility: FacilityFile, data: Data = None, dsn: Dsn = None, postgres: Programs = None) -> None:
    """Install a facility, or the additions to its file; a second run changes nothing."""
    database = chosen_database(data, dsn, postgres)
    loaded = load_facility(facility)
    with database.opened(make=True) as conninfo:
        print(install_everywhere(engine(conninfo), loaded))


@facility_app.command("check")
def facility_check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Facility file (TOML).")],
) -> None:
    """Read a facility file and print a summary, or its errors."""
    # imported here: it loads the native code
    from ringlog.loader.sources.epics import refusal

    facility = load_facility(file)
    columns_of = ((table.name, column) for table in facility.tables for column in table.columns)
    if refused := [f"table {name}, {reason}" for name, column in columns_of if (reason := refusal(column))]:
        raise FacilityError(str(file), refused)
    columns = sum(len(table.columns) for table in facility.tables)
    tables = len(facility.tables) + len(facility.sample_tables)
    print(f"{file}: {facility.name}, {tables} table{'s' * (tables != 1)}, {columns} data columns")
    for table in facility.tables:
        where = f", on node {table.node}" if table.node else ""
        print(
            f"  {table.name}: {len(table.columns)} columns, {table.rows} rows, every {table.cycle:g} s{where}"
        )
    for sampled in facility.sample_tables:
        print(f"  {sampled.name}: samples of {sampled.type}, {len(sampled.signals)} signals listed")
    if facility.parameters:
        print(f"{len(facility.parameters)} parameter tables")


@facility_app.command("diff")
def facility_diff(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Facility file (TOML).")],
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """List what installing a facility file would change. Code 1: there are changes, or it is refused."""
    loaded = load_facility(file)
    with chosen_database(data, dsn).opened() as conninfo:
        report = difference_everywhere(engine(conninfo), loaded)
    if report:
        print(report.text("would create", "would change", whole=True))
        raise typer.Exit(1)
    print("no difference")


facility_app.command("drop")(facility_drop)
