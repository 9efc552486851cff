"""The commands `ringlog load` and `ringlog reload`."""

import logging
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console

from ringlog.clients import Address, LoginRefused, Unanswered, call, connect, find_password, output
from ringlog.clients.figures import State
from ringlog.clients.listening import host_and_port
from ringlog.loader.backfill import backfill as import_files
from ringlog.loader.cli import option
from ringlog.loader.control.control_socket import ControlSocket, ring
from ringlog.loader.control.notify import notify
from ringlog.loader.control.reload import AnyWriter, Reload
from ringlog.loader.display import Board, Display, LineDisplay, LiveDisplay
from ringlog.loader.options import LoadError, chosen
from ringlog.loader.samples import SampleProcess
from ringlog.loader.sources.epics import Epics
from ringlog.loader.sources.simulator import Simulator
from ringlog.loader.statistics import Statistics
from ringlog.loader.supervisor import Job, Supervisor
from ringlog.loader.writer import WriterProcess
from ringlog.schema.facility import Facility, SampleTable, Table
from ringlog.schema.facility_files.facility_file import load_facility

log = logging.getLogger(__name__)

_REFRESH = 0.5
# A failure of all tables has one reason: some of the messages are enough.
_MOST_FAILURES = 3
MiB = 2**20


Spool = Annotated[
    Path | None,
    option(
        "--spool",
        metavar="DIR",
        help="Folder of the spools, which keep rows until they are acknowledged. Default: "
        "$RINGLOG_SPOOL, otherwise /var/spool/ringlog for root and ~/.local/state/ringlog for "
        "others.",
    ),
]

_Facility = Annotated[Path, typer.Option("--facility", metavar="FILE", help="Facility file (TOML).")]
_Url = Annotated[
    str, typer.Option(metavar="URL", help="Server and login: tds://user@host:port[,host:port …][/database].")
]
_Tables = Annotated[str | None, option(metavar="A,B,...", help="These tables only. Default: all.")]
_Source = Annotated[
    str,
    typer.Option(
        metavar="SOURCE",
        help="simulator; csv:DIR or parquet:DIR for recordings, DIR/<table>.csv; lines:HOST:PORT for one "
        "table; ca or pva for EPICS; python:MODULE:FUNCTION for your own.",
    ),
]
_Speed = Annotated[
    float,
    typer.Option(
        metavar="X",
        help=(
            "Speed factor of the cycles' or recordings' own pace; inf for recordings: "
            "as fast as rows are stored."
        ),
    ),
]
_Seed = Annotated[int, typer.Option(metavar="N", help="Random seed of the simulator.")]
_Budget = Annotated[
    int, typer.Option("--spool-budget", metavar="MIB", min=1, help="Disk space for the spool of one table.")
]
_TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Take the tables over from their current writer.")
]
_PasswordFile = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="The password is its first line. Default: $RINGLOG_PASSWORD, otherwise ~/.ringlogpass, "
        "otherwise a prompt.",
    ),
]
_Backfill = Annotated[
    bool,
    typer.Option(
        "--backfill",
        help=(
            "Import the files of --source csv:DIR or parquet:DIR as old rows, by COPY, and end. "
            "--url names PostgreSQL: postgresql://user@host:port/ringlog."
        ),
    ),
]
_Processes = Annotated[
    int | None,
    option(
        metavar="N",
        help="Number of processes that write all tables, with one thread per table. Default: one "
        "process per table. With --backfill: number of tables imported at once. Default: the "
        "number of processors.",
        min=1,
    ),
]
_Metrics = Annotated[
    str | None,
    option(
        metavar="HOST:PORT", help="Address of the writers' metrics for Prometheus (/metrics). Default: none."
    ),
]


def load(
    facility: _Facility,
    url: _Url,
    tables: _Tables = None,
    source: _Source = "simulator",
    speed: _Speed = 1.0,
    seed: _Seed = 1,
    spool: Spool = None,
    budget: _Budget = 1024,
    take_over: _TakeOver = False,
    password_file: _PasswordFile = None,
    backfill: _Backfill = False,
    processes: _Processes = None,
    metrics: _Metrics = None,
) -> None:
    """Run the writers: one process per table calls put_<table> at the table's cycle, until Ctrl-C or SIGTERM.

    SIGHUP and `ringlog reload` read the facility file again.
    """
    loaded = load_facility(facility)
    address = Address.parse(url)
    if backfill:
        password = find_password(address, password_file)
        if not import_files(loaded, source, tables, address, password, processes):
            raise typer.Exit(1)
        return
    given, written, sampled = chosen(loaded, source, speed, seed, tables)
    if processes is not None and source.partition(":")[0] == "python":
        raise LoadError("--processes needs a source that threads can read: all but python")
    password = find_password(address, password_file)
    where = None if metrics is None else host_and_port(metrics)
    if metrics is not None and where is None:
        raise LoadError(f"--metrics '{metrics}': write HOST:PORT")
    _check(address, password, written, sampled)
    folder = spool or default_spool()
    zone = ZoneInfo(loaded.timezone)
    writers: list[AnyWriter] = [
        WriterProcess(table, zone, address, password, given, folder, budget * MiB, take_over=take_over)
        for table in written
    ]
    if isinstance(given, Epics | Simulator):
        writers += [
            SampleProcess(
                table,
                address,
                password,
                given,
                folder,
                budget * MiB,
                loaded.byte_order,
                take_over,
                loaded.policies,
            )
            for table in sampled
        ]
    try:
        well = _run(writers, facility, loaded, folder, where, processes)
    except LoadError as error:
        _say(str(error))
        raise typer.Exit(1) from None
    if not well:
        raise typer.Exit(1)


def reload(spool: Spool = None) -> None:
    """Make running writers read their changed facility file: cycle, sampling, deadbands, policies.

    Code 1: other changes need a restart.
    """
    folder = spool or default_spool()
    answers = 0
    whole = True
    try:
        for process, done in ring(folder):
            answers += 1
            whole = whole and done.whole
            for line in done.lines:
                print(f"ringlog load, process {process}: {line}")
    except (OSError, ValueError) as error:
        _say(f"{folder}: {error}")
        raise typer.Exit(1) from None
    if not answers:
        _say(f"no ringlog load with spools in {folder} is running: name the folder with --spool")
        raise typer.Exit(1)
    if not whole:
        raise typer.Exit(1)


def default_spool() -> Path:
    """$RINGLOG_SPOOL; without it /var/spool/ringlog for root, and the user's own state folder for others."""
    if folder := os.environ.get("RINGLOG_SPOOL"):
        return Path(folder)
    if os.geteuid() == 0:
        return Path("/var/spool/ringlog")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ringlog"


def _check(address: Address, password: str, tables: Sequence[Table], sampled: Sequence[SampleTable]) -> None:
    """Checks the login, the tables and the rights before any process starts.

    If the server cannot be reached the writers start nevertheless, and keep their rows.
    """
    try:
        connection = connect(address, password)
    except LoginRefused:
        raise
    except Unanswered as error:
        _say(f"{error}. Rows are kept in the spool until the server answers")
        return
    try:
        for table in tables:
            call(connection, f"last_{table.name}", output(int), output(str))
        for each in sampled:
            call(connection, "written_signals", each.name, 0)
    finally:
        connection.close()


def _run(
    writers: Sequence[AnyWriter],
    file: Path,
    facility: Facility,
    spools: Path,
    metrics: tuple[str, int] | None,
    processes: int | None,
) -> bool:
    """Writes until a signal stops it or the source ends. Returns False when a source failed."""
    stopped = hung_up = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    def hang_up(_signal: int, _frame: FrameType | None) -> None:
        nonlocal hung_up
        hung_up = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # set by nohup
        signal.signal(signal.SIGHUP, hang_up)
    with ExitStack() as stack:
        supervisor = Supervisor([Job(writer.table.name, writer.run) for writer in writers], processes)
        stack.enter_context(supervisor)
        statistics = supervisor.statistics
        reload = Reload(file, facility, writers, supervisor)
        try:
            control = stack.enter_context(ControlSocket(spools))
        except OSError as error:
            raise LoadError(f"spool {spools}: {error.strerror}") from None
        counting = None if metrics is None else stack.enter_context(_counting(metrics, statistics))
        board = Board([writer.table for writer in writers], statistics)
        console = Console()
        display: Display = (
            LiveDisplay(board, console) if console.is_terminal else LineDisplay(board, statistics)
        )
        supervisor.start()
        if counting:
            counting.start()
        notify("READY=1")
        try:
            while not stopped and not supervisor.finished:
                supervisor.tend(_REFRESH)
                if counting:
                    counting.tend(0.0)
                display.show()
                notify(f"WATCHDOG=1\nSTATUS={board.summary(board.rates())}")
                control.answer(reload)
                if hung_up:
                    hung_up = False
                    for line in reload().lines:
                        log.info("%s", line)
        finally:
            display.close()
            notify("STOPPING=1")
    print(f"ended · {board.figures(board.rates())}", flush=True)
    failed = [
        f"{name}: {one.message}"
        for name, one in statistics.items()
        if one.state in (State.FAILED, State.REFUSED)
    ]
    for failure in failed[:_MOST_FAILURES]:
        _say(failure)
    if len(failed) > _MOST_FAILURES:
        _say(f"and {len(failed) - _MOST_FAILURES} more tables")
    return not failed


def _counting(where: tuple[str, int], statistics: Mapping[str, Statistics]) -> Supervisor:
    """The process that serves Prometheus; it is restarted like the writers."""
    # imported here: only this option needs it
    from ringlog.loader.metrics import Endpoint

    try:
        endpoint = Endpoint(*where, statistics)
    except OSError as error:
        raise LoadError(f"--metrics: cannot listen on {where[0]}:{where[1]}: {error.strerror}") from None
    return Supervisor([Job("metrics", endpoint.run)])


def _say(text: str) -> None:
    logging.getLogger("ringlog").error("%s", text)
