"""The signals of a long-running program."""

import signal
import threading
from types import FrameType


def stop_at_signals() -> threading.Event:
    """An event that SIGINT and SIGTERM set. A hang-up ends nothing."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        _set_at(number, stop)
    hang_ups()
    return stop


def hang_ups() -> threading.Event:
    """An event that each SIGHUP sets."""
    hung_up = threading.Event()
    _set_at(signal.SIGHUP, hung_up)
    return hung_up


def _set_at(number: signal.Signals, event: threading.Event) -> None:
    def handle(_signal: int, _frame: FrameType | None) -> None:
        event.set()

    signal.signal(number, handle)
