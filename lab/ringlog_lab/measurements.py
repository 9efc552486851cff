"""lab/ringlog_lab/measured/README.md: the figures of the results that are kept in this folder.

python -m ringlog_lab.measurements > lab/ringlog_lab/measured/README.md
"""

from collections.abc import Iterator
from pathlib import Path

import ringlog_lab
from ringlog.loadtest import lab
from ringlog.loadtest.experiment.document import Block, Code, Heading, Paragraph, markdown
from ringlog.loadtest.experiment.outcome import Counted, Figure, read_outcome
from ringlog.loadtest.experiment.report import amount, figures, verdict
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog.loadtest.spring8.beside import figures_of
from ringlog.loadtest.spring8.chapter import counted as counted_of
from ringlog.loadtest.spring8.results import EXPERIMENTS, read_results

KEPT = Path(ringlog_lab.__file__).parent / "measured"


def text(folder: Path = KEPT) -> str:
    """The document, from the results of a folder."""
    return markdown([*_blocks(folder)])


def _blocks(folder: Path) -> Iterator[Block]:
    yield Heading("Measured results", 1)
    yield Paragraph(
        "Made from the JSON files of this folder by `python -m ringlog_lab.measurements`; do not edit it. "
        "[Load test](../../../docs/reference/load-test.md) describes the experiments. "
        "`ringlog loadtest report --output` with a copy of the folder makes the whole report, also of "
        "`columns` and `users`. Five figures were repeated with other tools ([by hand](by-hand.md)). "
        "The machine compiled and tested at the same time, as the load averages show: ratios within a run "
        "hold better than absolute figures."
    )
    for result in read_results(folder, EXPERIMENTS):
        if result.experiment in ("columns", "users"):
            continue  # many figures, none in the paper
        load = f"load average {result.runs[0].load_before:.1f} before" if result.runs else ""
        where = (
            f"ringlog {result.versions['ringlog']}; {result.machine.processor}, {result.machine.cores} "
            f"cores; {load}"
        )
        yield from _one(
            result.experiment,
            result.command,
            result.began,
            where,
            [*counted_of(result)],
            [*figures_of(result)],
        )
    for name in lab.EXPERIMENTS:
        if (folder / f"{name}.json").exists():
            one = read_outcome(folder / f"{name}.json")
            where = (
                f"ringlog {one.versions['ringlog']}; {one.machine.processor}, {one.machine.cores} cores; "
                f"load average {one.load_before:.1f} before, {one.load_after:.1f} after. {one.scale}"
            )
            yield from _one(name, one.command, one.began, where, one.counted, one.figures)


def _one(
    name: str,
    command: str,
    began: str,
    where: str,
    counted: list[Counted],
    found: list[Figure],
) -> Iterator[Block]:
    yield Heading(name)
    yield Code(command)
    yield Paragraph(f"{began}, {where}")
    if counted:
        yield Paragraph(f"{verdict(counted).text}.")
    with_paper = [one for one in found if one.paper is not None]
    if with_paper:
        # each condition once, below the table
        parts = [_conditions(one) for one in with_paper]
        numbers = {part: n for n, part in enumerate(dict.fromkeys(p for each in parts for p in each), 1)}
        yield TextTable(
            "",
            ["", "unit", "the paper", "here", "ratio", "conditions"],
            [
                [one.title, *figures(one), ", ".join(str(numbers[part]) for part in each)]
                for one, each in zip(with_paper, parts, strict=True)
            ],
        )
        yield Paragraph(". ".join(f"{number}) {part}" for part, number in numbers.items()) + ".")
    others = [one for one in found if one.paper is None and one.ours is not None]
    if others and not with_paper:
        rows = [[one.title, one.unit, amount(one.ours or 0.0)] for one in others]
        yield TextTable("", ["", "unit", "here"], rows)


def _conditions(one: Figure) -> list[str]:
    return one.different.split("; ")


def main() -> None:
    print(text(), end="")


if __name__ == "__main__":
    main()
