"""The environment of an experiment: a server under load, the clients, folders, time."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ringlog.clients
from ringlog.loader.schedule import SECOND, now
from ringlog.loadtest.experiment.machine import load_average, settings, this_machine, versions
from ringlog.loadtest.experiment.native import build
from ringlog.loadtest.experiment.progress import Steps
from ringlog.loadtest.spring8.results import Result, Run, Sample
from ringlog.loadtest.spring8.sampling import Sampler, write_csv
from ringlog.loadtest.spring8.swarm import Workers
from ringlog.loadtest.spring8.target import Target, own_target
from ringlog.schema.facility import Facility

CTLIB = Path(ringlog.clients.__file__).parent / "ctlib"
_TICK = 0.25


@dataclass
class Experiment:
    """The settings of an experiment, and its folders."""

    command: str
    facility_file: Path
    seconds: float
    clients: Sequence[str]
    workers: Workers
    output: Path
    folder: Path
    """temporary"""
    data: Path | None
    """for our own server's data; None: temporary"""
    given: Target | None
    """a server that runs already; None: our own"""
    steps: Steps
    interrupted: bool = field(default=False, init=False)
    """Ctrl-C: the load ends, and its report is made"""
    began: datetime = field(default_factory=lambda: datetime.now(UTC), init=False)
    load_before: float = field(default_factory=load_average, init=False)
    _versions: dict[str, str] = field(default_factory=dict, init=False)
    _settings: dict[str, str] = field(default_factory=dict, init=False)
    _servers: int = field(default=0, init=False)

    @contextmanager
    def target(self, facility_file: Path, users: int = 0) -> Iterator[Target]:
        """The server under load, with the facility."""
        if self.given is not None:
            self._look(self.given)
            yield self.given
            return
        self._servers += 1
        own = self.folder / f"server{self._servers}"
        own.mkdir(mode=0o755)
        shutil.copy(facility_file, own / "facility.toml")
        data = own / "data" if self.data is None else self.data / f"server{self._servers}"
        self.steps.say(f"Starting a server with {facility_file.name} on {data}")
        try:
            with own_target(own / "facility.toml", data, users) as target:
                self._look(target)
                yield target
        finally:
            # frees gigabytes for the next server
            shutil.rmtree(data, ignore_errors=True)

    def _look(self, target: Target) -> None:
        self._versions |= versions(target.conninfo)
        self._settings = settings(target.conninfo)

    def programs(self) -> Path:
        """The clients in C, built."""
        folder = self.folder / "programs"
        if not folder.exists():
            folder.mkdir()
            self.steps.say("Building the clients in C")
            build(folder)
            build(folder, CTLIB)
            version = subprocess.run([folder / "writer", "-V"], capture_output=True, text=True, check=True)
            self._versions["ct-library of the clients in C"] = version.stdout.strip()
        return folder

    def watch(
        self,
        sampler: Sampler,
        title: str,
        look: Callable[[], str] = lambda: "",
        over: Callable[[], bool] = lambda: False,
    ) -> tuple[int, int]:
        """Takes samples while the load lasts. `look` returns the text beside the bar. Returns the begin and
        the end, in microseconds since 1970."""
        began = now()
        sampler.begin()
        due = sampler.interval
        with self.steps.step(title, self.seconds) as progress:
            try:
                while (done := sampler.seconds) < self.seconds and not over():
                    if done >= due:
                        sampler.add()
                        due += sampler.interval
                        progress(done, look())
                    time.sleep(min(_TICK, max(0.0, self.seconds - done)))
            except KeyboardInterrupt:
                self.interrupted = True
            sampler.add()
            progress(sampler.seconds, look())
        return began, now()

    def run(self, label: str, began: int, samples: list[Sample], *files: str, **figures: Any) -> Run:
        """A load with these figures; its samples are written down."""
        file = f"{label}.samples.csv"
        write_csv(samples, self.output / file)
        return Run(
            began=utc(datetime.fromtimestamp(began / SECOND, UTC)),
            load_before=self.load_before,
            cores=this_machine(None).cores,
            samples=samples,
            files=[*files, file],
            **figures,
        )

    def result(self, experiment: str, facility: str, runs: list[Run]) -> Result:
        """The experiment's result, written down."""
        result = Result(
            experiment=experiment,
            command=self.command,
            began=utc(self.began),
            machine=this_machine(None if self.given else self.data or self.folder),
            versions=self._versions,
            settings=self._settings,
            facility=facility,
            runs=runs,
        )
        result.write(self.output)
        return result


@dataclass(frozen=True)
class Scene:
    """A server with its facility, and the file it is in."""

    experiment: Experiment
    target: Target
    facility: Facility
    file: Path


def utc(moment: datetime) -> str:
    """A time as displayed."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
