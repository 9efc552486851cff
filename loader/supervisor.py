"""Processes, one for each job, that are started again when they die and end when told."""

import gc
import multiprocessing
import multiprocessing.connection
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from types import TracebackType
from typing import Self

from ringlog.clients.figures import State
from ringlog.clients.line import Failed, Released
from ringlog.clients.pauses import growing_pauses
from ringlog.loader.leash import Leash
from ringlog.loader.statistics import Statistics, shared

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
# A process that ran this long had no trouble at its start: its next restart is quick again.
_SETTLED = 60.0


@dataclass(frozen=True)
class Job:
    """What one process does. `run` returns when it has nothing more to do; raises Failed when it cannot go on
    and would fail again: its process is not started again then."""

    name: str
    run: Callable[[Statistics, Leash], None]


@dataclass
class _Place:
    job: Job
    statistics: Statistics
    process: ForkProcess | None = None
    started: float = 0.0
    due: float = 0.0
    pauses: Iterator[float] = field(default_factory=lambda: growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE))


class Supervisor:
    """Runs jobs as forked processes. Fork keeps 60 of them small: they share what was imported before.

    The caller must have no other threads. Used as a context manager it leaves no process behind.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._leash = Leash()
        self._places = [
            _Place(job, statistics) for job, statistics in zip(jobs, shared(len(jobs)), strict=True)
        ]

    @property
    def statistics(self) -> dict[str, Statistics]:
        """Figures by name of the job; they stay readable after the processes ended."""
        return {place.job.name: place.statistics for place in self._places}

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the jobs now running."""
        return {
            place.job.name: place.process.pid
            for place in self._places
            if place.process is not None and place.process.pid is not None
        }

    @property
    def finished(self) -> bool:
        """Whether every job is done or failed for good."""
        return all(place.statistics.state in (State.DONE, State.FAILED) for place in self._places)

    def renew(self, job: Job) -> None:
        """The job of this name is this one from its process's next start on."""
        for place in self._places:
            if place.job.name == job.name:
                place.job = job

    def start(self) -> None:
        """Starts all processes."""
        # What exists now lives as long as the processes: kept out of collections, its pages stay shared.
        gc.collect()
        gc.freeze()
        for place in self._places:
            self._start(place)

    def tend(self, seconds: float) -> None:
        """Spends `seconds` on restarting what died, with growing pauses."""
        until = time.monotonic() + seconds
        while True:
            moment = time.monotonic()
            for place in self._places:
                if place.process is None and place.statistics.state == State.DEAD and place.due <= moment:
                    place.statistics.restarts += 1
                    self._start(place)
            if moment >= until:
                return
            wake = min(
                [until, *(place.due for place in self._places if place.statistics.state == State.DEAD)]
            )
            running = [place.process.sentinel for place in self._places if place.process is not None]
            if running:
                multiprocessing.connection.wait(running, max(0.0, wake - moment))
            else:
                time.sleep(max(0.0, wake - moment))
            for place in self._places:
                if place.process is not None and place.process.exitcode is not None:
                    self._bury(place)

    def stop(self, grace: float = 5.0) -> None:
        """Lets every process finish its call and end; kills those that have not after `grace` seconds."""
        self._leash.release()
        until = time.monotonic() + grace
        running = [place.process for place in self._places if place.process is not None]
        for process in running:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        for place in self._places:
            place.process = None
        self._leash.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self, place: _Place) -> None:
        place.statistics.state = State.STARTING
        place.process = multiprocessing.get_context("fork").Process(
            target=_live, args=(place.job, place.statistics, self._leash), name=place.job.name
        )
        place.started = time.monotonic()
        place.process.start()

    def _bury(self, place: _Place) -> None:
        assert place.process is not None
        code = place.process.exitcode
        place.process.close()
        place.process = None
        if code == 0:
            place.statistics.state = State.DONE
        elif place.statistics.state != State.FAILED:
            place.statistics.state = State.DEAD
            if code is not None and code < 0:
                place.statistics.message = f"killed by {signal.Signals(-code).name}"
            if time.monotonic() - place.started >= _SETTLED:
                place.pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
            place.due = time.monotonic() + next(place.pauses)


def _live(job: Job, statistics: Statistics, leash: Leash) -> None:
    # Ctrl-C reaches the whole foreground group: the supervisor alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    leash.wear()
    statistics.start_cpu()
    try:
        job.run(statistics, leash)
    except Released:
        pass
    except Failed as error:
        statistics.message = str(error)
        statistics.state = State.FAILED
        sys.exit(1)
    except Exception as error:
        statistics.message = f"{type(error).__name__}: {error}"
        sys.exit(1)
    finally:
        statistics.count_cpu()
