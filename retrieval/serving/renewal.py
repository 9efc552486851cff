"""Watches files that are renewed while a server runs: its certificate and key."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

_PAUSE = 2.0  # seconds between two checks of the files


@contextmanager
def followed(
    files: Sequence[Path], renew: Callable[[], None], now: threading.Event | None = None
) -> Iterator[None]:
    """Calls `renew` inside the block when a file has changed, and when `now` is set. Its ValueError or
    OSError is logged, and it is called again after the next change of a file."""
    end = threading.Event()
    wake = now or threading.Event()

    def state() -> list[tuple[int, int] | None]:
        return [_state(file) for file in files]

    def follow() -> None:
        # read before the block begins, so that every later change is noticed
        seen = first
        while not end.is_set():
            wanted_now = wake.wait(_PAUSE)
            wake.clear()
            if end.is_set() or (state() == seen and not wanted_now):
                continue
            seen = state()
            try:
                renew()
            except (OSError, ValueError) as error:
                log.error("%s; the certificate from before stays in use", error)

    first = state()
    thread = threading.Thread(target=follow, name="certificate", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        wake.set()
        thread.join()


def _state(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
