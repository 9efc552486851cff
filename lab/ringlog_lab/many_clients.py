"""Thousands of logged-in clients over several gateways: `python -m ringlog_lab.many_clients`.

It needs one PostgreSQL, or two (`--node`), each with an empty database, and administrators' connection
strings for them. Each gateway is a separate `ringlog serve` with the same number of clients, each of which
calls at a low rate. Memory, descriptors and PostgreSQL's processes are counted when all are logged in and
have called, and then CPU while they call.
"""

import argparse
import json
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.server import WRITER, postgres_cpu
from ringlog_lab.nodes import facility_text, installed, postmaster_of, serving
from ringlog_lab.programs import build

_TABLES = 20
"""of each gateway's clients"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ringlog_lab.many_clients", description=__doc__)
    parser.add_argument("--first", required=True, metavar="DSN", help="of the first server")
    parser.add_argument("--node", metavar="DSN", help="of a node, which has every second gateway's tables")
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--gateways", type=int, default=3)
    parser.add_argument("--columns", type=int, default=20, help="reals in a row")
    parser.add_argument("--rate", type=float, default=0.1, help="calls a second of each client")
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    each = -(-given.clients // given.gateways)
    kinds = [Tables(f"gateway{number}_", _TABLES, given.columns) for number in range(given.gateways)]
    with tempfile.TemporaryDirectory(prefix="ringlog-clients-") as name, ExitStack() as stack:
        folder = Path(name)
        programs = build(folder)
        file = folder / "plant.toml"
        there = {name for tables in kinds[1::2] for name in tables.names} if given.node else set()
        file.write_text(facility_text(given.node, kinds, there))
        environment, password = installed(file, given.first)
        # of the gateways' own role, which they share
        shared = folder / "password"
        shared.touch(0o600)
        shared.write_text(secrets.token_urlsafe(12))
        gateways, loads = [], []
        for tables in kinds:
            log = folder / f"{tables.prefix}.log"
            one = serving(environment, log, "--gateway-password-file", str(shared))
            gateway, port = stack.enter_context(one)
            gateways.append(gateway)
            command = [
                *(programs / "tdsload", "-h", "127.0.0.1", "-p", port, "-u", WRITER, "-v", "7.4"),
                *("-x", tables.prefix, "-c", tables.columns, "-a", 0, "-t", tables.count, "-r", tables.rows),
                *("-f", 0, "-n", each, "-b", 1, "-w", 1, "-s", 3 * given.seconds, "-q", given.rate),
            ]
            loads.append([str(word) for word in command])
        empty = [gateway.memory_info().rss for gateway in gateways]
        servers = [postmaster_of(dsn) for dsn in (given.first, given.node) if dsn]
        clients = [stack.enter_context(_client(command, password)) for command in loads]
        with ThreadPoolExecutor(len(clients)) as pool:
            first = min(pool.map(_begun, clients))
        for gateway, before in zip(gateways, empty, strict=True):
            now = gateway.memory_info().rss
            print(
                f"gateway: {each} clients, {gateway.num_fds()} descriptors, {now / 1e6:.0f} MB"
                f" ({(now - before) / each / 1e3:.1f} kB a client)",
                flush=True,
            )
        print("PostgreSQL: " + ", ".join(f"{len(server.children())} processes" for server in servers))
        began, spent = time.monotonic(), _cpu(gateways, servers)
        time.sleep(given.seconds)
        spent = [after - before for before, after in zip(spent, _cpu(gateways, servers), strict=True)]
        ended = time.monotonic()
        if ended > first + 3 * given.seconds:
            raise LoadTestError("the last clients were ready after the first had ended: give more --seconds")
        found = [_end(client) for client in clients]
    # each client calls at its rate all the time
    rate = sum(one["calls"] / one["seconds"] for one in found)
    of_gateways, of_postgres = (1e6 * one / rate / (ended - began) for one in spent)
    print(
        f"{rate:.0f} calls a second; CPU of a call:"
        f" gateways {of_gateways:.0f}, PostgreSQL {of_postgres:.0f} µs; p50"
        f" {1e3 * max(one['p50'] for one in found):.1f}, p99 {1e3 * max(one['p99'] for one in found):.1f} ms;"
        f" load of the machine {os.getloadavg()[0]:.1f}"
    )


def _cpu(gateways: Sequence[psutil.Process], servers: Sequence[psutil.Process]) -> list[float]:
    """CPU seconds of all gateways, and of all PostgreSQL."""
    own = [gateway.cpu_times() for gateway in gateways]
    return [sum(one.user + one.system for one in own), sum(postgres_cpu(server)[0] for server in servers)]


@contextmanager
def _client(command: list[str], password: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        try:
            assert client.stdin is not None
            client.stdin.write(f"{password}\n")
            client.stdin.flush()
            yield client
        finally:
            client.kill()


def _begun(client: "subprocess.Popen[str]") -> float:
    """Waits until all its connections have called. Returns the time of that."""
    _read(client, "begin\n")
    return time.monotonic()


def _read(client: "subprocess.Popen[str]", mark: str) -> None:
    assert client.stdout is not None
    if client.stdout.readline() != mark:
        raise LoadTestError("a client has failed")


def _end(client: "subprocess.Popen[str]") -> dict[str, float]:
    _read(client, "end\n")
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.close()
    found: dict[str, float] = json.loads(client.stdout.readline())
    return found


if __name__ == "__main__":
    main()
