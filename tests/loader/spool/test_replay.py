"""Recordings: readings from them, and refused files."""

import math
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringlog.loader.schedule import SECOND
from ringlog.loader.sources import Row, SourceError
from ringlog.loader.sources.csv_replay import CsvReplay
from ringlog.loader.sources.parquet_replay import ParquetReplay
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.moments import HOUR, microseconds, moment_of
from waiting import PATIENCE, is_alive, wait_until

FACILITY = Path(__file__).parents[1] / "facility.toml"


@pytest.fixture
def facility() -> Facility:
    return load_facility(FACILITY)


@pytest.fixture
def table(facility: Facility) -> Table:
    return next(table for table in facility.tables if table.name == "every_type")


def replay(folder: Path, zone: str = "Asia/Tokyo", speed: float = math.inf) -> CsvReplay:
    return CsvReplay(folder, ZoneInfo(zone), speed)


def rows(folder: Path, table: Table, text: str, zone: str = "Asia/Tokyo") -> list[Row]:
    (folder / f"{table.name}.csv").write_text(text)
    return [*chain(*replay(folder, zone).rows(table, None, lambda seconds: None, Statistics()))]


def test_names_signals_and_empty_cells(tmp_path: Path, table: Table) -> None:
    assert rows(
        tmp_path,
        table,
        "time,a_bit,every_type/real,a_varchar,a_bigint\n"
        '2026-03-01T09:00:00.000001,1,-1.5e3,"on, twice",9223372036854775807\n'
        "2026-03-01 00:00:00.000002Z,false,,,\n",
    ) == [
        Row.of(
            microseconds(datetime(2026, 3, 1, 0, 0, 0, 1, UTC)),
            (-1500.0, None, None, None, 9223372036854775807, True, "on, twice"),
        ),
        Row.of(
            microseconds(datetime(2026, 3, 1, 0, 0, 0, 2, UTC)), (None, None, None, None, None, False, None)
        ),
    ]


def test_nanoseconds_come_from_the_times(tmp_path: Path, table: Table) -> None:
    below = Column("nanoseconds", f"{table.name}/nanoseconds", "smallint")
    finer = replace(table, columns=(*table.columns, below))
    text = "time\n2026-11-20T14:00:00.123456789Z\n2026-11-20T14:00:01.5Z\n2026-11-20T14:00:02.0000004+00:00\n"
    found = rows(tmp_path, finer, text)
    assert [(row.time % SECOND, row.values[-1]) for row in found] == [(123456, 789), (500000, 0), (0, 400)]
    with pytest.raises(SourceError, match="finer than a microsecond"):
        rows(tmp_path, table, text)
    # a column of the file has it
    assert rows(tmp_path, finer, "time,nanoseconds\n2026-11-20T14:00:00Z,12\n")[0].values[-1] == 12


def test_a_repeated_hour_needs_its_offset(tmp_path: Path, table: Table) -> None:
    head = "time,a_real\n"
    for text in ("2026-10-25 02:30", "2026-03-29 02:30"):
        with pytest.raises(
            SourceError, match="is ambiguous or does not exist in Europe/Berlin: write it with its offset"
        ):
            rows(tmp_path, table, f"{head}{text},1\n", "Europe/Berlin")
    both = rows(
        tmp_path, table, f"{head}2026-10-25 02:30+02:00,1\n2026-10-25 02:30+01:00,2\n", "Europe/Berlin"
    )
    assert both[1].time - both[0].time == HOUR


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1: the first line must name the columns, the first of them 'time'"),
        ("when,a_real\n", "line 1: the first line must name the columns, the first of them 'time'"),
        ("time,a_reel\n", "line 1: table every_type has no column or signal 'a_reel'"),
        ("time,a_real,every_type/real\n", "line 1: column a_real is named twice"),
        ("time,a_real\n2026-03-01,1\n2026-03-02,1,2\n", "line 3: 3 cells, the first line has 2"),
        ("time,a_real\n1.3.2026,1\n", "line 2: '1.3.2026' is not an ISO 8601 time"),
        ("time,a_real\n2026-03-01 00:00:00.1234567,1\n", "line 2: time 2026-03-01 00:00:00.1234567 is finer"),
        (
            "time,a_real\n2026-03-01,1\n2026-03-01,2\n",
            "line 3: time 2026-03-01 is not later than the line before",
        ),
        ("time,a_real\n2026-03-01,1_0\n", "line 2: column a_real: '1_0' is not a number"),
        (
            "time,a_real\n2026-03-01,nan\n",
            "line 2: column a_real: 'nan' is not a number (no reading is an empty cell)",
        ),
        ("time,a_real\n2026-03-01,1e39\n", "line 2: column a_real: 1e39 is out of range"),
        ("time,a_double\n2026-03-01,1e309\n", "line 2: column a_double: 1e309 is out of range"),
        (
            "time,a_smallint\n2026-03-01,32768\n",
            "line 2: column a_smallint: 32768 is out of the range of smallint",
        ),
        ("time,an_int\n2026-03-01,1.0\n", "line 2: column an_int: '1.0' is not a int"),
        ("time,a_bit\n2026-03-01,2\n", "line 2: column a_bit: '2' is not a bit: 0, 1, false or true"),
        (
            "time,a_varchar\n2026-03-01,thirteen char\n",
            "line 2: column a_varchar: 'thirteen char' is longer than",
        ),
        ('time,a_varchar\n2026-03-01,"open\n', "line 2: unexpected end of data"),
    ],
)
def test_refusals_name_file_line_and_column(tmp_path: Path, table: Table, text: str, complaint: str) -> None:
    with pytest.raises(SourceError) as refusal:
        rows(tmp_path, table, text)
    assert str(refusal.value).startswith(f"{tmp_path}/every_type.csv, {complaint}")


def test_check_reads_to_the_end_of_each_file(tmp_path: Path, facility: Facility) -> None:
    (tmp_path / "beam.csv").write_text("time,current\n2026-03-01,1\n")
    (tmp_path / "magnet.csv").write_text("time,current_1\n2026-03-01,1\n2026-03-02,?\n")
    source = replay(tmp_path)
    tables = source.tables(facility)
    assert [table.name for table in tables] == ["beam", "magnet"]
    with pytest.raises(SourceError, match=r"magnet.csv, line 3: column current_1: '\?' is not a number"):
        source.check(tables)


def test_files_that_fit_no_table_are_refused(tmp_path: Path, facility: Facility) -> None:
    with pytest.raises(SourceError, match="has no CSV file"):
        replay(tmp_path).tables(facility)
    (tmp_path / "beem.csv").write_text("time\n")
    with pytest.raises(SourceError, match=r"beem.csv: the facility has no table beem"):
        replay(tmp_path).tables(facility)
    with pytest.raises(SourceError, match="nowhere is not a folder"):
        replay(tmp_path / "nowhere").tables(facility)


def test_pauses_are_those_of_the_recording(tmp_path: Path, table: Table) -> None:
    (tmp_path / "every_type.csv").write_text(
        "time,a_real\n2026-03-01 00:00:00,1\n2026-03-01 00:00:10,2\n2026-03-01 00:01:00.5,3\n"
    )
    waits: list[float] = []
    began = time.monotonic()
    taken = list(replay(tmp_path, speed=10.0).rows(table, None, waits.append, Statistics()))
    took = time.monotonic() - began
    assert len(taken) == 3
    # no wait: the pauses are shorter by the time of reading
    for pause, expected in zip(waits, [0.0, 1.0, 6.05], strict=True):
        assert expected - took <= pause <= expected


def test_rows_that_are_due_together_come_together(tmp_path: Path, table: Table) -> None:
    lines = [f"2026-03-01 00:{number // 60:02}:{number % 60:02},{number}" for number in range(200)]
    (tmp_path / "every_type.csv").write_text("\n".join(["time,a_real", *lines]))
    # each pause lasts 0.1 s, in which ten seconds of the recording pass
    paced = [*replay(tmp_path, speed=100.0).rows(table, None, lambda seconds: time.sleep(0.1), Statistics())]
    assert len(paced) <= 20
    assert [row.values[0] for row in chain(*paced)] == [*range(200)]
    (whole,) = replay(tmp_path).rows(table, None, lambda seconds: None, Statistics())
    assert whole == [*chain(*paced)]


def test_rows_in_the_table_are_skipped_and_counted(tmp_path: Path, table: Table) -> None:
    (tmp_path / "every_type.csv").write_text(
        "time,a_real\n2026-03-01 09:00:00,1\n2026-03-01 09:00:01,2\n2026-03-01 09:00:02,3\n"
    )
    statistics = Statistics()
    after = datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC)
    left = replay(tmp_path).rows(table, after, lambda seconds: None, statistics)
    assert [row.values[0] for row in chain(*left)] == [3.0]
    assert statistics.skipped == 2


# --- recordings in Parquet: their readings, and refused files ---

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
def every_type(facility: Facility) -> Table:
    (found,) = (every_type for every_type in facility.tables if every_type.name == "every_type")
    return found


def write(folder: Path, time: Any, **columns: Any) -> None:
    pq.write_table(pa.table({"time": time, **columns}), folder / "every_type.parquet")


def times(count: int = 3, unit: str = "us", zone: str | None = "UTC") -> Any:
    moments = [BEGIN + timedelta(seconds=number) for number in range(count)]
    return pa.array(
        moments if zone else [moment.replace(tzinfo=None) for moment in moments], pa.timestamp(unit, zone)
    )


def parquet_replay(folder: Path, zone: str = "Asia/Tokyo") -> ParquetReplay:
    return ParquetReplay(folder, ZoneInfo(zone), math.inf)


def test_every_type_is_read(tmp_path: Path, every_type: Table) -> None:
    write(tmp_path, times(), **EVERY)
    source = parquet_replay(tmp_path)
    source.check([every_type])
    rows = [*chain(*source.rows(every_type, BEGIN, lambda seconds: None, Statistics()))]
    assert [moment_of(row.time) for row in rows] == [BEGIN + timedelta(seconds=number) for number in (1, 2)]
    assert rows[0].values == (None, 2.0, 2, 2, -(2**63), False, "")
    assert math.isnan(float(str(rows[1].values[0])))
    assert rows[1].values[1:] == (None, 3, None, 0, None, None)


def first(source: ParquetReplay, table: Table) -> datetime:
    return moment_of(next(source.read(table))[0].time)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_without_a_zone_are_the_facilitys(tmp_path: Path, every_type: Table, unit: str) -> None:
    write(tmp_path, times(unit=unit, zone=None), a_real=[1.0, 2.0, 3.0])
    assert first(parquet_replay(tmp_path), every_type) == BEGIN - timedelta(hours=9)
    write(tmp_path, times(unit=unit, zone="America/New_York"), a_real=[1.0, 2.0, 3.0])
    assert first(parquet_replay(tmp_path), every_type) == BEGIN
    write(tmp_path, ["2018-03-01T00:00:00+00:00"], a_real=[1.0])
    assert first(parquet_replay(tmp_path), every_type) == BEGIN


def test_nanoseconds_come_from_the_times_of_parquet(tmp_path: Path, every_type: Table) -> None:
    below = Column("nanoseconds", "every_type/nanoseconds", "smallint")
    finer = replace(every_type, columns=(*every_type.columns, below))
    begin = int(BEGIN.timestamp()) * 1_000_000_000
    write(tmp_path, pa.array([begin + 1_234, begin + 5_000], pa.timestamp("ns", "UTC")), a_real=[1.0, 2.0])
    rows = [*chain(*parquet_replay(tmp_path).read(finer))]
    assert [(moment_of(row.time), row.values[-1]) for row in rows] == [
        (BEGIN + timedelta(microseconds=1), 234),
        (BEGIN + timedelta(microseconds=5), 0),
    ]
    write(tmp_path, ["2018-03-01T00:00:00.000001234Z"], a_real=[1.0])
    assert next(parquet_replay(tmp_path).read(finer))[0].values[-1] == 234


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
    tmp_path: Path, every_type: Table, time: Any, columns: dict[str, Any], complaint: str
) -> None:
    write(tmp_path, time, **columns)
    with pytest.raises(SourceError) as refusal:
        parquet_replay(tmp_path).check([every_type])
    assert str(refusal.value).startswith(f"{tmp_path}/every_type.parquet{complaint}")


def test_numbered_rows_are_for_imports(tmp_path: Path, every_type: Table) -> None:
    write(tmp_path, times(), seq_no=[1, 2, 3], a_real=[1.0, 2.0, 3.0])
    with pytest.raises(SourceError, match="no column or signal 'seq_no'"):
        parquet_replay(tmp_path).check([every_type])


def test_other_files_are_refused(tmp_path: Path, every_type: Table) -> None:
    (tmp_path / "every_type.parquet").write_text("no Parquet")
    with pytest.raises(SourceError, match=r"every_type.parquet: .*Parquet"):
        parquet_replay(tmp_path).check([every_type])
    pq.write_table(pa.table({"a_real": [1.0]}), tmp_path / "every_type.parquet")
    with pytest.raises(SourceError, match="there is no column 'time'"):
        parquet_replay(tmp_path).check([every_type])


@pytest.mark.long
def test_a_recording_is_loaded(
    load: Callable[..., Any], stored: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    write(tmp_path, pa.array([BEGIN + timedelta(milliseconds=n) for n in range(2500)]), an_int=[*range(2500)])
    code, output = load("--source", f"parquet:{tmp_path}", "--speed", "inf").end()
    # the every_type has later rows: a recording continues after them
    assert code == 0, output
    assert "2500 skipped" in output or "2500 rows acknowledged" in output
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
    rows = [row.values for row in chain(*parquet_replay(tmp_path).read(Table("scope", 3, 1.0, columns)))]
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
        list(parquet_replay(tmp_path).read(Table("scope", 3, 1.0, columns)))


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
