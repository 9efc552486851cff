"""Log and archive together have every row once, whatever happens to them."""

import random

import pytest

from archive_faults import DISK, run, site


@pytest.mark.timeout(900)
def test_faults_lose_and_double_nothing() -> None:
    random.seed(5)
    with site(DISK) as place:
        figures = run(place, 6, full=True)
    assert figures.good, figures
    assert figures.in_archive > 0
    assert figures.faults["full disk"] == 1
