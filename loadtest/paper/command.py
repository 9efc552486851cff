"""The command `ringlog loadtest`."""

import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console

import ringlog.schema
from ringlog.clients import Address, AddressError, PasswordError
from ringlog.loadtest.bench.errors import BenchError
from ringlog.loadtest.load import Pace
from ringlog.loadtest.paper.duration import seconds_of
from ringlog.loadtest.paper.errors import LoadTestError, LoadTestUsageError
from ringlog.loadtest.paper.progress import Steps
from ringlog.loadtest.paper.report import summary, write_report
from ringlog.loadtest.paper.results import CTLIB, EXPERIMENTS, KINDS, NATIVE, PYTHON, Result, read_results
from ringlog.loadtest.paper.site import Site, given_site
from ringlog.schema.facility import KEY_COLUMNS, TABLE_COLUMNS

# What counts calls is imported late: numpy starts threads, which other commands, that fork, must not have.
if TYPE_CHECKING:
    from ringlog.loadtest.paper.laboratory import Laboratory

app = typer.Typer(
    help="The experiments of papers/004: normal operation, highest rate, columns, users.",
    no_args_is_help=True,
)

Experiment: TypeAlias = "Callable[[Laboratory], Result]"

SPRING8 = Path(ringlog.schema.__file__).parent / "spring8.toml"

Time = Annotated[str, typer.Option("--time", metavar="T", help="How long each load lasts: 90s, 120min, 14d.")]
FacilityFile = Annotated[
    Path,
    typer.Option("--facility", metavar="FILE", show_default="SPring-8's", help="Facility file (TOML)."),
]
Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        show_default=False,
        help="A server that runs already, and its writers' login: tds://user@host:port. Default: a server of "
        "our own for the time being.",
    ),
]
Reader = Annotated[
    str | None,
    typer.Option(metavar="NAME", show_default=False, help="With --url: the readers' login."),
]
Dsn = Annotated[
    str | None,
    typer.Option(
        metavar="DSN",
        show_default=False,
        help="With --url: the connection string of its PostgreSQL, where acknowledged rows are looked for; "
        "ringlog dsn prints it. Default: $RINGLOG_DSN.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default="temporary",
        help="A folder for our own server's data, which are removed at the end; a long load writes much.",
    ),
]
Clients = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        show_default="all that the experiment has",
        help=f"{PYTHON}: users of locust; {CTLIB}: the ct-library writer in C, a process a table; {NATIVE}: "
        "its requests sent again, which costs the clients next to nothing.",
    ),
]
Processes = Annotated[
    int, typer.Option(metavar="N", min=1, help="Processes of the Python users, on this machine.")
]
ForeignWorkers = Annotated[
    int | None,
    typer.Option(
        "--expect-workers",
        metavar="N",
        min=1,
        show_default=False,
        help="Python users come from so many `ringlog loadtest locust --worker` instead, from any machine.",
    ),
]
Output = Annotated[
    Path, typer.Option(metavar="DIR", help="Where the report goes; it has all experiments found there.")
]

_CORES = max(1, min(os.cpu_count() or 1, 8))
_OUTPUT = Path(".loadtest")


@app.command()
def normal(
    time: Time = "60s",
    facility: FacilityFile = SPRING8,
    url: Url = None,
    reader: Reader = None,
    dsn: Dsn = None,
    data: Data = None,
    processes: Processes = _CORES,
    expect_workers: ForeignWorkers = None,
    output: Output = _OUTPUT,
) -> None:
    """120 users at the normal rate: CPU, load average, I/O (section 6.1, figure 3; the paper: 120 min)."""
    with _laboratory(
        time, facility, url, reader or "", dsn, data, PYTHON, processes, expect_workers, output
    ) as run:
        from ringlog.loadtest.paper import experiments

        run(experiments.normal)


@app.command("max")
def highest(
    time: Time = "20s",
    facility: FacilityFile = SPRING8,
    url: Url = None,
    dsn: Dsn = None,
    data: Data = None,
    clients: Clients = None,
    processes: Processes = _CORES,
    expect_workers: ForeignWorkers = None,
    output: Output = _OUTPUT,
) -> None:
    """60 writers at the highest rate (section 6.2, table 1; the paper: 120 min)."""
    with _laboratory(time, facility, url, None, dsn, data, clients, processes, expect_workers, output) as run:
        from ringlog.loadtest.paper import experiments

        run(experiments.highest)


@app.command()
def columns(
    time: Time = "5s",
    widths: Annotated[
        str,
        typer.Option("--columns", metavar="A,B,...", help="Data columns of the tables of our own server."),
    ] = "10,25,50,100,150,200,250",
    facility: FacilityFile = SPRING8,
    url: Url = None,
    dsn: Dsn = None,
    data: Data = None,
    clients: Clients = None,
    processes: Processes = _CORES,
    expect_workers: ForeignWorkers = None,
    output: Output = _OUTPUT,
) -> None:
    """Rows a second against columns of a table, at the highest rate (figure 4)."""
    with _laboratory(time, facility, url, None, dsn, data, clients, processes, expect_workers, output) as run:
        from ringlog.loadtest.paper import experiments

        numbers = _widths(widths)
        run(lambda lab: experiments.columns(lab, numbers))


@app.command()
def users(
    time: Time = "15s",
    counts: Annotated[
        str, typer.Option("--users", metavar="A,B,...", help="How many users are logged in.")
    ] = "120,250,500,1000,2000",
    facility: FacilityFile = SPRING8,
    url: Url = None,
    reader: Reader = None,
    dsn: Dsn = None,
    data: Data = None,
    clients: Clients = None,
    processes: Processes = _CORES,
    expect_workers: ForeignWorkers = None,
    output: Output = _OUTPUT,
) -> None:
    """Ever more users: at the normal rate in Python, at the highest as native writers."""
    with _laboratory(
        time, facility, url, reader or "", dsn, data, clients, processes, expect_workers, output
    ) as run:
        from ringlog.loadtest.paper import experiments

        numbers = _numbers("--users", counts)
        run(lambda lab: experiments.users(lab, numbers))


@app.command()
def report(output: Output = _OUTPUT) -> None:
    """Write the report again from the results in its folder."""
    with _errors_told():
        results = read_results(output, EXPERIMENTS)
        if not results:
            raise LoadTestUsageError(f"{output} holds no results of ringlog loadtest")
        print(f"Written: {write_report(results, output)}")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def locust(
    context: typer.Context,
    pace: Annotated[Pace, typer.Option(help="The tables' cycles, or writers as fast as answers come.")] = (
        Pace.NORMAL
    ),
    facility: FacilityFile = SPRING8,
    url: Url = None,
    reader: Reader = None,
    dsn: Dsn = None,
    data: Data = None,
) -> None:
    """Locust with our users, its web page and its own options, as --headless, --run-time 1h, --processes 4,
    --master, --worker; then a check of every row. A worker needs --url and the facility of its master."""
    from ringlog.loadtest.paper.foreground import run, work

    with _errors_told(), _folder() as folder:
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
            code = run(pace, facility, given, data or folder / "data", folder, context.args)
        raise typer.Exit(code)


@contextmanager
def _laboratory(
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
) -> Iterator[Callable[[Experiment], None]]:
    """Everything an experiment needs; what it yields runs one and reports."""
    from ringlog.loadtest.paper.laboratory import Laboratory
    from ringlog.loadtest.paper.swarm import Workers

    console = Console(highlight=False)
    # whoever ends it by either signal wants the server and the users ended too
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _errors_told(), _folder() as folder:
        given = _given(url, reader, dsn)
        lab = Laboratory(
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

        def run(experiment: Experiment) -> None:
            output.mkdir(parents=True, exist_ok=True)
            result = experiment(lab)
            written = write_report(read_results(output, EXPERIMENTS), output)
            console.print()
            for line in summary(result):
                console.print(line, soft_wrap=True)
            console.print(f"\nReport: {written}", soft_wrap=True)
            if not result.good:
                raise typer.Exit(1)

        yield run


def _given(url: str | None, reader: str | None, dsn: str | None) -> Site | None:
    """The server that was named; `reader` None: the experiment has none, empty: none was named."""
    if url is None:
        if reader or dsn:
            raise LoadTestUsageError("--reader and --dsn go with --url")
        return None
    if reader == "":
        raise LoadTestUsageError("--url needs --reader: the login that readers use there")
    try:
        told = conninfo_to_dict(dsn or "")
    except psycopg.ProgrammingError as error:
        raise LoadTestUsageError(f"--dsn: {str(error).strip()}") from None
    if "password" in told:
        raise LoadTestUsageError(
            "--dsn holds a password, which everyone on this machine can read in the list of processes: put "
            "the whole string into the environment variable RINGLOG_DSN, or the password into ~/.pgpass"
        )
    dsn = dsn or os.environ.get("RINGLOG_DSN")
    if dsn is None:
        raise LoadTestUsageError(
            "--url needs --dsn: the connection string of its PostgreSQL, to look for acknowledged rows"
        )
    return given_site(url, reader, dsn)


def _clients(text: str | None, given: Site | None) -> Sequence[str]:
    if text is None:
        return (PYTHON,) if given else KINDS
    kinds = [word.strip() for word in text.split(",")]
    for kind in kinds:
        if kind not in KINDS:
            raise LoadTestUsageError(f"--clients '{kind}' is none of {', '.join(KINDS)}")
        if given is not None and kind != PYTHON:
            raise LoadTestUsageError("--clients: writers in C need tables of their own: leave out --url")
    return kinds


def _numbers(option: str, text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and int(word) > 0 for word in words):
        raise LoadTestUsageError(f"{option} '{text}' is no list of whole numbers as 10,100")
    return sorted({int(word) for word in words})


def _widths(text: str) -> list[int]:
    widths = _numbers("--columns", text)
    most = TABLE_COLUMNS - len(KEY_COLUMNS)
    if widths[-1] > most:
        raise LoadTestUsageError(f"--columns: a table has at most {most} data columns, not {widths[-1]}")
    return widths


def _command(url: str | None, given: Site | None) -> str:
    """The command line as it can be typed again; a password in its URL is left out."""
    words = sys.argv[1:]
    if url is not None and given is not None:
        words = [word.replace(url, str(given.writer)) for word in words]
    return shlex.join(["ringlog", *words])


@contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder, reachable for the account that PostgreSQL runs under."""
    folder = Path(tempfile.mkdtemp(prefix="ringlog-loadtest-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _errors_told() -> Iterator[None]:
    """Turns what a person can mend into one line and an exit code: 1 failed, 2 wrongly asked."""
    try:
        yield
    except (LoadTestUsageError, AddressError, PasswordError) as error:
        _say(str(error))
        raise typer.Exit(2) from None
    except (LoadTestError, BenchError) as error:
        _say(str(error))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        _say("interrupted")
        raise typer.Exit(130) from None


def _say(text: str) -> None:
    print(f"ringlog: {text}", file=sys.stderr, flush=True)
