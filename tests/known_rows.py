"""The rows of `every_type` that the tests of retrieval put into its log."""

from datetime import UTC, datetime, timedelta

BEGIN = datetime(2025, 12, 31, 23, 58, 20, tzinfo=UTC)
"""of the log of `every_type`: 200 rows, one a second, so that a year ends among them"""
ROWS = 200
WAVEFORMS = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""of the first of the three waveforms that the fixture `waveforms` writes"""

HELD = [
    (WAVEFORMS + timedelta(hours=1, seconds=second), value)
    for second, value in ((0, 1.5), (3, 3.0), (7, 2.0))
]
"""times and values of `bpm.x_set` that the fixture `held` writes"""


def row(number: int) -> dict[str, object]:
    """The row of the log `number` seconds after BEGIN; every tenth row has no readings."""
    if number % 10 == 9:
        return dict.fromkeys(("a_real", "a_double", "an_int", "a_smallint", "a_bigint", "a_bit", "a_varchar"))
    return {
        "a_real": number / 8,
        "a_double": number / 7,
        "an_int": number * 1_000_003 - 90_000_000,
        "a_smallint": number - 100,
        "a_bigint": number + 2**40,
        "a_bit": number % 4 == 0,
        "a_varchar": f'run {number}, "fine"\n' if number % 3 else "ready",
    }


def time_of(number: int) -> datetime:
    return BEGIN + timedelta(seconds=number, microseconds=number)
