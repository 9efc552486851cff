"""The process that serves HTTP: it ends with its parent, is restarted, and never runs as root."""

import os
import re
import signal
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from ringlog.errors import ServerError
from ringlog.server.embedded.account import Account
from ringlog.server.processes.web import Web, settings, warn_of_role
from servers import RunningServer, free_port, ringlog, serving
from waiting import PATIENCE, is_alive, wait_until

NOWHERE = "host=127.0.0.1 port=1 dbname=none"


@pytest.mark.long
def test_one_that_is_started_again_at_the_moment_of_the_stop_ends_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = Web(settings("127.0.0.1", 0, NOWHERE))
    begin, starts = web._start, threading.Event()

    def begin_at_the_stop() -> None:
        starts.set()
        web._stop.wait()
        begin()

    with web.running():
        first = web.pid
        monkeypatch.setattr(web, "_start", begin_at_the_stop)
        os.kill(first, signal.SIGKILL)
        starts.wait()
    assert not is_alive(first)
    process = "ringlog.server.processes.web_process"
    assert not [child for child in psutil.Process().children() if process in child.cmdline()]


@pytest.mark.long
def test_one_that_does_not_understand_its_server_ends_for_it_to_start_another() -> None:
    web = Web(settings("127.0.0.1", 0, NOWHERE))
    with web.running():
        assert web._process is not None
        first = web._process
        assert first.stdin is not None
        first.stdin.write(b"no nodes\n")
        # with an exit code of its own: its end is not an abort
        assert first.wait(PATIENCE) == 0
        wait_until(lambda: web._process is not first)


def test_one_that_has_begun_serves_when_it_gets_its_settings_and_ends_without_them() -> None:
    with ExitStack() as stack:
        first, unused = Web.begin(stack), Web.begin(stack)
        with Web(settings("127.0.0.1", 0, NOWHERE), first).running() as web:
            assert web.pid == first.pid
        assert first.returncode == 0
    assert unused.returncode == -signal.SIGKILL


def web_process(server: int) -> psutil.Process | None:
    for child in psutil.Process(server).children():
        with suppress(psutil.NoSuchProcess):  # it has ended, or it is a zombie
            if "ringlog.server.processes.web_process" in child.cmdline():
                return child
    return None


def test_a_killed_process_is_restarted_and_reported_by_status_and_metrics(data: Path) -> None:
    http, counts = free_port(), free_port()

    def metrics() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{counts}/metrics", timeout=PATIENCE) as answer:
            return str(answer.read(), "utf-8")

    def answers() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{http}/api/v1/me", timeout=PATIENCE).close()
        except urllib.error.HTTPError as error:
            return error.code == 401
        except OSError:
            return False
        return False

    options = ("--http", f"127.0.0.1:{http}", "--metrics", f"127.0.0.1:{counts}")
    with serving(data, *options) as server:
        assert "ringlog_http_up 1.0\nringlog_http_restarts_total 0.0\n" in re.sub("#.*\n", "", metrics())
        first = wait_until(lambda: web_process(server.process.pid))
        first.kill()
        second = wait_until(
            lambda: (found := web_process(server.process.pid)) and found.pid != first.pid and found
        )
        # at any moment of its start
        second.kill()
        wait_until(answers)
        assert server.process.poll() is None
        assert "ringlog_http_restarts_total 2.0\n" in metrics()
        wait_until(lambda: "HTTP runs, 2 restarts" in ringlog("status", "--data", data).stdout)
    log = data.with_name(data.name + ".stderr").read_text()
    assert "the process that serves HTTP has ended (code -9); it is started again in 1 s" in log


@pytest.mark.long
def test_one_that_dies_while_it_starts_for_the_first_time_is_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    web = Web(settings("127.0.0.1", 0, NOWHERE))
    monkeypatch.setattr("ringlog.server.processes.supervised.sys.executable", "/bin/false")
    with web.running():
        assert not web.state.up
        wait_until(lambda: web.state.restarts == 2)
        monkeypatch.undo()
        wait_until(lambda: web.state.up)
        assert int(web.address.rpartition(":")[2]) > 0
    assert "ended while it started (code 1); starting it again" in caplog.text
    # the pause grows
    assert "the next try is in 2 s" in caplog.text


@pytest.mark.long
def test_a_stop_during_answers_is_no_fault(data: Path) -> None:
    port = free_port()
    with ExitStack() as clients, serving(data, "--http", f"127.0.0.1:{port}") as server:
        live = f"http://127.0.0.1:{port}/api/v1/live?signal=sr_rf/power"
        login = (server.reader.user, server.reader.password)
        answer = clients.enter_context(httpx.stream("GET", live, auth=login))
        assert answer.status_code == 200, answer.read()
    log = data.with_name(data.name + ".stderr").read_text()
    assert "Traceback" not in log, log


def test_a_role_that_does_not_exist_is_warned_of(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_role(server.dsn, server.reader.user)
    assert not caplog.records
    warn_of_role(server.dsn, "displya")
    assert "--http-role displya: there is no such login" in caplog.text
    assert "ringlog user add displya --reader" in caplog.text


def test_an_address_in_use_stops_the_start(data: Path) -> None:
    with Web(settings("127.0.0.1", 0, NOWHERE)).running() as taken:
        port = int(taken.address.rpartition(":")[2])
        second = Web(settings("127.0.0.1", port, NOWHERE))
        words = f"cannot listen on 127.0.0.1:{port}: Address already in use. Name another address with --http"
        with pytest.raises(ServerError, match=words), second.running():
            pass


def test_it_never_runs_as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    with Web(settings("127.0.0.1", 0, NOWHERE)).running() as web:
        uids = psutil.Process(web.pid).uids()
    assert 0 not in (uids.real, uids.effective, uids.saved)

    class Closed(Account):
        def can(self, right: str, path: Path) -> bool:
            return path == Path("/")

    monkeypatch.setattr("ringlog.server.processes.web.os.geteuid", lambda: 0)
    monkeypatch.setattr("ringlog.server.processes.web.system_account", lambda: Closed("ringlog", 999, 999))
    words = r"HTTP does not run as root, and the account ringlog cannot read .*/os\.py: .*/opt/.*chmod o\+rx"
    with pytest.raises(ServerError, match=words):
        settings("127.0.0.1", 0, NOWHERE)
