"""The command `ringlog load`."""

import math
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console

from ringlog.clients import (
    Address,
    AddressError,
    LoginRefused,
    PasswordError,
    Refused,
    Unanswered,
    call,
    connect,
    find_password,
    output,
)
from ringlog.clients.figures import State
from ringlog.loader.board import Board, Display, LineDisplay, LiveDisplay
from ringlog.loader.notify import notify
from ringlog.loader.sources import Source, SourceError
from ringlog.loader.sources.csv_replay import CsvReplay
from ringlog.loader.sources.epics import Epics
from ringlog.loader.sources.lines import Lines
from ringlog.loader.sources.simulator import Simulator
from ringlog.loader.supervisor import Job, Supervisor
from ringlog.loader.writer import Writer
from ringlog.schema.facility import Facility, FacilityError, Table, load_facility

_REFRESH = 0.5
# A failure of all tables has one reason: some of them are enough.
_TOLD = 3
MiB = 2**20


class LoadError(Exception):
    """What was asked for cannot be done; the message says what to change."""


def load(
    facility: Annotated[Path, typer.Option("--facility", metavar="FILE", help="Facility file (TOML).")],
    url: Annotated[
        str, typer.Option(metavar="URL", help="Where and as whom to write: tds://user@host:port[/database].")
    ],
    tables: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", show_default=False, help="These tables only. Default: all."),
    ] = None,
    source: Annotated[
        str,
        typer.Option(
            metavar="SOURCE",
            help="simulator; csv:DIR for recordings, DIR/<table>.csv; lines:HOST:PORT for one table; "
            "ca or pva for EPICS.",
        ),
    ] = "simulator",
    speed: Annotated[
        float,
        typer.Option(metavar="X", help="Times the cycles' or recordings' own pace; inf for csv: unhindered."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(metavar="N", help="The simulator's: other readings.")] = 1,
    spool: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Where rows wait for the server. Default: $RINGLOG_SPOOL, else /var/spool/ringlog for root "
            "and ~/.local/state/ringlog for others.",
        ),
    ] = None,
    budget: Annotated[
        int,
        typer.Option(
            "--spool-budget", metavar="MIB", min=1, help="What a table's spool may take of the disk."
        ),
    ] = 1024,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the tables from whoever writes them now.")
    ] = False,
    password_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Its first line is the password. Default: $RINGLOG_PASSWORD, else ~/.ringlogpass.",
        ),
    ] = None,
) -> None:
    """Write: one process per table calls put_<table> at the table's cycle, until Ctrl-C or SIGTERM."""
    try:
        loaded = load_facility(facility)
        address = Address.parse(url)
        given, chosen = _chosen(loaded, source, speed, seed, tables)
        password = find_password(address, password_file)
        _check(address, password, chosen)
        folder = spool or default_spool()
    except (LoadError, AddressError, PasswordError, FacilityError, SourceError) as error:
        _say(str(error))
        raise typer.Exit(2) from None
    except (Refused, Unanswered) as error:
        _say(str(error))
        raise typer.Exit(1) from None
    zone = ZoneInfo(loaded.timezone)
    writers = [
        Writer(table, zone, address, password, given, folder, budget * MiB, take_over=take_over)
        for table in chosen
    ]
    if not _run(writers):
        raise typer.Exit(1)


def _chosen(
    facility: Facility, source: str, speed: float, seed: int, names: str | None
) -> tuple[Source, Sequence[Table]]:
    """The source, and the tables to write."""
    if not speed > 0:
        raise LoadError(f"--speed {speed:g} is not above 0")
    wanted = None if names is None else [name.strip() for name in names.split(",")]
    known = {table.name: table for table in facility.tables}
    for name in wanted or ():
        if name not in known:
            raise LoadError(f"--tables: the facility has no table '{name}'")
    kind, _, folder = source.partition(":")
    if kind == "csv" and folder:
        replay = CsvReplay(Path(folder), ZoneInfo(facility.timezone), speed)
        recorded = replay.tables(facility)
        for name in wanted or ():
            if known[name] not in recorded:
                raise LoadError(f"--tables: {folder} has no file {name}.csv")
        tables = [table for table in recorded if wanted is None or table.name in wanted]
        replay.check(tables)
        return replay, tables
    if source == "simulator":
        if math.isinf(speed):
            raise LoadError("--speed inf is for csv: a simulated machine has a pace")
        return Simulator(seed, speed), [
            table for table in facility.tables if wanted is None or table.name in wanted
        ]
    if source in ("ca", "pva"):
        if speed != 1.0:
            raise LoadError("--speed is for the simulator and recordings")
        epics = Epics(source)
        epics.check()
        return epics, [table for table in facility.tables if wanted is None or table.name in wanted]
    if kind == "lines":
        host, _, port = folder.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise LoadError(f"--source '{source}': write lines:HOST:PORT")
        if len(wanted or ()) != 1:
            raise LoadError("--source lines is for one table: name it with --tables")
        return Lines(host, int(port)), [known[name] for name in wanted or ()]
    raise LoadError(f"--source '{source}' is none of simulator, csv:DIR, lines:HOST:PORT, ca, pva")


def default_spool() -> Path:
    """$RINGLOG_SPOOL, else /var/spool/ringlog for root, the user's own state folder for everyone else."""
    if folder := os.environ.get("RINGLOG_SPOOL"):
        return Path(folder)
    if os.geteuid() == 0:
        return Path("/var/spool/ringlog")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ringlog"


def _check(address: Address, password: str, tables: Sequence[Table]) -> None:
    """Finds out before any process starts whether the login, the tables and the rights are there.

    A server that is away is no reason not to start: the writers' rows wait for it.
    """
    try:
        connection = connect(address, password)
    except LoginRefused:
        raise
    except Unanswered as error:
        _say(f"{error}. Rows are kept in the spool until there is an answer")
        return
    try:
        for table in tables:
            call(connection, f"last_{table.name}", output(int), output(str))
    finally:
        connection.close()


def _run(writers: Sequence[Writer]) -> bool:
    """Writes until told to stop or the source ends; False when a source failed."""
    stopped = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with Supervisor([Job(writer.table.name, writer.run) for writer in writers]) as supervisor:
        statistics = supervisor.statistics
        board = Board([writer.table for writer in writers], statistics)
        console = Console()
        display: Display = (
            LiveDisplay(board, console) if console.is_terminal else LineDisplay(board, statistics)
        )
        supervisor.start()
        notify("READY=1")
        try:
            while not stopped and not supervisor.finished:
                supervisor.tend(_REFRESH)
                display.show()
                notify(f"WATCHDOG=1\nSTATUS={board.summary(board.rates())}")
        finally:
            display.close()
            notify("STOPPING=1")
    print(f"ended · {board.figures(board.rates())}", flush=True)
    failed = [f"{name}: {one.message}" for name, one in statistics.items() if one.state == State.FAILED]
    for failure in failed[:_TOLD]:
        _say(failure)
    if len(failed) > _TOLD:
        _say(f"and {len(failed) - _TOLD} more tables")
    return not failed


def _say(text: str) -> None:
    print(f"ringlog: {text}", file=sys.stderr, flush=True)
