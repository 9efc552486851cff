"""Processes, each for one job or several, which are restarted when they die and end on request."""

import gc
import logging
import multiprocessing
import multiprocessing.connection
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from types import TracebackType
from typing import Self

from ringlog.clients.figures import State
from ringlog.clients.pauses import growing_pauses
from ringlog.clients.reconnecting import Failed, Released, WrittenByAnother
from ringlog.loader.statistics import Statistics, shared
from ringlog.loader.stop_signal import StopSignal

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
# Seconds in which a process ends on request: more than a writer needs to send waiting rows and to release its
# table (twice ringlog.clients.writer.GRACE). A killed one has done neither.
_GRACE = 20.0
# A process that ran this long had a successful start: its next restart is quick again.
_SETTLED = 60.0


@dataclass(frozen=True)
class Job:
    """The work of a process, or of a thread of one. `run` returns when the work is done; it raises Failed
    when it cannot continue and would fail again: it is not restarted then."""

    name: str
    run: Callable[[Statistics, StopSignal], None]


@dataclass
class _Place:
    job: Job
    statistics: Statistics

    @property
    def is_over(self) -> bool:
        """Whether the job is done or failed; it is tried again only if another process had its table."""
        return self.statistics.state in (State.DONE, State.FAILED, State.REFUSED)

    @property
    def is_refused(self) -> bool:
        return self.statistics.state == State.REFUSED


@dataclass
class _Group:
    """The jobs of a process."""

    places: Sequence[_Place]
    process: ForkProcess | None = None
    started: float = 0.0
    due: float = 0.0
    pauses: Iterator[float] = field(default_factory=lambda: growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE))


class Supervisor:
    """Runs jobs as forked processes, which share the imported modules: 60 of them remain small.

    Each job has a process, or `processes` share them, a thread each. The caller must have no other threads.
    Used as a context manager it leaves no process behind.
    """

    def __init__(self, jobs: Sequence[Job], processes: int | None = None) -> None:
        self._stop = StopSignal()
        self._places = [
            _Place(job, statistics) for job, statistics in zip(jobs, shared(len(jobs)), strict=True)
        ]
        count = min(processes or len(jobs), len(jobs))
        self._groups = [_Group(self._places[number::count]) for number in range(count)]

    @property
    def statistics(self) -> dict[str, Statistics]:
        """Figures by name of the job; they stay readable after the processes ended."""
        return {place.job.name: place.statistics for place in self._places}

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the jobs now running."""
        return {
            place.job.name: group.process.pid
            for group in self._groups
            if group.process is not None and group.process.pid is not None
            for place in group.places
        }

    @property
    def finished(self) -> bool:
        """Whether every job is done or failed for good."""
        return all(place.is_over for place in self._places)

    def renew(self, job: Job) -> None:
        """Replaces the job of this name from its process's next start on."""
        for place in self._places:
            if place.job.name == job.name:
                place.job = job

    def start(self) -> None:
        """Starts all processes."""
        # Existing objects live as long as the processes: excluded from garbage collection, their pages stay
        # shared.
        gc.collect()
        gc.freeze()
        for group in self._groups:
            self._start(group)

    def tend(self, seconds: float) -> None:
        """Restarts dead processes for `seconds`, with growing pauses."""
        until = time.monotonic() + seconds
        while True:
            moment = time.monotonic()
            dead = [group for group in self._groups if group.process is None and self._goes_on(group)]
            for group in dead:
                if group.due <= moment:
                    for place in group.places:
                        place.statistics.restarts += place.is_refused or not place.is_over
                    self._start(group)
            if moment >= until:
                return
            wake = min([until, *(group.due for group in dead if group.process is None)])
            running = [group.process.sentinel for group in self._groups if group.process is not None]
            if running:
                multiprocessing.connection.wait(running, max(0.0, wake - moment))
            else:
                time.sleep(max(0.0, wake - moment))
            for group in self._groups:
                if group.process is not None and group.process.exitcode is not None:
                    self._bury(group)

    def stop(self, grace: float = _GRACE) -> None:
        """Lets every process finish its call and end; kills those that have not after `grace` seconds."""
        self._stop.release()
        until = time.monotonic() + grace
        running = [group.process for group in self._groups if group.process is not None]
        for process in running:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                log.warning("%s: did not end within %.0f s, and is killed", process.name, grace)
                process.kill()
                process.join()
            process.close()
        for group in self._groups:
            group.process = None
        self._stop.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _goes_on(self, group: _Group) -> bool:
        """Whether its process is to be started again: for a refused job while there are others."""
        return any(
            place.statistics.state == State.DEAD or (place.is_refused and not self.finished)
            for place in group.places
        )

    def _start(self, group: _Group) -> None:
        places = [place for place in group.places if place.is_refused or not place.is_over]
        for place in places:
            if not place.is_refused:
                place.statistics.state = State.STARTING
        group.process = multiprocessing.get_context("fork").Process(
            target=_live, args=(places, self._stop), name=" ".join(place.job.name for place in places)
        )
        group.started = time.monotonic()
        group.process.start()

    def _bury(self, group: _Group) -> None:
        assert group.process is not None
        code = group.process.exitcode
        group.process.close()
        group.process = None
        for place in group.places:
            if place.is_over:
                continue
            place.statistics.state = State.DONE if code == 0 else State.DEAD
            if code is not None and code < 0:
                place.statistics.message = f"killed by {signal.Signals(-code).name}"
        if code != 0:
            if time.monotonic() - group.started >= _SETTLED:
                group.pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
            group.due = time.monotonic() + next(group.pauses)


def _live(places: Sequence[_Place], stop: StopSignal) -> None:
    # Ctrl-C and systemd's SIGTERM reach the whole group: only the supervisor handles them.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    stop.watch()
    for place in places:
        place.statistics.start_cpu(len(places))
    if len(places) == 1:
        sys.exit(not _do(places[0], stop))
    stops = [stop.for_thread() for _ in places]
    well = [True] * len(places)

    def one(number: int) -> None:
        place = places[number]
        well[number] = _do(place, stops[number])
        if well[number]:
            # ended because another has failed: not done
            if all(well):
                place.statistics.state = State.DONE
        elif not place.is_over:
            # all are started again, each with its present job of the supervisor
            for other in stops:
                other.set_here()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(places))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(
        any(
            place.is_refused or not place.is_over
            for place, good in zip(places, well, strict=True)
            if not good
        )
    )


def _do(place: _Place, stop: StopSignal) -> bool:
    """Does a job. Returns False when it failed; its statistics have the reason."""
    statistics = place.statistics
    try:
        place.job.run(statistics, stop)
    except Released:
        pass
    except WrittenByAnother as error:
        statistics.message = str(error)
        statistics.state = State.REFUSED
        return False
    except Failed as error:
        statistics.message = str(error)
        statistics.state = State.FAILED
        return False
    except Exception as error:
        statistics.message = f"{type(error).__name__}: {error}"
        return False
    finally:
        statistics.count_cpu()
    return True
