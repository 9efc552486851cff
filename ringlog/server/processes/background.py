"""Background work of the server, in a thread of its own until the server ends."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def in_background(name: str, work: Callable[[], None], end: threading.Event) -> Iterator[None]:
    """Runs `work` until the context is left, which sets `end` and waits until `work` has returned."""
    thread = threading.Thread(target=work, name=name)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
