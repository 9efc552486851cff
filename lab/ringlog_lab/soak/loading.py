"""A run's server with its writers, which load it up to one day of the rows' time after another."""

import subprocess
import time as clock
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil
import psycopg
import sqlalchemy

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.running import start_load
from ringlog.loadtest.experiment.server import WRITER, Server, serving
from ringlog.loadtest.spring8 import recorded
from ringlog.loadtest.spring8.recorded import Records
from ringlog.loadtest.spring8.target import prepare
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog_lab.soak import rounds
from ringlog_lab.soak.inside import SETTINGS, inside, install
from ringlog_lab.soak.plan import DAY, PROCESSES, Run
from ringlog_lab.soak.report import calls_of
from ringlog_lab.soak.watch import Look, look
from ringlog_lab.soak.writers import Options
from ringlog_lab.stage import Stage


@contextmanager
def begun(stage: Stage, run: Run, text: str) -> Iterator["Loading"]:
    """A run's server and its writers, from where it was. `text`: the facility's file."""
    run.start(text)
    stage.steps.say(f"Starting a server{' again' if run.state.starts > 1 else ''} in {run.folder}")
    if run.state.password is None:
        prepare(run.facility, run.server, SETTINGS)
    with (
        serving(run.facility, run.server, keep=True, password=run.state.password) as server,
        ExitStack() as stack,
    ):
        stage.note(server)
        run.state.password = server.password
        run.started(server.gateway.pid)
        with reported():
            install(server)
            yield Loading(stage, run, server, stack)


@contextmanager
def reported() -> Iterator[None]:
    """A server that ends ends the experiment with a sentence."""
    try:
        yield
    except (psutil.NoSuchProcess, psycopg.OperationalError, sqlalchemy.exc.OperationalError) as error:
        reason = " ".join(str(error).split())
        raise LoadTestError(f"the server has ended: with --data the same command goes on: {reason}") from None


class Loading:
    """A load on its way through the rows' time; it stands still between two calls of `go`."""

    def __init__(self, stage: Stage, run: Run, server: Server, stack: ExitStack) -> None:
        self.run = run
        self.server = server
        self.facility = load_facility(run.facility)
        self._stage = stage
        looks = run.looks()
        self._now, self._clock = (looks[-1].seconds, looks[-1].clock) if looks else (0.0, 0.0)
        rounds.believe(server, run.plan.moment(self._now))
        rounds.midnight(server, run.plan.moment(self._now))
        self._rounds = stack.enter_context(ThreadPoolExecutor(1))
        self._writers = [stack.enter_context(_writer(run, server, number)) for number in range(PROCESSES)]
        for one in self._writers:
            one.expect("ready")
        run.started(*(one.process.pid for one in self._writers))
        if not looks:
            self.look()

    def look(self) -> Look:
        seen = look(self.server, self._now, self._clock, self.run.state.starts, self.run.rows)
        self.run.add(seen)
        return seen

    def go(self, days: float) -> None:
        """Loads up to this day of the rows' time, at most the last."""
        run, plan, server = self.run, self.run.plan, self.server
        end = min(days * DAY, plan.seconds)
        if self._now >= end:
            return
        last = clock.monotonic()
        with self._stage.steps.step("days of the rows", end / DAY) as progress:
            under_way = self._rounds.submit(rounds.hour, server, plan.moment(self._now))
            upto = self._tell(end)
            while self._now < end:
                for one in self._writers:
                    one.expect(f"{upto}")
                before, self._now = self._now, upto
                if self._now < end:
                    upto = self._tell(end)
                rounds.believe(server, plan.moment(self._now))
                self._clock, last = self._clock + clock.monotonic() - last, clock.monotonic()
                seen = self.look()
                if before // plan.half_day != self._now // plan.half_day or self._now == end:
                    run.add(inside(server, seen))
                progress(self._now / DAY, f"{plan.moment(self._now):%a %H:%M}, {seen.rows:,} rows")
                is_midnight = plan.passes_midnight(before, self._now)
                if is_midnight or under_way.done():
                    under_way.result()
                    work = rounds.midnight if is_midnight else rounds.hour
                    under_way = self._rounds.submit(work, server, plan.moment(self._now))
            under_way.result()

    def _tell(self, end: float) -> float:
        upto = min(self._now + self.run.plan.step, end)
        for one in self._writers:
            one.tell(upto)
        return upto

    def acknowledged(self) -> "Records":
        """The records of all rows so far."""
        return recorded.well(calls_of(self.run))

    def end(self) -> None:
        for one in self._writers:
            one.end()
        rounds.midnight(self.server, self.run.plan.moment(self._now))


@dataclass(frozen=True)
class _Writer:
    process: "subprocess.Popen[str]"

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def tell(self, seconds: float) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self._failed()

    def expect(self, word: str) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline().strip() != word:
            self._failed()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _failed(self) -> None:
        assert self.process.stderr is not None
        lines: Sequence[str] = self.process.stderr.read().strip().splitlines()
        raise LoadTestError(f"a writer ended: {lines[-1] if lines else 'it does not say why'}")


def _writer(run: Run, server: Server, number: int) -> _Writer:
    options = Options(
        facility=str(run.facility),
        plan=run.plan,
        host=server.host,
        port=server.port,
        user=WRITER,
        first=number,
        step=PROCESSES,
        calls=str(run.calls(number)),
    )
    return _Writer(start_load("ringlog_lab.soak.writers", options.argument(), server.password))
