"""All experiments one after another, each as the command that repeats it."""

import subprocess
import sys
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from ringlog.loadtest import lab
from ringlog.loadtest.experiment.catalogue import write_report_of
from ringlog.loadtest.experiment.duration import seconds_of
from ringlog.loadtest.experiment.running import names

_LEAST = 1.0
"""Seconds of a load, at least."""


_SOAKED = 200.0
"""Seconds of the rows' time that pass in one of `soak`."""
_LEAST_DAYS = 0.001


@dataclass(frozen=True)
class Experiment:
    """A command, its number of loads, and its time besides them."""

    name: str
    loads: float
    beside: float
    """seconds for the start of servers, for data and for the check of rows; on two cores"""

    def each(self, seconds: float) -> float:
        """Seconds of each load, from the total for all."""
        return max(_LEAST, seconds / self.loads) if self.loads else 0.0

    def estimate(self, seconds: float) -> float:
        return self.loads * self.each(seconds) + self.beside


_OF_SPRING8 = (
    Experiment("normal", 1, 25),
    Experiment("max", 3, 45),
    Experiment("columns", 21, 60),
    Experiment("users", 10, 120),
)
_OF_THE_LAB = (
    Experiment("ess", 90, 900),
    Experiment("saturation", 0, 5),
    Experiment("sdalinac", 60, 60),
    Experiment("half", 30, 180),
    Experiment("soak", 1, 120),
)


def run_all(time: str, only: str | None, data: Path | None, output: Path, compare: Path | None) -> None:
    """Runs them and writes one report. Exit code 1 if one of them failed."""
    seconds = seconds_of(time)
    experiments = _OF_SPRING8 + (_OF_THE_LAB if lab.installed() else ())
    wanted = names("--only", only, tuple(one.name for one in experiments))
    chosen = [one for one in experiments if one.name in wanted]
    console = Console(highlight=False)
    left = sum(one.estimate(seconds) for one in chosen)
    console.print(f"{len(chosen)} experiments, about {_minutes(left)}; a busy machine needs longer")
    began, foreseen, failed = clock.monotonic(), 0.0, []
    for number, one in enumerate(chosen, start=1):
        # the experiments so far show the speed of this machine
        took = clock.monotonic() - began
        slower = took / foreseen if foreseen else 1.0
        console.rule(
            f"{number} of {len(chosen)}: {one.name}; about {_minutes(slower * left)} left", align="left"
        )
        if not _run(one, seconds, data, output, console.print):
            failed.append(one.name)
        foreseen += one.estimate(seconds)
        left -= one.estimate(seconds)
    page = write_report_of(output, compare)
    console.print(f"\nAll of them took {_minutes(clock.monotonic() - began)}. Report: {page}")
    if failed:
        console.print(f"Failed: {', '.join(failed)}")
        raise typer.Exit(1)


def _run(
    one: Experiment, seconds: float, data: Path | None, output: Path, say: Callable[[str], None]
) -> bool:
    words = [sys.executable, "-P", "-m", "ringlog", "loadtest", one.name, "--output", str(output)]
    if one.loads:
        words += _length(one, one.each(seconds))
        if data is not None:
            words += ["--data", str(data)]
    code = subprocess.run(words).returncode
    if code:
        say(f"{one.name} ended with code {code}")
    return code == 0


def _length(one: Experiment, seconds: float) -> list[str]:
    if one.name == "soak":
        return ["--days", f"{max(_LEAST_DAYS, seconds * _SOAKED / 86_400):.3f}"]
    return ["--time", f"{seconds:.3g}s"]


def _minutes(seconds: float) -> str:
    return f"{max(1, round(seconds / 60))} min"
