"""Rows in native code: what it writes is what the plain code says."""

import csv
import json
import math
import random
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ringlog.clients.readings import Reading, stored
from ringlog.gateway import _core
from ringlog.loader.sources import SourceError
from ringlog.loader.sources.csv_replay import CsvReplay, cell_reader
from ringlog.schema.facility import Column, Table
from ringlog.schema.moments import microseconds, moment_of

ZONE = ZoneInfo("Asia/Tokyo")
TYPES = [
    *("real", "double", "smallint", "int", "bigint", "bit", "varchar(3)", "text", "numeric(6,2)", "datetime")
]
NUMBERS = [
    *("0", "-0", "+1", "1.", ".5", "-.5e-3", "1E+2", "007", "32767", "-32768", "32768", "2147483648", "1e5"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "3.4028234663852886e38"),
    *("3.4028236e38", "1e39", "1.7976931348623157e308", "1e309", "5e-324", "1e-400", "0.1", "16777217"),
    *("nan", "NaN", "inf", "-Infinity", "1_0", "0x1F", " 1", "1 ", ".", "-", "+", "e5", "1e", "1e+", "--1"),
    *("12.345", "1234.56", "12345.6", "1,5"),
]
TEXTS = [
    *(
        "true",
        "False",
        "TRUE",
        "1",
        "yes",
        "2026-03-01 00:00:00Z",
        "2026-03-01",
        "磁石",
        "磁石🧲",
        "long text",
    ),
    *('a"b', "a\\b", "a\nb", "\t", "\x7f", "\x01", "a\0", "ü\u0301é", "\\u0000"),
]


def outcome(reading: Callable[[], Reading]) -> object:
    """The reading with its type, or the reason why there is none."""
    try:
        value = reading()
    except (ValueError, SourceError) as error:
        return str(error).rpartition(": column c: ")[2]
    return type(value), value, str(value)


@pytest.mark.parametrize("kind", TYPES)
def test_cells_are_read_as_one_by_one(tmp_path: Path, kind: str) -> None:
    column = Column("c", "t/c", kind)
    table = Table("t", 3, 1.0, (column,))
    read = cell_reader(column, ZONE)
    for text in [*NUMBERS, *TEXTS]:
        with (tmp_path / "t.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["time", "c"], ["2026-03-01", text]])
        native = outcome(lambda: next(CsvReplay(tmp_path, ZONE).read(table))[0].values[0])
        assert native == outcome(partial(read, text)), text


def test_rows_before_a_wrong_one_are_given(tmp_path: Path) -> None:
    lines = [f"2026-03-01 00:00:{second:02},{second}" for second in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["time,c", *lines, "2026-03-02,wrong", "2026-03-03,1", ""]))
    blocks = CsvReplay(tmp_path, ZONE).read(Table("t", 3, 1.0, (Column("c", "t/c", "real"),)))
    assert [row.values[0] for row in next(blocks)] == [float(second) for second in range(20)]
    with pytest.raises(SourceError, match=r"t.csv, line 22: column c: 'wrong' is not a number"):
        next(blocks)


def as_one_call(value: Reading, is_real: bool) -> Reading:
    """A reading as a call with it alone sends it."""
    if isinstance(value, float) and is_real and abs(value) < 3.5e38:
        (value,) = struct.unpack("f", struct.pack("f", value))
    return value


def some_readings(chosen: random.Random) -> Iterator[tuple[Reading, bool]]:
    """A reading, and whether its column is a real."""
    yield from ((value, False) for value in (None, True, -1, 2**63 - 1, "", *TEXTS))
    for value in (0.0, -0.0, 0.1, 1e39, -1.8e308, 5e-324, 1e-46, 16777217.0, 3.4028235e38, math.pi):
        yield from ((value, is_real) for is_real in (True, False))
    for _ in range(3000):
        yield struct.unpack("d", chosen.randbytes(8))[0], False
        # as far as a real reaches
        yield chosen.uniform(-1, 1) * 10 ** chosen.uniform(-46, 38.5), True


def test_a_batch_has_the_values_of_single_calls() -> None:
    readings, reals = zip(*some_readings(random.Random(1)), strict=True)
    names = [f"c{index} ü" for index in range(len(readings))]
    batch = _core.Batch([*zip(names, reals, strict=True)])
    times = [0, 1, -1, microseconds(datetime(2026, 10, 25, 0, 30, 0, 7, UTC)), -62_135_596_800_000_000]
    seq_nos = [1, 2, 3, 4, None]
    text = batch.text(
        [(seq_no, time, str(stored(readings))) for seq_no, time in zip(seq_nos, times, strict=True)]
    )
    assert text.isascii()
    for row, seq_no, time in zip(json.loads(text), seq_nos, times, strict=True):
        assert (row.pop("seq_no"), datetime.fromisoformat(row.pop("time"))) == (seq_no, moment_of(time))
        assert [*row] == names
        for sent, value, is_real in zip(row.values(), readings, reals, strict=True):
            wanted = as_one_call(value, is_real)
            if isinstance(wanted, float) and not math.isfinite(wanted):
                # JSON has no such number: PostgreSQL reads it from a text
                assert isinstance(sent, str)
                assert str(float(sent)) == str(wanted)
            elif isinstance(wanted, float):
                assert as_one_call(float(sent), is_real) == wanted, (sent, value)
            else:
                assert (type(sent), sent) == (type(wanted), wanted)


def test_readings_of_other_columns_are_no_batch() -> None:
    with pytest.raises(ValueError, match="a row has not the readings of the table's columns"):
        _core.Batch([("a", True)]).text([(1, 0, "[1,2]")])
