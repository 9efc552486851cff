"""Recordings as sources of writers: random values, which are kept for the comparison."""

import csv
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

COLUMNS = 20
"""of each recording of single values"""


def record_values(folder: Path, begins: Mapping[str, datetime], cycle: float, rows: int) -> None:
    """Writes <table>.csv for each table: this many rows from its begin on, `cycle` seconds apart."""
    folder.mkdir()
    for name, begin in begins.items():
        dice = random.Random(name)
        with (folder / f"{name}.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["time", *(f"c_{number}" for number in range(1, COLUMNS + 1))])
            for number in range(rows):
                moment = begin + timedelta(seconds=number * cycle)
                lines.writerow([moment.isoformat(), *(repr(dice.random()) for _ in range(COLUMNS))])


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


def recorded(file: Path) -> dict[datetime, list[object]]:
    """Every row of a recording: its values by its time."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return {row["time"]: [row["trace"]] for row in pq.read_table(file).to_pylist()}
    with file.open(newline="") as opened:
        lines = csv.reader(opened)
        next(lines)
        return {datetime.fromisoformat(line[0]): [float(cell) for cell in line[1:]] for line in lines}
