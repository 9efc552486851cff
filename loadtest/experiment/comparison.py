"""Compares a run of experiments with an earlier one."""

from collections.abc import Iterator, Sequence

from ringlog.loadtest.experiment.chapter import Chapter
from ringlog.loadtest.experiment.outcome import Figure
from ringlog.loadtest.experiment.report import amount
from ringlog.loadtest.experiment.text_table import TextTable


def compare(earlier: Sequence[Chapter], later: Sequence[Chapter]) -> TextTable:
    """The figures that both have, by experiment and key."""
    then = {(chapter.experiment, one.key): (chapter, one) for chapter in earlier for one in chapter.figures}
    rows = []
    for chapter, now in _figures(later):
        found = then.get((chapter.experiment, now.key))
        if found is not None and found[1].ours is not None and now.ours is not None:
            before = found[1].ours
            change = f"{100 * (now.ours - before) / abs(before):+.1f} %" if before else "-"
            title = f"{chapter.experiment}: {now.title}"
            rows.append([title, now.unit, amount(before), amount(now.ours), change])
    begun = ", ".join(dict.fromkeys(chapter.began for chapter in earlier)) or "an empty folder"
    return TextTable(f"Compared with the run of {begun}", ["", "unit", "then", "now", "change"], rows)


def _figures(chapters: Sequence[Chapter]) -> Iterator[tuple[Chapter, Figure]]:
    for chapter in chapters:
        for one in chapter.figures:
            yield chapter, one
