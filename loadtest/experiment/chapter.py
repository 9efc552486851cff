"""The chapter of an experiment in the report, for every kind of result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringlog.loadtest.experiment.document import Block, Facts, Paragraph
from ringlog.loadtest.experiment.document import Heading as Title
from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.machine import Machine
from ringlog.loadtest.experiment.outcome import Counted, Figure, Outcome
from ringlog.loadtest.experiment.plots import pictures


@dataclass(frozen=True)
class Chapter:
    """An experiment in the report."""

    experiment: str
    title: str
    paper: str
    began: str
    counted: Sequence[Counted]
    figures: Sequence[Figure]
    short: Sequence[str]
    """sentences of the summary"""
    blocks: Sequence[Block]
    method: Sequence[str]
    command: str
    circumstances: Facts


def circumstances(machine: Machine, settings: dict[str, str], rows: Sequence[tuple[str, str]]) -> Facts:
    """The machine of an experiment."""
    return Facts(
        [
            ("processor", f"{machine.processor}, {machine.cores} cores"),
            ("memory", f"{machine.memory / 2**30:.1f} GiB"),
            ("system", machine.system),
            ("file system of the data", machine.file_system or "not on this machine"),
            *rows,
            ("PostgreSQL's settings", ", ".join(f"{name} {value}" for name, value in settings.items())),
        ]
    )


def chapter(outcome: Outcome, folder: Path) -> Chapter:
    """The chapter of an outcome; its pictures are drawn into the folder."""
    facts: list[tuple[str, str]] = [
        ("begun", f"{outcome.began}; it took {in_words(round(outcome.seconds))}"),
        ("load average", f"{outcome.load_before:.1f} before, {outcome.load_after:.1f} after"),
        ("scale", outcome.scale),
        *outcome.versions.items(),
    ]
    return Chapter(
        experiment=outcome.experiment,
        title=outcome.title,
        paper=outcome.paper,
        began=outcome.began,
        counted=outcome.counted,
        figures=outcome.figures,
        short=(),
        blocks=[*_blocks(outcome, folder)],
        method=outcome.method,
        command=outcome.command,
        circumstances=circumstances(outcome.machine, outcome.settings, facts),
    )


def _blocks(outcome: Outcome, folder: Path) -> Iterator[Block]:
    yield Paragraph(
        f"{outcome.scale} Begun {outcome.began}; load average of the machine {outcome.load_before:.1f} "
        f"before and {outcome.load_after:.1f} after, on {outcome.machine.cores} cores."
    )
    for section in outcome.sections:
        yield Title(section.heading, 3)
        yield from map(Paragraph, section.text)
        yield from pictures(section.plots, folder, f"{outcome.experiment}-")
        yield from section.tables
