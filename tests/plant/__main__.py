"""`make plant`: lives of a plant, one seed after another; a failing life is shortened and printed."""

import argparse
import random
import signal
import sys
import time
import traceback
from collections.abc import Sequence

from plant.life import drawn, live
from plant.site import Step


def falls(steps: Sequence[Step]) -> str | None:
    """The error after these steps; None: no error."""
    try:
        live(iter(steps), float("inf"))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def shortened(steps: list[Step]) -> list[Step]:
    """The steps without those that are not needed for the failure (delta debugging, by halves)."""
    size = len(steps) // 2
    while size:
        begin = 1  # the first step creates the plant
        while begin < len(steps):
            fewer = steps[:begin] + steps[begin + size :]
            if falls(fewer):
                steps = fewer
            else:
                begin += size
        size //= 2
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="in all")
    parser.add_argument("--life", type=float, default=120, help="seconds of one life")
    parser.add_argument("--seed", type=int, help="of the first life; the others follow")
    options = parser.parse_args()
    # an exception, so that a life stops its servers
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = random.randrange(2**31) if options.seed is None else options.seed
    until = time.monotonic() + options.seconds
    while time.monotonic() < until:
        try:
            life = live(drawn(seed), min(options.life, until - time.monotonic()))
        except Exception as error:
            traceback.print_exc()
            history = list(getattr(error, "history", []))
            print(f"seed {seed} after {history}", flush=True)
            if history and falls(history):
                history = shortened(history)
                print(f"shortest history: {history}\n{falls(history)}", flush=True)
            sys.exit(1)
        print(
            f"seed {seed} in {life.zone}: {len(life.history)} operations, {life.reads} reads, 0 differences",
            flush=True,
        )
        seed += 1


if __name__ == "__main__":
    main()
