"""Recordings: readings from them, and refused files."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ringlog.loader.sources import Row, SourceError
from ringlog.loader.sources.csv_replay import CsvReplay
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.facility_files.facility_file import load_facility

FACILITY = Path(__file__).with_name("facility.toml")


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
    return list(replay(folder, zone).rows(table, None, lambda seconds: None, Statistics()))


def test_names_signals_and_empty_cells(tmp_path: Path, table: Table) -> None:
    assert rows(
        tmp_path,
        table,
        "time,a_bit,every_type/real,a_varchar,a_bigint\n"
        '2026-03-01T09:00:00.000001,1,-1.5e3,"on, twice",9223372036854775807\n'
        "2026-03-01 00:00:00.000002Z,false,,,\n",
    ) == [
        Row(
            datetime(2026, 3, 1, 0, 0, 0, 1, UTC),
            (-1500.0, None, None, None, 9223372036854775807, True, "on, twice"),
        ),
        Row(datetime(2026, 3, 1, 0, 0, 0, 2, UTC), (None, None, None, None, None, False, None)),
    ]


def test_nanoseconds_come_from_the_times(tmp_path: Path, table: Table) -> None:
    below = Column("nanoseconds", f"{table.name}/nanoseconds", "smallint")
    finer = replace(table, columns=(*table.columns, below))
    text = "time\n2026-11-20T14:00:00.123456789Z\n2026-11-20T14:00:01.5Z\n2026-11-20T14:00:02.0000004+00:00\n"
    found = rows(tmp_path, finer, text)
    assert [(row.time.microsecond, row.values[-1]) for row in found] == [(123456, 789), (500000, 0), (0, 400)]
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
    assert both[1].time - both[0].time == timedelta(hours=1)


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


def test_rows_in_the_table_are_skipped_and_counted(tmp_path: Path, table: Table) -> None:
    (tmp_path / "every_type.csv").write_text(
        "time,a_real\n2026-03-01 09:00:00,1\n2026-03-01 09:00:01,2\n2026-03-01 09:00:02,3\n"
    )
    statistics = Statistics()
    after = datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC)
    left: Iterator[Row] = replay(tmp_path).rows(table, after, lambda seconds: None, statistics)
    assert [row.values[0] for row in left] == [3.0]
    assert statistics.skipped == 2
