"""Several signals, one column each, aligned on common times."""

import csv
import io
import json
import math
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import psycopg
import pyarrow as pa
import pytest
from epics_event import MESSAGE_OF, message
from known_rows import HELD, ROWS, WAVEFORMS, row, time_of
from pb_http import chunks

from ringlog.clients import call, connect, read
from ringlog.retrieval.appliance.raw import PayloadType

BEGIN, END = datetime(2025, 12, 31, 23, 58, tzinfo=UTC), datetime(2026, 1, 1, 0, 1, 50, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def column(name: str) -> list[Any]:
    return [row(number)[name] for number in range(ROWS)]


def test_the_last_known_values_at_the_times_of_all_samples(web) -> None:
    names = ["every_type/a_double", "every_type/a_varchar", "sr_rf/power"]
    table = read(names, time_of(50), time_of(60), wide="last", server=web.url)
    assert table.column_names == ["time", *names]
    assert table["time"].to_pylist() == [time_of(number) for number in range(50, 60)]
    assert table[names[0]].to_pylist() == column("a_double")[50:60]
    assert table[names[1]].to_pylist() == column("a_varchar")[50:60]
    assert table[names[2]].to_pylist() == [None] * 10


@pytest.mark.parametrize("step", [timedelta(milliseconds=2), 7 * SECOND])
def test_the_last_known_values_by_a_step(web, step: timedelta) -> None:
    """Also in an answer of several parts, and for a time that begins between samples."""
    names = ["every_type/an_int", "every_type/a_bit"]
    begin = time_of(0) + SECOND / 4
    table = read(names, begin, END, wide="last", step=step / SECOND, server=web.url)
    number = -(-(begin - datetime(1970, 1, 1, tzinfo=UTC)) // step)
    times = table["time"].to_pylist()
    first = datetime(1970, 1, 1, tzinfo=UTC) + number * step
    assert (times[0], times[-1]) == (first, first + (len(times) - 1) * step)
    assert times[-1] < END <= times[-1] + step
    places = [min(ROWS - 1, (time - time_of(0)) // (SECOND + timedelta(microseconds=1))) for time in times]
    for name in names:
        known = column(name.split("/")[1])
        assert table[name].to_pylist() == [known[index] for index in places]


def test_lines_between_samples(web) -> None:
    name = "every_type/a_double"
    table = read([name, "every_type/an_int"], BEGIN, END, wide="linear", step="0.5s", server=web.url)
    found = dict(zip(table["time"].to_pylist(), table[name].to_pylist(), strict=True))
    assert found[time_of(0) - SECOND / 2] is None
    # between 3 and 4, and beside the row without a reading, number 9
    middle = time_of(3) + (SECOND / 2 - timedelta(microseconds=3))
    share = (middle - time_of(3)) / (time_of(4) - time_of(3))
    assert found[middle] == pytest.approx((3 + share) / 7)
    assert found[time_of(0)] == 0
    assert found[time_of(8) - timedelta(microseconds=8) + SECOND / 2] is None
    assert found[time_of(9) - timedelta(microseconds=9) + SECOND / 2] is None
    assert found[time_of(0) + 205 * SECOND] is None


def test_a_held_value_is_not_interpolated(web, held: None) -> None:
    table = read("bpm/x_set", HELD[0][0], HELD[-1][0] + SECOND, wide="linear", step="1s", server=web.url)
    assert table["bpm/x_set"].to_pylist() == [1.5, 1.5, 1.5, 3.0, 3.0, 3.0, 3.0, 2.0]


def test_means_of_a_step(web) -> None:
    name = "every_type/a_double"
    table = read([name, "every_type/a_smallint"], BEGIN, END, wide="mean", step=10, server=web.url)
    rows = list(zip(table["time"].to_pylist(), table[name].to_pylist(), strict=True))
    assert rows[0] == (BEGIN, None)
    for time, mean in rows:
        values = [
            value
            for number, value in enumerate(column("a_double"))
            if value is not None and time <= time_of(number) < time + 10 * SECOND
        ]
        assert mean == (pytest.approx(sum(values) / len(values)) if values else None)


def test_the_first_mean_is_of_the_samples_from_the_start_on(web) -> None:
    name, start = "every_type/a_double", BEGIN + 33 * SECOND
    table = read(name, start, BEGIN + 50 * SECOND, wide="mean", step=10, server=web.url)
    assert table["time"].to_pylist() == [BEGIN + 30 * SECOND, BEGIN + 40 * SECOND]
    values = [
        value
        for number, value in enumerate(column("a_double"))
        if value is not None and start <= time_of(number) < BEGIN + 40 * SECOND
    ]
    assert table[name].to_pylist()[0] == pytest.approx(sum(values) / len(values))


def test_states_have_no_mean(web) -> None:
    begin = WAVEFORMS + timedelta(hours=2)
    with psycopg.connect(web.server.dsn) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "insert into log.bpm (seq_no, time, x_severity) values (1, %s, %s) on conflict do nothing",
            [(begin + second * SECOND, severity) for second, severity in ((0, 2), (3, 0), (7, 1), (12, 3))],
        )
    name = "bpm/x.SEVR"
    table = read(name, begin + SECOND, begin + 14 * SECOND, wide="mean", step=5, server=web.url)
    # of each step the state at its time, the first of which is before the start
    assert table[name].to_pylist() == [2, 0, 1]
    assert table["time"].to_pylist() == [begin + second * SECOND for second in (0, 5, 10)]


def test_units_descriptions_and_the_zone_are_included(web, anyone: httpx.Client) -> None:
    names = ["sr_rf/power", "every_type/a_double"]
    table = read(names, BEGIN, END, wide="mean", step="1h", server=web.url)
    notes = json.loads(table.schema.metadata[b"ringlog"])
    assert notes["timezone"] == "Asia/Tokyo"
    assert [each["unit"] for each in notes["signals"]] == ["kW", ""]
    assert table.schema.field("sr_rf/power").metadata[b"unit"] == b"kW"
    asked = {"signal": names, "from": BEGIN.isoformat(), "to": END.isoformat(), "format": "csv"}
    for more in ({}, {"wide": "mean", "step": "10s"}):
        plain = anyone.get("/api/v1/data", params=asked | more)
        assert not plain.text.startswith("#")
        answer = anyone.get("/api/v1/data", params=asked | more | {"comments": "1", "download": "1"})
        assert answer.text.endswith(plain.text)
        assert answer.text.splitlines()[:3] == [
            "# time: UTC (the facility is in Asia/Tokyo)",
            "# sr_rf/power: kW",
            "# every_type/a_double: ",
        ]
        name = "sr_rf_power_and_1_more_20251231T235800Z_20260101T000150Z.csv"
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'


def test_texts_and_numbers_in_one_file(anyone: httpx.Client) -> None:
    """CSV has each value in its signal's type; a typed column cannot."""
    names = ["every_type/an_int", "every_type/a_varchar"]
    asked = {"signal": names, "from": BEGIN.isoformat(), "to": END.isoformat()}
    text = anyone.get("/api/v1/data", params=asked | {"format": "csv"}).text
    found = [line["value"] for line in csv.DictReader(io.StringIO(text, newline=""))]
    shown = ["" if value is None else str(value) for value in column("an_int") + column("a_varchar")]
    assert found == shown
    refused = anyone.get("/api/v1/data", params=asked | {"format": "arrow"})
    assert refused.status_code == 400
    assert "wide=last" in refused.json()["error"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"wide": "median"}, "is not one of last, mean, linear"),
        ({"wide": "mean"}, "needs a step"),
        ({"step": "10s"}, "step is for wide="),
        ({"wide": "last", "step": "0"}, "is not a time span"),
        ({"wide": "last", "step": "ten"}, "is not a time span"),
        ({"wide": "last", "format": "json"}, "csv, arrow or parquet"),
        ({"wide": "last", "limit": "5"}, "limit cannot be used"),
        ({"wide": "linear", "signal": "every_type/a_varchar"}, "wide=linear is for numbers"),
    ],
)
def test_wrong_alignments_are_refused(anyone: httpx.Client, given: dict[str, str], words: str) -> None:
    answer = anyone.get("/api/v1/data", params={"signal": "every_type/a_real", "format": "csv"} | given)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_too_many_rows_are_refused(anyone: httpx.Client) -> None:
    asked = {"signal": "sr_rf/power", "from": "2000-01-01", "wide": "last", "step": "1ms", "format": "csv"}
    answer = anyone.get("/api/v1/data", params=asked)
    assert answer.status_code == 413
    assert "use a longer step" in answer.json()["error"]


# --- alarms, nanoseconds and waveforms of a facility, in each form of answer ---

MAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
# the appliance's answers begin with the newest sample before the interval: the first row, whatever other
# tests have put into the log
SPAN = {"from": "2026-05-01T12:00:00.5Z", "to": "2026-05-01T12:01:00Z"}
WHOLE = {"from": MAY.isoformat()}

# value, severity, status, nanoseconds and waveform of each row
ALARMED: list[tuple[float | None, int | None, str | None, int, list[float] | None]] = [
    (1.5, 0, "NO_ALARM", 0, [1.0, 2.0]),
    (2.5, 1, "HIGH", 1, [3.0]),
    (3.5, 2, "HIHI", 999, None),
    (None, 3, "COMM", 500, [8.0]),
    (4.5, None, None, 27, [0.25, -1.0, 7.0]),
]
# EPICS Base, menuAlarmStat.dbd: HIHI 3, HIGH 4, COMM 9; without a reading the severity is INVALID, 3
ALARMS = [(0, 0), (1, 4), (2, 3), (3, 9), (0, 0)]
NANOS = [1_000 * number + row[3] for number, row in enumerate(ALARMED)]


@pytest.fixture(scope="module", autouse=True)
def written(web) -> None:
    """The rows, written as by a DAQ program."""
    writer = web.server.writer
    url = f"tds://{writer.user}@{web.server.host}:{web.server.port}"
    with closing(connect(url, writer.password)) as connection:
        for number, (x, severity, status, nanoseconds, turns) in enumerate(ALARMED):
            call(
                connection,
                "put_bpm",
                seq_no=number + 1,
                time=MAY + timedelta(seconds=number, microseconds=number),
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
    assert [event["val"] for event in found["data"]] == [row[0] for row in ALARMED]
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
        expected = [row[4] or [math.nan] for row in ALARMED]
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
    assert [event["val"] for event in found["data"]] == [row[1] for row in ALARMED]


def test_operators_keep_the_alarms_of_samples(anyone: httpx.Client) -> None:
    # counted within the interval
    [found] = asked(anyone, "/retrieval/data/getData.json", **WHOLE, pv="nth_2(bpm/x)").json()
    assert [(event["severity"], event["status"]) for event in found["data"]] == ALARMS[::2]


@pytest.mark.parametrize("form", ["csv", "json", "qw", "txt"])
def test_waveforms_as_text(anyone: httpx.Client, form: str) -> None:
    answer = asked(anyone, f"/retrieval/data/getData.{form}", pv="bpm/turns")
    if form in ("json", "qw"):
        [found] = answer.json()
        assert [event["val"] for event in found["data"]] == [row[4] for row in ALARMED]
    else:
        lines = answer.text.splitlines()[form == "txt" :]
        texts = [json.loads(line[line.index("[") : line.index("]") + 1]) for line in lines if "[" in line]
        assert texts == [row[4] for row in ALARMED if row[4] is not None]


def test_waveforms_as_arrow(anyone: httpx.Client) -> None:
    answer = asked(anyone, "/api/v1/data", **WHOLE, signal="bpm/turns", format="arrow")
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.schema.field("value").type == pa.list_(pa.float32())
    assert table["value"].to_pylist() == [row[4] for row in ALARMED]
