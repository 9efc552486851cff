"""Waveforms: written through the gateway and directly into the same tables, and read back; small rows beside
them."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from psycopg import sql

from ringlog.loadtest.experiment.facility import Tables, waveforms
from ringlog.loadtest.experiment.server import WRITER, Server, log_rows
from ringlog_lab.bench.reading import Reading, read_alternating
from ringlog_lab.native_load import DIRECT, GATEWAY, TDS5, Load, Measurement, Stand

POINTS = (1_000, 10_000, 100_000)
"""Doubles of a waveform: the scenarios of papers/003 have 1,000 to 100,000 points."""
POINT_BYTES = 8
SMALL = Tables("small_", 4, 200)
BESIDE = (DIRECT, TDS5)
"""Contenders that write small rows during waveforms; the delay of DIRECT is not caused by the gateway."""
_READ_BYTES = 200_000_000
_SMALL_RATE = 25.0  # calls a second of each caller
_BEFORE = 2.0  # seconds of the load of waveforms before the small rows
_BLOCK, _BLOCKS = 1 << 20, 64


@dataclass(frozen=True)
class Waveforms:
    """Further findings of the part about waveforms."""

    disk: float
    """bytes per second of the disk, each MiB durable before the next"""
    readings: list[Reading]
    """`columns` are points"""
    small: list[Measurement]
    """small rows, alone (part `alone`) and during waveforms of the same contender (part `beside`)"""


def allow_inserts(server: Server, writers: int) -> None:
    """Allows the writer to insert directly, without the procedures."""
    for points in POINTS:
        for name in waveforms(points, writers).names:
            for statement in ("grant insert on log.{0} to {1}", "grant select, update on ring.{0} to {1}"):
                server.administrator.execute(
                    sql.SQL(statement).format(sql.Identifier(name), sql.Identifier(WRITER))
                )
    server.administrator.execute(
        sql.SQL("grant usage on schema log, ring to {}").format(sql.Identifier(WRITER))
    )


def write_alternating(
    stand: Stand, writers: int, seconds: float, rounds: int, doing: Callable[[str], None]
) -> Iterator[Measurement]:
    """Round by round, each contender in turn, at each number of points."""
    contenders = (DIRECT, *GATEWAY)
    for round in range(rounds):
        for points in POINTS:
            for place in range(len(contenders)):
                contender = contenders[(place + round) % len(contenders)]
                doing(f"{contender.title}, {points} points")
                load = Load(contender, waveforms(points, writers), writers, seconds)
                yield stand.run(load, "waveforms", round)


def measure_waveforms(
    stand: Stand, data: Path, writers: int, seconds: float, rounds: int, doing: Callable[[str], None]
) -> Waveforms:
    """Reads the waveforms back, and measures small rows while further ones are written."""
    readings: list[Reading] = []
    for points in POINTS:
        doing(f"reading {points} points")
        tables = waveforms(points, writers)
        # writers get different shares of the time
        there = log_rows(stand.server.administrator, tables.names[0])
        rows = max(1, min(there, _READ_BYTES // (POINT_BYTES * points)))
        for one in read_alternating(stand.programs, stand.server, tables, rounds, rows):
            readings.append(Reading(**asdict(one) | {"columns": points}))
    small = []
    for round in range(min(rounds, 3)):
        for contender in BESIDE:
            calls = Load(contender, SMALL, SMALL.count, 4 * seconds, rate=_SMALL_RATE)
            wide = Load(contender, waveforms(POINTS[-1], writers), writers, calls.seconds + 2 * _BEFORE)
            doing(f"{contender.title}, small rows alone")
            _settle(stand.server)
            small.append(stand.run(calls, "alone", round))
            doing(f"{contender.title}, small rows beside waveforms")
            with ThreadPoolExecutor(1) as pool:
                load = pool.submit(stand.run, wide, "beside", round)
                time.sleep(_BEFORE)
                small.append(stand.run(calls, "beside", round))
                load.result()
    doing("the disk by itself")
    return Waveforms(disk_rate(data), readings, small)


def _settle(server: Server) -> None:
    """Waits until the disk has all earlier writes, which would delay the next measurement. Afterwards WAL
    segments are reused, as on a server that has been running for longer."""
    server.administrator.execute("checkpoint")
    os.sync()


def disk_rate(folder: Path) -> float:
    """Bytes a second of the disk below a folder, in order, each MiB durable before the next."""
    block = os.urandom(_BLOCK)
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        began = time.monotonic()
        for _ in range(_BLOCKS):
            file.write(block)
            os.fdatasync(file.fileno())
        return _BLOCK * _BLOCKS / (time.monotonic() - began)
