"""The Rust encoder's output agrees with other libraries: orjson, csv. Raw events are in test_raw.py."""

import csv
import gzip
import io
import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from epics_event import MESSAGE_OF, message
from hypothesis import example, given
from hypothesis import strategies as st
from known_rows import BEGIN
from pb_http import chunks

from ringlog.retrieval.appliance import texts
from ringlog.retrieval.appliance.events import Events
from ringlog.retrieval.appliance.raw import PayloadType, payload_type, raw
from ringlog.retrieval.encoding import lines
from ringlog.retrieval.plain.forms import formed
from ringlog.retrieval.serving.compression import coding
from ringlog.retrieval.serving.parts import gathered
from ringlog.schema.column_type import ColumnType, Kind

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


# --- PB/HTTP: the encoder's blocks equal the output of the Protocol Buffers library, which can read ---

RAW_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], Any]] = {
    "real": (pa.float32(), st.floats(width=32), math.nan),
    "double": (pa.float64(), st.floats(), math.nan),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1), 0),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1), 0),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1), math.nan),
    "bit": (pa.bool_(), st.booleans(), 0),
    "varchar(40)": (pa.string(), RAW_TEXTS, ""),
}
"""Arrow's type, values, and the substitute for a missing reading."""
KINDS |= {
    f"{name}[]": (pa.list_(kind), st.lists(values, max_size=5), [missing])
    for name, (kind, values, missing) in KINDS.items()
}
TIMES = st.integers(0, 2**31 * 1_000_000_000)
ALARMS = st.integers(0, 3)


@pytest.mark.parametrize("kind", [*map(ColumnType.of, KINDS)], ids=str)
@given(data=st.data())
def test_lines_are_messages(kind: ColumnType, data: st.DataObject) -> None:
    """The same bytes as the library writes, for events of several years, with and without alarms."""
    arrow, values, missing = KINDS[str(kind)]
    row = st.tuples(TIMES, st.none() | values, ALARMS, ALARMS, RAW_TEXTS)
    drawn = sorted(data.draw(st.lists(row, min_size=1, max_size=20)), key=lambda row: row[0])
    times, given, severities, statuses, texts = ([*column] for column in zip(*drawn, strict=True))
    events = Events(kind, "A", np.array(times, np.int64), pa.array(given, arrow))
    if with_alarms := data.draw(st.booleans()):
        events = replace(
            events,
            severity=np.array(severities),
            status=np.array(statuses),
            fields={"stdz": pa.array(texts, pa.string())},
        )
    made = message(MESSAGE_OF[payload_type(kind)])
    expected = []
    for time, value, severity, status, text in drawn:
        seconds, nano = divmod(time, 1_000_000_000)
        year = datetime.fromtimestamp(seconds, UTC).year
        event = made(secondsintoyear=seconds - int(datetime(year, 1, 1, tzinfo=UTC).timestamp()), nano=nano)
        if value is None:
            severity, status = 3, (status if with_alarms else 0) or 17
        if value is None or with_alarms:
            for name, figure in {"severity": severity, "status": status}.items():
                if figure:
                    setattr(event, name, figure)
        shown = missing if value is None else value
        is_bit = kind.kind is Kind.BIT
        if kind.is_array:
            event.val.extend(map(int, shown) if is_bit else shown)
        else:
            event.val = int(shown) if is_bit else shown
        if with_alarms:
            event.fieldvalues.add(name="stdz", val=text)
        expected.append((year, event.SerializeToString()))

    read = []
    for header, events_of_year in chunks(b"".join(raw("x", kind, {"DESC": "a\nb"}, iter([events])))):
        assert header.type == payload_type(kind)
        assert {field.name: field.val for field in header.headers} == {"DESC": "a\nb", "EGU": "A"}
        read += [(header.year, line) for line in events_of_year]
    assert read == expected


def test_a_vector_holds_its_numbers() -> None:
    flat = pa.array([1.0, 2.0, 3.0, 10.0, 13.0, 27.0], pa.float64())
    values = pa.ListArray.from_arrays(pa.array([0, 3, 6], pa.int32()), flat)
    events = Events(ColumnType.of("double[]"), "", np.array([0, 10**9]), values)
    [(header, found)] = chunks(b"".join(raw("x", ColumnType.of("double"), {}, iter([events]))))
    assert header.type == PayloadType.WAVEFORM_DOUBLE
    assert header.elementCount == 3
    read = [list(message("VectorDouble").FromString(line).val) for line in found]
    assert read == [[1.0, 2.0, 3.0], [10.0, 13.0, 27.0]]


def test_an_answer_without_events_has_a_header() -> None:
    [(header, found)] = chunks(b"".join(raw("x", ColumnType.of("int"), {}, iter([]))))
    assert (header.pvname, header.type, found) == ("x", PayloadType.SCALAR_INT, [])


WAVEFORMS = {
    "real[]": (pa.float32(), [[0.5, -1.25], None, [], [3.0]]),
    "double[]": (pa.float64(), [[0.1, 1e300], None, [], [3.0]]),
    "int[]": (pa.int32(), [[10, 13, 27, -(2**31)], None, [], [3]]),
    "smallint[]": (pa.int16(), [[-300, 27], None, [], [3]]),
    "bigint[]": (pa.int64(), [[2**40, -1], None, [], [3]]),
    "bit[]": (pa.bool_(), [[True, False], None, [], [True]]),
}


@pytest.mark.parametrize("kind", [*map(ColumnType.of, WAVEFORMS)], ids=str)
def test_waveforms_keep_their_points(kind: ColumnType) -> None:
    """In PB/HTTP, JSON and CSV, and in parts of a batch."""
    arrow, lists = WAVEFORMS[str(kind)]
    values = pa.array([[], *lists], pa.list_(arrow)).slice(1)
    times = np.arange(len(lists)) * 1_000_000_000
    events = Events(kind, "", times, values)
    [(header, found)] = chunks(b"".join(raw("x", kind, {}, iter([events]))))
    assert (header.type, header.elementCount) == (payload_type(kind), len(lists[0] or ()))
    read = [message(MESSAGE_OF[payload_type(kind)]).FromString(line) for line in found]
    assert [None if event.severity == 3 else list(event.val) for event in read] == lists
    # Phoebus fails when the first has no points (ApplianceValueIterator.getValDescriptor)
    assert [len(event.val) for event in read if event.severity == 3] == [1]
    answer = json.loads(b"".join(texts.json({"name": "x"}, iter([events]))))
    assert [event["val"] for event in answer["data"]] == lists
    rows = list(csv.reader(io.StringIO(b"".join(texts.csv(iter([events]))).decode())))
    assert [None if row[1] == "NaN" else json.loads(row[1]) for row in rows] == lists


# --- record batches as Arrow IPC: equal to Arrow's own output, with large buffers not copied ---

TIME = pa.timestamp("us", tz="UTC")


def batch(rows: int, kind: pa.DataType) -> pa.RecordBatch:
    dice = np.random.default_rng(rows)
    times = pa.array(np.cumsum(dice.integers(0, 10**9, rows)), TIME)
    missing = dice.random(rows) < 0.1
    numbers = pa.array(dice.normal(size=rows), mask=missing)
    if pa.types.is_list(kind):
        bounds = np.concatenate([[0], np.cumsum(dice.integers(0, 9, rows))])
        points = pa.array(np.arange(bounds[-1]) % 1000, kind.value_type)
        numbers = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), points, mask=pa.array(missing))
    return pa.record_batch({"time": times, "value": numbers.cast(kind)})


def test_the_stream_is_arrows_own() -> None:
    for kind in (pa.float64(), pa.float32(), pa.string(), pa.list_(pa.int16())):
        whole = batch(100_000, kind)
        batches = [batch(0, kind), batch(7, kind), whole, whole.slice(3, 50_001), whole.slice(99_999)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            for each in batches:
                writer.write_batch(each)
        assert b"".join(formed("arrow", whole.schema, iter(batches))) == sink.getvalue().to_pybytes()


def test_a_large_buffer_is_passed_on_unchanged() -> None:
    made = pa.record_batch({"time": pa.array(np.arange(10**6), TIME)})
    addresses = [pa.py_buffer(part).address for part in formed("arrow", made.schema, iter([made]))]
    assert made["time"].buffers()[1].address in addresses


def test_parquet_is_read_unchanged() -> None:
    batches = [batch(100_000, pa.float64()), batch(3, pa.float64())]
    content = b"".join(formed("parquet", batches[0].schema, iter(batches)))
    assert pq.read_table(pa.BufferReader(content)).equals(pa.Table.from_batches(batches))


def test_names_at_the_head_of_csv_are_no_formulas() -> None:
    names = ["time", "=cmd|'/c calc'!A1", "+1", "-1", "@x", "a=b"]
    made = b"".join(formed("csv", pa.schema([pa.field(name, pa.int32()) for name in names]), iter(())))
    assert made.decode() == "time,'=cmd|'/c calc'!A1,'+1,'-1,'@x,a=b\n"


# --- answers in the coding that a client accepts ---

OF_ALL = {"signal": "every_type/a_double", "from": BEGIN.isoformat(), "to": "2026-12-31"}


def answer(client: httpx.Client, form: str, accepted: str) -> tuple[str | None, bytes]:
    """Coding and content of all rows, as they were sent."""
    request = {"params": OF_ALL | {"format": form}, "headers": {"Accept-Encoding": accepted}}
    with client.stream("GET", "/api/v1/data", **request) as response:
        assert response.status_code == 200
        assert response.headers["vary"] == "Accept-Encoding"
        return response.headers.get("content-encoding"), b"".join(response.iter_raw())


@pytest.mark.parametrize("form", ["json", "csv", "arrow"])
def test_the_content_is_the_same(anyone: httpx.Client, form: str) -> None:
    none, plain = answer(anyone, form, "identity")
    assert none is None
    coded, content = answer(anyone, form, "gzip, zstd")
    assert coded == "zstd"
    assert pa.CompressedInputStream(pa.BufferReader(content), "zstd").read() == plain
    coded, content = answer(anyone, form, "gzip")
    assert coded == (None if form == "arrow" else "gzip")
    assert (content if coded is None else gzip.decompress(content)) == plain


def test_an_error_keeps_its_status(anyone: httpx.Client) -> None:
    response = anyone.get("/api/v1/data?signal=none", headers={"Accept-Encoding": "gzip"})
    assert (response.status_code, "content-encoding" in response.headers) == (404, False)


@pytest.mark.parametrize(
    ("accepted", "media_type", "expected"),
    [
        ("", "text/csv", None),
        ("deflate, br", "text/csv", None),
        ("GZIP", "text/csv; charset=utf-8", "gzip"),
        ("gzip;q=0.5, zstd;q=0", "application/json", "gzip"),
        ("gzip; q=0.000", "application/json", None),
        ("gzip, zstd", "application/vnd.apache.parquet", None),
        ("gzip", "application/x-protobuf", None),
        ("zstd", "application/x-protobuf", "zstd"),
    ],
)
def test_the_coding_is_one_that_is_accepted(accepted: str, media_type: str, expected: str | None) -> None:
    assert coding(accepted, media_type) == expected


def test_small_parts_are_joined() -> None:
    large = bytes(1 << 17)
    parts = [b"a", b"b", large, b"", *[b"c"] * (1 << 16), b"d"]
    assert [*gathered(iter(parts))] == [b"ab", large, b"c" * (1 << 16), b"d"]
