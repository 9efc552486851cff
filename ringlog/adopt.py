"""The command `ringlog adopt`: migrates the catalogue of an old database, and its rows."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringlog.clients import Address, find_password
from ringlog.database import chosen_database, demand_facility
from ringlog.errors import ServerError, UsageError
from ringlog.options import Data, Dsn

if TYPE_CHECKING:
    from ringlog.adoption.copying import Copied
    from ringlog.adoption.site_rows import SiteCopied


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
    copies: Annotated[bool, typer.Option("--copy", help="Bring the rows over, to --data or --dsn.")] = False,
    charset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="What char and varchar are in at the old server, where it does not report that or is wrong: "
            "iso_1, cp850, cp1252, roman8, eucjis, sjis, utf8, …",
        ),
    ] = "",
    connections: Annotated[
        int, typer.Option(metavar="N", min=1, max=32, help="Connections to each side that copy at once.")
    ] = 4,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Read an old server's catalogue, and write what becomes of it: facility file, T-SQL, logins, a report.

    Nothing is changed at the old server. With --copy the rows of its rings, logs and other tables are brought
    over, checked value by value, while it runs; a second run brings what has changed. Code 1: an object is
    refused, or copied rows are not the same.
    """
    # a TDS client, which `ringlog serve` does without
    import pymssql

    from ringlog.adoption import assessment, scripts
    from ringlog.adoption.catalogue import read
    from ringlog.adoption.copying import Ledger, Source, copy, without_time
    from ringlog.adoption.errors import AdoptionError
    from ringlog.adoption.rights import rights
    from ringlog.adoption.rings import Rules, bounds_by, read_rules, sort
    from ringlog.adoption.session import connected, number, words
    from ringlog.adoption.site_rows import copy_site, unreferenced
    from ringlog.adoption.tables import made_all
    from ringlog.adoption.texts import codec, doubts
    from ringlog.adoption.writers import decisions, replaced

    address = Address.parse(old)
    if not address.database:
        raise UsageError(f"the URL names no database: write {address}/DATABASE")
    # a schema of PostgreSQL, as T-SQL here looks for it
    database = address.database.lower()
    try:
        decided = Rules() if rules is None else read_rules(rules)
        password = find_password(address)
        if charset:
            codec(charset)
        with connected(address, password, tds_version) as connection:
            found = read(connection, database)
            tables = sort(found, decided, bounds_by(connection))
            lines, own = decisions(found.modules, tables.rings), replaced(found.modules, tables.rings)
        found = replace(
            found,
            modules=tuple(each for each in found.modules if each.name not in own),
            left=(*lines, *found.left),
        )
        source = Source(address, password, tds_version, timezone, charset or found.charset, found.is_ase)
        site = made_all(tables.site, found.is_ase)
        allowed = rights(found, tables, database, own)
        judged = assessment.assess(found, tables, site, allowed, database, doubts(found, charset))
        written = scripts.write(output, found, tables, site, allowed, timezone, database)
        (output / "assessment.json").write_text(assessment.as_json(judged))
        (output / "assessment.html").write_text(assessment.as_html(judged))
        for line in written:
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
                    source, conninfo, tables.rings, connections, Ledger(output / "copied.json"), _report
                )
                made_here = [each.table for each in site if not each.refused]
                beside = copy_site(source, conninfo, database, made_here, connections, _report_site)
                loose = [*without_time(source, tables.rings), *unreferenced(conninfo, database)]
            differ = sum(not one.same for one in done) + sum(
                not one.same or bool(one.unread) for one in beside
            )
            rows = sum(one.rows for one in done) + sum(one.rows for one in beside)
            new = sum(one.new for one in done) + sum(one.rows for one in beside if one.is_new)
            print(f"copied {rows} rows, {new} of them new; {differ} parts differ")
            for line in loose:
                print(line)
            differ += len(loose)
    except AdoptionError as error:
        raise UsageError(str(error)) from None
    except pymssql.Error as error:
        raise ServerError(f"{address}: {number(error)} {words(error)}") from None
    if judged.refused or differ:
        raise typer.Exit(1)


def _report(copied: "Copied") -> None:
    if copied.why:
        print(f"{copied.part}: not copied: {copied.why}", flush=True)
        return
    outcome = "the same on both sides" if copied.same else "NOT THE SAME"
    print(f"{copied.part}: {copied.rows} rows, {copied.new} new, {outcome}", flush=True)


def _report_site(copied: "SiteCopied") -> None:
    if copied.missing:
        print(f"{copied.table}: not copied: {copied.missing}", flush=True)
        return
    outcome = "the same on both sides" if copied.same else "NOT THE SAME"
    print(f"{copied.table}: {copied.rows} rows{', new' * copied.is_new}, {outcome}", flush=True)
    for line in copied.unread:
        print(f"  left out: {line}", flush=True)
