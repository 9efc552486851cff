"""Numbers of closed rows as Arrow over HTTP: `python -m ringlog_lab.closed_rows [--rows 5000000]`.

One signal of reals, doubles or quantised reals, 1 ms apart, on a server of its own. For each the mean of some
requests: values per second of CPU (HTTP and its sessions in PostgreSQL together; that of the client is
separate), and the median of milliseconds until the first batch has arrived.
"""

import argparse
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from statistics import median
from urllib.parse import urlencode

import psutil
import pyarrow as pa

from ringlog.loadtest.experiment.running import temporary_folder
from ringlog.loadtest.experiment.server import READER, Server, serving
from ringlog_lab.bench.over_http import web
from ringlog_lab.bench.reading import settle

COLUMNS = {
    "random": ("real", "1000 * random()"),
    "double": ("double", "random()"),
    "quantised": ("real", "round((500 + 100 * sin(n / 1000.0) + random())::numeric, 2)"),
}
_ROUNDS = 9
_STEP = timedelta(milliseconds=1)
_TABLE = """
name = "closed rows"
timezone = "UTC"

[[table]]
name = "t"
rows = 100
cycle = 0.001
"""


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    rows = parser.parse_args().rows
    with temporary_folder("ringlog-closed-rows-") as folder:
        columns = [
            f'[[table.column]]\nname = "{name}"\nsignal = "t/{name}"\ntype = "{kind}"\n'
            for name, (kind, _) in COLUMNS.items()
        ]
        file = folder / "facility.toml"
        file.write_text(_TABLE + "".join(columns))
        with serving(file, folder / "data", keep=False) as server:
            begin = _filled(server, rows)
            with web(server) as (process, port):
                for name in COLUMNS:
                    _measure(name, begin, rows, server, process, port)


def _filled(server: Server, rows: int) -> datetime:
    """The time of the first row."""
    begin = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - rows * _STEP - timedelta(hours=2)
    values = ", ".join(value for _, value in COLUMNS.values())
    server.administrator.execute(
        f"insert into weeks.t select 1 + n %% 100, %s + n * interval '1 ms', {values}"
        " from generate_series(0, %s - 1) as n".encode(),
        [begin, rows],
    )
    server.administrator.execute("vacuum analyze weeks.t")
    settle(server.administrator, "t")
    return begin


def _measure(
    name: str, begin: datetime, rows: int, server: Server, process: psutil.Process, port: int
) -> None:
    end = begin + rows * _STEP
    asked = {"signal": f"t/{name}", "from": begin.isoformat(), "to": end.isoformat(), "format": "arrow"}
    firsts: list[float] = []
    reads: list[float] = []
    before = 0.0
    for number in range(_ROUNDS + 1):
        if number == 1:
            # the first request opens the sessions
            before, firsts, reads = _cpu(process, server.postmaster), [], []
        connection = HTTPConnection("127.0.0.1", port, timeout=600)
        begun = time.perf_counter()
        connection.request("GET", f"/api/v1/data?{urlencode(asked)}")
        own = time.process_time()
        with pa.ipc.open_stream(connection.getresponse()) as stream:
            batch = stream.read_next_batch()
            firsts.append(1000 * (time.perf_counter() - begun))
            n = batch.num_rows + stream.read_all().num_rows
        reads.append(n / (time.process_time() - own) / 1e6)
        connection.close()
        if n != rows:
            raise SystemExit(f"{n} rows instead of {rows}")
    rate = _ROUNDS * rows / (_cpu(process, server.postmaster) - before) / 1e6
    print(
        f"{name}: {rate:.0f} M values/s of CPU, client {median(reads):.0f};"
        f" first batch after {median(firsts):.0f} ms (at least {min(firsts):.0f})",
        flush=True,
    )


def _cpu(web: psutil.Process, postmaster: psutil.Process) -> float:
    """Seconds of CPU of the web process and of its sessions in PostgreSQL."""
    sessions = [one for one in postmaster.children() if READER in " ".join(one.cmdline())]
    return sum(sum(one.cpu_times()[:2]) for one in (web, *sessions))


if __name__ == "__main__":
    main()
