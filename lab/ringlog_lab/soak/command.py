"""The experiment `soak`."""

import subprocess
import time as clock
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ringlog.loader.schedule import SECOND, now
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.outcome import Outcome
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Data, Output, Time, start_load
from ringlog.loadtest.experiment.server import WRITER, Server
from ringlog.schema import spring8
from ringlog.schema.facility_file import load_facility
from ringlog_lab.soak import report
from ringlog_lab.soak.watch import Look, look
from ringlog_lab.soak.writers import Options
from ringlog_lab.stage import Stage, play

_PROCESSES = 3
_LOOKS = 40
"""In a run."""
_MOST = 600.0
"""Maximum seconds between two samples."""


def soak(
    facility: Annotated[
        Path,
        typer.Option(
            "--facility",
            metavar="FILE",
            default_factory=spring8.file,
            show_default="SPring-8's",
            help="Facility file (TOML).",
        ),
    ],
    time: Time = "60s",
    speed: Annotated[
        float, typer.Option(metavar="X", min=0.1, help="Factor of the normal rate: X s pass in a second.")
    ] = 5.0,
    data: Data = None,
    output: Output = OUTPUT,
    compare: Compare = None,
) -> None:
    """A long load at the normal rate, to find figures that get worse (papers/004; there: 14 days)."""
    play("soak", time, output, data, compare, lambda stage: _perform(stage, facility, speed))


def _perform(stage: Stage, file: Path, speed: float) -> Outcome:
    facility = load_facility(file)
    stage.steps.say("Starting a server")
    with stage.serving(file.read_text()) as server, ExitStack() as stack:
        begin = now() - round(stage.seconds * speed * SECOND)
        files = [stage.folder / f"calls{number}" for number in range(_PROCESSES)]
        writers = [
            stack.enter_context(_writers(server, file, number, begin, speed, stage.seconds, calls))
            for number, calls in enumerate(files)
        ]
        for one in writers:
            _wait_for_line(one, "ready")
        before = look(server, 0.0)
        for one in writers:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        looks = [before]
        with stage.steps.step("normal rate", stage.seconds) as progress:
            for each in _watched(server, stage.seconds):
                looks.append(each)
                progress(each.seconds, f"{each.logs / 1e6:,.0f} MB of logs")
        for one in writers:
            _wait_for_line(one, "done")
        stage.steps.say("Looking for every acknowledged row")
        return report.outcome(stage, server, facility, files, looks, begin, speed)


def _watched(server: Server, seconds: float) -> Iterator[Look]:
    began = clock.monotonic()
    pause = min(_MOST, seconds / _LOOKS)
    due = pause
    while due <= seconds:
        clock.sleep(max(0.0, due - (clock.monotonic() - began)))
        yield look(server, clock.monotonic() - began)
        # on a slow machine some samples are omitted
        due = max(due + pause, clock.monotonic() - began)


def _writers(
    server: Server, file: Path, number: int, begin: int, speed: float, seconds: float, calls: Path
) -> "subprocess.Popen[str]":
    options = Options(
        facility=str(file.resolve()),
        host=server.host,
        port=server.port,
        user=WRITER,
        first=number,
        step=_PROCESSES,
        begin=begin,
        speed=speed,
        seconds=seconds,
        calls=str(calls),
    )
    return start_load("ringlog_lab.soak.writers", options.argument(), server.password)


def _wait_for_line(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    if process.stdout.readline().strip() != word:
        lines: Sequence[str] = process.stderr.read().strip().splitlines()
        raise LoadTestError(f"writers failed: {lines[-1] if lines else 'they do not say why'}")
