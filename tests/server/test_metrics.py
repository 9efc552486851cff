"""What the server counts, read as Prometheus reads it."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ringlog.clients import Unanswered, call, connect
from servers import READER, RunningServer, free_port, ringlog, serving


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
