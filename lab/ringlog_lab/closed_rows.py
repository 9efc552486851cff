"""Closed rows over HTTP: `python -m ringlog_lab.closed_rows [--rows 5000000] [--days 28]`.

Numbers as Arrow: one signal of reals, doubles or quantised reals, 1 ms apart, on a server of its own. For
each the mean of some requests: values per second of CPU (HTTP and its sessions in PostgreSQL together; that
of the client is separate), and the median of milliseconds until the first batch has arrived.

Trends by the Archiver Appliance's API as JSON, of doubles at 1 Hz, at any part of a second: milliseconds of
CPU (HTTP and PostgreSQL), the median and the 99th percentile of one client's waits.
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
from ringlog_lab.bench.over_http import got, web
from ringlog_lab.bench.reading import settle

COLUMNS = {
    "random": ("real", "1000 * random()"),
    "double": ("double", "random()"),
    "numeric": ("numeric(12,3)", "500 + 100 * sin(n / 1000.0) + random()"),
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
_TREND_TABLE = """
[[table]]
name = "h"
rows = 100
cycle = 1.0

[[table.column]]
name = "c"
signal = "h"
type = "double"
"""
_TREND_ROWS = """
insert into weeks.h select 1 + n %% 100, %(begin)s + n * interval '1 s' + random() * interval '0.4 s',
  round(500 * sin(n / 1e4) + random())::float8 * 20 / 65536
from generate_series(0, %(rows)s - 1) as n
"""
TRENDS = ("mean_3600", "max_3600", "optimized_1000", "mean_60", "firstSample_60", "lastSample_60")
_TREND_ROUNDS = 40


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--days", type=int, default=28)
    given = parser.parse_args()
    rows = given.rows
    with temporary_folder("ringlog-closed-rows-") as folder:
        columns = [
            f'[[table.column]]\nname = "{name}"\nsignal = "t/{name}"\ntype = "{kind}"\n'
            for name, (kind, _) in COLUMNS.items()
        ]
        file = folder / "facility.toml"
        file.write_text(_TABLE + "".join(columns) + _TREND_TABLE)
        with serving(file, folder / "data", keep=False) as server:
            begin = _filled(server, rows)
            since = _trend_filled(server, given.days)
            with web(server) as (process, port):
                for operator in TRENDS:
                    _measure_trend(operator, since, given.days, server, process, port)
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


def _trend_filled(server: Server, days: int) -> datetime:
    """The begin of the first day."""
    begin = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=days)
    weeks = "generate_series(date_trunc('week', %s), now(), '1 week') as week"
    server.administrator.execute(f"select ringlog.make_week('h', week) from {weeks}".encode(), [begin])
    server.administrator.execute(_TREND_ROWS.encode(), {"begin": begin, "rows": (days * 24 - 1) * 3600})
    server.administrator.execute("vacuum analyze weeks.h")
    settle(server.administrator, "h")
    return begin


def _measure_trend(
    operator: str, begin: datetime, days: int, server: Server, process: psutil.Process, port: int
) -> None:
    end = begin + timedelta(days=days, hours=-1)
    asked = {"pv": f"{operator}(h)", "from": begin.isoformat(), "to": end.isoformat()}
    path = f"/retrieval/data/getData.json?{urlencode(asked)}"
    size = got(port, path)
    before, waits = _cpu(process, server.postmaster), []
    for _ in range(_TREND_ROUNDS):
        begun = time.perf_counter()
        if got(port, path) != size:
            raise SystemExit(f"{operator}: the answers differ")
        waits.append(1000 * (time.perf_counter() - begun))
    cpu = 1000 * (_cpu(process, server.postmaster) - before) / _TREND_ROUNDS
    late = sorted(waits)[_TREND_ROUNDS * 99 // 100]
    print(f"{operator}: {cpu:.1f} ms of CPU, {median(waits):.1f} ms, 99% {late:.1f} ms", flush=True)


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
