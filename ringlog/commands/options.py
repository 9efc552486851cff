"""Options that several commands have."""

import functools
import inspect
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ringlog import logs
from ringlog.loader.cli import option
from ringlog.logs import Format, Level
from ringlog.server.embedded.programs import PACKAGED

Data = Annotated[
    Path | None,
    option(
        "--data",
        metavar="DIR",
        help="Data directory of the embedded PostgreSQL. Default: $RINGLOG_DATA, otherwise "
        "/var/lib/ringlog for root and ~/.local/share/ringlog for others.",
    ),
]
Dsn = Annotated[
    str | None,
    option(
        "--dsn",
        metavar="DSN",
        help="Connection string of a PostgreSQL of your own (15 or later), as its administrator. "
        "Default: $RINGLOG_DSN.",
    ),
]
Programs = Annotated[
    str | None,
    option(
        "--postgres",
        metavar="DIR",
        help="Programs of the PostgreSQL (15 or later) in the data directory, as /usr/lib/postgresql/15; "
        f"{PACKAGED!r}: ringlog's own. Default: those used last, at first ringlog's own.",
    ),
]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="Table of the facility.")]
From = Annotated[datetime, typer.Argument(metavar="FROM", help="First day (UTC), as 2024-03-01.")]
To = Annotated[datetime, typer.Argument(metavar="TO", help="Day after the last (UTC).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
LogLevel = Annotated[
    Level, typer.Option("--log-level", help="Lowest level of the events that are logged to standard error.")
]
LogFormat = Annotated[
    Format,
    typer.Option("--log-format", help=("Log lines as text, or as one JSON object per line for programs.")),
]


def logging_command(run: Callable[..., None]) -> Callable[..., None]:
    """A command with the options --log-level and --log-format besides its own."""

    @functools.wraps(run)
    def command(*, log_level: Level, log_format: Format, **options: Any) -> None:
        from ringlog.gateway import start_log  # with psycopg, which the help does not need

        logs.start(log_level, log_format)
        start_log(logs.SHORT.get(log_level, log_level), json=log_format is Format.JSON)
        run(**options)

    more = {"log_level": (LogLevel, Level.INFO), "log_format": (LogFormat, Format.TEXT)}
    signature = inspect.signature(run)
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in more.items()
    ]
    command.__annotations__ = run.__annotations__ | {name: kind for name, (kind, _) in more.items()}
    # typer reads the options from it
    command.__dict__["__signature__"] = signature.replace(
        parameters=[*signature.parameters.values(), *parameters]
    )
    return command
