"""The command `ringlog`."""

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ringlog.commands import Commands
from ringlog.errors import ServerError, UsageError
from ringlog.extras import hint

# what a command says to whoever has given it
command_log = logging.getLogger("ringlog")

app = typer.Typer(
    cls=Commands,
    help="A data logger: writers call stored procedures over TDS, the data lives in PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback()
def _ringlog() -> None:
    """Makes it a group: its commands are where ringlog.commands says."""


@contextmanager
def _errors_told() -> Iterator[None]:
    """Turns what a person can mend into one line and an exit code: 1 failed, 2 wrongly asked."""
    try:
        yield
    except Exception as error:
        told = _told(error)
        if told is None:
            raise
        words, code = told
        command_log.error("%s", words)
        sys.exit(code)


def _told(error: Exception) -> tuple[str, int] | None:
    """The line and the exit code; None for what nobody foresaw."""
    # only what fails needs them all
    import psycopg
    import sqlalchemy.exc

    from ringlog.schema.facility_file import FacilityError
    from ringlog.schema.obstacles import InstallRefused

    match error:
        case UsageError() | FacilityError():
            return str(error), 2
        case ServerError() | InstallRefused():
            return str(error), 1
        case ModuleNotFoundError():
            missing = hint(error)
            return None if missing is None else (missing, 2)
        case psycopg.Error() | sqlalchemy.exc.DBAPIError():
            cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
            return f"PostgreSQL: {' '.join(str(cause).split())}", 1
        case OSError():
            return f"{error.filename or 'the operating system'}: {error.strerror or error}", 1
    return None


def main() -> None:
    """The entry point."""
    logging.basicConfig(format="ringlog: %(message)s", level=logging.INFO, stream=sys.stderr)
    # a command that is told to end still stops the PostgreSQL it has started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with _errors_told():
        app()
