"""The embedded PostgreSQL: start, stop, recovery, and refusals."""

import logging
import os
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from ringlog.errors import ServerError
from ringlog.server.embedded import settings
from ringlog.server.embedded.data_lock import SERVED, SERVING
from ringlog.server.embedded.postgres import Postgres, Stopped, _stop_child
from servers import TEST_MEMORY, free_port

pytestmark = pytest.mark.long


def keep_a_row(postgres: Postgres) -> None:
    with psycopg.connect(postgres.conninfo("postgres")) as connection:
        connection.execute("create table kept as select 1 as n")


def rows(postgres: Postgres) -> list[int]:
    with psycopg.connect(postgres.conninfo("postgres")) as connection:
        return [row[0] for row in connection.execute("select n from kept order by n")]


def test_data_and_port_survive_a_stop(data: Path) -> None:
    postgres = Postgres(data)
    port = free_port()
    with postgres.running(memory=TEST_MEMORY, port=port):
        keep_a_row(postgres)
    assert postgres.postmaster() is None
    with postgres.running(memory=TEST_MEMORY):
        assert postgres.port == port
        assert rows(postgres) == [1]


def test_a_backend_keeps_the_memory_of_a_statement_for_the_next(data: Path) -> None:
    """Otherwise the kernel zeroes it again each time, which took a fifth of the time of a trend."""
    postgres = Postgres(data)
    with (
        postgres.running(memory=TEST_MEMORY, port=free_port()),
        psycopg.connect(postgres.conninfo("postgres"), autocommit=True) as connection,
    ):

        def faults() -> int:
            # minflt (proc_pid_stat(5)), after the name in brackets
            text = Path(f"/proc/{connection.info.backend_pid}/stat").read_text()
            return int(text.rpartition(")")[2].split()[7])

        def ask() -> int:
            before = faults()
            # some MB of sorted rows
            rows = "select n from generate_series(1, 20000) as n order by -n offset 0"
            connection.execute(f"select count(*) from ({rows}) as sorted")
            return faults() - before

        for _ in range(10):
            ask()
        assert min(ask() for _ in range(10)) < 50


def test_committed_rows_survive_kill_9_of_every_process(data: Path) -> None:
    postgres = Postgres(data)
    with postgres.running(memory=TEST_MEMORY, port=free_port()) as process:
        keep_a_row(postgres)
        server = psutil.Process(process.pid)
        for one in [server, *server.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):  # a session that ends
                one.kill()
    with postgres.running(memory=TEST_MEMORY):
        assert rows(postgres) == [1]


def test_a_stop_without_progress_is_ended_at_once(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ringlog.server.embedded.shutdown._LOOK", 0.2)
    # PostgreSQL has written that it stops
    monkeypatch.setattr("ringlog.server.embedded.shutdown._STANDSTILL_STOPPING", 1.0)
    postgres = Postgres(data)
    with postgres.running(memory=TEST_MEMORY, port=free_port()) as process:
        keep_a_row(postgres)
        for one in psutil.Process(process.pid).children():
            with suppress(psutil.NoSuchProcess):  # a session that ends
                if "checkpointer" in " ".join(one.cmdline()):
                    one.suspend()
    assert "stopping it immediately" in caplog.text
    with postgres.running(memory=TEST_MEMORY):
        assert rows(postgres) == [1]


def test_a_server_whose_sessions_outlive_it_for_a_moment_is_started_again(data: Path) -> None:
    """Sessions of a killed server hold its memory, and PostgreSQL does not start beside them."""
    postgres = Postgres(data)
    with postgres.running(memory=TEST_MEMORY, port=free_port()) as process:
        keep_a_row(postgres)
        connection = psycopg.connect(postgres.conninfo("postgres"))
        session = psutil.Process(connection.info.backend_pid)
        session.suspend()
        process.kill()
        wake = threading.Timer(2.0, session.resume)
        wake.start()
    with postgres.running(memory=TEST_MEMORY):
        assert rows(postgres) == [1]
        assert not wake.is_alive()
    connection.close()


def test_a_server_left_behind_is_stopped_first(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    postgres = Postgres(data)
    with postgres.running(memory=TEST_MEMORY, port=free_port()) as process:
        # the state after kill -9 of ringlog: the lock is released, the server runs
        (data / "serving").rename(data / "gone")
        with caplog.at_level(logging.INFO), Postgres(data).running(memory=TEST_MEMORY) as second:
            assert second.pid != process.pid
            assert process.wait() == 0
    assert f"an earlier process left running (process {process.pid})" in caplog.text


def test_two_servers_on_one_directory_are_refused(data: Path) -> None:
    with Postgres(data).running(memory=TEST_MEMORY, port=free_port()) as process:
        with (
            pytest.raises(
                ServerError, match=rf"^process {os.getpid()} \(.*, since .* UTC\) serves {data} already"
            ),
            Postgres(data).running(),
        ):
            pass
        assert process.poll() is None


def test_a_port_in_use_is_named(data: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(ServerError, match=f"Address already in use.*port {port}.*--pg-port"),
            Postgres(data).running(memory=TEST_MEMORY, port=port),
        ):
            pass
        # it is not remembered
        free = free_port()
        with Postgres(data).running(memory=TEST_MEMORY, port=free):
            pass
        with (
            pytest.raises(ServerError, match="Address already in use"),
            Postgres(data).running(memory=TEST_MEMORY, port=port),
        ):
            pass
        with Postgres(data).running(memory=TEST_MEMORY):
            assert Postgres(data).port == free


def test_a_remembered_port_that_another_program_has_is_replaced(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with Postgres(data).running(memory=TEST_MEMORY, port=port):
        pass
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with Postgres(data).running(memory=TEST_MEMORY):
            another = Postgres(data).port
    assert another != port
    assert f"port {port} is taken by another program" in caplog.text
    with Postgres(data).running(memory=TEST_MEMORY):
        assert Postgres(data).port == another


def test_an_error_in_the_operators_settings_is_reported_in_postgresqls_words(data: Path) -> None:
    postgres = Postgres(data)
    with postgres.running(memory=TEST_MEMORY, port=free_port()):
        pass
    (postgres.cluster / "conf.d" / settings.OPERATOR).write_text("max_connections = many\n")
    with (
        pytest.raises(ServerError, match='invalid value for parameter "max_connections": "many"'),
        postgres.running(memory=TEST_MEMORY),
    ):
        pass


def test_the_operators_settings_win_and_ours_are_renewed(data: Path) -> None:
    postgres = Postgres(data)
    with postgres.running(memory=TEST_MEMORY, port=free_port()):
        pass
    conf = postgres.cluster / "conf.d"
    (conf / settings.OPERATOR).write_text("work_mem = '7MB'\nmax_connections = 20\n")
    ours = (conf / settings.GENERATED).read_text()
    (conf / settings.GENERATED).write_text(ours.replace("fsync = 'on'", "fsync = 'off'"))
    with postgres.running(memory=TEST_MEMORY), psycopg.connect(postgres.conninfo("postgres")) as connection:
        found = connection.execute(
            "select current_setting('work_mem'), current_setting('max_connections'), current_setting('fsync')"
        ).fetchone()
    assert found == ("7MB", "20", "on")


def test_a_folder_with_other_files_is_left_alone(data: Path) -> None:
    data.mkdir()
    (data / "thesis.tex").write_text("years of work")
    before = data.stat()
    with pytest.raises(ServerError, match="contains files that are not a database"), Postgres(data).running():
        pass
    assert [path.name for path in data.iterdir()] == ["thesis.tex"]
    assert (data.stat().st_uid, data.stat().st_mode) == (before.st_uid, before.st_mode)


def test_the_cluster_of_another_version_is_left_alone(data: Path) -> None:
    (data / "postgresql-14").mkdir(parents=True)
    with (
        pytest.raises(ServerError, match=r"postgresql-14 is of another version.*ringlog upgrade"),
        Postgres(data).running(),
    ):
        pass
    with pytest.raises(ServerError, match="ringlog upgrade"):
        Postgres(data).demand()
    with pytest.raises(ServerError, match="ringlog upgrade"):
        Postgres(data).demand()
    assert {path.name for path in data.iterdir()} <= {"postgresql-14", SERVING, SERVED}
    assert not list((data / "postgresql-14").iterdir())


def test_a_path_too_long_for_a_socket_is_refused(data: Path) -> None:
    long = data.parent / ("x" * 100)
    with pytest.raises(ServerError, match="bytes too long for a Unix socket"), Postgres(long).running():
        pass
    assert not long.exists()


def test_a_folder_closed_to_the_servers_account_is_named_and_stays_closed(data: Path) -> None:
    mode = 0o700 if os.geteuid() == 0 else 0o500
    data.parent.chmod(mode)
    with pytest.raises(ServerError, match=f"{data.parent}.*--data"), Postgres(data).running():
        pass
    assert not data.exists()
    assert data.parent.stat().st_mode & 0o777 == mode


def test_a_stop_during_the_start_leaves_nothing_running(data: Path) -> None:
    postgres = Postgres(data)
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped), postgres.running(memory=TEST_MEMORY, port=free_port(), stop=stop):
        pass
    assert postgres.postmaster() is None


def test_the_administrator_connects_through_the_socket_only(scratch_postgres: Postgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(host="127.0.0.1", port=scratch_postgres.port, user="postgres", dbname="postgres")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(
            host="127.0.0.1", port=scratch_postgres.port, user="postgres", dbname="postgres", password="x"
        )
    assert scratch_postgres.socket.stat().st_mode & 0o777 == 0o700


def test_a_port_that_another_server_takes_meanwhile_is_given_up(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers created at the same moment find the same port free."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        found = iter([other.getsockname()[1], free := free_port()])
        monkeypatch.setattr("ringlog.server.embedded.postgres.free_port", lambda _: next(found))
        postgres = Postgres(data)
        with postgres.running(memory=TEST_MEMORY):
            assert postgres.port == free


def test_a_stop_is_repeated_until_it_takes_effect(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process started with & in a shell script ignores SIGINT until it installs a handler, which PostgreSQL
    does late."""
    monkeypatch.setattr("ringlog.server.embedded.postgres._REPORT", 0.1)
    deaf = "trap '' INT; sleep 0.5; trap 'exit 0' INT; touch {0}; while :; do sleep 0.01; done"
    heard = data.parent / "heard"
    with subprocess.Popen(["sh", "-c", deaf.format(heard)]) as process:
        _stop_child(process)
        assert heard.exists()
        assert process.returncode == 0
