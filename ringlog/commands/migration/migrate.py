"""The command `ringlog migrate`: old rows go straight into the archive."""

import csv
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringlog.clients import Address, find_password
from ringlog.commands.options import Data, Dsn, Table
from ringlog.errors import ServerError, UsageError
from ringlog.loader.cli import option
from ringlog.nodes.servers import Everywhere, server_of
from ringlog.schema import catalogue, session
from ringlog.server.database import facility_opened

if TYPE_CHECKING:
    from ringlog.adoption.rows.old_rows import OldRows
    from ringlog.history.incoming import Description, Source
    from ringlog.history.migration.progress import Moved, Progress
    from ringlog.history.pace import Pace

migrate_app = typer.Typer(
    help="A migration's steps, and old rows that go straight into the archive.", no_args_is_help=True
)

_Origin = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="SOURCE",
        help="parquet:PATH, csv:PATH, bcp:PATH or pb:PATH (a file or a folder), postgresql://… or "
        "tds://USER@HOST[:PORT]/DATABASE.",
    ),
]
_Query = Annotated[
    str,
    option(
        metavar="SQL", help="postgresql://: a query for the rows. Default: all of the table of that name."
    ),
]
_Columns = Annotated[
    Path | None,
    option(
        "--columns",
        metavar="FILE",
        help="Description of the source's columns (TOML): [TABLE] with time, seq_no, timezone, …",
    ),
]
_Existing = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="For weeks that the archive has already: refuse them, or merge rows into them; "
        "of two with one key the archive's stays.",
    ),
]
_Rate = Annotated[
    float, typer.Option(metavar="VALUES/S", min=0, help="Values to read in a second at most; 0: no limit.")
]
_Connections = Annotated[
    int, typer.Option(metavar="N", min=1, max=32, help="tds://: sessions that read at the same time.")
]
_Hours = Annotated[
    str,
    option(
        metavar="HOURS", help="tds://: read in these hours of the local time only, as 22-06. Default: always."
    ),
]
_TdsVersion = Annotated[
    str, typer.Option(metavar="VERSION", help="tds://: 5.0 for Sybase ASE, 7.0 to 7.4 for SQL Server.")
]
_Rules = Annotated[
    Path | None, option("--rules", metavar="FILE", help="tds://: decisions, as for ringlog adopt.")
]
_Timezone = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="tds://: time zone of times without one. Default: the facility's."),
]
_Charset = Annotated[str, option(metavar="NAME", help="tds://, bcp: character set, as for ringlog adopt.")]


@migrate_app.command("history")
def migrate_history(
    table: Table,
    origin: _Origin,
    query: _Query = "",
    columns: _Columns = None,
    existing: _Existing = "refuse",
    rate: _Rate = 0,
    connections: _Connections = 1,
    hours: _Hours = "",
    tds_version: _TdsVersion = "7.4",
    rules: _Rules = None,
    timezone: _Timezone = None,
    charset: _Charset = "",
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Copy rows older than the facility's online weeks into the archive's files.

    Week by week, with summaries, not through PostgreSQL. The server may run meanwhile. Each week's file is
    read back and compared. After Ctrl-C or a kill run the same command again: it continues. Code 1: some
    rows were left out, because the archive has other rows with their keys.
    """
    from ringlog.adoption.choices import demand_zone
    from ringlog.history.incoming import description_of
    from ringlog.history.migration.migrating import Existing, Migration
    from ringlog.history.migration.progress import progress
    from ringlog.history.pace import Pace, hours_of

    try:
        chosen_hours = hours_of(hours)
    except ValueError as error:
        raise UsageError(f"--hours: {error}") from None
    if existing not in [*Existing]:
        raise UsageError(f"--existing must be {' or '.join(Existing)}")
    conflicting = 0
    with facility_opened(data, dsn) as conninfo:
        with session.connect(conninfo) as connection:
            of_samples = catalogue.is_of_samples(connection, table)
        server = server_of(conninfo, table)
        if origin.startswith("tds"):
            pace = Pace(rate, chosen_hours)
            zone = demand_zone(conninfo, timezone)
            old = _old_server(origin, table, tds_version, rules, zone, charset, connections, pace)
            source: Source = old
            # its connections share the rate
            described, rate = old.described, 0
        elif connections > 1 or hours:
            raise UsageError("--connections and --hours are for tds://")
        else:
            described = description_of(columns, table)
            if origin.startswith("pb:"):
                source = _pb_files(Path(origin.removeprefix("pb:")), server, table, described, of_samples)
            else:
                source = _source(origin, query, table, described, charset)
            described = getattr(source, "described", described)
        migration = Migration(server, table, source, described, existing=Existing(existing), rate=rate)
        weeks = 0
        for moved in migration.run():
            weeks += 1
            conflicting += moved.conflicting
            with session.connect(server) as connection:
                (now,) = (
                    each for each in progress(connection) if (each.table, each.source) == (table, str(source))
                )
            print(f"{table} {_line(moved)}; {_where(now)}", flush=True)
        if not weeks:
            print(f"no week of {table} is left to migrate: ringlog migrate status shows what was done")
        for why, count in migration.left_out.items():
            if count:
                print(f"{count} rows {why}: left out")
        for line in source.remarks():
            print(line)
        if migration.missing:
            print(f"null, because the source has no such columns: {', '.join(migration.missing)}")
    if conflicting:
        raise typer.Exit(1)


@migrate_app.command("pvs")
def migrate_pvs(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="PB files: one, or a folder of them.")],
    kind: Annotated[
        str | None,
        option(
            "--type",
            metavar="TYPE",
            help="Only PVs whose values a table of samples of this type can have: double, int, text, …",
        ),
    ] = None,
) -> None:
    """List the PVs of an Archiver Appliance's files: name, unit and description, separated by commas.

    `ringlog signal import` takes such a list.
    """
    from ringlog.history.sources.pb_files import find, fits
    from ringlog.schema.column_type import ColumnType

    try:
        wanted = None if kind is None else ColumnType.of(kind)
    except ValueError as error:
        raise UsageError(f"--type: {error}") from None
    lines = csv.writer(sys.stdout, lineterminator="\n")
    for pv in find(path).values():
        header = pv.header
        if wanted is None or fits(header, wanted):
            fields = dict(header.fields)
            lines.writerow([pv.name, fields.get("EGU", ""), fields.get("DESC", "")])


@migrate_app.command("plan")
def migrate_plan(
    adopted: Annotated[
        Path, typer.Option("--adopted", metavar="FOLDER", help="Folder that ringlog adopt has written.")
    ] = Path("adopted"),
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """List the steps of a migration, which are done, and the command of the next one."""
    from ringlog.adoption.plan import steps

    with facility_opened(data, dsn) as conninfo:
        found = [*steps(adopted, conninfo)]
    following = next((step for step in found if not step.done), None)
    for step in found:
        mark = {True: "done", False: "open", None: "?"}[step.done]
        print(f"{mark:5} {step.name:11} {step.state}")
    if following is not None:
        print(f"next: {following.command}")


@migrate_app.command("status")
def migrate_status(data: Data = None, dsn: Dsn = None) -> None:
    """List the progress of each source of old rows."""
    from ringlog.history.migration.progress import progress

    with facility_opened(data, dsn) as conninfo:
        for _, server in Everywhere(conninfo).with_headlines():
            with session.connect(server) as connection:
                for each in progress(connection):
                    line = f"{each.table} from {each.source}: {each.rows} rows, {each.values} values"
                    if each.left_out:
                        line += f", {each.left_out} left out"
                    print(f"{line}; {_where(each)}")


def _line(moved: "Moved") -> str:
    line = (
        f"{moved.week.start:%Gw%V}: {moved.rows} rows, {moved.bytes / 1e6:.1f} MB,"
        f" {moved.values / moved.seconds:.0f} values/s"
    )
    if moved.repeated or moved.conflicting:
        line += f", {moved.repeated} were there already, {moved.conflicting} others too: left out"
    return line


def _where(progress: "Progress") -> str:
    if progress.is_done:
        return f"done to {progress.until:%Y-%m-%d}"
    if progress.reached is None:
        return f"begun {progress.began:%Y-%m-%d %H:%M} UTC"
    line = f"done to {progress.reached:%Y-%m-%d} of {progress.until:%Y-%m-%d}"
    ends = progress.ends(datetime.now(UTC))
    if ends is not None:
        line += f", {progress.fraction:.1%}, ends {ends:%Y-%m-%d %H:%M} UTC"
    return line


def _source(origin: str, query: str, table: str, described: "Description", charset: str) -> "Source":
    """The source that an option names. Raises UsageError."""
    from psycopg import sql

    from ringlog.adoption.server.texts import codec
    from ringlog.history.sources.bcp_files import BcpFiles
    from ringlog.history.sources.csv_files import CsvFiles
    from ringlog.history.sources.parquet_files import ParquetFiles
    from ringlog.history.sources.postgresql import PostgresRows

    form, _, rest = origin.partition(":")
    match form:
        case "parquet":
            return ParquetFiles(Path(rest), described)
        case "csv":
            return CsvFiles(Path(rest), described)
        case "bcp":
            return BcpFiles(Path(rest), described, codec(charset or "utf-8"))
        case "postgresql" | "postgres":
            return PostgresRows(
                origin, query or f"select * from {sql.Identifier(table).as_string()}", described
            )
    raise UsageError(f"--from {origin}: parquet:PATH, csv:PATH, bcp:PATH, pb:PATH, postgresql://… or tds://…")


def _pb_files(path: Path, server: str, table: str, described: "Description", of_samples: bool) -> "Source":
    """An Archiver Appliance's files. The PV of a signal or column is that of the description, or else its
    address at the source, or its name."""
    from ringlog.history.sources.pb_files import PbRows, PbSamples, find, some

    tree = find(path, skips=described.damaged == "skip")
    with session.connect(server) as connection:
        if not of_samples:
            query = (
                "select column_name, signal from ringlog.signal where table_name = %s and valid_to is null"
            )
            signals = dict(connection.execute(query, [table]).fetchall())
            return PbRows(path, replace(described, columns=signals | {**described.columns}), tree)
        query = (
            "select signal, number, coalesce(nullif(address, ''), signal) from ringlog.sample_signal"
            " where table_name = %s"
        )
        numbers = {
            described.columns.get(signal, address): number
            for signal, number, address in connection.execute(query, [table])
        }
    source = PbSamples(path, described, numbers, tree)
    if source.unknown:
        print(f"PVs that are no signal of {table}: {some(source.unknown)}")
    return source


def _old_server(
    url: str,
    table: str,
    version: str,
    rules: Path | None,
    timezone: str,
    charset: str,
    connections: int,
    pace: "Pace",
) -> "OldRows":
    """The log of a ring at an old server. Raises UsageError and ServerError."""
    import pymssql

    from ringlog.adoption.rings import Rules, read_rules
    from ringlog.adoption.rows.old_rows import OldRows
    from ringlog.adoption.rows.source import Source as OldServer
    from ringlog.adoption.server.session import message_of, number
    from ringlog.adoption.server.texts import codec
    from ringlog.adoption.sites import read_all

    address = Address.parse(url)
    if not address.database:
        raise UsageError(f"the URL names no database: write {address}/DATABASE")
    try:
        password = find_password(address)
        if charset:
            codec(charset)
        decided = Rules() if rules is None else read_rules(rules)
        (database,) = read_all(address, password, version, [address.database], decided)
    except pymssql.Error as error:
        raise ServerError(f"{address}: {number(error)} {message_of(error)}") from None
    found = {ring.table.name.lower(): ring for ring in database.found.rings if ring.log is not None}
    if table not in found:
        there = ", ".join(sorted(found)) or "none"
        raise UsageError(f"{address} has no ring {table!r} with a log; it has {there}: see --rules")
    old = database.old
    server = OldServer(address, password, version, timezone, charset or old.charset, old.is_ase)
    return OldRows(server, found[table], connections, pace)
