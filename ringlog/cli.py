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
from ringlog.errors import ServerError, UsageError
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
_FOR_OTHERS = ("adopt", "bench", "cert", "demo", "export", "ha", "loadtest", "plan", "plot")


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
    if isinstance(error, UsageError) or _is(
        error, "ringlog.schema.facility_files.facility_file", "FacilityError"
    ):
        return str(error), 2
    if isinstance(error, ServerError) or _is(error, "ringlog.schema.installing.obstacles", "InstallRefused"):
        return str(error), 1
    if isinstance(error, ModuleNotFoundError):
        missing = hint(error)
        return None if missing is None else (missing, 2)
    cause = getattr(error, "orig", None) if _is(error, "sqlalchemy.exc", "DBAPIError") else error
    if _is(cause, "psycopg", "Error") or _is(cause, "ringlog.history.connection", "ReadError"):
        return f"PostgreSQL: {' '.join(str(cause).split())}", 1
    if _is(error, "ringlog.history.archive.ownership", "NotOurs"):
        return str(error), 1
    if _is(error, "ringlog.history.archive.folder", "Damaged"):
        return f"{error} (ringlog archive verify checks all files)", 1
    if isinstance(error, OSError):
        return f"{error.filename or 'the operating system'}: {error.strerror or error}", 1
    return None


def _is(error: object, module: str, name: str) -> bool:
    """Whether it is an error of this module, which is not imported for that (half a second): an error can
    only come from a module that has been imported."""
    return module in sys.modules and isinstance(error, getattr(sys.modules[module], name, ()))


def main() -> None:
    """The entry point."""
    logging.basicConfig(format="ringlog: %(message)s", level=logging.INFO, stream=sys.stderr)
    # a command that gets SIGTERM still stops the PostgreSQL it has started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with _errors_reported():
        app()
