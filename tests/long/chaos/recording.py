"""Recordings as sources of `ringlog load`, and the rows that the log must have."""

import csv
import math
import random
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from chaos.ledger import microseconds


def record(folder: Path, tables: Sequence[str], begin: datetime, cycle: float, rows: int, seed: int) -> None:
    """Writes <table>.csv for each table: this many rows from `begin` on, `cycle` seconds apart."""
    folder.mkdir()
    draw = random.Random(seed)
    for name in tables:
        with (folder / f"{name}.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["time", "level", "number"])
            for number in range(rows):
                level = math.nan
                while not math.isfinite(level):
                    (level,) = struct.unpack("<d", draw.randbytes(8))
                moment = begin + timedelta(seconds=number * cycle)
                lines.writerow([moment.isoformat(), repr(level), draw.randint(-(2**31), 2**31 - 1)])


def recorded(file: Path) -> dict[int, tuple[float, int]]:
    """The values by their times, in microseconds since 1970."""
    with file.open(newline="") as opened:
        lines = csv.reader(opened)
        next(lines)
        return {
            microseconds(datetime.fromisoformat(at)): (float(level), int(count)) for at, level, count in lines
        }
