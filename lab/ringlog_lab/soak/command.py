"""The experiment `soak`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ringlog.loadtest.experiment.outcome import Outcome
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Output
from ringlog.loadtest.spring8.command import FacilityFile
from ringlog_lab.soak import report
from ringlog_lab.soak.plan import Plan, Run, foreseen, planned
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
    # late: what it imports starts threads, which commands that fork must not have
    from ringlog_lab.soak.loading import begun

    run = Run.begun((stage.data or stage.folder / "soak").resolve(), plan)
    with begun(stage, run, text) as loading:
        normal, fewer = foreseen(run.plan, loading.facility)
        stage.steps.say(f"{plan.days:g} days are {normal:,} rows at the normal rate; here {fewer:,}")
        loading.go(plan.days)
        loading.end()
        stage.steps.say("Looking for every acknowledged row")
        outcome = report.outcome(stage, loading.server, loading.facility, run)
    if outcome.good:
        run.remove()
    return outcome
