"""The cost of a row of a recording: `python -m ringlog_lab.recordings [--rows 20000]`.

`ringlog load --speed inf` stores recordings in CSV and in Parquet of tables of 20 and 200 reals on a server
of its own, with the spool in the temporary folder. For each some rounds: µs of CPU that a row takes in the
loader's processes and in the server, and rows stored in a second, without what one row alone takes.
"""

import argparse
import os
import resource
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
from pyarrow import csv, parquet

from ringlog.loadtest.experiment.running import temporary_folder
from ringlog.loadtest.experiment.server import WRITER, Server, log_rows, serving

_COLUMNS = (20, 200)
_ROUNDS = 3
_BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
_TABLE = """
[[table]]
name = "t{columns}"
rows = 3000
cycle = 1.0

[[table.column]]
name = "c_{{n}}"
count = {columns}
type = "real"
"""


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    rows = parser.parse_args().rows
    with temporary_folder("ringlog-recordings-") as folder:
        facility = folder / "facility.toml"
        tables = (_TABLE.format(columns=columns) for columns in _COLUMNS)
        facility.write_text('timezone = "UTC"\n' + "".join(tables))
        with serving(facility, folder / "data", keep=False) as server:
            for columns in _COLUMNS:
                stored = 0
                for kind in ("csv", "parquet"):
                    _store(server, folder, kind, columns, stored, 1)
                    stored += 1
                    for _ in range(_ROUNDS):
                        alone = _store(server, folder, kind, columns, stored, 1)
                        many = _store(server, folder, kind, columns, stored + 1, rows)
                        stored += 1 + rows
                        loader, server_part, seconds = (
                            (whole - start) / rows for whole, start in zip(many, alone, strict=True)
                        )
                        print(
                            f"{kind}, {columns} reals: {1e6 * loader:.0f} µs a row in the loader,"
                            f" {1e6 * server_part:.0f} in the server; {1 / seconds:.0f} rows/s",
                            flush=True,
                        )
                if log_rows(server.administrator, f"t{columns}") != stored:
                    raise SystemExit(f"t{columns} has not the {stored} rows of the recordings")


def _store(
    server: Server, folder: Path, kind: str, columns: int, before: int, rows: int
) -> tuple[float, float, float]:
    """Stores a recording that begins behind `before` rows. Seconds: CPU of loader and server, and time."""
    recording = folder / kind
    recording.mkdir(exist_ok=True)
    for file in recording.iterdir():
        file.unlink()
    _record(recording / f"t{columns}.{kind}", columns, before, rows)
    command: list[str | Path] = [
        sys.executable,
        "-P",
        "-m",
        "ringlog",
        "load",
        "--facility",
        folder / "facility.toml",
    ]
    command += ["--url", f"tds://{WRITER}@{server.host}:{server.port}", "--source", f"{kind}:{recording}"]
    command += ["--speed", "inf", "--spool", folder / "spool"]
    earlier, begun = server.mark(), _children()
    subprocess.run(
        command,
        env={**os.environ, "RINGLOG_PASSWORD": server.password},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    later = server.mark()
    spent = later.backends + later.gateway - earlier.backends - earlier.gateway
    return _children() - begun, spent, later.moment - earlier.moment


def _record(file: Path, columns: int, before: int, rows: int) -> None:
    chosen = Random(before)
    times = [_BEGIN + timedelta(seconds=before + number) for number in range(rows)]
    # as a converter of 16 bits gives them
    readings = {
        f"c_{column}": pa.array([chosen.randrange(65536) / 64 for _ in range(rows)], pa.float32())
        for column in range(1, columns + 1)
    }
    recorded = pa.table({"time": [moment.isoformat() for moment in times], **readings})
    if file.suffix == ".csv":
        csv.write_csv(recorded, file, csv.WriteOptions(quoting_style="none"))
    else:
        parquet.write_table(recorded, file)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
