"""The experiment `sdalinac`."""

from typing import Annotated

import typer

from ringlog.loadtest.experiment.outcome import Outcome
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Data, Output, Time, numbers
from ringlog_lab.sdalinac import reading, report, writing
from ringlog_lab.stage import Stage, play


def sdalinac(
    time: Time = "5s",
    batches: Annotated[
        str, typer.Option(metavar="A,B,...", help="Rows of a batch in the write schemes.")
    ] = "1,10,100,1000,10000",
    clients: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Number of concurrent readers.")
    ] = 8,
    every: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=1,
            help="Seconds between samples on the last day of the data; 360 times as long before.",
        ),
    ] = 60.0,
    data: Data = None,
    output: Output = OUTPUT,
    compare: Compare = None,
) -> None:
    """S-DALINAC's narrow sample table: write rates, write schemes, a mix of readers (papers/000, 001)."""

    def perform(stage: Stage) -> Outcome:
        return _perform(stage, numbers("--batches", batches), clients, every)

    play("sdalinac", time, output, data, compare, perform)


def _perform(stage: Stage, batches: list[int], clients: int, every: float) -> Outcome:
    stage.steps.say("Starting a server")
    with stage.serving(writing.FACILITY + reading.FACILITY) as server:
        writing.install(server)
        loads = len(writing.TABLES)
        tables, schemes = [], []
        with stage.steps.step("tables", loads * stage.seconds) as progress:
            for one in writing.configurations(server, stage.seconds):
                tables.append(one)
                progress(len(tables) * stage.seconds, f"{one.scheme}: {one.rate:,.0f} rows/s")
        with stage.steps.step("write schemes", (3 + 5 * len(batches)) * stage.seconds) as progress:
            for one in writing.schemes(server, batches, stage.seconds):
                schemes.append(one)
                progress(len(schemes) * stage.seconds, f"{one.scheme}, {one.batch}: {one.rate:,.0f} rows/s")
        stage.steps.say("Making a year of 200 signals")
        values = reading.fill(server, every)
        read = []
        with stage.steps.step(f"{clients} readers", 3 * stage.seconds) as progress:
            for each in reading.reading(server, clients, stage.seconds):
                read.append(each)
                progress(len(read) * stage.seconds, each.target)
    return report.outcome(stage, tables, schemes, read, values, every)
