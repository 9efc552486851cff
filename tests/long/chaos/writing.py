"""Writers over TDS and faults of all kinds. The server's rows are compared with the acknowledged ones."""

import os
import random
import secrets
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psycopg
from clocks import faketime

from chaos.crowds import slow_requests, unread_results, wrong_passwords
from chaos.figures import Figures
from chaos.ledger import Ledger, Row
from chaos.processes import kill, kill_backend, kill_gateway, kill_postgresql, writers_of_load
from chaos.recordings import any_double, any_int, record
from chaos.site import Excuse, LoadedSite, table_text
from chaos.writers import Five, Retained, Seven, Writer
from random_operations import Operations, run
from ringlog.clients.listening import free_port
from ringlog.schema.relations.partitions import Week
from servers import Login

ROWS = 2000
"""of each ring"""
CYCLE = 0.05
"""seconds between two rows of a writer over TDS"""
LOAD_CYCLE = 0.1
SEVENS, FIVES, LOADED = ("seven_1", "seven_2", "victim"), ("five_1", "five_2"), ("load_1", "load_2")
VICTIM = "victim"
"""a page of its old week is damaged"""
TABLES = (*SEVENS, *FIVES, *LOADED)
RETAINED = "retained"
"""its weeks are set aside and restored"""
OLD_ROWS = 300
_OLD = timedelta(weeks=2)
_MEAN = 5.0
"""seconds between two faults"""
CLOCKS = ("+42d", "-42d", "+3650d", "+2h", "-2h")
_COLUMNS = ("seq_no", "time", "level", "number")


@dataclass
class WritingSite(LoadedSite):
    """All of it in a folder. `retains`: with the table RETAINED, for kills only."""

    retains: bool = False
    seed: int = 0
    damaged_rings: set[str] = field(default_factory=set)
    damaged_week: Week | None = None
    extra: Counter[str] = field(default_factory=Counter)
    """columns that were added to each table"""
    _now_extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.http = f"http://127.0.0.1:{free_port()}"
        self.options = ("--http", self.http.removeprefix("http://"))
        super().__post_init__()
        self.login = Login("writer", self.password)
        self.reader = Login("reader", secrets.token_urlsafe(12))
        self.command("user", "add", "reader", "--reader", "--password-stdin", stdin=self.reader.password)
        self.ct_program = _build_ct_client(self.folder)
        self.writers = [*self._writers()]

    def text(self) -> str:
        lines = 'timezone = "UTC"\nclock_tolerance = "none"\n'
        for name in (*TABLES, RETAINED) if self.retains else TABLES:
            columns = {"level": {"type": "double"}, "number": {"type": "int"}}
            if name in self._now_extra:
                columns[self._now_extra[name]] = {"type": "real"}
            cycle = LOAD_CYCLE if name in LOADED else CYCLE
            retention = f"{9 if name == RETAINED else 3} weeks"
            lines += table_text(name, columns, rows=ROWS, cycle=cycle, retention=retention)
        return lines

    @property
    def loaded(self) -> Mapping[str, tuple[str, ...]]:
        return dict.fromkeys(LOADED, ("level", "number"))

    def _writers(self) -> Iterator[Writer]:
        configuration = self.folder / "freetds.conf"
        configuration.write_text(
            "[global]\nclient charset = UTF-8\n"
            f"[5.0]\nhost = 127.0.0.1\nport = {self.server.port}\ntds version = 5.0\n"
        )
        address = ("127.0.0.1", self.server.port)
        for number, name in enumerate((*SEVENS, *FIVES, RETAINED)):
            cycle = LOAD_CYCLE if name == RETAINED else CYCLE
            ledger = Ledger(self.folder / f"{name}.ledger")
            common = (self.login, name, ROWS, cycle, ledger, self.seed + number)
            if name in SEVENS:
                yield Seven(address, *common)
            elif name in FIVES:
                yield Five(self.ct_program, configuration, *common)
            elif self.retains:
                yield Retained(address, *common)

    # --- operation ---

    def live(self, seconds: float, draw: random.Random) -> Figures:
        """Faults for this many seconds. Raises RuntimeError if a process does not restart."""
        self.begin(seconds)
        if self.retains:
            from chaos.kills import kill_all

            kill_all(self, seconds, draw)
        else:
            run(self, FAULTS, draw, self.note, pause=lambda: _pause(draw), seconds=seconds)
        self.end_writers()
        self.restart()
        self.await_end()
        self.command("maintain", demanded=False)
        for table in sorted(self.damaged_rings):
            self.say(self.command("refill", table).stdout.strip())
        self.compare()
        self.longest_wait()
        for writer in self.writers:
            for words, number in writer.answers.most_common(12):
                self.say(f"{writer.table}: {number} x {words}")
        return self.figures

    def works(self) -> bool:
        return True

    def begin(self, seconds: float) -> None:
        """Writes rows of weeks ago; then the writers and recordings begin."""
        old = datetime.now(UTC) - _OLD
        for writer in self.writers:
            for number in range(OLD_ROWS):
                writer.send(writer.next_row(old + timedelta(seconds=number)))
            writer.old = [*writer.ledger.rows()]
            writer.ledger.waits.clear()
        self.command("maintain")
        # `ringlog load` runs during a part of the kills
        rows = int(seconds / LOAD_CYCLE * (0.5 if self.retains else 1))
        begins = dict.fromkeys(LOADED, datetime.now(UTC))
        record(self.recordings, begins, LOAD_CYCLE, rows, {"level": any_double, "number": any_int})
        self.start_load()
        for writer in self.writers:
            writer.start()
        self.begun = time.monotonic()

    def end_writers(self) -> None:
        for writer in self.writers:
            writer.ended.set()
        for writer in self.writers:
            writer.join(120)
            if writer.is_alive():
                raise RuntimeError(f"{writer.name} waits: {writer.answers.most_common(5)}")

    def close(self) -> None:
        for writer in self.writers:
            writer.ended.set()
        super().close()
        for writer in self.writers:
            writer.ledger.close()

    # --- faults ---

    def wrong_clock(self, draw: random.Random) -> None:
        """A start with a wrong clock; the next start has the correct one."""
        self.server.environment = {
            "LD_PRELOAD": faketime(),
            "FAKETIME": draw.choice(CLOCKS),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.restart()
        self.server.environment = {}
        time.sleep(draw.uniform(5, 20))
        self.restart()

    def damage_ring(self, draw: random.Random) -> None:
        """Damages a page of a ring, or of one of its indexes."""
        table = draw.choice([name for name in TABLES if name != VICTIM])
        relation = f"online.{table}{draw.choice(['', '', '_pkey', '_time_idx'])}"
        with self.excused(table):
            self._damage(relation, draw)
        self.damaged_rings.add(table)

    def damage_old_week(self, draw: random.Random) -> bool:
        if self.damaged_week is not None:
            return False
        week = Week.of(datetime.now(UTC) - _OLD)
        self._damage(f"log.{week.partition(VICTIM)}", draw)
        self.damaged_week = week
        return True

    def _damage(self, relation: str, draw: random.Random) -> None:
        with self.excused():
            ((path,),) = self.sql("select pg_relation_filepath(%s::regclass)", [relation])
            self.sql("checkpoint")
            self.server.stop()
            with (self.data / "postgresql-18" / str(path)).open("r+b") as file:
                pages = max(1, file.seek(0, os.SEEK_END) // 8192)
                file.seek(draw.randrange(pages) * 8192 + draw.randrange(8192 - 64))
                file.write(draw.randbytes(64))
            self.server.start()

    def restart_load(self) -> None:
        self.kill_load()
        self.start_load()

    def damage_spool(self, draw: random.Random) -> None:
        """Damages the spool of a killed writer: a bit, the second half of the file, or the log."""
        self.kill_load()
        files = sorted(self.spool.rglob("*.spool"))
        if files:
            file = draw.choice(files)
            log = file.with_name(f"{file.name}-wal")
            what = draw.choice(["bit", "bit of the log", "log", "half"])
            hurt = log if "log" in what and log.exists() else file
            size = hurt.stat().st_size
            if what == "log" and hurt == log:
                log.unlink()
            elif what == "half" and size:
                os.truncate(hurt, size // 2)
            elif size:
                with hurt.open("r+b") as disk:
                    position = draw.randrange(size)
                    disk.seek(position)
                    byte = disk.read(1)
                    disk.seek(position)
                    disk.write(bytes([byte[0] ^ 1 << draw.randrange(8)]))
            self.damaged_spools[file.stem] += 1
        self.start_load()

    def change_columns(self, draw: random.Random) -> None:
        """Adds a column to a table, or drops the added one."""
        table = draw.choice([*SEVENS, *FIVES])
        if table not in self._now_extra:
            self.extra[table] += 1
            self._now_extra[table] = f"extra_{self.extra[table]}"
            self.write_facility()
            self.command("init", "--facility", self.facility)
            return
        before = self._now_extra.pop(table)
        self.write_facility()
        refused = self.command("init", "--facility", self.facility, demanded=False)
        # the SQL that it names is the operator's to run; until the next installation put names the column
        _, marked, text = refused.stderr.partition("\n--")
        if not marked:
            raise RuntimeError(f"no SQL to remove {before}: {refused.stderr}")
        with self.excused(table):
            with psycopg.connect(self.server.dsn, autocommit=True) as connection:
                connection.execute(f"--{text}".encode())
            self.command("init", "--facility", self.facility)

    def send_slowly(self, draw: random.Random) -> None:
        sessions, length = draw.choice([(64, 70_000), (8, 1_100_000), (2, 8_500_000)])
        _in_thread(slow_requests, self, sessions, length, draw.uniform(5, 20))

    # --- comparison ---

    def compare(self) -> None:
        super().compare()
        for writer in self.writers:
            acknowledged = [*writer.ledger.rows()]
            self._compare_ring(writer.table, acknowledged)
            stored = self._stored("log", writer.table)
            if writer.table == RETAINED:
                query = "select relname from pg_class where relnamespace = 'set_aside'::regnamespace"
                for (week,) in self.sql(f"{query} and relkind = 'r'"):
                    stored += self._stored("set_aside", week)
            self.figures.count(f"log.{writer.table}", self._kept(writer.table, acknowledged), stored)
        for name in LOADED:
            self._compare_ring(name, self._stored("log", name))
        beginnings: tuple[str, ...] = ("table ", "summaries and archive", "no errors")
        if self.damaged_week is not None:
            week = self.damaged_week.partition(VICTIM)
            beginnings += (f"log.{week}", f"log.{VICTIM}", f"index {week}")
            beginnings += (f"online.{VICTIM}", f"summary.{VICTIM}")
        for line in self.command("verify", demanded=False).stdout.splitlines():
            # PostgreSQL counts the damaged pages that it has read
            if not line.startswith(beginnings) and "pages had a wrong checksum" not in line:
                self.figures.problems.append(f"verify: {line}")

    def _kept(self, table: str, rows: list[Row]) -> list[Row]:
        """Those of weeks that were not damaged."""
        if table != VICTIM or self.damaged_week is None:
            return rows
        return [row for row in rows if row.moment >= self.damaged_week.end]

    def _stored(self, schema: str, table: str) -> list[Row]:
        since = self.damaged_week.end if table == VICTIM and self.damaged_week else None
        rows = self.rows((schema, table), *_COLUMNS, since=since if schema == "log" else None)
        return [Row.of(*row) for row in rows]

    def _compare_ring(self, table: str, rows: list[Row]) -> None:
        newest: dict[int, Row] = {}
        for row in rows:
            if row.seq_no not in newest or newest[row.seq_no].time <= row.time:
                newest[row.seq_no] = row
        ring = {row.seq_no: row for row in self._stored("online", table)}
        wrong = [
            (newest.get(seq_no), ring.get(seq_no))
            for seq_no in range(1, ROWS + 1)
            if newest.get(seq_no) != ring.get(seq_no)
        ]
        if wrong:
            self.figures.wrong += len(wrong)
            self.figures.problems.append(f"online.{table}: {len(wrong)} differ, as {wrong[:2]}")

    def longest_wait(self) -> None:
        """The longest wait, without the time in which the server was down."""
        figures = self.figures
        for writer in self.writers:
            own = [excuse for excuse in self.excuses if excuse.table in (None, writer.table)]
            for begin, end in writer.ledger.waits:
                figures.outage = max(figures.outage, end - begin)
                if end - begin <= figures.longest:
                    continue
                rest = sum(stop - start for start, stop in _without(begin, end, own))
                if rest > figures.longest:
                    since = begin - self.begun
                    figures.longest, figures.longest_of = rest, f"{writer.table}, from {since:.1f} s on"
                    figures.answers = [
                        f"  {at - self.begun:.3f} s: {words:.100}"
                        for at, words in (*writer.ledger.answers.get(begin, ()), (end, "acknowledged"))
                    ]


def _without(begin: float, end: float, excuses: Iterable[Excuse]) -> list[tuple[float, float]]:
    left = [(begin, end)]
    for excuse in excuses:
        left = [
            part
            for start, stop in left
            for part in ((start, min(stop, excuse.begin)), (max(start, excuse.end), stop))
            if part[0] < part[1]
        ]
    return left


def _build_ct_client(folder: Path) -> Path:
    program = folder / "ct_client"
    source = Path(__file__).parents[2] / "gateway" / "programs" / "ct_client.c"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-o", program, source, "-lct"], check=True)
    return program


def _pause(draw: random.Random) -> float:
    return min(draw.expovariate(1 / _MEAN), 3 * _MEAN)


def _in_thread(work: Callable[..., object], *values: object) -> None:
    threading.Thread(target=partial(work, *values), daemon=True).start()


FAULTS: Operations = {
    "gateway killed": (2, kill_gateway),
    "PostgreSQL killed": (2, kill_postgresql),
    "backend killed": (2, kill_backend),
    "restart": (2, lambda site, draw: site.restart()),
    "wrong clock": (2, WritingSite.wrong_clock),
    "ring damaged": (4, WritingSite.damage_ring),
    "old week damaged": (1, WritingSite.damage_old_week),
    "spool damaged": (4, WritingSite.damage_spool),
    "load killed": (2, lambda site, draw: site.restart_load()),
    "writer of load killed": (3, kill(writers_of_load)),
    "columns": (6, WritingSite.change_columns),
    "slow clients": (4, WritingSite.send_slowly),
    "crowd": (3, lambda site, draw: _in_thread(unread_results, site, 150, draw.uniform(5, 20))),
    "wrong passwords": (2, lambda site, draw: _in_thread(wrong_passwords, site, draw.uniform(3, 10))),
    "maintain": (2, lambda site, draw: site.command("maintain", demanded=False)),
}
