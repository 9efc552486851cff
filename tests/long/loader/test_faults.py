"""Everything is killed and cut at random moments; afterwards every row is in the log exactly once."""

import random

import pytest

from faults import SERVER_DISK, run, site

# servers of their own, on a machine that others may use too
pytestmark = pytest.mark.timeout(900)


def test_each_row_is_logged_exactly_once_whatever_is_killed() -> None:
    random.seed(6)
    with site(tables=3, cycle=0.02, rows=600) as place:
        figures = run(place, faults=15, mean=0.4, outage=1.0)
    # on a busy machine the recordings may end before the last of them
    assert sum(figures.faults.values()) >= 2, figures
    assert figures.produced == figures.in_log == 1800, figures
    assert figures.good, figures
    assert figures.calls_repeated > 0


def test_frames_produced_are_frames_in_the_log() -> None:
    """Waveforms of 80 KB, every point of every one, through kill -9 of each process and cuts."""
    random.seed(7)
    with site(tables=2, cycle=0.05, rows=200, points=10_000) as place:
        figures = run(place, faults=10, mean=0.4, outage=1.0)
    assert sum(figures.faults.values()) >= 2, figures
    assert figures.produced == figures.in_log == 400, figures
    assert figures.good, figures


def test_a_full_disk_under_postgresql_loses_nothing() -> None:
    with site(tables=2, cycle=0.02, rows=600, server_disk=SERVER_DISK) as place:
        figures = run(place, faults=0, mean=1.0, outage=0.0, full_server=4.0)
    assert figures.faults["full disk of the server"] == 1
    assert figures.produced == figures.in_log == 1200, figures
    assert figures.good, figures
    assert figures.calls_repeated > 0, "the server went on storing rows"


def test_a_full_disk_under_the_spools_loses_rows_in_the_ledger() -> None:
    with site(tables=2, cycle=0.002, rows=6000, spool_disk="8m", budget=2) as place:
        figures = run(place, faults=0, mean=1.0, outage=0.0, full_spool=8.0)
    assert figures.faults["full disk of the spools"] == 1
    assert figures.thinned > 0, "the spools had room enough"
    assert figures.produced == figures.in_log + figures.thinned == 12000, figures
    assert figures.good, figures


def test_processes_of_several_tables_lose_nothing_when_they_are_killed() -> None:
    random.seed(7)
    with site(tables=4, cycle=0.05, rows=200) as place:
        place.processes = 2
        figures = run(place, faults=8, mean=0.5, outage=0.0)
    assert figures.faults["writer"] + figures.faults["supervisor"] > 0, figures
    assert figures.produced == figures.in_log == 800, figures
    assert figures.good, figures
