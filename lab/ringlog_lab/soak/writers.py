"""The writers of a third of a facility in one process: each table's rows in their order, as fast as they are
acknowledged, up to the simulated times that come by standard input."""

import heapq
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from ringlog.clients import Address, Refused, call, connect
from ringlog.loadtest.calls import RECORD, Call, Calls, Kind
from ringlog.loadtest.readings import chosen, readings
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.moments import moment_of
from ringlog_lab.soak.plan import Plan, chosen_tables, due, row_time, shares

_MICROSECONDS = 1_000_000
_ATTEMPTS = 5


@dataclass(frozen=True)
class Options:
    """The options of the process, as its argument in JSON; the password is the first line of its input."""

    facility: str
    plan: Plan
    host: str
    port: int
    user: str
    first: int
    step: int
    """of the tables that are written, it takes every `step`th from place `first` on"""
    calls: str
    """file for the records of all calls; those of earlier starts are in it"""

    def argument(self) -> str:
        return json.dumps(asdict(self))


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=Options)
    password = sys.stdin.readline().rstrip("\n")
    tables = load_facility(Path(options.facility)).tables
    plan, share = options.plan, shares(tables)
    own = chosen_tables(plan, tables)[options.first :: options.step]
    sets = {index: readings(tables[index]) for index in own}
    address = Address(options.user, options.host, options.port)
    # one for each table, as the paper has a process for each
    connections = {index: connect(address, password, timeout=120) for index in own}
    done = acknowledged(Path(options.calls))
    rows = [(due(plan, tables[index], share[index], done[index]), index, done[index]) for index in own]
    heapq.heapify(rows)
    calls = Calls()
    print("ready", flush=True)
    with Path(options.calls).open("ab") as file:
        for line in sys.stdin:
            until = float(line)
            while rows and rows[0][0] < until:
                _, index, number = rows[0]
                table = tables[index]
                moment, seq_no = row_time(plan, table, share[index], number), 1 + number % table.rows
                values = (seq_no, moment_of(moment), *sets[index][chosen(moment)].values())
                for attempt in range(1, _ATTEMPTS + 1):
                    started, answered = time.monotonic(), True
                    try:
                        call(connections[index], f"put_{table.name}", *values)
                    except Refused:
                        if attempt == _ATTEMPTS:
                            raise
                        answered = False
                    latency = round((time.monotonic() - started) * _MICROSECONDS)
                    calls.add(Call(Kind.WRITE, answered, index, seq_no, moment, latency))
                    file.write(calls.take())
                    file.flush()
                    if answered:
                        break
                number += 1
                heapq.heapreplace(rows, (due(plan, table, share[index], number), index, number))
            print(line, end="", flush=True)
    for connection in connections.values():
        connection.close()


def acknowledged(file: Path) -> Counter[int]:
    """The number of acknowledged rows of each table. A record that a kill has cut is cut off."""
    done: Counter[int] = Counter()
    if file.exists():
        content = file.read_bytes()
        whole = len(content) // RECORD.size * RECORD.size
        if whole < len(content):
            with file.open("r+b") as opened:
                opened.truncate(whole)
        for _, answered, table, *_ in RECORD.iter_unpack(content[:whole]):
            done[table] += answered
    return done


if __name__ == "__main__":
    main()
