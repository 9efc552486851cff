"""`ringlog loadtest all`: the papers' runs that have no result yet, and the report of those that have."""

import importlib.metadata
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ringlog.loader.cli import option
from ringlog.loadtest.experiment.duration import seconds_of
from ringlog.loadtest.experiment.running import OUTPUT, Data, interruptible, names
from ringlog_lab.papers.joining import join
from ringlog_lab.papers.results import Family, Result
from ringlog_lab.papers.runs import RUNS, Run
from ringlog_lab.quiet import busy_seconds, disturbance

_PATIENCE = 600.0
"""Seconds until the load of a build, or of the run before, has left the load average."""
_TRIED = "tried"


@dataclass(frozen=True)
class Session:
    """What runs together."""

    runs: Sequence[Run]
    folder: Path
    family: Family
    seconds: float | None = None
    """of each load, to try the runs; None: those of the list"""
    busy: bool = False
    """also on a busy machine"""
    data: Path | None = None
    patience: float = _PATIENCE
    say: Callable[[str], None] = print

    @property
    def home(self) -> Path:
        """Of the results: those of short loads or of a busy machine never replace others."""
        return self.folder / _TRIED if self.busy or self.seconds is not None else self.folder

    def missing(self) -> list[Run]:
        """Those without a result, the longest first."""
        left = [run for run in self.runs if not self.family.result(self.home, run, self.seconds, self.busy)]
        return sorted(left, key=lambda run: -run.minutes(self.seconds))

    def perform(self, minutes: float) -> bool:
        """Makes those that are missing and fit into these minutes. False if one of them could not be made."""
        self.home.mkdir(parents=True, exist_ok=True)
        until, good = clock.monotonic() + 60 * minutes, True
        for run in self.missing():
            left, needed = (until - clock.monotonic()) / 60, run.minutes(self.seconds)
            if needed > left:
                self.say(f"{run.name}: needs {needed:.0f} min, {max(0.0, left):.0f} are left")
                continue
            why = self._impossible(run) or self._one(run)
            self.say(f"{run.name}: {why or 'done'}")
            good = good and not why
        return good

    def _impossible(self, run: Run) -> str:
        folder = self.data or Path(tempfile.gettempdir())
        free = shutil.disk_usage(folder).free / 1e9
        if self.seconds is None and free < run.room:
            return f"needs {run.room:.0f} GB in {folder}, {free:.0f} are free"
        return ""

    def _one(self, run: Run) -> str:
        """Makes a run; returns the reason why it has no result."""
        remarks = [disturbance(0.0 if self.busy else self.patience), self.family.uncommitted()]
        remark = "; ".join(filter(None, remarks))
        if remark and not self.busy:
            return f"not begun: {remark}"
        own = self.home / run.name
        shutil.rmtree(own, ignore_errors=True)
        words = [sys.executable, "-P", "-m", "ringlog", "loadtest", *run.words(self.seconds)]
        words += ["--output", str(own)]
        if self.data is not None:
            folder = self.data / run.name
            folder.mkdir(exist_ok=True)
            words += ["--data", str(folder)]
        commit, before = self.family.commit(), os.getloadavg()[0]
        began, since = datetime.now(UTC), clock.monotonic()
        machine, ours = busy_seconds(), _children()
        self.say(f"{run.name}: about {run.minutes(self.seconds):.0f} min; {run.command(self.seconds)}")
        if code := _ended(words):
            return f"ended with code {code}"
        took = clock.monotonic() - since
        Result(
            run=run.name,
            paper=run.paper,
            command=run.command(self.seconds),
            version=importlib.metadata.version("ringlog"),
            commit=commit,
            began=f"{began:%Y-%m-%d %H:%M:%S} UTC",
            seconds=60 * run.length if self.seconds is None else self.seconds,
            took=round(took, 1),
            load_before=round(before, 2),
            load_after=round(os.getloadavg()[0], 2),
            others=round(max(0.0, busy_seconds() - machine - (_children() - ours)) / took, 2),
            remark=remark,
        ).write(self.home)
        return ""


def _children() -> float:
    """CPU seconds of all that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _ended(words: list[str]) -> int:
    # of a group of its own: a signal reaches it once, from here, and it ends its server in order
    with subprocess.Popen(words, process_group=0) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.terminate()
            child.wait()
            raise


def everything(
    minutes: Annotated[
        float | None,
        option(
            metavar="N",
            min=0,
            help="Make missing runs that fit into so many minutes. Default: list all runs.",
        ),
    ] = None,
    only: Annotated[str | None, option(metavar="A,B,...", help="These runs only. Default: all.")] = None,
    since: Annotated[
        str | None,
        option(
            metavar="COMMIT",
            help="Results of this commit and later ones count. Default: those of commits since which nothing "
            "that is measured was changed.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        option(metavar="T", help="To try them: loads of this duration. Such results are never joined."),
    ] = None,
    allow_busy: Annotated[
        bool,
        typer.Option("--allow-busy", help="To try them: on a busy machine. Such results are never joined."),
    ] = False,
    into: Annotated[
        Path | None,
        option("--join", metavar="DIR", help="Join the results into this folder, with their report."),
    ] = None,
    data: Data = None,
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the runs and their results.")
    ] = OUTPUT / "papers",
) -> None:
    """All experiments of the five papers at their lengths, on a machine that does nothing else; the next call
    goes on."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with interruptible():
        chosen = names("--only", only, tuple(run.name for run in RUNS))
        session = Session(
            [run for run in RUNS if run.name in chosen],
            output,
            Family(since),
            None if time is None else seconds_of(time),
            allow_busy,
            data,
            say=lambda text: print(text, flush=True),
        )
        good = minutes is None or session.perform(minutes)
        missing = session.missing()
        for run in session.runs:
            state = f"missing, about {run.minutes(session.seconds):.0f} min" if run in missing else "done"
            print(f"{run.name:14} papers/{run.paper}: {state}")
        print(f"{len(missing)} missing, about {sum(run.minutes(session.seconds) for run in missing):.0f} min")
        if into is not None:
            for line in join(session.family, RUNS, output, into):
                print(line)
        if not good:
            raise typer.Exit(1)
