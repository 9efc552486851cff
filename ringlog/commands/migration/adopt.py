"""The command `ringlog adopt`: migrates the catalogue of an old database, and its rows."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringlog.clients import Address, find_password
from ringlog.commands.options import Data, Dsn
from ringlog.errors import ServerError, UsageError
from ringlog.loader.cli import option
from ringlog.server.database import facility_opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ringlog.adoption.assessment import Assessment
    from ringlog.adoption.conversion.scripts import Database
    from ringlog.adoption.rows.copying import Copied
    from ringlog.adoption.rows.site_rows import SiteCopied
    from ringlog.adoption.rows.source import Source

_Old = Annotated[
    str, typer.Argument(metavar="tds://USER@HOST[:PORT][/DATABASE]", help="The old server and its database.")
]
_More = Annotated[
    list[str] | None,
    option(
        "--database",
        metavar="NAME",
        help="A further database of the server, which becomes a schema of the same facility. Repeatable.",
    ),
]
_Every = Annotated[bool, typer.Option("--all-databases", help="All databases except the server's own.")]
_Output = Annotated[Path, typer.Option("--output", metavar="FOLDER", help="Folder for the files.")]
_TdsVersion = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="5.0 for Sybase ASE, 7.0 to 7.4 for SQL Server. Default: 7.4."),
]
_Rules = Annotated[
    Path | None,
    option(
        "--rules",
        metavar="FILE",
        help="Decisions about tables (TOML): [ring.TABLE] with seq_no, time, log, cycle; "
        'site = [TABLES]; of several databases "DATABASE.TABLE".',
    ),
]
_Timezone = Annotated[
    str | None,
    typer.Option(
        metavar="ZONE", help="Time zone of the old server's times without a zone (IANA name). Default: UTC."
    ),
]
_Copies = Annotated[bool, typer.Option("--copy", help="Copy the rows to --data or --dsn.")]
_Charset = Annotated[
    str | None,
    option(
        metavar="NAME",
        help="Character set of char and varchar at the old server, if it reports none or a wrong one: "
        "iso_1, cp850, cp1252, roman8, eucjis, sjis, utf8, …",
    ),
]
_Connections = Annotated[
    int, typer.Option(metavar="N", min=1, max=32, help="Connections to each side that copy at once.")
]


def adopt(
    old: _Old,
    more: _More = None,
    every: _Every = False,
    output: _Output = Path("adopted"),
    tds_version: _TdsVersion = None,
    rules: _Rules = None,
    timezone: _Timezone = None,
    copies: _Copies = False,
    charset: _Charset = None,
    connections: _Connections = 4,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Read an old server's catalogue, and write a facility file, T-SQL, logins and a report.

    Each of several databases becomes a schema of its name, in one facility: database..table stays the same.

    Nothing is changed at the old server. The folder keeps the options: later runs need only the URL and the
    folder. With --copy the rows of the server's rings, logs and other tables are copied while it runs, and
    compared value by value; a second run copies the changes. Code 1: an object is refused, or copied rows are
    not the same.
    """
    # a TDS client, which `ringlog serve` does without
    import pymssql

    from ringlog.adoption.assessment import as_html, as_json
    from ringlog.adoption.choices import choices, demand_zone
    from ringlog.adoption.conversion.scripts import write
    from ringlog.adoption.rings import Rules, read_rules
    from ringlog.adoption.rows.source import Source
    from ringlog.adoption.server.session import message_of, number
    from ringlog.adoption.server.texts import codec
    from ringlog.adoption.sites import chosen, read_all
    from ringlog.gateway import OldServerError

    address = Address.parse(old)
    named = [name for name in (address.database, *(more or ())) if name]
    if not named and not every:
        raise UsageError(f"the URL names no database: write {address}/DATABASE, or --all-databases")
    try:
        given = {"tds-version": tds_version, "timezone": timezone, "charset": charset}
        choice = choices(output, tuple(named), given, rules)
        is_first = not (output / "assessment.json").exists()
        decided = Rules() if choice.rules is None else read_rules(choice.rules)
        password = find_password(address)
        if choice.charset:
            codec(choice.charset)
        names, left_out = chosen(
            address, password, choice.tds_version, choice.databases, not choice.databases
        )
        address = replace(address, database=names[0])
        databases = read_all(address, password, choice.tds_version, names, decided)
        first = databases[0].old
        charset = choice.charset or first.charset
        source = Source(address, password, choice.tds_version, choice.timezone, charset, first.is_ase)
        judged = _assessed(databases, choice.charset)
        choice = replace(choice, databases=tuple(names)).keep(output)
        if is_first or not copies:
            for line in write(output, databases, choice.timezone):
                print(f"{output}/{line}")
            (output / "assessment.json").write_text(as_json(judged))
            (output / "assessment.html").write_text(as_html(judged))
            print(f"{output}/assessment.html: {_compiled(judged)}")
        for line in left_out:
            print(f"  not migrated: {line}")
        _print_decisions(judged)
        differ = 0
        if copies:
            with facility_opened(data, dsn) as conninfo:
                demand_zone(conninfo, choice.timezone)
                differ = _copied(conninfo, source, databases, output, connections)
    except pymssql.Error as error:
        raise ServerError(f"{address}: {number(error)} {message_of(error)}") from None
    except OldServerError as error:
        raise ServerError(f"{address}: {error}") from None
    if differ or any(one.refused for one in judged):
        raise typer.Exit(1)


def _copied(
    conninfo: str, source: "Source", databases: "Sequence[Database]", output: Path, connections: int
) -> int:
    """Copies the rows, and keeps what differs in the folder. Returns the number of differences."""
    from ringlog.adoption.rows.copying import Ledger, archived, copy, identity, without_time
    from ringlog.adoption.rows.site_rows import copy_site, unreferenced

    rings = [ring for each in databases for ring in each.found.rings]
    for table, reached in archived(conninfo).items():
        print(f"log of {table}: rows before {reached:%Y-%m-%d} are in the archive: not copied")
    ledger = Ledger(output / "copied.json", identity(conninfo))
    done = copy(source, conninfo, rings, connections, ledger, _report)
    beside = []
    for each in databases:
        tables = [made.table for made in each.accepted]
        if len(databases) > 1 and tables:
            print(f"{each.name}:", flush=True)
        beside += copy_site(source, conninfo, each.name, tables, connections, _report_site)
    loose = [*without_time(source, rings)]
    loose += [line for each in databases for line in unreferenced(conninfo, each.name)]
    differing = [str(one.part) for one in done if not one.same]
    differing += [one.table for one in beside if not one.same or one.unread]
    rows = sum(one.rows for one in done) + sum(one.rows for one in beside)
    new = sum(one.new for one in done) + sum(one.rows for one in beside if one.is_new)
    print(f"copied {rows} rows, {new} of them new; {len(differing)} parts differ")
    for line in loose:
        print(line)
    ledger.end([*differing, *loose])
    return len(differing) + len(loose)


def _assessed(databases: "Sequence[Database]", charset: str) -> list["Assessment"]:
    from ringlog.adoption.assessment import assess
    from ringlog.adoption.server.texts import doubts

    return [
        assess(
            # logins are the server's: they are reported once
            each.old if each is databases[0] else replace(each.old, logins=()),
            each.found,
            each.tables,
            each.rights,
            each.name,
            doubts(each.old, charset),
        )
        for each in databases
    ]


def _print_decisions(judged: "Sequence[Assessment]") -> None:
    for one in judged:
        if len(judged) > 1:
            print(f"{one.database}: {_compiled([one])}")
        for decision in one.decisions:
            print(f"  to be decided: {decision}")


def _compiled(judged: "Sequence[Assessment]") -> str:
    modules = sum(len(one.modules) for one in judged)
    return f"{modules - sum(len(one.refused) for one in judged)} of {modules} objects compile"


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
