"""Kills and cuts at random moments, and a comparison of what the sources had with what the log has.

    python -m ringlog.loadtest.faults --faults 300

A server and `ringlog load` run with recordings as sources, at their own pace. Writers, the supervisor, the
server (gateway), PostgreSQL are killed with SIGKILL and connections are cut; then, where asked for, the
server is away, its disk is full, the spools' disk is full; until the recordings have ended. Then every row of
every recording must be in the log exactly once, with its values. Only what a full spool has thinned may be
missing: as many rows as the ledger says.
"""

import argparse
import csv
import os
import random
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

_RINGLOG = (sys.executable, "-P", "-c", "from ringlog.cli import main; main()")
_COLUMNS = 20
SERVER_DISK, SPOOL_DISK = "600m", "24m"
"""Sizes of disks that are to be full: what is in use at the begin, and little more."""
_TOGETHER = Counter({"writer": 6, "connections": 6, "supervisor": 2, "gateway": 2, "postgresql": 2})
"""Kinds of faults, and how often one is chosen beside the others."""
# Seconds until a server takes calls and writers store rows, and beyond the recordings' own length until all
# is through.
_STARTED, _DRAINED = 120.0, 300.0


class Proxy:
    """A way to the server whose connections can be cut, all at once, at any moment."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self._lock:
            doomed, self._open = self._open, set()
        for end in doomed:
            with suppress(OSError):
                # with a reset: what is on its way is lost
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            try:
                if self.closed:
                    raise ConnectionError
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with self._lock:
                self._open.discard(end)
            with suppress(OSError):
                # wakes the thread that waits for the other direction: closing alone would leave it open
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@dataclass
class Figures:
    """What was done, and what came of it."""

    faults: Counter[str] = field(default_factory=Counter)
    produced: int = 0
    in_log: int = 0
    lost: int = 0
    repeated: int = 0
    altered: int = 0
    thinned: int = 0
    calls_repeated: int = 0
    late: int = 0
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return not (self.lost - self.thinned or self.repeated or self.altered)

    def __str__(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.faults.items()))
        return (
            f"{sum(self.faults.values())} faults in {self.seconds:.0f} s ({kinds})\n"
            f"{self.produced} rows produced, {self.in_log} in the log: "
            f"{self.lost} lost ({self.thinned} of them thinned, says the ledger), {self.repeated} repeated, "
            f"{self.altered} altered\n"
            f"{self.calls_repeated} calls were repeated, {self.late} rows came late"
        )


class Site:
    """A server, recordings and writers in a folder of their own."""

    def __init__(
        self, folder: Path, tables: int, cycle: float, rows: int, budget: int, say: Callable[[str], None]
    ) -> None:
        self.folder = folder
        self._tables = [f"fault_{number}" for number in range(tables)]
        self._say = say
        self._data = folder / "server" / "data"
        self._data.parent.mkdir(exist_ok=True)
        self._spool = folder / "spool"
        self._budget = budget
        self._facility = folder / "facility.toml"
        self._facility.write_text(
            "".join(
                f'[[table]]\nname = "{name}"\nrows = 100\ncycle = {cycle}\n'
                f'[[table.column]]\nname = "c_{{n}}"\ncount = {_COLUMNS}\ntype = "double"\n'
                for name in self._tables
            )
        )
        self.length = rows * cycle
        self._record(cycle, rows)
        self._port = _free_port()
        self._pg_port = _free_port()
        self._serve: subprocess.Popen[bytes] | None = None
        self._load: subprocess.Popen[bytes] | None = None
        self._password = secrets.token_urlsafe(12)
        self.start_server()
        words = [
            *_RINGLOG,
            "user",
            "add",
            "writer",
            "--writer",
            "--password-stdin",
            "--data",
            str(self._data),
        ]
        subprocess.run(words, input=self._password.encode(), check=True, capture_output=True)
        words = [*_RINGLOG, "dsn", "--data", str(self._data)]
        self.dsn = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        self.proxy = Proxy(self._port)

    def _record(self, cycle: float, rows: int) -> None:
        folder = self.folder / "recordings"
        folder.mkdir()
        begin = datetime.now(UTC).replace(microsecond=0)
        for name in self._tables:
            dice = random.Random(name)
            with (folder / f"{name}.csv").open("w", newline="") as file:
                lines = csv.writer(file)
                lines.writerow(["time", *(f"c_{number}" for number in range(1, _COLUMNS + 1))])
                for number in range(rows):
                    moment = begin + timedelta(seconds=number * cycle)
                    lines.writerow([moment.isoformat(), *(repr(dice.random()) for _ in range(_COLUMNS))])

    def start_server(self) -> None:
        """Starts `ringlog serve`, and waits until it takes calls."""
        said = self.folder / "serve.log"
        begun = time.monotonic()
        # after kill -9 the port may be taken for a moment
        while True:
            command = [*_RINGLOG, "serve", "--facility", str(self._facility), "--data", str(self._data)]
            command += ["--listen", f"127.0.0.1:{self._port}", "--memory", "512MB", "--pg-port"]
            with said.open("wb") as log:
                self._serve = subprocess.Popen([*command, str(self._pg_port)], stdout=log, stderr=log)
            while self._serve.poll() is None:
                if re.search(r"^TDS on", said.read_text(errors="replace"), re.MULTILINE):
                    return
                time.sleep(0.05)
            if time.monotonic() - begun > _STARTED:
                raise RuntimeError(f"the server does not start: {said.read_text(errors='replace')}")
            time.sleep(0.2)

    def start_writers(self) -> None:
        with (self.folder / "load.log").open("ab") as log:
            command = [
                *_RINGLOG,
                "load",
                "--facility",
                str(self._facility),
                "--spool",
                str(self._spool),
                "--spool-budget",
                str(self._budget),
            ]
            command += ["--source", f"csv:{self.folder / 'recordings'}"]
            self._load = subprocess.Popen(
                [*command, "--url", f"tds://writer@127.0.0.1:{self.proxy.port}"],
                stdout=log,
                stderr=log,
                env=os.environ | {"RINGLOG_PASSWORD": self._password},
            )

    def tend(self) -> bool:
        """Starts again what a person or systemd would; whether writers still have something to do."""
        assert self._serve is not None
        assert self._load is not None
        if self._serve.poll() is not None:
            self.start_server()
        if (code := self._load.poll()) is None:
            return True
        if code == 0:
            return False
        self.start_writers()
        return True

    def harm(self, kind: str) -> bool:
        """Makes a fault; False when there was nothing to harm."""
        assert self._serve is not None
        assert self._load is not None
        try:
            match kind:
                case "writer":
                    writers = psutil.Process(self._load.pid).children()
                    random.choice(writers).kill()
                case "connections":
                    self.proxy.cut()
                case "supervisor":
                    self._load.kill()
                    self._load.wait()
                case "gateway":
                    self._serve.kill()
                    self._serve.wait()
                case "postgresql":
                    pid = int((self._data / "postgresql-18" / "postmaster.pid").read_text().split()[0])
                    os.kill(pid, signal.SIGKILL)
                    self._serve.wait(30)
        except (psutil.Error, OSError, IndexError, ValueError):
            return False
        return True

    def await_rows(self) -> None:
        """Waits until every writer stores rows: a recording whose writer has only begun waits for the server,
        as no machine does."""
        before = self._stored()
        until = time.monotonic() + _STARTED
        while self.tend() and any(now == then for now, then in zip(self._stored(), before, strict=True)):
            if time.monotonic() > until:
                raise RuntimeError(f"writers store nothing: {(self.folder / 'load.log').read_text()[-2000:]}")
            time.sleep(0.1)

    def _stored(self) -> list[int]:
        with psycopg.connect(self.dsn) as connection:
            counts = (
                sql.SQL("(select count(*) from {})").format(sql.Identifier("log", name))
                for name in self._tables
            )
            row = connection.execute(sql.SQL("select {}").format(sql.SQL(", ").join(counts))).fetchone()
            assert row is not None
            return [*row]

    def outage(self, seconds: float) -> None:
        """Takes the server away for so long."""
        self.proxy.closed = True
        self.proxy.cut()
        time.sleep(seconds)
        self.proxy.closed = False

    @contextmanager
    def full_disk(self, of: str) -> Iterator[None]:
        """Takes all that is left of the disk of the `server` or the `spool`, which must be a small one."""
        taken = self.folder / of / "taken"
        with suppress(OSError), taken.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        try:
            yield
        finally:
            taken.unlink()

    def compare(self, figures: Figures) -> None:
        """Looks for every row of the recordings in the log, and for every row of the log in them."""
        with psycopg.connect(self.dsn, options="-c timezone=UTC") as connection:
            for name in self._tables:
                with (self.folder / "recordings" / f"{name}.csv").open(newline="") as file:
                    lines = csv.reader(file)
                    next(lines)
                    wanted = {
                        datetime.fromisoformat(line[0]): [float(cell) for cell in line[1:]] for line in lines
                    }
                query = sql.SQL("select * from {}").format(sql.Identifier("log", name))
                stored = connection.execute(query, binary=True).fetchall()
                times = Counter(row[1] for row in stored)
                figures.produced += len(wanted)
                figures.in_log += len(stored)
                figures.lost += sum(moment not in times for moment in wanted)
                figures.repeated += sum(count - 1 for count in times.values())
                figures.altered += sum(wanted.get(row[1]) != list(row[2:]) for row in stored)
            books = connection.execute(
                "select sum(repeated)::int, sum(late)::int, sum(thinned)::int from ringlog.ledger"
            ).fetchone()
            assert books is not None
            figures.calls_repeated, figures.late, figures.thinned = books

    def stop(self) -> None:
        for process in (self._load, self._serve):
            if process is not None and process.poll() is None:
                process.terminate()
                process.wait()


@contextmanager
def site(
    tables: int,
    cycle: float,
    rows: int,
    say: Callable[[str], None] = print,
    *,
    server_disk: str = "",
    spool_disk: str = "",
    budget: int = 1024,
) -> Iterator[Site]:
    """A site in a temporary folder that every account can enter.

    `server_disk` and `spool_disk` are sizes (600m) of file systems of their own, in memory; mounting
    them takes root. `budget` is that of a spool, in MiB.
    """
    folder = Path(tempfile.mkdtemp(prefix="ringlog-faults-", dir="/tmp"))
    folder.chmod(0o755)
    made: Site | None = None
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for name, size in (("server", server_disk), ("spool", spool_disk)):
            if size:
                stack.enter_context(_disk(folder / name, size))
        made = Site(folder, tables, cycle, rows, budget, say)
        stack.callback(made.stop)
        yield made


@contextmanager
def _disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        # what was just killed may still hold it
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def run(
    place: Site,
    faults: int,
    mean: float,
    outage: float,
    say: Callable[[str], None] = print,
    *,
    full_server: float = 0.0,
    full_spool: float = 0.0,
) -> Figures:
    """Makes so many faults, `mean` seconds apart on average, and an outage; then lets the writers finish.

    `full_server` and `full_spool` are seconds without space on these disks; the server is away while the
    spools' is full.
    """
    figures = Figures()
    begun = time.monotonic()
    place.start_writers()
    kinds = list(_TOGETHER.elements())
    while sum(figures.faults.values()) < faults:
        time.sleep(random.expovariate(1 / mean))
        if not place.tend():
            break
        kind = random.choice(kinds)
        figures.faults[kind] += place.harm(kind)
        if sum(figures.faults.values()) % 20 == 0:
            say(f"{time.monotonic() - begun:.0f} s: {sum(figures.faults.values())} faults")
    place.tend()
    if outage:
        place.await_rows()
        say(f"the server is away for {outage:.0f} s")
        place.outage(outage)
        figures.faults["outage"] += 1
    if full_server:
        place.await_rows()
        say(f"the server's disk is full for {full_server:.0f} s")
        with place.full_disk("server"):
            time.sleep(full_server)
        figures.faults["full disk of the server"] += 1
        place.tend()
    if full_spool:
        place.await_rows()
        say(f"the spools' disk is full for {full_spool:.0f} s")
        with place.full_disk("spool"):
            place.outage(full_spool)
        figures.faults["full disk of the spools"] += 1
    until = time.monotonic() + place.length + _DRAINED
    while place.tend():
        if time.monotonic() > until:
            raise RuntimeError(f"the writers do not end: {(place.folder / 'load.log').read_text()[-2000:]}")
        time.sleep(0.1)
    figures.seconds = time.monotonic() - begun
    place.compare(figures)
    return figures


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ringlog.loadtest.faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--mean", type=float, default=1.0, help="seconds between faults, on average")
    parser.add_argument("--tables", type=int, default=6)
    parser.add_argument("--cycle", type=float, default=0.1)
    parser.add_argument("--rows", type=int, default=3000, help="of each recording")
    parser.add_argument(
        "--outage", type=float, default=0.0, help="seconds without a server, after the faults"
    )
    parser.add_argument(
        "--full-server", type=float, default=0.0, help="seconds without space under PostgreSQL (needs root)"
    )
    parser.add_argument(
        "--full-spool", type=float, default=0.0, help="seconds without space under the spools (needs root)"
    )
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    random.seed(options.seed)
    with site(
        options.tables,
        options.cycle,
        options.rows,
        server_disk=SERVER_DISK if options.full_server else "",
        spool_disk=SPOOL_DISK if options.full_spool else "",
        # so that the spools of all tables fit on their disk until it is taken
        budget=4 if options.full_spool else 1024,
    ) as place:
        figures = run(
            place,
            options.faults,
            options.mean,
            options.outage,
            full_server=options.full_server,
            full_spool=options.full_spool,
        )
    print(figures)
    sys.exit(not figures.good)


if __name__ == "__main__":
    main()
