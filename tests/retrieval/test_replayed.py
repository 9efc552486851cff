"""Requests of viewers in the form of their public sources, and the fields of the answers that these read."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from epics_event import MESSAGE_OF, message
from known_rows import BEGIN, ROWS, row, time_of
from pb_http import chunks

from ringlog.retrieval.appliance.raw import PayloadType

NAME = "every_type/a_double"
READINGS = [row(number)["a_double"] for number in range(ROWS)]


def got(client: httpx.Client, path: str) -> httpx.Response:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer


# Grafana's plugin sasaki77/archiverappliance-datasource: pkg/archiverappliance, src/DataSource
def test_grafana_names(anyone: httpx.Client) -> None:
    pattern = quote("every_type/a_(real|double)")
    answer = got(anyone, f"/retrieval/bpl/getMatchingPVs?limit=100&regex={pattern}")
    assert answer.json() == ["every_type/a_double", "every_type/a_real"]


@pytest.mark.parametrize("head", ["donotchunk=&", ""])
def test_grafana_data(anyone: httpx.Client, head: str) -> None:
    # the machine's own zone, its colons escaped, as Go writes them
    begin, end = "2025-12-31T15:58:20.000-08:00", "2025-12-31T16:03:00.678-08:00"
    times = f"from={quote(begin, safe='')}&pv={quote(NAME, safe='')}&to={quote(end, safe='')}"
    [found] = got(anyone, f"/retrieval/data/getData.qw?{head}{times}").json()
    assert found["meta"]["name"] == NAME
    assert [event["val"] for event in found["data"]] == READINGS
    assert [event["millis"] for event in found["data"]][:2] == [
        int(time_of(number).timestamp() * 1000) for number in (0, 1)
    ]


def test_grafana_mean(anyone: httpx.Client) -> None:
    pv = quote(f"mean_9({NAME})", safe="()")
    answer = got(
        anyone,
        f"/retrieval/data/getData.qw?pv={pv}&from=2025-12-31T23:58:20.000Z&to=2026-01-01T00:02:00.000Z",
    )
    [found] = answer.json()
    assert len(found["data"]) >= ROWS // 9
    # the last row has no reading, and nothing is known after it
    last = time_of(ROWS - 1).timestamp() * 1000
    assert all(isinstance(event["val"], float) == (event["millis"] < last) for event in found["data"])


# PyDM: pydm/data_plugins/archiver_plugin.py
@pytest.mark.parametrize("points", [None, 20])
def test_pydm(anyone: httpx.Client, points: int | None) -> None:
    times = "from=2025-12-31T23:58:20.000Z&to=2026-01-01T00:02:00.000Z"
    pv = NAME if points is None else f"optimized_{points}({NAME})"
    answer = got(anyone, f"/retrieval/data/getData.json?pv={pv}&{times}")
    # it compares the whole header
    assert answer.headers["content-type"] == "application/json"
    data = answer.json()[0]["data"]
    assert all(isinstance(point["secs"], int) for point in data)
    if points is None:
        assert [point["val"] for point in data] == READINGS
    else:
        # without a reading at the end
        figures = [point["val"] for point in data if point["val"][0] is not None]
        mean, deviation, low, high = ([each[index] for each in figures] for index in range(4))
        assert min(low) == 0.0
        assert max(high) == max(value for value in READINGS if value is not None)
        assert all(least <= middle <= most for least, middle, most in zip(low, mean, high, strict=True))
        assert all(value >= 0 for value in deviation)


# archapp (slaclab/archapp): archapp/url.py, archapp/data.py, archapp/mgmt.py
def test_archapp(anyone: httpx.Client) -> None:
    query = f"pv={NAME}&from=2025-12-31T23:58:20.000Z&to=2026-01-01T00:02:00.000Z&donotchunk"
    [found] = got(anyone, f"/retrieval/data/getData.json?{quote(query, safe='=&')}").json()
    assert found["meta"]["name"] == NAME
    assert [point["val"] for point in found["data"]] == READINGS
    first = found["data"][0]
    assert int(first["secs"] * 1e9 + first["nanos"]) // 1_000_000_000 == int(time_of(0).timestamp())
    assert {(point["severity"], point["status"]) for point in found["data"]} == {(0, 0), (3, 17)}
    # a list with one dictionary is read as the dictionary
    names = got(anyone, f"/mgmt/bpl/getAllPVs?{quote('pv=every_type/a_*', safe='=&')}").json()
    assert NAME in names


# Phoebus: app/trends/archive-reader, org.phoebus.archive.reader.appliance; `pbraw://host/retrieval`
def test_phoebus_names(anyone: httpx.Client) -> None:
    # RegExHelper.fullRegexFromGlob of *a_d*
    answer = got(anyone, f"/retrieval/bpl/searchForPVsRegex?regex={quote('.*a_d.*', safe='')}")
    assert answer.text.splitlines() == ["every_type/a_double"]


def phoebus(client: httpx.Client, pv: str) -> list[tuple[Any, list[bytes]]]:
    begin, end = BEGIN - timedelta(seconds=1), BEGIN + timedelta(seconds=300)
    times = "&".join(
        f"{name}={quote(f'{moment:%Y-%m-%dT%H:%M:%S}.000Z', safe='')}"
        for name, moment in (("from", begin), ("to", end))
    )
    return chunks(got(client, f"/retrieval/data/getData.raw?pv={quote(pv, safe='')}&{times}").content)


def test_phoebus_raw(anyone: httpx.Client) -> None:
    values = []
    for header, lines in phoebus(anyone, NAME):
        assert header.type == PayloadType.SCALAR_DOUBLE
        events = [message("ScalarDouble").FromString(line) for line in lines]
        values += [None if event.severity == 3 else event.val for event in events]
    assert values == READINGS


def test_phoebus_optimized(anyone: httpx.Client) -> None:
    """Events of five numbers, which it reads as mean, deviation, minimum, maximum and count."""
    count = 0.0
    for header, lines in phoebus(anyone, f"optimized_20({NAME})"):
        assert header.type == PayloadType.WAVEFORM_DOUBLE
        assert header.elementCount == 5
        for line in lines:
            event = message(MESSAGE_OF[PayloadType.WAVEFORM_DOUBLE]).FromString(line)
            assert len(event.val) == 5
            count += event.val[4]
    assert count == sum(value is not None for value in READINGS)


def test_phoebus_counts(anyone: httpx.Client) -> None:
    [(header, [line])] = phoebus(anyone, f"ncount({NAME})")
    assert header.type == PayloadType.SCALAR_INT
    assert message("ScalarInt").FromString(line).val == ROWS


# archiveviewer: epics.archiveviewer.clients.appliancearchiver.RawPBPlugin
def test_archive_viewer(anyone: httpx.Client) -> None:
    """It requests this signal when it connects, and counts its events."""
    times = "from=2026-01-01T00%3A00%3A00Z&to=2026-01-01T00%3A00%3A01Z"
    [(header, lines)] = chunks(got(anyone, f"/retrieval/data/getData.raw?pv=ArchApplPingPV&{times}").content)
    values = [message("ScalarDouble").FromString(line).val for line in lines]
    assert (header.pvname, values) == ("ArchApplPingPV", pytest.approx([number / 10 for number in range(10)]))
    assert got(anyone, "/retrieval/ping").text.strip() == "pong"
    times = "from=2025-12-31T23%3A58%3A20Z&to=2026-01-01T00%3A02%3A00Z"
    linear = f"pv={quote(NAME, safe='')}&{times}&pp=linear_10&ca_how=4&ca_count=20"
    assert chunks(got(anyone, f"/retrieval/data/getData.raw?{linear}").content)


def test_reduced(anyone: httpx.Client) -> None:
    """`usereduced=true` is the first sample of each 900 s where no operator is asked for: the appliance's
    DataRetrievalServlet.reducePostprocessor. The rows are of 200 s, before and after a quarter of an hour."""
    times = "from=2025-12-31T23%3A58%3A20Z&to=2026-01-01T00%3A02%3A00Z"
    [found] = got(anyone, f"/retrieval/data/getData.json?pv={NAME}&{times}&usereduced=true").json()
    assert [event["secs"] for event in found["data"]] == [
        int(time_of(0).timestamp()),
        int(time_of(100).timestamp()),
    ]


# aapy (dls-controls/aapy): aa/rest.py, aa/pb.py
def test_aapy(anyone: httpx.Client) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = anyone.post("/mgmt/bpl/getPVStatus", content=f"pv={NAME},none", headers=form)
    assert answer.status_code == 200, answer.text
    assert [(each["pvName"], each["status"]) for each in answer.json()] == [
        (NAME, "Being archived"),
        ("none", "Not being archived"),
    ]
    names = got(anyone, "/mgmt/bpl/getAllPVs?limit=-1&pv=every_type/a_d*,none,sr_rf/power").json()
    assert names == [NAME, "sr_rf/power"]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("application/json", f'["{NAME}", "none"]'),
        ("application/json", f'[{{"pv": "{NAME}"}}, {{"pv": "none"}}]'),
        ("text/plain", f"{NAME}\nnone\n"),
        ("application/x-www-form-urlencoded", f"pv={NAME},none"),
    ],
)
def test_bodies_with_names(anyone: httpx.Client, kind: str, content: str) -> None:
    """The forms of PVsMatchingParameter.getPVNamesFromPostBody of the appliance."""
    for path in ("/retrieval/bpl/filterArchivedPVs", "/retrieval/data/getDataAtTime?at=2026-01-01T00:00:00Z"):
        answer = anyone.post(path, content=content, headers={"Content-Type": kind})
        assert answer.status_code == 200, answer.text
        assert list(answer.json()) == [NAME]


@pytest.mark.parametrize("spelled", [f"{NAME}.VAL", f"ca://{NAME}", f"pva://{NAME}.VAL"])
def test_names_in_epics_form(anyone: httpx.Client, spelled: str) -> None:
    """stripPrefixFromName and normalizeChannelName of the appliance's PVNames; QW has the name that was asked
    for, the others the signal's (QWResponse, JSONResponse)."""
    pv = quote(spelled, safe="")
    times = "from=2026-01-01T00%3A00%3A00Z&to=2026-01-01T00%3A00%3A01Z"
    for form, name in (("json", NAME), ("qw", spelled)):
        [found] = got(anyone, f"/retrieval/data/getData.{form}?pv={pv}&{times}").json()
        assert found["meta"]["name"] == name
    found = chunks(got(anyone, f"/retrieval/data/getData.raw?pv={pv}&{times}").content)
    assert {header.pvname for header, _ in found} == {NAME}
    at = anyone.post("/retrieval/data/getDataAtTime?at=2026-01-01T00:00:00Z", json=[spelled])
    assert list(at.json()) == [spelled]
    assert got(anyone, f"/retrieval/bpl/areWeArchivingPV?pv={pv}").json() == {"status": "true"}
    [status] = got(anyone, f"/mgmt/bpl/getPVStatus?pv={pv}").json()
    assert (status["pvName"], status["pvNameOnly"]) == (spelled, NAME)


def test_several_signals_raw(anyone: httpx.Client) -> None:
    """Chunks of one signal after the other (pbrawclient: RawDataRetrieval.getDataForPVs)."""
    times = "from=2025-12-31T23%3A58%3A20Z&to=2025-12-31T23%3A58%3A30Z"
    both = f"pv={NAME}&pv=every_type%2Fan_int"
    found = chunks(got(anyone, f"/retrieval/data/getDataForPVs.raw?{both}&{times}").content)
    assert [header.pvname for header, _ in found] == [NAME, "every_type/an_int"]
    assert all(len(lines) == 10 for _, lines in found)


def test_qw_marks_lists(anyone: httpx.Client, waveforms: None) -> None:
    """The plugin's responseParse.ts takes values for lists where meta.waveform is true (QWResponse)."""
    times = "from=2025-12-31T23:58:20Z&to=2026-01-01T00:02:00Z"
    listed = {}
    for pv in (NAME, f"optimized_5({NAME})", f"optimized_1000({NAME})", "bpm/turns", f"mean_60({NAME})"):
        [found] = got(anyone, f"/retrieval/data/getData.qw?pv={pv}&{times}").json()
        listed[pv] = found["meta"]["waveform"]
    assert list(listed.values()) == [False, True, False, True, False]


def test_words_in_a_regular_expression(anyone: httpx.Client) -> None:
    r"""\b is a word's end to Java (java.util.regex.Pattern), and a backspace to PostgreSQL."""
    answer = anyone.get("/retrieval/bpl/getMatchingPVs", params={"regex": r"sr_rf\b.*"})
    assert answer.json() == ["sr_rf/arcs", "sr_rf/power"]
