"""The experiment `soak`."""

import subprocess
import time as clock
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import psutil
import psycopg
import sqlalchemy
import typer

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.outcome import Outcome
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Output, start_load
from ringlog.loadtest.experiment.server import WRITER, Server, serving
from ringlog.loadtest.spring8.command import FacilityFile
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog_lab.soak import report
from ringlog_lab.soak.plan import DAY, PROCESSES, Plan, Run, foreseen, planned
from ringlog_lab.soak.watch import Look, look
from ringlog_lab.soak.writers import Options
from ringlog_lab.stage import Stage, play


def soak(
    facility: FacilityFile,
    days: Annotated[float, typer.Option(metavar="D", min=0.001, help="Days of the rows' time.")] = 14.0,
    tables: Annotated[
        int, typer.Option(metavar="N", min=1, help="Only every Nth table is written, at its own cycle.")
    ] = 3,
    thin: Annotated[float, typer.Option(metavar="X", min=1.0, help="Factor of the cycles.")] = 1.0,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default="temporary",
            help="Folder of the run, removed at its end. After a kill the same command goes on with it.",
        ),
    ] = None,
    output: Output = OUTPUT,
    compare: Compare = None,
) -> None:
    """Days of the normal rate, as fast as the machine allows, to find figures that grow (papers/004: 14
    days)."""

    def perform(stage: Stage) -> Outcome:
        text = facility.read_text()
        return _perform(stage, text, planned(days, tables, thin, text, datetime.now(UTC)))

    play("soak", f"{days}d", output, data, compare, perform)


def _perform(stage: Stage, text: str, plan: Plan) -> Outcome:
    folder = (stage.data or stage.folder / "soak").resolve()
    run = Run.begun(folder, plan)
    run.start(text)
    facility = load_facility(run.facility)
    normal, fewer = foreseen(run.plan, facility)
    stage.steps.say(f"{plan.days:g} days are {normal:,} rows at the normal rate; here {fewer:,}, in {folder}")
    stage.steps.say(f"Starting a server{' again' if run.state.starts > 1 else ''}")
    with serving(run.facility, run.server, keep=True, password=run.state.password) as server:
        stage.note(server)
        run.state.password = server.password
        run.started(server.gateway.pid)
        try:
            _load(stage, run, server)
        except (psutil.NoSuchProcess, psycopg.OperationalError, sqlalchemy.exc.OperationalError) as error:
            reason = " ".join(str(error).split())
            raise LoadTestError(
                f"the server has ended: with --data the same command goes on: {reason}"
            ) from None
        stage.steps.say("Looking for every acknowledged row")
        outcome = report.outcome(stage, server, facility, run)
    if outcome.good:
        run.remove()
    return outcome


def _load(stage: Stage, run: Run, server: Server) -> None:
    # late: what they import starts threads, which commands that fork must not have
    from ringlog_lab.soak.rounds import believe, hour, midnight

    plan, looks = run.plan, run.looks()
    now, earlier = (looks[-1].seconds, looks[-1].clock) if looks else (0.0, 0.0)

    def watch() -> Look:
        seen = look(server, now, earlier + clock.monotonic() - began, run.state.starts, run.rows)
        run.add(seen)
        return seen

    believe(server, plan.moment(now))
    midnight(server, plan.moment(now))
    with ExitStack() as stack:
        rounds = stack.enter_context(ThreadPoolExecutor(1))
        writers = [stack.enter_context(_writer(run, server, number)) for number in range(PROCESSES)]
        for one in writers:
            one.expect("ready")
        run.started(*(one.process.pid for one in writers))
        began = clock.monotonic()
        if not looks:
            watch()
        progress = stack.enter_context(stage.steps.step("days of the rows", plan.seconds / DAY))
        under_way = rounds.submit(hour, server, plan.moment(now))
        upto = min(now + plan.step, plan.seconds)
        for one in writers:
            one.tell(upto)
        while now < plan.seconds:
            for one in writers:
                one.expect(f"{upto}")
            before, now = now, upto
            if now < plan.seconds:
                upto = min(now + plan.step, plan.seconds)
                for one in writers:
                    one.tell(upto)
            believe(server, plan.moment(now))
            seen = watch()
            progress(now / DAY, f"{plan.moment(now):%a %H:%M}, {seen.rows:,} rows")
            is_midnight = plan.passes_midnight(before, now)
            if is_midnight or under_way.done():
                under_way.result()
                under_way = rounds.submit(midnight if is_midnight else hour, server, plan.moment(now))
        under_way.result()
        for one in writers:
            one.end()
    midnight(server, plan.moment(now))


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
