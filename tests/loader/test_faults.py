"""Everything is killed and cut at random moments; afterwards every row is in the log exactly once."""

import random

from ringlog.loadtest.faults import run, site


def test_each_row_is_logged_exactly_once_whatever_is_killed() -> None:
    random.seed(6)
    with site(tables=3, cycle=0.02, rows=600) as place:
        figures = run(place, faults=15, mean=0.4, outage=1.0)
    assert sum(figures.faults.values()) >= 12, figures
    assert figures.produced == figures.in_log == 1800, figures
    assert figures.good, figures
    assert figures.calls_repeated > 0
