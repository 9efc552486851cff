"""Faults of every kind at once, for CHAOS_SECONDS and by CHAOS_SEED: nothing is lost, repeated or wrong."""

import os
import random
from functools import partial

import pytest
from chaos.archive import DISK, FAULTS, FULL_DISK, ArchivedSite
from chaos.site import serving
from chaos.writing import WritingSite

SECONDS = float(os.environ.get("CHAOS_SECONDS", "240"))
SEED = int(os.environ.get("CHAOS_SEED") or random.randrange(2**31))
LONGEST = 5.0
"""seconds that a writer of a sound table may wait beside other tests"""

pytestmark = pytest.mark.timeout(SECONDS + 900)


@pytest.mark.parametrize("only_kills", [False, True])
def test_no_fault_affects_other_rows(only_kills: bool) -> None:
    with serving(partial(WritingSite, seed=SEED, retains=only_kills)) as site:
        figures = site.live(SECONDS, random.Random(SEED))
    assert figures.good, f"seed {SEED}: {figures}"
    assert figures.longest < LONGEST, f"seed {SEED}: {figures}"


def test_log_and_archive_together_have_every_row_once() -> None:
    faults = len(FAULTS | FULL_DISK)
    with serving(ArchivedSite, archive=DISK) as site:
        figures = site.harm(random.Random(5), faults, full=True)
    assert figures.good, figures
    assert figures.notes["rows in the archive"] > 0
    assert figures.operations["full disk"] > 0
