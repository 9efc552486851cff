"""The results of a run of the benchmark, with which later runs are compared."""

import importlib.metadata
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psutil

from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.experiment.machine import file_system
from ringlog.loadtest.experiment.outcome import write_json
from ringlog.loadtest.experiment.verification import Check
from ringlog_lab.bench.reading import Reading
from ringlog_lab.bench.text import Compiling, Timing
from ringlog_lab.native_load import Measurement
from ringlog_lab.record import Disturbed, Figure

FORMAT = 1


@dataclass
class _Header:
    format: int


@dataclass
class Results:
    commit: str
    started: str
    machine: dict[str, str | int | float]
    options: dict[str, Any]
    settings: dict[str, str] = field(default_factory=dict)
    idle_memory: int | None = None
    """resident bytes of the gateway's process before its first connection"""
    measurements: list[Measurement] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    """of usual texts"""
    compiling: list[Compiling] = field(default_factory=list)
    disturbed: list[Disturbed] = field(default_factory=list)
    """writers alone, and during texts and archiving"""
    kept: list[Figure] = field(default_factory=list)
    """of ten years, and of HALF's load"""
    old_weeks: list[Figure] = field(default_factory=list)
    """SQL over archived weeks"""
    check: Check | None = None
    format: int = FORMAT

    def of(self, part: str, contender: str) -> list[Measurement]:
        return [one for one in self.measurements if one.part == part and one.contender == contender]

    def during(self, work: str, *, alone: bool = False) -> list[Disturbed]:
        """Writers during a work, or those of the same part that were alone."""
        return [one for one in self.disturbed if one.work == work and (one.amount == 0) == alone]

    def median(
        self, figure: Callable[[Measurement], float | None], part: str, contender: str
    ) -> float | None:
        """The median over the rounds of a figure; None when it was not measured."""
        figures = (figure(one) for one in self.of(part, contender))
        return median(figure for figure in figures if figure is not None)

    def reading_rate(self, contender: str) -> float | None:
        """The median over the rounds of the rows read in a second; None when it was not measured."""
        return median(one.rate for one in self.readings if one.contender == contender)

    def write(self, file: Path) -> None:
        write_json(self, file)

    @classmethod
    def read(cls, file: Path) -> "Results":
        """Reads what `write` wrote. Raises LoadTestUsageError for anything else."""
        try:
            content = file.read_bytes()
            if msgspec.json.decode(content, type=_Header).format != FORMAT:
                raise LoadTestUsageError(f"{file} was written by another version of ringlog bench")
            return msgspec.json.decode(content, type=Results)
        except OSError as error:
            raise LoadTestUsageError(f"{file} cannot be read: {error.strerror}") from None
        except (UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise LoadTestUsageError(f"{file} has no results of ringlog bench: {error}") from None


def median(figures: Iterable[float]) -> float | None:
    found = [*figures]
    return statistics.median(found) if found else None


def new_results(options: dict[str, Any], data: Path) -> Results:
    """The empty results of a run that begins now on this machine."""
    return Results(_commit(), f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC", _machine(data), options)


def _commit() -> str:
    """The commit of the sources, otherwise the version of the package."""
    described = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude", "*"],
        capture_output=True,
        text=True,
    )
    return described.stdout.strip() or f"version {importlib.metadata.version('ringlog')}"


def _machine(data: Path) -> dict[str, str | int | float]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return {
        "processor": model or platform.machine(),
        "cores": psutil.cpu_count() or 1,
        "memory": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "file_system": file_system(data),
        "load_before": os.getloadavg()[0],
    }
