"""Results of runs of several days as one result for each experiment, and the page about them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console

from ringlog.loadtest.experiment.outcome import Outcome, read_outcome, write_json
from ringlog.loadtest.experiment.progress import Steps
from ringlog.loadtest.spring8.results import EXPERIMENTS as SPRING8
from ringlog.loadtest.spring8.results import KINDS, Sample, read_results
from ringlog_lab import measurements
from ringlog_lab.ess.saturation import saturation
from ringlog_lab.papers.results import Family
from ringlog_lab.papers.runs import Run
from ringlog_lab.stage import Stage

_SAMPLES = 60
"""The fewest samples that are kept of a longer load: its picture. CPU and I/O need the first and the last."""


def join(family: Family, runs: Sequence[Run], folder: Path, into: Path) -> Iterator[str]:
    """Replaces the results in `into` of each experiment all of whose runs have a result of the family; says
    which others stay as they are."""
    results = family.results(folder, runs)
    there = into / measurements.RUNS
    joined = {one.run: one for one in measurements.kept_runs(into)}
    into.mkdir(parents=True, exist_ok=True)
    for experiment in dict.fromkeys(run.experiment for run in runs):
        own = [run for run in runs if run.experiment == experiment]
        if missing := [run.name for run in own if run.name not in results]:
            yield f"{experiment} stays as it is: {', '.join(missing)} missing"
            continue
        commands = "\n".join(run.command() for run in own)
        folders = [folder / run.name for run in own]
        if experiment in SPRING8:
            _spring8(experiment, folders, commands, into)
        else:
            found = [read_outcome(one / f"{experiment}.json") for one in folders]
            joined_outcome(found, commands).write(into)
        if experiment == "ess":
            saturation(Stage("saturation", 0.0, into, into, None, Steps(Console(quiet=True))))
        joined |= {run.name: results[run.name] for run in own}
        yield f"{experiment}: {', '.join(run.name for run in own)}"
    if joined:
        write_json([joined[run.name] for run in runs if run.name in joined], there)
        (into / "README.md").write_text(measurements.text(into))


def _spring8(experiment: str, folders: Sequence[Path], commands: str, into: Path) -> None:
    found = [one for folder in folders for one in read_results(folder, (experiment,))]
    loads = chain.from_iterable(one.runs for one in found)
    runs = [
        replace(run, samples=_thinned(run.samples), by_second=[])
        for run in sorted(loads, key=lambda run: KINDS.index(run.clients))
    ]
    replace(found[0], command=commands, versions=_all_of(found, "versions"), runs=runs).write(into)


def _thinned(samples: list[Sample]) -> list[Sample]:
    return [*samples[: -1 : max(1, len(samples) // _SAMPLES)], *samples[-1:]]


def joined_outcome(found: Sequence[Outcome], commands: str) -> Outcome:
    """One outcome of the parts of an experiment, which were made one after another."""
    parts: dict[str, Any] = {
        name: [*chain.from_iterable(getattr(one, name) for one in found)]
        for name in ("counted", "figures", "sections", "points", "short")
    }
    return replace(
        found[0],
        command=commands,
        seconds=sum(one.seconds for one in found),
        scale=" ".join(_different(one.scale for one in found)),
        load_after=found[-1].load_after,
        versions=_all_of(found, "versions"),
        method=_different(chain.from_iterable(one.method for one in found)),
        **parts,
    )


def _all_of(found: Sequence[Any], name: str) -> dict[str, str]:
    keys = dict.fromkeys(chain.from_iterable(getattr(one, name) for one in found))
    values = {key: [getattr(one, name)[key] for one in found if key in getattr(one, name)] for key in keys}
    return {key: "; ".join(_different(each)) for key, each in values.items()}


def _different(texts: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(texts)]
