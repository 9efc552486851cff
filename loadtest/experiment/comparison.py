"""Compares a run of experiments with an earlier one."""

from collections.abc import Sequence

from ringlog.loadtest.experiment.outcome import Outcome
from ringlog.loadtest.experiment.report import amount
from ringlog.loadtest.experiment.text_table import TextTable


def compare(earlier: Sequence[Outcome], later: Sequence[Outcome]) -> TextTable:
    """The figures that both have, by experiment and key."""
    then = {(outcome.experiment, one.key): one.ours for outcome in earlier for one in outcome.figures}
    rows = []
    for outcome in later:
        for now in outcome.figures:
            before = then.get((outcome.experiment, now.key))
            if before is not None and now.ours is not None:
                change = f"{100 * (now.ours - before) / abs(before):+.1f} %" if before else "-"
                title = f"{outcome.experiment}: {now.title}"
                rows.append([title, now.unit, amount(before), amount(now.ours), change])
    begun = ", ".join(dict.fromkeys(outcome.began for outcome in earlier)) or "an empty folder"
    return TextTable(f"Compared with the run of {begun}", ["", "unit", "then", "now", "change"], rows)
