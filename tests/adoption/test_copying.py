"""The weeks that a second run of a copy skips, and the effect of Ctrl-C."""

import signal
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy

from ringlog.adoption.rows.copying import Copied, Ledger, Part, identity
from ringlog.adoption.rows.threads import in_threads


def conninfo(url: sqlalchemy.URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def test_weeks_that_went_to_another_database_are_not_left_out(
    database_url: sqlalchemy.URL, empty_database_url: sqlalchemy.URL, tmp_path: Path
) -> None:
    first, second = identity(conninfo(database_url)), identity(conninfo(empty_database_url))
    assert first != second
    ring = SimpleNamespace(table=SimpleNamespace(name="magnets"))
    part = Part(ring, datetime(2026, 8, 3))  # type: ignore[arg-type]
    file = tmp_path / "copied.json"
    Ledger(file, first).note(Copied(part, 7, 7, "", True))
    assert Ledger(file, first).has(part, 7)
    assert not Ledger(file, first).has(part, 8)
    assert not Ledger(file, second).has(part, 7)
    # as an earlier version wrote it, of one database or another
    file.write_text('{"magnets, week of 2026-08-03": 7}')
    assert not Ledger(file, first).has(part, 7)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """If the tests run in the background, Ctrl-C may be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_does_not_wait_for_the_remaining_weeks() -> None:
    seen: list[int] = []

    def work(waiting: Iterator[int]) -> Iterator[int]:
        for piece in waiting:
            if piece == 0:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.001)
            yield piece

    with pytest.raises(KeyboardInterrupt):
        in_threads(range(100_000), 2, work, seen.append)
    assert len(seen) < 100_000
