"""The results of a load test, and their JSON, from which reports can be made again.

Libraries for load tests only are imported where they are used, because every command of ringlog imports this
module.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from ringlog.loadtest.experiment.machine import Machine
from ringlog.loadtest.experiment.outcome import read_json, write_json

# papers/004 counts 4 bytes a value.
VALUE_BYTES = 4
KILOBYTE = 1000

EXPERIMENTS = ("normal", "max", "columns", "users")
"""In the order of a report."""

WIDE = 200
"""Data columns of the tables that the paper names the insertion time of."""

PYTHON, CTLIB, NATIVE = "python", "ctlib", "native"
"""Kinds of clients: users of locust; ct-library writers in C, a process each; such requests sent again."""
KINDS = (PYTHON, CTLIB, NATIVE)


@dataclass(frozen=True)
class Calls:
    """Calls of one kind. Times in seconds; a time is None when there was no call or it was not measured."""

    answered: int
    failed: int
    mean: float | None
    p50: float | None
    p99: float | None
    longest: float | None


@dataclass(frozen=True)
class TableFigures:
    """The figures of one table's writers: a point of figure 4."""

    name: str
    columns: int
    """data columns, without seq_no and time"""
    rows: float
    """rows a second"""
    mean: float
    """seconds a row"""
    longest: float


@dataclass(frozen=True)
class Sample:
    """Figures at a moment. CPU in seconds and bytes since the load began; None: cannot be seen from here."""

    seconds: float
    """since the load began"""
    load_average: float
    machine: float
    """busy time of all cores, of all processes"""
    postgres: float | None
    gateway: float | None
    clients: float
    wal_bytes: int | None
    wal_operations: int | None
    table_bytes: int | None
    """written to and read from tables and indexes"""
    table_operations: int | None


@dataclass(frozen=True)
class Check:
    """Acknowledged rows, and where they were found. None: not checked."""

    acknowledged: int
    in_rings: int
    in_logs: int
    left_out: int
    """by the log policies of their tables"""
    altered: int
    """stored rows with other values than were sent"""
    lost: int

    @classmethod
    def of_every_row(cls, acknowledged: int, in_logs: int, stale: int, altered: int) -> "Check":
        """Counts for logs that store every row; `stale` rows of rings are not the latest of their seq_no."""
        return cls(
            acknowledged=acknowledged,
            in_rings=acknowledged - stale,
            in_logs=in_logs,
            left_out=0,
            altered=altered,
            lost=max(0, acknowledged - in_logs, stale),
        )

    @property
    def good(self) -> bool:
        return not self.lost and not self.altered

    def __str__(self) -> str:
        return (
            f"{self.acknowledged:,} rows acknowledged, {self.in_rings:,} found in rings, {self.in_logs:,} in "
            f"logs, {self.left_out:,} left out by log policies, {self.altered:,} with other values than were "
            f"sent, {self.lost:,} lost"
        )


@dataclass(frozen=True)
class Run:
    """One load: so many users of one kind for so many seconds."""

    clients: str
    """one of KINDS"""
    description: str
    users: int
    logged_in: int
    """users that were logged in when the load began"""
    columns: float
    """data columns a table, on average"""
    began: str
    """UTC"""
    seconds: float
    load_before: float
    """load average before the server was started"""
    cores: int
    rows: float
    """rows acknowledged a second"""
    kilobytes: float
    """of data in them a second"""
    writes: Calls
    wide: Calls
    """those of tables with 200 data columns"""
    tables: list[TableFigures]
    samples: list[Sample]
    check: Check
    asked: float | None = None
    """rows a second requested by the users' pace; None: as many as possible"""
    reads: Calls | None = None
    logins: Calls | None = None
    closing: Sample | None = None
    """after a checkpoint at the end, when everything has been written to its place; at the normal rate"""
    by_second: list[tuple[int, float]] = field(default_factory=list)
    """rows acknowledged in each second, and the longest that one of them took"""
    files: list[str] = field(default_factory=list)
    """raw figures, in addition to the report"""
    complaint: str = ""
    """the errors of failed calls, as users saw them"""

    def share(self, who: str) -> float | None:
        """The part of the machine's CPU that the machine, postgres, gateway or clients took, 0 to 1."""
        if len(self.samples) < 2:
            return None
        used = getattr(self.samples[-1], who)
        lasted = self.samples[-1].seconds - self.samples[0].seconds
        return None if used is None else float(used - getattr(self.samples[0], who)) / lasted / self.cores

    @property
    def server_share(self) -> float | None:
        """The share of PostgreSQL and the gateway together."""
        postgres, gateway = self.share("postgres"), self.share("gateway")
        return None if postgres is None or gateway is None else postgres + gateway


@dataclass(frozen=True)
class Result:
    experiment: str
    command: str
    began: str
    """UTC"""
    machine: Machine
    versions: dict[str, str]
    settings: dict[str, str]
    facility: str
    runs: list[Run]

    @property
    def good(self) -> bool:
        """Whether everything acknowledged is stored."""
        return all(run.check.good for run in self.runs)

    def write(self, folder: Path) -> None:
        """Writes as JSON, by the experiment's name, the part of it that its report shows."""
        write_json(
            replace(self, runs=[self._shown(run) for run in self.runs]), folder / f"{self.experiment}.json"
        )

    def _shown(self, run: Run) -> Run:
        if self.experiment != "normal":
            # only their difference is shown
            run = replace(run, samples=[*run.samples[:1], *run.samples[1:][-1:]])
        return run if self.experiment == "max" else replace(run, tables=[], by_second=[])


def read_results(folder: Path, experiments: tuple[str, ...]) -> list[Result]:
    """The results of the experiments in a folder, in this order. Raises LoadTestError."""
    files = [folder / f"{experiment}.json" for experiment in experiments]
    return [read_json(file, Result) for file in files if file.exists()]
