"""Measures the gain of standbys for readers: `python -m ringlog_lab.readers`.

A primary and its standbys are made in a folder of their own, as if each were a machine: a control group gives
each the same small part of the processor (`--cores`), whatever else runs. Gateways and clients have the
rest of this machine, so it must have more cores than the servers get together. The same rows are read again
and again: by readers of the primary alone, and in turns with that by as many on each server. Those of the
standbys declare that they only read (ApplicationIntent=ReadOnly), or their login reads from standbys
(`ringlog user reads`). It takes root, control groups that may be changed, PostgreSQL from 15 on, freetds-dev
and a C compiler.
"""

import argparse
import json
import os
import pwd
import secrets
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import make_conninfo

from ringlog.clients.listening import free_port
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.server import postgres_cpu
from ringlog.schema import session
from ringlog_lab.bench.asking import asking
from ringlog_lab.bench.reading import fill
from ringlog_lab.budget import Hierarchy
from ringlog_lab.machines.host import account
from ringlog_lab.nodes import facility_text, installed, run_ringlog, serving
from ringlog_lab.peers.finding import postgresql_folders
from ringlog_lab.peers.process import Account, new_folder, run_program, running
from ringlog_lab.programs import build

_KEEPER, _PLANT = "keeper", "plant"
_READER, _STANDBY_READER = "reader", "standby_reader"
_WARM = 2.0
"""seconds of a load before it is measured"""

Ask = Callable[[str], str]


@dataclass(frozen=True)
class Load:
    """The rows read per second, and the cores used for it."""

    rows: dict[str, float]
    """by the readers' kind"""
    servers: list[float]
    gateways: float
    clients: float

    @property
    def all_rows(self) -> float:
        return sum(self.rows.values())


@dataclass(frozen=True)
class Reader:
    """A client that reads a result for each line it is sent."""

    kind: str
    ask: Ask


@dataclass(frozen=True)
class Postgres:
    """A server with a folder of its own."""

    programs: Path
    account: Account
    folder: Path
    port: int

    def conninfo(self, database: str = "postgres") -> str:
        """The superuser's, by the socket."""
        return make_conninfo(host=str(self.folder), port=self.port, user="postgres", dbname=database)

    def run(self, program: str, *arguments: str | Path) -> None:
        run_program([self.programs / program, *arguments], self.account, self.folder)

    def make(self) -> None:
        options = ("--username=postgres", "--encoding=UTF8", "--no-locale")
        rights = ("--auth-local=trust", "--auth-host=scram-sha-256")
        self.run("initdb", "-D", self.folder / "data", *options, *rights)

    def copy(self, primary: "Postgres") -> None:
        """Becomes a standby."""
        source = ("-h", primary.folder, "-p", str(primary.port), "-U", "postgres")
        self.run("pg_basebackup", *source, "-D", self.folder / "data", "-R", "-c", "fast")

    @contextmanager
    def running(self) -> Iterator[psutil.Process]:
        own = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "shared_buffers": "256MB",
        }
        command: list[str | Path] = [self.programs / "postgres", "-D", self.folder / "data"]
        command += [f"--{name}={value}" for name, value in own.items()]
        # its folder is removed at the end: nothing needs to be written down
        with running("PostgreSQL", command, self.account, self.folder, self._answers, signal.SIGQUIT) as one:
            yield one

    def _answers(self) -> bool:
        try:
            session.connect(self.conninfo()).close()
        except psycopg.OperationalError:
            return False
        return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ringlog_lab.readers", description=__doc__)
    parser.add_argument("--cores", type=float, default=0.2, help="of each server")
    parser.add_argument("--standbys", type=int, default=2)
    parser.add_argument("--readers", type=int, default=4, help="of each server")
    parser.add_argument("--gateways", type=int, help="as many as servers, if left out")
    parser.add_argument("--columns", type=int, default=200, help="reals in a row")
    parser.add_argument("--rows", type=int, default=1000, help="of a result")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--postgresql", type=Path, metavar="FOLDER", help="PostgreSQL's programs")
    given = parser.parse_args()
    try:
        _run(given)
    except LoadTestError as error:
        sys.exit(str(error))


def _run(given: argparse.Namespace) -> None:
    hierarchy = Hierarchy.of_this_machine()
    programs = given.postgresql or next(postgresql_folders(), None)
    if programs is None:
        raise LoadTestError("there is no PostgreSQL here: name its folder of programs by --postgresql")
    with tempfile.TemporaryDirectory(prefix="ringlog-readers-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        clients = build(folder)
        entry = pwd.getpwnam(account())
        owner = Account(entry.pw_uid, entry.pw_gid)
        places = range(1 + given.standbys)
        groups = [
            stack.enter_context(hierarchy.group(f"ringlog-{os.getpid()}-{index}", given.cores))
            for index in places
        ]
        primary, *standbys = servers = [
            Postgres(programs, owner, stack.enter_context(new_folder(own, owner)), free_port())
            for own in (folder / f"server{index}" for index in places)
        ]
        primary.make()
        postmasters = [stack.enter_context(primary.running())]
        file = folder / "plant.toml"
        tables = Tables("table_", 1, given.columns)
        file.write_text(facility_text(None, [tables], ()))
        environment, password = _install(file, servers)
        with session.connect(primary.conninfo(_PLANT), autocommit=True) as administrator:
            fill(administrator, tables, given.rows)
        for standby in standbys:
            standby.copy(primary)
            postmasters.append(stack.enter_context(standby.running()))
        # of the gateways' own role, which they share
        shared = folder / "password"
        shared.touch(0o600)
        shared.write_text(secrets.token_urlsafe(12))
        gateways, ports = [], []
        for number in range(given.gateways or len(servers)):
            log = folder / f"gateway{number}.log"
            gateway, port = stack.enter_context(
                serving(environment, log, "--gateway-password-file", str(shared))
            )
            gateways.append(gateway)
            ports.append(port)
        for group, postmaster in zip(groups, postmasters, strict=True):
            group.take(postmaster)
        command = [str(clients / "tdsread"), "-v", "7.4"]
        command += ["-x", f"get_{tables.names[0]}_range", "-r", str(given.rows)]
        readers = [stack.enter_context(one) for one in _readers(given, folder, command, ports, password)]
        _check(servers, given.readers)
        rates = []
        for _ in range(given.rounds):
            alone = _load(readers[: given.readers], given.seconds, postmasters, gateways)
            together = _load(readers, given.seconds, postmasters, gateways)
            rates.append((alone.all_rows, together.all_rows))
            print(f"one server: {_text(alone)}\n{len(servers)} servers: {_text(together)}")
            print(f"  {together.all_rows / alone.all_rows:.2f} times as many rows", flush=True)
    alone_rate, rate = (statistics.median(column) for column in zip(*rates, strict=True))
    ratios = [together / alone for alone, together in rates]
    print(
        f"medians: {alone_rate:,.0f} and {rate:,.0f} rows/s; {statistics.median(ratios):.2f} times as many"
        f" ({min(ratios):.2f} to {max(ratios):.2f}); load of the machine {os.getloadavg()[0]:.1f}"
    )


def _install(file: Path, servers: Sequence[Postgres]) -> tuple[dict[str, str], str]:
    """Installs a facility and the readers' logins: the environment of commands, and the logins' password."""
    primary = servers[0]
    with session.connect(primary.conninfo(), autocommit=True) as connection:
        connection.execute(f"create role {_KEEPER} login createrole password '{_KEEPER}'")
        connection.execute(f"create database {_PLANT} owner {_KEEPER}")
    dsn = make_conninfo(
        host=",".join("127.0.0.1" for _ in servers),
        port=",".join(str(server.port) for server in servers),
        user=_KEEPER,
        password=_KEEPER,
        dbname=_PLANT,
    )
    environment, password = installed(file, dsn)
    for login in (_READER, _STANDBY_READER):
        run_ringlog(environment, "user", "add", login, "--reader", "--password-stdin", stdin=password)
    # only a superuser may set the settings of a login
    superuser = environment | {"RINGLOG_DSN": primary.conninfo(_PLANT)}
    run_ringlog(superuser, "user", "reads", _STANDBY_READER, "standby")
    return environment, password


def _readers(
    given: argparse.Namespace, folder: Path, command: list[str], ports: Sequence[int], password: str
) -> Iterator[AbstractContextManager[Reader]]:
    """Those of the primary, then those of the standbys, half of which have the login; as many of them as a
    server has by each gateway."""
    configuration = folder / "freetds.conf"
    configuration.write_text("[global]\n\tread-only intent = yes\n")
    by_intent = ["env", f"FREETDSCONF={configuration}", *command, "-u", _READER]
    by_login = [*command, "-u", _STANDBY_READER]
    for number in range(given.readers * (1 + given.standbys)):
        gateway = ["-p", str(ports[number // given.readers % len(ports)])]
        if number < given.readers:
            yield _reader("primary", [*command, "-u", _READER, *gateway], password)
        # standbys take turns, with the same number of either kind on each
        elif (number - given.readers) // given.standbys % 2:
            yield _reader("by login", [*by_login, *gateway], password)
        else:
            yield _reader("ReadOnly", [*by_intent, *gateway], password)


@contextmanager
def _reader(kind: str, command: list[str], password: str) -> Iterator[Reader]:
    with asking(command, password, f"a reader ({kind})") as ask:
        yield Reader(kind, ask)


def _check(servers: Sequence[Postgres], readers: int) -> None:
    """Raises LoadTestError unless each server has this number of readers."""
    query = (
        "select count(*) from pg_stat_activity where usename = any(%s) and backend_type = 'client backend'"
    )
    found = []
    for server in servers:
        with session.connect(server.conninfo()) as connection:
            row = connection.execute(query, [[_READER, _STANDBY_READER]]).fetchone()
            assert row is not None
            found.append(int(row[0]))
    if set(found) != {readers}:
        raise LoadTestError(f"each server was to have {readers} readers, and they have {found}")


def _load(
    readers: Sequence[Reader],
    seconds: float,
    postmasters: Sequence[psutil.Process],
    gateways: Sequence[psutil.Process],
) -> Load:
    """All of these read, one result after the other."""
    stop = threading.Event()
    rows, spent = [0] * len(readers), [0.0] * len(readers)

    def read(index: int) -> None:
        while not stop.is_set():
            result = json.loads(readers[index].ask("read"))
            rows[index] += result["rows"]
            spent[index] += result["client"]

    def mark() -> list[float]:
        own = [gateway.cpu_times() for gateway in gateways]
        servers = [postgres_cpu(postmaster)[0] for postmaster in postmasters]
        used = sum(one.user + one.system for one in own)
        return [time.monotonic(), used, sum(spent), *servers, *rows]

    with ThreadPoolExecutor(len(readers)) as pool:
        reading = [pool.submit(read, index) for index in range(len(readers))]
        try:
            time.sleep(_WARM)
            before = mark()
            time.sleep(seconds)
            after = mark()
        finally:
            stop.set()
    for one in reading:
        one.result()
    length, *found = (end - begin for begin, end in zip(before, after, strict=True))
    of_gateways, of_clients, *rest = (one / length for one in found)
    by_kind: dict[str, float] = {}
    for reader, rate in zip(readers, rest[len(postmasters) :], strict=True):
        by_kind[reader.kind] = by_kind.get(reader.kind, 0.0) + rate
    return Load(by_kind, rest[: len(postmasters)], of_gateways, of_clients)


def _text(load: Load) -> str:
    kinds = ", ".join(f"{kind} {rate:,.0f}" for kind, rate in load.rows.items())
    servers = ", ".join(f"{cores:.2f}" for cores in load.servers)
    return (
        f"{load.all_rows:,.0f} rows/s ({kinds}); cores of the servers {servers}, of the gateways"
        f" {load.gateways:.2f}, of the clients {load.clients:.2f}"
    )


if __name__ == "__main__":
    main()
