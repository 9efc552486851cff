"""The command `ringlog`."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ringlog.commands.group import Commands
from ringlog.extras import hint

# the messages of a command to its user
command_log = logging.getLogger("ringlog")

app = typer.Typer(
    cls=Commands,
    help="A data logger: writers call stored procedures over TDS, the data are stored in PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 200},
)


# their files are for others to read: pictures, tables, certificates, files for other machines
_FOR_OTHERS = ("adopt", "bench", "capture", "cert", "demo", "export", "ha", "loadtest", "plan", "plot")

EXPECTED = {
    "ringlog.errors.ServerError": 1,
    "ringlog.clients.procedure.Refused": 1,
    "ringlog.clients.procedure.Unanswered": 1,
    "ringlog.clients.reading.ReadRefused": 1,
    "ringlog.history.archive.iceberg.NotPublished": 1,
    "ringlog.history.archive.ownership.NotOurs": 1,
    "ringlog.history.archive.recall.InUse": 1,
    "ringlog.history.incoming.IncomingError": 1,
    "ringlog.history.migration.migrating.MigrationError": 1,
    "ringlog.loadtest.experiment.errors.LoadTestError": 1,
    "ringlog.machines.site.Unreachable": 1,
    "ringlog.schema.installing.obstacles.InstallRefused": 1,
    "ringlog.errors.UsageError": 2,
    "ringlog.adoption.errors.AdoptionError": 2,
    "ringlog.clients.address.AddressError": 2,
    "ringlog.clients.password.PasswordError": 2,
    "ringlog.history.archive.restoring.Overlapping": 2,
    "ringlog.history.archive.restoring.PastRetention": 2,
    "ringlog.loader.options.LoadError": 2,
    "ringlog.loader.sources.SourceError": 2,
    "ringlog.loadtest.experiment.errors.LoadTestUsageError": 2,
    "ringlog.machines.site.SiteError": 2,
    "ringlog.schema.facility_files.facility_file.FacilityError": 2,
}
"""Errors that a command reports by one line, and their exit codes: 1 failed, 2 wrong usage. They are named,
because their modules are imported only by commands that need them."""

OF_POSTGRESQL = ("psycopg.Error", "ringlog.history.connection.ReadError", "sqlalchemy.exc.DBAPIError")
"""Errors of PostgreSQL, which are reported in the same way."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"ringlog {version('ringlog')}")
        raise typer.Exit


@app.callback()
def _ringlog(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Makes it a group: its commands are listed in ringlog.commands.group."""
    if context.invoked_subcommand not in _FOR_OTHERS:
        os.umask(0o077)


@contextmanager
def _errors_reported() -> Iterator[None]:
    """Reports an expected error by one line and an exit code: 1 failed, 2 wrong usage."""
    try:
        yield
    except Exception as error:
        message_and_code = message_of(error)
        if message_and_code is None:
            raise
        message, code = message_and_code
        command_log.error("%s", message)
        sys.exit(code)


def message_of(error: Exception) -> tuple[str, int] | None:
    """The line and the exit code; None for an unexpected error."""
    for name in map(_name, type(error).__mro__):
        if name in EXPECTED:
            return str(error), EXPECTED[name]
        if name in OF_POSTGRESQL:
            cause = getattr(error, "orig", None) or error
            return f"PostgreSQL: {' '.join(str(cause).split())}", 1
    if isinstance(error, ModuleNotFoundError):
        missing = hint(error)
        return None if missing is None else (missing, 2)
    if _name(type(error)) == "ringlog.history.archive.folder.Damaged":
        return f"{error} (ringlog archive verify checks all files)", 1
    if isinstance(error, OSError):
        return f"{error.filename or 'the operating system'}: {error.strerror or error}", 1
    return None


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def main() -> None:
    logging.basicConfig(format="ringlog: %(message)s", level=logging.INFO, stream=sys.stderr)
    # a command that gets SIGTERM still stops the PostgreSQL it has started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with _errors_reported():
        app()
