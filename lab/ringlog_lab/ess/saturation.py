"""The saturation study of papers/003: the resource that is exhausted first, and its load, by regression
lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.experiment.outcome import Figure, Line, Outcome, Plot, Point, Section, read_outcome
from ringlog.loadtest.experiment.report import amount
from ringlog.loadtest.experiment.running import command_line
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.ess import published
from ringlog_lab.ess.model import CONFIDENCE, EXPLAINED, Regression, regression
from ringlog_lab.stage import Stage

_NETWORK = 125.0
"""MB/s of 1 Gb/s, the paper's network."""
_METHOD = [
    "Lines by least squares over the measured points of `ess`, at most one a scenario or load; confidence "
    f"is {100 * CONFIDENCE:.0f} %. A waveform is the paper's mean one: 37,000 points of 6 bytes at 7.5 Hz, "
    f"{published.MEAN_WAVEFORM:.3g} MB/s: a scenario counts as its MB/s stored over that.",
    "A resource is exhausted where its line reaches all cores, all memory, the disk's durable rate or 1 "
    "Gb/s. A line that does not rise beyond doubt, or that explains less than half of what was measured (R² "
    f"below {EXPLAINED:g}), is not extrapolated.",
]


@dataclass(frozen=True)
class Exhausted:
    """A resource, and the load at which it is exhausted."""

    resource: str
    where: float | None
    between: tuple[float, float] | None = None
    doubt: str = ""
    """the reason why the load is not known"""


def source(folder: Path) -> Outcome:
    """The outcome of `ess` in a folder. Raises LoadTestUsageError when there is none."""
    file = folder / "ess.json"
    if not file.exists():
        raise LoadTestUsageError(f"{folder} has no results of `ringlog loadtest ess`, which come first")
    return read_outcome(file)


def saturation(stage: Stage) -> Outcome:
    """Lines and limits from the results of `ess` in the same folder."""
    ess = source(stage.output)
    cores, memory = ess.machine.cores, ess.machine.memory
    sections: list[Section] = []
    figures: list[Figure] = []
    stored = [one for one in ess.points if one.kind == "storage"]
    if stored:
        across = [one.megabytes / published.MEAN_WAVEFORM for one in stored]
        lines = _lines(across, stored)
        limits = [*_own_limits(lines, cores, memory), *_given_limits(ess, stored)]
        sections.append(_section("Storage", "mean waveforms stored at once", lines, across, stored, limits))
        figures += _figures("storage", "waveforms", limits, published.WAVEFORMS)
    read = [one for one in ess.points if one.kind == "retrieval"]
    if read:
        threads = [float(one.readers) for one in read]
        lines = _lines(threads, read)
        limits = _own_limits(lines, cores, memory)
        sections.append(_section("Retrieval", "threads", lines, threads, read, limits))
        figures += _figures("retrieval", "threads", limits, published.THREADS)
    if not sections:
        raise LoadTestUsageError(f"{stage.output} has no measured points: run ringlog loadtest ess first")
    outcome = replace(
        ess,
        experiment="saturation",
        title="What is exhausted first (papers/003)",
        command=command_line(),
        scale=f"Computed from the run of `ess` that began {ess.began}.",
        counted=[],
        figures=figures,
        sections=sections,
        method=_METHOD,
        points=[],
    )
    outcome.write(stage.output)
    return outcome


def _lines(across: Sequence[float], points: Sequence[Point]) -> dict[str, Regression]:
    return {
        name: regression([(x, getattr(one, name)) for x, one in zip(across, points, strict=True)])
        for name in ("cpu", "memory")
    }


def _own_limits(lines: dict[str, Regression], cores: int, memory: int) -> list[Exhausted]:
    limits = {"cpu": float(cores), "memory": float(memory)}
    return [
        Exhausted(name, line.reaches(limits[name]), line.reaches_between(limits[name]), line.doubt)
        for name, line in lines.items()
    ]


def _given_limits(ess: Outcome, stored: Sequence[Point]) -> Iterator[Exhausted]:
    disk = next((one.megabytes for one in ess.points if one.kind == "disk"), None)
    payload = sum(one.megabytes for one in stored)
    if disk is not None and payload:
        written = sum(one.megabytes * (one.disk + one.wal) for one in stored) / payload
        yield Exhausted("disk", disk / written / published.MEAN_WAVEFORM)
    yield Exhausted("network of 1 Gb/s", _NETWORK / published.MEAN_WAVEFORM)


def _section(
    title: str,
    unit: str,
    lines: dict[str, Regression],
    across: Sequence[float],
    points: Sequence[Point],
    limits: Sequence[Exhausted],
) -> Section:
    rows = []
    for name, line in lines.items():
        scale = 1e9 if name == "memory" else 1.0
        rows.append(
            [
                f"{name}, {'GB' if name == 'memory' else 'cores'}",
                f"{amount(line.slope / scale)} ± {amount(line.slope_error / scale)}",
                amount(line.intercept / scale),
                f"{line.r2:.2f}",
                str(line.count),
            ]
        )
    exhausted = []
    for one in limits:
        if one.where is None:
            exhausted.append([one.resource, one.doubt, "-"])
        else:
            between = " to ".join(f"{each:,.0f}" for each in one.between) if one.between else "-"
            exhausted.append([one.resource, f"{one.where:,.0f}", between])
    known = [one for one in limits if one.where is not None]
    first = min(known, key=lambda one: one.where or 0.0) if known else None
    text = (
        "Nothing is known to be exhausted."
        if first is None
        else f"First {first.resource}: at {first.where:,.0f} {unit}."
    )
    plots = [_plot(title, name, unit, line, across, points) for name, line in lines.items()]
    return Section(
        title,
        [text, f"The most CPU that was measured: {max(one.cpu for one in points):.2f} cores."],
        [
            TextTable(f"Lines over {unit}", ["", "slope", "at 0", "R²", "points"], rows),
            TextTable("Exhausted at", ["", unit, "with confidence"], exhausted),
        ],
        plots,
    )


def _plot(
    title: str, name: str, unit: str, line: Regression, across: Sequence[float], points: Sequence[Point]
) -> Plot:
    scale = 1e9 if name == "memory" else 1.0
    low, high = min(across), max(across)
    places = [low + (high - low) * step / 20 for step in range(21)]
    band = [((x), (line.at(x) - line.error(x)) / scale, (line.at(x) + line.error(x)) / scale) for x in places]
    measured = [(x, getattr(one, name) / scale) for x, one in zip(across, points, strict=True)]
    drawn = [(x, line.at(x) / scale) for x in places]
    return Plot(
        f"{title.lower()}-{name}",
        f"{title}: {name} of the server over {unit}, the line and its confidence.",
        unit,
        "GB" if name == "memory" else "cores",
        [Line("measured", measured, joined=False), Line("line", drawn, band=band)],
    )


def _figures(of: str, unit: str, limits: Sequence[Exhausted], papers: dict[str, float]) -> Iterator[Figure]:
    for one in limits:
        why = f"{one.doubt}; " if one.doubt else ""
        yield Figure(
            f"{of} {one.resource}",
            f"{of}: {one.resource} exhausted at",
            unit,
            one.where,
            papers.get(one.resource),
            different=f"{why or 'extrapolated; '}there {published.MACHINE}",
        )
