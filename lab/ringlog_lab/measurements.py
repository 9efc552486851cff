"""lab/ringlog_lab/measured/README.md: the figures of the results that are kept in this folder.

python -m ringlog_lab.measurements > lab/ringlog_lab/measured/README.md
"""

from collections.abc import Iterator
from pathlib import Path

import ringlog_lab
from ringlog.loadtest.experiment.catalogue import outcomes
from ringlog.loadtest.experiment.document import Block, Code, Heading, Paragraph, markdown
from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Outcome, read_json
from ringlog.loadtest.experiment.report import amount, figures, verdict
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.papers.results import Result

KEPT = Path(ringlog_lab.__file__).parent / "measured"
RUNS = "runs.json"
"""of the runs that `ringlog loadtest all` joined"""


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
        "Where the load average was above 0.2 before, the machine had other work: ratios within a run hold "
        "better than absolute figures."
    )
    if runs := kept_runs(folder):
        yield Paragraph("These runs, on a machine that did nothing else, are one after another by date:")
        yield TextTable("", _HEADINGS, [_cells(one) for one in runs])
    for outcome in outcomes(folder):
        if outcome.experiment not in ("columns", "users"):  # many figures, none in the paper
            yield from _one(outcome)


def kept_runs(folder: Path = KEPT) -> list[Result]:
    """The runs whose results were joined into a folder."""
    file = folder / RUNS
    return read_json(file, list[Result]) if file.exists() else []


_HEADINGS = [
    "run",
    "papers/",
    "ringlog",
    "begun, UTC",
    "each load",
    "all, min",
    "load average",
    "others, cores",
]


def _cells(one: Result) -> list[str]:
    return [
        one.run,
        one.paper,
        f"{one.version}, {one.commit}",
        one.began.removesuffix(" UTC"),
        in_words(one.seconds),
        f"{one.took / 60:.0f}",
        f"{one.load_before:.2f} before, {one.load_after:.2f} after",
        f"{one.others:.2f}",
    ]


def _one(outcome: Outcome) -> Iterator[Block]:
    yield Heading(outcome.experiment)
    yield Code(outcome.command)
    yield Paragraph(
        f"{outcome.began}, ringlog {outcome.versions['ringlog']}; {outcome.machine.processor}, "
        f"{outcome.machine.cores} cores; load average {outcome.load_before:.1f} before, "
        f"{outcome.load_after:.1f} after. {outcome.scale}"
    )
    if outcome.counted:
        yield Paragraph(f"{verdict(outcome.counted).text}.")
    with_paper = [one for one in outcome.figures if one.paper is not None]
    if with_paper:
        # each condition once, below the table
        parts = [one.different.split("; ") for one in with_paper]
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
    others = [one for one in outcome.figures if one.paper is None and one.ours is not None]
    if others and not with_paper:
        rows = [[one.title, one.unit, amount(one.ours or 0.0)] for one in others]
        yield TextTable("", ["", "unit", "here"], rows)


def main() -> None:
    print(text(), end="")


if __name__ == "__main__":
    main()
