"""The pauses between attempts."""

import random
from collections.abc import Iterator


def growing_pauses(first: float, longest: float) -> Iterator[float]:
    """Seconds to wait before each next attempt: doubling from `first` to `longest`, shortened at random by up
    to a half, so that clients that failed at the same moment do not return at the same moment."""
    pause = first
    while True:
        yield pause * random.uniform(0.5, 1.0)
        pause = min(2 * pause, longest)
