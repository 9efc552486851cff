"""Kills and cuts at random moments, and a comparison of the sources with the log.

    python tests/long/faults/faults.py --faults 300

A server and `ringlog load` run with recordings as sources, at their own pace. Writers, the supervisor, the
server (gateway), PostgreSQL are killed with SIGKILL and connections are cut; on request the server is away,
its disk is full, the spools' disk is full; until the recordings have ended. Then every row of every recording
must be in the log exactly once, with its values. Only rows thinned by a full spool may be missing: as many as
in the ledger. With `--points` each row is a waveform of so many points.
"""

import argparse
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil
from psycopg import sql

from killed_server import RINGLOG, KilledServer
from proxy import Proxy
from recordings import COLUMNS, record_values, record_waveforms, recorded
from ringlog.schema import session
from small_disk import filled, small_disk

SERVER_DISK, SPOOL_DISK = "600m", "24m"
"""Sizes of disks that become full: a little more than their use at the beginning."""
_TOGETHER = Counter({"writer": 6, "connections": 6, "supervisor": 2, "gateway": 2, "postgresql": 2})
"""Kinds of faults, and their number in a round."""
# Seconds until writers store rows, and until all rows are stored after the recordings' own length.
_STARTED, _DRAINED = 120.0, 300.0


@dataclass
class Figures:
    """The faults, and their outcome."""

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
    """A server, recordings and writers in their own folder."""

    processes: int | None = None
    """of the writers; None: one a table"""

    def __init__(
        self,
        folder: Path,
        tables: int,
        cycle: float,
        rows: int,
        budget: int,
        say: Callable[[str], None],
        points: int = 0,
    ) -> None:
        self.folder = folder
        self._tables = [f"fault_{number}" for number in range(tables)]
        self._say = say
        (folder / "server").mkdir(exist_ok=True)
        self._spool = folder / "spool"
        self._budget = budget
        self._facility = folder / "facility.toml"
        self._recordings = folder / "recordings"
        column = f'name = "c_{{n}}"\ncount = {COLUMNS}\ntype = "double"'
        if points:
            column = f'name = "trace"\ntype = "double[]"\npoints = {points}'
        self._facility.write_text(
            "".join(
                f'[[table]]\nname = "{name}"\nrows = 100\ncycle = {cycle}\n[[table.column]]\n{column}\n'
                for name in self._tables
            )
        )
        self.length = rows * cycle
        self._form = "parquet" if points else "csv"
        self._columns = ["trace"] if points else [f"c_{number}" for number in range(1, COLUMNS + 1)]
        self._record(cycle, rows, points)
        self._load: subprocess.Popen[bytes] | None = None
        self._password = secrets.token_urlsafe(12)
        self.server = KilledServer(folder / "server" / "data", self._facility, folder / "serve.log")
        subprocess.run(
            self.server.command("user", "add", "writer", "--writer", "--password-stdin"),
            input=self._password.encode(),
            check=True,
            capture_output=True,
        )
        self.dsn = self.server.dsn
        self.proxy = Proxy(self.server.port)

    def _record(self, cycle: float, rows: int, points: int) -> None:
        begins = dict.fromkeys(self._tables, datetime.now(UTC).replace(microsecond=0))
        if points:
            record_waveforms(self._recordings, begins, cycle, rows, points)
        else:
            record_values(self._recordings, begins, cycle, rows)

    def start_writers(self) -> None:
        with (self.folder / "load.log").open("ab") as log:
            command = [
                *RINGLOG,
                "load",
                "--facility",
                str(self._facility),
                "--spool",
                str(self._spool),
                "--spool-budget",
                str(self._budget),
            ]
            command += ["--source", f"{self._form}:{self._recordings}"]
            if self.processes is not None:
                command += ["--processes", str(self.processes)]
            self._load = subprocess.Popen(
                [*command, "--url", f"tds://writer@127.0.0.1:{self.proxy.port}"],
                stdout=log,
                stderr=log,
                env=os.environ | {"RINGLOG_PASSWORD": self._password},
            )

    def tend(self) -> bool:
        """Restarts ended processes, like systemd. Returns whether writers still have work."""
        assert self._load is not None
        self.server.tend()
        if (code := self._load.poll()) is None:
            return True
        if code == 0:
            return False
        self.start_writers()
        return True

    def harm(self, kind: str) -> bool:
        """Makes a fault; False if there was nothing to harm."""
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
                    self.server.kill()
                case "postgresql":
                    self.server.kill_postgresql()
        except (psutil.Error, OSError, IndexError, ValueError):
            return False
        return True

    def await_rows(self) -> None:
        """Waits until every writer stores rows: a recording whose writer has just begun waits for the server,
        unlike a machine."""
        before = self._stored()
        until = time.monotonic() + _STARTED
        while self.tend() and any(now == then for now, then in zip(self._stored(), before, strict=True)):
            if time.monotonic() > until:
                raise RuntimeError(f"writers store nothing: {(self.folder / 'load.log').read_text()[-2000:]}")
            time.sleep(0.1)

    def await_end(self, drained: float) -> None:
        """Waits until the writers have stored their recordings, at most their length and `drained` s."""
        until = time.monotonic() + self.length + drained
        while self.tend():
            if time.monotonic() > until:
                raise RuntimeError(
                    f"the writers do not end: {(self.folder / 'load.log').read_text()[-2000:]}"
                )
            time.sleep(0.1)

    def _stored(self) -> list[int]:
        with session.connect(self.dsn) as connection:
            counts = (
                sql.SQL("(select count(*) from {})").format(sql.Identifier("log", name))
                for name in self._tables
            )
            row = connection.execute(sql.SQL("select {}").format(sql.SQL(", ").join(counts))).fetchone()
            assert row is not None
            return [*row]

    def outage(self, seconds: float) -> None:
        """Stops the server for this many seconds."""
        self.proxy.closed = True
        self.proxy.cut()
        time.sleep(seconds)
        self.proxy.closed = False

    def _rows_of(self, name: str) -> dict[datetime, list[object]]:
        """The expected log of a table: the values by their times."""
        return recorded(self._recordings / f"{name}.{self._form}")

    def compare(self, figures: Figures) -> None:
        """Searches for every row of the recordings in the log, and for every row of the log in them."""
        with session.connect(self.dsn, options="-c timezone=UTC") as connection:
            for name in self._tables:
                wanted = self._rows_of(name)
                columns = (sql.Identifier(column) for column in self._columns)
                query = sql.SQL('select seq_no, "time", {} from {}').format(
                    sql.SQL(", ").join(columns), sql.Identifier("log", name)
                )
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
        if self._load is not None and self._load.poll() is None:
            self._load.terminate()
            self._load.wait()
        self.server.stop()


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
    points: int = 0,
) -> Iterator[Site]:
    """A site in a temporary folder that every account can enter.

    `server_disk` and `spool_disk` are sizes (600m) of file systems of their own, in memory; mounting
    them takes root. `budget` is that of a spool, in MiB. With `points` the rows are waveforms of so many.
    """
    folder = Path(tempfile.mkdtemp(prefix="ringlog-faults-", dir="/tmp"))
    folder.chmod(0o755)
    made: Site | None = None
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for name, size in (("server", server_disk), ("spool", spool_disk)):
            if size:
                stack.enter_context(small_disk(folder / name, size))
        made = Site(folder, tables, cycle, rows, budget, say, points)
        stack.callback(made.stop)
        yield made


def _rounds(kinds: list[str]) -> Iterator[str]:
    """All faults in a random order, repeatedly, so that also a short run has faults of each kind."""
    while True:
        yield from random.sample(kinds, len(kinds))


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
    kinds = _rounds(list(_TOGETHER.elements()))
    kind = next(kinds)
    while sum(figures.faults.values()) < faults:
        time.sleep(random.expovariate(1 / mean))
        if not place.tend():
            break
        # a process that is being restarted, which takes long on a busy machine, is harmed later
        if not place.harm(kind):
            continue
        figures.faults[kind] += 1
        kind = next(kinds)
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
        with filled(place.folder / "server"):
            time.sleep(full_server)
        figures.faults["full disk of the server"] += 1
        place.tend()
    if full_spool:
        place.await_rows()
        say(f"the spools' disk is full for {full_spool:.0f} s")
        with filled(place.folder / "spool"):
            place.outage(full_spool)
        figures.faults["full disk of the spools"] += 1
    place.await_end(_DRAINED)
    figures.seconds = time.monotonic() - begun
    place.compare(figures)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/long/faults/faults.py", description=__doc__)
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--mean", type=float, default=1.0, help="seconds between faults, on average")
    parser.add_argument("--tables", type=int, default=6)
    parser.add_argument("--cycle", type=float, default=0.1)
    parser.add_argument("--rows", type=int, default=3000, help="of each recording")
    parser.add_argument("--points", type=int, default=0, help="of waveforms, in place of single values")
    parser.add_argument(
        "--outage", type=float, default=0.0, help="seconds without a server, after the faults"
    )
    parser.add_argument(
        "--full-server", type=float, default=0.0, help="seconds without space under PostgreSQL (needs root)"
    )
    parser.add_argument(
        "--full-spool", type=float, default=0.0, help="seconds without space under the spools (needs root)"
    )
    parser.add_argument("--processes", type=int, default=None, help="of the writers; default: one a table")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    random.seed(options.seed)
    with site(
        options.tables,
        options.cycle,
        options.rows,
        server_disk=SERVER_DISK if options.full_server else "",
        spool_disk=SPOOL_DISK if options.full_spool else "",
        # so that the spools of all tables fit on their disk until it is filled
        budget=4 if options.full_spool else 1024,
        points=options.points,
    ) as place:
        place.processes = options.processes
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
