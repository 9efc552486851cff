"""`make chaos`: random faults by a seed. Code 1: rows are lost, repeated or wrong, or a writer of an intact
table has waited too long.

`all`: faults of every kind beside writers over TDS; `kills`: kills only, one to three seconds apart;
`load`: kills and cuts of `ringlog load`; `operators`: operators' commands during faults; `archive`: faults
of weeks in Parquet.
"""

import argparse
import random
import sys
from functools import partial
from pathlib import Path

from chaos.archive import DISK, ArchivedSite
from chaos.figures import Figures
from chaos.load import SERVER_DISK, SPOOL_BUDGET, SPOOL_DISK, RecordedSite
from chaos.operators import OperatedSite
from chaos.site import BUDGET, serving
from chaos.writing import WritingSite


def _run(options: argparse.Namespace) -> Figures:
    draw, say = random.Random(options.seed), partial(print, flush=True)
    recorded = {"say": say, "recorded": round(options.seconds / 0.1)}
    disks = {}
    match options.faults:
        case "load":
            disks["server"] = SERVER_DISK if options.full_server else ""
            disks["spool"] = SPOOL_DISK if options.full_spool else ""

            def make(folder: Path) -> RecordedSite:
                budget = SPOOL_BUDGET if options.full_spool else BUDGET
                return RecordedSite(
                    folder, budget=budget, points=options.points, processes=options.processes, **recorded
                )

            with serving(make, **disks) as site:
                return site.harm(
                    draw,
                    round(options.seconds / options.mean),
                    options.mean,
                    outage=options.outage,
                    full_server=options.full_server,
                    full_spool=options.full_spool,
                )
        case "operators":
            with serving(partial(OperatedSite, **recorded)) as operated:
                return operated.operate(draw, faults=8.0, commands=3.0)
        case "archive":
            with serving(partial(ArchivedSite, say=say), archive=DISK if options.full else "") as archived:
                return archived.harm(draw, round(options.seconds / 6), full=options.full)
    with serving(
        partial(WritingSite, say=say, seed=options.seed, retains=options.faults == "kills")
    ) as writing:
        return writing.live(options.seconds, draw)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    kinds = ["all", "kills", "load", "operators", "archive"]
    parser.add_argument("faults", nargs="?", choices=kinds, default="all")
    parser.add_argument("--seconds", type=float, default=300, help="of the faults, about")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--longest", type=float, default=1.0, help="seconds that a writer may wait")
    load = parser.add_argument_group("load")
    load.add_argument("--mean", type=float, default=1.0, help="seconds between faults, on average")
    load.add_argument("--points", type=int, default=0, help="of waveforms, in place of single values")
    load.add_argument("--processes", type=int, default=None, help="of the writers; default: one a table")
    load.add_argument("--outage", type=float, default=0.0, help="seconds without a server, after the faults")
    more = "seconds without space under PostgreSQL (needs root)"
    load.add_argument("--full-server", type=float, default=0.0, help=more)
    more = "seconds without space under the spools (needs root)"
    load.add_argument("--full-spool", type=float, default=0.0, help=more)
    more = "fill the archive's disk too (needs root)"
    parser.add_argument_group("archive").add_argument("--full", action="store_true", help=more)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    figures = _run(options)
    print(figures, flush=True)
    sys.exit(not figures.good or figures.longest > options.longest)


if __name__ == "__main__":
    main()
