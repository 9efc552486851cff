"""The Rust encoder's output agrees with other libraries: orjson, csv. Raw events are in test_raw.py."""

import csv
import io
import json
import math
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringlog.retrieval.encoding import lines

EPOCH = datetime(1970, 1, 1)
# as written in CSV: docs/reference/facility-file.md
NOT_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(
    '",\t\n\r\x00\x1b\x85\u2028é𝄞\\ ', max_size=8
)
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "real": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "bit": (pa.bool_(), st.booleans()),
    "varchar": (pa.string(), TEXTS),
}
COLUMNS |= {f"{name}[]": (pa.list_(kind), st.lists(of, max_size=5)) for name, (kind, of) in COLUMNS.items()}


@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_values_are_read_unchanged(name: str, data: st.DataObject) -> None:
    """Part of a column, in JSON and in CSV."""
    kind, of = COLUMNS[name]
    drawn = data.draw(st.lists(st.none() | of, min_size=1, max_size=20))
    begin = data.draw(st.integers(0, len(drawn) - 1))
    column = pa.array(drawn, kind).slice(begin)
    values = [_shortest(value) if name.startswith("real") else value for value in column.to_pylist()]

    text = lines(("json", column), b",").decode().removesuffix(",")
    assert orjson.loads(f"[{text}]") == [_shown(value) for value in values]
    if not pa.types.is_nested(kind):
        # the very bytes that orjson writes
        each = (np.float32(value) if name == "real" and value is not None else value for value in values)
        written = (orjson.dumps(_bits_as_numbers(value), option=orjson.OPT_SERIALIZE_NUMPY) for value in each)
        assert text.encode() == b",".join(written)

    rows = csv.reader(io.StringIO(lines(b"1,", ("csv", column, b"missing"), b",2\n").decode(), newline=""))
    read = [row[1] for row in rows]
    expected = [_in_csv(value) for value in values]
    assert [_of_csv(text, value) for text, value in zip(read, values, strict=True)] == expected


def test_bits_of_the_plain_api_are_true_and_false() -> None:
    assert lines(("json_bits", pa.array([True, None, False])), b" ") == b"true null false "


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20))
@example([0, -1, 1, 999_999_999, -999_999_999, 10**9, -(10**9), 1_794_823_200_123_456_789])
def test_nanoseconds_are_split_into_seconds_and_the_rest(numbers: list[int]) -> None:
    time = np.array(numbers, np.int64)
    text = lines(
        ("seconds", time), b",", ("below_second", time), b",", ("milliseconds", time), b"\n"
    ).decode()
    read = [[*map(int, line.split(","))] for line in text.splitlines()]
    assert [(seconds * 10**9 + below, millis) for seconds, below, millis in read] == [
        (number, number // 10**6) for number in numbers
    ]
    assert all(0 <= below < 10**9 for _, below, _ in read)


@given(st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), min_size=1, max_size=20))
@example([datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2000, 2, 29)])
def test_microseconds_are_times_of_iso_8601_and_milliseconds(drawn: list[datetime]) -> None:
    micros = [(time - EPOCH) // timedelta(microseconds=1) for time in drawn]
    text = lines(("iso", pa.array(micros)), b",", ("thousandths", np.array(micros)), b"\n").decode()
    read = [line.split(",") for line in text.splitlines()]
    assert [iso for iso, _ in read] == [f"{time.isoformat(timespec='microseconds')}Z" for time in drawn]
    assert [Decimal(millis) * 1000 for _, millis in read] == micros


def test_a_missing_time_is_empty() -> None:
    assert lines(("iso", pa.array([None, 0], pa.int64())), b"\n") == b"\n1970-01-01T00:00:00.000000Z\n"


@given(st.lists(st.datetimes(datetime(1678, 1, 1), datetime(2262, 1, 1)), min_size=1, max_size=20))
def test_nanoseconds_are_readable_times(drawn: list[datetime]) -> None:
    nanos = np.array([(time - EPOCH) // timedelta(microseconds=1) * 1000 for time in drawn])
    read = lines(("human", nanos), b"\n").decode().splitlines()
    assert read == [time.strftime("%b/%d/%Y %H:%M:%S") for time in drawn]


def test_columns_are_of_one_length() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        lines(("json", pa.array([1])), ("json", pa.array([1, 2])))


def _shortest(value: Any) -> Any:
    """A real as a double of its own digits."""
    if isinstance(value, list):
        return [_shortest(each) for each in value]
    return None if value is None else float(str(np.float32(value)))


def _shown(value: Any) -> Any:
    """A value in JSON's form."""
    if isinstance(value, list):
        return [_shown(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return _bits_as_numbers(value)


def _bits_as_numbers(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _in_csv(value: Any) -> Any:
    """A value as it is read from CSV: NaN and infinities are texts, also in a list."""
    if value is None:
        return "missing"
    if isinstance(value, list):
        return [None if each is None else _in_csv(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return NOT_FINITE.get(value, "NaN")
    return _bits_as_numbers(value)


def _of_csv(text: str, value: Any) -> Any:
    if text == "missing" or isinstance(value, str) or text in ("NaN", *NOT_FINITE.values()):
        return text
    return json.loads(text, parse_constant=str)
