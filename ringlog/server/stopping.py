"""The stop of a long-running program by a signal."""

import signal
import threading
from types import FrameType


def stop_at_signals() -> threading.Event:
    """An event that SIGINT, SIGTERM and a hang-up set."""
    stop = threading.Event()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks for this
        signal.signal(signal.SIGHUP, handle)
    return stop
