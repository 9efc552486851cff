"""Regression lines over measured points, and a model of a load's needs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.outcome import Point

CONFIDENCE = 0.95
EXPLAINED = 0.5
"""The minimum R² of an extrapolated line: below it, other influences are stronger than the variable."""
_LEAST = 3
"""Points of a regression line, at least."""


@dataclass(frozen=True)
class Regression:
    """A line by least squares, with its confidence."""

    slope: float
    intercept: float
    slope_error: float
    """half the confidence interval of the slope"""
    r2: float
    count: int
    _mean: float
    _spread: float
    _deviation: float
    _factor: float

    @property
    def certain(self) -> bool:
        """Whether the line rises significantly and explains most of the measurements."""
        return self.slope - self.slope_error > 0 and self.r2 >= EXPLAINED

    @property
    def doubt(self) -> str:
        """The reason why the line is not certain; empty if it is."""
        if self.slope - self.slope_error <= 0:
            return "the line does not rise beyond doubt"
        return "" if self.certain else f"the points are not near their line (R² {self.r2:.2f})"

    def at(self, x: float) -> float:
        return self.intercept + self.slope * x

    def error(self, x: float) -> float:
        """Half the confidence interval of the line at x."""
        spread = 1 / self.count + ((x - self._mean) ** 2 / self._spread if self._spread else 0.0)
        return self._factor * self._deviation * math.sqrt(spread)

    def reaches(self, limit: float) -> float | None:
        """Where the line reaches a limit; None when it is not certain."""
        return max(0.0, (limit - self.intercept) / self.slope) if self.certain else None

    def reaches_between(self, limit: float) -> tuple[float, float] | None:
        """The same for the greatest and the least slope of the confidence interval."""
        if not self.certain:
            return None
        ends = (self.slope + self.slope_error, self.slope - self.slope_error)
        least, most = ((limit - self.intercept) / slope for slope in ends)
        return max(0.0, least), max(0.0, most)


def regression(points: Sequence[tuple[float, float]]) -> Regression:
    """The line through points. Raises LoadTestError for fewer than three, or all at one place."""
    # late: it is large, and not every command needs it
    from scipy import stats

    across, up = [one[0] for one in points], [one[1] for one in points]
    if len(points) < _LEAST or max(across) == min(across):
        raise LoadTestError(
            f"a regression line needs {_LEAST} measured points at different places, here are {len(points)}: "
            "run ringlog loadtest ess with more scenarios"
        )
    found = stats.linregress(across, up)
    factor = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(points) - 2))
    mean = sum(across) / len(across)
    residuals = [y - (found.intercept + found.slope * x) for x, y in points]
    deviation = math.sqrt(sum(one * one for one in residuals) / (len(points) - 2))
    return Regression(
        slope=float(found.slope),
        intercept=float(found.intercept),
        slope_error=factor * float(found.stderr),
        r2=float(found.rvalue) ** 2,
        count=len(points),
        _mean=mean,
        _spread=sum((x - mean) ** 2 for x in across),
        _deviation=deviation,
        _factor=factor,
    )


@dataclass(frozen=True)
class Cost:
    """Cores or bytes for a frame per second and for a MB/s, none of them below 0, and the constant part."""

    base: float
    frame: float
    megabyte: float
    deviation: float
    """standard deviation of the measured points from it"""

    def of(self, frames: float, megabytes: float) -> float:
        return self.base + self.frame * frames + self.megabyte * megabytes


def cost(points: Sequence[Point], figure: str) -> Cost:
    """The `cpu` or `memory` of storing, by least squares without negative parts. Raises LoadTestError."""
    import numpy as np
    from scipy.optimize import nnls

    if len(points) < _LEAST:
        raise LoadTestError(f"the model needs at least {_LEAST} scenarios that were stored")
    matrix = np.array([[1.0, one.rate, one.megabytes] for one in points])
    measured = np.array([getattr(one, figure) for one in points])
    # columns of like size: their units are far apart
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-12)
    found, _ = nnls(matrix / scale, measured)
    base, frame, megabyte = (float(one) for one in found / scale)
    left = measured - matrix @ (found / scale)
    return Cost(base, frame, megabyte, float(np.sqrt((left**2).sum() / max(1, len(points) - 3))))


def size(bytes: float) -> str:
    return f"{bytes / 1e12:,.1f} TB" if bytes >= 1e12 else f"{bytes / 1e9:,.1f} GB"
