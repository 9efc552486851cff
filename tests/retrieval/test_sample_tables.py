"""Signals of a table of samples over TDS and HTTP, read without distinguishing the kinds of tables."""

import csv
import io
import json
import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest
from epics_event import MESSAGE_OF, message
from pb_http import chunks
from webs import Web

from ringlog.clients import call, connect
from ringlog.retrieval.appliance.raw import PayloadType
from servers import free_port, serving

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
NS = 1_777_636_800_000_000_000
"""BEGIN, in nanoseconds since 1970"""

FACILITY = Path(__file__).with_name("sample_tables.toml").read_text()

# value, severity, status, nanoseconds after BEGIN
SAMPLES: list[tuple[float | None, int, int, int]] = [
    (1.5, 0, 0, 0),
    (2.5, 1, 4, 1_000_000_001),
    (None, 3, 9, 2_000_000_999),
    (4.5, 0, 0, 3_000_000_500),
]


@pytest.fixture(scope="module")
def own(temporary_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server with HTTP and these tables, whose samples have been written over TDS."""
    file = tmp_path_factory.mktemp("samples") / "samples.toml"
    file.parent.chmod(0o755)
    file.write_text(FACILITY)
    port = free_port()
    options = ("--http", f"127.0.0.1:{port}")
    with serving(temporary_directory / "samples", *options, facility=file) as running:
        web = Web(running, f"http://127.0.0.1:{port}", "")
        with closing(connection(web)) as writer:
            for value, severity, status, after in SAMPLES:
                call(
                    writer,
                    "put_vac",
                    signal="gauge:1",
                    time=BEGIN + timedelta(microseconds=after // 1000),
                    value=value,
                    severity=severity,
                    status=status,
                    nanoseconds=after % 1000,
                )
            for second, word in enumerate(("closed", "weiß", "open")):
                at = BEGIN + timedelta(seconds=second)
                call(writer, "put_words", signal="gauge:state", time=at, value=word)
            call(writer, "put_mag", seq_no=1, time=BEGIN, current=7.0)
        yield web


def connection(web: Web):
    url = f"tds://{web.server.writer.user}@{web.server.host}:{web.server.port}"
    return connect(url, web.server.writer.password)


@pytest.fixture
def client(own: Web) -> Iterator[httpx.Client]:
    with own.client(own.server.reader) as client:
        yield client


SPAN = {"from": BEGIN.isoformat(), "to": (BEGIN + timedelta(minutes=1)).isoformat()}


def test_plain_data_and_the_newest_values(client: httpx.Client) -> None:
    answer = client.get("/api/v1/data", params=SPAN | {"signal": "gauge:1"}).json()
    (signal,) = answer["signals"]
    assert signal["unit"] == "mbar"
    milliseconds = BEGIN.timestamp() * 1000
    assert signal["samples"] == [
        [milliseconds + after // 1000 / 1000, value] for value, _, _, after in SAMPLES
    ]
    names = [
        ("signal", "gauge:1"),
        ("signal", "gauge:never"),
        ("signal", "mag/current"),
        ("signal", "gauge:state"),
    ]
    newest = client.get("/api/v1/latest", params=names).json()
    assert [each["value"] for each in newest] == [4.5, None, 7.0, "open"]
    text = client.get("/api/v1/data", params=SPAN | {"signal": "gauge:state", "format": "csv"}).text
    assert [row[1] for row in csv.reader(io.StringIO(text))][1:] == ["closed", "weiß", "open"]


def test_trends_and_columns_with_a_table_of_rows(client: httpx.Client) -> None:
    (trend,) = client.get("/api/v1/trend", params=SPAN | {"signal": "gauge:1", "points": "2"}).json()[
        "signals"
    ]
    assert (sum(trend["n"]), min(trend["min"]), max(trend["max"])) == (3, 1.5, 4.5)
    names = [
        *SPAN.items(),
        ("signal", "gauge:1"),
        ("signal", "mag/current"),
        ("wide", "last"),
        ("format", "csv"),
    ]
    table = [*csv.reader(io.StringIO(client.get("/api/v1/data", params=names).text))]
    assert [row[1:] for row in table[1:]] == [["1.5", "7.0"], ["2.5", "7.0"], ["", "7.0"], ["4.5", "7.0"]]


def test_rows_of_a_table_of_samples_are_refused(client: httpx.Client) -> None:
    answer = client.get("/api/v1/rows", params=SPAN | {"table": "vac"})
    assert answer.status_code == 400, answer.text
    assert "table vac has samples and no rows" in answer.text


def test_tables_and_disk_have_tables_of_samples(client: httpx.Client) -> None:
    tables = {each["table_name"]: each for each in client.get("/api/v1/tables").json()["tables"]}
    assert [(name, each["cycle"]) for name, each in tables.items()] == [
        ("mag", 1.0),
        ("scope", None),
        ("vac", None),
        ("words", None),
    ]
    sizes = {each["table_name"]: each["bytes"] for each in client.get("/api/v1/disk").json()["logs"]}
    assert sizes["vac"] > 0


def test_the_appliance_answers_with_severity_status_and_nanoseconds(client: httpx.Client) -> None:
    span = {"from": (BEGIN + timedelta(seconds=0.5)).isoformat(), "to": SPAN["to"]}
    answer = client.get("/retrieval/data/getData.json", params=span | {"pv": "gauge:1"}).json()
    events = answer[0]["data"]
    # the newest sample before the interval comes first (the appliance's documentation)
    wanted = [
        {
            "secs": int(BEGIN.timestamp()) + after // 10**9,
            "nanos": after % 10**9,
            "severity": severity,
            "status": status,
        }
        for _, severity, status, after in SAMPLES
    ]
    assert [{key: event[key] for key in wanted[0]} for event in events] == wanted
    assert [event["val"] for event in events][:2] == [1.5, 2.5]
    assert answer[0]["meta"]["EGU"] == "mbar"
    raw = client.get("/retrieval/data/getData.raw", params=span | {"pv": "gauge:1"}).content
    ((head, lines),) = chunks(raw)
    assert (head.type, len(lines)) == (PayloadType.SCALAR_DOUBLE, len(SAMPLES))
    at = client.get(
        "/retrieval/data/getDataAtTime",
        params={"pv": "gauge:1", "at": (BEGIN + timedelta(seconds=1.5)).isoformat()},
    ).json()
    assert (at["gauge:1"]["val"], at["gauge:1"]["severity"], at["gauge:1"]["nanos"]) == (2.5, 1, 1)
    mean = client.get("/retrieval/data/getData.json", params=SPAN | {"pv": "mean_60(gauge:1)"}).json()
    assert mean[0]["data"][0]["val"] == pytest.approx((1.5 + 2.5 + 4.5) / 3)


def test_many_samples_are_sent_packed_over_tds(own: Web, client: httpx.Client) -> None:
    """A call with arrays of a batch in binary; read over HTTP by pages, compared with the sent values."""
    chance = random.Random(53)
    names = ["gauge:100", "gauge:200", "gauge:300"]
    known: dict[tuple[str, int], float] = {}
    with closing(connection(own)) as writer:
        with writer.cursor() as cursor:
            cursor.execute("select signal, number from ringlog..last_vac()")
            numbers = dict(cursor.fetchall())
        for _ in range(12):
            sent = {
                (
                    chance.choice(names),
                    NS + chance.randrange(3 * 3600 * 10**6) * 1000 + chance.randrange(1000),
                ): (chance.random())
                for _ in range(300)
            }
            known |= sent
            arrays = {
                "signals": np.array([numbers[name] for name, _ in sent], "<i4").tobytes(),
                "times": np.array([time for _, time in sent], "<i8").tobytes(),
                "samples": np.array([*sent.values()], "<f8").tobytes(),
            }
            for _ in range(2):
                call(writer, "put_vac_batch", **arrays)
    for name in names:
        own_samples = sorted((time, value) for (of, time), value in known.items() if of == name)
        span = {"from": SPAN["from"], "to": (BEGIN + timedelta(hours=3)).isoformat()}
        for begin, end in ((0, 3 * 3600), (1000, 9000)):
            span = {
                "from": (BEGIN + timedelta(seconds=begin)).isoformat(),
                "to": (BEGIN + timedelta(seconds=end)).isoformat(),
            }
            part = [(t, v) for t, v in own_samples if NS + begin * 10**9 <= t < NS + end * 10**9]
            answer = client.get("/api/v1/data", params=span | {"signal": name}).json()
            assert [value for _, value in answer["signals"][0]["samples"]] == [value for _, value in part]
        raw = client.get("/retrieval/data/getData.raw", params=span | {"pv": name}).content
        ((head, lines),) = chunks(raw)
        double = message(MESSAGE_OF[PayloadType.SCALAR_DOUBLE])
        events = [double.FromString(line) for line in lines]
        wanted = [time for time, _ in own_samples if time < NS + 9000 * 10**9]
        assert head.year == 2026
        year = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 10**9
        found = [year + event.secondsintoyear * 10**9 + event.nano for event in events]
        assert found == [time for time in wanted if time >= max(t for t in wanted if t <= NS + 1000 * 10**9)]


def test_waveforms_are_sent_packed_and_read_by_every_client(own: Web, client: httpx.Client) -> None:
    """One is sent alone, the others in one call; the third sample is no reading."""
    waves = [[1.5, 2.5, -3.0], [], None, [7.0]]
    with closing(connection(own)) as writer:
        first = np.array(waves[0], "<f4").tobytes()
        call(writer, "put_scope", signal="gauge:trace", time=BEGIN, value=first, severity=1, status=4)
        with writer.cursor() as cursor:
            cursor.execute("select number from ringlog..last_scope()")
            ((number,),) = cursor.fetchall()
        arrays = {
            "signals": np.full(3, number, "<i4").tobytes(),
            "times": (NS + np.arange(1, 4, dtype="<i8") * 10**9).tobytes(),
            "samples": np.array(waves[3], "<f4").tobytes(),
            "lengths": np.array([0, 0, 1], "<i4").tobytes(),
            "nulls": np.array([2], "<i4").tobytes(),
        }
        for _ in range(2):
            call(writer, "put_scope_batch", **arrays)
    with closing(
        connect(
            f"tds://{own.server.reader.user}@{own.server.host}:{own.server.port}", own.server.reader.password
        )
    ) as reader:
        rows = call(reader, "get_scope", signal="gauge:trace").rows
        assert [None if row[2] is None else row[2].tolist() for row in rows] == waves
        assert [row[3] for row in rows] == [1, 0, 0, 0]
        (newest,) = call(reader, "get_waveform", name="gauge:trace").rows
        assert newest[1].tolist() == waves[3]
    name = {"signal": "gauge:trace"}
    (signal,) = client.get("/api/v1/data", params=SPAN | name).json()["signals"]
    assert [value for _, value in signal["samples"]] == waves
    (scalar,) = client.get("/api/v1/data", params=SPAN | {"signal": "gauge:trace.max"}).json()["signals"]
    assert [value for _, value in scalar["samples"]] == [2.5, None, None, 7.0]
    names = [("signal", "gauge:trace"), ("signal", "gauge:trace.length"), ("signal", "gauge:trace.min")]
    newest_values = client.get("/api/v1/latest", params=names).json()
    assert [each["value"] for each in newest_values] == [[7.0], 1.0, 7.0]
    at = client.get("/api/v1/at", params=name | {"time": (BEGIN + timedelta(seconds=0.5)).isoformat()}).json()
    assert [value for _, value in at["signals"][0]["samples"]] == [waves[0]]
    (trend,) = client.get("/api/v1/trend", params=SPAN | {"signal": "gauge:trace.max", "points": "1"}).json()[
        "signals"
    ]
    assert (trend["n"], trend["min"], trend["max"]) == ([2], [2.5], [7.0])
    raw = client.get("/retrieval/data/getData.raw", params=SPAN | {"pv": "gauge:trace"}).content
    ((head, lines),) = chunks(raw)
    assert head.type == PayloadType.WAVEFORM_FLOAT
    events = [message(MESSAGE_OF[PayloadType.WAVEFORM_FLOAT]).FromString(line) for line in lines]
    assert [(event.severity, event.status) for event in events] == [(1, 4), (0, 0), (3, 17), (0, 0)]
    assert [[*events[index].val] for index in (0, 1, 3)] == [waves[0], [], waves[3]]
    assert np.isnan([*events[2].val]).tolist() == [True]
    (shown,) = client.get("/retrieval/data/getData.json", params=SPAN | {"pv": "gauge:trace"}).json()
    assert [(event["val"], event["severity"]) for event in shown["data"]] == [
        *zip(waves, (1, 0, 3, 0), strict=True)
    ]
    asked = {"pv": "gauge:trace", "at": (BEGIN + timedelta(seconds=0.5)).isoformat()}
    before = client.get("/retrieval/data/getDataAtTime", params=asked).json()["gauge:trace"]
    assert (before["val"], before["severity"], before["status"]) == (waves[0], 1, 4)
    of_max = SPAN | {"pv": "mean_60(gauge:trace.max)"}
    (shown,) = client.get("/retrieval/data/getData.json", params=of_max).json()
    assert shown["data"][0]["val"] == (2.5 + 7.0) / 2
    described = client.get("/retrieval/bpl/getMetadata", params={"pv": "gauge:trace"}).json()
    assert (described["DBRType"], described["EGU"]) == ("DBR_WAVEFORM_FLOAT", "V")


def test_tsql_reads_the_view_and_the_procedures(own: Web) -> None:
    reader = own.server.reader
    with own.server.connect(reader.user, reader.password) as session, session.cursor() as cursor:
        cursor.execute(
            "select signal, value, severity, status from log..vac where signal = 'gauge:1' order by time"
        )
        assert cursor.fetchall() == [("gauge:1", value, sev, stat) for value, sev, stat, _ in SAMPLES]
        cursor.execute("exec get_latest @name = 'gauge:1'")
        assert [row[1] for row in cursor.fetchall()] == [4.5]
        cursor.execute("exec get_signal @name = 'gauge:1', @max_rows = 2")
        assert [row[1] for row in cursor.fetchall()] == [1.5, 2.5]


def test_a_signal_that_is_added_while_it_runs_is_read_at_once(own: Web, client: httpx.Client) -> None:
    assert client.get("/api/v1/data", params=SPAN | {"signal": "pump:new"}).status_code == 404
    own.server.sql("select ringlog.add_signal('vac', 'pump:new', 'A')")
    with closing(connection(own)) as writer:
        call(writer, "put_vac", signal="pump:new", time=BEGIN, value=0.25)
        found = client.get("/api/v1/data", params=SPAN | {"signal": "pump:new"}).json()
        assert [value for _, value in found["signals"][0]["samples"]] == [0.25]
        with client.stream("GET", "/api/v1/live", params={"signal": ["pump:new", "mag/current"]}) as answer:
            lines = answer.iter_lines()
            next(lines)
            call(writer, "put_vac", signal="pump:new", time=datetime.now(UTC), value=0.5)
            data = next(line for line in lines if line.startswith("data:"))
    assert [value for _, value in json.loads(data.removeprefix("data:"))["pump:new"]] == [0.5]


def test_properties_reported_by_a_source_are_included(own: Web, client: httpx.Client) -> None:
    told = {
        "unit": "K",
        "limit_low": None,
        "limit_high": 5,
        "alarm_low": -9,
        "alarm_high": None,
        "decimals": 3,
    }
    with psycopg.connect(own.server.dsn, autocommit=True) as administrator:
        number = administrator.execute("select ringlog.add_signal('vac', 'told')").fetchone()
        state = {"number": number and number[0], "connected": True, "since": BEGIN.isoformat(), "dropped": 0}
        states = json.dumps([state | {"reported": told, "reported_at": BEGIN.isoformat()}])
        administrator.execute("select ringlog.report_signals('vac', %s)", [states])
    (signal,) = client.get("/api/v1/data", params=SPAN | {"signal": "told"}).json()["signals"]
    assert [signal[key] for key in ("unit", "limits", "alarm_limits", "decimals")] == [
        "K",
        [None, 5.0],
        [-9.0, None],
        3,
    ]
    asked = SPAN | {"pv": "told", "fetchLatestMetadata": "true"}
    ((answer),) = client.get("/retrieval/data/getData.json", params=asked).json()
    assert answer["meta"] == {"name": "told", "EGU": "K", "PREC": "3", "HOPR": "5", "HIGH": "5", "LOLO": "-9"}


def test_a_signal_has_its_earlier_properties(own: Web, client: httpx.Client) -> None:
    with psycopg.connect(own.server.dsn, autocommit=True) as administrator:
        administrator.execute("select ringlog.add_signal('vac', 'pump:old', 'A')")
        administrator.execute("select ringlog.put_vac('pump:old', clock_timestamp(), 5)")
        change = """select ringlog.change_signal('pump:old', '{"unit": "mA", "limits": [0, 5]}')"""
        administrator.execute(change)
        found = administrator.execute(
            "select extract(epoch from min(valid_to))::float8 * 1000 from ringlog.signal"
            " where signal = 'pump:old'"
        ).fetchone()
    for path in ("data", "trend"):
        (signal,) = client.get(f"/api/v1/{path}", params=SPAN | {"signal": "pump:old"}).json()["signals"]
        assert (signal["unit"], signal["limits"]) == ("mA", [0.0, 5.0])
        (was,) = signal["was"]
        assert (was.pop("until"),) == pytest.approx(found)
        assert was == {
            "unit": "A",
            "description": "",
            "limits": None,
            "alarm_limits": None,
            "states": None,
            "held": False,
        }
    # the newest sample is older than the change
    (latest,) = client.get("/api/v1/latest", params={"signal": "pump:old"}).json()
    assert (latest["value"], latest["unit"], latest["limits"]) == (5, "A", None)
    (never,) = client.get("/api/v1/data", params=SPAN | {"signal": "gauge:1"}).json()["signals"]
    assert "was" not in never


@pytest.mark.parametrize("after", [0, 500_000, 1_000_001, 2_500_000, 3_000_000, 3_000_001, 9_000_000])
def test_every_way_of_asking_at_a_time_has_the_newest_sample(
    client: httpx.Client, own: Web, after: int
) -> None:
    """`after`: microseconds after BEGIN. Also one without a reading; none that is later by nanoseconds."""
    value, severity, status, nanoseconds = [each for each in SAMPLES if each[3] <= after * 1000][-1]
    at = BEGIN + timedelta(microseconds=after)
    name = "gauge:1"
    found = client.get("/retrieval/data/getDataAtTime", params={"pv": name, "at": at.isoformat()}).json()[
        name
    ]
    assert (found["val"], found["severity"], found["status"]) == (value, severity, status)
    assert (found["secs"], found["nanos"]) == divmod(NS + nanoseconds, 10**9)
    ((_, held),) = client.get("/api/v1/at", params={"signal": name, "time": at.isoformat()}).json()[
        "signals"
    ][0]["samples"]
    assert held == value
    span = {"from": at.isoformat(), "to": (at + timedelta(microseconds=1)).isoformat()}
    for route in ("getData.json", "getDataForPVs.json"):
        (shown,) = client.get(f"/retrieval/data/{route}", params={"pv": name} | span).json()
        first = shown["data"][0]
        assert (first["val"], first["severity"], first["nanos"]) == (value, severity, nanoseconds % 10**9)
    wide = {"signal": name, "wide": "last", "step": "0.000001s", "format": "csv"}
    (line,) = list(csv.reader(io.StringIO(client.get("/api/v1/data", params=wide | span).text)))[1:]
    assert line[1] == ("" if value is None else str(value))
    with psycopg.connect(own.server.dsn_of(own.server.reader)) as session:
        # its times have microseconds
        last = [each for each in SAMPLES if each[3] // 1000 <= after][-1]
        query = "select value, severity from ringlog.get_vac_at(%s) where signal = %s"
        assert session.execute(query, [at, name]).fetchall() == [last[:2]]


def test_lines_between_samples_count_nanoseconds(client: httpx.Client) -> None:
    """The second sample is a nanosecond after the second."""
    span = {"from": BEGIN.isoformat(), "to": (BEGIN + timedelta(seconds=2)).isoformat()}
    wide = {"signal": "gauge:1", "wide": "linear", "step": "1s", "format": "csv"} | span
    lines = list(csv.reader(io.StringIO(client.get("/api/v1/data", params=wide).text)))[1:]
    assert [float(line[1]) for line in lines] == pytest.approx([1.5, 1.5 + 1e9 / 1_000_000_001], rel=1e-12)


def test_names_and_samples_of_other_times(own: Web, client: httpx.Client) -> None:
    """A former name is read as the present one. Once a retired signal is added again, samples of the time
    between are read in every way."""
    with psycopg.connect(own.server.dsn, autocommit=True) as admin:
        number = admin.execute("select ringlog.add_signal('vac', 'pump:1')").fetchone()
        admin.execute("select ringlog.retire_signal('pump:1')")
        (retired,) = admin.execute("select clock_timestamp()").fetchone() or ()
        assert admin.execute("select ringlog.add_signal('vac', 'pump:1')").fetchone() == number
        admin.execute("select ringlog.put_vac('pump:1', %s, 5)", [retired])
        admin.execute("select ringlog.rename_signal('pump:1', 'pump:first')")
        span = retired - timedelta(hours=1), retired + timedelta(hours=1)
        for name in ("pump:1", "pump:first"):
            for procedure in ("get_signal", "get_vac"):
                query = f"select value from ringlog.{procedure}(%s, %s, %s)"
                assert admin.execute(query.encode(), [name, *span]).fetchall() == [(5.0,)]
            (latest,) = client.get("/api/v1/latest", params={"signal": name}).json()
            assert latest["value"] == 5
            asked = {"signal": name, "from": span[0].isoformat(), "to": span[1].isoformat()}
            (signal,) = client.get("/api/v1/data", params=asked).json()["signals"]
            assert [value for _, value in signal["samples"]] == [5]
        for name, procedure in (("gauge:state", "get_signal"), ("gauge:state", "get_trend")):
            with pytest.raises(psycopg.errors.DatatypeMismatch) as refusal:
                admin.execute(f"select * from ringlog.{procedure}(%s, %s, %s)".encode(), [name, *span])
            assert refusal.value.diag.message_hint == "Call get_words."
