"""The Archiver Appliance's interface over HTTP, with the requests of its clients."""

import csv
import io
import json
from datetime import timedelta

import httpx
import pytest
from epics_event import MESSAGE_OF, message
from known_rows import BEGIN, ROWS, row, time_of
from pb_http import chunks

SPAN = {"from": "2025-12-31T23:58:00Z", "to": "2026-01-01T00:30:00Z"}
FLOAT = {"a_real", "a_double"}


def asked(client: httpx.Client, path: str, **parameters: str | list[str]) -> httpx.Response:
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("column", row(0))
def test_json(anyone: httpx.Client, column: str) -> None:
    [found] = asked(anyone, "/retrieval/data/getData.json", pv=f"every_type/{column}", **SPAN).json()
    assert found["meta"]["name"] == f"every_type/{column}"
    assert len(found["data"]) == ROWS
    for number, event in enumerate(found["data"]):
        when = time_of(number)
        assert event["secs"] == int(when.timestamp())
        assert event["nanos"] == when.microsecond * 1000
        value = row(number)[column]
        assert event["val"] == value
        # no reading is severity INVALID, status UDF: EPICS Base, alarm.h
        assert (event["severity"], event["status"]) == ((3, 17) if value is None else (0, 0))


def test_qw_has_milliseconds(anyone: httpx.Client) -> None:
    [found] = asked(anyone, "/retrieval/data/getData.qw", pv="every_type/an_int", **SPAN).json()
    assert [event["millis"] for event in found["data"]] == [
        int(time_of(number).timestamp() * 1000 + 1e-3) for number in range(ROWS)
    ]
    assert [event["val"] for event in found["data"]] == [row(number)["an_int"] for number in range(ROWS)]


def test_csv_has_seconds_value_severity_status_nanoseconds(anyone: httpx.Client) -> None:
    answer = asked(anyone, "/retrieval/data/getData.csv", pv="every_type/a_double", **SPAN)
    lines = list(csv.reader(io.StringIO(answer.text)))
    assert len(lines) == ROWS
    for number, (seconds, value, severity, status, nanos) in enumerate(lines):
        when, expected = time_of(number), row(number)["a_double"]
        assert (int(seconds), int(nanos)) == (int(when.timestamp()), when.microsecond * 1000)
        if expected is None:
            assert (value, severity, status) == ("NaN", "3", "17")
        else:
            assert (float(value), severity, status) == (expected, "0", "0")


def test_txt_is_for_people(anyone: httpx.Client) -> None:
    answer = asked(anyone, "/retrieval/data/getData.txt", pv="every_type/a_varchar", **SPAN)
    lines = answer.text.splitlines()
    assert lines[0] == "Beginning data for every_type/a_varchar"
    assert lines[1] == "Dec/31/2025 23:58:20 +00:00\tready\t0\t0\t0"
    assert len(lines) == ROWS + 1


@pytest.mark.parametrize("column", row(0))
def test_raw_has_a_chunk_a_year(anyone: httpx.Client, column: str) -> None:
    answer = asked(anyone, "/retrieval/data/getData.raw", pv=f"every_type/{column}", **SPAN)
    assert answer.headers["content-type"] == "application/x-protobuf"
    found = chunks(answer.content)
    assert [header.year for header, _ in found] == [2025, 2026]
    assert [len(lines) for _, lines in found] == [100, 100]
    values = []
    for header, lines in found:
        made = message(MESSAGE_OF[header.type])
        values += [None if event.severity == 3 else event.val for event in map(made.FromString, lines)]
    assert values == [row(number)[column] for number in range(ROWS)]


def test_limits_and_unit_are_included(anyone: httpx.Client) -> None:
    answer = asked(
        anyone, "/retrieval/data/getData.json", pv="sr_mag_ps_b_7/current_adc", fetchLatestMetadata="true"
    )
    meta = answer.json()[0]["meta"]
    assert (meta["EGU"], meta["LOPR"], meta["HOPR"]) == ("A", "-500", "500")


def test_the_sample_before_comes_first(anyone: httpx.Client) -> None:
    """getData also returns the last sample before `from`, so that a line begins at the left edge."""
    begin, end = time_of(50) + timedelta(milliseconds=1), time_of(52)
    parameters = {"pv": "every_type/a_real", "from": begin.isoformat(), "to": end.isoformat()}
    [found] = asked(anyone, "/retrieval/data/getData.json", **parameters).json()
    # 50 is before; 52 is exactly at the end, which belongs to the interval
    assert [event["val"] for event in found["data"]] == [row(number)["a_real"] for number in (50, 51, 52)]


def test_a_sample_exactly_at_from_is_the_first(anyone: httpx.Client) -> None:
    """The appliance begins with the last event "at or before the given start time"
    (ParquetBackedPBEventFileStream; FileBackedPBEventStream.seekToTimes)."""
    parameters = {"pv": "every_type/a_real", "from": time_of(50).isoformat(), "to": time_of(51).isoformat()}
    [found] = asked(anyone, "/retrieval/data/getData.json", **parameters).json()
    assert [event["val"] for event in found["data"]] == [row(number)["a_real"] for number in (50, 51)]


def test_several_signals(anyone: httpx.Client) -> None:
    names = ["every_type/a_real", "every_type/an_int"]
    found = asked(anyone, "/retrieval/data/getDataForPVs.json", pv=names, **SPAN).json()
    assert [each["meta"]["name"] for each in found] == names
    assert all(len(each["data"]) == ROWS for each in found)


def test_time_ranges(anyone: httpx.Client) -> None:
    ranges = [time_of(1), time_of(2), time_of(5), time_of(5)]
    text = ",".join(time.isoformat() for time in ranges)
    [found] = asked(anyone, "/retrieval/data/getData.json", pv="every_type/a_real", timeranges=text).json()
    assert [event["val"] * 8 for event in found["data"]] == [1, 2, 5]


def test_an_operator(anyone: httpx.Client) -> None:
    [found] = asked(
        anyone, "/retrieval/data/getData.json", pv="maxSample_100(every_type/a_real)", **SPAN
    ).json()
    # bins of 100 s counted from 1970: BEGIN is at the begin of one
    assert int(BEGIN.timestamp()) % 100 == 0
    assert [event["val"] for event in found["data"]] == [98 / 8, 198 / 8]
    assert [event["secs"] - int(BEGIN.timestamp()) for event in found["data"]] == [50, 150]


@pytest.mark.parametrize("exactly", [False, True])
def test_data_at_a_time(anyone: httpx.Client, exactly: bool) -> None:
    """The sample at that very instant counts, one a microsecond later does not: its issue 447."""
    at = time_of(42) if exactly else time_of(42) - timedelta(microseconds=1)
    names = ["every_type/a_real", "every_type/a_varchar", "no such", "sr_rf/power"]
    answer = anyone.post("/retrieval/data/getDataAtTime", params={"at": at.isoformat()}, json=names)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    number = 42 if exactly else 41
    assert set(found) == {"every_type/a_real", "every_type/a_varchar"}
    assert found["every_type/a_real"]["val"] == row(number)["a_real"]
    assert found["every_type/a_varchar"]["val"] == row(number)["a_varchar"]
    assert found["every_type/a_real"]["secs"] == int(time_of(number).timestamp())


def test_names_by_glob_and_regex(anyone: httpx.Client) -> None:
    path = "/retrieval/bpl/getMatchingPVs"
    assert asked(anyone, path, pv="every_type/a_b*").json() == ["every_type/a_bigint", "every_type/a_bit"]
    assert asked(anyone, path, regex="sr_rf/.*").json() == ["sr_rf/arcs", "sr_rf/power"]
    assert asked(anyone, path, regex="(?i)SR_RF/P.*").json() == ["sr_rf/power"]
    assert len(asked(anyone, path, pv="*", limit="3").json()) == 3
    # the whole name must match, as with Java's Matcher.matches
    assert asked(anyone, path, regex="sr_rf").json() == []
    lines = asked(anyone, "/retrieval/bpl/searchForPVsRegex", regex=".*power.*").text
    assert lines == "sr_rf/power\n"


def test_an_invalid_pattern_is_refused(anyone: httpx.Client) -> None:
    answer = anyone.get("/retrieval/bpl/getMatchingPVs", params={"regex": "a["})
    assert (answer.status_code, answer.text) == (400, "the pattern is not a regular expression\n")


def test_further_requests_of_viewers(anyone: httpx.Client) -> None:
    assert asked(anyone, "/retrieval/bpl/areWeArchivingPV", pv="sr_rf/power").json() == {"status": "true"}
    assert asked(anyone, "/retrieval/bpl/areWeArchivingPV", pv="none").json() == {"status": "false"}
    assert "retrieval_version" in asked(anyone, "/retrieval/bpl/getVersion").json()
    status = asked(anyone, "/mgmt/bpl/getPVStatus", pv="sr_rf/power,none").json()
    assert [each["status"] for each in status] == ["Being archived", "Not being archived"]
    assert asked(anyone, "/mgmt/bpl/getPVTypeInfo", pv="sr_rf/power").json()["DBRType"] == "DBR_SCALAR_FLOAT"
    waveform = asked(anyone, "/mgmt/bpl/getPVTypeInfo", pv="bpm/turns").json()
    assert (waveform["DBRType"], waveform["scalar"]) == ("DBR_WAVEFORM_FLOAT", "false")
    assert asked(anyone, "/retrieval/bpl/getMetadata", pv="sr_rf/power").json()["EGU"] == "kW"
    names = asked(anyone, "/mgmt/bpl/getAllPVs", limit="-1").json()
    assert "sr_rf/power" in names
    info = asked(anyone, "/mgmt/bpl/getApplianceInfo").json()
    assert info["dataRetrievalURL"].endswith("/retrieval")


def test_an_unknown_signal_is_not_found(anyone: httpx.Client) -> None:
    for form in ("json", "raw", "csv"):
        answer = anyone.get(f"/retrieval/data/getData.{form}", params={"pv": "no such"})
        assert answer.status_code == 404
        assert "no such" in answer.text


def test_the_grafana_plugin(anyone: httpx.Client) -> None:
    """Requests as sasaki77-archiverappliance-datasource builds them (pkg/archiverappliance/aaclient.go)."""
    assert "sr_rf/power" in asked(anyone, "/bpl/getMatchingPVs", regex="sr_rf/.*", limit="100").json()
    answer = asked(
        anyone,
        "/data/getData.raw",
        pv="mean_15(every_type/a_double)",
        donotchunk="",
        **{"from": "2025-12-31T23:58:20.000+00:00", "to": "2026-01-01T00:01:40.000+00:00"},
    )
    assert {header.pvname for header, _ in chunks(answer.content)} == {"every_type/a_double"}
    # its operator "last": both times the same, and the sample before is the answer
    last = {"from": "2026-01-01T09:00:00.000+09:00", "to": "2026-01-01T09:00:00.000+09:00"}
    found = chunks(
        asked(anyone, "/data/getData.raw", pv="every_type/a_double", donotchunk="", **last).content
    )
    assert [len(lines) for _, lines in found] == [1]


def test_pydm(anyone: httpx.Client) -> None:
    """Requests as PyDM's archiver plugin builds them, and its reading of the answer."""
    for pv in ("every_type/a_double", "optimized_50(every_type/a_double)"):
        span = "from=2025-12-31T23:58:20.000000Z&to=2026-01-01T00:01:40.000000Z"
        answer = anyone.get(f"/retrieval/data/getData.json?pv={pv}&{span}")
        assert answer.status_code == 200
        data = json.loads(answer.content)[0]
        assert data["data"]
        assert all({"secs", "nanos", "val"} <= set(point) for point in data["data"])
