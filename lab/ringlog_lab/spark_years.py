"""Spark and SQL over ten years of SPring-8's tables: `python -m ringlog_lab.spark_years [--minutes 30]`.

60 tables of 150 reals with 520 archived weeks each, a row each half hour, are made in a folder of their own
(the files of one table, and links to them) and published as Iceberg tables. The smallest, the largest and the
mean of every signal over all weeks are then calculated, table by table, by Spark with two workers and by SQL
over the archive server, which must agree; and the correlations of one table's signals with the first. This
needs Java, pyspark and Iceberg's package for it, which Spark fetches from Maven Central unless
`--jars` names it.
"""

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyspark

from ringlog.history.archive.folder import Folder
from ringlog.history.archive.iceberg import publish
from ringlog.history.archive.parquet.fields import of_log
from ringlog.history.archive.spark import session_settings
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables, write_facility
from ringlog.loadtest.experiment.running import temporary_folder
from ringlog.loadtest.experiment.server import READER, Server, serving
from ringlog.schema import session
from ringlog.schema.relations.partitions import Week
from ringlog_lab.bench.history import no_other_summaries
from ringlog_lab.bench.old_weeks import enter_weeks, write_week
from ringlog_lab.bench.over_http import web

_WEEK = timedelta(weeks=1)
_JOB = Path(__file__).with_name("spark_years_job.py")
_WORKERS = 2


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--weeks", type=int, default=520)
    parser.add_argument("--minutes", type=int, default=30, help="between two rows")
    parser.add_argument("--jars", help="Iceberg's package for Spark")
    given = parser.parse_args()
    tables = Tables("ps_", given.tables, 150)
    with temporary_folder("ringlog-spark-") as folder:
        archive, facility = folder / "archive", folder / "facility.toml"
        archive.mkdir(mode=0o755)
        write_facility(facility, [tables])
        with facility.open("a") as file:
            file.write(f'[history]\nonline = "8 weeks"\narchive = "{archive}"\n')
        with serving(facility, folder / "data", keep=False) as server, no_other_summaries(server):
            _make(server, archive, tables, given.weeks, given.minutes)
            _publish(server, archive)
            by_spark = _spark(server, folder, tables, given.jars)
            by_sql = _sql(server, tables)
    for name in tables.names:
        differences = np.abs(np.subtract(by_spark[name], by_sql[name])) / np.maximum(1, np.abs(by_sql[name]))
        # SQL's least and greatest are texts of a real's digits
        if differences.max() > 1e-7:
            raise SystemExit(f"{name}: Spark and SQL differ by {differences.max()} at {differences.argmax()}")


def _make(server: Server, archive: Path, tables: Tables, weeks: int, minutes: int) -> None:
    """Writes the files of the first table, and links them for the others."""
    first, *others = tables.names
    with session.connect(server.administrator_conninfo) as connection:
        fields = of_log(connection, first)
    newest = Week.of(datetime.now(UTC) - 10 * _WEEK)
    dice = np.random.default_rng(1)
    folder = Folder(str(archive))
    begun = time.perf_counter()
    entries = [
        write_week(folder, first, week, _rows(tables, week, minutes, dice), fields)
        for week in (Week(newest.start - ago * _WEEK) for ago in range(weeks))
    ]
    written = time.perf_counter() - begun
    enter_weeks(server.administrator, first, entries)
    for name in others:
        shutil.copytree(archive / first, archive / name, copy_function=os.link)
        copies = [
            (begins, ends, f"{name}/{file.partition('/')[2]}", rows, size, footer)
            for begins, ends, file, rows, size, footer in entries
        ]
        enter_weeks(server.administrator, name, copies)
    rows = tables.count * sum(entry[3] for entry in entries)
    size = tables.count * sum(entry[4] for entry in entries)
    print(
        f"{tables.count} tables, {tables.count * len(entries)} files, {rows / 1e6:.1f} M rows,"
        f" {rows * tables.columns / 1e6:.0f} M values, {size / 1e9:.3f} GB;"
        f" a table written in {written:.0f} s",
        flush=True,
    )


def _rows(tables: Tables, week: Week, minutes: int, dice: np.random.Generator) -> Iterator[pa.RecordBatch]:
    """Readings of an ADC of 16 bits that drift."""
    numbers = np.arange(_WEEK // timedelta(minutes=minutes))
    times = int(week.start.timestamp()) * 10**6 + 60 * 10**6 * minutes * numbers
    steps = dice.integers(-20, 21, (tables.columns, len(numbers))).cumsum(axis=1)
    readings = ((steps + dice.integers(0, 1 << 15, (tables.columns, 1))) / np.float32(64)).astype(np.float32)
    yield pa.record_batch(
        {
            "seq_no": pa.array(numbers % tables.rows + 1, pa.int32()),
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            **dict(zip(tables.column_names, map(pa.array, readings), strict=True)),
        }
    )


def _publish(server: Server, archive: Path) -> None:
    logging.getLogger("pyiceberg.io").setLevel(logging.ERROR)  # statistics that files do not have
    begun = time.perf_counter()
    lines = [*publish(server.administrator_conninfo)]
    refused = [line for line in lines if not line.startswith("published")]
    if refused:
        raise LoadTestError(refused[0])
    metadata = sum(file.stat().st_size for file in (archive / "_iceberg").rglob("*") if file.is_file())
    print(
        f"published in {time.perf_counter() - begun:.0f} s, {metadata / 1e6:.0f} MB of metadata", flush=True
    )


def _spark(server: Server, folder: Path, tables: Tables, jars: str | None) -> dict[str, list[float]]:
    """The answers of a job of two workers, by table."""
    with web(server) as (_, port), session.connect(server.administrator_conninfo) as connection:
        version = ".".join(pyspark.__version__.split(".")[:2])
        settings = session_settings(connection, version, f"http://127.0.0.1:{port}")
        settings["spark.sql.catalog.ringlog.credential"] = f"{READER}:{server.password}"
        if jars:
            del settings["spark.jars.packages"]
            settings["spark.jars"] = jars
        properties = folder / "spark.conf"
        properties.touch(mode=0o600)
        properties.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        master = f"local-cluster[{_WORKERS},1,2048]"
        submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
        options = ["--properties-file", str(properties), "--conf", "spark.ui.enabled=false"]
        done = subprocess.run(
            [submit, "--master", master, *options, str(_JOB), *tables.names],
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(folder)},
            cwd=folder,
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise LoadTestError(done.stderr[-3000:])
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    took = [answer["seconds"][name] for name in tables.names]
    print(
        f"Spark, {_WORKERS} workers: {answer['start']:.1f} s to start, all tables {sum(took):.0f} s, a table"
        f" {np.median(took):.1f} s (the first {took[0]:.1f}); correlations {answer['correlations']:.1f} s",
        flush=True,
    )
    return dict(answer["answers"])


def _sql(server: Server, tables: Tables) -> dict[str, list[float]]:
    """The answers of SQL over the archive server, by table."""
    names = tables.column_names
    columns = ", ".join(f"{name}({column})" for column in names for name in ("min", "max", "avg"))
    answers, took = {}, []
    with session.connect(server.conninfo(READER), autocommit=True) as connection:

        def asked(query: str) -> tuple[float, list[float]]:
            begun = time.perf_counter()
            (row,) = connection.execute(query.encode()).fetchall()
            return time.perf_counter() - begun, list(map(float, row))

        for table in tables.names:
            seconds, answers[table] = asked(f"select count(*), {columns} from archive.{table}")
            took.append(seconds)
        correlations = ", ".join(f"corr({column}, {names[0]})" for column in names)
        try:
            longest = f"{asked(f'select {correlations} from archive.{tables.names[0]}')[0]:.1f} s"
        except psycopg.Error as error:
            longest = str(error).partition("\n")[0]
    print(
        f"SQL, archive server: all tables {sum(took):.0f} s, a table {np.median(took):.1f} s;"
        f" correlations {longest}",
        flush=True,
    )
    return answers


if __name__ == "__main__":
    main()
