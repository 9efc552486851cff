"""The report of all experiments: one HTML file, and the same as Markdown."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ringlog.loadtest.experiment.document import (
    Block,
    Code,
    Facts,
    Heading,
    Items,
    Paragraph,
    Verdict,
    html,
    markdown,
)
from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Counted, Figure, Outcome
from ringlog.loadtest.experiment.plots import pictures
from ringlog.loadtest.experiment.text_table import TextTable

MISSING = "-"


def write_report(outcomes: Sequence[Outcome], folder: Path, beside: TextTable | None = None) -> Path:
    """Writes report.html, report.md and the pictures; returns the path of the first. `beside` compares with
    another run."""
    blocks = [*_blocks(outcomes, folder, beside)]
    page = folder / "report.html"
    page.write_text(html(blocks, folder))
    (folder / "report.md").write_text(markdown(blocks))
    return page


def _blocks(outcomes: Sequence[Outcome], folder: Path, beside: TextTable | None) -> Iterator[Block]:
    yield Heading("ringlog load test: the papers' experiments repeated", 1)
    yield verdict([one for outcome in outcomes for one in outcome.counted])
    yield Heading("The papers' figures and ours")
    yield summary(outcomes)
    if beside is not None:
        yield beside
    short = [text for outcome in outcomes for text in outcome.short]
    if short:
        yield Heading("In short")
        yield Items(short)
    yield Heading("Rows checked")
    yield _counted(outcomes)
    for outcome in outcomes:
        yield Heading(outcome.title)
        yield Paragraph(f"The paper: {outcome.paper}.")
        yield Paragraph(
            f"{outcome.scale} Begun {outcome.began}; load average of the machine {outcome.load_before:.1f} "
            f"before and {outcome.load_after:.1f} after, on {outcome.machine.cores} cores."
        )
        for section in outcome.sections:
            yield Heading(section.heading, 3)
            yield from map(Paragraph, section.text)
            yield from pictures(section.plots, folder, f"{outcome.experiment}-")
            yield from section.tables
        if outcome.method:
            yield Heading("How this was measured", 3)
            yield Items(outcome.method)
    yield Heading("The machine, and how to repeat it")
    for outcome in outcomes:
        if len(outcomes) > 1:
            yield Heading(outcome.title, 3)
        yield Code(outcome.command)
        yield _circumstances(outcome)


def _circumstances(outcome: Outcome) -> Facts:
    machine = outcome.machine
    settings = ", ".join(f"{name} {value}" for name, value in outcome.settings.items())
    return Facts(
        [
            ("processor", f"{machine.processor}, {machine.cores} cores"),
            ("memory", f"{machine.memory / 2**30:.1f} GiB"),
            ("system", machine.system),
            ("file system of the data", machine.file_system or "not on this machine"),
            ("begun", f"{outcome.began}; it took {in_words(round(outcome.seconds))}"),
            ("load average", f"{outcome.load_before:.1f} before, {outcome.load_after:.1f} after"),
            ("scale", outcome.scale),
            *outcome.versions.items(),
            ("PostgreSQL's settings", settings),
        ]
    )


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


def summary(outcomes: Sequence[Outcome]) -> TextTable:
    """All figures of a paper, with ours."""
    rows = [
        [f"{outcome.experiment}: {one.title}", *figures(one), one.different]
        for outcome in outcomes
        for one in outcome.figures
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


def _counted(outcomes: Sequence[Outcome]) -> TextTable:
    rows = [
        [
            f"{outcome.experiment}: {one.what}",
            *(f"{count:,}" for count in (one.acknowledged, one.found, one.altered, one.lost)),
        ]
        for outcome in outcomes
        for one in outcome.counted
    ]
    headings = ["", "acknowledged", "found", "altered", "lost"]
    return TextTable("Every acknowledged row, checked after its load", headings, rows)
