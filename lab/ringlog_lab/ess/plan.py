"""The command `ringlog plan`: the size of a machine for waveforms, and the number of servers for rows, from
measured points."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

import ringlog_lab
from ringlog.loader.cli import option
from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.experiment.outcome import Outcome, Point
from ringlog.loadtest.experiment.running import OUTPUT, interruptible
from ringlog_lab.ess.model import cost, regression, size
from ringlog_lab.ess.saturation import source
from ringlog_lab.ess.scenarios import SIZES

KEPT = Path(ringlog_lab.__file__).parent / "measured"
"""The packaged results."""
_YEAR = 365.25 * 86_400
_SURE = 2.0
"""Standard deviations of the model that are added."""


class Type(StrEnum):
    """Of points."""

    INT = "int"
    DOUBLE = "double"


def plan(
    rate: Annotated[
        float, typer.Option(metavar="HZ", min=1e-6, help="Updates of each waveform or signal per second.")
    ],
    waveforms: Annotated[
        int | None, option(metavar="N", help="Waveforms that are stored at once.", min=1)
    ] = None,
    points: Annotated[int | None, option(metavar="N", help="Points of each waveform.", min=1)] = None,
    nodes: Annotated[
        bool, typer.Option("--nodes", help="Compute the number of servers for rows of signals.")
    ] = False,
    signals: Annotated[
        int | None, option(metavar="N", help="With --nodes: number of signals.", min=1)
    ] = None,
    columns: Annotated[
        int, typer.Option(metavar="N", min=1, help="With --nodes: columns of each table.")
    ] = 200,
    cores: Annotated[int, typer.Option(metavar="N", min=1, help="With --nodes: cores of each server.")] = 8,
    disk: Annotated[
        float, typer.Option(metavar="MB/S", min=1, help="With --nodes: durable write rate of a disk.")
    ] = 100.0,
    readers: Annotated[
        int, typer.Option(metavar="N", min=0, help="Number of concurrent readers without pauses.")
    ] = 0,
    type: Annotated[Type, typer.Option(help="Type of the points.")] = Type.DOUBLE,
    results: Annotated[
        Path | None,
        option(
            metavar="DIR",
            help="Results of `ringlog loadtest ess`, with --nodes of `columns`. Default: those in .loadtest, "
            "else those that come with ringlog.",
        ),
    ] = None,
) -> None:
    """Compute the machine for storing waveforms and serving readers, or the number of servers (nodes) for
    rows, from measured costs."""
    with interruptible():
        if nodes:
            if signals is None or waveforms is not None or points is not None:
                raise LoadTestUsageError("--nodes needs --signals, and is without --waveforms and --points")
            # it takes the options that waveforms do not need
            from ringlog_lab.ess.row_plan import answer as answer_of_rows
            from ringlog_lab.ess.row_plan import row_cost

            cost = row_cost(_folder(results, "columns"))
            lines = answer_of_rows(cost, signals, rate, columns, cores, disk)
        elif waveforms is None or points is None:
            raise LoadTestUsageError("give --waveforms and --points, or --nodes with --signals")
        else:
            lines = answer(source(_folder(results)), waveforms, points, rate, readers, type)
        for line in lines:
            print(line)


def _folder(results: Path | None, experiment: str = "ess") -> Path:
    if results is not None:
        return results
    return OUTPUT if (OUTPUT / f"{experiment}.json").exists() else KEPT


def answer(ess: Outcome, waveforms: int, points: int, rate: float, readers: int, type: Type) -> Sequence[str]:
    """The plan, a line for each resource. Raises LoadTestError when too little was measured."""
    stored = [one for one in ess.points if one.kind == "storage"]
    frames = waveforms * rate
    megabytes = frames * points * SIZES[type] / 1e6
    cpu, memory = cost(stored, "cpu"), cost(stored, "memory")
    disk, wal = (
        median(getattr(one, name) for one in _like(stored, points * SIZES[type])) for name in ("disk", "wal")
    )
    cores = cpu.of(frames, megabytes) + _SURE * cpu.deviation
    room = memory.of(frames, megabytes) + _SURE * memory.deviation
    lines = [
        f"{waveforms:,} waveforms of {points:,} points ({type}) at {rate:g} Hz: {frames:,.0f} frames/s, "
        f"{megabytes:,.1f} MB/s"
    ]
    read = [one for one in ess.points if one.kind == "retrieval"]
    if readers and read:
        reading = {
            name: regression([(float(one.readers), getattr(one, name)) for one in read])
            for name in ("cpu", "memory")
        }
        # the line holds for measured numbers of threads, not below them
        cores += max(0.0, reading["cpu"].at(readers) + reading["cpu"].error(readers))
        room += max(0.0, readers * max(0.0, reading["memory"].slope + reading["memory"].slope_error))
    elif readers:
        lines.append("readers: not measured; run ringlog loadtest ess without --retrieved none")
    most = max(one.megabytes for one in stored)
    year = megabytes * 1e6 * disk * _YEAR
    lines += [
        f"CPU        {cores:,.1f} cores like those of {ess.machine.processor}",
        f"memory     {room / 2**30:,.1f} GiB",
        f"disk       {megabytes * (disk + wal):,.1f} MB/s to write: {disk:.2f} of the payload to tables, "
        f"{wal:.2f} to the write-ahead log",
        f"a year     {size(year)}",
        f"network    {8 * megabytes:,.0f} Mb/s of writers",
        f"measured   {ess.began}, {len(stored)} loads of up to {most:,.1f} MB/s, load average before "
        f"{ess.load_before:.1f}",
    ]
    if megabytes > most:
        lines.append(
            f"That is {megabytes / most:,.1f} times the most that was measured: the figures are extrapolated"
        )
    if cores > ess.machine.cores or room > ess.machine.memory:
        lines.append(
            f"It is more than the machine measured has ({ess.machine.cores} cores, "
            f"{ess.machine.memory / 2**30:.1f} GiB)"
        )
    return lines


def _like(stored: Sequence[Point], frame: int) -> list[Point]:
    """The three loads whose frames are nearest in size."""
    return sorted(stored, key=lambda one: abs(1e6 * one.megabytes / max(one.rate, 1e-9) - frame))[:3]
