"""Everything is killed and cut at random moments; afterwards every row is in the log exactly once."""

import random
from functools import partial

import pytest
from chaos.load import SERVER_DISK, RecordedSite
from chaos.site import serving

# servers of their own, on a machine that others may use too
pytestmark = pytest.mark.timeout(900)


def test_each_row_is_logged_exactly_once_whatever_is_killed() -> None:
    with serving(partial(RecordedSite, tables=3, cycle=0.02, recorded=600)) as site:
        figures = site.harm(random.Random(6), faults=15, mean=0.4, outage=1.0)
    # on a busy machine the recordings may end before the last of them
    assert sum(figures.operations.values()) >= 2, figures
    assert figures.rows == figures.stored == 1800, figures
    assert figures.good, figures
    assert figures.notes["calls repeated"] > 0


def test_frames_produced_are_frames_in_the_log() -> None:
    """Waveforms of 80 KB, every point of every one, through kill -9 of each process and cuts."""
    with serving(partial(RecordedSite, tables=2, cycle=0.05, recorded=200, points=10_000)) as site:
        figures = site.harm(random.Random(7), faults=10, mean=0.4, outage=1.0)
    assert sum(figures.operations.values()) >= 2, figures
    assert figures.rows == figures.stored == 400, figures
    assert figures.good, figures


def test_a_full_disk_under_postgresql_loses_nothing() -> None:
    with serving(partial(RecordedSite, tables=2, cycle=0.02, recorded=600), server=SERVER_DISK) as site:
        figures = site.harm(random.Random(), faults=0, mean=1.0, full_server=4.0)
    assert figures.rows == figures.stored == 1200, figures
    assert figures.good, figures
    assert figures.notes["calls repeated"] > 0, "the server went on storing rows"


def test_a_full_disk_under_the_spools_loses_rows_in_the_ledger() -> None:
    with serving(partial(RecordedSite, tables=2, cycle=0.002, recorded=6000, budget=2), spool="8m") as site:
        figures = site.harm(random.Random(), faults=0, mean=1.0, full_spool=8.0)
    assert figures.thinned > 0, "the spools had room enough"
    assert figures.rows == figures.stored + figures.thinned == 12000, figures
    assert figures.good, figures


def test_processes_of_several_tables_lose_nothing_when_they_are_killed() -> None:
    with serving(partial(RecordedSite, tables=4, cycle=0.05, recorded=200, processes=2)) as site:
        figures = site.harm(random.Random(7), faults=8, mean=0.5)
    assert figures.operations["writer"] + figures.operations["supervisor"] > 0, figures
    assert figures.rows == figures.stored == 800, figures
    assert figures.good, figures
