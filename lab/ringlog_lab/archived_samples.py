"""Archived samples: `python -m ringlog_lab.archived_samples DSN`, in an empty database of a superuser.

Bytes a sample of a week's file, and the time in which 12,000 samples of one signal are read into numpy: from
PostgreSQL, and from the file. Three kinds of signals: readings of a converter of 16 bits each second, with
stamps within 100 µs of it; the same taken by change, at any time; noise at any time. Stamps have nanoseconds.
"""

import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psycopg
import sqlalchemy as sa

from ringlog.history import sampled
from ringlog.history.archive.archiving import archive
from ringlog.history.connection import connect
from ringlog.history.signals import places
from ringlog.history.summaries.summarising import summarise
from ringlog.schema import session
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Facility, History, Retention, SampleSignal, SampleTable
from ringlog.schema.install import install
from ringlog.schema.partitions import maintain
from ringlog.schema.sample_tables import merge

SIGNALS = 100
LONG = 12_000
"""samples of each signal"""
KINDS = ("converter", "changes", "noise")
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
_NOW = datetime(2026, 4, 1, tzinfo=UTC)


def main(dsn: str) -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as folder, session.connect(dsn, autocommit=True) as connection:
        engine = session.engine(dsn)
        _install(engine, folder)
        for kind in KINDS:
            _fill(connection, kind)
        maintain(engine, _NOW)
        merge(engine)
        summarise(dsn, _NOW, enough=1)
        connection.execute("vacuum analyze")
        sizes = {kind: _bytes(connection, kind) for kind in KINDS}
        before = {kind: _timed(dsn, kind) for kind in KINDS}
        begun = time.monotonic()
        lines = [*archive(engine, dsn, _NOW, pauses=0)]
        seconds = time.monotonic() - begun
        for kind in KINDS:
            (file,) = (Path(folder) / kind).glob("*.parquet")
            print(
                f"{kind}: {sizes[kind] / SIGNALS / LONG:.1f} bytes a sample in PostgreSQL,"
                f" {file.stat().st_size / SIGNALS / LONG:.2f} in the file; one signal of {LONG}"
                f" {before[kind] * 1000:.2f} ms, {_timed(dsn, kind) * 1000:.2f} ms"
            )
        print(f"{len(lines)} weeks: {len(KINDS) * SIGNALS * LONG / seconds:.0f} samples/s archived")


def _install(engine: sa.Engine, folder: str) -> None:
    tables = tuple(
        SampleTable(
            kind,
            ColumnType.of("double"),
            signals=tuple(SampleSignal(f"{kind}:{number}") for number in range(SIGNALS)),
        )
        for kind in KINDS
    )
    history = History(Retention(1, "week"), folder)
    install(engine, Facility("samples", "UTC", (), sample_tables=tables, history=history))


def _fill(connection: psycopg.Connection, kind: str) -> None:
    random = np.random.default_rng(53)
    numbers = connection.execute(
        "select number from ringlog.sample_signal where table_name = %s", [kind]
    ).fetchall()
    for (number,) in numbers:
        times = np.arange(LONG) * 1_000_000_000.0
        jitter = random.normal(0, 100_000, LONG) if kind == "converter" else random.uniform(0, 1e9, LONG)
        stamps = (int(BEGIN.timestamp()) * 10**9 + (times + np.abs(jitter)).astype(np.int64)).tolist()
        walk = random.integers(-3, 4, LONG).cumsum() * (20 / 65_536)
        values = random.normal(size=LONG) if kind == "noise" else walk
        connection.execute(
            f"select ringlog.put_{kind}_batch(%s::integer[], %s::bigint[], %s)".encode(),
            [[number] * LONG, stamps, values.tolist()],
        )


def _bytes(connection: psycopg.Connection, kind: str) -> int:
    query = "select sum(pg_total_relation_size(relid)) from pg_partition_tree(%s)"
    found = connection.execute(query, [f"weeks.{kind}"]).fetchone()
    assert found is not None
    return int(found[0])


def _timed(dsn: str, kind: str) -> float:
    """Seconds: the median of 25."""
    took = []
    with closing(connect(dsn)) as connection:
        (place,) = places(connection, [f"{kind}:50"])[f"{kind}:50"]
        for _ in range(25):
            begun = time.perf_counter()
            batches = [*sampled.read(connection, place, BEGIN, _NOW)]
            took.append(time.perf_counter() - begun)
            assert sum(batch.num_rows for batch in batches) == LONG
    return sorted(took)[len(took) // 2]


if __name__ == "__main__":
    main(sys.argv[1])
