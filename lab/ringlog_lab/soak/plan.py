"""A soak's plan, and its state in a folder: a run that was killed goes on from there."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec
import psutil

from ringlog.loadtest.calls import RECORD
from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.readings import SETS
from ringlog.schema.facility import Facility, Table
from ringlog_lab.soak.inside import Inside
from ringlog_lab.soak.watch import Look

T = TypeVar("T")

DAY = 86_400.0
"""seconds"""
ONLINE = timedelta(days=1)
"""Age at which weeks go into the archive."""
RETENTION = timedelta(days=3)
"""For every tenth table, including its archived weeks."""
PROCESSES = 3
_TENTH = 10
_STEP = 3600.0
_STEPS, _HALVES = 40, 28
_AHEAD = timedelta(weeks=5)
"""The rows end this long before now: no week of theirs is one of those that a new server makes ahead."""
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE = 600.0


@dataclass(frozen=True)
class Plan:
    """The rows of a run. Row i of a table has a fixed time."""

    days: float
    tables: int
    """1: every table is written; n: every nth"""
    thin: float
    """the factor of their cycles"""
    begin: int
    """the first row's time, in microseconds since 1970"""
    facility: str
    """SHA-256 of its file"""

    @property
    def seconds(self) -> float:
        return self.days * DAY

    @property
    def step(self) -> float:
        """Simulated seconds between two looks."""
        return min(_STEP, self.seconds / _STEPS)

    @property
    def half_day(self) -> float:
        """Simulated seconds between two records of PostgreSQL's own figures."""
        return min(DAY / 2, self.seconds / _HALVES)

    def moment(self, seconds: float) -> datetime:
        """The simulated time after these seconds, in UTC."""
        return _EPOCH + (self.begin + round(seconds * 1e6)) * _MICROSECOND

    def passes_midnight(self, before: float, after: float) -> bool:
        return self.moment(before).date() != self.moment(after).date()


def planned(days: float, tables: int, thin: float, facility: str, now: datetime) -> Plan:
    """A plan of a facility (TOML). Its first Monday 00:00 UTC, a new week, comes after 2/7 of the days."""
    latest = now - _AHEAD - timedelta(days=days)
    monday = latest.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=latest.weekday())
    begin = monday - timedelta(days=days * 2 / 7)
    digest = sha256(facility.encode()).hexdigest()
    return Plan(days, tables, thin, (begin - _EPOCH) // _MICROSECOND, digest)


def due(plan: Plan, table: Table, share: float, number: int) -> float:
    """Simulated seconds of a table's row. `share` of a cycle spreads the tables, as processes that were
    started one after another."""
    return (number + share) * table.cycle * plan.thin


def row_time(plan: Plan, table: Table, share: float, number: int) -> int:
    """A row's time in microseconds since 1970: the sets of readings come in turn."""
    exact = plan.begin + round(due(plan, table, share, number) * 1e6)
    return exact - exact % SETS + number % SETS


def with_weeks(facility: str, archive: Path) -> str:
    """A facility file whose old weeks go into an archive, and of every tenth table out of it."""
    if re.search(r"^\[history\]", facility, re.MULTILINE):
        raise LoadTestUsageError("the facility file has [history]: this experiment adds one of its own")
    head, *tables = re.split(r"^(?=\[\[table\]\]$)", facility, flags=re.MULTILINE)
    for index in range(0, len(tables), _TENTH):
        own, mark, rest = tables[index].partition("[[table.column]]")
        own = re.sub(r"^retention *=.*\n", "", own, flags=re.MULTILINE)
        own = own.replace("[[table]]\n", f'[[table]]\nretention = "{RETENTION.days} days"\n', 1)
        tables[index] = own + mark + rest
    history = f'\n[history]\nonline = "{ONLINE.days} day"\narchive = "{archive}"\n'
    return head + "".join(tables) + history


def mondays(plan: Plan, before: float, after: float) -> int:
    """The number of weeks that begin after `before`, up to `after`, in simulated seconds."""

    def weeks(seconds: float) -> int:
        # 1970-01-05 was a Monday
        return (plan.moment(seconds) - datetime(1970, 1, 5, tzinfo=UTC)) // timedelta(weeks=1)

    return weeks(after) - weeks(before)


@dataclass
class State:
    """What a later start must know."""

    plan: Plan
    password: str | None = None
    """of the logins; None: the server was not ready yet"""
    starts: int = 0
    processes: list[tuple[int, float]] = field(default_factory=list)
    """of the latest start, each with the time of its creation"""


class Run:
    def __init__(self, folder: Path, state: State) -> None:
        self.folder = folder
        self.state = state
        self.plan = state.plan
        self.facility = folder / "facility.toml"
        self.server = folder / "server"
        self.archive = folder / "archive"

    @classmethod
    def begun(cls, folder: Path, plan: Plan) -> "Run":
        """The run in this folder, which goes on, or a new one. Raises LoadTestUsageError for one of another
        plan, and for a folder of something else."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "soak.json"
        if not file.exists():
            if any(folder.iterdir()):
                raise LoadTestUsageError(f"{folder} has other files: a run needs a folder of its own")
            return cls(folder, State(plan))
        state = msgspec.json.decode(file.read_bytes(), type=State)
        there = state.plan
        if replace(there, begin=plan.begin) != plan:
            raise LoadTestUsageError(
                f"{folder} has a run of --days {there.days:g} --tables {there.tables} --thin {there.thin:g}:"
                " go on with the same options and facility, or remove the folder"
            )
        return cls(folder, state)

    def start(self, facility: str) -> None:
        """Ends processes that a killed start has left, writes the facility file and counts this start."""
        self.save()
        for pid, created in self.state.processes:
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                if process.create_time() == created:
                    process.terminate()
                    process.wait(_PATIENCE)
        if self.state.password is None:
            for each in (self.server, self.archive):
                shutil.rmtree(each, ignore_errors=True)
        self.archive.mkdir(exist_ok=True)
        self.facility.write_text(with_weeks(facility, self.archive))
        # without a line that a kill has cut
        for name, there in (("looks", self.looks()), ("insides", self.insides())):
            (self.folder / name).unlink(missing_ok=True)
            for one in there:
                self.add(one)
        self.state.starts += 1
        self.state.processes = []
        self.save()

    def started(self, *pids: int) -> None:
        self.state.processes += [(pid, psutil.Process(pid).create_time()) for pid in pids]
        self.save()

    def save(self) -> None:
        new = self.folder / "soak.json.new"
        new.write_bytes(msgspec.json.encode(asdict(self.state)))
        new.replace(self.folder / "soak.json")

    def calls(self, process: int) -> Path:
        """The file of the calls of a process that writes."""
        return self.folder / f"calls{process}"

    def rows(self) -> int:
        """The number of calls so far."""
        files = (self.calls(process) for process in range(PROCESSES))
        return sum(file.stat().st_size for file in files if file.exists()) // RECORD.size

    def looks(self) -> list[Look]:
        return self._read("looks", Look)

    def insides(self) -> list[Inside]:
        return self._read("insides", Inside)

    def _read(self, name: str, kind: type[T]) -> list[T]:
        file = self.folder / name
        return [*_whole(file.read_bytes(), kind)] if file.exists() else []

    def add(self, one: Look | Inside) -> None:
        with (self.folder / ("looks" if isinstance(one, Look) else "insides")).open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")

    def remove(self) -> None:
        """Removes the run's files, and nothing else."""
        for folder in (self.server, self.archive):
            shutil.rmtree(folder, ignore_errors=True)
        names = ("soak.json", "looks", "insides", "facility.toml", "facility.log")
        for file in [*map(self.folder.joinpath, names), *map(self.calls, range(PROCESSES))]:
            file.unlink(missing_ok=True)


def _whole(content: bytes, kind: type[T]) -> Iterator[T]:
    """The records; a kill may have cut a line."""
    for line in content.splitlines():
        with suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line, type=kind)


def shares(tables: Sequence[Table]) -> list[float]:
    """The part of a cycle by which each table is late."""
    return [index / len(tables) for index in range(len(tables))]


def chosen_tables(plan: Plan, tables: Sequence[Table]) -> range:
    """The places of the tables that are written."""
    return range(0, len(tables), plan.tables)


def foreseen(plan: Plan, facility: Facility) -> tuple[int, int]:
    """The rows of these days at the normal rate, and those of the run."""
    rates = [1 / table.cycle for table in facility.tables]
    chosen = sum(rates[index] for index in chosen_tables(plan, facility.tables))
    return round(plan.seconds * sum(rates)), round(plan.seconds * chosen / plan.thin)
