"""SPring-8's experiments as commands of `ringlog loadtest`."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console

from ringlog.clients import Address
from ringlog.loader.cli import option
from ringlog.loadtest.experiment.catalogue import write_report_of
from ringlog.loadtest.experiment.duration import seconds_of
from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.experiment.progress import Steps
from ringlog.loadtest.experiment.running import (
    OUTPUT,
    Data,
    Output,
    Time,
    interruptible,
    numbers,
    temporary_folder,
)
from ringlog.loadtest.load import Pace
from ringlog.loadtest.spring8.outcome import summary
from ringlog.loadtest.spring8.results import CTLIB, KINDS, NATIVE, PYTHON, Result
from ringlog.loadtest.spring8.target import Target, given_target
from ringlog.schema.facility import KEY_COLUMNS
from ringlog.schema.facility_files import spring8
from ringlog.schema.facility_files.entries import TABLE_COLUMNS

# The modules that count calls are imported late: numpy starts threads, which commands that fork must not
# have.
if TYPE_CHECKING:
    from ringlog.loadtest.spring8.scene import Experiment

app = typer.Typer(
    help="Repeat the experiments of five papers, and compare the results.", no_args_is_help=True
)

Measurement: TypeAlias = "Callable[[Any, Experiment], Result]"


FacilityFile = Annotated[
    Path,
    typer.Option(
        "--facility",
        metavar="FILE",
        default_factory=spring8.file,
        show_default="SPring-8's",
        help="Facility file (TOML).",
    ),
]
Url = Annotated[
    str | None,
    option(
        metavar="URL",
        help="A running server, and its writers' login: tds://user@host:port. Default: a temporary server.",
    ),
]
Reader = Annotated[str | None, option(metavar="NAME", help="With --url: the readers' login.")]
Dsn = Annotated[
    str | None,
    option(
        metavar="DSN",
        help="With --url: the connection string of its PostgreSQL, to check the acknowledged rows; "
        "ringlog dsn prints it. Default: $RINGLOG_DSN.",
    ),
]
Clients = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        show_default="all that the experiment has",
        help=f"{PYTHON}: users of locust; {CTLIB}: the ct-library writer in C, a process a table; {NATIVE}: "
        "its recorded requests, with almost no client CPU.",
    ),
]
Processes = Annotated[
    int, typer.Option(metavar="N", min=1, help="Processes of the Python users, on this machine.")
]
ForeignWorkers = Annotated[
    int | None,
    option(
        "--expect-workers",
        metavar="N",
        help="Use this number of `ringlog loadtest locust --worker` processes, on any machine, "
        "as Python users.",
        min=1,
    ),
]
_CORES = max(1, min(os.cpu_count() or 1, 8))


@app.command()
def normal(
    facility: FacilityFile,
    time: Time = "60s",
    url: Url = None,
    reader: Reader = None,
    dsn: Dsn = None,
    data: Data = None,
    processes: Processes = _CORES,
    expect_workers: ForeignWorkers = None,
    output: Output = OUTPUT,
) -> None:
    """120 users at the normal rate: CPU, load average, I/O (section 6.1, figure 3; the paper: 120 min)."""
    common = time, facility, url, reader or "", dsn, data, PYTHON, processes, expect_workers, output
    _run(lambda of, experiment: of.normal(experiment), *common)


@app.command("max")
def highest(
    facility: FacilityFile,
    time: Time = "20s",
    url: Url = None,
    dsn: Dsn = None,
    data: Data = None,
    clients: Clients = None,
    processes: Processes = _CORES,
    expect_workers: ForeignWorkers = None,
    output: Output = OUTPUT,
) -> None:
    """60 writers at the highest rate (section 6.2, table 1; the paper: 120 min)."""
    common = time, facility, url, None, dsn, data, clients, processes, expect_workers, output
    _run(lambda of, experiment: of.highest(experiment), *common)


@app.command()
def columns(
    facility: FacilityFile,
    time: Time = "5s",
    widths: Annotated[
        str,
        typer.Option("--columns", metavar="A,B,...", help="Data columns of the temporary server's tables."),
    ] = "10,25,50,100,150,200,250",
    url: Url = None,
    dsn: Dsn = None,
    data: Data = None,
    clients: Clients = None,
    processes: Processes = _CORES,
    expect_workers: ForeignWorkers = None,
    output: Output = OUTPUT,
) -> None:
    """Rows a second against columns of a table, at the highest rate (figure 4)."""
    wanted = _widths(widths)
    common = time, facility, url, None, dsn, data, clients, processes, expect_workers, output
    _run(lambda of, experiment: of.columns(experiment, wanted), *common)


@app.command()
def users(
    facility: FacilityFile,
    time: Time = "15s",
    counts: Annotated[
        str, typer.Option("--users", metavar="A,B,...", help="How many users are logged in.")
    ] = "120,250,500,1000,2000",
    url: Url = None,
    reader: Reader = None,
    dsn: Dsn = None,
    data: Data = None,
    clients: Clients = None,
    processes: Processes = _CORES,
    expect_workers: ForeignWorkers = None,
    output: Output = OUTPUT,
) -> None:
    """Increasing numbers of users: Python users at the normal rate, native writers at the highest."""
    wanted = numbers("--users", counts)
    common = time, facility, url, reader or "", dsn, data, clients, processes, expect_workers, output
    _run(lambda of, experiment: of.users(experiment, wanted), *common)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def locust(
    context: typer.Context,
    facility: FacilityFile,
    pace: Annotated[Pace, typer.Option(help="The tables' cycles, or writers as fast as answers come.")] = (
        Pace.NORMAL
    ),
    url: Url = None,
    reader: Reader = None,
    dsn: Dsn = None,
    data: Data = None,
) -> None:
    """Locust with ringlog's users, its web page and its own options, as --headless, --run-time 1h,
    --processes 4, --master, --worker; then a check of every row. A worker needs --url and the facility of its
    master."""
    from ringlog.loadtest.spring8.locust_run import run_locust, work

    with interruptible(), temporary_folder() as folder:
        if pace is Pace.NORMAL and url is not None and reader is None:
            raise LoadTestUsageError("--url needs --reader: the login that readers use there")
        if "--worker" in context.args:
            if url is None:
                raise LoadTestUsageError("--worker needs --url: the server that its master loads")
            writer = Address.parse(url)
            readers = replace(writer, user=reader) if reader else None
            code = work(pace, facility, writer, readers, context.args)
        else:
            given = _given(url, reader, dsn)
            code = run_locust(pace, facility, given, data or folder / "data", folder, context.args)
        raise typer.Exit(code)


def _run(
    measure: Measurement,
    time: str,
    facility: Path,
    url: str | None,
    reader: str | None,
    dsn: str | None,
    data: Path | None,
    clients: str | None,
    processes: int,
    expect_workers: int | None,
    output: Path,
) -> None:
    """Runs an experiment of the module `experiments` in its environment, and reports."""
    for package in ("locust", "matplotlib", "pymssql"):
        # found, not imported: importing locust changes Python's sockets
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    from ringlog.loadtest.spring8 import experiments
    from ringlog.loadtest.spring8.scene import Experiment
    from ringlog.loadtest.spring8.swarm import Workers

    console = Console(highlight=False)
    # either signal also ends the server and the users
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with interruptible(), temporary_folder() as folder:
        given = _given(url, reader, dsn)
        experiment = Experiment(
            command=_command(url, given),
            facility_file=facility,
            seconds=seconds_of(time),
            clients=_clients(clients, given),
            workers=Workers(processes, expect_workers or 0),
            output=output,
            folder=folder,
            data=data,
            given=given,
            steps=Steps(console),
        )

        output.mkdir(parents=True, exist_ok=True)
        result = measure(experiments, experiment)
        written = write_report_of(output)
        console.print()
        for line in summary(result):
            console.print(line, soft_wrap=True)
        console.print(f"\nReport: {written}", soft_wrap=True)
        if not result.good:
            raise typer.Exit(1)


def _given(url: str | None, reader: str | None, dsn: str | None) -> Target | None:
    """The named server; `reader` None: the experiment has no readers, empty: no reader was named."""
    if url is None:
        if reader or dsn:
            raise LoadTestUsageError("--reader and --dsn go with --url")
        return None
    if reader == "":
        raise LoadTestUsageError("--url needs --reader: the login that readers use there")
    try:
        parts = conninfo_to_dict(dsn or "")
    except psycopg.ProgrammingError as error:
        raise LoadTestUsageError(f"--dsn: {str(error).strip()}") from None
    if "password" in parts:
        raise LoadTestUsageError(
            "--dsn holds a password, which everyone on this machine can read in the list of processes: put "
            "the whole string into the environment variable RINGLOG_DSN, or the password into ~/.pgpass"
        )
    dsn = dsn or os.environ.get("RINGLOG_DSN")
    if dsn is None:
        raise LoadTestUsageError(
            "--url needs --dsn: the connection string of its PostgreSQL, to look for acknowledged rows"
        )
    return given_target(url, reader, dsn)


def _clients(text: str | None, given: Target | None) -> Sequence[str]:
    if text is None:
        return (PYTHON,) if given else KINDS
    kinds = [word.strip() for word in text.split(",")]
    for kind in kinds:
        if kind not in KINDS:
            raise LoadTestUsageError(f"--clients '{kind}' is not one of {', '.join(KINDS)}")
        if given is not None and kind != PYTHON:
            raise LoadTestUsageError("--clients: writers in C need tables of their own: leave out --url")
    return kinds


def _widths(text: str) -> list[int]:
    widths = numbers("--columns", text)
    most = TABLE_COLUMNS - len(KEY_COLUMNS)
    if widths[-1] > most:
        raise LoadTestUsageError(f"--columns: a table has at most {most} data columns, not {widths[-1]}")
    return widths


def _command(url: str | None, given: Target | None) -> str:
    """The command line in a form that can be typed again, without a password in its URL."""
    words = sys.argv[1:]
    if url is not None and given is not None:
        words = [word.replace(url, str(given.writer)) for word in words]
    return shlex.join(["ringlog", *words])
