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
from ringlog.loader.control.stop_signal import StopSignal
from ringlog.loader.statistics import Statistics, shared

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
class _Task:
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

    tasks: Sequence[_Task]
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
        self._tasks = [
            _Task(job, statistics) for job, statistics in zip(jobs, shared(len(jobs)), strict=True)
        ]
        count = min(processes or len(jobs), len(jobs))
        self._groups = [_Group(self._tasks[number::count]) for number in range(count)]

    @property
    def statistics(self) -> dict[str, Statistics]:
        """Figures by name of the job; they stay readable after the processes ended."""
        return {task.job.name: task.statistics for task in self._tasks}

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the jobs now running."""
        return {
            task.job.name: group.process.pid
            for group in self._groups
            if group.process is not None and group.process.pid is not None
            for task in group.tasks
        }

    @property
    def finished(self) -> bool:
        """Whether every job is done or failed for good."""
        return all(task.is_over for task in self._tasks)

    def renew(self, job: Job) -> None:
        """Replaces the job of this name from its process's next start on."""
        for task in self._tasks:
            if task.job.name == job.name:
                task.job = job

    def start(self) -> None:
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
                    for task in group.tasks:
                        task.statistics.restarts += task.is_refused or not task.is_over
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
                    self._reap(group)

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
            task.statistics.state == State.DEAD or (task.is_refused and not self.finished)
            for task in group.tasks
        )

    def _start(self, group: _Group) -> None:
        tasks = [task for task in group.tasks if task.is_refused or not task.is_over]
        for task in tasks:
            if not task.is_refused:
                task.statistics.state = State.STARTING
        group.process = multiprocessing.get_context("fork").Process(
            target=_live, args=(tasks, self._stop), name=" ".join(task.job.name for task in tasks)
        )
        group.started = time.monotonic()
        group.process.start()

    def _reap(self, group: _Group) -> None:
        assert group.process is not None
        code = group.process.exitcode
        group.process.close()
        group.process = None
        for task in group.tasks:
            if task.is_over:
                continue
            task.statistics.state = State.DONE if code == 0 else State.DEAD
            if code is not None and code < 0:
                task.statistics.message = f"killed by {signal.Signals(-code).name}"
        if code != 0:
            if time.monotonic() - group.started >= _SETTLED:
                group.pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
            group.due = time.monotonic() + next(group.pauses)


def _live(tasks: Sequence[_Task], stop: StopSignal) -> None:
    # Ctrl-C and systemd's SIGTERM reach the whole group: only the supervisor handles them.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    stop.watch()
    for task in tasks:
        task.statistics.start_cpu(len(tasks))
    if len(tasks) == 1:
        sys.exit(not _do(tasks[0], stop))
    stops = [stop.for_thread() for _ in tasks]
    well = [True] * len(tasks)
    again = threading.Event()

    def one(number: int) -> None:
        task = tasks[number]
        well[number] = _do(task, stops[number])
        if well[number]:
            # one that was ended to be started again is not done
            if not again.is_set():
                task.statistics.state = State.DONE
        elif not task.is_over:
            # all are started again, each with its present job of the supervisor
            again.set()
            for other in stops:
                other.set_here()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(
        any(task.is_refused or not task.is_over for task, good in zip(tasks, well, strict=True) if not good)
    )


def _do(task: _Task, stop: StopSignal) -> bool:
    """Does a job. Returns False when it failed; its statistics have the reason."""
    statistics = task.statistics
    try:
        task.job.run(statistics, stop)
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
