"""A night of operators: random commands beside random faults, under load, with every row counted.

    python tests/long/faults/operators.py --minutes 10

Writers replay recordings at their own pace: of now, and of a hundred days ago, whose weeks go to the archive
while their rows still come. Meanwhile somebody adds, locks and removes logins, changes the facility file and
installs it, reloads writers, imports files of old rows again and again, backs up, archives, merges, verifies,
restarts the server; and processes are killed and connections cut as in faults.py. At the end every row of
every recording and file must be in the database exactly once, with its values, and in the restored backup.
"""

import argparse
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from faults import Figures, Site
from killed_server import RINGLOG, KilledServer
from recordings import COLUMNS, record_values, recorded
from ringlog.schema import session

_LONG_AGO = timedelta(days=100)
_BEFORE_THAT = timedelta(days=30)
"""The time from the first rows of the old files (one per minute) to the writers' rows."""
_OLD_ROWS = 30_000
_FAULTS = Counter({"writer": 4, "connections": 4, "supervisor": 1, "gateway": 1, "postgresql": 1})
_COMMANDS = Counter(
    {
        "add a login": 3,
        "lock a login": 2,
        "unlock a login": 2,
        "change a password": 2,
        "remove a login": 2,
        "change the facility": 4,
        "reload": 3,
        "back up": 2,
        "archive": 3,
        "recall": 1,
        "backfill": 3,
        "maintain": 2,
        "verify": 1,
        "status": 2,
        "restart": 2,
    }
)
"""The operators' commands, and the weight of each."""
_PATIENCE = 300.0  # the most seconds of a command


@dataclass
class Night:
    """The commands and faults, and their outcome."""

    figures: Figures = field(default_factory=Figures)
    commands: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    """commands interrupted by a fault: they report it and leave nothing behind"""
    said: list[str] = field(default_factory=list)
    """the last lines of these commands"""
    crashed: list[str] = field(default_factory=list)
    """commands that ended with a traceback, which is always wrong"""
    verified: bool = False
    restored: int = 0
    """rows in the restored backup"""

    @property
    def good(self) -> bool:
        return (
            self.figures.good and self.verified and not self.crashed and self.restored == self.figures.in_log
        )

    def __str__(self) -> str:
        commands = ", ".join(
            f"{number} {name}" + (f" ({self.failed[name]} met a fault)" if self.failed[name] else "")
            for name, number in sorted(self.commands.items())
        )
        return (
            f"{sum(self.commands.values())} commands: {commands}\n{self.figures}\n"
            f"verify at the end: {'all is well' if self.verified else 'NOT WELL'}; "
            f"{self.restored} rows in what was restored; {len(self.crashed)} tracebacks"
        )


class OperatedSite(Site):
    """A site half of whose recordings are old, with an archive and a backup folder."""

    def _record(self, cycle: float, rows: int, points: int) -> None:
        self._cycle = cycle
        self._columns_more = 0
        self._unit = "V"
        self.archive = self.folder / "archive"
        self.archive.mkdir()
        # PostgreSQL's account writes it, too
        self.archive.chmod(0o777)
        self.copies = self.folder / "server" / "copies"
        now = datetime.now(UTC).replace(microsecond=0)
        begins = {name: now - _LONG_AGO if number % 2 else now for number, name in enumerate(self._tables)}
        record_values(self._recordings, begins, cycle, rows)
        before = {name: begin - _BEFORE_THAT for name, begin in begins.items()}
        record_values(self.old, before, 60.0, _OLD_ROWS)
        self._write_facility()

    def _rows_of(self, name: str) -> dict[datetime, list[object]]:
        return recorded(self.old / f"{name}.csv") | super()._rows_of(name)

    def _write_facility(self) -> None:
        text = f'[history]\nonline = "4 weeks"\narchive = "{self.archive}"\n'
        for name in self._tables:
            text += f'[[table]]\nname = "{name}"\nrows = {100 + self._columns_more}\ncycle = {self._cycle}\n'
            text += f'description = "{self._unit}"\n'
            text += f'[[table.column]]\nname = "c_{{n}}"\ncount = {COLUMNS}\ntype = "double"\n'
            text += f'unit = "{self._unit}"\n'
            for number in range(self._columns_more):
                text += f'[[table.column]]\nname = "later_{number}"\ntype = "real"\n'
        unfinished = self._facility.with_suffix(".new")
        unfinished.write_text(text)
        unfinished.rename(self._facility)

    def change_facility(self) -> None:
        """Changes a unit and description; sometimes makes a ring longer and adds a column."""
        self._unit = random.choice(["V", "mV", "A", "mA"])
        if random.random() < 0.3 and self._columns_more < 5:
            self._columns_more += 1
        self._write_facility()

    @property
    def old(self) -> Path:
        """The folder of files of old rows."""
        return self.folder / "old"

    def backfill(self) -> subprocess.CompletedProcess[str]:
        """Imports the files of old rows, or continues an interrupted import."""
        server = conninfo_to_dict(self.dsn)
        return self.command(
            *("load", "--backfill", "--facility", self._facility, "--source", f"csv:{self.old}"),
            *("--url", f"postgresql://writer@127.0.0.1:{server['port']}/{server['dbname']}"),
            password=self._password,
            on_data=False,
        )

    def command(
        self, *words: str | Path, stdin: str = "", on_data: bool = True, password: str = ""
    ) -> subprocess.CompletedProcess[str]:
        command = self.server.command(*words) if on_data else [*RINGLOG, *map(str, words)]
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            env=os.environ | ({"RINGLOG_PASSWORD": password} if password else {}),
        )

    def in_log(self, dsn: str | None = None) -> int:
        """Rows of all logs together."""
        total = 0
        with session.connect(dsn or self.dsn) as connection:
            for name in self._tables:
                found = connection.execute(f"select count(*) from log.{name}".encode()).fetchone()
                total += found[0] if found else 0
        return total

    def rows_of(self, data: Path) -> int:
        """Rows of all logs of another data directory, which is served meanwhile."""
        server = KilledServer(data, None, self.folder / "restored.log")
        try:
            return self.in_log(server.dsn)
        finally:
            server.stop()

    @property
    def tables(self) -> Sequence[str]:
        return self._tables

    @property
    def spool(self) -> Path:
        return self._spool


def _say(text: str) -> None:
    print(text, flush=True)


class _Operator:
    """Chooses and runs commands, and records their outcome."""

    def __init__(self, site: OperatedSite, night: Night) -> None:
        self._site = site
        self._night = night
        self._logins: list[str] = []
        self._names = (f"guest_{number}" for number in range(10_000))

    def act(self, what: str) -> None:
        try:
            done = self._do(what)
        except subprocess.TimeoutExpired as error:
            done = subprocess.CompletedProcess(error.cmd, 124, "", f"no end after {_PATIENCE:.0f} s")
        if done is None:
            return
        self._night.commands[what] += 1
        if "Traceback" in done.stderr:
            self._night.crashed.append(f"{what}: {done.stderr}")
        # status and reload report the state of other parts by a code of 1
        if done.returncode and not (done.returncode == 1 and what in ("status", "reload")):
            self._night.failed[what] += 1
            words = (done.stderr.strip() or done.stdout.strip() or f"code {done.returncode}").splitlines()
            self._night.said.append(f"{what}: {words[-1]}")

    def _do(self, what: str) -> "subprocess.CompletedProcess[str] | None":
        site = self._site
        password = secrets.token_urlsafe(9)
        if (
            what in ("lock a login", "unlock a login", "change a password", "remove a login")
            and not self._logins
        ):
            return None
        match what:
            case "add a login":
                name = next(self._names)
                self._logins.append(name)
                return site.command("user", "add", name, "--writer", "--password-stdin", stdin=password)
            case "lock a login":
                return site.command("user", "lock", random.choice(self._logins))
            case "unlock a login":
                return site.command("user", "unlock", random.choice(self._logins))
            case "change a password":
                name = random.choice(self._logins)
                return site.command("user", "passwd", name, "--password-stdin", stdin=password)
            case "remove a login":
                return site.command("user", "remove", self._logins.pop())
            case "change the facility":
                site.change_facility()
                return site.command("init", "--facility", site.folder / "facility.toml")
            case "reload":
                return site.command("reload", "--spool", site.spool, on_data=False)
            case "back up":
                return site.command("backup", site.copies, "--keep", "2")
            case "archive":
                return site.command("archive", "now")
            case "recall":
                day = datetime.now(UTC) - _LONG_AGO
                table = random.choice(site.tables)
                return site.command(
                    *("recall", table, f"{day - timedelta(days=8):%Y-%m-%d}"),
                    f"{day + timedelta(days=8):%Y-%m-%d}",
                )
            case "backfill":
                return site.backfill()
            case "maintain" | "verify" | "status":
                return site.command(what)
            case "restart":
                site.server.stop()
                return subprocess.CompletedProcess([], 0, "", "")
        raise ValueError(what)


def run(site: OperatedSite, faults: float, commands: float, say: Callable[[str], None] = _say) -> Night:
    """Until the recordings have ended: a fault each `faults` seconds on average, a command after each pause
    of `commands` seconds; then lets the writers finish, recalls the archived weeks, and counts."""
    night = Night()
    figures = night.figures
    begun = time.monotonic()
    site.start_writers()
    operator = _Operator(site, night)
    ended = threading.Event()

    def operate() -> None:
        kinds = list(_COMMANDS.elements())
        while not ended.wait(random.expovariate(1 / commands)):
            operator.act(random.choice(kinds))

    person = threading.Thread(target=operate)
    person.start()
    kinds = list(_FAULTS.elements())
    shown = due = time.monotonic()
    due += random.expovariate(1 / faults)
    try:
        while time.monotonic() - begun < site.length and site.tend():
            if time.monotonic() > due:
                kind = random.choice(kinds)
                figures.faults[kind] += site.harm(kind)
                due = time.monotonic() + random.expovariate(1 / faults)
            if time.monotonic() - shown > 60:
                shown = time.monotonic()
                done = sum(night.commands.values())
                say(f"{shown - begun:.0f} s: {done} commands, {sum(figures.faults.values())} faults")
            time.sleep(0.05)
    finally:
        ended.set()
        while person.is_alive():
            site.tend()
            person.join(0.1)
    site.await_end(_PATIENCE)
    figures.seconds = time.monotonic() - begun
    _count(site, night, say)
    return night


def _count(site: OperatedSite, night: Night, say: Callable[[str], None]) -> None:
    now = datetime.now(UTC)
    days = f"{now - _LONG_AGO - _BEFORE_THAT - timedelta(days=15):%Y-%m-%d}", f"{now:%Y-%m-%d}"
    imported = site.backfill()
    if imported.returncode:
        say(f"backfill: {imported.stdout}{imported.stderr}")
    # late rows of archived weeks are archived first
    for words in (("archive", "now"), *(("recall", table, *days) for table in site.tables)):
        done = site.command(*words)
        if done.returncode:
            say(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    site.compare(night.figures)
    checked = site.command("verify")
    night.verified = checked.returncode == 0
    if not night.verified:
        say(checked.stdout + checked.stderr)
    done = site.command("backup", site.copies)
    if done.returncode:
        say(done.stderr)
    new = site.folder / "server" / "restored"
    restored = subprocess.run(
        [str(word) for word in (*RINGLOG, "restore", site.copies, "--data", new)],
        capture_output=True,
        text=True,
    )
    if restored.returncode:
        say(restored.stderr)
        return
    night.restored = site.rows_of(new)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/long/faults/operators.py", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the recordings are")
    parser.add_argument("--faults", type=float, default=8.0, help="seconds between faults, on average")
    parser.add_argument("--commands", type=float, default=3.0, help="seconds between commands, on average")
    parser.add_argument("--tables", type=int, default=6)
    parser.add_argument("--cycle", type=float, default=0.2, help="seconds from row to row of a table")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory(
        prefix="ringlog-operators-", dir="/tmp", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "server").mkdir()
        rows = round(options.minutes * 60 / options.cycle)
        site = OperatedSite(folder, options.tables, options.cycle, rows, 1024, _say)
        try:
            night = run(site, options.faults, options.commands)
            _say(str(night))
            for line in (*night.said, *night.crashed):
                _say(line)
        finally:
            with suppress(OSError):
                site.stop()
    sys.exit(not night.good)


if __name__ == "__main__":
    main()
