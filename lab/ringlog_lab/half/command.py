"""The experiment `half`."""

from contextlib import ExitStack
from typing import Annotated

import typer

from ringlog.loadtest.experiment.errors import LoadTestError, LoadTestUsageError
from ringlog.loadtest.experiment.outcome import Outcome
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Data, Output, Time
from ringlog_lab.half import report
from ringlog_lab.half.ioc import Listened, listen, missing_part
from ringlog_lab.half.published import PVS
from ringlog_lab.half.replay import MOST_HOURS, PVS_OF_A_TABLE, facility, sample_table
from ringlog_lab.half.report import Scale
from ringlog_lab.half.servers import START
from ringlog_lab.half.target import Kept, Replayed, Target, Timed
from ringlog_lab.half.targets import Narrow, Ringlog, Sampled
from ringlog_lab.peers.finding import TITLES, Beside, Influxdb, Peers, Questdb, Timescaledb, found
from ringlog_lab.stage import Stage, play

_PARTS = (0.1, 0.25, 0.5, 1.0)
"""Spans that are read, as parts of the longest query."""


def half(
    time: Time = "2s",
    pvs: Annotated[
        int, typer.Option(metavar="N", min=100, help="Number of PVs, in hundreds; HALF plans 25,000.")
    ] = PVS,
    ioc_pvs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            show_default="all",
            help="PVs that come from the IOC, in hundreds; 0: no IOC. Each hundred has a writer process.",
        ),
    ] = None,
    minutes: Annotated[
        str, typer.Option(metavar="A,B,...", help="Minutes of all PVs in a batch; 0.1 to 1 in the paper.")
    ] = "0.1",
    hours: Annotated[
        float,
        typer.Option(metavar="H", min=0.001, help="The longest query of one PV; 0.4 to 10 in the paper."),
    ] = 0.1,
    replay: Annotated[
        float,
        typer.Option(
            metavar="H",
            min=0,
            max=MOST_HOURS,
            help="Afterwards write this many hours of all PVs into ringlog, as fast as possible; there "
            f"{MOST_HOURS}.",
        ),
    ] = 0.0,
    beside: Beside = None,
    timescaledb: Timescaledb = None,
    questdb: Questdb = None,
    influxdb: Influxdb = None,
    data: Data = None,
    output: Output = OUTPUT,
    compare: Compare = None,
) -> None:
    """HALF's 2,000 PVs at 10 Hz: from a real IOC, IDPS of batches, QDPS of one PV (papers/002), beside
    other servers where these are installed."""

    def perform(stage: Stage) -> Outcome:
        heard = pvs if ioc_pvs is None else ioc_pvs
        for option, count in (("--pvs", pvs), ("--ioc-pvs", heard)):
            if count % PVS_OF_A_TABLE:
                raise LoadTestUsageError(f"{option} {count} is no multiple of {PVS_OF_A_TABLE}")
        if heard > pvs:
            raise LoadTestUsageError(f"--ioc-pvs {heard} is more than --pvs {pvs}")
        peers = found(timescaledb, questdb, influxdb, beside)
        return _perform(stage, pvs, heard, _minutes(minutes), hours, replay, peers)

    play("half", time, output, data, compare, perform)


def _minutes(text: str) -> list[float]:
    try:
        found = sorted({float(word) for word in text.split(",")})
    except ValueError:
        found = []
    if not found or not 0 < found[0] <= found[-1] <= 60:
        raise LoadTestUsageError(f"--minutes '{text}' is no list of minutes as 0.1,0.5")
    return found


def _replayed(stage: Stage, target: Target, pvs: int, hours: float) -> Replayed:
    """In batches of at most as many items as a minute of the paper's PVs, to save memory."""
    minutes = min(1.0, PVS / pvs)
    count = max(1, round(60 * hours / minutes))
    before = target.size()
    batches: list[Timed] = []
    with stage.steps.step(f"{target.name}, {hours:g} h", float(count)) as progress:
        for _ in range(count):
            batches.append(target.insert(minutes))
            progress(float(len(batches)), f"{batches[-1].rate:,.0f} items/s")
    return Replayed(hours, batches, target.size() - before)


def _perform(
    stage: Stage, pvs: int, heard: int, minutes: list[float], hours: float, replay: float, peers: Peers
) -> Outcome:
    stage.steps.say(f"Starting a server for {pvs:,} PVs")
    file = stage.folder / "half.toml"
    file.write_text(facility(heard))
    inserted: list[Timed] = []
    queried: list[Timed] = []
    kept: list[Kept] = []
    listened: Listened | None = None
    why = missing_part() and f"a soft IOC needs {missing_part()} (pip install 'ringlog[epics]' pvxslibs)"
    if not heard:
        why = "it was not requested"
    with stage.serving(facility(pvs) + sample_table(pvs)) as server, ExitStack() as stack:
        if not why:
            try:
                with stage.steps.step(f"IOC, {heard:,} PVs", stage.seconds) as progress:
                    listened = listen(server, file, stage.folder, heard, stage.seconds, progress)
                    progress(stage.seconds, f"{listened.updates:,} updates")
            except LoadTestError as error:
                # the rest needs no IOC
                why = str(error)
                stage.steps.say(why)
        targets: list[Target] = [Ringlog(server, pvs), Sampled(server, pvs), Narrow.beside(server, pvs)]
        versions: dict[str, str] = {}
        for name, program in peers.programs.items():
            stage.steps.say(f"Starting {TITLES[name]}")
            more, versions[TITLES[name]] = stack.enter_context(
                START[name](program, server, stage.data or stage.folder, pvs)
            )
            targets += more
        # so that a temporary load of the machine affects all of them
        for one in minutes:
            for target in targets:
                with stage.steps.step(f"{target.name}, {one:g} min", 1.0) as progress:
                    inserted.append(target.insert(one))
                    progress(1.0, f"{inserted[-1].rate:,.0f} items/s")
        replayed = _replayed(stage, targets[0], pvs, replay) if replay else None
        # only one table is needed for the history of one PV
        longest = hours * 60 - sum(minutes)
        if longest > 0:
            for target in targets:
                stage.steps.say(f"{target.name}: making {hours:g} h of {PVS_OF_A_TABLE} PVs")
                target.insert(longest, only=0)
        kept += [target.keep() for target in targets]
        for part in _PARTS:
            for target in targets:
                for way in target.readings:
                    with stage.steps.step(f"{way}, {part * hours:g} h", stage.seconds) as progress:
                        queried.append(target.query(part * hours, stage.seconds, way))
                        progress(stage.seconds, f"{queried[-1].rate:,.0f} items/s")
    scale = Scale(pvs, minutes, hours)
    return report.outcome(
        stage, scale, inserted, replayed, kept, queried, listened or why, versions, peers.absent
    )
