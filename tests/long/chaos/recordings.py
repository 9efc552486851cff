"""Recordings as sources of `ringlog load`: random values, which are kept for the comparison."""

import csv
import math
import random
import struct
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path


def any_double(draw: random.Random) -> float:
    """A finite one of any bits."""
    level = math.nan
    while not math.isfinite(level):
        (level,) = struct.unpack("<d", draw.randbytes(8))
    return level


def any_int(draw: random.Random) -> int:
    return draw.randint(-(2**31), 2**31 - 1)


Columns = Mapping[str, Callable[[random.Random], object]]
"""The random values of each column."""
DOUBLES: Columns = {f"c_{number}": random.Random.random for number in range(1, 21)}


def record(
    folder: Path, begins: Mapping[str, datetime], cycle: float, rows: int, columns: Columns = DOUBLES
) -> None:
    """Writes <table>.csv for each table: this many rows from its begin on, `cycle` seconds apart."""
    folder.mkdir()
    for name, begin in begins.items():
        draw = random.Random(f"{folder.name} {name}")
        with (folder / f"{name}.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["time", *columns])
            for number in range(rows):
                moment = begin + timedelta(seconds=number * cycle)
                lines.writerow([moment.isoformat(), *(repr(value(draw)) for value in columns.values())])


def record_waveforms(
    folder: Path, begins: Mapping[str, datetime], cycle: float, rows: int, points: int
) -> None:
    """Writes <table>.parquet for each table: rows of a `trace` of this many points."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for number, (name, begin) in enumerate(begins.items()):
        values = np.random.default_rng(number).normal(size=rows * points)
        traces = pa.ListArray.from_arrays(np.arange(0, rows * points + 1, points, dtype=np.int32), values)
        moments = [begin + timedelta(seconds=row * cycle) for row in range(rows)]
        columns = {"time": pa.array(moments, pa.timestamp("us", "UTC")), "trace": traces}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def recorded(file: Path) -> list[tuple[object, ...]]:
    """The rows of a recording: time and values."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return [(row["time"], tuple(row["trace"])) for row in pq.read_table(file).to_pylist()]
    with file.open(newline="") as opened:
        lines = csv.reader(opened)
        next(lines)
        return [(datetime.fromisoformat(line[0]), *map(float, line[1:])) for line in lines]
