"""PB/HTTP: the encoder's blocks equal the output of the Protocol Buffers library, which can read them."""

import csv
import io
import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from epics_event import MESSAGE_OF, message
from hypothesis import given
from hypothesis import strategies as st
from pb_http import chunks

from ringlog.retrieval.appliance import texts
from ringlog.retrieval.appliance.events import Events
from ringlog.retrieval.appliance.raw import PayloadType, payload_type, raw
from ringlog.schema.column_type import ColumnType, Kind

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], Any]] = {
    "real": (pa.float32(), st.floats(width=32), math.nan),
    "double": (pa.float64(), st.floats(), math.nan),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1), 0),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1), 0),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1), math.nan),
    "bit": (pa.bool_(), st.booleans(), 0),
    "varchar(40)": (pa.string(), TEXTS, ""),
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
    row = st.tuples(TIMES, st.none() | values, ALARMS, ALARMS, TEXTS)
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
    for header, lines in chunks(b"".join(raw("x", kind, {"DESC": "a\nb"}, iter([events])))):
        assert header.type == payload_type(kind)
        assert {field.name: field.val for field in header.headers} == {"DESC": "a\nb", "EGU": "A"}
        read += [(header.year, line) for line in lines]
    assert read == expected


def test_a_vector_holds_its_numbers() -> None:
    flat = pa.array([1.0, 2.0, 3.0, 10.0, 13.0, 27.0], pa.float64())
    values = pa.ListArray.from_arrays(pa.array([0, 3, 6], pa.int32()), flat)
    events = Events(ColumnType.of("double[]"), "", np.array([0, 10**9]), values)
    [(header, lines)] = chunks(b"".join(raw("x", ColumnType.of("double"), {}, iter([events]))))
    assert header.type == PayloadType.WAVEFORM_DOUBLE
    assert header.elementCount == 3
    read = [list(message("VectorDouble").FromString(line).val) for line in lines]
    assert read == [[1.0, 2.0, 3.0], [10.0, 13.0, 27.0]]


def test_an_answer_without_events_has_a_header() -> None:
    [(header, lines)] = chunks(b"".join(raw("x", ColumnType.of("int"), {}, iter([]))))
    assert (header.pvname, header.type, lines) == ("x", PayloadType.SCALAR_INT, [])


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
