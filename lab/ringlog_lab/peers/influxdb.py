"""InfluxDB 1, from its daemon: line protocol to write, InfluxQL to read."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from ringlog.clients.listening import free_port
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.peers.process import Account, new_folder, running

_SETTINGS = """\
reporting-disabled = true
bind-address = "127.0.0.1:{backup}"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  query-log-enabled = false
  cache-max-memory-size = 4294967296
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
  max-body-size = 0
"""


@dataclass(frozen=True)
class Influxdb:
    """A running server, without authentication, reachable from this machine only."""

    process: psutil.Process
    port: int
    data: Path
    version: str


@contextmanager
def serving(program: Path, server: Server, folder: Path) -> Iterator[Influxdb]:
    """A new InfluxDB below a folder; removed at the end."""
    account = Account.of(server.postmaster)
    with new_folder(folder / "influxdb", account) as own:
        port = free_port()
        settings = own / "influxdb.conf"
        settings.write_text(_SETTINGS.format(folder=own, port=port, backup=free_port()))
        settings.chmod(0o644)
        version = subprocess.run([program, "version"], capture_output=True, text=True).stdout
        command: list[str | Path] = [program, "-config", settings]
        with running("InfluxDB", command, account, own, lambda: _answers(port)) as process:
            yield Influxdb(process, port, own, version.removeprefix("InfluxDB ").partition(" (")[0].strip())


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/ping", timeout=5) as answer:
            return bool(answer.status == 204)
    except (URLError, OSError):
        return False
