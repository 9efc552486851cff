"""Every request is served, or refused with a message; none causes an internal error."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import TypeVar
from urllib.parse import quote

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pb_http import chunks

from ringlog.retrieval.appliance.pattern import OF_BINS, OF_SAMPLES, SignalRequest, parse_pv
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.times import instant, span

Result = TypeVar("Result")
NOW = datetime(2026, 11, 20, 14, tzinfo=UTC)

names = st.sampled_from([*OF_BINS, *OF_SAMPLES, "meanSample", "loessSample", "nothing", ""])
numbers = st.sampled_from(
    ["", "_60", "_0", "_-1", "_1e9", "_1.5", "_", "__", "_99999999999999999999", "_60_60"]
)
signals = st.sampled_from(
    ["every_type/a_real", "every_type/a_varchar", "a(b)", "x.VAL", "", " ", "sr_rf/power"]
)
patterns = st.one_of(
    st.text(max_size=60),
    st.builds(lambda name, number, signal: f"{name}{number}({signal})", names, numbers, signals),
    st.builds(lambda name, number, signal: f"{name}{number}({signal}", names, numbers, signals),
)
times = st.one_of(
    st.text(max_size=40),
    st.datetimes().map(datetime.isoformat),
    st.from_regex(r"[0-9]{1,12}(\.[0-9]{1,9})?", fullmatch=True),
    st.from_regex(r"(now)?-[0-9]{1,9}(s|m|h|d|w|y)", fullmatch=True),
    st.sampled_from(
        ["2025-12-31T23:59:00Z", "2026-01-01T00:00:30.5+09:00", "now", "NaN", "1e9", "2025-02-30"]
    ),
)


def served(ask: Callable[[], Result]) -> Result | Refused:
    try:
        return ask()
    except Refused as refusal:
        return refusal


@given(patterns)
def test_a_pattern_is_read_or_refused(text: str) -> None:
    read = served(lambda: parse_pv(text))
    if isinstance(read, Refused):
        assert read.status == 400
    else:
        assert read.signal
        assert read.operator == "" or read.number >= 0


@given(times)
def test_a_time_is_read_or_refused(text: str) -> None:
    read = served(lambda: instant(text, NOW, "from"))
    if isinstance(read, Refused):
        assert read.status == 400
        assert "from=" in str(read)
    else:
        assert read.tzinfo is not None
        assert 1970 <= read.year <= 2262


# examples of the appliance's user guide
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("mean_60(sr_rf/power)", SignalRequest("sr_rf/power", "mean", 60.0)),
        ("mean(sr_rf/power)", SignalRequest("sr_rf/power", "mean", 900.0)),
        ("meanSample_60(sr_rf/power)", SignalRequest("sr_rf/power", "mean", 60.0, fill=False)),
        ("optimized_500(x)", SignalRequest("x", "optimized", 500.0)),
        ("deadBand_0.5(x)", SignalRequest("x", "deadBand", 0.5)),
        ("flyers(x)", SignalRequest("x", "flyers", 900.0, deviations=3.0)),
        ("ignoreflyers_60_2.5(x)", SignalRequest("x", "ignoreflyers", 60.0, deviations=2.5)),
        ("twoweek(x)", SignalRequest("x", "twoweek", 900.0)),
        ("sr_rf/power", SignalRequest("sr_rf/power")),
        ("some(thing)", SignalRequest("some(thing)")),
    ],
)
def test_patterns(text: str, meant: SignalRequest) -> None:
    assert parse_pv(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-11-20T13:30:00Z", datetime(2026, 11, 20, 13, 30, tzinfo=UTC)),
        ("2026-11-20T22:30:00.250+09:00", datetime(2026, 11, 20, 13, 30, 0, 250_000, tzinfo=UTC)),
        # a + that was not encoded
        ("2026-11-20T22:30:00 09:00", datetime(2026, 11, 20, 13, 30, tzinfo=UTC)),
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
        ("2026-11-20T13:30:00.123456789Z", datetime(2026, 11, 20, 13, 30, 0, 123_456, tzinfo=UTC)),
        ("1795181400", datetime(2026, 11, 20, 13, 30, tzinfo=UTC)),
        ("now-30m", datetime(2026, 11, 20, 13, 30, tzinfo=UTC)),
        ("-30m", datetime(2026, 11, 20, 13, 30, tzinfo=UTC)),
    ],
)
def test_times(text: str, meant: datetime) -> None:
    assert instant(text, NOW, "from") == meant


def test_an_interval_must_not_run_backwards() -> None:
    with pytest.raises(Refused, match="after"):
        span("2026-11-20", "2026-11-19", NOW)


paths = st.sampled_from(
    [
        "/retrieval/data/getData.json",
        "/retrieval/data/getData.raw",
        "/retrieval/data/getData.csv",
        "/retrieval/data/getData.xml",
        "/retrieval/data/getDataForPVs.qw",
        "/retrieval/data/getDataAtTime",
        "/retrieval/bpl/getMatchingPVs",
        "/retrieval/bpl/searchForPVsRegex",
        "/mgmt/bpl/getPVStatus",
        "/api/v1/data",
        "/api/v1/at",
        "/api/v1/rows",
        "/api/v1/trend",
        "/api/v1/signals",
        "/api/v1/latest",
        "/api/v1/events",
        "/api/v1/parameters/sr_mag_set",
        "/api/v1/parameters/sr_mag_set/history",
        "/api/v1/parameters/every_type",
    ]
)
parameters = st.dictionaries(
    st.sampled_from(
        ["pv", "signal", "regex", "from", "to", "at", "time", "points", "limit", "format", "table", "search"]
    ),
    st.one_of(
        patterns,
        times,
        st.sampled_from(
            ["json", "arrow", "every_type", "every_type/a_real", "1", "(", "[a", "(?i)x", "a{1,99999}"]
        ),
    ),
    max_size=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(paths, parameters)
def test_no_request_finds_a_defect(anyone: httpx.Client, path: str, given: dict[str, str]) -> None:
    answer = anyone.get(path, params=given)
    assert answer.status_code in (200, 400, 404, 413), (answer.status_code, answer.text)


# names of signals and other names, in the spelling of clients
posted_names = st.one_of(
    st.sampled_from(
        [
            "every_type/a_real",
            "every_type/a_*",
            "ca://every_type/an_int.VAL",
            "mean_60(sr_rf/power)",
            "?",
            "*",
        ]
    ),
    st.text(max_size=20),
)
listed_names = st.lists(posted_names, max_size=6)
bodies = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode),
    listed_names.map(lambda names: orjson.dumps(names)),
    st.lists(st.dictionaries(st.sampled_from(["pv", "x"]), posted_names, max_size=2), max_size=4).map(
        orjson.dumps
    ),
    st.recursive(st.none() | st.integers() | posted_names, lambda inner: st.lists(inner, max_size=3)).map(
        lambda value: json.dumps(value).encode()
    ),
    listed_names.map(lambda names: "\r\n".join(names).encode()),
    listed_names.map(lambda names: f"pv={quote(','.join(names))}".encode()),
    listed_names.map(lambda names: ("pv=" + ",".join(names)).encode()),
)
kinds = st.sampled_from(
    [
        *("application/json", "application/json; charset=utf-8", "text/plain", "", "multipart/form-data"),
        "application/x-www-form-urlencoded",
    ]
)
posting = st.sampled_from(
    [
        "/retrieval/bpl/filterArchivedPVs",
        "/retrieval/data/getDataAtTime",
        "/mgmt/bpl/getPVStatus",
        *(f"/retrieval/data/getDataForPVs.{form}" for form in ("json", "qw", "txt", "raw", "csv")),
    ]
)
MINUTE = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:01:00Z"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(posting, kinds, bodies)
def test_no_body_finds_a_defect(anyone: httpx.Client, path: str, kind: str, content: bytes) -> None:
    answer = anyone.post(path, params=MINUTE, content=content, headers={"Content-Type": kind})
    assert answer.status_code in (200, 400, 404, 413), (answer.status_code, answer.text)
    if answer.status_code == 200 and not path.endswith(("txt", "raw", "csv")):
        answer.json()


plain_names = st.lists(
    st.sampled_from(["every_type/a_real", "every_type/an_int", "none", "sr_rf/power", "a+b%2C&=", "é€😀"]),
    min_size=1,
    max_size=4,
)


@pytest.mark.long
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(plain_names)
def test_the_forms_of_a_body_mean_the_same(anyone: httpx.Client, names: list[str]) -> None:
    forms = {
        "application/json": orjson.dumps(names),
        "text/plain": "\n".join(names).encode(),
        "application/x-www-form-urlencoded": f"pv={quote(','.join(names))}".encode(),
    }
    for path in ("/retrieval/bpl/filterArchivedPVs", "/mgmt/bpl/getPVStatus"):
        found = [
            anyone.post(path, content=content, headers={"Content-Type": kind}).json()
            for kind, content in forms.items()
        ]
        assert found[1:] == found[:1] * 2
    known = [name for name in names if name.startswith(("every_type", "sr_rf"))]
    assert anyone.post("/retrieval/bpl/filterArchivedPVs", json=names).json() == known
    several = {kind: content for kind, content in forms.items() if known == names}
    answers = {
        kind: anyone.post(
            "/retrieval/data/getDataForPVs.raw",
            params=MINUTE,
            content=content,
            headers={"Content-Type": kind},
        )
        for kind, content in several.items()
    }
    for answer in answers.values():
        assert answer.status_code == 200, answer.text
        headers = [header.pvname for header, _ in chunks(answer.content)]
        assert list(dict.fromkeys(headers)) == list(dict.fromkeys(names))


def test_many_patterns_are_refused(anyone: httpx.Client) -> None:
    """Each pattern is a query of all signals."""
    answer = anyone.get("/mgmt/bpl/getAllPVs", params={"pv": ",".join(["*"] * 101), "limit": "-1"})
    assert answer.status_code == 413
    twice = anyone.get("/mgmt/bpl/getAllPVs", params={"pv": "sr_rf/*,sr_rf/p*,sr_rf/power", "limit": "-1"})
    assert twice.json() == ["sr_rf/arcs", "sr_rf/power"]


@pytest.mark.parametrize("content", [b"", b'["every_type/a_real"]'])
def test_other_protocols_are_not_used(web, content: bytes) -> None:
    """Java's HTTP client, which Phoebus uses, offers HTTP/2 with each request; the answer is HTTP/1.1 (RFC
    9110, 7.8), bodies are read, and nothing is logged."""
    client = HTTPConnection("127.0.0.1", int(web.url.rpartition(":")[2]), timeout=60)
    headers = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAA"}
    for _ in range(2):
        path = "/retrieval/bpl/filterArchivedPVs" if content else "/retrieval/bpl/getVersion"
        client.request("POST" if content else "GET", path, content or None, headers)
        answer = client.getresponse()
        found = answer.read()
        assert answer.status == 200
        assert found == content or not content
    client.close()
    log = web.server.data.with_name(web.server.data.name + ".stderr").read_text()
    assert "upgrade request" not in log.lower()
