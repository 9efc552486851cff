"""Kills, full disks and damaged files while weeks are archived.

A log of many weeks, of which one stays in PostgreSQL, is archived by a server and by `ringlog archive now`.
Both and PostgreSQL are killed at random moments, the archive's disk is filled (a small one of its own),
files are truncated, broken, deleted and swapped, which `ringlog archive verify` must find and readers must
not take for rows, before they are put back; weeks are recalled; rows come late for weeks in the archive,
and rows that are there come again. Then log and archive together must have every row that was acknowledged,
once, with its values, and the summaries must be of these.
"""

import random
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import sql

from chaos.figures import Figures
from chaos.site import Site, table_text
from random_operations import Operations, run
from ringlog.schema import session
from ringlog.schema.relations.partitions import Week
from small_disk import filled

DISK = "24m"
_TABLES = ("fault_0", "fault_1")
_COLUMNS = [f"c_{number}" for number in range(1, 7)]
_PERIOD = timedelta(minutes=15)
_WEEKS = 6
"""at the begin; more come with the faults"""
_BEGIN = Week(Week.of(datetime.now(UTC)).start - timedelta(weeks=150)).start
_PATIENCE = 120.0
"""seconds for a run to end"""

Row = tuple[Any, ...]


@dataclass
class ArchivedSite(Site):
    """A server with an archive, and all rows that it has acknowledged, by time and seq_no."""

    sent: dict[str, dict[tuple[datetime, int], Row]] = field(
        default_factory=lambda: {name: {} for name in _TABLES}
    )
    newest: datetime = _BEGIN

    def __post_init__(self) -> None:
        self.archive = self.folder / "archive"
        self.archive.mkdir(exist_ok=True)
        super().__post_init__()
        for _ in range(_WEEKS):
            self.add_week()

    def text(self) -> str:
        columns = {"c_{n}": {"count": len(_COLUMNS), "type": "double"}} | {
            "wave": {"type": "real[]", "points": 100}
        }
        # its housekeeping archives at once
        return f'[history]\nonline = "1 week"\narchive = "{self.archive / "weeks"}"\n' + "".join(
            table_text(name, columns, rows=100, cycle=60) for name in _TABLES
        )

    def add_week(self) -> None:
        """Another week of rows to archive."""
        moments = [self.newest + number * _PERIOD for number in range(timedelta(weeks=1) // _PERIOD)]
        for name in _TABLES:
            self._put(name, moments)
        self.newest += timedelta(weeks=1)

    def send_late(self, draw: random.Random) -> None:
        """Sends new rows of old weeks, and rows that exist already."""
        for name in _TABLES:
            span = (self.newest - _BEGIN) // timedelta(seconds=1)
            moments = [_BEGIN + timedelta(seconds=draw.randrange(span), microseconds=7) for _ in range(20)]
            self._put(name, sorted(set(moments)))
            keys = draw.sample(sorted(self.sent[name]), 20)
            self._call(name, [self.sent[name][key] for key in keys])

    def _put(self, name: str, moments: list[datetime]) -> None:
        rows: list[Row] = []
        for number, moment in enumerate(moments):
            wave = tuple(float(point) for point in range(random.randrange(5)))
            rows.append((number % 100 + 1, moment, *(random.random() for _ in _COLUMNS), wave))
        self._call(name, rows)
        self.sent[name] |= {(row[1], row[0]): row for row in rows}

    def _call(self, name: str, rows: list[Row]) -> None:
        values = sql.SQL(", ").join([sql.Placeholder()] * (2 + len(_COLUMNS)))
        put = sql.SQL("select {}(row ({}, %s::real[])::{})").format(
            sql.Identifier("ringlog", f"put_{name}"), values, sql.Identifier("online", name)
        )
        # a pipeline that ends without an error has all of them committed
        with session.connect(self.server.dsn, autocommit=True) as connection, connection.pipeline():
            for *row, wave in rows:
                connection.execute(put, [*row, [*wave]])

    # --- faults ---

    def kill_run(self, seconds: float, *words: str) -> None:
        """Kills a command after these seconds."""
        run = subprocess.Popen(self.server.command(*words), stdout=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            run.wait(seconds)
        run.kill()
        run.wait()

    def kill_postgresql(self, draw: random.Random) -> None:
        """Kills it under a round."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = subprocess.Popen(self.server.command("archive", "now"), **quiet)
        time.sleep(draw.uniform(0.5, 4.0))
        with suppress(OSError, ValueError, IndexError):
            self.server.kill_postgresql()
        with suppress(subprocess.TimeoutExpired):
            run.wait(_PATIENCE)
        run.kill()
        run.wait()

    def recall(self, draw: random.Random) -> None:
        first = self.newest - timedelta(weeks=draw.randrange(2, _WEEKS))
        days = f"{first:%Y-%m-%d}", f"{first + timedelta(days=8):%Y-%m-%d}"
        self.kill_run(draw.uniform(1.0, 8.0), "recall", draw.choice(_TABLES), *days)

    def damage(self, draw: random.Random) -> bool:
        """Damages a file, checks that the damage is found, and restores the file."""
        weeks = self.sql(
            "select file, table_name, begins, ends from ringlog.cold_week"
            " where rows > 0 and recalled_until is null order by random() limit 2"
        )
        if len(weeks) < 2:
            return False
        file, table, begins, ends = weeks[0]
        path, other = (self.archive / "weeks" / week[0] for week in weeks)
        try:
            content, others = path.read_bytes(), other.read_bytes()
        except FileNotFoundError:
            return False  # a round in the server has replaced it meanwhile
        index = draw.randrange(len(content))
        broken = bytearray(content)
        broken[index] ^= 1 << draw.randrange(8)
        wrong = draw.choice([bytes(broken), content[:index], b"", others, None])
        if wrong is None:
            path.unlink()
        else:
            path.write_bytes(wrong)
        try:
            done = self.command("archive", "verify", demanded=False)
            is_right = self._reads(table, begins, ends)
            if self._is_named(file):  # no round in the server has replaced it meanwhile
                if done.returncode != 1 or path.name not in done.stdout:
                    self.figures.problems.append(f"verify did not find the damage of {file}")
                if not is_right:
                    self.figures.problems.append(f"a reader of {file} got an answer without all rows")
        finally:
            if self._is_named(file):
                path.write_bytes(content)
        return True

    def _reads(self, table: str, begins: datetime, ends: datetime) -> bool:
        """Returns whether a reader of a damaged week gets all rows, or an error."""
        from ringlog.history.archive.folder import Damaged
        from ringlog.history.reading import read

        wanted = sum(begins <= moment < ends for moment, _ in self.sent[table])
        for columns in (["c_1"], ["wave"]):
            with suppress(Damaged):
                batches = read(self.server.dsn, table, columns, begins, ends)
                if sum(batch.num_rows for batch in batches) != wanted:
                    return False
        return True

    def _is_named(self, file: str) -> bool:
        return bool(self.sql("select true from ringlog.cold_week where file = %s", [file]))

    def fill_disk(self) -> None:
        """A round without space for a file: it must fail, and drop no rows."""
        with filled(self.archive):
            self.command("archive", "now", demanded=False)

    # --- the end ---

    def harm(self, draw: random.Random, faults: int, *, full: bool = False) -> Figures:
        """Makes this many faults. `full`: also fills the archive's disk, which must be a small one."""
        operations = FAULTS | (FULL_DISK if full else {})
        run(self, operations, draw, self.note, pause=lambda: 0, number=faults)
        self.tend()
        self.sql("update ringlog.cold_week set recalled_until = now() where recalled_until > now()")
        for words in (("maintain",), ("archive", "now"), ("archive", "now"), ("archive", "verify")):
            self.command(*words)
        self.compare()
        return self.figures

    def compare(self) -> None:
        from ringlog.history.reading import read

        named = {file for (file,) in self.sql("select file from ringlog.cold_week")}
        weeks = self.archive / "weeks"
        unnamed = {str(path.relative_to(weeks)) for path in weeks.glob("*/*.parquet")} - named
        if unnamed:
            self.figures.problems.append(f"the manifest does not name {unnamed}")
        for name in _TABLES:
            stored: list[Row] = []
            for batch in read(self.server.dsn, name, ["seq_no", *_COLUMNS, "wave"]):
                for moment, seq_no, *values, wave in zip(
                    *(column.to_pylist() for column in batch.columns), strict=True
                ):
                    stored.append((seq_no, moment.astimezone(UTC), *values, tuple(wave)))
            self.figures.count(f"log.{name}", self.sent[name].values(), stored)
            ((trend, cold),) = self.sql(
                "select (select sum(n) from ringlog.get_trend(%s, %s, %s, 100)),"
                " (select sum(rows) from ringlog.cold_week where table_name = %s)",
                [f"{name}/c_1", _BEGIN, self.newest, name],
            )
            self.figures.notes["rows in the archive"] += int(cold or 0)
            if trend != len(self.sent[name]):
                self.figures.problems.append(f"summaries of {trend} rows of {len(self.sent[name])}")


FAULTS: Operations = {
    "run killed": (6, lambda site, draw: site.kill_run(draw.uniform(0.5, 6.0), "archive", "now")),
    "server killed": (3, lambda site, draw: site.server.kill()),
    "postgresql killed": (3, ArchivedSite.kill_postgresql),
    "late rows": (4, ArchivedSite.send_late),
    "damage": (3, ArchivedSite.damage),
    "recall": (2, ArchivedSite.recall),
    "another week": (5, lambda site, draw: site.add_week()),
}
FULL_DISK: Operations = {"full disk": (3, lambda site, draw: site.fill_disk())}
