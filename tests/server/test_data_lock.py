"""The lock of a data directory: a server waits for commands, and commands for one another."""

import fcntl
import json
import logging
import os
import pwd
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from ringlog.errors import ServerError
from ringlog.server.embedded.account import Account, account_for
from ringlog.server.embedded.data_lock import SERVING, held, joined
from ringlog.server.embedded.postgres import Postgres
from servers import RINGLOG, serving
from waiting import wait_until

pytestmark = pytest.mark.long


def holder(data: Path) -> int | None:
    text = (data / SERVING).read_text()
    return int(json.loads(text)["pid"]) if text else None


@contextmanager
def halted_command(data: Path) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """A `ringlog verify` that has started PostgreSQL on a stopped data directory, has done its work and waits
    for another command that uses it; and a function that ends the other command."""
    log = data.with_name("verify.log")
    with ExitStack() as other, log.open("w") as output:
        other.enter_context(joined(data, account_for(data)))
        words = [RINGLOG, "verify", "--data", data]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=output) as command:
            try:
                wait_until(lambda: "another command uses this PostgreSQL: waiting" in log.read_text())
                assert holder(data) == command.pid
                yield command, other.close
            finally:
                other.close()


@pytest.fixture
def stopped(data: Path) -> Path:
    """A data directory whose server has stopped."""
    with serving(data):
        pass
    return data


def test_a_command_gives_way_to_a_server(stopped: Path) -> None:
    with halted_command(stopped) as (command, let_go_on), serving(stopped) as server:
        assert command.poll() is None
        assert holder(stopped) == server.process.pid
        assert server.sql("select count(*) from ringlog.logged_table")[0] != (0,)
        let_go_on()
        assert command.wait() == 0
        assert holder(stopped) == server.process.pid


def test_a_command_in_the_middle_of_its_work_gives_way(stopped: Path) -> None:
    """Its statement would run for minutes."""
    begun = threading.Event()
    errors: list[Exception] = []

    def command() -> None:
        postgres = Postgres(stopped)
        try:
            with postgres.reachable(), psycopg.connect(postgres.conninfo()) as connection:
                begun.set()
                connection.execute("select pg_sleep(600)")
        except ServerError as error:
            errors.append(error)

    thread = threading.Thread(target=command)
    thread.start()
    assert begun.wait(100)
    with serving(stopped) as server:
        thread.join()
        assert holder(stopped) == server.process.pid
    assert "has given way to it: run the command again" in str(errors[0])


def test_a_holder_that_has_removed_its_name_is_about_to_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is just ending must not prevent the start of a server."""
    account = pwd.getpwuid(os.geteuid())
    ending = (tmp_path / SERVING).open("a+")
    fcntl.flock(ending, fcntl.LOCK_EX)
    # it releases the lock after the other has found it
    monkeypatch.setattr("ringlog.server.embedded.data_lock.time.sleep", lambda _: ending.close())
    with held(tmp_path, Account(account.pw_name, account.pw_uid, account.pw_gid), serves=True):
        assert ending.closed
        assert holder(tmp_path) == os.getpid()


def test_a_server_that_waits_can_be_stopped(stopped: Path, tmp_path: Path) -> None:
    locked = held(stopped, account_for(stopped), serves=False)
    with locked, (tmp_path / "log").open("w") as log:
        words = [RINGLOG, "serve", "--data", stopped, "--listen", "127.0.0.1:0"]
        with subprocess.Popen(words, stderr=log, stdout=subprocess.PIPE, text=True) as server:
            wait_until(lambda: "Waiting until it ends" in (tmp_path / "log").read_text())
            server.send_signal(signal.SIGTERM)
            assert server.communicate()[0] == "stopped\n"
            assert server.returncode == 0


def test_the_command_that_has_started_postgresql_stops_it_with_the_last_one(
    stopped: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first_reads, second_reads, second_ends = (threading.Event() for _ in range(3))
    found: list[object] = []

    def first() -> None:
        with Postgres(stopped).reachable():
            first_reads.set()
            second_reads.wait()

    def second() -> None:
        postgres = Postgres(stopped)
        with postgres.reachable(), psycopg.connect(postgres.conninfo()) as connection:
            second_reads.set()
            second_ends.wait()
            found.append(connection.execute("select 1").fetchone())

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert first_reads.wait(100)
    threads[1].start()
    wait_until(lambda: "another command uses this PostgreSQL" in caplog.text)
    second_ends.set()
    for thread in threads:
        thread.join()
    assert found == [(1,)]
    assert Postgres(stopped).postmaster() is None
