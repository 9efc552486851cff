"""The plain API over HTTP."""

import io
import json
from datetime import UTC, datetime

import httpx
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from known_rows import BEGIN, ROWS, row, time_of
from webs import Web

from ringlog.retrieval.plain.routes import routes as plain_routes
from ringlog.retrieval.plain.trends import width_of

SPAN = {"from": "2025-12-31T23:58:00Z", "to": "2026-01-01T00:30:00Z"}


def test_signals_are_found_by_words(anyone: httpx.Client) -> None:
    found = anyone.get("/api/v1/signals", params={"search": "rf POWER"}).json()
    assert [(each["signal"], each["unit"], each["type"]) for each in found] == [("sr_rf/power", "kW", "real")]
    first = anyone.get("/api/v1/signals", params={"search": "current_adc", "limit": 2}).json()
    assert [each["signal"] for each in first] == ["sr_mag_ps_b_1/current_adc", "sr_mag_ps_b_2/current_adc"]


def test_a_signal_has_its_places(anyone: httpx.Client) -> None:
    found = anyone.get("/api/v1/signals/sr_mag_ps_b_7/current_adc").json()
    assert (found["table"], found["column"], found["limits"]) == ("sr_mag_ps", "current_7", [-500.0, 500.0])
    assert [location["column"] for location in found["places"]] == ["current_7"]
    assert anyone.get("/api/v1/signals/none").status_code == 404


@pytest.mark.parametrize("column", row(0))
def test_data_as_arrow_and_parquet(anyone: httpx.Client, column: str) -> None:
    parameters = {"signal": f"every_type/{column}"} | SPAN
    stream = anyone.get("/api/v1/data", params=parameters | {"format": "arrow"})
    assert stream.status_code == 200, stream.text
    table = pa.ipc.open_stream(stream.content).read_all()
    assert table.column_names == ["time", "value"]
    assert table["time"].to_pylist() == [time_of(number) for number in range(ROWS)]
    assert table["value"].to_pylist() == [row(number)[column] for number in range(ROWS)]
    file = anyone.get("/api/v1/data", params=parameters | {"format": "parquet"})
    assert pq.read_table(io.BytesIO(file.content)).equals(table)


def test_data_as_csv(anyone: httpx.Client) -> None:
    parameters = {"signal": "every_type/a_double", "format": "csv"} | SPAN
    text = anyone.get("/api/v1/data", params=parameters).text
    lines = text.splitlines()
    assert lines[:2] == ["time,value", "2025-12-31T23:58:20.000000Z,0.0"]
    assert lines[10] == "2025-12-31T23:58:29.000009Z,"
    table = pyarrow.csv.read_csv(io.BytesIO(text.encode()))
    assert table["value"].to_pylist() == [row(number)["a_double"] for number in range(ROWS)]


def test_data_of_several_signals(anyone: httpx.Client) -> None:
    names = ["every_type/a_double", "every_type/an_int"]
    found = anyone.get("/api/v1/data", params={"signal": names} | SPAN).json()["signals"]
    assert [each["signal"] for each in found] == names
    begin = BEGIN.timestamp() * 1000
    assert [sample[0] for sample in found[1]["samples"]] == [
        begin + number * 1000 + number / 1000 for number in range(ROWS)
    ]
    assert [sample[1] for sample in found[1]["samples"]] == [row(number)["an_int"] for number in range(ROWS)]
    table = pa.ipc.open_stream(
        anyone.get("/api/v1/data", params={"signal": names, "format": "arrow"} | SPAN).content
    ).read_all()
    assert table.column_names == ["signal", "time", "value"]
    assert len(table) == 2 * ROWS


def test_the_first_samples_only(anyone: httpx.Client) -> None:
    names = ["every_type/a_real", "every_type/a_varchar"]
    found = anyone.get("/api/v1/data", params={"signal": names, "limit": 3} | SPAN).json()["signals"]
    for signal, name in zip(found, ("a_real", "a_varchar"), strict=True):
        assert [value for _, value in signal["samples"]] == [row(number)[name] for number in range(3)]
    answer = anyone.get("/api/v1/data", params={"signal": names, "limit": 0} | SPAN)
    assert answer.status_code == 400, "no limit of 0"


def test_the_newest_samples_at_an_instant(anyone: httpx.Client) -> None:
    def at(when: str) -> list[list[list[object]]]:
        parameters = {"signal": ["every_type/an_int", "bpm/x"], "time": when}
        return [signal["samples"] for signal in anyone.get("/api/v1/at", params=parameters).json()["signals"]]

    # row 40 is 40 us after the second, row 39 has no reading
    moment = time_of(40).timestamp() * 1000
    assert at("2025-12-31T23:59:00.000040Z") == [[[moment, row(40)["an_int"]]], []]
    assert at("2025-12-31T23:59:00.000039Z") == [[[moment - 1000.001, None]], []]
    assert at("2025-12-31T23:00:00Z") == [[], []], "before the first row"


def test_texts_and_numbers_are_not_in_one_column(anyone: httpx.Client) -> None:
    names = ["every_type/a_double", "every_type/a_varchar"]
    answer = anyone.get("/api/v1/data", params={"signal": names, "format": "arrow"} | SPAN)
    assert answer.status_code == 400
    assert "json" in answer.json()["error"]


def test_rows_of_a_table(anyone: httpx.Client) -> None:
    parameters = {"table": "every_type", "column": ["a_real", "a_varchar"], "format": "arrow"} | SPAN
    table = pa.ipc.open_stream(anyone.get("/api/v1/rows", params=parameters).content).read_all()
    assert table.column_names == ["time", "seq_no", "a_real", "a_varchar"]
    assert table["a_varchar"].to_pylist() == [row(number)["a_varchar"] for number in range(ROWS)]
    assert anyone.get("/api/v1/rows", params={"table": "none"}).status_code == 404


def test_a_trend_of_many_samples(anyone: httpx.Client) -> None:
    parameters = {"signal": "every_type/a_real", "points": "25"} | SPAN
    [found] = anyone.get("/api/v1/trend", params=parameters).json()["signals"]
    # 32 minutes in 25 points: 120 s is the next round width
    assert found["width"] == 120.0
    starts = sorted({(int(BEGIN.timestamp()) + number) // 120 * 120 for number in range(ROWS)})
    assert found["time"] == [start * 1000 for start in starts]
    for index, start in enumerate(starts):
        values = [
            row(number)["a_real"]
            for number in range(ROWS)
            if (int(BEGIN.timestamp()) + number) // 120 * 120 == start and row(number)["a_real"] is not None
        ]
        assert found["n"][index] == len(values)
        assert (found["min"][index], found["max"][index]) == (min(values), max(values))
        assert found["mean"][index] == pytest.approx(sum(values) / len(values))
        assert (found["first"][index], found["last"][index]) == (values[0], values[-1])


def test_a_histogram(anyone: httpx.Client) -> None:
    """Signals have their bins in common; values at or below 0 are not on a logarithmic axis."""
    names = ["every_type/a_double", "every_type/a_real"]
    answer = anyone.get("/api/v1/histogram", params={"signal": names, "bins": 4} | SPAN).json()
    values = {
        name: [value for number in range(ROWS) if (value := row(number)[name]) is not None]
        for name in ("a_double", "a_real")
    }
    greatest = (ROWS - 2) / 7
    assert answer["edges"] == pytest.approx([greatest * part / 4 for part in range(5)])
    for found, there in zip(answer["signals"], values.values(), strict=True):
        # the last bin has its upper edge too
        bins = [min(3, int(value / greatest * 4)) for value in there]
        assert found["counts"] == [bins.count(bin) for bin in range(4)]
        assert (found["n"], found["outside"], found["width"]) == (len(there), 0, 0)
        assert found["mean"] == pytest.approx(sum(there) / len(there))
    answer = anyone.get("/api/v1/histogram", params={"signal": names, "bins": 2, "log": 1} | SPAN).json()
    assert answer["edges"] == pytest.approx([1 / 8, (greatest / 8) ** 0.5, greatest])
    assert [found["outside"] for found in answer["signals"]] == [1, 1]
    empty = {"signal": names, "from": "2020-01-01", "to": "2020-01-02"}
    answer = anyone.get("/api/v1/histogram", params=empty).json()
    assert (answer["edges"], [found["counts"] for found in answer["signals"]]) == ([], [[], []])
    assert (
        anyone.get("/api/v1/histogram", params={"signal": "every_type/a_varchar"} | SPAN).status_code == 400
    )


@pytest.mark.parametrize("log", [{}, {"log": 1}])
def test_a_spectrum(web: Web, anyone: httpx.Client, log: dict[str, int]) -> None:
    """A sine of 0.1 Hz and amplitude 3, 4,096 s long, has its peak there; bands keep it."""
    begin = datetime(2026, 4, 1, tzinfo=UTC)
    web.server.sql(
        "insert into log.bpm (seq_no, time, x_set)"
        " select 1, %s + step * interval '1 s', 7 + 3 * sin(step * 2 * pi() / 10)"
        " from generate_series(0, 4095) step on conflict do nothing",
        [begin],
    )
    asked = {"signal": "bpm/x_set", "from": begin.isoformat(), "to": "2026-04-02", "points": 100} | log
    (found,) = anyone.get("/api/v1/spectrum", params=asked).json()["signals"]
    assert found["n"] == 4096
    assert 50 < len(found["frequency"]) <= 100
    peak = max(found["amplitude"])
    # a Hann window loses up to 1.42 dB between two frequencies (F. J. Harris, Proc. IEEE 66, 51, table 1)
    assert 3 * 10 ** (-1.42 / 20) < peak < 3.01
    assert found["frequency"][found["amplitude"].index(peak)] == pytest.approx(0.1, abs=1 / 4096)


def test_a_trend_of_few_samples_returns_them_unchanged(anyone: httpx.Client) -> None:
    parameters = {"signal": "every_type/a_real", "points": "200"} | SPAN
    [found] = anyone.get("/api/v1/trend", params=parameters).json()["signals"]
    assert found["width"] == 0
    assert found["mean"] == [row(number)["a_real"] for number in range(ROWS)]
    assert found["n"] == [int(row(number)["a_real"] is not None) for number in range(ROWS)]


def test_widths_are_round() -> None:
    # of two years
    widths = [width_of(BEGIN, BEGIN.replace(year=2027), points) / 1e6 for points in (10, 100, 1000, 100_000)]
    assert widths == [73 * 86_400, 8 * 86_400, 86_400, 900]


def test_latest(anyone: httpx.Client) -> None:
    found = anyone.get("/api/v1/latest", params={"signal": ["every_type/a_real", "sr_rf/power"]}).json()
    number = max(number for number in range(ROWS - 10, ROWS))
    assert found[0]["value"] == row(number)["a_real"]
    assert found[0]["time"].startswith("2026-01-01T00:01:39.000199")
    assert found[1]["value"] is None


def test_live_values(web, anyone: httpx.Client) -> None:
    parameters = {"signal": ["sr_vac_ccg_1/pressure", "sr_vac/valve_open"]}
    with anyone.stream("GET", "/api/v1/live", params=parameters) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        next(lines)
        web.server.sql(
            "update online.sr_vac set time = now(), pressure_1 = 3e-8, valve_open = true where seq_no = 1"
        )
        data = next(line for line in lines if line.startswith("data:"))
    values = json.loads(data.removeprefix("data:"))
    assert [value for _, value in values["sr_vac_ccg_1/pressure"]] == [3e-8]
    assert [value for _, value in values["sr_vac/valve_open"]] == [True]


def test_tables_events_and_losses(web, anyone: httpx.Client) -> None:
    web.server.sql(
        "insert into ringlog.event (spool, number, table_name, time, kind, message)"
        " values ('s', 1, 'sr_rf', now(), 'gap', 'the source was silent')"
    )
    found = anyone.get("/api/v1/tables").json()["tables"]
    assert [table["table_name"] for table in found] == ["bpm", "every_type", "sr_mag_ps", "sr_rf", "sr_vac"]
    events = anyone.get("/api/v1/events", params={"table": "sr_rf"}).json()
    assert [(event["kind"], event["message"]) for event in events] == [("gap", "the source was silent")]
    assert anyone.get("/api/v1/losses").json() == []


def test_disk(anyone: httpx.Client) -> None:
    found = anyone.get("/api/v1/disk").json()
    assert 0 < found["free"] < found["total"]
    assert found["database"] > sum(log["bytes"] for log in found["logs"]) > 0
    assert {log["table_name"] for log in found["logs"]} >= {"every_type", "sr_rf"}


def test_the_description_has_every_path(anyone: httpx.Client) -> None:
    description = anyone.get("/api/v1/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    routes = {route.path.replace(":path", "") for route in plain_routes()}
    assert {*description["paths"]} == routes - {"/api/v1/openapi.json"}
    for path, methods in description["paths"].items():
        if "{" not in path and "get" in methods:
            # described paths exist
            assert anyone.get(path).status_code in (200, 400, 404), path


# the scalars of each waveform, computed by hand: [0.5, -2.5, 4.0], none, 0 1 2 3 4 5 6 0 1 … of 100 points
SCALARS = {
    "min": [-2.5, None, 0.0],
    "max": [4.0, None, 6.0],
    "mean": [2 / 3, None, (14 * 21 + 0 + 1) / 100],
    "rms": [((0.25 + 6.25 + 16) / 3) ** 0.5, None, ((14 * 91 + 0 + 1) / 100) ** 0.5],
    "length": [3.0, 0.0, 100.0],
}


@pytest.mark.usefixtures("waveforms")
def test_scalars_of_waveforms(anyone: httpx.Client) -> None:
    span = {"from": "2026-03-01T12:00:00Z", "to": "2026-03-01T12:00:10Z"}
    for scalar, expected in SCALARS.items():
        name = f"bpm/turns.{scalar}"
        (found,) = anyone.get("/api/v1/data", params={"signal": name} | span).json()["signals"]
        assert [value for _, value in found["samples"]] == pytest.approx(expected)
        assert (found["signal"], found["type"]) == (name, "double")
        (trend,) = anyone.get("/api/v1/trend", params={"signal": name} | span).json()["signals"]
        assert trend["mean"] == pytest.approx(expected)
        (at,) = anyone.get("/api/v1/at", params={"signal": name, "time": "2026-03-01T12:00:01Z"}).json()[
            "signals"
        ]
        assert at["samples"][0][1] == pytest.approx(expected[0])
    csv = anyone.get("/api/v1/data", params={"signal": "bpm/turns.length", "format": "csv"} | span)
    assert [line.split(",")[1] for line in csv.text.splitlines()] == ["value", "3.0", "0.0", "100.0"]


def test_names_of_scalars(web, anyone: httpx.Client) -> None:
    found = anyone.get("/api/v1/signals", params={"search": "turns.rms"}).json()
    assert [(each["signal"], each["type"]) for each in found] == [("bpm/turns.rms", "double")]
    assert anyone.get("/api/v1/signals/bpm/turns.mean").json()["places"][0]["column"] == "turns"
    # not a waveform, and an unknown name
    for name in ("bpm/x.rms", "bpm/turns.median", "nothing.rms"):
        assert anyone.get("/api/v1/data", params={"signal": name}).status_code == 404
    put = "select ringlog.put_bpm(row (6, %s, null, null, null, null, %s, 0)::online.bpm)"
    with psycopg.connect(web.server.dsn) as connection:
        columns = "select attname from pg_attribute where attrelid = 'online.bpm'::regclass and attnum > 0"
        order = [name for (name,) in connection.execute(columns + " order by attnum")]
        assert order == ["seq_no", "time", "x", "x_set", "x_severity", "x_status", "turns", "nanoseconds"]
        connection.execute(put, ["2026-06-01T12:00:00Z", [3.0, -4.0]])
    (newest,) = anyone.get("/api/v1/latest", params={"signal": "bpm/turns.rms"}).json()
    assert newest["value"] == pytest.approx(12.5**0.5)
    with anyone.stream(
        "GET", "/api/v1/live", params={"signal": "bpm/turns.max", "since": "2026-06-01"}
    ) as live:
        for line in live.iter_lines():
            if line.startswith("data: "):
                assert json.loads(line[6:])["bpm/turns.max"][-1][1] == 3.0
                break
