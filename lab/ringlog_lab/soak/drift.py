"""Whether a figure gets worse over time, as far as the samples are sufficient to decide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

TOLERANCE = 0.10
"""Of the median, over the whole run: less than this is no deterioration."""
_CONFIDENCE = 0.95
_LEAST = 10
"""Samples that a verdict needs."""
_MOST_ALIKE = 0.95
"""Maximum correlation of a sample with the next one: more cannot be determined from so few samples."""


class Verdict(StrEnum):
    NONE = "no deterioration"
    SMALL = f"rises by less than {100 * TOLERANCE:.0f} %"
    WORSE = "gets worse"
    UNDECIDED = "not decided"


@dataclass(frozen=True)
class Drift:
    """The change of a figure from the first sample to the last, as a part of its median."""

    verdict: Verdict
    change: float | None
    least: float | None
    """ends of the confidence interval"""
    most: float | None
    earliest: float | None
    """the time after which the figure may be TOLERANCE higher, if the slope is that of the upper end"""
    slope: tuple[float, float, float] | None = None
    """the figure's change in a unit of time, and the ends of its interval"""


def drift(samples: Sequence[tuple[float, float]]) -> Drift:
    """The drift of samples (time, figure); a higher figure is worse.

    The slope is the median of the slopes between all pairs (Theil and Sen), which single outliers do not
    move, with its confidence interval. `no deterioration`: the interval has 0 or less in it, and lies below
    TOLERANCE. `rises by less than 10 %`: it lies above 0 and below TOLERANCE. `gets worse`: it lies above 0
    and reaches beyond TOLERANCE. Everything else, also fewer than ten samples, is not decided.

    The interval by Sen is that of samples which do not depend on each other. Sizes and loads of a machine do:
    a sample is like the one before. So it is widened as for samples of which each depends on the one before
    (K. Hamed, A. Rao: A modified Mann-Kendall trend test for autocorrelated data, J. Hydrology 204, 1998).
    """
    # late: it is large, and not every command needs it
    from scipy import stats

    if len(samples) < _LEAST:
        return Drift(Verdict.UNDECIDED, None, None, None, None)
    across, up = [one[0] for one in samples], [one[1] for one in samples]
    middle = sorted(abs(one) for one in up)[len(up) // 2]
    if max(up) == min(up):
        return Drift(Verdict.NONE, 0.0, 0.0, 0.0, None, (0.0, 0.0, 0.0))
    slope = stats.theilslopes(up, across).slope
    wider = _wider(stats.rankdata([y - slope * x for x, y in samples]))
    outside = 2 * stats.norm.sf(wider * stats.norm.isf((1 - _CONFIDENCE) / 2))
    slope, _, low, high = map(float, stats.theilslopes(up, across, outside))
    length = max(across) - min(across)
    change, least, most = (one * length / (middle or max(map(abs, up))) for one in (slope, low, high))
    if most <= TOLERANCE:
        verdict = Verdict.SMALL if least > 0 else Verdict.NONE
    elif least > 0:
        verdict = Verdict.WORSE
    else:
        verdict = Verdict.UNDECIDED
    earliest = length * TOLERANCE / most if most > 0 else None
    return Drift(verdict, change, least, most, earliest, (slope, low, high))


def _wider(ranks: Sequence[float]) -> float:
    """The factor by which an interval is wider than without correlation, from the ranks of the residuals."""
    count = len(ranks)
    middle = (count + 1) / 2
    around = [float(rank) - middle for rank in ranks]
    squares = sum(one * one for one in around)
    if not squares:  # a straight line
        return 1.0
    alike = sum(one * other for one, other in pairwise(around)) / squares
    # few samples around their own line look less correlated than they are
    alike = min(max((count * alike + 2) / (count - 4), 0.0), _MOST_ALIKE)
    return math.sqrt((1 + alike) / (1 - alike))
