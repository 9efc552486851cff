"""Waiting for what a test means: on a busy machine everything takes longer than one thinks."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
# Seconds after which what has not come is taken not to come at all.
PATIENCE = 100.0


def wait_until(find: Callable[[], Found], why: Callable[[], object] = lambda: None) -> Found:
    """Calls `find` until what it returns is true, and returns that; `why` describes how it stands instead."""
    end = time.monotonic() + PATIENCE
    while not (found := find()):
        assert time.monotonic() < end, why()
        time.sleep(0.02)
    return found
