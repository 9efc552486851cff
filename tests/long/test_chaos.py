"""Faults of every kind at once, for CHAOS_SECONDS and by CHAOS_SEED: nothing is lost, repeated or wrong."""

import os
import random

import pytest
from chaos.life import live

SECONDS = float(os.environ.get("CHAOS_SECONDS", "240"))
SEED = int(os.environ.get("CHAOS_SEED") or random.randrange(2**31))
LONGEST = 5.0
"""seconds that a writer of a sound table may wait beside other tests"""

pytestmark = pytest.mark.timeout(SECONDS + 900)


@pytest.mark.parametrize("only_kills", [False, True])
def test_no_fault_affects_other_rows(only_kills: bool) -> None:
    figures = live(SEED, SECONDS, only_kills=only_kills)
    assert figures.good, f"seed {SEED}: {figures}"
    assert figures.longest < LONGEST, f"seed {SEED}: {figures}"
