"""Measures the cost of a put to a node, and moves of tables: `python -m ringlog_lab.nodes`.

It needs two PostgreSQL on this machine, each with an empty database, and administrators' connection strings
for them. Tables of both kinds are called in turns through one gateway; CPU of gateway and PostgreSQL is
counted for each call. With `--move` all tables are on the first server, and half of them move to the node
while each has a writer, and then back.
"""

import argparse
import json
import os
import random
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from psycopg import sql

from ringlog.history.summaries.summarising import summarise
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import COLUMN, RING, Tables
from ringlog.loadtest.experiment.server import WRITER, postgres_cpu
from ringlog.schema import session
from ringlog.schema.layout import OWNER
from ringlog.schema.relations.partitions import Week
from ringlog_lab.machines.writers import Writers
from ringlog_lab.programs import build

COMMAND = [sys.executable, "-m", "ringlog"]
_WARM = 1.0
"""seconds of a load before it is measured"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ringlog_lab.nodes", description=__doc__)
    parser.add_argument("--first", required=True, metavar="DSN", help="of the first server")
    parser.add_argument("--node", required=True, metavar="DSN", help="of the node")
    parser.add_argument("--columns", type=int, default=200, help="reals in a row")
    parser.add_argument("--tables", type=int, default=30, help="tables on each, with one writer each")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=0.0, help="calls a second of each writer; 0: at once")
    parser.add_argument(
        "--move", action="store_true", help="move half of the tables there and back while they are written"
    )
    parser.add_argument("--weeks", type=int, default=0, help="that the logs of moving tables have before")
    parser.add_argument("--old-rows", type=int, default=50_000, help="in each of these weeks of a log")
    parser.add_argument("--kills", type=int, default=0, help="kill the moving command so many times")
    given = parser.parse_args()
    if given.move:
        _move(given)
        return
    kinds = {kind: Tables(f"{kind}_", given.tables, given.columns) for kind in ("here", "there")}
    with tempfile.TemporaryDirectory(prefix="ringlog-nodes-") as name:
        folder = Path(name)
        programs = build(folder)
        file = folder / "plant.toml"
        file.write_text(facility_text(given.node, kinds.values(), kinds["there"].names))
        environment, password = installed(file, given.first)
        with serving(environment, folder / "serve.log") as (gateway, port):
            servers = {"here": postmaster_of(given.first), "there": postmaster_of(given.node)}
            costs: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in kinds}
            acknowledged = dict.fromkeys(kinds, 0)
            for _ in range(given.rounds):
                for kind, tables in kinds.items():
                    command = [
                        *(programs / "tdsload", "-h", "127.0.0.1", "-p", port, "-u", WRITER, "-v", "7.4"),
                        *("-x", tables.prefix, "-c", tables.columns, "-a", 0, "-t", tables.count),
                        *("-r", tables.rows, "-f", acknowledged[kind], "-n", tables.count, "-b", 1),
                        *("-w", _WARM, "-s", given.seconds, "-q", given.rate),
                    ]
                    found, spent = _measured([str(word) for word in command], password, gateway, servers)
                    acknowledged[kind] += int(found["acknowledged"]) // tables.count
                    calls = found["calls"]
                    own, other = (spent[one] / calls for one in (kind, *(set(servers) - {kind})))
                    costs[kind].append((spent["gateway"] / calls, own, other))
                    print(
                        f"{kind:6} {calls / found['seconds']:7.0f} calls/s; CPU of a call: gateway"
                        f" {costs[kind][-1][0] * 1e6:.0f}, its server {own * 1e6:.0f}, the other one"
                        f" {other * 1e6:.0f} µs; p99 {found['p99'] * 1e3:.1f} ms",
                        flush=True,
                    )
    medians = {kind: statistics.median(sum(each) for each in of) for kind, of in costs.items()}
    ratios = [sum(there) / sum(here) for here, there in zip(costs["here"], costs["there"], strict=True)]
    print(
        f"median CPU of a put: on the first server {medians['here'] * 1e6:.0f}, on the node"
        f" {medians['there'] * 1e6:.0f} µs; the node's beside it {statistics.median(ratios):.2f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f}); load of the machine {os.getloadavg()[0]:.1f}"
    )


def _move(given: argparse.Namespace) -> None:
    """Writers write all tables while half of them move. Every acknowledged row is looked for at the end."""
    tables = Tables("table_", given.tables, given.columns)
    names = tables.names
    moving = names[::2]
    readings = {f"{COLUMN}{number}": number / 7 for number in range(1, given.columns + 1)}
    with tempfile.TemporaryDirectory(prefix="ringlog-nodes-") as name:
        folder = Path(name)
        file = folder / "plant.toml"
        file.write_text(facility_text(None, [tables], (), counted=True))
        environment, password = installed(file, given.first)
        for table in moving if given.weeks else ():
            _fill_weeks(given.first, table, readings, given.weeks, given.old_rows)
        with serving(environment, folder / "serve.log") as (_, port):
            url = f"tds://{WRITER}@127.0.0.1:{port}"
            writers = Writers([url], password, file, folder / "spool", given.rate or 2.0, readings)
            spans = []
            try:
                time.sleep(given.seconds)
                # the gateway did not know the node before
                for there in (moving, ()):
                    file.write_text(facility_text(given.node, [tables], there, counted=True))
                    command = [*COMMAND, "node", "move", "--facility", str(file)]
                    before = time.monotonic()
                    killed = sum(_is_killed(command, environment, given.seconds) for _ in range(given.kills))
                    done = subprocess.run(command, capture_output=True, text=True, env=environment)
                    if done.returncode != 0:
                        raise LoadTestError(done.stderr.strip())
                    took = time.monotonic() - before
                    time.sleep(given.seconds)
                    waited = [float(each) for each in re.findall(r"writers waited ([\d.]+) s", done.stdout)]
                    spans.append((before, time.monotonic(), took, killed, max(waited, default=0.0)))
            finally:
                writers.stop()
        count = writers.count(lambda _: given.first)
        own = 1 / (given.rate or 2.0)
        print(
            f"{len(moving)} of {len(names)} tables of {given.columns} reals; from an acknowledged row to the"
            f" next, of which {own:g} s are the writer's own:"
        )
        for way, (before, after, took, killed, held) in zip(("to the node", "back"), spans, strict=True):
            pauses = writers.pauses(before, after, moving)
            others = writers.pauses(before, after, names[1::2])
            print(
                f"moved {way} in {took:.1f} s, the command killed {killed} times: median"
                f" {statistics.median(pauses):.2f} s, longest {max(pauses):.2f} s; of the other tables"
                f" {max(others):.2f} s; held back by the last steps of the last command at most {held:.3f} s"
            )
    print(
        f"rows produced {count.produced}, acknowledged {count.acknowledged}, lost {count.lost},"
        f" repeated {count.repeated}; load of the machine {os.getloadavg()[0]:.1f}"
    )


def _fill_weeks(dsn: str, table: str, readings: Iterable[str], weeks: int, rows: int) -> None:
    """Rows of the weeks before this one in a table's log, the same number in each, and their summaries."""
    log = sql.Identifier("log", table)
    columns = sql.SQL(", ").join(map(sql.Identifier, ("count", *readings)))
    values = sql.SQL(", ").join([sql.SQL("n"), *[sql.SQL("random()::real") for _ in readings]])
    insert = sql.SQL(
        'insert into {} (seq_no, "time", {})'
        " select 1 + n %% {ring}, %s + n * interval '1 week' / {rows}, {}"
        " from generate_series(0, {rows} - 1) as n"
    ).format(log, columns, values, ring=sql.Literal(RING), rows=sql.Literal(rows))
    with session.connect(dsn, autocommit=True) as administrator:
        administrator.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
        for ago in range(weeks, 0, -1):
            start = Week.of(datetime.now(UTC) - ago * timedelta(weeks=1)).start
            administrator.execute("select ringlog.make_week(%s, %s)", [table, start])
            administrator.execute(insert, [start])
        administrator.execute(sql.SQL("vacuum analyze {}").format(log))
    while summarise(dsn, enough=1):
        continue


def _is_killed(command: list[str], environment: dict[str, str], seconds: float) -> bool:
    """Lets the command run for a random time and kills it, unless it has ended."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.5, seconds))
            return False
        process.kill()
    return True


def facility_text(
    node: str | None, tables: Iterable[Tables], there: Container[str], counted: bool = False
) -> str:
    """A facility file with these tables, some of them on a node; `counted`: their rows have a number too."""
    text = 'timezone = "UTC"\n' + (f'[[node]]\nname = "there"\ndsn = "{node}"\n' if node else "")
    for some in tables:
        for name in some.names:
            text += f'[[table]]\nname = "{name}"\nrows = {RING}\ncycle = 1.0\n'
            text += 'node = "there"\n' if name in there else ""
            text += '[[table.column]]\nname = "count"\ntype = "int"\n' if counted else ""
            text += f'[[table.column]]\nname = "{COLUMN}{{n}}"\ncount = {some.columns}\ntype = "real"\n'
    return text


def _measured(
    command: list[str], password: str, gateway: psutil.Process, servers: dict[str, psutil.Process]
) -> tuple[dict[str, float], dict[str, float]]:
    """The client's figures, and the CPU seconds of the gateway and of each server meanwhile."""
    marks = []
    found: dict[str, float] = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(f"{password}\n")
        client.stdin.flush()
        for line in client.stdout:
            if line.startswith("{"):
                found = json.loads(line)
                continue
            own = gateway.cpu_times()
            marks.append(
                {name: postgres_cpu(postmaster)[0] for name, postmaster in servers.items()}
                | {"gateway": own.user + own.system}
            )
            if line == "end\n":
                client.stdin.close()
    if client.returncode != 0 or not found:
        raise LoadTestError("the client has failed")
    begin, end = marks
    return found, {name: end[name] - begin[name] for name in begin}


def postmaster_of(dsn: str) -> psutil.Process:
    with session.connect(dsn) as connection:
        row = connection.execute("select pg_backend_pid()").fetchone()
        assert row is not None
        parent = psutil.Process(row[0]).parent()
    assert parent is not None
    return parent


def installed(file: Path, dsn: str) -> tuple[dict[str, str], str]:
    """Installs a facility, and adds a login for writers: the environment of commands, and its password."""
    environment = os.environ | {"RINGLOG_DSN": dsn}
    password = secrets.token_urlsafe(12)
    run_ringlog(environment, "init", "--facility", str(file))
    run_ringlog(environment, "user", "add", WRITER, "--writer", "--password-stdin", stdin=password)
    return environment, password


def run_ringlog(environment: dict[str, str], *arguments: str, stdin: str = "") -> None:
    command = [*COMMAND, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise LoadTestError(done.stderr.strip())


@contextmanager
def serving(
    environment: dict[str, str], log_file: Path, *options: str
) -> Iterator[tuple[psutil.Process, int]]:
    with log_file.open("w") as log:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--listen", "127.0.0.1:0", *options],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
    try:
        assert process.stdout is not None
        ports = (re.match(r"TDS on .+:(\d+)$", line) for line in process.stdout)
        found = next(filter(None, ports), None)
        if found is None:
            raise LoadTestError(f"the server did not start: {log_file.read_text()}")
        yield psutil.Process(process.pid), int(found[1])
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
