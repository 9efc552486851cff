"""A process that makes frames at their rate and writes them, one call a table: the Python source of `ess`.

The first data point of a waveform is its frame's number, the others stay the same, as in papers/003.
"""

import json
import struct
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from ringlog.clients import Address, call, connect

_CODES = {"int": "<i", "double": "<d"}


@dataclass(frozen=True)
class Options:
    """The options of a producer, which it gets as its argument in JSON. The first line of its input is the
    password, the second the start signal."""

    host: str
    port: int
    user: str
    tables: list[str]
    columns: list[int]
    """of each table"""
    points: int
    type: str
    rate: float
    """Hz"""
    seconds: float

    def argument(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Produced:
    """Its output at the end."""

    rows: list[int]
    """of each table, all acknowledged"""
    latencies: list[float]
    """seconds of each call"""
    seconds: float


def points_of(type: str, points: int) -> bytes:
    """The points of every waveform, packed: those of a noisy 16-bit digitiser."""
    dice = Random(points)
    readings = [dice.randrange(-32768, 32768) for _ in range(points)]
    return struct.pack(f"<{points}{_CODES[type][1]}", *readings)


def frame(type: str, rest: bytes, number: int) -> bytes:
    first = struct.pack(_CODES[type], number)
    return first + rest[len(first) :]


def main() -> None:
    options = Options(**json.loads(sys.argv[1]))
    password = sys.stdin.readline().rstrip("\n")
    rest = points_of(options.type, options.points)
    connection = connect(Address(options.user, options.host, options.port), password, timeout=300)
    rows = [0] * len(options.tables)
    latencies: list[float] = []
    print("ready", flush=True)
    sys.stdin.readline()
    begin, began = datetime.now(UTC), time.monotonic()
    number = 0
    while time.monotonic() - began < options.seconds:
        moment = begin + timedelta(seconds=number / options.rate)
        waveform = frame(options.type, rest, number)
        for place, (table, columns) in enumerate(zip(options.tables, options.columns, strict=True)):
            started = time.monotonic()
            if started - began >= options.seconds and number:
                break
            call(connection, f"put_{table}", 1 + number % 2, moment, *[waveform] * columns)
            latencies.append(time.monotonic() - started)
            rows[place] += 1
        number += 1
        time.sleep(max(0.0, min(number / options.rate, options.seconds) - (time.monotonic() - began)))
    done = Produced(rows, latencies, time.monotonic() - began)
    connection.close()
    print(json.dumps(asdict(done)), flush=True)


if __name__ == "__main__":
    main()
