"""The command `ringlog loadtest`: an experiment, all of them, their report."""

from typing import Annotated

import typer

from ringlog.loadtest.all_experiments import run_all
from ringlog.loadtest.ess.command import ess
from ringlog.loadtest.ess.saturation import saturation
from ringlog.loadtest.experiment.catalogue import write_report_of
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Data, Output, errors_reported
from ringlog.loadtest.experiment.stage import play
from ringlog.loadtest.half.command import half
from ringlog.loadtest.sdalinac.command import sdalinac
from ringlog.loadtest.soak.command import soak
from ringlog.loadtest.spring8.command import app

app.command()(ess)
app.command()(half)
app.command()(sdalinac)
app.command()(soak)


@app.command("saturation")
def exhausted(output: Output = OUTPUT, compare: Compare = None) -> None:
    """What is exhausted first, by regression lines through what `ess` has measured (papers/003)."""
    play("saturation", "1s", output, None, compare, saturation)


@app.command()
def report(output: Output = OUTPUT, compare: Compare = None) -> None:
    """Write the report again from the results in its folder."""
    with errors_reported():
        print(f"Written: {write_report_of(output, compare)}")


@app.command("all")
def everything(
    time: Annotated[
        str,
        typer.Option(
            "--time", metavar="T", help="How long the loads of each experiment last together: 30s, 10min."
        ),
    ] = "30s",
    only: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", show_default=False, help="These experiments only. Default: all."),
    ] = None,
    data: Data = None,
    output: Output = OUTPUT,
    compare: Compare = None,
) -> None:
    """Every experiment, one after another, with one report at the end."""
    with errors_reported():
        run_all(time, only, data, output, compare)


__all__ = ["app"]
