"""The life of a plant: operations drawn from a seed, on a real `ringlog serve`, and reads compared with the
model."""

import math
import random
import shutil
import signal as signals
import struct
import subprocess
import time as clock
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import psutil
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pymssql
from places import new_folder
from psycopg import sql

from plant.model import RETENTION, Refused, Table, Values, facility, monday, nights, tables
from servers import RINGLOG, Login, RunningServer, add_logins, free_port, ringlog, serving
from waiting import wait_until

Step = tuple[str, int]
"""an operation and the seed of its random choices"""

# The weight of each operation.
WEIGHTS = {
    "write": 40,
    "write_late": 14,
    "write_again": 8,
    "write_conflict": 4,
    "write_bad": 3,
    "write_ahead": 3,
    "write_together": 4,
    "write_empty": 3,
    "write_night": 5,
    "compare": 20,
    "maintain": 4,
    "archive_weeks": 3,
    "recall": 2,
    "add_column": 1,
    "rename_column": 1,
    "retire_column": 1,
    "change_type": 1,
    "set_retention": 1,
    "restart": 1,
    "crash": 1,
    "kill": 1,
    "backup_and_restore": 1,
}

ZONES = ["UTC", "UTC", "Europe/Zurich", "Australia/Sydney"]
WEEKS = [11, 11, 11, 53]
"""the age of a plant at the beginning"""

WIDER = {"real": "double", "int": "bigint"}
"""Types with the values of other types."""


class Different(AssertionError):
    """A read differs from the model."""


def drawn(seed: int) -> Iterator[Step]:
    """The endless operations of a life; the first one makes the plant."""
    draw = random.Random(seed)
    yield "begin", draw.getrandbits(32)
    while True:
        yield draw.choices([*WEIGHTS], [*WEIGHTS.values()])[0], draw.getrandbits(32)


@dataclass
class Life:
    """A plant and its model."""

    folder: Path
    model: dict[str, Table] = field(default_factory=tables)
    history: list[Step] = field(default_factory=list)
    renamed: dict[tuple[str, str], str] = field(default_factory=dict)
    sent: list[tuple[str, int | None, datetime, Values]] = field(default_factory=list)
    running: list[subprocess.Popen[str]] = field(default_factory=list)
    """the operator's commands that run beside the writers"""
    reads: int = 0
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    start: datetime = field(default_factory=lambda: monday(datetime.now(UTC), 11))

    def __post_init__(self) -> None:
        self.plant = self.start
        self.data = self.folder / "data"
        self.file = self.folder / "plant.toml"
        self.archive = self.folder / "archive"
        self.archive.mkdir()
        self.archive.chmod(0o777)
        self.http = free_port()
        self._up = ExitStack()
        self._names = 0
        self.server: RunningServer

    # --- the server ---

    def _serve(self) -> None:
        self.file.write_text(facility(self.model, str(self.archive), self.renamed, self.zone.key))
        options = ("--http", f"127.0.0.1:{self.http}", "--http-role", "reader")
        self._up = ExitStack()
        self.server = self._up.enter_context(serving(self.data, *options, facility=self.file))

    @contextmanager
    def alive(self) -> Iterator["Life"]:
        try:
            yield self
        finally:
            for command in self.running:
                command.kill()
                command.communicate()
            self._up.close()

    def _command(self, *words: str | Path) -> None:
        """Runs a command of the operator's."""
        done = ringlog(*words, "--data", self.server.data)
        if done.returncode != 0:
            raise Different(
                f"ringlog {' '.join(map(str, words))}: code {done.returncode}: {done.stdout}{done.stderr}"
            )

    def _begin(self, *words: str) -> None:
        """Starts a command that runs while writers write; two of them do not overlap."""
        self._settle()
        self.running.append(
            subprocess.Popen(
                [str(RINGLOG), *words, "--data", str(self.server.data)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )

    def _settle(self) -> None:
        """Waits for the commands that were started."""
        for command in self.running:
            said, _ = command.communicate()
            if command.returncode != 0:
                raise Different(f"{' '.join(command.args[1:])}: code {command.returncode}: {said}")  # type: ignore[index]
        self.running.clear()

    # --- steps ---

    def begin(self, draw: random.Random) -> None:
        self.zone = ZoneInfo(draw.choice(ZONES))
        self.start = self.plant = monday(datetime.now(UTC), draw.choice(WEEKS))
        self._serve()
        add_logins(self.server)

    def step(self, step: Step) -> None:
        self.history.append(step)
        name, seed = step
        getattr(self, name)(random.Random(seed))

    def _values(self, draw: random.Random, table: Table) -> Values:
        def one(of: str) -> Any:
            if draw.random() < 0.1:
                return None
            if of == "real":
                return struct.unpack("f", struct.pack("f", draw.uniform(-500, 500)))[0]
            if of == "double":
                return draw.choice([0.0, draw.uniform(-1e6, 1e6), draw.uniform(-1, 1) * 1e-9])
            if of in ("int", "bigint"):
                return draw.choice([0, draw.randint(-(2**31), 2**31 - 1), draw.randint(0, 9)])
            if of == "bit":
                return draw.random() < 0.5
            # DB-Library's calls have no empty text
            return draw.choice(["on", "off", "Ω-" + str(draw.randint(0, 99)), "it's"])

        return {column: one(of) for column, of in table.columns.items()}

    def _put(
        self,
        table: Table,
        seq_no: int | None,
        time: datetime | None,
        values: Values,
        section: str,
        local: datetime | None = None,
    ) -> None:
        """Calls put. The time is sent with its offset, or `local` without one."""
        expected: tuple[int, ...] | None = None
        try:
            if local is not None:
                time = table.instant(local, self.zone, datetime.now(UTC))
            table.put(seq_no, time, values, datetime.now(UTC))
        except Refused as refused:
            expected = refused.numbers
        said = None if time is None else f"{time:%Y-%m-%d %H:%M:%S.%f}+00:00"
        if local is not None:
            said = f"{local:%Y-%m-%d %H:%M:%S.%f}"
        got = self._call(table.name, seq_no, said, values, section)
        if (got is None) != (expected is None) or (expected is not None and got not in expected):
            raise Different(f"put_{table.name} {seq_no} {said} {values}: error {got}, expected {expected}")
        if expected is None and time is not None:
            self.sent.append((table.name, seq_no, time, values))

    def _call(
        self, table: str, seq_no: int | None, said: str | None, values: Values, section: str
    ) -> int | None:
        """The number of the error; None: the row is acknowledged."""
        connection = wait_until(lambda: self._connected(section))
        with connection, connection.cursor() as cursor:
            try:
                cursor.callproc(f"put_{table}", (seq_no, said, *values.values()))
                while cursor.nextset():
                    pass
            except pymssql.Error as error:
                return int(error.args[0])
        return None

    def _connected(self, section: str, login: Login | None = None) -> pymssql.Connection | None:
        login = login or self.server.writer
        with suppress(pymssql.OperationalError):
            return self.server.connect(login.user, login.password, database="online", tds_version=section)
        return None

    def _table(self, draw: random.Random) -> Table:
        return draw.choice([*self.model.values()])

    def _from(self, table: Table) -> datetime:
        """The time from which rows are certainly kept."""
        return max(self.start, table.kept_from or self.start)

    def write(self, draw: random.Random) -> None:
        """Some rows in order, with or without their seq_no."""
        table = self._table(draw)
        for _ in range(draw.randint(1, 6)):
            pause = draw.choice([1, 1, 7, 60, 3600, 40_000])
            now = datetime.now(UTC)
            plant = max(self.plant, self._from(table))
            self.plant = min(plant + timedelta(seconds=pause, microseconds=draw.randint(0, 999_999)), now)
            seq_no = draw.choice([None, None, draw.randint(1, table.rows)])
            self._put(table, seq_no, self.plant, self._values(draw, table), draw.choice(["7.4", "7.1"]))

    def write_late(self, draw: random.Random) -> None:
        table = self._table(draw)
        for _ in range(draw.randint(1, 4)):
            start = self._from(table)
            span = (datetime.now(UTC) - start).total_seconds()
            time = start + timedelta(seconds=round(draw.uniform(0, span), draw.choice([0, 6])))
            seq_no = draw.choice([None, draw.randint(1, table.rows)])
            self._put(table, seq_no, time, self._values(draw, table), "7.4")

    def write_again(self, draw: random.Random) -> None:
        """Acknowledged rows, sent again like by a writer that did not get the acknowledgement."""
        for name, seq_no, time, values in draw.sample(self.sent, min(3, len(self.sent))):
            table = self.model[name]
            if seq_no is not None and [*values] == [*table.columns] and time >= self._from(table):
                self._put(table, seq_no, time, values, "7.4")

    def write_conflict(self, draw: random.Random) -> None:
        """Another row of a time that the log has; of archived weeks the next round finds it, not put."""
        if not self.sent:
            return
        name, seq_no, time, _ = draw.choice(self.sent)
        table = self.model[name]
        self._settle()
        is_archived = any(begins <= time < ends for begins, ends, _ in self._archived(table))
        if seq_no is not None and time >= self._from(table) and not is_archived:
            self._put(table, seq_no, time, self._values(draw, table), "7.4")

    def write_bad(self, draw: random.Random) -> None:
        table = self._table(draw)
        seq_no, time = draw.choice([(0, self.plant), (table.rows + 1, self.plant), (1, None)])
        self._put(table, seq_no, time, self._values(draw, table), "7.4")

    def write_ahead(self, draw: random.Random) -> None:
        table = self._table(draw)
        time = datetime.now(UTC) + timedelta(days=draw.uniform(2, 60))
        self._put(table, draw.randint(1, table.rows), time, self._values(draw, table), "7.4")

    def write_together(self, draw: random.Random) -> None:
        """Several writers at once, each with rows of its own seq_no."""
        table = self._table(draw)
        start = self._from(table)
        span = (datetime.now(UTC) - start).total_seconds()
        places = draw.sample(range(1, table.rows + 1), 8)
        rows = [
            (place, start + timedelta(seconds=draw.uniform(0, span)), self._values(draw, table))
            for place in places
        ]
        with ThreadPoolExecutor(4) as writers:
            work = [
                writers.submit(self._put, table, place, time, values, "7.4") for place, time, values in rows
            ]
        for done in work:
            done.result()

    def write_empty(self, draw: random.Random) -> None:
        """An IOC's first row after a restart: no reading yet, then some."""
        table = self._table(draw)
        now = datetime.now(UTC)
        self.plant = min(max(self.plant, self._from(table)) + timedelta(seconds=draw.randint(1, 90)), now)
        self._put(table, None, self.plant, dict.fromkeys(table.columns), "7.4")

    def write_night(self, draw: random.Random) -> None:
        """Local times around the hour in which clocks are changed."""
        table = self._table(draw)
        days = nights(self.zone, self._from(table), datetime.now(UTC))
        if not days:
            return
        local = draw.choice(days) + timedelta(minutes=draw.randint(60, 200), seconds=draw.randint(0, 59))
        for _ in range(draw.randint(1, 4)):
            place = draw.randint(1, table.rows)
            self._put(table, place, None, self._values(draw, table), "7.4", local=local)
            local += timedelta(seconds=draw.choice([1, 20, 600, 1800]), microseconds=draw.randint(0, 999_999))

    def maintain(self, draw: random.Random) -> None:
        self._begin("maintain")

    def archive_weeks(self, draw: random.Random) -> None:
        self._begin("archive", "now")

    def recall(self, draw: random.Random) -> None:
        table = self._table(draw)
        begin = self.start + timedelta(weeks=draw.randint(0, 7))
        self._begin("recall", table.name, f"{begin:%Y-%m-%d}", f"{begin + timedelta(weeks=1):%Y-%m-%d}")

    def add_column(self, draw: random.Random) -> None:
        table = self._table(draw)
        if len(table.columns) < 9:
            self._names += 1
            table.add_column(f"extra_{self._names}", draw.choice(["real", "int", "varchar(20)"]))
            self._install()

    def rename_column(self, draw: random.Random) -> None:
        """A column of a table without archived weeks."""
        table = self._table(draw)
        old = draw.choice([*table.columns])
        self._settle()
        if self._archived(table):
            return
        self._names += 1
        new = f"renamed_{self._names}"
        table.rename_column(old, new)
        self.renamed[table.name, new] = old
        self.sent = [row for row in self.sent if row[0] != table.name]
        self._install()
        del self.renamed[table.name, new]

    def retire_column(self, draw: random.Random) -> None:
        table = self._table(draw)
        column = draw.choice([*table.columns])
        table.retired ^= {column}
        if len(table.retired) < len(table.columns) - 2:
            self._install()
        else:
            table.retired ^= {column}

    def change_type(self, draw: random.Random) -> None:
        """To a wider one; the table is rewritten by hand first."""
        table = self._table(draw)
        some = [column for column, of in table.columns.items() if of in WIDER]
        if some:
            column = draw.choice(some)
            table.change_type(column, WIDER[table.columns[column]])
            self._install(by_hand=True)

    def set_retention(self, draw: random.Random) -> None:
        table = self.model["vacuum"]
        if table.kept_from is None:
            table.kept_from = monday(datetime.now(UTC), RETENTION - 1)
            self._install(by_hand=True)

    def _install(self, *, by_hand: bool = False) -> None:
        """Installs the facility. `by_hand`: the SQL of its refusal is run first."""
        self._settle()
        self.file.write_text(facility(self.model, str(self.archive), self.renamed, self.zone.key))
        if by_hand:
            refused = ringlog("init", "--facility", self.file, "--data", self.server.data)
            if refused.returncode == 0:
                return
            with psycopg.connect(self.server.dsn, autocommit=True) as connection:
                connection.execute(refused.stderr.partition("run:\n")[2])  # type: ignore[arg-type]
        self._command("init", "--facility", self.file)

    def _archived(self, table: Table) -> list[tuple[datetime, datetime, str]]:
        """The weeks of a table whose rows are in the archive: begin, end and file."""
        with psycopg.connect(self.server.dsn) as connection:
            return connection.execute(
                "select begins, ends, file from ringlog.cold_week where table_name = %s and rows > 0"
                " and recalled_until is null order by begins",
                [table.name],
            ).fetchall()

    def kill(self, draw: random.Random) -> None:
        """Kills the server's processes, PostgreSQL's too."""
        self._settle()
        main = psutil.Process(self.server.process.pid)
        every = [main, *main.children(recursive=True)]
        for process in every:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(every, timeout=20)
        self._up.close()
        self._serve()

    def backup_and_restore(self, draw: random.Random) -> None:
        """The server continues from a copy that has all rows."""
        self._settle()
        backup = self.folder / f"backup-{len(self.history)}"
        self._command("backup", backup)
        for _ in range(3):
            self.write_late(draw)
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            (last,) = connection.execute("select pg_walfile_name(pg_switch_wal())").fetchone() or ("",)
            wait_until(
                lambda: (
                    connection.execute(
                        "select last_archived_wal >= %s from pg_stat_archiver", [last]
                    ).fetchone()
                    == (True,)
                )
            )
        self._up.close()
        before, self.data = self.data, self.folder / f"data-{len(self.history)}"
        done = ringlog("restore", backup, "--data", self.data)
        if done.returncode != 0:
            raise Different(f"restore: {done.stdout}{done.stderr}")
        shutil.rmtree(before)
        self._serve()
        self._command("archive", "adopt")
        shutil.rmtree(backup)

    def restart(self, draw: random.Random) -> None:
        self._settle()
        self._up.close()
        self._serve()

    def crash(self, draw: random.Random) -> None:
        """A backend is killed, after which PostgreSQL ends all others and recovers."""
        self._settle()
        with psycopg.connect(self.server.dsn) as connection:
            victim = connection.info.backend_pid
            psutil.Process(victim).send_signal(signals.SIGKILL)
        wait_until(self._is_there)

    def _is_there(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.server.dsn):
            return True
        return False

    # --- reads ---

    def compare(self, draw: random.Random) -> None:
        """A few of the reads, on spans of any length."""
        self._settle()
        table = self._table(draw)
        for read in draw.sample(self._every_read(), 3):
            read(draw, table)
            self.reads += 1

    def _every_read(self) -> list[Callable[[random.Random, Table], None]]:
        return [
            self._ring,
            self._latest,
            self._log,
            self._text,
            self._range,
            self._statistics,
            self._trend,
            self._samples,
            self._events,
            self._hours,
            self._parquet,
        ]

    def compare_all(self) -> None:
        self._settle()
        draw = random.Random(0)
        for table in self.model.values():
            for _ in range(4):
                for read in self._every_read():
                    read(draw, table)
                    self.reads += 1
        self._command("verify")

    def _span(self, draw: random.Random, table: Table) -> tuple[datetime, datetime]:
        start, end = self._from(table), datetime.now(UTC) + timedelta(days=70)
        length = draw.choice([3600.0, 86_400.0, 7 * 86_400.0, (end - start).total_seconds()])
        begin = start + timedelta(seconds=draw.uniform(0, (end - start).total_seconds() - length))
        if draw.random() < 0.5 and self.sent:
            # a row at the very begin
            begin = max(start, draw.choice(self.sent)[2])
        return begin, begin + timedelta(seconds=length)

    def _wanted(self, what: str, got: Any, wanted: Any) -> None:
        if got != wanted:
            missing = [one for one in wanted if one not in got] if isinstance(wanted, list) else wanted
            extra = [one for one in got if one not in wanted] if isinstance(got, list) else got
            raise Different(f"{what}: missing {missing!r}, not expected {extra!r}")

    def _rows(self, schema: str, table: Table, condition: str, values: list[Any]) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.dsn_of(self.server.reader)) as connection:
            connection.execute("set timezone = 'UTC'")
            query = sql.SQL("select seq_no, time, {} from {} where {} order by time, seq_no").format(
                sql.SQL(", ").join(map(sql.Identifier, table.columns)),
                sql.Identifier(schema, table.name),
                sql.SQL(condition),  # type: ignore[arg-type]
            )
            return [
                (seq_no, at.astimezone(UTC), *rest)
                for seq_no, at, *rest in connection.execute(query, values, binary=True)
            ]

    def _ring(self, draw: random.Random, table: Table) -> None:
        wanted = sorted(
            ((place, at, *row.values()) for place, (at, row) in table.ring.items()),
            key=lambda row: (row[1], row[0]),
        )
        self._wanted(f"online.{table.name}", self._rows("online", table, "time is not null", []), wanted)

    def _log(self, draw: random.Random, table: Table) -> None:
        """All weeks, also of the archive."""
        begin, end = self._span(draw, table)
        wanted = [(place, at, *row.values()) for (at, place), row in table.logged(begin, end)]
        got = _of_archive(lambda: self._rows("log", table, "time >= %s and time < %s", [begin, end]))
        self._wanted(f"log.{table.name} from {begin} to {end}", got, wanted)

    def _latest(self, draw: random.Random, table: Table) -> None:
        wanted = table.latest()
        with psycopg.connect(self.server.dsn_of(self.server.reader)) as connection:
            found = connection.execute(f"select * from ringlog.last_{table.name}()").fetchone()  # type: ignore[arg-type]
        got = found and found[1] and (found[1].astimezone(UTC), found[0])
        self._wanted(f"last_{table.name}", got, wanted and wanted[:2])

    def _text(self, draw: random.Random, table: Table) -> None:
        """T-SQL on the log: all rows."""
        begin, end = self._span(draw, table)
        said = [at.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S.%f") for at in (begin, end)]
        if any(at.astimezone(self.zone).replace(tzinfo=None) in self._twice() for at in (begin, end)):
            return
        connection = wait_until(lambda: self._connected("7.4", self.server.reader))
        with connection, connection.cursor() as cursor:

            def read() -> list[tuple[Any, ...]]:
                cursor.execute(
                    f"select seq_no, convert(varchar(30), time, 121) from log..{table.name}"
                    " where time >= %s and time < %s order by time, seq_no",
                    tuple(said),
                )
                return cursor.fetchall()

            found = _of_archive(read)
        wanted = [
            (place, at.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S.%f"))
            for (at, place), _ in table.logged(begin, end)
        ]
        self._wanted(f"T-SQL on log.{table.name} from {begin} to {end}", found, wanted)

    def _range(self, draw: random.Random, table: Table) -> None:
        begin, end = self._span(draw, table)
        query = f"select time, seq_no from ringlog.get_{table.name}_range(%s, %s)"
        with psycopg.connect(self.server.dsn_of(self.server.reader), autocommit=True) as connection:
            found = _of_archive(lambda: connection.execute(query.encode(), [begin, end]).fetchall())
        self._wanted(
            f"get_{table.name}_range from {begin} to {end}",
            [(at.astimezone(UTC), place) for at, place in found],
            [key for key, _ in table.logged(begin, end)],
        )

    def _coming(self, table: Table) -> set[datetime]:
        """The hours of archived weeks whose summaries get late rows in the next round."""
        with psycopg.connect(self.server.dsn) as connection:
            marks = connection.execute(
                "select distinct date_trunc('hour', mark.time) from ringlog.summary_mark as mark"
                " join ringlog.cold_week as week using (table_name)"
                " where table_name = %s and recalled_until is null and begins <= time and time < ends",
                [table.name],
            ).fetchall()
        return {hour.astimezone(UTC) for (hour,) in marks}

    def _trend(self, draw: random.Random, table: Table) -> None:
        """Bins of an hour."""
        signal, column = self._signal(draw, table, numeric=True)
        begin, _ = self._span(draw, table)
        begin = begin.replace(minute=0, second=0, microsecond=0)
        hours = draw.choice([1, 24, 300])
        end = begin + timedelta(hours=hours)
        with psycopg.connect(self.server.dsn_of(self.server.reader)) as connection:
            found = connection.execute(
                "select time, n, min, max, mean, first, last, nulls from ringlog.get_trend(%s, %s, %s, %s)",
                # one more bin is omitted, for spans that do not begin at `begin`
                [signal, begin, end, hours + 1],
            ).fetchall()
        got = {at.astimezone(UTC): figures for at, *figures in found}
        coming = self._coming(table)
        for hour in (begin + timedelta(hours=hour) for hour in range(hours)):
            wanted = table.figures(column, hour, hour + timedelta(hours=1))
            figures = got.pop(hour, None)
            if (figures is None and wanted is None) or hour in coming:
                continue
            if (
                figures is None
                or wanted is None
                or not all(same(a, b) for a, b in zip(figures, vars(wanted).values(), strict=True))
            ):
                raise Different(
                    f"get_trend {signal}, {hours} h from {begin}: {hour} {figures}, expected {wanted}"
                )
        if got:
            raise Different(f"get_trend {signal}, {hours} h from {begin}: not expected {got}")

    def _events(self, draw: random.Random, table: Table) -> None:
        """Raw events for the Archiver Appliance's clients: the one before the span is the first."""
        signal, column = self._signal(draw, table, numeric=True)
        begin, end = self._span(draw, table)
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        got = self._get("/retrieval/data/getData.json", pv=signal, **span)
        events = got.json()[0]["data"] if got.json() else []
        found = [
            (event["secs"], event["nanos"], event["val"])
            for event in events
            if datetime.fromtimestamp(event["secs"], UTC) + timedelta(microseconds=event["nanos"] // 1000)
            >= begin
        ]
        single = struct.Struct("f") if table.columns[column] == "real" else struct.Struct("d")

        def packed(value: float | None) -> bytes | None:
            # a real is sent by its shortest digits
            return None if value is None else single.pack(value)

        found = [(*at, packed(value)) for *at, value in found]
        wanted = [
            (int(at.timestamp()), at.microsecond * 1000, packed(row[column]))
            # the appliance's span includes its end
            for (at, _), row in table.logged(begin, end + timedelta(microseconds=1))
        ]
        self._wanted(f"getData of {signal} from {begin} to {end}", found, wanted)

    def _parquet(self, draw: random.Random, table: Table) -> None:
        """The file of an archived week, once late rows are merged into it."""
        weeks = self._archived(table)
        if not weeks:
            return
        self._command("archive", "now")
        begins, ends, _ = draw.choice(weeks)
        for first, _, file in self._archived(table):
            if first == begins and begins >= self._from(table):
                read = pq.read_table(self.archive / file)
                times = [at.astimezone(UTC) for at in read["time"].to_pylist()]
                found = sorted(zip(times, read["seq_no"].to_pylist(), strict=True))
                self._wanted(f"{file}", found, [key for key, _ in table.logged(begins, ends)])

    def _twice(self) -> Container[datetime]:
        """Local times that occur twice, or never."""
        return _ChangedHours(nights(self.zone, self.start, datetime.now(UTC)))

    def _signal(self, draw: random.Random, table: Table, numeric: bool = False) -> tuple[str, str]:
        choices = [
            (signal, column)
            for signal, column in table.signals.items()
            if column not in table.retired
            and (not numeric or table.columns[column] in ("real", "double", "int", "bigint"))
        ]
        return draw.choice(choices)

    def _statistics(self, draw: random.Random, table: Table) -> None:
        signal, column = self._signal(draw, table, numeric=True)
        begin, end = self._span(draw, table)
        with psycopg.connect(self.server.dsn_of(self.server.reader)) as connection:
            try:
                found = connection.execute(
                    "select n, min, max, mean, first, last, nulls from ringlog.get_statistics(%s, %s, %s)",
                    [signal, begin, end],
                ).fetchall()
            except psycopg.Error as error:
                # its first or last rows are in the archive, which SQL does not read
                if error.sqlstate == "RL003" and begin < datetime.now(UTC) - timedelta(weeks=2):
                    return
                raise
        wanted = table.figures(column, begin, end)
        figures = [] if wanted is None else [(*vars(wanted).values(),)]
        if len(found) != len(figures) or not all(
            same(a, b)
            for got, want in zip(found, figures, strict=True)
            for a, b in zip(got, want, strict=True)
        ):
            raise Different(f"get_statistics {signal} from {begin} to {end}: {found}, expected {figures}")

    def _get(self, path: str, **parameters: Any) -> httpx.Response:
        def answer() -> httpx.Response | None:
            # the HTTP process begins a moment after the gateway
            with suppress(httpx.TransportError):
                got = httpx.get(
                    f"http://127.0.0.1:{self.http}{path}", params=parameters, timeout=60, trust_env=False
                )
                return None if got.status_code == 503 else got
            return None

        got = wait_until(answer)
        if got.status_code != 200:
            raise Different(f"{path} {parameters}: {got.status_code} {got.text[:300]}")
        return got

    def _samples(self, draw: random.Random, table: Table) -> None:
        """Raw samples over HTTP, from PostgreSQL and the archive alike."""
        signal, column = self._signal(draw, table)
        begin, end = self._span(draw, table)
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        got = self._get("/api/v1/data", signal=signal, format="arrow", **span)
        read = pa.ipc.open_stream(got.content).read_all()
        found = [
            *zip(
                (at.astimezone(UTC) for at in read["time"].to_pylist()),
                read["value"].to_pylist(),
                strict=True,
            )
        ]
        wanted = [(at, row[column]) for (at, _), row in table.logged(begin, end)]
        self._wanted(f"/api/v1/data of {signal} from {begin} to {end}", found, wanted)

    def _hours(self, draw: random.Random, table: Table) -> None:
        """The Archiver Appliance's count and mean of whole hours: of those that have values."""
        signal, column = self._signal(draw, table, numeric=True)
        begin, end = (at.replace(minute=0, second=0, microsecond=0) for at in self._span(draw, table))
        end = min(max(end, begin + timedelta(hours=1)), datetime.now(UTC))
        if end <= begin:
            return
        for operator in ("count", "mean"):
            span = {"from": begin.isoformat(), "to": end.isoformat()}
            got = self._get("/retrieval/data/getData.json", pv=f"{operator}_3600({signal})", **span)
            found = {event["secs"] // 3600: event["val"] for event in got.json()[0]["data"]}
            hours: dict[int, list[float]] = {}
            for (at, _), row in table.logged(begin, end):
                if row[column] is not None:
                    hours.setdefault(int(at.timestamp()) // 3600, []).append(float(row[column]))
            for hour, values in hours.items():
                wanted = float(len(values)) if operator == "count" else sum(values) / len(values)
                if not same(found.get(hour), wanted):
                    at = datetime.fromtimestamp(hour * 3600, UTC)
                    raise Different(
                        f"{operator}_3600({signal}) at {at}: {found.get(hour)}, expected {wanted}"
                    )


@dataclass
class _ChangedHours:
    """The first hours of some nights."""

    midnights: list[datetime]

    def __contains__(self, local: object) -> bool:
        assert isinstance(local, datetime)
        return any(night <= local < night + timedelta(hours=4) for night in self.midnights)


def _of_archive(read: Callable[[], list[Any]]) -> list[Any]:
    """The rows of a log in their order, when the archive server is there. A row that came again for an
    archived week is there twice until the next round."""

    def answer() -> list[list[Any]]:
        try:
            return [read()]
        except (psycopg.Error, pymssql.Error) as error:
            if "archive server" not in str(error):
                raise
            return []

    (rows,) = wait_until(answer)
    return [row for before, row in zip([None, *rows], rows, strict=False) if row != before]


def same(a: Any, b: Any) -> bool:
    """Equal but for the order of additions."""
    if a is None or b is None:
        return a is b
    return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)


def live(steps: Iterator[Step], seconds: float) -> Life:
    """Runs the steps for so long after the first. Raises Different, with the history so far."""
    folder = new_folder("plant")
    life = Life(folder)
    try:
        with life.alive():
            try:
                life.step(next(steps))
                until = clock.monotonic() + seconds
                for step in steps:
                    if clock.monotonic() > until:
                        break
                    life.step(step)
                life.compare_all()
            except Exception as error:
                error.history = life.history  # type: ignore[attr-defined]
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return life
