"""Kills, full disks and damaged files during archiving, and a comparison of all stored rows.

    python tests/long/faults/archive_faults.py --faults 100

A log of many weeks, of which one stays in PostgreSQL, is archived by a server and by `ringlog archive now`.
Both and PostgreSQL are killed at random moments, the archive's disk is filled (a small one of its own,
which takes root), files are truncated, broken, deleted and swapped, which `ringlog archive verify` must find
and readers must not take for rows, before they are put back; weeks are recalled; rows come late for weeks in
the archive, and rows that are there come again.
Then log and archive together must have every row that was acknowledged, once, with its values, and the
summaries must be of these.
"""

import argparse
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import psycopg
from psycopg import sql

from killed_server import KilledServer
from ringlog.schema import session
from ringlog.schema.relations.partitions import Week
from small_disk import filled, small_disk

_TABLES = ("fault_0", "fault_1")
_COLUMNS = 6
_PERIOD = timedelta(minutes=15)
_WEEKS = 6
"""at the begin; more come with the faults"""
_BEGIN = Week(Week.of(datetime.now(UTC)).start - timedelta(weeks=150)).start
DISK = "24m"
_PATIENCE = 120.0  # seconds for a run to end
_FACILITY = """
[history]
online = "1 week"
archive = "{archive}"
"""
_TABLE = """
[[table]]
name = "{name}"
rows = 100
cycle = 60
[[table.column]]
name = "c_{{n}}"
count = {columns}
type = "double"
[[table.column]]
name = "wave"
type = "real[]"
points = 100
"""
_TOGETHER = Counter(
    {"run killed": 6, "server killed": 3, "postgresql killed": 3, "late rows": 4, "damage": 3, "recall": 2}
)

Row = tuple[object, ...]


@dataclass
class Figures:
    """The faults, and their outcome."""

    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    stored: int = 0
    in_archive: int = 0
    lost: int = 0
    repeated: int = 0
    altered: int = 0
    undetected: int = 0
    """damages that `ringlog archive verify` did not find"""
    misread: int = 0
    """damages after which a reader got an answer without all rows"""
    unnamed: int = 0
    """files of weeks that the manifest does not name in the end"""
    trend: int = 0
    """rows in the summaries"""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        wrong = self.lost or self.repeated or self.altered or self.undetected or self.misread or self.unnamed
        return not wrong and self.trend == self.acknowledged

    def __str__(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.faults.items()))
        return (
            f"{sum(self.faults.values())} faults in {self.seconds:.0f} s ({kinds})\n"
            f"{self.acknowledged} rows acknowledged, {self.stored} stored, {self.in_archive} of them in the"
            f" archive: {self.lost} lost, {self.repeated} repeated, {self.altered} altered;"
            f" {self.undetected} damages not found, {self.misread} misread; {self.unnamed} files that the"
            f" manifest does not name; {self.trend} rows in the summaries"
        )


class Site:
    """A server with an archive, and all rows that it has acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        self._facility = folder / "facility.toml"
        self._facility.write_text(
            _FACILITY.format(archive=self.archive / "weeks")
            + "".join(_TABLE.format(name=name, columns=_COLUMNS) for name in _TABLES)
        )
        self.rows: dict[str, dict[tuple[datetime, int], Row]] = {name: {} for name in _TABLES}
        self.newest = _BEGIN
        # its housekeeping archives at once
        self.server = KilledServer(folder / "data", self._facility, folder / "serve.log")
        self.dsn = self.server.dsn
        # a folder that the account of the server may write
        for _ in range(_WEEKS):
            self.add_week()

    def add_week(self) -> None:
        """Another week of rows to archive."""
        moments = [self.newest + number * _PERIOD for number in range(timedelta(weeks=1) // _PERIOD)]
        for name in _TABLES:
            self._put(name, moments)
        self.newest += timedelta(weeks=1)

    def come_late(self) -> None:
        """Sends new rows of old weeks, and rows that exist already."""
        for name in _TABLES:
            span = (self.newest - _BEGIN) // timedelta(seconds=1)
            moments = [_BEGIN + timedelta(seconds=random.randrange(span), microseconds=7) for _ in range(20)]
            self._put(name, sorted(set(moments)))
            with session.connect(self.dsn, autocommit=True) as connection:
                for key in random.sample(sorted(self.rows[name]), 20):
                    self._call(connection, name, self.rows[name][key])

    def _put(self, name: str, moments: list[datetime]) -> None:
        with session.connect(self.dsn, autocommit=True) as connection, connection.pipeline():
            rows: list[Row] = []
            for number, moment in enumerate(moments):
                values = [random.random() for _ in range(_COLUMNS)]
                wave = [float(n) for n in range(random.randrange(5))]
                rows.append((number % 100 + 1, moment, *values, wave))
                self._call(connection, name, rows[-1])
        # a pipeline that ends without an error has all of them committed
        self.rows[name] |= {(row[1], row[0]): row for row in rows}  # type: ignore[misc]

    @staticmethod
    def _call(connection: psycopg.Connection, name: str, row: Row) -> None:
        places = sql.SQL(", ").join([sql.Placeholder()] * (2 + _COLUMNS))
        connection.execute(
            sql.SQL("select {}(row ({}, {}::real[])::{})").format(
                sql.Identifier("ringlog", f"put_{name}"),
                places,
                sql.Placeholder(),
                sql.Identifier("online", name),
            ),
            row,
        )

    def harm(self, kind: str, figures: Figures) -> None:
        match kind:
            case "run killed":
                run = subprocess.Popen(self.server.command("archive", "now"), stdout=subprocess.DEVNULL)
                time.sleep(random.uniform(0.5, 6.0))
                run.kill()
                run.wait()
            case "server killed":
                self.server.kill()
            case "postgresql killed":
                run = subprocess.Popen(
                    self.server.command("archive", "now"),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                time.sleep(random.uniform(0.5, 4.0))
                with suppress(OSError, ValueError, IndexError):
                    self.server.kill_postgresql()
                with suppress(subprocess.TimeoutExpired):
                    run.wait(_PATIENCE)
                run.kill()
                run.wait()
            case "late rows":
                self.come_late()
            case "damage":
                self._damage(figures)
            case "recall":
                first = self.newest - timedelta(weeks=random.randrange(2, _WEEKS))
                words = ["recall", random.choice(_TABLES), f"{first:%Y-%m-%d}"]
                words += [f"{first + timedelta(days=8):%Y-%m-%d}"]
                run = subprocess.Popen(self.server.command(*words), stdout=subprocess.DEVNULL)
                with suppress(subprocess.TimeoutExpired):
                    run.wait(random.uniform(1.0, 8.0))
                run.kill()
                run.wait()
        self.server.tend()
        figures.faults[kind] += 1

    def _damage(self, figures: Figures) -> None:
        """Damages a file, checks that the damage is found, and restores the file."""
        with session.connect(self.dsn) as connection:
            found = connection.execute(
                "select file, table_name, begins, ends from ringlog.cold_week"
                " where rows > 0 and recalled_until is null order by random() limit 2"
            ).fetchall()
        if len(found) < 2:
            return
        file, table, begins, ends = found[0]
        path, other = (self.archive / "weeks" / each[0] for each in found)
        try:
            content, others = path.read_bytes(), other.read_bytes()
        except FileNotFoundError:
            return  # a round in the server has replaced it meanwhile
        place = random.randrange(len(content))
        broken = bytearray(content)
        broken[place] ^= 1 << random.randrange(8)
        wrong = random.choice([bytes(broken), content[:place], b"", others, None])
        if wrong is None:
            path.unlink()
        else:
            path.write_bytes(wrong)
        try:
            done = subprocess.run(self.server.command("archive", "verify"), capture_output=True, text=True)
            right = self._reads(table, begins, ends)
            if self._names(file):  # no round in the server has replaced it meanwhile
                figures.undetected += not (done.returncode == 1 and path.name in done.stdout)
                figures.misread += not right
        finally:
            if self._names(file):
                path.write_bytes(content)

    def _reads(self, table: str, begins: datetime, ends: datetime) -> bool:
        """Returns whether a reader of a damaged week gets all rows, or an error."""
        from ringlog.history.archive.folder import Damaged
        from ringlog.history.reading import read

        wanted = sum(begins <= moment < ends for moment, _ in self.rows[table])
        for columns in (["c_1"], ["wave"]):
            try:
                if sum(batch.num_rows for batch in read(self.dsn, table, columns, begins, ends)) != wanted:
                    return False
            except Damaged:
                continue
        return True

    def _names(self, file: str) -> bool:
        with session.connect(self.dsn) as connection:
            query = "select exists (select from ringlog.cold_week where file = %s)"
            return bool(connection.execute(query, [file]).fetchall()[0][0])

    def fill_disk(self) -> None:
        """A round without space for a file: it must fail, and drop no rows."""
        with filled(self.archive):
            subprocess.run(self.server.command("archive", "now"), capture_output=True)

    def finish(self) -> None:
        """Archives everything that is due; raises RuntimeError on failure."""
        self.server.tend()
        with session.connect(self.dsn, autocommit=True) as connection:
            connection.execute(
                "update ringlog.cold_week set recalled_until = now() where recalled_until > now()"
            )
        for words in (("maintain",), ("archive", "now"), ("archive", "now"), ("archive", "verify")):
            done = subprocess.run(self.server.command(*words), capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")

    def compare(self, figures: Figures) -> None:
        from ringlog.history.reading import read

        with session.connect(self.dsn) as connection:
            named = {file for (file,) in connection.execute("select file from ringlog.cold_week")}
        weeks = self.archive / "weeks"
        figures.unnamed = len({str(path.relative_to(weeks)) for path in weeks.glob("*/*.parquet")} - named)

        columns = ["seq_no", *(f"c_{number}" for number in range(1, _COLUMNS + 1)), "wave"]
        for name in _TABLES:
            wanted = self.rows[name]
            keys: Counter[tuple[datetime, int]] = Counter()
            for batch in read(self.dsn, name, columns):
                for moment, seq_no, *values in zip(
                    *(each.to_pylist() for each in batch.columns), strict=True
                ):
                    keys[moment, seq_no] += 1
                    figures.altered += wanted.get((moment, seq_no)) != (seq_no, moment, *values)
            figures.acknowledged += len(wanted)
            figures.stored += keys.total()
            figures.lost += sum(key not in keys for key in wanted)
            figures.repeated += sum(count - 1 for count in keys.values())
            with session.connect(self.dsn) as connection:
                trend, cold = connection.execute(
                    "select (select sum(n) from ringlog.get_trend(%s, %s, %s, 100)),"
                    " (select sum(rows) from ringlog.cold_week where table_name = %s)",
                    [f"{name}/c_1", _BEGIN, self.newest, name],
                ).fetchall()[0]
            figures.trend += int(trend or 0)
            figures.in_archive += int(cold or 0)


@contextmanager
def site(disk: str = "") -> Iterator[Site]:
    """A site in a temporary folder. `disk`: the size of a disk for the archive (needs root)."""
    folder = Path(mkdtemp(prefix="ringlog-archive-", dir="/tmp"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if disk:
            stack.enter_context(small_disk(folder / "archive", disk))
        else:
            (folder / "archive").mkdir()
        made = Site(folder)
        stack.callback(made.server.stop)
        yield made


def run(place: Site, faults: int, say: Callable[[str], None] = print, *, full: bool = False) -> Figures:
    """Makes this many faults. `full`: also fills the archive's disk, which must be a small one."""
    figures = Figures()
    begun = time.monotonic()
    kinds = list(_TOGETHER.elements())
    for number in range(faults):
        if number % 4 == 3:
            place.add_week()
        place.harm(random.choice(kinds), figures)
        if full and number % 10 == 5:
            place.fill_disk()
            figures.faults["full disk"] += 1
        if number % 10 == 9:
            say(f"{time.monotonic() - begun:.0f} s: {number + 1} faults")
    place.finish()
    place.compare(figures)
    figures.seconds = time.monotonic() - begun
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/long/faults/archive_faults.py", description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--full", action="store_true", help="fill the archive's disk too (needs root)")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    random.seed(options.seed)
    with site(DISK if options.full else "") as place:
        figures = run(place, options.faults, full=options.full)
    print(figures)
    sys.exit(not figures.good)


if __name__ == "__main__":
    main()
