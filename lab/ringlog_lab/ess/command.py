"""The experiment `ess`."""

import os
import tempfile
import time
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from ringlog.loader.cli import option
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.native import build
from ringlog.loadtest.experiment.outcome import Outcome
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Data, Output, Time, names, numbers
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.ess import report
from ringlog_lab.ess.from_ioc import keeps_up, missing_part, tried, write_from_ioc
from ringlog_lab.ess.retrieval import FORMS, Retrieved, retrieve
from ringlog_lab.ess.saturation import saturation
from ringlog_lab.ess.scenarios import SCENARIOS, Scenario, facility
from ringlog_lab.ess.storage import Written, in_groups, too_much, write
from ringlog_lab.stage import Stage, play


class Source(StrEnum):
    """Where the waveforms come from."""

    IOC = "ioc"
    C = "c"


_BLOCK, _BLOCKS = 1 << 20, 64
_ONE = tuple(name for name, one in SCENARIOS.items() if one.waveforms == 1)


def ess(
    time: Time = "10s",
    scenarios: Annotated[
        str | None,
        option(metavar="A,B,...", help="Scenarios to store, as AAPS-0080; `none` for none. Default: all 48."),
    ] = None,
    retrieved: Annotated[
        str | None,
        option(
            metavar="A,B,...", help="Scenarios to retrieve; `none` for none. Default: AAPS-0010 to AAPS-0120."
        ),
    ] = None,
    threads: Annotated[
        str, typer.Option(metavar="A,B,...", help="Number of concurrent clients.")
    ] = "1,10,100",
    forms: Annotated[
        str, typer.Option(metavar="A,B,...", help=f"Formats that they request: {', '.join(FORMS)}.")
    ] = ",".join(FORMS),
    limit: Annotated[
        float,
        typer.Option(
            metavar="X", min=0.01, help="Skip scenarios that need more than X times the disk's throughput."
        ),
    ] = 20.0,
    source: Annotated[
        Source,
        typer.Option(
            help="`ioc`: from a real soft IOC by `ringlog load` where it keeps up (takes softioc); `c`: all "
            "from a program in C."
        ),
    ] = Source.IOC,
    data: Data = None,
    output: Output = OUTPUT,
    compare: Compare = None,
) -> None:
    """ESS's 48 scenarios of waveforms stored, and retrieved over HTTP (papers/003: 60 min each)."""

    def perform(stage: Stage) -> Outcome:
        stored = _chosen("--scenarios", scenarios, tuple(SCENARIOS))
        read = _chosen("--retrieved", retrieved, _ONE)
        if read:
            # `ringlog web` needs it, but starts only after many loads
            import_module("uvicorn")
        return _perform(
            stage, stored, read, numbers("--threads", threads), names("--forms", forms, FORMS), limit, source
        )

    play("ess", time, output, data, compare, perform)


def _chosen(option: str, text: str | None, known: tuple[str, ...]) -> list[Scenario]:
    return [] if text == "none" else [SCENARIOS[name] for name in names(option, text, known)]


def _perform(
    stage: Stage,
    stored: list[Scenario],
    read: list[Scenario],
    threads: list[int],
    forms: list[str],
    limit: float,
    source: Source,
) -> Outcome:
    disk = _disk_rate(stage.data or stage.folder)
    impossible = {one.name: why for one in stored if (why := too_much(one, disk, limit))}
    written: list[Written] = []
    got: list[Retrieved] = []
    wanted = [one for one in stored if one.name not in impossible]
    both = list(dict.fromkeys([*wanted, *read]))
    for group in in_groups(both):
        points, kind = group[0].group
        stage.steps.say(f"Starting a server for waveforms of {points:,} points of {kind}")
        with stage.serving(facility(group)) as server:
            for one in group:
                if one in wanted:
                    with stage.steps.step(one.name, stage.seconds) as progress:
                        written.append(_written(stage, server, one, source))
                        progress(stage.seconds, f"{written[-1].megabytes:,.1f} MB/s")
            for one in group:
                if one in read:
                    loads = len(forms) * len(threads)
                    with stage.steps.step(f"{one.name}, read", stage.seconds * loads) as progress:
                        for number, each in enumerate(
                            retrieve(server, one, forms, threads, stage.seconds), start=1
                        ):
                            got.append(each)
                            progress(number * stage.seconds, f"{each.form}: {each.megabytes:,.1f} MB/s")
    written.sort(key=lambda one: one.scenario.name)
    got.sort(key=lambda one: one.scenario.name)
    return report.outcome(stage, written, impossible, got, disk)


def _disk_rate(folder: Path) -> float:
    """Bytes a second of the disk below a folder, in order, each MiB durable before the next."""
    block = os.urandom(_BLOCK)
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        began = time.monotonic()
        for _ in range(_BLOCKS):
            file.write(block)
            os.fdatasync(file.fileno())
        return _BLOCK * _BLOCKS / (time.monotonic() - began)


def _written(stage: Stage, server: Server, scenario: Scenario, source: Source) -> Written:
    """From an IOC if that is requested and keeps up, otherwise from a program in C."""
    remark = ""
    if source is Source.IOC and not missing_part() and tried(scenario):
        try:
            written = write_from_ioc(server, scenario, stage.folder, stage.seconds)
        except LoadTestError as error:
            remark = f"from an IOC: {error}"
        else:
            if keeps_up(written):
                return written
            made = f"{100 * written.made:.3g} % of the frames, of which {written.dropped:,} were dropped"
            remark = f"an IOC made {made}"
    programs = stage.folder / "programs"
    if not programs.exists():
        programs.mkdir()
        build(programs)
    return replace(write(server, scenario, stage.seconds, programs), remark=remark)


def exhausted(output: Output = OUTPUT, compare: Compare = None) -> None:
    """The resource that is exhausted first, by regression lines through the results of `ess` (papers/003)."""
    play("saturation", "1s", output, None, compare, saturation)
