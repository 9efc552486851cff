"""The environment of an experiment: a server of its own, its cost, its outcome."""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil
import typer
from rich.console import Console

from ringlog.loadtest.experiment.catalogue import write_report_of
from ringlog.loadtest.experiment.duration import seconds_of
from ringlog.loadtest.experiment.machine import load_average, settings, this_machine, versions
from ringlog.loadtest.experiment.outcome import Counted, Figure, Outcome, Point, Section
from ringlog.loadtest.experiment.progress import Steps
from ringlog.loadtest.experiment.report import amount, verdict
from ringlog.loadtest.experiment.running import command_line, interruptible, temporary_folder
from ringlog.loadtest.experiment.server import Server, serving

_LOOK = 0.3
"""Seconds between two looks at the memory."""


@dataclass
class Stage:
    """A run of an experiment."""

    experiment: str
    seconds: float
    """of each load"""
    output: Path
    folder: Path
    """temporary"""
    data: Path | None
    steps: Steps
    began: datetime = field(default_factory=lambda: datetime.now(UTC), init=False)
    load_before: float = field(default_factory=load_average, init=False)
    _since: float = field(default_factory=time.monotonic, init=False)
    _versions: dict[str, str] = field(default_factory=dict, init=False)
    _settings: dict[str, str] = field(default_factory=dict, init=False)
    _servers: int = field(default=0, init=False)

    @contextmanager
    def serving(self, facility: str) -> Iterator[Server]:
        """A server with this facility (TOML), on data that are removed afterwards."""
        self._servers += 1
        own = self.folder / f"server{self._servers}"
        own.mkdir(mode=0o755)
        file = own / "facility.toml"
        file.write_text(facility)
        data = own / "data" if self.data is None else self.data / f"server{self._servers}"
        try:
            with serving(file, data, keep=False) as server:
                self.note(server)
                yield server
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def note(self, server: Server) -> None:
        """Notes a server's versions and settings for the outcome."""
        dsn = server.administrator.info.dsn
        self._versions |= versions(dsn)
        self._settings = settings(dsn)

    def finish(
        self,
        title: str,
        paper: str,
        scale: str,
        counted: list[Counted],
        figures: list[Figure],
        sections: list[Section],
        method: list[str],
        points: Sequence[Point] = (),
        extra: dict[str, str] | None = None,
    ) -> Outcome:
        """The outcome, written down."""
        outcome = Outcome(
            experiment=self.experiment,
            title=title,
            paper=paper,
            command=command_line(),
            began=f"{self.began:%Y-%m-%d %H:%M:%S} UTC",
            seconds=time.monotonic() - self._since,
            scale=scale,
            machine=this_machine(self.data or self.folder),
            load_before=self.load_before,
            load_after=load_average(),
            versions=self._versions | (extra or {}),
            settings=self._settings,
            counted=counted,
            figures=figures,
            sections=sections,
            method=method,
            points=[*points],
        )
        outcome.write(self.output)
        return outcome


def play(
    experiment: str,
    time: str,
    output: Path,
    data: Path | None,
    compare: Path | None,
    perform: Callable[[Stage], Outcome],
) -> None:
    """Runs an experiment and reports. Exit code 1 when anything was lost or altered."""
    console = Console(highlight=False)
    # either signal ends the server and the clients too
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with interruptible(), temporary_folder() as folder:
        seconds = seconds_of(time)
        output.mkdir(parents=True, exist_ok=True)
        outcome = perform(Stage(experiment, seconds, output, folder, data, Steps(console)))
        page = write_report_of(output, compare)
        console.print()
        for figure in outcome.figures:
            if figure.ours is not None:
                paper = f" (the paper: {figure.limit}{amount(figure.paper)})" if figure.paper else ""
                console.print(f"{figure.title}: {amount(figure.ours)} {figure.unit}{paper}", soft_wrap=True)
        if outcome.counted:
            console.print(verdict(outcome.counted).text, soft_wrap=True)
        console.print(f"\nReport: {page}", soft_wrap=True)
        if not outcome.good:
            raise typer.Exit(1)


@dataclass(frozen=True)
class Used:
    """What a load cost. CPU in cores, memory in bytes."""

    seconds: float
    server: float
    """gateway, PostgreSQL and, where it serves, HTTP"""
    clients: float
    others: float
    """processes outside the experiment"""
    memory: float
    """of the server at most, shared memory counted once"""
    client_memory: float
    wal: int
    """bytes"""


@contextmanager
def watching(
    server: Server, clients: Sequence[psutil.Process], web: psutil.Process | None = None
) -> Iterator[list[Used]]:
    """Yields a list that contains the usage after the end of the block."""
    found: list[Used] = []
    peak, client_peak, over = 0.0, 0.0, threading.Event()

    def look() -> None:
        nonlocal peak, client_peak
        while True:
            own = [server.postmaster, *_children(server.postmaster), server.gateway]
            peak = max(peak, memory_of([*own, *([web] if web else [])]))
            client_peak = max(
                client_peak, memory_of([*clients, *(c for one in clients for c in _children(one))])
            )
            if over.wait(_LOOK):
                return

    thread = threading.Thread(target=look, daemon=True)
    before, client_before, web_before = (
        server.mark(),
        sum(map(cpu_with_children, clients)),
        cpu_with_children(web),
    )
    thread.start()
    try:
        yield found
    finally:
        after = server.mark()
        spent_by_clients = sum(map(cpu_with_children, clients)) - client_before
        spent_by_web = cpu_with_children(web) - web_before
        over.set()
        thread.join()
    lasted = after.moment - before.moment
    spent = after.postgres - before.postgres + after.gateway - before.gateway + spent_by_web
    machine = after.machine - before.machine
    found.append(
        Used(
            seconds=lasted,
            server=max(0.0, spent) / lasted,
            clients=max(0.0, spent_by_clients) / lasted,
            others=max(0.0, machine - spent - spent_by_clients) / lasted,
            memory=peak,
            client_memory=client_peak,
            wal=after.wal - before.wal,
        )
    )


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return process.children(recursive=True)
    return []


def cpu_with_children(process: psutil.Process | None) -> float:
    """Seconds of a process and its children, those that have ended included."""
    if process is None:
        return 0.0
    with suppress(psutil.NoSuchProcess):
        own = sum(process.cpu_times()[:4])
        for child in _children(process):
            with suppress(psutil.NoSuchProcess):
                own += sum(child.cpu_times()[:4])
        return float(own)
    return 0.0


def memory_of(processes: Sequence[psutil.Process], part: str = "Pss") -> float:
    """Proportional set size: pages that several processes share are counted once. `Pss_Anon` is the part
    without files and shared memory."""
    total = 0
    for process in processes:
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
            total += 1024 * int(next(line for line in lines if line.startswith(f"{part}:")).split()[1])
    return float(total)
