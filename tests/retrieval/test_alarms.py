"""Alarms, nanoseconds and waveforms of a facility, in each form of answer."""

import csv
import io
import json
import math
from contextlib import closing
from datetime import UTC, datetime, timedelta

import httpx
import numpy as np
import pyarrow as pa
import pytest
from epics_event import MESSAGE_OF, message
from pb_http import chunks

from ringlog.clients import call, connect
from ringlog.retrieval.appliance.raw import PayloadType

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
# the appliance's answers begin with the newest sample before the interval: the first row, whatever other
# tests have put into the log
SPAN = {"from": "2026-05-01T12:00:00.5Z", "to": "2026-05-01T12:01:00Z"}
WHOLE = {"from": BEGIN.isoformat()}

# value, severity, status, nanoseconds and waveform of each row
ROWS: list[tuple[float | None, int | None, str | None, int, list[float] | None]] = [
    (1.5, 0, "NO_ALARM", 0, [1.0, 2.0]),
    (2.5, 1, "HIGH", 1, [3.0]),
    (3.5, 2, "HIHI", 999, None),
    (None, 3, "COMM", 500, [8.0]),
    (4.5, None, None, 27, [0.25, -1.0, 7.0]),
]
# EPICS Base, menuAlarmStat.dbd: HIHI 3, HIGH 4, COMM 9; without a reading the severity is INVALID, 3
ALARMS = [(0, 0), (1, 4), (2, 3), (3, 9), (0, 0)]
NANOS = [1_000 * number + row[3] for number, row in enumerate(ROWS)]


@pytest.fixture(scope="module", autouse=True)
def written(web) -> None:
    """The rows, written as by a DAQ program."""
    writer = web.server.writer
    url = f"tds://{writer.user}@{web.server.host}:{web.server.port}"
    with closing(connect(url, writer.password)) as connection:
        for number, (x, severity, status, nanoseconds, turns) in enumerate(ROWS):
            call(
                connection,
                "put_bpm",
                seq_no=number + 1,
                time=BEGIN + timedelta(seconds=number, microseconds=number),
                x=x,
                x_severity=severity,
                x_status=status,
                turns=None if turns is None else np.array(turns, "<f4").tobytes(),
                nanoseconds=nanoseconds,
            )


def asked(client: httpx.Client, path: str, **parameters: str) -> httpx.Response:
    answer = client.get(path, params=SPAN | parameters)
    assert answer.status_code == 200, answer.text
    return answer


def test_json(anyone: httpx.Client) -> None:
    [found] = asked(anyone, "/retrieval/data/getData.json", pv="bpm/x").json()
    assert [event["val"] for event in found["data"]] == [row[0] for row in ROWS]
    assert [(event["severity"], event["status"]) for event in found["data"]] == ALARMS
    assert [event["nanos"] for event in found["data"]] == NANOS


def test_csv(anyone: httpx.Client) -> None:
    answer = asked(anyone, "/retrieval/data/getData.csv", pv="bpm/x")
    lines = [*csv.reader(io.StringIO(answer.text))]
    assert [(int(line[2]), int(line[3])) for line in lines] == ALARMS
    assert [int(line[4]) for line in lines] == NANOS


@pytest.mark.parametrize("signal", ["bpm/x", "bpm/turns"])
def test_raw(anyone: httpx.Client, signal: str) -> None:
    [(header, lines)] = chunks(asked(anyone, "/retrieval/data/getData.raw", pv=signal).content)
    events = [message(MESSAGE_OF[header.type]).FromString(line) for line in lines]
    assert [event.nano for event in events] == NANOS
    if signal == "bpm/x":
        assert [(event.severity, event.status) for event in events] == ALARMS
        assert [event.val for event in events if event.severity < 3] == [1.5, 2.5, 3.5, 4.5]
    else:
        assert header.type == PayloadType.WAVEFORM_FLOAT
        # Phoebus does not accept waveforms without points: a missing reading has one NaN
        expected = [row[4] or [math.nan] for row in ROWS]
        assert [[*map(repr, event.val)] for event in events] == [[*map(repr, points)] for points in expected]


def test_data_at_a_time(anyone: httpx.Client) -> None:
    answer = anyone.get(
        "/retrieval/data/getDataAtTime", params={"pv": "bpm/x", "at": "2026-05-01T12:00:02.5Z"}
    )
    found = answer.json()["bpm/x"]
    assert (found["val"], found["severity"], found["status"], found["nanos"]) == (3.5, 2, 3, 2_999)


def test_a_row_without_a_reading_counts_at_a_time(anyone: httpx.Client) -> None:
    """The fourth row has the alarm COMM, which is the signal's state then."""
    at = {"at": "2026-05-01T12:00:03.5Z"}
    found = anyone.get("/retrieval/data/getDataAtTime", params={"pv": "bpm/x"} | at).json()["bpm/x"]
    assert (found["val"], found["severity"], found["status"]) == (None, 3, 9)
    # the third row has no waveform
    parameters = {"signal": "bpm/turns", "time": "2026-05-01T12:00:02.5Z"}
    [waveform] = anyone.get("/api/v1/at", params=parameters).json()["signals"]
    assert [value for _, value in waveform["samples"]] == [None]


def test_alarms_are_signals_too(anyone: httpx.Client) -> None:
    [found] = asked(anyone, "/retrieval/data/getData.json", pv="bpm/x.SEVR").json()
    assert [event["val"] for event in found["data"]] == [row[1] for row in ROWS]


def test_operators_keep_the_alarms_of_samples(anyone: httpx.Client) -> None:
    # counted within the interval
    [found] = asked(anyone, "/retrieval/data/getData.json", **WHOLE, pv="nth_2(bpm/x)").json()
    assert [(event["severity"], event["status"]) for event in found["data"]] == ALARMS[::2]


@pytest.mark.parametrize("form", ["csv", "json", "qw", "txt"])
def test_waveforms_as_text(anyone: httpx.Client, form: str) -> None:
    answer = asked(anyone, f"/retrieval/data/getData.{form}", pv="bpm/turns")
    if form in ("json", "qw"):
        [found] = answer.json()
        assert [event["val"] for event in found["data"]] == [row[4] for row in ROWS]
    else:
        lines = answer.text.splitlines()[form == "txt" :]
        texts = [json.loads(line[line.index("[") : line.index("]") + 1]) for line in lines if "[" in line]
        assert texts == [row[4] for row in ROWS if row[4] is not None]


def test_waveforms_as_arrow(anyone: httpx.Client) -> None:
    answer = asked(anyone, "/api/v1/data", **WHOLE, signal="bpm/turns", format="arrow")
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.schema.field("value").type == pa.list_(pa.float32())
    assert table["value"].to_pylist() == [row[4] for row in ROWS]
