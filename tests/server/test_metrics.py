"""The server's metrics, read as by Prometheus."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import psycopg
import pymssql
import pytest

from ringlog.clients import Unanswered, call, connect
from ringlog.commands.status import lasting
from ringlog.gateway import Gateway, LastCall
from ringlog.monitoring import callers
from ringlog.monitoring.callers import callers_kept
from ringlog.monitoring.exported import Watch
from ringlog.monitoring.watching import Space
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.logins import Right, add_login
from servers import READER, WRITER, Login, RunningServer, free_port, ringlog, serving
from waiting import PATIENCE, wait_until


def read(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        return str(answer.read(), "utf-8")


def count(text: str, line: str) -> float:
    (value,) = [found.rsplit(" ", 1)[1] for found in text.splitlines() if found.startswith(line + " ")]
    return float(value)


@pytest.fixture
def port() -> int:
    """The address of the server's metrics."""
    return free_port()


@pytest.fixture
def counted(data: Path, port: int) -> Iterator[RunningServer]:
    """A server without any call yet."""
    with serving(data, "--metrics", f"127.0.0.1:{port}") as server:
        yield server


def test_calls_clients_and_refused_logins_are_counted(counted: RunningServer, port: int) -> None:
    before = count(read(port), "ringlog_gateway_refused_logins_total")
    with connect(f"tds://{READER.user}@127.0.0.1:{counted.port}", READER.password) as connection:
        call(connection, "find_signals", "%")
        call(connection, "find_signals", "%")
        text = wait_until(lambda: count(found := read(port), "ringlog_gateway_clients") == 1 and found)
    with pytest.raises(Unanswered, match=r"Login failed|refused the login"):
        connect(f"tds://{READER.user}@127.0.0.1:{counted.port}", "wrong")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        read(port, "/")
    later = read(port)
    assert count(text, 'ringlog_gateway_call_seconds_count{procedure="ringlog.find_signals"}') == 2
    assert count(text, "ringlog_gateway_refused_logins_total") == before
    assert count(later, "ringlog_gateway_refused_logins_total") > before
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
    # procedures without calls have no metrics
    assert "sp_help" not in text
    assert "put_sr_vac" not in text
    assert len(text) < 40_000


def compilations(port: int) -> tuple[float, float]:
    """The numbers of compiled texts, and of texts that needed no compilation."""
    text = read(port)
    compiled = count(text, "ringlog_gateway_batch_compilation_seconds_count")
    return compiled, count(text, "ringlog_gateway_batch_compilation_reuses_total")


def test_a_text_is_compiled_once_whatever_its_literals(counted: RunningServer, port: int) -> None:
    with counted.connect(WRITER.user, WRITER.password) as connection:
        cursor = connection.cursor()
        before = compilations(port)
        for seq_no in range(1, 6):
            cursor.execute(f"exec put_every_type {seq_no}, '2024-05-06 07:08:09'")
            cursor.execute(
                f"declare @n int exec @n = put_every_type {seq_no}, '2024-05-06 07:08:10' select @n"
            )
            put = "exec put_every_type @n, '2024-05-06 07:08:11'"
            cursor.callproc("sp_executesql", (put, "@n int", seq_no))
            cursor.execute("set nocount on if @@trancount > 0 commit")
        # four texts, each five times with other literals or parameters
        assert compilations(port) == (before[0] + 4, before[1] + 16)
        for number in range(5):
            cursor.execute("select count(*) from sr_rf")
            cursor.fetchall()
            cursor.callproc("sp_executesql", ("select @n + 1", "@n int", number))
            assert cursor.fetchall() == [(number + 1,)]
        assert compilations(port) == (before[0] + 6, before[1] + 24)


def test_reading_the_metrics_takes_one_connection(
    counted: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    connect_to = psycopg.connect

    def connecting(*arguments: Any, **options: Any) -> psycopg.Connection:
        taken.append(arguments)
        return connect_to(*arguments, **options)

    monkeypatch.setattr(psycopg, "connect", connecting)
    watch = Watch(counted.dsn, counted.data)
    text = watch.text()
    assert "ringlog_table_silent" in text
    assert "ringlog_disk_free_bytes" in text
    assert watch.text() == text
    assert len(taken) == 1


@pytest.mark.long
def test_an_address_in_use_for_metrics_is_named(server: RunningServer, data: Path) -> None:
    taken = f"127.0.0.1:{server.port}"
    refused = ringlog(
        *("serve", "--data", data, "--facility", Path(__file__).parents[1] / "harness" / "facility.toml"),
        *("--listen", "127.0.0.1:0", "--memory", "512MB", "--pg-port", str(free_port())),
        *("--metrics", taken),
    )
    assert refused.returncode == 1
    assert f"cannot listen on {taken}" in refused.stderr
    assert "--metrics" in refused.stderr


def test_the_last_caller_and_the_last_error_of_each_table_are_exported(
    counted: RunningServer, port: int
) -> None:
    """A program that never claims is identified by the names that it sent at login, however strange."""
    program = 'old "daq" [/bold]'
    with counted.connect(WRITER.user, WRITER.password, appname=program) as connection:
        cursor = connection.cursor()
        with pytest.raises(pymssql.Error):
            cursor.execute("exec put_sr_mag_ps 100000, '2024-05-06 07:08:09'")
        cursor.execute("exec put_sr_mag_ps 1, '2024-05-06 07:08:09'")

    def of_magnets() -> dict[str, Any]:
        ran = ringlog("status", "--json", "--data", counted.data)
        (state,) = (each for each in json.loads(ran.stdout)["tables"] if each["table_name"] == "sr_mag_ps")
        return dict(state)

    state = wait_until(lambda: (found := of_magnets())["called"] and found)
    assert (state["program"], state["login"], state["number"]) == (program, WRITER.user, 547)
    assert "seq_no 100000 is outside 1 to" in state["error"]
    assert state["failed"] <= state["called"]
    shown = ringlog("status", "--data", counted.data).stdout
    assert f"{WRITER.user}@{state['host']} {program}" in shown
    names = f'host="{state["host"]}",login="{WRITER.user}",program="old \\"daq\\" [/bold]"'
    line = f'ringlog_table_last_call_timestamp_seconds{{{names},table="sr_mag_ps"}}'
    text = wait_until(lambda: line in (found := read(port)) and found)
    assert 'ringlog_table_last_error_timestamp_seconds{number="547",table="sr_mag_ps"}' in text


@pytest.mark.long
def test_a_call_with_a_time_ahead_counts_as_arrived(counted: RunningServer) -> None:
    messages: list[str] = []
    with connect(
        f"tds://{counted.writer.user}@{counted.host}:{counted.port}", counted.writer.password
    ) as connection:
        connection._conn.set_msghandler(lambda *message: messages.append(message[-1].decode()))
        ahead = datetime.now(UTC) + timedelta(hours=9)
        call(connection, "put_sr_mag_ps", seq_no=1, time=ahead)

    def state() -> dict[str, Any] | None:
        shown = json.loads(ringlog("status", "--json", "--data", counted.data).stdout)
        (found,) = (each for each in shown["tables"] if each["table_name"] == "sr_mag_ps")
        return found if found["ahead"] and found["silent"] is False else None

    found = wait_until(state)
    assert (found["age"] < 60, found["ahead"] > 30_000) == (True, True)
    assert any("ahead of the server's clock: is it of another time zone?" in each for each in messages), (
        messages
    )


def test_how_long_the_disk_lasts_is_shown_within_limits() -> None:
    assert lasting(Space(5_000_000_000, None, None)) == ", its forecast is not known yet"
    assert lasting(Space(5_000_000_000, 2.5e9, 2.0)) == ", 2 days at 2500.0 MB a day"
    assert lasting(Space(5_000_000_000, 100.0, 5e7)) == ", more than 100 years at 0.0 MB a day"


def test_a_table_is_watched_whoever_writes_it(counted: RunningServer, port: int) -> None:
    """A client that never claims is visible by its rows; the probes show whether the server is available."""
    with psycopg.connect(counted.dsn) as admin:
        admin.execute(
            "select ringlog.put_every_type("
            "row (1, now() + interval '1 hour', 1, 1, 1, 1, 1, true, '')::online.every_type)"
        )
        admin.execute("select ringlog.put_sr_rf(row (1, now() - interval '1 hour', 1, 1)::online.sr_rf)")
        admin.execute("select ringlog.put_sr_rf(row (2, '1970-01-01', 1, 1)::online.sr_rf)")
        # in the first hour of a Monday the other row, too, may be of a week before the server's first
        ((in_default,),) = admin.execute("select count(*) from log.sr_rf_default").fetchall()
        assert in_default in (1, 2)
    ran = ringlog("status", "--json", "--data", counted.data)
    shown = ringlog("status", "--data", counted.data)
    assert (ran.returncode, shown.returncode) == (1, 1)
    states = {state["table_name"]: state for state in json.loads(ran.stdout)["tables"]}
    # the arrival of a row whose time is ahead is unknown, unless it came over TDS
    assert [states[name]["silent"] for name in ("every_type", "sr_rf", "sr_vac")] == [None, True, True]
    assert 3500 < states["every_type"]["ahead"] <= 3600
    assert states["sr_rf"]["ahead"] is None
    assert states["sr_rf"]["in_default"] == in_default
    assert 3600 <= states["sr_rf"]["age"] < 3900
    assert json.loads(ran.stdout)["space"]["free"] > 0
    assert re.search(r"^ *every_type +ahead of the clock +20", shown.stdout, re.M), shown.stdout
    assert re.search(r"^ *sr_vac +never written +- ", shown.stdout, re.M), shown.stdout
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Accept": "text/plain;version=0.0.4"}
    )

    def plain() -> str:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            return str(answer.read(), "utf-8")

    # the same answer is served again for some seconds
    ahead = 'ringlog_table_ahead_seconds{table="every_type"}'
    text = wait_until(lambda: ahead in (found := plain()) and count(found, ahead) > 3000 and found)
    assert 'ringlog_table_silent{table="every_type"}' not in text
    assert count(text, 'ringlog_table_ahead_seconds{table="sr_rf"}') == 0
    assert "# EOF" not in text
    assert count(text, "ringlog_up") == 1
    assert count(text, 'ringlog_table_silent{table="sr_rf"}') == 1
    assert 3600 <= count(text, 'ringlog_table_newest_row_age_seconds{table="sr_rf"}') < 3900
    assert count(text, 'ringlog_table_default_partition_rows{table="sr_rf"}') == in_default
    assert 'ringlog_table_newest_row_age_seconds{table="sr_vac"}' not in text
    for probe, words in (("healthz", b"alive\n"), ("readyz", b"ready\n")):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{probe}", timeout=PATIENCE) as answer:
            assert answer.read() == words
        head = urllib.request.Request(f"http://127.0.0.1:{port}/{probe}", method="HEAD")
        with urllib.request.urlopen(head, timeout=PATIENCE) as answer:
            assert (answer.status, answer.read()) == (200, b"")


# --- `ringlog status` and the metrics about the server itself ---

TIME = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d"


def test_status_first_shows_whether_the_server_runs(data: Path) -> None:
    with serving(data) as server:
        running = wait_until(
            lambda: (shown := ringlog("status", "--data", data).stdout).startswith("ringlog serve") and shown
        )
        assert re.match(rf"ringlog serve runs since {TIME}\n", running)
        (state,) = json.loads(ringlog("status", "--json", "--data", data).stdout)["servers"]
        assert (state["host"], state["note"]) == (None, "")
    stopped = ringlog("status", "--data", data)
    assert stopped.returncode == 1
    assert re.fullmatch(rf"ringlog serve does not run: it stopped at {TIME} UTC\n", stopped.stdout)
    # nothing was started for that
    assert "starting PostgreSQL" not in stopped.stderr
    found = json.loads(ringlog("status", "--json", "--data", data).stdout)
    assert (found["servers"], found["tables"]) == ([], [])
    assert found["latest"]["until"] is not None
    with serving(data, facility=None) as server:
        add_login(server.dsn, "pretender", [Right.READER], "secret")
        pretender = server.dsn_of(Login("pretender", "secret"))
        with (
            psycopg.connect(pretender, application_name="ringlog serve 20200101T000000Z HTTP is down"),
            psycopg.connect(pretender, application_name="ringlog catalogue, writers not first"),
        ):
            runs = "ringlog serve runs"
            shown = wait_until(lambda: runs in (found := ringlog("status", "--data", data).stdout) and found)
        assert shown.count(runs) == 1
        assert "HTTP is down" not in shown
        assert "writers not first" not in shown
        postgres = Postgres(data).postmaster()
        server.process.kill()
        server.process.wait()
        assert postgres is not None
        psutil.wait_procs([postgres], PATIENCE)
    ended = ringlog("status", "--data", data)
    assert ended.returncode == 1
    words = rf"ringlog serve does not run: it ran since {TIME} UTC and ended without a stop\n"
    assert re.fullmatch(words, ended.stdout)


@pytest.mark.long
def test_a_log_that_is_not_archived_and_the_age_of_the_backup_are_metrics(data: Path) -> None:
    counts = free_port()

    def metrics() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{counts}/metrics", timeout=PATIENCE) as answer:
            return str(answer.read(), "utf-8")

    with serving(data, "--metrics", f"127.0.0.1:{counts}") as server:
        before = metrics()
        assert "ringlog_wal_archive_failing 0.0\n" in before
        assert "\nringlog_backup_age_seconds " not in before
        made = ringlog("backup", data.with_name("copies"), "--data", data)
        assert made.returncode == 0, made.stderr
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute("update ringlog.backup set made = made - interval '9 days'")
            admin.execute("alter system set archive_command = 'false'")
            admin.execute("select pg_reload_conf()")
            wait_until(
                lambda: (
                    admin.execute("select pg_switch_wal(), pg_logical_emit_message(true, '', '')")
                    and admin.execute("select failed_count > 0 from pg_stat_archiver").fetchone() == (True,)
                )
            )
        text = wait_until(lambda: "ringlog_wal_archive_failing 1.0\n" in (now := metrics()) and now)
        (age,) = re.findall(r"^ringlog_backup_age_seconds (\S+)$", text, re.MULTILINE)
        assert 9 * 86_400 <= float(age) < 9 * 86_400 + PATIENCE
        doctor = json.loads(ringlog("doctor", "--json", "--data", data).stdout)
        what = [finding["what"] for finding in doctor]
        assert "the latest backup is 9 days old" in what
        assert any(words.startswith("archiving the write-ahead log failed at 20") for words in what)


def test_a_writers_trouble_is_shown_with_its_time(data: Path) -> None:
    with serving(data) as server, psycopg.connect(server.dsn, autocommit=True) as admin:

        def reported(trouble: str | None) -> object:
            admin.execute("select ringlog.report_writer('sr_rf', 'spool', 'writing', %s)", [trouble])
            return admin.execute("select troubled from ringlog.writer").fetchall()[0][0]

        admin.execute(
            "insert into ringlog.writer (table_name, epoch, spool, name, since)"
            " values ('sr_rf', 1, 'spool', 'here', now())"
        )
        assert reported(None) is None
        first = reported("disk full")
        assert first is not None
        assert reported("disk full") == first
        assert reported("disk gone") > first  # type: ignore[operator]
        shown = ringlog("status", "--data", data).stdout
        assert re.search(rf"sr_rf: writer here since {TIME} \(\d+ s ago\): disk gone", shown)
        (writer,) = json.loads(ringlog("status", "--json", "--data", data).stdout)["writers"]
        assert (writer["table_name"], writer["trouble"]) == ("sr_rf", "disk gone")
        assert reported(None) is None


# --- the last callers are noted by every gateway of a database ---


def test_they_are_noted_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two gateways that record the same procedures in different orders would wait for each other's rows."""
    noted: list[list[str]] = []

    def note(_: str, calls: list[LastCall]) -> None:
        noted.append([call.procedure for call in calls])

    monkeypatch.setattr(callers, "_note", note)
    made: list[Any] = [SimpleNamespace(procedure=f"ringlog.put_{name}", called=1.0) for name in "cab"]
    with callers_kept(cast(Gateway, SimpleNamespace(last_calls=lambda: made)), ""):
        pass
    assert noted == [["ringlog.put_a", "ringlog.put_b", "ringlog.put_c"]]
