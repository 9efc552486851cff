"""`make chaos`: a run of this many seconds with this seed. Code 1: rows are lost, repeated or wrong, or a
writer of an intact table has waited too long.
"""

import argparse
import random
import sys

from chaos.life import live


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--kills", action="store_true", help="kills only, one to three seconds apart")
    parser.add_argument("--longest", type=float, default=1.0, help="seconds that a writer may wait")
    options = parser.parse_args()
    seed = random.randrange(2**31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    figures = live(seed, options.seconds, lambda words: print(words, flush=True), only_kills=options.kills)
    print(figures, flush=True)
    sys.exit(not figures.good or figures.longest > options.longest)


if __name__ == "__main__":
    main()
