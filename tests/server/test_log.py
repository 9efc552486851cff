"""The log of programs: levels, forms, sessions, and no passwords."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pymssql
import pytest

from servers import RINGLOG, RunningServer, free_port, run, serving
from waiting import wait_until

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (ERROR| WARN| INFO|DEBUG) (\S+\{.*\}: )?\S+: .+")


@pytest.fixture(scope="module")
def logging_server(temporary_directory: Path) -> Iterator[RunningServer]:
    options = ("--log-level", "debug", "--log-format", "json", "--http", "127.0.0.1:0")
    with serving(temporary_directory / "logging", *options) as running:
        yield running


def events(server: RunningServer) -> list[dict[str, Any]]:
    """The server's log so far; its last line may be incomplete."""
    written = server.data.with_name(f"{server.data.name}.stderr").read_text()
    return [json.loads(line) for line in written.splitlines(keepends=True) if line.endswith("\n")]


def connect(server: RunningServer, password: str) -> pymssql.Connection:
    return server.connect(server.writer.user, password, tds_version="7.4")


@pytest.mark.long
def test_a_session_can_be_followed_by_its_number(logging_server: RunningServer) -> None:
    with connect(logging_server, logging_server.writer.password) as connection, connection.cursor() as cursor:
        cursor.execute("select @@spid")
        row = cursor.fetchone()
        assert row is not None
        with pytest.raises(pymssql.DatabaseError):
            cursor.execute("select * from nowhere")

    def of_session() -> list[dict[str, Any]]:
        return [event for event in events(logging_server) if event.get("span", {}).get("spid") == row[0]]

    wait_until(lambda: "ended" in [event["message"] for event in of_session()], of_session)
    lines = of_session()
    assert {event["span"]["client"].rpartition(":")[0] for event in lines} == {"127.0.0.1"}
    messages = [event["message"] for event in lines]
    assert messages[:1] == ["connected"]
    after_login = lines[messages.index("logged in") :]
    assert {event["span"]["login"] for event in after_login} == {logging_server.writer.user}
    # 208 is ASE's and SQL Server's number for an object that is not there
    assert 208 in [event.get("number") for event in after_login]


def test_python_and_the_gateway_log_in_one_form(logging_server: RunningServer) -> None:
    """For example, Python logs the creation of PostgreSQL's cluster, the gateway a refused login."""
    # its class depends on the process's earlier refused logins: pymssql keeps their number and severity
    with pytest.raises(pymssql.Error):
        connect(logging_server, "not-the-password")

    def refused() -> list[dict[str, Any]]:
        return [event for event in events(logging_server) if "refused" in event["message"]]

    wait_until(refused, lambda: events(logging_server))
    assert {event["level"] for event in refused()} == {"WARN"}
    targets = {event["target"].partition("::")[0] for event in events(logging_server)}
    assert targets == {"ringlog", "ringlog_gateway"}
    for event in events(logging_server):
        assert {"timestamp", "level", "message", "target"} <= event.keys(), event
        assert event["level"] in {"ERROR", "WARN", "INFO", "DEBUG"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["timestamp"])


def test_no_password_is_logged_at_any_level(logging_server: RunningServer, tmp_path: Path) -> None:
    freetds = tmp_path / "freetds.conf"
    freetds.write_text(
        f"[five]\nhost = {logging_server.host}\nport = {logging_server.port}\n"
        "tds version = 5.0\nclient charset = UTF-8\n"
    )
    texts = ("exec sp_password 'old-marmot', 'new-marmot'", "select 'value-marmot' + 1", "'open-marmot")
    before = len(events(logging_server))
    for password in ("wrong-marmot", logging_server.writer.password):
        with (
            suppress(pymssql.Error),
            connect(logging_server, password) as connection,
            connection.cursor() as cursor,
        ):
            for text in texts:
                with suppress(pymssql.DatabaseError):
                    cursor.execute(text)
        run(
            *("tsql", "-S", "five", "-U", logging_server.writer.user, "-P", password),
            stdin="".join(f"{text}\ngo\n" for text in texts),
            FREETDSCONF=str(freetds),
            LC_ALL="C.UTF-8",
        )

    def messages() -> list[str]:
        return [event["message"] for event in events(logging_server)[before:]]

    # for each dialect one session that succeeds, and one that is refused
    wait_until(lambda: messages().count("ended") == 2, messages)
    wait_until(lambda: sum("refused" in message for message in messages()) == 2, messages)
    written = logging_server.data.with_name(f"{logging_server.data.name}.stderr").read_text()
    for secret in ("marmot", logging_server.writer.password, logging_server.reader.password):
        assert secret not in written


def mirror_to_nowhere(tmp_path: Path, *options: str) -> list[str]:
    """The log of a mirror whose server is unreachable, after a client has connected."""
    servers = [f"tds://127.0.0.1:{free_port()}" for _ in range(2)]
    command = [RINGLOG, "mirror", "--old", servers[0], "--new", servers[1], "--listen", "127.0.0.1:0"]
    command += ["--report", str(tmp_path / "mirror.jsonl"), *options]
    with (
        (tmp_path / "log").open("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            address = re.match(r"mirror on 127\.0\.0\.1:(\d+):", process.stdout.readline())
            assert address
            # InterfaceError: pymssql loses messages that DB-Library sends without a connection
            with pytest.raises(pymssql.Error):
                pymssql.connect("127.0.0.1", "nobody", "nothing", port=address[1], login_timeout=100)
        finally:
            process.terminate()
            process.wait()
        log.seek(0)
        return log.read().splitlines()


def test_text_for_people(tmp_path: Path) -> None:
    lines = mirror_to_nowhere(tmp_path)
    assert lines
    assert all(LINE.fullmatch(line) for line in lines), lines
    assert re.search(r" WARN session\{client=127\.0\.0\.1:\d+\}: .* cannot be reached$", lines[0])


def test_a_higher_level_logs_less(tmp_path: Path) -> None:
    assert mirror_to_nowhere(tmp_path, "--log-level", "error") == []


def test_an_error_that_ends_the_program_is_logged_in_its_form(tmp_path: Path) -> None:
    command = [RINGLOG, "serve", "--data", tmp_path / "none", "--log-format", "json"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    event = json.loads(line)
    assert (event["level"], event["target"]) == ("ERROR", "ringlog")
    assert f"there is no database in {tmp_path / 'none'}" in event["message"]
