"""Random operations on a site: faults, commands, writes and reads, as values."""

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

Operation = Callable[[Any, random.Random], object]
"""What it does to a site by random choices; it returns False if there was nothing to act on."""
Operations = Mapping[str, tuple[int, Operation]]
"""The weight of each operation, and its function."""

LOOK = 0.05
"""seconds between two looks whether processes run"""


class Site(Protocol):
    def tend(self) -> None:
        """Restarts ended processes, like systemd."""

    def works(self) -> bool:
        """Whether further operations have anything to act on."""


def drawn(operations: Operations, draw: random.Random, *, each_first: bool = True) -> Iterator[str]:
    """Endless names by weight. `each_first`: first each name once, so that also a short run has all."""
    names = [*operations]
    if each_first:
        yield from draw.sample(names, len(names))
    while True:
        yield draw.choices(names, [weight for weight, _ in operations.values()])[0]


def rest(site: Site, seconds: float) -> None:
    """Waits, and restarts ended processes meanwhile."""
    end = time.monotonic() + seconds
    site.tend()
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LOOK))
        site.tend()


def run(
    site: Site,
    operations: Operations,
    draw: random.Random,
    begun: Callable[[str], None],
    *,
    pause: Callable[[], float],
    number: float = math.inf,
    seconds: float = math.inf,
    wait: Callable[[Site, float], object] = rest,
    each_first: bool = True,
) -> None:
    """Runs this many operations or for this many seconds, `pause` seconds apart; `begun` gets the name of
    each that has had an effect."""
    end = time.monotonic() + seconds
    names = drawn(operations, draw, each_first=each_first)
    while number > 0 and time.monotonic() < end and site.works():
        name = next(names)
        if operations[name][1](site, draw) is False:
            wait(site, LOOK)
            continue
        number -= 1
        begun(name)
        wait(site, pause())
