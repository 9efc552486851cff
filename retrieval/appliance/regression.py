"""Locally weighted regression: the operator loess.

The appliance computes it by Apache Commons Math's LoessInterpolator with its default settings, and its spline
through the smoothed points; both are implemented here from their documentation (Cleveland 1979, "Robust
Locally Weighted Regression and Smoothing Scatterplots").
"""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_BANDWIDTH = 0.3  # fraction of all samples used for a fit
_ROUNDS = 2  # iterations that reduce the weight of outliers
_ACCURACY = 1e-12


def loess(times: Numbers, values: Numbers, at: float) -> float:
    """The smoothed value at an instant within the times.

    Without a fit (too few samples, two at one time, an instant outside) it is the first value, as in the
    appliance.
    """
    width = int(_BANDWIDTH * len(times))
    if width < 2 or (np.diff(times) <= 0).any() or not times[0] <= at <= times[-1]:
        return float(values[0])
    # far from 0 the squares of times would leave no precision for their differences
    origin = times[0]
    times = times - origin
    return _spline(times, _smoothed(times, values, width), at - origin)


def _smoothed(times: Numbers, values: Numbers, width: int) -> Numbers:
    starts = _windows(times, width)
    trusted = np.ones(len(times))
    fitted = values
    for round_ in range(_ROUNDS + 1):
        fitted = np.array(
            [
                _fit(times, values, trusted, place, slice(int(start), int(start) + width), fitted[place])
                for place, start in enumerate(starts)
            ]
        )
        distances = np.abs(values - fitted)
        typical = float(np.sort(distances)[len(distances) // 2])
        if round_ == _ROUNDS or typical < _ACCURACY:
            break
        share = distances / (6 * typical)
        trusted = np.where(share < 1, np.square(1 - np.square(share)), 0.0)
    return fitted


def _windows(times: Numbers, width: int) -> NDArray[np.int64]:
    """The index of the first of the `width` samples nearest to each."""
    starts = np.zeros(len(times), np.int64)
    start = 0
    for place, time in enumerate(times):
        while start + width < len(times) and times[start + width] - time < time - times[start]:
            start += 1
        starts[place] = start
    return starts


def _fit(
    times: Numbers, values: Numbers, trusted: Numbers, place: int, window: slice, before: float
) -> float:
    """The weighted straight line through a window, at a sample's own time; `before` if all weights are 0."""
    x, y, time = times[window], values[window], times[place]
    reach = max(time - x[0], x[-1] - time)
    weights = np.power(1 - np.power(np.abs(x - time) / reach, 3), 3) * trusted[window]
    total = weights.sum()
    if total <= 0:
        return before
    mean_x, mean_y = (weights * x).sum() / total, (weights * y).sum() / total
    spread = (weights * np.square(x - mean_x)).sum() / total
    if np.sqrt(spread) < _ACCURACY:
        return float(mean_y)
    slope = (weights * (x - mean_x) * (y - mean_y)).sum() / total / spread
    return float(mean_y + slope * (time - mean_x))


def _spline(x: Numbers, y: Numbers, at: float) -> float:
    """The natural cubic spline through the points, at `at` between the first and the last."""
    n = len(x)
    steps, rises = np.diff(x), np.diff(y) / np.diff(x)
    # second derivatives, by elimination of the tridiagonal system (Press et al., Numerical Recipes, 3.3)
    above, right = np.zeros(n), np.zeros(n)
    for place in range(1, n - 1):
        pivot = 2 * (steps[place - 1] + steps[place]) - steps[place - 1] * above[place - 1]
        above[place] = steps[place] / pivot
        bend = 6 * (rises[place] - rises[place - 1])
        right[place] = (bend - steps[place - 1] * right[place - 1]) / pivot
    bends = np.zeros(n)
    for place in range(n - 2, 0, -1):
        bends[place] = right[place] - above[place] * bends[place + 1]
    piece = min(max(int(np.searchsorted(x, at, side="right")) - 1, 0), n - 2)
    step = steps[piece]
    a, b = (x[piece + 1] - at) / step, (at - x[piece]) / step
    curve = (a**3 - a) * bends[piece] + (b**3 - b) * bends[piece + 1]
    return float(a * y[piece] + b * y[piece + 1] + curve * step * step / 6)
