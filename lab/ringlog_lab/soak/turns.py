"""The experiment `turns`: the last days of a long run and the first of a new one, in turns on one machine.

What is slower in the last days shows as a ratio of two turns that follow each other: the machine's own ups
and downs are in both.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ringlog.loadtest.experiment.outcome import Figure, Outcome, Section
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Data, Output
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog.loadtest.spring8.command import FacilityFile
from ringlog_lab.soak.plan import DAY, Plan, Run, planned
from ringlog_lab.stage import Stage, play

if TYPE_CHECKING:
    from ringlog_lab.soak.loading import Loading

COMPARED = 2 / 7
"""The part of the days that is compared, the long run's last and the other's first: four of the fourteen."""
TURNS = 8
"""of each run: half days then"""
_METHOD = [
    "Two servers with the facility of `soak`, both running all the time: one has the rows of all days but "
    f"the last ones, the other none. Each is loaded for an {TURNS}th of these days, in turns, now one and "
    "now the other first; who is not loaded has its own rounds only. A ratio is that of the two turns of a "
    "pair, of the rows' time (median, 99 %) and of the CPU of gateway and PostgreSQL a row.",
]
_TITLES = {"p50": "latency, median", "p99": "latency, 99 %", "cpu": "CPU of the server, a row"}


@dataclass(frozen=True)
class Turn:
    """Seconds of a row in a turn."""

    rows: int
    p50: float
    p99: float
    cpu: float


def turns(
    facility: FacilityFile,
    days: Annotated[float, typer.Option(metavar="D", min=0.001, help="Days of the long run.")] = 14.0,
    tables: Annotated[int, typer.Option(metavar="N", min=1, help="Only every Nth table is written.")] = 3,
    thin: Annotated[float, typer.Option(metavar="X", min=1.0, help="Factor of the cycles.")] = 1.0,
    data: Data = None,
    output: Output = OUTPUT,
    compare: Compare = None,
) -> None:
    """Days 11 to 14 of a soak beside days 1 to 4 of another, in turns: whether the last ones are slower, and
    what is different inside PostgreSQL."""

    def perform(stage: Stage) -> Outcome:
        text = facility.read_text()
        return _perform(stage, text, planned(days, tables, thin, text, datetime.now(UTC)))

    play("turns", f"{days}d", output, data, compare, perform)


def _perform(stage: Stage, text: str, plan: Plan) -> Outcome:
    # late: what they import starts threads, which commands that fork must not have
    from ringlog_lab.soak import report
    from ringlog_lab.soak.found import look_for
    from ringlog_lab.soak.inside import tables_of
    from ringlog_lab.soak.loading import begun

    last = plan.days * COMPARED
    folder = (stage.data or stage.folder).resolve()
    old, new = (Run.begun(folder / name, plan) for name in ("old", "new"))
    with begun(stage, old, text) as before, begun(stage, new, text) as after:
        loads = {"old": (before, plan.days - last), "new": (after, 0.0)}
        before.go(plan.days - last)
        found: dict[str, list[Turn]] = {"old": [], "new": []}
        for number in range(TURNS):
            for name in ("old", "new") if number % 2 else ("new", "old"):
                loading, since = loads[name]
                found[name].append(_turn(loading, since + last * (number + 1) / TURNS))
        counted = []
        for name, (loading, _) in loads.items():
            loading.end()
            stage.steps.say(f"Looking for every acknowledged row of the {name} run")
            written = loading.acknowledged()
            counted.append(
                report.counted(f"rows of the {name} run", look_for(loading.server, loading.facility, written))
            )
        outcome = stage.finish(
            "The last days of a soak beside the first (papers/004)",
            report.SOURCE,
            f"Days {plan.days - last:.3g} to {plan.days:.3g} beside days 0 to {last:.3g} of the rows' time, "
            f"in {TURNS} turns each.",
            counted,
            [*_figures(found)],
            [
                Section("Old beside new", (), [_table(found)]),
                *(
                    Section(f"Inside PostgreSQL, {name}", (), tables_of(run.insides(), DAY))
                    for name, run in (("old", old), ("new", new))
                ),
            ],
            _METHOD,
        )
    if outcome.good:
        old.remove()
        new.remove()
    return outcome


def _turn(loading: "Loading", upto: float) -> Turn:
    import numpy as np

    from ringlog.loader.schedule import SECOND

    begin = loading.look()
    loading.go(upto)
    end = loading.run.looks()[-1]
    written = loading.acknowledged()
    times = (written["begun"] - loading.run.plan.begin) / SECOND
    latency = written["latency"][(times >= begin.seconds) & (times < end.seconds)] / SECOND
    return Turn(
        len(latency),
        float(np.quantile(latency, 0.5)),
        float(np.quantile(latency, 0.99)),
        (end.cpu - begin.cpu) / max(1, end.rows - begin.rows),
    )


def _ratios(found: dict[str, list[Turn]], name: str) -> list[float]:
    pairs = zip(found["old"], found["new"], strict=True)
    return [getattr(old, name) / getattr(new, name) for old, new in pairs]


def _figures(found: dict[str, list[Turn]]) -> Iterator[Figure]:
    for name, title in _TITLES.items():
        ratios = _ratios(found, name)
        yield Figure(
            f"ratio {name}",
            f"{title}: the last days, of the first",
            "%",
            100 * statistics.median(ratios),
            different=f"{100 * min(ratios):.0f} to {100 * max(ratios):.0f} % in {len(ratios)} pairs of turns",
        )


def _table(found: dict[str, list[Turn]]) -> TextTable:
    rows = []
    for number, (old, new) in enumerate(zip(found["old"], found["new"], strict=True), start=1):
        row = [str(number)]
        for name in _TITLES:
            mine, other = getattr(old, name), getattr(new, name)
            row += [f"{1e3 * mine:.3g}", f"{1e3 * other:.3g}", f"{100 * mine / other:.0f} %"]
        rows.append([*row, f"{old.rows:,}", f"{new.rows:,}"])
    parts = ("old, ms", "new, ms", "old of new")
    headings = ["turn", *(f"{title}: {part}" for title in _TITLES.values() for part in parts)]
    return TextTable("Turns that follow each other", [*headings, "rows, old", "rows, new"], rows)
