"""Durations in the form of options."""

import re

from ringlog.loadtest.experiment.errors import LoadTestUsageError

_UNITS = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str) -> float:
    """Seconds of `90`, `90s`, `120min`, `2h` or `14d`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *(s|min|h|d|)", text.strip())
    if found is None or float(found[1]) == 0:
        raise LoadTestUsageError(f"'{text}' is not a duration: write 90s, 120min, 2h or 14d")
    return float(found[1]) * _UNITS[found[2]]


def in_words(seconds: float) -> str:
    """A duration as text: 90 s, 120 min, 14 d."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 3 * length and seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 1000 else f"{seconds:.3g} s"
