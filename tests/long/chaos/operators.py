"""A night of operators: random commands beside random faults, under load, with every row counted.

Writers replay recordings of now, and of a hundred days ago, whose weeks go to the archive while their rows
still come. Meanwhile somebody adds, locks and removes logins, changes the facility file and installs it,
reloads writers, imports files of old rows again and again, backs up, archives, merges, verifies, restarts
the server; and processes are killed and connections cut as in load.py. At the end every row of every
recording and file must be in the database exactly once, with its values, and in the restored backup.
"""

import random
import secrets
import subprocess
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from chaos.figures import Figures
from chaos.load import FAULTS, RecordedSite
from chaos.recordings import DOUBLES, record, recorded
from chaos.site import table_text
from killed_server import RINGLOG, KilledServer
from random_operations import LOOK, Operation, Operations, run

_LONG_AGO = timedelta(days=100)
_BEFORE_THAT = timedelta(days=30)
"""The time from the first rows of the old files (one per minute) to the writers' rows."""
_OLD_ROWS = 30_000

Done = subprocess.CompletedProcess[str]


@dataclass
class OperatedSite(RecordedSite):
    """Half of its recordings are old; with an archive and a backup folder."""

    logins: list[str] = field(default_factory=list)
    columns_more: int = 0
    unit: str = "V"

    def record(self) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        begins = {name: now - _LONG_AGO if number % 2 else now for number, name in enumerate(self.names)}
        record(self.recordings, begins, self.cycle, self.recorded)
        before = {name: begin - _BEFORE_THAT for name, begin in begins.items()}
        record(self.old, before, 60.0, _OLD_ROWS)

    def record_of(self, table: str) -> list[tuple[object, ...]]:
        return recorded(self.old / f"{table}.csv") + super().record_of(table)

    def text(self) -> str:
        archive = self.folder / "archive"
        archive.mkdir(exist_ok=True)
        # PostgreSQL's account writes it, too
        archive.chmod(0o777)
        columns: dict[str, dict[str, object]] = {
            "c_{n}": {"count": len(DOUBLES), "type": "double", "unit": self.unit}
        } | {f"later_{number}": {"type": "real"} for number in range(self.columns_more)}
        keys = {"rows": 100 + self.columns_more, "cycle": self.cycle, "description": self.unit}
        return f'[history]\nonline = "4 weeks"\narchive = "{archive}"\n' + "".join(
            table_text(name, columns, **keys) for name in self.names
        )

    @property
    def old(self) -> Path:
        """The folder of files of old rows."""
        return self.folder / "old"

    @property
    def copies(self) -> Path:
        return self.folder / "server" / "copies"

    def change_facility(self, draw: random.Random) -> Done:
        """Changes a unit and description; sometimes makes a ring longer and adds a column."""
        self.unit = draw.choice(["V", "mV", "A", "mA"])
        if draw.random() < 0.3 and self.columns_more < 5:
            self.columns_more += 1
        self.write_facility()
        return self.command("init", "--facility", self.facility, demanded=False)

    def backfill(self) -> Done:
        """Imports the files of old rows, or continues an interrupted import."""
        server = conninfo_to_dict(self.server.dsn)
        return self.command(
            *("load", "--backfill", "--facility", self.facility, "--source", f"csv:{self.old}"),
            *("--url", f"postgresql://writer@127.0.0.1:{server['port']}/{server['dbname']}"),
            password=self.password,
            on_data=False,
            demanded=False,
        )

    def recall(self, draw: random.Random) -> Done:
        day = datetime.now(UTC) - _LONG_AGO
        days = (f"{day + timedelta(days=number):%Y-%m-%d}" for number in (-8, 8))
        return self.command("recall", draw.choice(self.names), *days, demanded=False)

    def user(self, draw: random.Random, word: str) -> Done | None:
        """A command on one of the added logins; None: there is none."""
        if word == "add":
            self.logins.append(f"guest_{self.figures.operations['add a login']}")
            login = self.logins[-1]
        elif not self.logins:
            return None
        else:
            login = self.logins.pop() if word == "remove" else draw.choice(self.logins)
        more = {"add": ("--writer", "--password-stdin"), "passwd": ("--password-stdin",)}.get(word, ())
        return self.command("user", word, login, *more, stdin=secrets.token_urlsafe(9), demanded=False)

    def stop_server(self) -> Done:
        """The server is started again like after a fault."""
        self.server.stop()
        return Done([], 0, "", "")

    def operate(self, draw: random.Random, faults: float, commands: float) -> Figures:
        """Until the recordings have ended: a fault each `faults` seconds on average, and a command after each
        pause of `commands` seconds; then the comparison."""
        self.start_load()
        ended = threading.Event()
        own = random.Random(draw.getrandbits(32))

        def pause(site: Any, seconds: float) -> None:
            ended.wait(seconds)

        person = threading.Thread(
            target=lambda: run(
                _Person(ended),
                {name: (weight, _reported(self, name, act)) for name, (weight, act) in _COMMANDS.items()},
                own,
                self.note,
                pause=lambda: own.expovariate(1 / commands),
                wait=pause,
            )
        )
        person.start()
        try:
            run(
                self, FAULTS, draw, self.note, pause=lambda: draw.expovariate(1 / faults), seconds=self.length
            )
        finally:
            ended.set()
            while person.is_alive():
                self.tend()
                person.join(LOOK)
        self.await_end()
        self._count()
        return self.figures

    def _count(self) -> None:
        now = datetime.now(UTC)
        days = f"{now - _LONG_AGO - _BEFORE_THAT - timedelta(days=15):%Y-%m-%d}", f"{now:%Y-%m-%d}"
        # late rows of archived weeks are archived first
        last = [self.backfill(), self.command("archive", "now", demanded=False)]
        last += [self.command("recall", table, *days, demanded=False) for table in self.names]
        self.compare()
        last += [self.command(*words, demanded=False) for words in (("verify",), ("backup", self.copies))]
        new = self.folder / "server" / "restored"
        restore = [*RINGLOG, "restore", self.copies, "--data", new]
        last.append(subprocess.run([*map(str, restore)], capture_output=True, text=True))
        self.figures.problems += [
            f"{done.args}: {done.stdout}{done.stderr}" for done in last if done.returncode
        ]
        if not last[-1].returncode:
            restored = self._rows_of(new)
            if restored != self.figures.stored:
                self.figures.problems.append(f"{restored} rows in what was restored")

    def _rows_of(self, data: Path) -> int:
        """Rows of all logs of another data directory, which is served meanwhile."""
        server = KilledServer(data, None, self.folder / "restored.log")
        try:
            with psycopg.connect(server.dsn) as connection:
                counts = [
                    connection.execute(f"select count(*) from log.{name}".encode()) for name in self.names
                ]
                return sum(count for (count,) in (rows.fetchall()[0] for rows in counts))
        finally:
            server.stop()


@dataclass
class _Person:
    """Somebody who gives commands, and restarts nothing."""

    ended: threading.Event

    def tend(self) -> None:
        pass

    def works(self) -> bool:
        return not self.ended.is_set()


def _reported(site: OperatedSite, name: str, act: Operation) -> Operation:
    """The command on the site. An interruption by a fault is noted; a traceback is always wrong."""

    def run_it(_: object, draw: random.Random) -> bool:
        try:
            done: Any = act(site, draw)
        except subprocess.TimeoutExpired as error:
            done = Done([], 124, "", f"no end: {error}")
        if done is None:
            return False
        if "Traceback" in done.stderr:
            site.figures.problems.append(f"{name}: {done.stderr}")
        # status and reload report the state of other parts by a code of 1
        if done.returncode and not (done.returncode == 1 and name in ("status", "reload")):
            site.figures.notes[f"{name} met a fault"] += 1
            words = (done.stderr.strip() or done.stdout.strip() or f"code {done.returncode}").splitlines()
            site.say(f"{name}: {words[-1]}")
        return True

    return run_it


def _user(word: str) -> Operation:
    return lambda site, draw: site.user(draw, word)


def _command(*words: str) -> Operation:
    return lambda site, draw: site.command(*words, demanded=False)


_COMMANDS: Operations = {
    "add a login": (3, _user("add")),
    "lock a login": (2, _user("lock")),
    "unlock a login": (2, _user("unlock")),
    "change a password": (2, _user("passwd")),
    "remove a login": (2, _user("remove")),
    "change the facility": (4, OperatedSite.change_facility),
    "reload": (
        3,
        lambda site, draw: site.command("reload", "--spool", site.spool, on_data=False, demanded=False),
    ),
    "back up": (2, lambda site, draw: site.command("backup", site.copies, "--keep", "2", demanded=False)),
    "archive": (3, _command("archive", "now")),
    "recall": (1, OperatedSite.recall),
    "backfill": (3, lambda site, draw: site.backfill()),
    "maintain": (2, _command("maintain")),
    "verify": (1, _command("verify")),
    "status": (2, _command("status")),
    "restart": (2, lambda site, draw: site.stop_server()),
}
