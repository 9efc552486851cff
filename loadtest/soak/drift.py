"""Whether a figure gets worse over time, as far as the samples are sufficient to decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

TOLERANCE = 0.10
"""Of the median, over the whole run: less than this is no deterioration."""
_CONFIDENCE = 0.95
_LEAST = 10
"""Samples that a verdict needs."""


class Verdict(StrEnum):
    """What the samples say."""

    NONE = "no deterioration"
    WORSE = "gets worse"
    UNDECIDED = "not decided"


@dataclass(frozen=True)
class Drift:
    """The change of a figure over the run, as a part of its median."""

    verdict: Verdict
    change: float | None
    least: float | None
    """ends of the confidence interval"""
    most: float | None


def drift(samples: Sequence[tuple[float, float]]) -> Drift:
    """The drift of samples (time, figure), of which more is worse.

    The slope is the median of the slopes between all pairs (Theil and Sen), which single outliers do not
    move, with its confidence interval. `no deterioration`: the whole interval lies below TOLERANCE over the
    run. `gets worse`: the whole interval lies above 0, and it reaches beyond TOLERANCE. Everything else, also
    fewer than ten samples, is not decided.
    """
    # late: it is large, and not every command needs it
    from scipy import stats

    if len(samples) < _LEAST:
        return Drift(Verdict.UNDECIDED, None, None, None)
    across, up = [one[0] for one in samples], [one[1] for one in samples]
    middle = sorted(abs(one) for one in up)[len(up) // 2]
    if max(up) == min(up):
        return Drift(Verdict.NONE, 0.0, 0.0, 0.0)
    slope, _, low, high = stats.theilslopes(up, across, _CONFIDENCE)
    length = max(across) - min(across)
    change, least, most = (float(one) * length / (middle or max(map(abs, up))) for one in (slope, low, high))
    if most <= TOLERANCE:
        verdict = Verdict.NONE
    elif least > 0:
        verdict = Verdict.WORSE
    else:
        verdict = Verdict.UNDECIDED
    return Drift(verdict, change, least, most)
