"""A server, its tables and their writers, and the faults for them."""

import os
import random
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import psycopg
from clocks import faketime

from chaos.ledger import Ledger
from chaos.recording import record
from chaos.writers import Five, Retained, Seven, Writer
from killed_server import RINGLOG, KilledServer
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
_GRACE = 3.0
"""seconds after a restart in which connections are made again"""


@dataclass(frozen=True)
class Excuse:
    """A time in which writers may wait: the server restarts, or a table is being repaired."""

    begin: float
    end: float
    table: str | None


@dataclass
class Site:
    """All of it in a folder. `seconds`: the length of the recordings. `retains`: with the table RETAINED."""

    folder: Path
    ct_program: Path
    seed: int
    seconds: float
    retains: bool = False
    excuses: list[Excuse] = field(default_factory=list)
    damaged_rings: set[str] = field(default_factory=set)
    damaged_week: Week | None = None
    spools_damaged: Counter[str] = field(default_factory=Counter)
    extra: Counter[str] = field(default_factory=Counter)
    """columns that were added to each table"""
    load: subprocess.Popen[bytes] | None = None
    begun: float = 0.0
    """when the faults began, of time.monotonic"""
    kills: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.login = Login("writer", secrets.token_urlsafe(12))
        self.reader = Login("reader", secrets.token_urlsafe(12))
        self._now_extra: dict[str, str] = {}
        self.facility = self.folder / "facility.toml"
        self._write_facility()
        self.recordings = self.folder / "recordings"
        self.spool = self.folder / "spool"
        (self.folder / "server").mkdir()
        self.data = self.folder / "server" / "data"
        self.http = f"http://127.0.0.1:{free_port()}"
        options = ("--http", self.http.removeprefix("http://"))
        self.server = KilledServer(self.data, self.facility, self.folder / "serve.log", *options)
        for login, right in ((self.login, "--writer"), (self.reader, "--reader")):
            self.command("user", "add", login.user, right, "--password-stdin", stdin=login.password)
        self.writers = [*self._writers()]

    def _write_facility(self) -> None:
        lines = ['timezone = "UTC"', 'clock_tolerance = "none"']
        for name in (*TABLES, RETAINED) if self.retains else TABLES:
            cycle = LOAD_CYCLE if name in LOADED else CYCLE
            lines += [
                "[[table]]",
                f'name = "{name}"',
                f"rows = {ROWS}",
                f"cycle = {cycle}",
                f'retention = "{9 if name == RETAINED else 3} weeks"',
            ]
            columns = {"level": "double", "number": "int"}
            if name in self._now_extra:
                columns[self._now_extra[name]] = "real"
            for column, kind in columns.items():
                lines += ["[[table.column]]", f'name = "{column}"', f'type = "{kind}"']
        self.facility.write_text("\n".join(lines) + "\n")

    def _writers(self) -> Iterator[Writer]:
        configuration = self.folder / "freetds.conf"
        configuration.write_text(
            "[global]\nclient charset = UTF-8\n"
            f"[5.0]\nhost = 127.0.0.1\nport = {self.server.port}\ntds version = 5.0\n"
        )
        for number, name in enumerate((*SEVENS, *FIVES)):
            ledger = Ledger(self.folder / f"{name}.ledger")
            common = (self.login, name, ROWS, CYCLE, ledger, self.seed + number)
            if name in SEVENS:
                yield Seven(("127.0.0.1", self.server.port), *common)
            else:
                yield Five(self.ct_program, configuration, *common)
        if self.retains:
            ledger = Ledger(self.folder / f"{RETAINED}.ledger")
            address = ("127.0.0.1", self.server.port)
            yield Retained(address, self.login, RETAINED, ROWS, LOAD_CYCLE, ledger, self.seed)

    # --- operation ---

    def command(
        self, *words: str, stdin: str = "", demanded: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """A command of the operator, on the server's data directory."""
        done = subprocess.run(
            self.server.command(*words), input=stdin, capture_output=True, text=True, timeout=300
        )
        if demanded and done.returncode != 0:
            raise RuntimeError(
                f"ringlog {' '.join(words)}: code {done.returncode}: {done.stdout}{done.stderr}"
            )
        return done

    def begin(self) -> None:
        """Writes rows of weeks ago; then the writers and recordings begin."""
        old = datetime.now(UTC) - _OLD
        for writer in self.writers:
            for number in range(OLD_ROWS):
                writer.send(writer.next_row(old + timedelta(seconds=number)))
            writer.old = [*writer.ledger.rows()]
            writer.ledger.waits.clear()
        self.command("maintain")
        # `ringlog load` runs during a part of the kills
        rows = int(self.seconds / LOAD_CYCLE * (0.5 if self.retains else 1))
        record(self.recordings, LOADED, datetime.now(UTC), LOAD_CYCLE, rows, self.seed)
        self.start_load()
        for writer in self.writers:
            writer.start()

    def start_load(self) -> None:
        with (self.folder / "load.log").open("ab") as log:
            command = [*RINGLOG, "load", "--facility", self.facility, "--spool", self.spool]
            command += ["--source", f"csv:{self.recordings}"]
            command += ["--tables", ",".join(LOADED)]
            self.load = subprocess.Popen(
                [*map(str, command), "--url", f"tds://writer@127.0.0.1:{self.server.port}"],
                stdout=log,
                stderr=log,
                env=os.environ | {"RINGLOG_PASSWORD": self.login.password},
            )

    def tend(self) -> bool:
        """Restarts ended processes. Returns whether `ringlog load` still has work."""
        self.server.tend()
        assert self.load is not None
        if (code := self.load.poll()) is None:
            return True
        if code == 2:
            raise RuntimeError(f"ringlog load: {(self.folder / 'load.log').read_text()[-2000:]}")
        if code != 0:
            self.start_load()
        return code != 0

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
        if self.load is not None and self.load.poll() is None:
            self.kill_load()
        self.server.stop()
        for writer in self.writers:
            writer.ledger.close()

    @contextmanager
    def excused(self, table: str | None = None) -> Iterator[None]:
        """Writers may wait during this block."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.excuses.append(Excuse(begin, time.monotonic() + _GRACE, table))

    def until_it_answers(self) -> None:
        """Waits after a crash of PostgreSQL."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with suppress(psycopg.Error), psycopg.connect(self.server.dsn, connect_timeout=5):
                return
            time.sleep(0.05)
        raise RuntimeError("PostgreSQL does not come back")

    # --- faults ---

    def restart(self, clock: str | None = None) -> None:
        """A stop and a start, with a clock that is off by this time."""
        with self.excused():
            self.server.stop()
            self._start(clock)

    def _start(self, clock: str | None = None) -> None:
        self.server.environment = {}
        if clock:
            self.server.environment = {
                "LD_PRELOAD": faketime(),
                "FAKETIME": clock,
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1",
            }
        self.server.start()

    def kill_gateway(self) -> None:
        with self.excused():
            self.server.kill()
            self.server.start()

    def kill_postgresql(self) -> None:
        with self.excused():
            self.server.kill_postgresql()
            self.server.start()

    def kill_backend(self, draw: random.Random) -> None:
        with self.excused():
            with psycopg.connect(self.server.dsn, autocommit=True) as connection:
                query = "select pid from pg_stat_activity where backend_type = 'client backend' order by pid"
                pids = [pid for (pid,) in connection.execute(query)]
            with suppress(psutil.Error):
                psutil.Process(draw.choice(pids)).kill()
            self.until_it_answers()

    def kill_load(self) -> None:
        """Kills the supervisor and its writers."""
        assert self.load is not None
        with suppress(psutil.Error):
            family = psutil.Process(self.load.pid).children(recursive=True)
            self.load.kill()
            for process in family:
                with suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(family, timeout=20)
        self.load.wait()

    def restart_load(self) -> None:
        self.kill_load()
        self.start_load()

    def kill_writer(self, draw: random.Random) -> None:
        assert self.load is not None
        with suppress(psutil.Error, IndexError):
            draw.choice(psutil.Process(self.load.pid).children()).kill()

    def damage_ring(self, draw: random.Random) -> None:
        """Damages a page of a ring, or of one of its indexes."""
        table = draw.choice([name for name in TABLES if name != VICTIM])
        relation = f"online.{table}{draw.choice(['', '', '_pkey', '_time_idx'])}"
        with self.excused(table):
            self._damage(relation, draw)
        self.damaged_rings.add(table)

    def damage_old_week(self, draw: random.Random) -> None:
        if self.damaged_week is None:
            week = Week.of(datetime.now(UTC) - _OLD)
            self._damage(f"log.{week.partition(VICTIM)}", draw)
            self.damaged_week = week

    def _damage(self, relation: str, draw: random.Random) -> None:
        with self.excused():
            with psycopg.connect(self.server.dsn, autocommit=True) as connection:
                (path,) = connection.execute(
                    "select pg_relation_filepath(%s::regclass)", [relation]
                ).fetchone() or (None,)
                connection.execute("checkpoint")
            self.server.stop()
            with (self.data / "postgresql-18" / str(path)).open("r+b") as file:
                pages = max(1, file.seek(0, os.SEEK_END) // 8192)
                file.seek(draw.randrange(pages) * 8192 + draw.randrange(8192 - 64))
                file.write(draw.randbytes(64))
            self._start()

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
                    place = draw.randrange(size)
                    disk.seek(place)
                    byte = disk.read(1)
                    disk.seek(place)
                    disk.write(bytes([byte[0] ^ 1 << draw.randrange(8)]))
            self.spools_damaged[file.stem] += 1
        self.start_load()

    def change_columns(self, draw: random.Random) -> None:
        """Adds a column to a table, or drops the added one."""
        table = draw.choice([*SEVENS, *FIVES])
        if table not in self._now_extra:
            self.extra[table] += 1
            self._now_extra[table] = f"extra_{self.extra[table]}"
            self._write_facility()
            self.command("init", "--facility", str(self.facility))
            return
        before = self._now_extra.pop(table)
        self._write_facility()
        refused = self.command("init", "--facility", str(self.facility), demanded=False)
        # the SQL that it names is the operator's to run; until the next installation put names the column
        _, marked, text = refused.stderr.partition("\n--")
        if not marked:
            raise RuntimeError(f"no SQL to remove {before}: {refused.stderr}")
        with self.excused(table):
            with psycopg.connect(self.server.dsn, autocommit=True) as connection:
                connection.execute(f"--{text}".encode())
            self.command("init", "--facility", str(self.facility))


def build_ct_client(folder: Path) -> Path:
    program = folder / "ct_client"
    source = Path(__file__).parents[2] / "gateway" / "programs" / "ct_client.c"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-o", program, source, "-lct"], check=True)
    return program
