"""The commands `ringlog facility`: what a facility file says, and what it would change."""

from pathlib import Path
from typing import Annotated

import typer

from ringlog.database import chosen_database, engine
from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.options import Data, Dsn
from ringlog.schema.facility_file import load_facility
from ringlog.schema.install import difference

facility_app = typer.Typer(help="Facility files.", no_args_is_help=True)


@facility_app.command("check")
def facility_check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Facility file (TOML).")],
) -> None:
    """Read a facility file and say what is in it, or what is wrong with it."""
    facility = load_facility(file)
    columns = sum(len(table.columns) for table in facility.tables)
    print(f"{file}: {facility.name}, {len(facility.tables)} tables, {columns} data columns")
    for table in facility.tables:
        print(f"  {table.name}: {len(table.columns)} columns, {table.rows} rows, every {table.cycle:g} s")
    if facility.parameters:
        print(f"{len(facility.parameters)} parameter tables")


@facility_app.command("diff")
def facility_diff(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Facility file (TOML).")],
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Say what installing a facility file would change, and change nothing. Code 1: something, or refused."""
    loaded = load_facility(file)
    with chosen_database(data, dsn).opened() as conninfo:
        report = difference(engine(conninfo), loaded, [install_tsql])
    if report:
        print(str(report).replace("created ", "would create ").replace("changed ", "would change "))
        raise typer.Exit(1)
    print("no difference")
