"""Recordings in Parquet: their readings, and refused files."""

import math
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringlog.loader.sources import SourceError
from ringlog.loader.sources.parquet_replay import ParquetReplay
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, Facility, Table
from waiting import PATIENCE, is_alive, wait_until

BEGIN = datetime(2018, 3, 1, tzinfo=UTC)
EVERY = {
    "a_real": pa.array([1.5, None, float("nan")], pa.float32()),
    "a_double": pa.array([0.1, 2.0, None]),
    "every_type/an_int": pa.array([1, 2, 3], pa.int8()),
    "a_smallint": pa.array([1.0, 2.0, None]),
    "a_bigint": pa.array([2**63 - 1, -(2**63), 0]),
    "a_bit": pa.array([True, False, None]),
    "a_varchar": pa.array(["磁石", "", None]),
}


@pytest.fixture
def table(facility: Facility) -> Table:
    (found,) = (table for table in facility.tables if table.name == "every_type")
    return found


def write(folder: Path, time: Any, **columns: Any) -> None:
    pq.write_table(pa.table({"time": time, **columns}), folder / "every_type.parquet")


def times(count: int = 3, unit: str = "us", zone: str | None = "UTC") -> Any:
    moments = [BEGIN + timedelta(seconds=number) for number in range(count)]
    return pa.array(
        moments if zone else [moment.replace(tzinfo=None) for moment in moments], pa.timestamp(unit, zone)
    )


def replay(folder: Path, zone: str = "Asia/Tokyo") -> ParquetReplay:
    return ParquetReplay(folder, ZoneInfo(zone), math.inf)


def test_every_type_is_read(tmp_path: Path, table: Table) -> None:
    write(tmp_path, times(), **EVERY)
    source = replay(tmp_path)
    source.check([table])
    rows = [*source.rows(table, BEGIN, lambda seconds: None, Statistics())]
    assert [row.time for row in rows] == [BEGIN + timedelta(seconds=1), BEGIN + timedelta(seconds=2)]
    assert rows[0].values == (None, 2.0, 2, 2, -(2**63), False, "")
    assert math.isnan(float(str(rows[1].values[0])))
    assert rows[1].values[1:] == (None, 3, None, 0, None, None)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_without_a_zone_are_the_facilitys(tmp_path: Path, table: Table, unit: str) -> None:
    write(tmp_path, times(unit=unit, zone=None), a_real=[1.0, 2.0, 3.0])
    assert next(replay(tmp_path).read(table)).time == BEGIN - timedelta(hours=9)
    write(tmp_path, times(unit=unit, zone="America/New_York"), a_real=[1.0, 2.0, 3.0])
    assert next(replay(tmp_path).read(table)).time == BEGIN
    write(tmp_path, ["2018-03-01T00:00:00+00:00"], a_real=[1.0])
    assert next(replay(tmp_path).read(table)).time == BEGIN


def test_nanoseconds_come_from_the_times(tmp_path: Path, table: Table) -> None:
    below = Column("nanoseconds", "every_type/nanoseconds", "smallint")
    finer = replace(table, columns=(*table.columns, below))
    begin = int(BEGIN.timestamp()) * 1_000_000_000
    write(tmp_path, pa.array([begin + 1_234, begin + 5_000], pa.timestamp("ns", "UTC")), a_real=[1.0, 2.0])
    rows = [*replay(tmp_path).read(finer)]
    assert [(row.time, row.values[-1]) for row in rows] == [
        (BEGIN + timedelta(microseconds=1), 234),
        (BEGIN + timedelta(microseconds=5), 0),
    ]
    write(tmp_path, ["2018-03-01T00:00:00.000001234Z"], a_real=[1.0])
    assert next(replay(tmp_path).read(finer)).values[-1] == 234


@pytest.mark.parametrize(
    ("time", "columns", "complaint"),
    [
        (times(), {"colour": [1, 2, 3]}, ": table every_type has no column or signal 'colour'"),
        (times(), {"an_int": [1, 2, 2**31]}, ", row 3: column an_int: 2147483648 is out of the range of int"),
        (times(), {"an_int": [1.0, 2.5, 3.0]}, ", row 2: column an_int: 2.5 is not a whole number"),
        (times(), {"a_real": ["1", "2", "3"]}, ", row 1: column a_real: text does not fit a real"),
        (times(), {"a_real": [[1.0], [2.0], [3.0]]}, ", row 1: column a_real: "),
        (times(), {"a_bit": [0, 1, 2]}, ", row 3: column a_bit: 2 is not a bit"),
        (times(), {"a_varchar": ["a", "b", "x" * 13]}, ", row 3: column a_varchar: 'xxxxxxxxxxxxx' is"),
        (pa.array([BEGIN, BEGIN]), {"a_real": [1.0, 2.0]}, ", row 2: its time is not later than"),
        (pa.array([1, 2]), {"a_real": [1.0, 2.0]}, ": column time is int64, neither timestamps nor"),
        (pa.array([1001], pa.timestamp("ns", "UTC")), {"a_real": [1.0]}, ", row 1: time 1970-01-01 00:00:00"),
        (pa.array([None], pa.timestamp("us")), {"a_real": [1.0]}, ", row 1: the time is missing"),
    ],
)  # fmt: skip
def test_refusals_name_file_row_and_column(
    tmp_path: Path, table: Table, time: Any, columns: dict[str, Any], complaint: str
) -> None:
    write(tmp_path, time, **columns)
    with pytest.raises(SourceError) as refusal:
        replay(tmp_path).check([table])
    assert str(refusal.value).startswith(f"{tmp_path}/every_type.parquet{complaint}")


def test_numbered_rows_are_for_imports(tmp_path: Path, table: Table) -> None:
    write(tmp_path, times(), seq_no=[1, 2, 3], a_real=[1.0, 2.0, 3.0])
    with pytest.raises(SourceError, match="no column or signal 'seq_no'"):
        replay(tmp_path).check([table])


def test_other_files_are_refused(tmp_path: Path, table: Table) -> None:
    (tmp_path / "every_type.parquet").write_text("no Parquet")
    with pytest.raises(SourceError, match=r"every_type.parquet: .*Parquet"):
        replay(tmp_path).check([table])
    pq.write_table(pa.table({"a_real": [1.0]}), tmp_path / "every_type.parquet")
    with pytest.raises(SourceError, match="there is no column 'time'"):
        replay(tmp_path).check([table])


@pytest.mark.long
def test_a_recording_is_loaded(
    load: Callable[..., Any], stored: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    write(tmp_path, pa.array([BEGIN + timedelta(milliseconds=n) for n in range(2500)]), an_int=[*range(2500)])
    code, said = load("--source", f"parquet:{tmp_path}", "--speed", "inf").end()
    # the table has later rows: a recording continues after them
    assert code == 0, said
    assert "2500 skipped" in said or "2500 rows acknowledged" in said
    rows = [row[4] for row in stored("every_type") if row[1].year == 2018]
    assert rows in ([], [*range(2500)])


def test_lists_are_waveforms(tmp_path: Path) -> None:
    columns = (
        Column("trace", "scope/trace", "double[]", points=3),
        Column("words", "scope/words", "smallint[]", points=3),
        Column("states", "scope/states", "varchar(8)[]", points=3),
    )
    recorded = {
        "trace": pa.array([[0.1, math.nan, -math.inf], None, []], pa.list_(pa.float64())),
        "words": pa.array([[1, -32768], [3], None], pa.list_(pa.int64(), -1)),
        "states": pa.array([["ready", 'a "b", c'], None, [""]]),
    }
    pq.write_table(pa.table({"time": times(), **recorded}), tmp_path / "scope.parquet")
    rows = [row.values for row in replay(tmp_path).read(Table("scope", 3, 1.0, columns))]
    assert rows == [
        (
            struct.pack("<3d", 0.1, math.nan, -math.inf),
            struct.pack("<2h", 1, -32768),
            r'{"ready","a \"b\", c"}',
        ),
        (None, struct.pack("<h", 3), None),
        (b"", None, '{""}'),
    ]
    pq.write_table(pa.table({"time": times(1), "words": [[1, 40_000]]}), tmp_path / "scope.parquet")
    with pytest.raises(
        SourceError, match="row 1: column words: point 1 is 40000, which is not of type smallint"
    ):
        list(replay(tmp_path).read(Table("scope", 3, 1.0, columns)))


CHECK = """
import sys
from pathlib import Path
from zoneinfo import ZoneInfo
from ringlog.loader.sources.parquet_replay import ParquetReplay
from ringlog.schema.facility import Column, Table
ParquetReplay(Path(sys.argv[1]), ZoneInfo("UTC")).check([Table("long", 9, 1.0, (Column("a", "a", "int"),))])
"""


@pytest.mark.long
def test_a_check_ends_with_its_process(tmp_path: Path) -> None:
    """A killed `ringlog load` whose check is reading leaves no process behind."""
    moments = pa.array(range(1_000_000), pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"time": moments, "a": pa.array(range(len(moments)))}), tmp_path / "long.parquet")
    with subprocess.Popen([sys.executable, "-P", "-c", CHECK, str(tmp_path)]) as process:
        (child,) = wait_until(psutil.Process(process.pid).children)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    wait_until(lambda: not is_alive(child.pid))
