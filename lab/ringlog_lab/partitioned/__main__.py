"""Asks random queries until a time is over; ends with an error at the first wrong answer."""

import argparse
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial

from ringlog.loadtest.experiment.running import temporary_folder
from ringlog_lab.partitioned import logs, tsql
from ringlog_lab.partitioned.running import Counts, Different, Subject, run
from ringlog_lab.tsql_database import server_without_tables


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m ringlog_lab.partitioned", description=__doc__)
    arguments.add_argument("seed", type=int, help="of the first round; the next has the next number")
    arguments.add_argument("--seconds", type=float, default=600, help="of queries; begins no round after it")
    arguments.add_argument("--only", choices=["tables", "logs"], help="T-SQL on its tables, or logs")
    asked = arguments.parse_args()
    counts, seed = Counts(), asked.seed
    # either signal ends the servers too
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        rounds: dict[str, Callable[[random.Random], AbstractContextManager[list[Subject]]]] = {}
        if asked.only != "logs":
            server = stack.enter_context(server_without_tables(stack.enter_context(temporary_folder())))
            rounds["tables"] = partial(tsql.subjects, server)
        if asked.only != "tables":
            folder = stack.enter_context(temporary_folder())
            rounds["logs"] = stack.enter_context(logs.site(folder)).subjects
        end = time.monotonic() + asked.seconds
        while time.monotonic() < end:
            for name, begun in rounds.items():
                draw = random.Random(f"{name} {seed}")
                with begun(draw) as subjects:
                    for subject in subjects:
                        try:
                            run(subject, draw, counts)
                        except Different as different:
                            counts.print()
                            sys.exit(f"{different}\nseed {seed}")
            seed += 1
    counts.print()
    print(f"none wrong, seeds {asked.seed} to {seed - 1}")


if __name__ == "__main__":
    main()
