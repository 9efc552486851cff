"""What the server counts, read as Prometheus reads it."""

import urllib.error
import urllib.request
from pathlib import Path

import pymssql
import pytest

from ringlog.clients import Unanswered, call, connect
from servers import READER, WRITER, RunningServer, free_port, ringlog, serving


def read(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        return str(answer.read(), "utf-8")


def count(text: str, line: str) -> float:
    (value,) = [found.rsplit(" ", 1)[1] for found in text.splitlines() if found.startswith(line + " ")]
    return float(value)


def test_calls_clients_and_refused_logins_are_counted(data: Path) -> None:
    port = free_port()
    with serving(data, "--metrics", f"127.0.0.1:{port}") as server:
        ringlog(
            *("user", "add", READER.user, "--reader", "--password-stdin", "--data", data),
            stdin=READER.password,
        )
        with connect(f"tds://{READER.user}@127.0.0.1:{server.port}", READER.password) as connection:
            call(connection, "find_signals", "%")
            call(connection, "find_signals", "%")
            text = read(port)
        with pytest.raises(Unanswered, match=r"Login failed|refuses the login"):
            connect(f"tds://{READER.user}@127.0.0.1:{server.port}", "wrong")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            read(port, "/")
        later = read(port)
    assert count(text, 'ringlog_gateway_call_seconds_count{procedure="ringlog.find_signals"}') == 2
    assert count(text, "ringlog_gateway_clients") == 1
    assert count(text, "ringlog_gateway_refused_logins_total") == 0
    assert count(later, "ringlog_gateway_refused_logins_total") >= 1
    assert text.endswith("# EOF\n")


def compilations(port: int) -> tuple[float, float]:
    """How many texts Python has compiled, and how many needed no compiling."""
    text = read(port)
    compiled = count(text, "ringlog_gateway_batch_compilation_seconds_count")
    return compiled, count(text, "ringlog_gateway_batch_compilation_reuses_total")


def test_a_call_never_reaches_python_and_a_batch_only_once(data: Path) -> None:
    port = free_port()
    with serving(data, "--metrics", f"127.0.0.1:{port}") as server:
        ringlog(
            *("user", "add", WRITER.user, "--writer", "--password-stdin", "--data", data),
            stdin=WRITER.password,
        )
        with pymssql.connect(
            server=server.host,
            port=str(server.port),
            user=WRITER.user,
            password=WRITER.password,
            autocommit=True,
        ) as connection:
            cursor = connection.cursor()
            before = compilations(port)
            for seq_no in range(1, 6):
                cursor.execute(f"exec put_sr_rf {seq_no}, '2024-05-06 07:08:09'")
                cursor.execute(
                    f"declare @n int exec @n = put_sr_rf {seq_no}, '2024-05-06 07:08:10' select @n"
                )
                put = "exec put_sr_rf @n, '2024-05-06 07:08:11'"
                cursor.callproc("sp_executesql", (put, "@n int", seq_no))
                cursor.execute("set nocount on if @@trancount > 0 commit")
            assert compilations(port) == before, "calls and what concerns the session alone"
            for number in range(5):
                cursor.execute("select count(*) from sr_rf")
                cursor.fetchall()
                cursor.callproc("sp_executesql", ("select @n + 1", "@n int", number))
                assert cursor.fetchall() == [(number + 1,)]
            assert compilations(port) == (before[0] + 2, before[1] + 8)


def test_a_taken_address_for_metrics_is_named(server: RunningServer, data: Path) -> None:
    taken = f"127.0.0.1:{server.port}"
    refused = ringlog(
        *("serve", "--data", data, "--facility", Path(__file__).parent.parent / "facility.toml"),
        *("--listen", "127.0.0.1:0", "--memory", "512MB", "--pg-port", str(free_port())),
        *("--metrics", taken),
    )
    assert refused.returncode == 1
    assert f"cannot listen on {taken}" in refused.stderr
    assert "--metrics" in refused.stderr
