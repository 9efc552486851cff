"""`ringlog serve` as a process: its start and end, and simultaneous commands."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import sqlalchemy
from places import new_folder
from psycopg.conninfo import make_conninfo

from ringlog.commands.machines import service
from ringlog.errors import ServerError, UsageError
from ringlog.schema import locks
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.programs import packaged_programs
from ringlog.server.processes import systemd
from servers import FACILITY, RINGLOG, RunningServer, ringlog, run, serving
from waiting import PATIENCE, is_alive, wait_until


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def alive(process: psutil.Process) -> bool:
    return process.is_running() and is_alive(process.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_processes_cleanly(data: Path, number: signal.Signals) -> None:
    with serving(data) as server:
        processes = psutil.Process(server.process.pid).children(recursive=True)
        assert listens(server.port)
        assert listens(server.postgres_port)
        # a hang-up ends none of the processes
        server.process.send_signal(signal.SIGHUP)
        server.process.send_signal(number)
        assert server.process.wait(PATIENCE) == 0
        assert not listens(server.port)
        assert not listens(server.postgres_port)
        assert not any(alive(process) for process in processes)
    log = "".join(path.read_text() for path in (data / "postgresql-18" / "log").iterdir())
    assert "database system is shut down" in log


def test_a_server_of_a_killed_run_of_tests_ends(data: Path) -> None:
    """A worker of pytest-xdist is killed when its run is interrupted."""
    code = (
        "import leftovers, os, signal, sys; from pathlib import Path; from servers import serving\n"
        "leftovers.mark()\n"
        "with serving(Path(sys.argv[1]), prepared=False) as server:\n"
        "    print(server.process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    tests = Path(__file__).parents[1]
    ended = run(sys.executable, "-c", code, data, PYTHONPATH=f"{tests}:{tests / 'harness'}")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    wait_until(lambda: not is_alive(int(ended.stdout)))
    assert Postgres(data).postmaster() is None


def test_a_signal_stops_a_server_that_waits_for_another_change(
    database_url: sqlalchemy.URL, tmp_path: Path
) -> None:
    dsn = database_url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(dsn) as other, (tmp_path / "log").open("w") as log:
        other.execute(locks.statement(locks.CHANGES))
        command = [RINGLOG, "serve", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, stderr=log, env=os.environ | {"RINGLOG_DSN": dsn}) as server:
            try:
                waiting = "select from pg_locks where relation = 'ringlog.one_change'::regclass"
                waiting += " and not granted and database ="
                waiting += " (select oid from pg_database where datname = current_database())"
                wait_until(lambda: other.execute(waiting).rowcount, (tmp_path / "log").read_text)
                server.terminate()
                assert server.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
            finally:
                server.kill()


def test_a_killed_server_ends_postgresql_and_restarts_with_its_logins(data: Path) -> None:
    with serving(data) as server:
        added = ringlog("user", "add", "w", "--writer", "--password-stdin", "--data", data, stdin="secret")
        assert added.returncode == 0, added.stderr
        (postmaster,) = psutil.Process(server.process.pid).children()
        server.process.kill()
        server.process.wait()
        wait_until(lambda: not alive(postmaster))
    with (
        serving(data, facility=None) as again,
        psycopg.connect(
            host="127.0.0.1", port=again.postgres_port, dbname="ringlog", user="w", password="secret"
        ) as connection,
    ):
        assert connection.execute("select current_user").fetchone() == ("w",)
    log = "".join(path.read_text() for path in (data / "postgresql-18" / "log").iterdir())
    assert "was not properly shut down" not in log


@pytest.mark.long
def test_a_signal_ends_a_server_that_waits_for_the_logs(database_url: sqlalchemy.URL, tmp_path: Path) -> None:
    """Another process is maintaining them, which may take hours."""
    dsn = make_conninfo(database_url.render_as_string(hide_password=False).replace("+psycopg", ""))
    with psycopg.connect(dsn) as other, (tmp_path / "log").open("w") as log:
        other.execute(locks.statement(locks.MAINTENANCE))
        process = subprocess.Popen(
            [RINGLOG, "serve", "--listen", "127.0.0.1:0"], stderr=log, env=os.environ | {"RINGLOG_DSN": dsn}
        )
        words = "another process maintains the logs of this database: waiting until it ends"
        wait_until(lambda: words in (tmp_path / "log").read_text() or process.poll() is not None)
        process.terminate()
        assert process.wait(PATIENCE) == 0, (tmp_path / "log").read_text()


def test_a_killed_server_is_started_again_at_once(data: Path) -> None:
    """PostgreSQL may still be busy with its shutdown then."""
    with serving(data) as server:
        server.process.kill()
    with serving(data, facility=None) as server:
        server.process.kill()
    with serving(data, facility=None) as server:
        assert listens(server.port)


def test_the_end_of_postgresql_ends_the_server_with_an_error(data: Path) -> None:
    with serving(data) as server:
        (postmaster,) = psutil.Process(server.process.pid).children()
        postmaster.kill()
        assert server.process.wait(PATIENCE) == 1
    assert "PostgreSQL has ended unexpectedly" in data.with_name("data.stderr").read_text()


def test_a_second_server_on_the_same_data_is_refused(server: RunningServer) -> None:
    second = ringlog("serve", "--data", server.data, "--listen", "127.0.0.1:0")
    assert second.returncode == 1
    assert second.stderr.startswith(f"ringlog: process {server.process.pid} (ringlog serve --data ")
    assert second.stderr.endswith(
        f" UTC) serves {server.data} already: stop it first, or choose another --data\n"
    )
    assert server.process.poll() is None


@pytest.mark.parametrize("option", ["--listen", "--metrics", "--http", "--pg-port"])
def test_an_address_in_use_is_named_before_anything_is_made(
    server: RunningServer, data: Path, option: str
) -> None:
    taken = str(server.port) if option == "--pg-port" else f"127.0.0.1:{server.port}"
    second = ringlog("serve", "--data", data, "--facility", FACILITY, option, taken)
    assert second.returncode == 1
    words = f"cannot listen on 127.0.0.1:{server.port}: Address already in use. Name another address with"
    assert f"{words} {option}\n" in second.stderr
    assert not data.exists()


@pytest.mark.long
def test_an_address_in_use_is_named_and_postgresql_stops_again(server: RunningServer, data: Path) -> None:
    taken = f"127.0.0.1:{server.port}"
    made = ringlog("init", "--data", data, "--facility", FACILITY)
    assert made.returncode == 0, made.stderr
    second = ringlog("serve", "--data", data, "--listen", taken, "--memory", "512MB")
    assert second.returncode == 1
    assert f"cannot listen on {taken}" in second.stderr
    assert "--listen" in second.stderr
    assert not (data / "postgresql-18" / "postmaster.pid").exists()


def test_listening_beyond_this_machine_is_warned_of() -> None:
    stderr = ringlog("serve", "--dsn", "host=127.0.0.1 port=1", "--listen", "0.0.0.0:0").stderr
    assert "listening on 0.0.0.0:0: every machine that can connect can try passwords" in stderr


def test_a_server_without_a_facility_is_refused_before_anything_is_made(data: Path) -> None:
    refused = ringlog("serve", "--data", data, "--listen", "127.0.0.1:0")
    assert refused.returncode == 1
    assert f"there is no database in {data}" in refused.stderr
    assert "ringlog serve --facility FILE" in refused.stderr
    assert not data.exists()


def test_dsn_opens_the_database_for_the_psql_of_the_wheel(server: RunningServer) -> None:
    psql = packaged_programs() / "psql"
    ran = run(psql, server.dsn, "-At", "-c", "select current_user, current_database()")
    assert ran.stdout == "postgres|ringlog\n", ran.stderr


def test_dsn_holds_no_password(server: RunningServer) -> None:
    assert "password" not in server.dsn


@pytest.mark.parametrize("right", ["writer", "reader"])
def test_a_login_added_while_the_server_runs_has_its_groups_rights(server: RunningServer, right: str) -> None:
    name = f"added_{right}"
    added = ringlog(
        "user", "add", name, f"--{right}", "--password-stdin", "--data", server.data, stdin="p w\n"
    )
    assert (added.returncode, added.stdout) == (0, f"login {name} added as a {right}\n"), added.stderr
    with psycopg.connect(
        host="127.0.0.1", port=server.postgres_port, dbname="ringlog", user=name, password="p w"
    ) as connection:
        groups = connection.execute(
            "select pg_has_role('daq_writer', 'usage'), pg_has_role('daq_reader', 'usage'), rolsuper "
            "from pg_roles where rolname = current_user"
        ).fetchone()
    assert groups == (right == "writer", right == "reader", False)
    removed = ringlog("user", "remove", name, "--data", server.data)
    assert removed.returncode == 0, removed.stderr


def test_the_gateway_may_act_for_a_login_and_has_no_right_of_its_own(server: RunningServer) -> None:
    member = server.sql(
        "select inherit_option, set_option, admin_option from pg_auth_members "
        "where member = 'ringlog_gateway'::regrole and roleid = 'writer'::regrole"
    )[0]
    assert member == (False, True, False)


@pytest.mark.parametrize("password", ["wrong", ""])
def test_a_wrong_password_is_refused_over_tcp(server: RunningServer, password: str) -> None:
    with pytest.raises(
        psycopg.OperationalError, match=r"password authentication failed|no password supplied"
    ):
        psycopg.connect(
            host="127.0.0.1", port=server.postgres_port, dbname="ringlog", user="writer", password=password
        )


def test_no_password_is_in_the_log_or_in_a_command_line(server: RunningServer) -> None:
    log = "".join(path.read_text() for path in (server.data / "postgresql-18" / "log").iterdir())
    # clients of other tests, which run at the same time, have passwords in theirs
    own = psutil.Process(server.process.pid)
    words = [word for process in (own, *own.children(recursive=True)) for word in _command_line(process)]
    assert any("postgres" in word for word in words)
    for secret in (server.writer.password, server.reader.password):
        assert secret not in log
        assert not any(secret in word for word in words)


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_maintain_works_with_a_running_server(server: RunningServer) -> None:
    done = ringlog("maintain", "--data", server.data)
    assert done.returncode == 0, done.stderr
    again = ringlog("maintain", "--data", server.data)
    # nothing was left to do: rows outside every week, which other tests have written, are kept
    lines = [
        line.partition(":")[0]
        for line in again.stdout.splitlines()
        if not line.startswith(("kept ", "weeks:"))
    ]
    assert lines == ["summaries", "closed rows"]


def test_a_new_server_soon_has_statistics_of_the_keys_only(server: RunningServer) -> None:
    """Of the partitions that have rows now: PostgreSQL analyzes a growing log repeatedly."""
    query = (
        "select attname from pg_attribute where attnum > 0 and attstattarget is distinct from 0"
        " and attrelid = to_regclass('log.sr_rf_' || to_char(now() at time zone 'UTC', 'IYYY\"w\"IW'))"
        " order by attname"
    )
    with psycopg.connect(server.dsn, autocommit=True) as administrator:
        wait_until(lambda: administrator.execute(query).fetchall() == [("seq_no",), ("time",)])


def test_a_separate_database_is_served_by_its_connection_string(
    server: RunningServer, tmp_path: Path
) -> None:
    """The database of the other server represents one that somebody else runs."""
    ran = ringlog("maintain", "--dsn", server.dsn)
    assert ran.returncode == 0, ran.stderr
    ran = ringlog("maintain", RINGLOG_DSN=server.dsn)
    assert ran.returncode == 0, ran.stderr


def test_the_command_is_installed_next_to_python() -> None:
    assert os.access(RINGLOG, os.X_OK)


def test_a_broken_facility_file_does_not_prevent_serving_the_installed_one(
    data: Path, tmp_path: Path
) -> None:
    """A typing error must not stop a machine that restarts at night; it is reported clearly."""
    file = tmp_path / "facility.toml"
    text = FACILITY.read_text()
    file.write_text(text.replace("rows = 50", "rows = 0"))
    refused = ringlog("serve", "--facility", file, "--data", data)
    assert refused.returncode == 2
    with serving(data):
        pass
    log = data.with_name(data.name + ".stderr")
    with serving(data, facility=file) as server:
        assert "THE FACILITY FILE IS NOT USED" in log.read_text()
        with psycopg.connect(server.dsn) as admin:
            rows = "select rows from ringlog.logged_table where table_name = 'sr_mag_ps'"
            assert admin.execute(rows).fetchone() == (50,)
            # a change that needs the operator's decision does not stop it either
            file.write_text(text.replace("rows = 50", "rows = 40"))
            shown = ringlog("facility", "diff", file, "--data", data)
            assert (shown.returncode, "its ring has 50 rows" in shown.stderr) == (1, True)
            file.write_text(text.replace("rows = 50", "rows = 60"))
            shown = ringlog("facility", "diff", file, "--data", data)
            assert shown.returncode == 1
            assert "would change ring sr_mag_ps: 10 rows more" in shown.stdout
            assert "would change table sr_mag_ps: rows 50 → 60" in shown.stdout
            assert admin.execute(rows).fetchone() == (50,)
        file.write_text(text)
        same = ringlog("facility", "diff", file, "--data", data)
        assert (same.returncode, same.stdout) == (0, "no difference\n"), same.stderr
        file.write_text(text.replace("rows = 50", "rows = 40"))
    with serving(data, facility=file):
        assert "its ring has 50 rows" in log.read_text()
        assert "THE FACILITY FILE IS NOT USED" in log.read_text()


# --- ringlog as a service of systemd ---


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without a running systemd; the units are written to a folder of the test."""
    folder = new_folder("units")
    monkeypatch.setattr(systemd, "UNITS", folder)
    monkeypatch.setattr(systemd, "_RUNNING", folder / "none")
    monkeypatch.setattr(sys, "argv", [str(RINGLOG)])
    yield folder
    shutil.rmtree(folder)


def printed(*words: str) -> dict[str, str]:
    shown = ringlog("service", "install", "--print", "--", *words)
    assert shown.returncode == 0, shown.stderr
    return dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)


def test_the_unit_of_a_server() -> None:
    unit = printed("serve", "--facility", "/etc/ringlog/facility.toml", "--listen", "0.0.0.0:5000")
    words = shlex.split(unit["ExecStart"])
    assert words[1:] == [
        *("serve", "--facility", "/etc/ringlog/facility.toml", "--listen", "0.0.0.0:5000"),
        *("--data", "/var/lib/ringlog"),
    ]
    assert Path(words[0]) == RINGLOG.resolve()
    assert (unit["User"], unit["Type"], unit["Restart"]) == ("ringlog", "exec", "on-failure")


def test_the_unit_of_writers() -> None:
    unit = printed("load", "--facility", "/etc/f.toml", "--url", "tds://daq@db:5000", "--source", "ca")
    assert unit["ExecStart"].endswith(" --spool /var/lib/ringlog-spool")
    assert unit["ExecReload"].endswith("ringlog reload --spool /var/lib/ringlog-spool")
    # ringlog load answers the watchdog: tests/loader/test_metrics.py
    assert (unit["Type"], unit["WatchdogSec"]) == ("notify", "60")


def test_words_are_quoted_as_systemd_reads_them() -> None:
    """systemd.service(5): quotes and backslashes as in C, `$$` and `%%` for themselves."""
    unit = printed("serve", "--facility", '/etc/100 %/$HOME "x".toml')
    assert '--facility "/etc/100 %%/$$HOME \\"x\\".toml" --data' in unit["ExecStart"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["serve", "--facility", "plant.toml"], "plant.toml: a service needs an absolute path"),
        (["status"], "a service runs ringlog serve or load, not 'status'"),
        (["serve", "--facilty", "/x"], "No such option: --facilty"),
    ],
)
def test_options_that_cannot_be_a_service_are_refused(words: list[str], message: str) -> None:
    refused = ringlog("service", "install", "--print", "--", *words)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_a_foreign_unit_is_left_alone(units: Path, tmp_path: Path) -> None:
    theirs = units / "ringlog.service"
    theirs.write_text("[Unit]\n")
    with pytest.raises(ServerError, match=r"was not written by ringlog"):
        systemd.install("ringlog", "text")
    with pytest.raises(ServerError, match=r"was not written by ringlog: it stays"):
        systemd.remove("ringlog")
    assert theirs.read_text() == "[Unit]\n"


def test_it_is_installed_changed_and_removed(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facility = units / "facility.toml"
    facility.write_bytes(FACILITY.read_bytes())
    data = units / "data"
    words = ["serve", "--facility", str(facility), "--data", str(data)]
    if os.geteuid() != 0:
        with pytest.raises(UsageError, match="installed by root"):
            service.service_install(words)
        return
    service.service_install(words)
    text = (units / "ringlog.service").read_text()
    assert (data.stat().st_mode & 0o777, data.owner()) == (0o700, "ringlog")
    assert "systemctl enable --now ringlog" in capsys.readouterr().out
    service.service_install([*words, "--listen", "0.0.0.0:5001"])
    changed = (units / "ringlog.service").read_text()
    assert changed == text.replace(f"--data {data}", f"--data {data} --listen 0.0.0.0:5001")
    service.service_remove()
    assert not (units / "ringlog.service").exists()
    assert data.exists()


def test_a_file_that_the_account_may_not_read_is_named(units: Path) -> None:
    hidden = units / "facility.toml"
    hidden.write_text("")
    hidden.chmod(0o600)
    message = f"the account ringlog may not read {hidden}" if os.geteuid() == 0 else "only root can install"
    with pytest.raises(ServerError, match=message):
        service.service_install(["serve", "--facility", str(hidden)])
    assert not (units / "ringlog.service").exists()
