"""The outcome of a run."""

import os
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field


@dataclass
class Figures:
    """The operations, and what the log has of the rows that were sent. `good`: no rows are lost, repeated or
    wrong without being named by the server, and there are no other problems."""

    operations: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    """acknowledged, or in a recording"""
    stored: int = 0
    lost: int = 0
    thinned: int = 0
    """missing rows that the server's ledger counts"""
    repeated: int = 0
    wrong: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    """further numbers"""
    longest: float = 0.0
    """seconds that a writer of a sound table has waited, but for restarts"""
    longest_of: str = ""
    answers: list[str] = field(default_factory=list)
    """its answers meanwhile"""
    outage: float = 0.0
    """seconds that a writer has waited, restarts included"""
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.lost or self.repeated or self.wrong or self.problems)

    def count(
        self,
        relation: str,
        sent: Iterable[tuple[object, ...]],
        stored: Iterable[tuple[object, ...]],
        thinned: Container[int] = (),
    ) -> None:
        """Compares whole rows. `thinned`: numbers of missing rows that the ledger explains."""
        expected, existing = Counter(sent), Counter(stored)
        lost, more = expected - existing, existing - expected
        repeated = sum(number for row, number in more.items() if row in expected)
        self.rows += expected.total()
        self.stored += existing.total()
        self.repeated += repeated
        self.wrong += more.total() - repeated
        if lost.total() in thinned:
            self.thinned += lost.total()
            lost.clear()
        self.lost += lost.total()
        for what, rows in (("lost", lost), ("repeated or not sent", more)):
            if rows:
                shown = f"{[*rows][:3]}"
                self.problems.append(f"{relation}: {rows.total()} {what}, as {shown:.600}")

    def __str__(self) -> str:
        def listed(numbers: Counter[str]) -> str:
            return ", ".join(f"{number} {name}" for name, number in sorted(numbers.items()))

        waits = (
            f"longest wait: {self.outage:.3f} s; but for restarts {self.longest:.3f} s"
            f" ({self.longest_of}), at a load of {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores"
        )
        return "\n".join(
            [
                f"{self.operations.total()} operations ({listed(self.operations)})",
                f"{self.rows} rows, {self.stored} in the log: {self.lost} lost, {self.repeated} repeated,"
                f" {self.wrong} wrong; {self.thinned} missing as the ledger counts",
                listed(self.notes),
                *([waits] if self.outage else []),
                *self.answers[-20:],
                *self.problems,
            ]
        )
