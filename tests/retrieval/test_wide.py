"""Several signals, one column each, aligned on common times."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from known_rows import HELD, ROWS, WAVEFORMS, row, time_of

from ringlog.clients import read

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
        assert table[name].to_pylist() == [known[place] for place in places]


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
