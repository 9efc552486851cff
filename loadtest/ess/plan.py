"""The command `ringlog plan`: the size of a machine for waveforms, from measured points."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

import ringlog.loadtest
from ringlog.loadtest.ess.model import cost, regression
from ringlog.loadtest.ess.saturation import source
from ringlog.loadtest.ess.scenarios import SIZES
from ringlog.loadtest.experiment.outcome import Outcome, Point
from ringlog.loadtest.experiment.running import OUTPUT, errors_reported

KEPT = Path(ringlog.loadtest.__file__).parent / "measured"
"""Results that come with ringlog."""
_YEAR = 365.25 * 86_400
_SURE = 2.0
"""Standard deviations of the model that are added."""


class Type(StrEnum):
    """Of points."""

    INT = "int"
    DOUBLE = "double"


def plan(
    waveforms: Annotated[int, typer.Option(metavar="N", min=1, help="Waveforms stored at once.")],
    points: Annotated[int, typer.Option(metavar="N", min=1, help="Points of each.")],
    rate: Annotated[float, typer.Option(metavar="HZ", min=1e-6, help="Updates of each a second.")],
    readers: Annotated[int, typer.Option(metavar="N", min=0, help="Who read at once, without a pause.")] = 0,
    type: Annotated[Type, typer.Option(help="Of the points.")] = Type.DOUBLE,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Results of `ringlog loadtest ess`. Default: those in .loadtest, else those that come with "
            "ringlog.",
        ),
    ] = None,
) -> None:
    """What a machine needs to store waveforms and serve readers, from what was measured."""
    with errors_reported():
        for line in answer(source(_folder(results)), waveforms, points, rate, readers, type):
            print(line)


def _folder(results: Path | None) -> Path:
    if results is not None:
        return results
    return OUTPUT if (OUTPUT / "ess.json").exists() else KEPT


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
        # a line that is said of threads that were measured, not below them
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
        f"a year     {_size(year)}",
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


def _size(bytes: float) -> str:
    return f"{bytes / 1e12:,.1f} TB" if bytes >= 1e12 else f"{bytes / 1e9:,.1f} GB"
