"""The trusted clock: PostgreSQL's, or that of the last round (`clock.py` has the rules)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

JUMP = timedelta(days=1)
"""A clock that differs by more from the previous round's has jumped."""


@dataclass(frozen=True)
class Clock:
    """PostgreSQL's clock in a round of housekeeping, in UTC."""

    now: datetime
    round: datetime
    """the clock of the last trusted round"""

    @property
    def trusted(self) -> datetime:
        """The time as of which weeks leave the log and files the archive."""
        return min(self.now, self.round + JUMP)

    @property
    def doubt(self) -> str | None:
        """Why the clock is not trusted, for the operator; None: it is trusted."""
        if abs(self.now - self.round) <= JUMP:
            return None
        where = "ahead of" if self.now > self.round else "behind"
        days = abs(self.now - self.round) / timedelta(days=1)
        return (
            f"PostgreSQL's clock ({self.now:%Y-%m-%d %H:%M} UTC) is {days:.1f} days {where} the last round of"
            f" housekeeping ({self.round:%Y-%m-%d %H:%M}): weeks are dropped and archived as of"
            f" {self.trusted:%Y-%m-%d %H:%M}. If the clock is right: ringlog maintain --clock-is-right"
        )
