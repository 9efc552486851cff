"""`ringlog bench`, as a command and as its C clients."""

import itertools
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from case_tables import cases
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError, LoadTestUsageError
from ringlog.loadtest.experiment.facility import (
    Tables,
    half,
    main_tables,
    old_week,
    ten_years,
    write_facility,
)
from ringlog.loadtest.experiment.server import WRITER, Server, log_rows, serving
from ringlog.loadtest.experiment.verification import SETS, reading, verify
from ringlog.server.embedded.postgres import Postgres
from ringlog_lab.bench import history as bench_history
from ringlog_lab.bench.during_archiving import measure_during_archiving
from ringlog_lab.bench.half_load import CHANNELS, measure_half_load
from ringlog_lab.bench.history import SPANS, measure_history
from ringlog_lab.bench.old_weeks import Size, measure_old_weeks
from ringlog_lab.bench.reports.comparison import compare
from ringlog_lab.bench.reports.report import tables as report_tables
from ringlog_lab.bench.reports.results import Results
from ringlog_lab.bench.reports.targets import TARGETS, verdicts
from ringlog_lab.bench.text import usual
from ringlog_lab.native_load import CONTENDERS, DIRECT, GATEWAY, PIPELINED, TDS5, Contender, Load, Stand
from ringlog_lab.programs import build
from ringlog_lab.stolen import Stolen
from servers import RINGLOG, ringlog, run
from waiting import is_alive, wait_until

# servers of their own, on a machine that others may use too
pytestmark = pytest.mark.timeout(900)

# rows of the log that is read
ROWS = 5_000


def tables(name: str) -> Tables:
    return Tables(f"{name}_", 6, 7, rows=90)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def server(temporary_directory: Path) -> Iterator[Server]:
    """A server for loads; each test has its own tables."""
    facility = temporary_directory / "bench.toml"
    write_facility(facility, [*map(tables, "abcdefghi"), ten_years(), half(), old_week()])
    with serving(facility, temporary_directory / "bench", keep=False) as running:
        yield running


@pytest.fixture
def stand(programs: Path, server: Server) -> Stand:
    return Stand(programs, server)


@pytest.mark.parametrize(
    ("name", "contender", "connections"),
    [("a", TDS5, 6), ("b", CONTENDERS["tds74"], 9), ("c", DIRECT, 13), ("d", PIPELINED, 6)],
    ids=["a connection for each table", "one or two", "two or three", "two tables for a connection"],
)
def test_every_acknowledged_call_is_a_row_with_the_values_sent(
    stand: Stand, name: str, contender: Contender, connections: int
) -> None:
    measured = stand.run(Load(contender, tables(name), connections, seconds=0.4, warm=0.1), "write")
    assert 0 < measured.calls <= measured.acknowledged
    assert 0 < measured.p50 <= measured.p99 <= measured.p999 <= measured.max < 60
    stored = [log_rows(stand.server.administrator, table) for table in tables(name).names]
    assert sum(stored) == measured.acknowledged
    # the load is distributed evenly
    assert min(stored) > 0
    check = verify(stand.server, stand.acknowledged)
    assert (check.acknowledged, check.stored) == (measured.acknowledged, measured.acknowledged)
    assert check.compared > 0


@pytest.mark.parametrize("contender", [TDS5, PIPELINED], ids=lambda one: one.key)
def test_a_measurement_continues_until_an_answer(stand: Stand, contender: Contender) -> None:
    measured = stand.run(Load(contender, tables("i"), 1, seconds=1e-6, warm=0.0), "write")
    assert measured.calls > 0
    assert 1e-6 < measured.seconds < 60


def test_figures_of_a_long_history(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_history, "DAY_ROWS", 2000)
    monkeypatch.setattr(bench_history, "HALF_ROWS", 2000)
    figures = [*measure_history(server, str(tmp_path), 1, lambda _: None, days=2)]
    assert {one.name for one in figures if one.unit == "ms"} == {
        f"trend {signals} {span}" for signals in (1, 10) for span in SPANS
    }
    assert all(one.amount > 0 for one in figures)
    room = [one.amount for one in figures if one.unit == "bytes/value"]
    assert len(room) == 2
    # 8 and 4 bytes, and the data have noise
    assert 1 < room[0] < 8
    assert 0.1 < room[1] < 4


def test_figures_of_archived_weeks(temporary_directory: Path) -> None:
    folder = temporary_directory / "old_weeks"
    folder.mkdir(mode=0o755)
    results = Results("", "", {}, {"weeks": 3})
    results.old_weeks.extend(measure_old_weeks(folder, Size(3, 2, 5000), 1, lambda _: None))
    measured = [one for one in verdicts(results) if one.target.title.startswith("archived: ")]
    assert len(measured) == 8
    assert all(one.met is not None for one in measured)
    # the others are of all columns, or of PostgreSQL alone
    assert len(results.old_weeks) == 12
    assert all(one.amount > 0 for one in results.old_weeks if not one.name.startswith("a query"))
    assert "3 archived weeks" in [table.caption for table in report_tables(results)]


def test_figures_of_halfs_load(server: Server) -> None:
    figures = {one.name: one for one in measure_half_load(server, 1, 1, lambda _: None)}
    assert all(one.amount > 0 for one in figures.values())
    # 8 bytes a double, a row's head, seq_no and time for 100 of them; the key's pages
    assert 8 < figures["HALF's load, a value on the disk"].amount < 16
    assert "HALF's load, min max mean of 10 s from summaries of 100 channels" in figures
    assert sum(log_rows(server.administrator, name) for name in half().names) * 100 == 600 * CHANNELS


def test_writers_during_archiving(stand: Stand, tmp_path: Path) -> None:
    found = [
        *measure_during_archiving(
            stand, tables("h"), tmp_path, connections=6, seconds=0.5, rounds=1, doing=lambda _: None
        )
    ]
    assert [one.amount for one in found] == [0, 1]
    assert all(0 < one.writing.p99 <= one.writing.max for one in found)
    # a week that was left in the middle is in the log as before
    # 20,000 rows a second, and three seconds before
    assert log_rows(stand.server.administrator, old_week().names[0]) == 70_000


def test_a_load_continues_where_the_last_one_ended(stand: Stand) -> None:
    """On a slow machine it takes several until the ring has gone round; each is verified."""
    ring = "select count(time), min(seq_no), max(seq_no) from online.e_0"
    written, first, last = 0, 0, 0
    while written < 90:
        for contender in (TDS5, DIRECT):
            stand.run(Load(contender, tables("e"), 1, seconds=0.3, warm=0.0), "write")
        verify(stand.server, stand.acknowledged)
        written, first, last = stand.server.administrator.execute(ring).fetchone() or (0, 0, 0)
    assert (written, first, last) == (90, 1, 90)
    assert log_rows(stand.server.administrator, "e_0") >= 90


def test_a_lost_row_and_an_altered_value_are_found(stand: Stand) -> None:
    stand.run(Load(DIRECT, tables("f"), 6, seconds=0.2, warm=0.0), "write")
    verify(stand.server, stand.acknowledged)
    administrator = stand.server.administrator
    administrator.execute("update log.f_1 set current_3 = current_3 + 1")
    with pytest.raises(LoadTestError, match="f_1 has a row with other values than were sent"):
        verify(stand.server, stand.acknowledged)
    administrator.execute("delete from log.f_2 where time = (select max(time) from log.f_2)")
    with pytest.raises(
        LoadTestError, match=r"calls on the tables f_0 … were acknowledged, and their logs have"
    ):
        verify(stand.server, stand.acknowledged)


@pytest.mark.parametrize("contender", [DIRECT, TDS5, CONTENDERS["tds74"]], ids=lambda one: one.key)
def test_a_refused_call_ends_the_run_with_its_reason(stand: Stand, contender: Contender) -> None:
    too_long = Tables("i_", 6, 7, rows=300)
    with pytest.raises(LoadTestError, match="outside 1 to 90"):
        stand.run(Load(contender, too_long, 1, seconds=20, warm=0.0), "write")


def options(port: int, prefix: str) -> list[str]:
    """Options of a C client for tables of this module."""
    return ["-p", str(port), "-u", WRITER, "-x", prefix, "-c", "7", "-t", "6", "-r", "90", "-n", "4"]


def test_a_client_of_many_tables_and_threads(programs: Path, server: Server) -> None:
    """More than the benchmark requests: tables distributed over fewer connections, connections over
    threads.
    """
    command = [programs / "tdsload", *options(server.port, "g_"), "-v", "7.4", "-j", "2", "-s", "0.3"]
    done = run(*command, stdin=f"{server.password}\n")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    verify(server, {tables("g"): result["acknowledged"]})
    assert min(log_rows(server.administrator, table) for table in tables("g").names) > 0


@pytest.mark.parametrize("program", ["pgload", "tdsload"])
def test_a_wrong_password_is_reported(programs: Path, server: Server, program: str) -> None:
    port = server.port if program == "tdsload" else server.postgres_port
    refused = run(programs / program, *options(port, "a_"), stdin="wrong\n")
    assert refused.returncode == 1
    assert re.search("login failed|authentication failed", refused.stderr, re.IGNORECASE)
    assert "wrong" not in refused.stderr


def test_values_use_all_bits_of_a_real() -> None:
    values = {
        reading(table, chosen, column)
        for table in range(60)
        for chosen in range(SETS)
        for column in range(200)
    }
    assert len(values) > 0.99 * 60 * SETS * 200
    assert -8192 <= min(values) < -8000
    assert 8000 < max(values) < 8192


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--only", "write,speed"], "--only: there is no part 'speed'"),
        (["--compare", "missing.json"], "missing.json cannot be read"),
        (["--compare", __file__], "has no results of ringlog bench"),
        (["--data", "/tmp"], "/tmp exists: the benchmark makes a data directory of its own"),
    ],
)
def test_wrong_requests_are_refused_before_anything_runs(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    refused = ringlog("bench", "--out", tmp_path / "out", *arguments)
    assert refused.returncode == 2
    assert complaint in refused.stderr
    assert not (tmp_path / "out").exists()


def test_results_of_another_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"format": 0}')
    with pytest.raises(LoadTestUsageError, match="was written by another version"):
        Results.read(tmp_path / "old.json")


@pytest.mark.parametrize(("message", "package"), cases(__file__, "missing_requirements_of_a_build_are_named"))
def test_missing_requirements_of_a_build_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, package: str
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\necho '{message}' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(LoadTestError, match=package):
        build(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LoadTestError, match=r"make is missing, .* apt install make"):
        build(tmp_path)


@pytest.fixture(scope="module")
def finished(temporary_directory: Path) -> tuple[subprocess.CompletedProcess[str], Path, Path]:
    """A short run of the whole command: its output, its data directory and its report."""
    data, out = temporary_directory / "bench-data", temporary_directory / "bench-out"
    arguments = ["--seconds", "0.3", "--rounds", "1", "--columns", "12", "--connections", "8"]
    arguments += ["--only", "write,lone,memory,read,text", "--stall", "1"]
    arguments += ["--rows", str(ROWS)]
    message = run(RINGLOG, "bench", *arguments, "--data", data, "--out", out, timeout=900)
    return message, data, out


def test_a_run_has_its_figures(finished: tuple[subprocess.CompletedProcess[str], Path, Path]) -> None:
    message, _, out = finished
    assert message.returncode == 0, message.stderr
    results = Results.read(out / "bench.json")
    for one in CONTENDERS.values():
        [measured] = results.of("write", one.key)
        assert measured.calls > 0
        # longer where nothing was answered for so long
        assert 0.3 <= round(measured.seconds, 3) < 60
        assert measured.wal > 12 * 4 * measured.calls
        assert 0 < measured.clients < measured.seconds * measured.cores
        assert measured.backends <= measured.postgres * 1.05
        # the gateway's clock has ticks of 10 ms: with few calls they show nothing
        if measured.calls > 1000:
            assert measured.backends > 0
            # of loads straight to PostgreSQL nothing is asserted: the gateway's process has work of its own
            assert measured.gateway > 0 or one not in GATEWAY, one.title
        assert sum(calls for calls, _ in measured.by_second) == measured.calls
        assert max(longest for _, longest in measured.by_second) == pytest.approx(measured.max, abs=1e-6)
    for contender in ("tds5", "direct"):
        assert 1 <= round(results.of("stall", contender)[0].seconds, 3) < 60
    assert "| gateway, TDS 5.0 |" in (out / "bench.md").read_text().partition("## Stalls at full rate")[2]
    assert results.of("memory", "tds5")[0].connections == 120
    assert {(one.contender, one.rows) for one in results.readings} == {
        ("tds5", ROWS),
        ("tds74", ROWS),
        ("copy", ROWS),
    }
    texts = usual(main_tables(results.options["columns"]))
    assert {(one.text, one.contender) for one in results.timings} == {
        (text.key, contender)
        for text in texts
        for contender in ("tds74", "psycopg", *(() if text.changes else ("canned",)))
    }
    assert all(0 < one.p50 <= one.p99 for one in results.timings)
    assert all(one.count == 200 and 0 < one.seconds < 1 for one in results.compiling)
    assert [one.amount > 0 for one in results.disturbed if one.work == "texts"] == [False, True]
    unmeasured = [verdict.target.title for verdict in verdicts(results) if verdict.met is None]
    titles = [target.title for target in TARGETS]
    # parts history and archive did not run
    # this one is not either where no CPU of the backends was counted
    assert set(unmeasured) - {"gateway CPU ÷ CPU of PostgreSQL's backends"} == {
        "a trend of one signal, slowest",
        "a trend of ten signals, slowest",
        "a value of HALF's load in a file",
        "a value of SPring-8's reals in a file",
        "a file read as a whole",
        "one signal of a file",
        "p99 of puts beside the archive ÷ alone",
        *(title for title in titles if title.startswith("archived: ")),
    }
    report = (out / "bench.md").read_text()
    for words in ("| calls/s ÷ direct, one by one", "gateway, TDS 7.4", "pymssql, canned answer"):
        assert words in report
    for words in ("Targets", "calls acknowledged", "bench.json"):
        assert words in message.stdout


def test_every_acknowledged_call_of_a_run_is_in_the_logs(
    finished: tuple[subprocess.CompletedProcess[str], Path, Path],
) -> None:
    _, data, out = finished
    results = Results.read(out / "bench.json")
    assert results.check is not None
    beside = [one.writing for one in results.disturbed]
    acknowledged = sum(one.acknowledged for one in [*results.measurements, *beside])
    postgres = Postgres(data)
    with postgres.reachable(), psycopg.connect(postgres.conninfo()) as connection:
        stored = 0
        for number in range(60):
            query = sql.SQL("select count(*) from {}").format(sql.Identifier("log", f"ps_{number}"))
            row = connection.execute(query).fetchone()
            assert row is not None
            stored += row[0]
    assert stored == results.check.acknowledged == results.check.stored
    # the first filling of the rings is not a measurement, but it is counted
    assert 0 < acknowledged < stored


def test_a_run_beside_an_earlier_one(finished: tuple[subprocess.CompletedProcess[str], Path, Path]) -> None:
    _, _, out = finished
    earlier, now = Results.read(out / "bench.json"), Results.read(out / "bench.json")
    # a short run on a busy machine may have none
    earlier.measurements = [replace(one, gateway=0.05) for one in earlier.measurements]
    now.measurements = [
        replace(one, calls=2 * one.calls) if one.contender == TDS5.key else one
        for one in earlier.measurements
    ]
    changes = {row[0]: row[-1] for row in compare(earlier, now).rows}
    assert changes["gateway, TDS 5.0: calls/s"] == "+100.0 %"
    assert changes["gateway, TDS 5.0: CPU of the gateway, µs a call"] == "-50.0 %"
    assert changes["gateway, TDS 7.4: calls/s"] == "+0.0 %"
    assert changes["calls/s ÷ direct, one by one (gateway, TDS 5.0)"] == "+100.0 %"


@pytest.mark.parametrize("again", [False, True], ids=["once", "again and again"])
def test_an_interrupted_run_leaves_nothing_behind(temporary_directory: Path, again: bool) -> None:
    folder = temporary_directory / f"interrupted-{again}"
    folder.mkdir(mode=0o755)
    command = [RINGLOG, "bench", "--only", "write", "--columns", "3", "--out", folder / "out"]
    with subprocess.Popen(
        [str(word) for word in command], stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(folder)}
    ) as running:

        def has_a_server() -> bool:
            assert running.poll() is None
            return any(folder.glob("ringlog-bench-*/data/postgresql-18/postmaster.pid"))

        wait_until(has_a_server)
        children = psutil.Process(running.pid).children(recursive=True)
        assert children
        running.send_signal(signal.SIGINT)

        def has_ended() -> bool:
            if again:
                running.send_signal(signal.SIGINT)
            return running.poll() is not None

        wait_until(has_ended)
        assert running.returncode == 130
    wait_until(lambda: not any(is_alive(child.pid) for child in children))
    assert not [*folder.glob("ringlog-bench-*")]


MEASURED: dict[str, Any] = cases(__file__, "measured")


def test_verdicts(tmp_path: Path) -> None:
    """A figure at its bound is met; a miss of one dialect counts for both."""
    rates = {"direct": 1000, "pipelined": 1250, "tds5": 1000, "tds74": 999}
    content = {
        "format": 1,
        "commit": "",
        "started": "",
        "machine": {},
        "options": {},
        "measurements": [
            MEASURED | {"part": "write", "contender": key, "calls": calls} for key, calls in rates.items()
        ],
        "readings": [],
        "check": None,
    }
    (tmp_path / "made.json").write_text(json.dumps(content))
    results = Results.read(tmp_path / "made.json")
    by_title = {verdict.target.title: verdict for verdict in verdicts(results)}
    faster = by_title["calls/s ÷ direct, one by one"]
    assert faster.measured == {"tds5": 1.0, "tds74": 0.999}
    assert faster.text == "missed"
    limit = by_title["calls/s ÷ direct, pipelined; without clients' CPU"]
    assert limit.measured["tds5"] == pytest.approx(0.8)
    share = "gateway CPU ÷ CPU of PostgreSQL's backends"
    assert by_title[share].text == "met"
    assert by_title["rows/s read ÷ binary COPY"].text == "not measured"
    results.measurements = [replace(one, backends=0.0) for one in results.measurements]
    by_title = {verdict.target.title: verdict for verdict in verdicts(results)}
    assert by_title[share].text == "not measured"


def test_time_that_the_host_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`/proc/stat` counts it since the start of the machine: each second has the increase since the last."""
    counted = itertools.accumulate(itertools.count(1), initial=1000.0)
    monkeypatch.setattr("ringlog_lab.stolen._stolen", lambda: next(counted))
    with Stolen() as stolen:
        wait_until(lambda: len(stolen.seconds) >= 2)
    assert stolen.seconds[:2] == [1, 2]
