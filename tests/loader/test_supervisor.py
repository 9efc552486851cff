"""Processes: restarted when they die, ended on request, never left behind."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tending import tend_until

from ringlog.clients.figures import State
from ringlog.clients.reconnecting import Failed
from ringlog.loader.control.stop_signal import StopSignal
from ringlog.loader.statistics import Statistics
from ringlog.loader.supervisor import Job, Supervisor
from waiting import PATIENCE, is_alive, wait_until


def count(statistics: Statistics, stop: StopSignal) -> None:
    statistics.state = State.RUNNING
    while True:
        stop.sleep(0.01)
        statistics.sent += 1


def test_a_killed_process_is_started_again() -> None:
    with Supervisor([Job("a", count), Job("b", count)]) as supervisor:
        supervisor.start()
        a = supervisor.statistics["a"]
        tend_until(supervisor, lambda: a.sent)
        first, other = supervisor.pids["a"], supervisor.pids["b"]
        os.kill(first, signal.SIGKILL)
        tend_until(supervisor, lambda: a.state == State.DEAD)
        assert a.message == "killed by SIGKILL"
        sent = a.sent
        tend_until(supervisor, lambda: a.sent > sent)
        assert supervisor.pids["a"] != first
        assert supervisor.pids["b"] == other
        assert (a.restarts, supervisor.statistics["b"].restarts) == (1, 0)


@pytest.mark.long
def test_pauses_between_restarts_grow(tmp_path: Path) -> None:
    starts = tmp_path / "starts"

    def fail(statistics: Statistics, stop: StopSignal) -> None:
        with starts.open("a") as file:
            file.write(f"{time.monotonic()}\n")
        raise OSError("the source is away")

    with Supervisor([Job("a", fail)]) as supervisor:
        supervisor.start()
        a = supervisor.statistics["a"]
        tend_until(supervisor, lambda: a.restarts >= 4)
        assert a.message == "OSError: the source is away"
    times = [float(line) for line in starts.read_text().split()]
    # half a second, 1 s and 2 s, each shortened by at most half, plus the time that a process needs
    for (earlier, later), least in zip(itertools.pairwise(times), (0.25, 0.5, 1.0), strict=False):
        assert later - earlier >= least


def test_a_finished_or_finally_failed_job_is_not_restarted() -> None:
    def done(statistics: Statistics, stop: StopSignal) -> None:
        statistics.sent = 1

    def failed(statistics: Statistics, stop: StopSignal) -> None:
        raise Failed("line 7 is no number")

    with Supervisor([Job("done", done), Job("failed", failed)]) as supervisor:
        supervisor.start()
        tend_until(supervisor, lambda: supervisor.finished)
        supervisor.tend(1.0)
        assert supervisor.pids == {}
        states = {name: (one.state, one.restarts) for name, one in supervisor.statistics.items()}
        assert states == {"done": (State.DONE, 0), "failed": (State.FAILED, 0)}
        assert supervisor.statistics["failed"].message == "line 7 is no number"


def test_stopping_ends_all_at_once_and_kills_processes_that_ignore_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def deaf(statistics: Statistics, stop: StopSignal) -> None:
        statistics.state = State.RUNNING
        time.sleep(600)

    supervisor = Supervisor([Job(f"{number}", count) for number in range(10)] + [Job("deaf", deaf)])
    # another supervisor's processes must not hold this stop's pipe open
    with Supervisor([Job("other", count)]) as other:
        supervisor.start()
        other.start()
        running = supervisor.statistics.values()
        tend_until(supervisor, lambda: all(one.state == State.RUNNING for one in running))
        pids = list(supervisor.pids.values())
        assert len(pids) == 11
        began = time.monotonic()
        supervisor.stop(grace=1.0)
        assert 1.0 <= time.monotonic() - began < PATIENCE
        assert not any(is_alive(pid) for pid in pids)
        assert "deaf: did not end within 1 s, and is killed" in caplog.text
        assert other.statistics["other"].restarts == 0
        assert is_alive(other.pids["other"])


def test_stopping_does_not_wait_for_the_next_cycle() -> None:
    def slow(statistics: Statistics, stop: StopSignal) -> None:
        stop.sleep(600)

    supervisor = Supervisor([Job(f"{number}", slow) for number in range(10)])
    supervisor.start()
    began = time.monotonic()
    # a process that ignores the stop would be killed only then
    supervisor.stop(grace=PATIENCE)
    assert time.monotonic() - began < PATIENCE


PROGRAM = """
from ringlog.loader.supervisor import Job, Supervisor
with Supervisor([Job(f"{number}", lambda _, stop: stop.sleep(60)) for number in range(3)]) as supervisor:
    supervisor.start()
    print(*supervisor.pids.values(), flush=True)
    supervisor.tend(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_supervisor_that_ends_leaves_no_process_behind(number: signal.Signals) -> None:
    command = [sys.executable, "-P", "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 3
        assert all(is_alive(pid) for pid in pids)
        process.send_signal(number)
        process.wait(PATIENCE)
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_a_process_of_several_jobs_is_restarted_as_a_whole() -> None:
    def done(statistics: Statistics, stop: StopSignal) -> None:
        while one["failed"].state != State.FAILED:
            stop.sleep(0.01)
        statistics.sent = 1

    def failed(statistics: Statistics, stop: StopSignal) -> None:
        raise Failed("no such column")

    jobs = [Job("a", count), Job("done", done), Job("failed", failed), Job("b", count)]
    with Supervisor(jobs, processes=1) as supervisor:
        one = supervisor.statistics
        supervisor.start()
        ended = {"done": State.DONE, "failed": State.FAILED}
        tend_until(supervisor, lambda: one["a"].sent and one["b"].sent)
        tend_until(supervisor, lambda: all(one[job].state == state for job, state in ended.items()))
        assert len({*supervisor.pids.values()}) == 1
        assert one["failed"].message == "no such column"
        os.kill(supervisor.pids["a"], signal.SIGKILL)
        tend_until(supervisor, lambda: one["a"].restarts and one["b"].restarts)
        assert (one["done"].restarts, one["failed"].restarts) == (0, 0)
        sent = one["a"].sent, one["b"].sent
        tend_until(supervisor, lambda: one["a"].sent > sent[0] and one["b"].sent > sent[1])


def test_a_failed_job_is_restarted_with_those_of_its_process() -> None:
    def breaks_once(statistics: Statistics, stop: StopSignal) -> None:
        if not statistics.restarts:
            stop.sleep(0.05)
            raise OSError("the device is away")
        count(statistics, stop)

    with Supervisor([Job("a", breaks_once), Job("b", count)], processes=1) as supervisor:
        supervisor.start()
        one = supervisor.statistics
        tend_until(supervisor, lambda: all(each.restarts and each.sent for each in one.values()))
        assert one["a"].message == "OSError: the device is away"
