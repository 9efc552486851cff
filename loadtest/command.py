"""The command `ringlog loadtest`: an experiment, all of them, their report."""

from typing import Annotated

import typer

from ringlog.loader.cli import option
from ringlog.loadtest import lab
from ringlog.loadtest.all_experiments import run_all
from ringlog.loadtest.experiment.catalogue import write_report_of
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Data, Output, interruptible
from ringlog.loadtest.spring8.command import app

for _name, _where in lab.EXPERIMENTS.items():
    lab.add(app, _name, _where)


@app.command()
def report(output: Output = OUTPUT, compare: Compare = None) -> None:
    """Write the report again from the results in its folder."""
    with interruptible():
        print(f"Written: {write_report_of(output, compare)}")


@app.command("all")
def everything(
    time: Annotated[
        str,
        typer.Option("--time", metavar="T", help="Total duration of each experiment's loads: 30s, 10min."),
    ] = "30s",
    only: Annotated[
        str | None, option(metavar="A,B,...", help="These experiments only. Default: all.")
    ] = None,
    data: Data = None,
    output: Output = OUTPUT,
    compare: Compare = None,
) -> None:
    """Every experiment, one after another, with one report at the end."""
    with interruptible():
        run_all(time, only, data, output, compare)


__all__ = ["app"]
