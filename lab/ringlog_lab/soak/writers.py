"""The writers of a whole facility in one process: each table at its cycle, with times that run faster than
the clock."""

import heapq
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ringlog.clients import Address, Refused, Unanswered, call, connect
from ringlog.clients.moments import moment_of
from ringlog.loadtest.calls import Call, Calls, Kind
from ringlog.loadtest.readings import chosen, readings
from ringlog.schema.facility_file import load_facility

_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Options:
    """The options of the process, as its argument in JSON; the password is the first line of its input."""

    facility: str
    host: str
    port: int
    user: str
    first: int
    """place of the first table that it writes"""
    step: int
    """from one of its tables to the next"""
    begin: int
    """time of the first rows, in microseconds since 1970"""
    speed: float
    """times the tables' own pace"""
    seconds: float
    calls: str
    """file for the records of all calls"""

    def argument(self) -> str:
        return json.dumps(asdict(self))


def main() -> None:
    options = Options(**json.loads(sys.argv[1]))
    password = sys.stdin.readline().rstrip("\n")
    tables = load_facility(Path(options.facility)).tables
    own = range(options.first, len(tables), options.step)
    sets = {place: readings(tables[place]) for place in own}
    connection = connect(Address(options.user, options.host, options.port), password, timeout=60)
    print("ready", flush=True)
    sys.stdin.readline()
    calls, began = Calls(), time.monotonic()
    # spread over a cycle, as processes that were started one after another
    due = [(tables[place].cycle * number / len(own), place, 0) for number, place in enumerate(own)]
    heapq.heapify(due)
    with Path(options.calls).open("wb") as file:
        while (moment := due[0][0]) < options.seconds * options.speed:
            _, place, count = heapq.heappop(due)
            table = tables[place]
            time.sleep(max(0.0, moment / options.speed - (time.monotonic() - began)))
            if time.monotonic() - began > options.seconds:
                break
            row = options.begin + round(moment * _MICROSECONDS)
            started, answered = time.monotonic(), True
            try:
                call(
                    connection,
                    f"put_{table.name}",
                    1 + count % table.rows,
                    moment_of(row),
                    *sets[place][chosen(row)].values(),
                )
            except (Refused, Unanswered):
                answered = False
            latency = round((time.monotonic() - started) * _MICROSECONDS)
            calls.add(Call(Kind.WRITE, answered, place, 1 + count % table.rows, row, latency))
            file.write(calls.take())
            file.flush()
            heapq.heappush(due, (moment + table.cycle, place, count + 1))
    connection.close()
    print("done", flush=True)


if __name__ == "__main__":
    main()
