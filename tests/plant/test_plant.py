"""The beginnings of some lives of `make plant`, with fixed seeds and lengths, so that a failure is caused by
the change.
"""

from itertools import islice
from math import inf

import pytest

from plant.life import drawn, live


@pytest.mark.parametrize("seed", [6, pytest.param(5, marks=pytest.mark.long)])
def test_reads_agree_with_the_model(seed: int) -> None:
    life = live(islice(drawn(seed), 10), inf)
    assert len(life.history) == 10
    assert life.reads > 0


@pytest.mark.long
def test_the_loader_writes_to_the_plant() -> None:
    """Of a signal with a deadband, which is lost and returns; at first its record was never processed."""
    steps = [("begin", 1), ("load", 9), ("compare_samples", 1)]
    assert len(live(iter(steps), inf).signals["gauge:2"].samples) > 3
