"""The operations that change a plant: writing rows, changing the facility, commands, kills and restarts."""

import math
import random
import shutil
import signal as signals
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import psycopg
import pymssql
import pytest

from plant.model import RETENTION, Refused, Table, Values, monday, nights
from plant.sample_model import NAME
from plant.site import Different, Site
from servers import ringlog
from waiting import PATIENCE, wait_until

ZONES = [
    "UTC",
    "Asia/Tokyo",
    "Europe/Zurich",
    "America/New_York",
    "Australia/Sydney",
    "America/St_Johns",
    # clocks are changed by half an hour
    "Australia/Lord_Howe",
]
WEEKS = [11, 11, 53]
"""the age of a plant at the beginning; in a year clocks are set ahead and back"""

WIDER = {"real": "double", "int": "bigint"}
"""Types with the values of other types."""


class Operations(Site):
    """Each changes the plant and its model, by random choices."""

    def begin(self, draw: random.Random) -> None:
        self.zone = ZoneInfo(draw.choice(ZONES))
        self.start = self.plant = monday(datetime.now(UTC), draw.choice(WEEKS))
        self._serve()

    def _values(self, draw: random.Random, table: Table) -> Values:
        def one(of: str) -> Any:
            if draw.random() < 0.1:
                return None
            if of in ("real", "double") and draw.random() < 0.15:
                return draw.choice([math.nan, math.inf, -math.inf])
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
        written = None if time is None else f"{time:%Y-%m-%d %H:%M:%S.%f}+00:00"
        if local is not None:
            written = f"{local:%Y-%m-%d %H:%M:%S.%f}"
        got = self._call(table.name, seq_no, written, values, section)
        number = None if got is None else got.args[0]
        if (got is None) != (expected is None) or (expected is not None and number not in expected):
            raise Different(f"put_{table.name} {seq_no} {written} {values}: {got!r}, expected {expected}")
        if expected is None and time is not None:
            self.sent.append((table.name, seq_no, time, values))

    def _call(
        self, table: str, seq_no: int | None, written: str | None, values: Values, section: str
    ) -> pymssql.Error | None:
        """The error; None: the row is acknowledged."""

        def answer() -> tuple[pymssql.Error | None] | None:
            connection = wait_until(lambda: self._connected(section))
            with connection, connection.cursor() as cursor:
                try:
                    cursor.callproc(f"put_{table}", (seq_no, written, *values.values()))
                    while cursor.nextset():
                        pass
                except pymssql.Error as error:
                    # a writer repeats the call
                    return None if "nothing was written" in str(error) else (error,)
            return (None,)

        (error,) = wait_until(answer)
        return error

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
        """Sends acknowledged rows again, like a writer that did not receive the acknowledgement."""
        for name, seq_no, time, values in draw.sample(self.sent, min(3, len(self.sent))):
            table = self.model[name]
            if seq_no is not None and [*values] == [*table.columns] and time >= self._from(table):
                self._put(table, seq_no, time, values, "7.4")

    def write_conflict(self, draw: random.Random) -> None:
        """Sends another row for a time that is in the log; for archived weeks the next round detects it, not
        put.
        """
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
        """Several writers at once, each with its own seq_no."""
        table = self._table(draw)
        start = self._from(table)
        span = (datetime.now(UTC) - start).total_seconds()
        places = draw.sample(range(1, table.rows + 1), 8)
        rows = [
            (seq_no, start + timedelta(seconds=draw.uniform(0, span)), self._values(draw, table))
            for seq_no in places
        ]
        with ThreadPoolExecutor(4) as writers:
            work = [
                writers.submit(self._put, table, seq_no, time, values, "7.4") for seq_no, time, values in rows
            ]
        for done in work:
            done.result()

    def write_empty(self, draw: random.Random) -> None:
        """An IOC's first rows after a restart: without readings at first."""
        table = self._table(draw)
        now = datetime.now(UTC)
        self.plant = min(max(self.plant, self._from(table)) + timedelta(seconds=draw.randint(1, 90)), now)
        self._put(table, None, self.plant, dict.fromkeys(table.columns), "7.4")

    def write_night(self, draw: random.Random) -> None:
        """Local times around the hour of a change of clocks."""
        table = self._table(draw)
        days = nights(self.zone, self._from(table), datetime.now(UTC))
        if not days:
            return
        local = draw.choice(days) + timedelta(minutes=draw.randint(60, 200), seconds=draw.randint(0, 59))
        for _ in range(draw.randint(1, 4)):
            seq_no = draw.randint(1, table.rows)
            self._put(table, seq_no, None, self._values(draw, table), "7.4", local=local)
            local += timedelta(seconds=draw.choice([1, 20, 600, 1800]), microseconds=draw.randint(0, 999_999))

    def maintain(self, draw: random.Random) -> None:
        self._begin("maintain")

    def archive_weeks(self, draw: random.Random) -> None:
        self._begin("archive", "now")

    def recall(self, draw: random.Random) -> None:
        table = draw.choice([*self.model, NAME])
        begin = self.start + timedelta(weeks=draw.randint(0, 7))
        self._begin("recall", table, f"{begin:%Y-%m-%d}", f"{begin + timedelta(weeks=1):%Y-%m-%d}")

    def add_column(self, draw: random.Random) -> None:
        table = self._table(draw)
        if len(table.columns) < 9:
            self._names += 1
            table.add_column(f"extra_{self._names}", draw.choice(["real", "int", "varchar(20)"]))
            self._install()

    def rename_column(self, draw: random.Random) -> None:
        """Renames a column of a table without archived weeks, whose files, also recalled ones, have its
        name.
        """
        table = self._table(draw)
        old = draw.choice([*table.columns])
        self._settle()
        if self._weeks(table.name, recalled=True):
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
            (signal,) = (signal for signal, of in table.signals.items() if of == column)
            (moment,) = self.server.sql(
                "select max(greatest(valid_from, valid_to)) from ringlog.signal where signal = %s", [signal]
            )[0]
            table.ends.setdefault(signal, []).append(moment)
        else:
            table.retired ^= {column}

    def change_type(self, draw: random.Random) -> None:
        """Changes a type to a wider one; the table is rewritten by hand first."""
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

    def kill(self, draw: random.Random) -> None:
        """Kills the server's processes, also PostgreSQL's."""
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
        """Kills a backend, after which PostgreSQL ends all others and recovers."""
        self._settle()
        victim, other = (psycopg.connect(self.server.dsn) for _ in range(2))
        with closing(victim), closing(other):
            psutil.Process(victim.info.backend_pid).send_signal(signals.SIGKILL)
            # before PostgreSQL notices it, it accepts connections and then ends them
            with pytest.raises(psycopg.OperationalError):
                other.execute("select pg_sleep(%s)", [PATIENCE])
        wait_until(self._is_there)
