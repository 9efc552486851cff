"""The command `ringlog adopt`: what an old database has, what becomes of it here, and its rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringlog.clients import Address, find_password
from ringlog.database import chosen_database, demand_facility
from ringlog.errors import ServerError, UsageError
from ringlog.options import Data, Dsn

if TYPE_CHECKING:
    from ringlog.adoption.copying import Copied


def adopt(
    old: Annotated[
        str, typer.Argument(metavar="tds://USER@HOST[:PORT]/DATABASE", help="The old server's database.")
    ],
    output: Annotated[Path, typer.Option("--output", metavar="FOLDER", help="Where the files go.")] = Path(
        "adopted"
    ),
    tds_version: Annotated[
        str, typer.Option(metavar="VERSION", help="5.0 for Sybase ASE, 7.0 to 7.4 for SQL Server.")
    ] = "7.4",
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            metavar="FILE",
            show_default=False,
            help="What a person has decided (TOML): [ring.TABLE] with seq_no, time, log, cycle; "
            "site = [TABLES].",
        ),
    ] = None,
    timezone: Annotated[
        str, typer.Option(metavar="ZONE", help="What the old server's times without a zone mean (IANA name).")
    ] = "UTC",
    copies: Annotated[
        bool, typer.Option("--copy", help="Bring the rows of rings and logs over, to --data or --dsn.")
    ] = False,
    connections: Annotated[
        int, typer.Option(metavar="N", min=1, max=32, help="Connections to each side that copy at once.")
    ] = 4,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Read an old server's catalogue, and write what becomes of it: facility file, T-SQL, logins, a report.

    Nothing is changed at the old server. With --copy the rows of its rings and logs are brought over, week by
    week, checked value by value, while it runs; a second run leaves out what has not changed. Code 1: an
    object is refused, or copied rows are not the same.
    """
    # a TDS client, which `ringlog serve` does without
    import pymssql

    from ringlog.adoption import assessment, scripts
    from ringlog.adoption.catalogue import connected, number, read, words
    from ringlog.adoption.copying import Ledger, Source, copy
    from ringlog.adoption.rings import Rules, bounds_by, read_rules, sort

    address = Address.parse(old)
    if not address.database:
        raise UsageError(f"the URL names no database: write {address}/DATABASE")
    decided = Rules() if rules is None else read_rules(rules)
    password = find_password(address)
    source = Source(address, password, tds_version, timezone)
    try:
        with connected(address, password, tds_version) as connection:
            found = read(connection)
            tables = sort(found, decided, bounds_by(connection))
        judged = assessment.assess(found, tables, address.database)
        told = scripts.write(output, found, tables, timezone)
        (output / "assessment.json").write_text(assessment.as_json(judged))
        (output / "assessment.html").write_text(assessment.as_html(judged))
        for line in told:
            print(f"{output}/{line}")
        print(
            f"{output}/assessment.html: {len(judged.modules) - len(judged.refused)} of {len(judged.modules)}"
        )
        for decision in judged.decisions:
            print(f"  to be decided: {decision}")
        differ = 0
        if copies:
            with chosen_database(data, dsn).opened() as conninfo:
                demand_facility(conninfo)
                done = copy(
                    source, conninfo, tables.rings, connections, Ledger(output / "copied.json"), _tell
                )
            differ = sum(not one.same for one in done)
            print(
                f"copied {sum(one.rows for one in done)} rows, {sum(one.new for one in done)} of them new; "
                f"{differ} parts differ"
            )
    except pymssql.Error as error:
        raise ServerError(f"{address}: {number(error)} {words(error)}") from None
    if judged.refused or differ:
        raise typer.Exit(1)


def _tell(copied: "Copied") -> None:
    outcome = "the same on both sides" if copied.same else "NOT THE SAME"
    print(f"{copied.part}: {copied.rows} rows, {copied.new} new, {outcome}", flush=True)
