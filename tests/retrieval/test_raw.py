"""PB/HTTP: what is encoded in blocks is what the library of Protocol Buffers reads and would write."""

import csv
import io
import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pb_http import chunks

from ringlog.retrieval.appliance import texts
from ringlog.retrieval.appliance.epics_event import MESSAGE_OF, PayloadType, message
from ringlog.retrieval.appliance.events import Events
from ringlog.retrieval.appliance.raw import escaped, payload_type, raw

KINDS = {
    "real": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "bit": (pa.bool_(), st.booleans()),
    "varchar(40)": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=20)),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_lines_are_messages(kind: str, data: st.DataObject) -> None:
    arrow, values = KINDS[kind]
    drawn = data.draw(
        st.lists(
            st.tuples(st.integers(0, 2**31 * 1_000_000_000), st.none() | values), min_size=1, max_size=20
        )
    )
    drawn.sort(key=lambda pair: pair[0])
    times = np.array([time for time, _ in drawn], np.int64)
    events = Events(kind, "A", times, pa.array([value for _, value in drawn], arrow))
    answer = b"".join(raw("x", kind, {"DESC": "a\nb"}, iter([events])))
    made = message(MESSAGE_OF[payload_type(kind)])
    read = []
    for header, lines in chunks(answer):
        assert header.type == payload_type(kind)
        assert {field.name: field.val for field in header.headers} == {"DESC": "a\nb", "EGU": "A"}
        begin = int(datetime(header.year, 1, 1, tzinfo=UTC).timestamp())
        for line in lines:
            event = made.FromString(line)
            if not event.HasField("severity"):
                # the very bytes that the library writes
                assert event.SerializeToString() == line
            assert datetime.fromtimestamp(begin + event.secondsintoyear, UTC).year == header.year
            value = None if event.severity == 3 else event.val
            read.append(((begin + event.secondsintoyear) * 1_000_000_000 + event.nano, value))
    expected = [(time, value) for time, value in drawn]
    assert read == expected


def test_a_vector_holds_its_numbers() -> None:
    flat = pa.array([1.0, 2.0, 3.0, 10.0, 13.0, 27.0], pa.float64())
    values = pa.ListArray.from_arrays(pa.array([0, 3, 6], pa.int32()), flat)
    events = Events("vector", "", np.array([0, 10**9]), values)
    [(header, lines)] = chunks(b"".join(raw("x", "double", {}, iter([events]))))
    assert header.type == PayloadType.WAVEFORM_DOUBLE
    assert header.elementCount == 3
    read = [list(message("VectorDouble").FromString(line).val) for line in lines]
    assert read == [[1.0, 2.0, 3.0], [10.0, 13.0, 27.0]]


def test_escapes_are_those_of_the_documentation() -> None:
    assert escaped(b"a\x1bb\nc\rd") == b"a\x1b\x01b\x1b\x02c\x1b\x03d"


def test_an_answer_without_events_has_a_header() -> None:
    [(header, lines)] = chunks(b"".join(raw("x", "int", {}, iter([]))))
    assert (header.pvname, header.type, lines) == ("x", PayloadType.SCALAR_INT, [])


WAVEFORMS = {
    "real[]": (pa.float32(), [[0.5, -1.25], None, [], [3.0]]),
    "double[]": (pa.float64(), [[0.1, 1e300], None, [], [3.0]]),
    "int[]": (pa.int32(), [[10, 13, 27, -(2**31)], None, [], [3]]),
    "smallint[]": (pa.int16(), [[-300, 27], None, [], [3]]),
    "bigint[]": (pa.int64(), [[2**40, -1], None, [], [3]]),
    "bit[]": (pa.bool_(), [[True, False], None, [], [True]]),
}


@pytest.mark.parametrize("kind", WAVEFORMS)
def test_waveforms_keep_their_points(kind: str) -> None:
    """In PB/HTTP, JSON and CSV, and in parts of a batch."""
    arrow, lists = WAVEFORMS[kind]
    values = pa.array([[], *lists], pa.list_(arrow)).slice(1)
    times = np.arange(len(lists)) * 1_000_000_000
    events = Events(kind, "", times, values)
    [(header, lines)] = chunks(b"".join(raw("x", kind, {}, iter([events]))))
    assert (header.type, header.elementCount) == (payload_type(kind), len(lists[0] or ()))
    read = [message(MESSAGE_OF[payload_type(kind)]).FromString(line) for line in lines]
    assert [None if event.severity == 3 else list(event.val) for event in read] == lists
    # Phoebus fails when the first has no points (ApplianceValueIterator.getValDescriptor)
    assert [len(event.val) for event in read if event.severity == 3] == [1]
    answer = json.loads(b"".join(texts.json({"name": "x"}, iter([events]))))
    assert [event["val"] for event in answer["data"]] == lists
    rows = list(csv.reader(io.StringIO(b"".join(texts.csv(iter([events]))).decode())))
    assert [None if row[1] == "NaN" else json.loads(row[1]) for row in rows] == lists
