"""What repeats the five papers: runs of `ringlog loadtest`, at lengths that mean something."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from ringlog_lab.ess.scenarios import SCENARIOS

_FORTNIGHT = 95
"""minutes that `soak` takes for fourteen days of the rows' time, on two cores"""
_DAYS_A_SECOND = 14 / (_FORTNIGHT * 60)
_LEAST_DAYS = 0.001


@dataclass(frozen=True)
class Run:
    """An experiment, or a part of it that takes as long."""

    name: str
    paper: str
    experiment: str
    loads: int
    length: float
    """minutes of each load"""
    beside: float
    """minutes for servers, data and the check of rows; on two cores"""
    options: str = ""
    room: float = 10.0
    """GB on the disk, at most"""

    def minutes(self, seconds: float | None = None) -> float:
        """The duration with loads of these seconds, or of the list's."""
        return self.loads * (self.length if seconds is None else seconds / 60) + self.beside

    def words(self, seconds: float | None = None) -> list[str]:
        """The words after `ringlog loadtest`."""
        each = 60 * self.length if seconds is None else seconds
        if self.experiment in ("soak", "turns"):
            length = ["--days", f"{max(_LEAST_DAYS, each * _DAYS_A_SECOND):.3f}"]
        else:
            length = ["--time", f"{each:g}s"]
        return [self.experiment, *length, *shlex.split(self.options)]

    def command(self, seconds: float | None = None) -> str:
        """The same in any folder: a result of another command is not one of this run."""
        return shlex.join(["ringlog", "loadtest", *self.words(seconds)])


def _ess(points: int, beside: float) -> Iterator[Run]:
    """The scenarios of waveforms of one length."""
    names = [name for name, one in SCENARIOS.items() if one.points == points]
    # none is left out because the disk is too slow for it: then frames are dropped, as in the paper
    options = f"--retrieved none --limit 1e6 --scenarios {','.join(names)}"
    yield Run(f"ess-{points}", "003, table 2", "ess", len(names), 1, beside, options, room=30)


RUNS = (
    Run("normal", "004, section 6.1", "normal", 1, 120, 3),
    Run("max-ctlib", "004, table 1", "max", 1, 120, 5, "--clients ctlib", room=25),
    Run("max-native", "004, table 1", "max", 1, 120, 12, "--clients native", room=60),
    Run("max-python", "004, table 1", "max", 1, 120, 5, "--clients python"),
    Run("columns", "004, figure 4", "columns", 21, 1, 5, room=15),
    Run("users", "004, users", "users", 10, 2, 5, room=15),
    Run("soak", "004, fourteen days", "soak", 1, _FORTNIGHT, 5, room=20),
    Run("turns", "004, fourteen days", "turns", 1, _FORTNIGHT, 40, room=30),
    Run("sdalinac", "000 and 001", "sdalinac", 40, 1, 10, room=30),
    Run("half", "002", "half", 57, 1, 40, "--minutes 0.1,0.25,0.5,1 --hours 10", room=30),
    *_ess(1_000, 3),
    *_ess(10_000, 3),
    # up to 2,000 tables
    *_ess(100_000, 12),
    Run("ess-retrieval", "003, table 3", "ess", 72, 1, 15, "--scenarios none --forms csv,raw"),
)
"""`saturation` of papers/003 is computed from all parts of `ess`."""
