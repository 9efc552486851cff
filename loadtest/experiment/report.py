"""The report of all experiments: one HTML file, and the same as Markdown."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ringlog.loadtest.experiment.chapter import Chapter
from ringlog.loadtest.experiment.document import (
    Block,
    Code,
    Heading,
    Items,
    Paragraph,
    Verdict,
    html,
    markdown,
)
from ringlog.loadtest.experiment.outcome import Counted, Figure
from ringlog.loadtest.experiment.text_table import TextTable

MISSING = "-"


def write_report(chapters: Sequence[Chapter], folder: Path, beside: TextTable | None = None) -> Path:
    """Writes report.html and report.md; returns the path of the first. `beside` compares with another run."""
    blocks = [*_blocks(chapters, beside)]
    page = folder / "report.html"
    page.write_text(html(blocks, folder))
    (folder / "report.md").write_text(markdown(blocks))
    return page


def _blocks(chapters: Sequence[Chapter], beside: TextTable | None) -> Iterator[Block]:
    yield Heading("ringlog load test: the papers' experiments repeated", 1)
    yield verdict([one for chapter in chapters for one in chapter.counted])
    yield Heading("The papers' figures and ours")
    yield summary(chapters)
    if beside is not None:
        yield beside
    short = [text for chapter in chapters for text in chapter.short]
    if short:
        yield Heading("In short")
        yield Items(short)
    yield Heading("Rows checked")
    yield _counted(chapters)
    for chapter in chapters:
        yield Heading(chapter.title)
        yield Paragraph(f"The paper: {chapter.paper}.")
        yield from chapter.blocks
        if chapter.method:
            yield Heading("How this was measured", 3)
            yield Items(chapter.method)
    yield Heading("The machine, and how to repeat it")
    for chapter in chapters:
        if len(chapters) > 1:
            yield Heading(chapter.title, 3)
        yield Code(chapter.command)
        yield chapter.circumstances


def verdict(counted: Sequence[Counted]) -> Verdict:
    """The summary sentence."""
    acknowledged, lost, altered = (
        sum(getattr(one, what) for one in counted) for what in ("acknowledged", "lost", "altered")
    )
    more = sum(max(0, one.found - one.acknowledged) for one in counted)
    begin = "Nothing was lost" if acknowledged else "Nothing was written"
    if more:
        begin = "THERE ARE ROWS THAT NOBODY SENT"
    if altered:
        begin = "ROWS WERE ALTERED"
    if lost:
        begin = "ROWS WERE LOST"
    text = (
        f"{begin}: {acknowledged:,} rows acknowledged, {acknowledged - lost:,} found where they must be, "
        f"{lost:,} lost, {altered:,} with other values than were sent"
    )
    return Verdict(bool(acknowledged) and not (lost or altered or more), text)


def summary(chapters: Sequence[Chapter]) -> TextTable:
    """All figures of a paper, with ours."""
    rows = [
        [f"{chapter.experiment}: {one.title}", *figures(one), one.different]
        for chapter in chapters
        for one in chapter.figures
        if one.paper is not None
    ]
    return TextTable(
        "Ratio: ours to the paper's; of times, CPU and drops less than 1 is better, of rates more. Machines, "
        "sizes and years differ; other differences are listed.",
        ["", "unit", "the paper", "here", "ratio", "what was different"],
        rows,
        remarks=True,
    )


def figures(one: Figure) -> list[str]:
    """Unit, the paper's, ours, their ratio."""
    paper = MISSING if one.paper is None else f"{one.limit}{' ' if one.limit else ''}{amount(one.paper)}"
    ratio = MISSING if one.ratio is None else amount(one.ratio)
    return [one.unit, paper, MISSING if one.ours is None else amount(one.ours), ratio]


def amount(value: float) -> str:
    """A figure with three digits, or its integer part."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 or not value else f"{value:.1e}"


def _counted(chapters: Sequence[Chapter]) -> TextTable:
    rows = [
        [
            f"{chapter.experiment}: {one.what}",
            *(f"{count:,}" for count in (one.acknowledged, one.found, one.altered, one.lost)),
        ]
        for chapter in chapters
        for one in chapter.counted
    ]
    headings = ["", "acknowledged", "found", "altered", "lost"]
    return TextTable("Every acknowledged row, checked after its load", headings, rows)
