"""Work that several threads share: each takes the next piece when it has done one."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")
Outcome = TypeVar("Outcome")


def in_threads(
    pieces: Iterable[Piece],
    threads: int,
    work: Callable[[Iterator[Piece]], Iterator[Outcome]],
    report: Callable[[Outcome], None],
) -> list[Outcome]:
    """Runs `work` in so many threads on the pieces that are left. Each outcome is reported, one at a time.

    Raises the error of a thread when all have ended. Ctrl-C ends them after the pieces that they are at.
    """
    lock = threading.Lock()
    waiting = iter([*pieces])
    done: list[Outcome] = []

    ended = threading.Event()

    def left() -> Iterator[Piece]:
        while not ended.is_set():
            with lock:
                try:
                    piece = next(waiting)
                except StopIteration:
                    return
            yield piece

    def run() -> None:
        for outcome in work(left()):
            with lock:
                done.append(outcome)
                report(outcome)

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(run) for _ in range(threads)]
        try:
            for each in running:
                each.result()
        except KeyboardInterrupt:
            ended.set()
            raise
    return done
