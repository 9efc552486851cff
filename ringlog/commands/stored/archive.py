"""The commands `ringlog archive` and `ringlog recall`: old weeks in files."""

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from ringlog.commands.options import Data, Dsn, From, Table, To
from ringlog.errors import UsageError
from ringlog.history.summaries.summarising import summarise
from ringlog.nodes.servers import Everywhere, server_of
from ringlog.schema.session import connect
from ringlog.server.database import facility_opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from ringlog.history.archive.manifest import ColdWeek

archive_app = typer.Typer(help="The archive: old weeks of the logs in Parquet files.", no_args_is_help=True)


def recall_weeks(
    table: Table,
    start: From,
    end: To,
    days: Annotated[int, typer.Option(metavar="DAYS", min=1, help="How long the weeks stay in the log.")] = 7,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Copy weeks of a table from the archive back into the log, where procedures and SQL find them."""
    from ringlog.history.archive.recall import recall

    with facility_opened(data, dsn) as conninfo:
        bounds = (start.replace(tzinfo=UTC), end.replace(tzinfo=UTC))
        server = server_of(conninfo, table)
        recalled = 0
        for line in recall(server, table, *bounds, timedelta(days=days)):
            print(line, flush=True)
            recalled += 1
    if not recalled:
        print(f"nothing to recall: the archive has no week of {table} in this time that is not in the log")


@archive_app.command("status")
def archive_status(data: Data = None, dsn: Dsn = None) -> None:
    """List the archived weeks of all servers, by table."""
    from ringlog.history.archive.manifest import manifest, settings

    with facility_opened(data, dsn) as conninfo:
        for _, server in Everywhere(conninfo).with_headlines():
            with connect(server) as connection:
                _print_archive(settings(connection), manifest(connection))
                _print_refusal(connection)


def _print_refusal(connection: "psycopg.Connection") -> None:
    """Prints the reason if the server's database may not write its archive."""
    from ringlog.history.archive.ownership import NotOurs, examine

    try:
        examine(connection)
    except NotOurs as error:
        print(error)


def _print_archive(chosen: tuple[timedelta, str] | None, weeks: "list[ColdWeek]") -> None:
    if chosen is None:
        print("archiving is off: the facility file has no [history]")
    else:
        print(f"weeks are archived to {chosen[1]} after {chosen[0].days} days")
    for table in dict.fromkeys(week.table for week in weeks):
        own = [week for week in weeks if week.table == table]
        recalled = sum(week.recalled_until is not None for week in own)
        print(
            f"{table}: {len(own)} weeks from {own[0].begins.astimezone(UTC):%Y-%m-%d}, "
            f"{sum(week.rows for week in own)} rows, {sum(week.bytes for week in own) / 1e6:.1f} MB"
            + (f", {recalled} recalled" if recalled else "")
        )


@archive_app.command("verify")
def archive_verify(data: Data = None, dsn: Dsn = None) -> None:
    """Read every file of the archives and compare it with the manifest.

    Lists files that are not of these databases too. Code 1: some files are damaged or cannot be read, or a
    node cannot be reached."""
    from ringlog.history.archive.manifest import manifest, settings

    with facility_opened(data, dsn) as conninfo:
        damaged = 0
        for _, server in Everywhere(conninfo).with_headlines():
            with connect(server) as connection:
                chosen = settings(connection)
                weeks = manifest(connection)
            damaged += _print_damages(chosen, weeks)
            _print_unknown(server)
    if damaged:
        raise typer.Exit(1)


def _print_unknown(server: str) -> None:
    from ringlog.history.archive.ownership import unknown_files

    for file in unknown_files(server):
        print(f"{file} was not written by this database, which never deletes it")


def _print_damages(chosen: tuple[timedelta, str] | None, weeks: "list[ColdWeek]") -> int:
    """Reads the files of a server. Returns how many are damaged or cannot be read."""
    from ringlog.history.archive.folder import Folder, Unreadable
    from ringlog.history.archive.manifest import damages

    if chosen is None:
        print("archiving is off: the facility file has no [history]")
        return 0
    damaged = unreadable = 0
    folder = Folder(chosen[1])

    for error in damages(folder, weeks):
        unreadable += isinstance(error, Unreadable)
        damaged += not isinstance(error, Unreadable)
        print(error, flush=True)
    refused = f", {unreadable} cannot be read" if unreadable else ""
    print(f"{len(weeks) - damaged - unreadable} files are intact, {damaged} are damaged{refused}")
    return damaged + unreadable


@archive_app.command("adopt")
def archive_adopt(data: Data = None, dsn: Dsn = None) -> None:
    """Make this database the one that writes the archive, after a restore or on a copy.

    On all servers. For a copy of a database, copy the folder too, and name the copy in the facility file
    first. Deletes nothing: weeks that the database does not know are set aside."""
    from ringlog.history.archive.ownership import adopt

    with facility_opened(data, dsn) as conninfo:
        for _, server in Everywhere(conninfo).with_headlines():
            for line in adopt(server):
                print(line, flush=True)


@archive_app.command("publish")
def archive_publish(data: Data = None, dsn: Dsn = None) -> None:
    """Make the archives' Iceberg tables, or bring them up to date; from then on each round does so.

    Needs the extra iceberg. Code 1: a log cannot be published."""
    from ringlog.history.archive.iceberg import publish

    failed = False
    with facility_opened(data, dsn) as conninfo:
        for _, server in Everywhere(conninfo).with_headlines():
            for line in publish(server):
                failed |= " is not published: " in line
                print(line, flush=True)
    if failed:
        raise typer.Exit(1)


@archive_app.command("spark")
def archive_spark(
    url: Annotated[str, typer.Option(metavar="URL", help="Address of HTTP, as https://HOST:8080.")],
    version: Annotated[str, typer.Option("--spark", metavar="VERSION", help="Spark's.")] = "4.0",
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Print the settings of a Spark session that reads the Iceberg tables, for spark-defaults.conf."""
    from ringlog.history.archive.spark import RUNTIMES, session_settings

    if version not in RUNTIMES:
        raise UsageError(f"no settings are known for Spark {version}, only for {', '.join(RUNTIMES)}")
    with facility_opened(data, dsn) as conninfo:
        for _, server in Everywhere(conninfo).with_headlines():
            with connect(server) as connection:
                for setting in session_settings(connection, version, url).items():
                    print(*setting)


@archive_app.command("now")
def archive_now(data: Data = None, dsn: Dsn = None) -> None:
    """Write old weeks of all servers to the archive now, as the server does every hour.

    Code 1: a part failed, was postponed, or must stay in PostgreSQL; its line has the reason."""
    _do_round(data, dsn, "nothing to archive: no week is older than the facility's online weeks")


@archive_app.command("rewrite")
def archive_rewrite(data: Data = None, dsn: Dsn = None) -> None:
    """Write files of earlier versions again, in the present form, which is smaller and read faster.

    Does what `now` does first. The same rows are compared bit for bit; the old files are set aside like all
    replaced ones. Code 1: a part failed or was postponed; repeat the command."""
    _do_round(data, dsn, "nothing to rewrite: all files have the present form", rewrites=True)


def _do_round(data: Data, dsn: Dsn, nothing: str, *, rewrites: bool = False) -> None:
    """A round of archiving on all servers, at full speed."""
    from ringlog.history.archive.archiving import archive

    complete = True

    def lines(server: str) -> "Iterator[str]":
        nonlocal complete
        complete &= yield from archive(server, pauses=0.0, rewrites=rewrites)

    with facility_opened(data, dsn) as conninfo:
        for _, server in Everywhere(conninfo).with_headlines():
            summarise(server, enough=1)
            written = 0
            for line in lines(server):
                print(line, flush=True)
                written += 1
            if not written:
                print(nothing)
    if not complete:
        raise typer.Exit(1)
