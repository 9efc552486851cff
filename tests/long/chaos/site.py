"""A server with its facility in a folder, and `ringlog load` with recordings as sources."""

import json
import os
import secrets
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

import psutil
import psycopg
from psycopg import sql

from chaos.figures import Figures
from chaos.recordings import recorded
from killed_server import RINGLOG, KilledServer
from proxy import Proxy
from random_operations import LOOK
from small_disk import small_disk

_GRACE = 3.0
"""seconds after a restart in which connections are made again"""
_STARTED, _DRAINED = 120.0, 600.0
"""seconds until the server and writers work, and until `ringlog load` has ended after its recordings"""
_PATIENCE = 900.0
"""the most seconds of a command"""
BUDGET = 1024
"""MiB of a spool; a smaller one may have to thin rows"""

Columns = Mapping[str, Mapping[str, object]]
"""The keys of each column in the facility file."""


def table_text(name: str, columns: Columns, **keys: object) -> str:
    """A table of a facility file."""
    lines = ["[[table]]", f'name = "{name}"', *(f"{key} = {json.dumps(keys[key])}" for key in keys)]
    for column, of_column in columns.items():
        lines += ["[[table.column]]", f'name = "{column}"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in of_column.items()]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Excuse:
    """A time in which writers may wait: the server restarts, or a table is being repaired."""

    begin: float
    end: float
    table: str | None


@dataclass
class Site(ABC):
    """A server. `options` are further ones of `ringlog serve`."""

    folder: Path
    options: tuple[str, ...] = ()
    figures: Figures = field(default_factory=Figures)
    excuses: list[Excuse] = field(default_factory=list)
    say: Callable[[str], None] = print

    def __post_init__(self) -> None:
        self.begun = time.monotonic()
        (self.folder / "server").mkdir(exist_ok=True)
        self.facility = self.folder / "facility.toml"
        self.write_facility()
        self.data = self.folder / "server" / "data"
        log = self.folder / "serve.log"
        self.server = KilledServer(self.data, self.facility, log, *self.options)

    @abstractmethod
    def text(self) -> str:
        """The facility file."""

    def write_facility(self) -> None:
        unfinished = self.facility.with_suffix(".new")
        unfinished.write_text(self.text())
        unfinished.rename(self.facility)

    def command(
        self,
        *words: str | Path,
        stdin: str = "",
        demanded: bool = True,
        on_data: bool = True,
        password: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """A command of the operator. `demanded`: raises RuntimeError if it fails."""
        line = self.server.command(*words) if on_data else [*RINGLOG, *map(str, words)]
        environment = os.environ | ({"RINGLOG_PASSWORD": password} if password else {})
        done = subprocess.run(
            line, input=stdin, capture_output=True, text=True, timeout=_PATIENCE, env=environment
        )
        if demanded and done.returncode != 0:
            raise RuntimeError(f"{' '.join(line)}: code {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def note(self, operation: str) -> None:
        self.figures.operations[operation] += 1
        self.say(f"{time.monotonic() - self.begun:7.1f} s: {operation}")

    def tend(self) -> None:
        self.server.tend()

    def works(self) -> bool:
        return True

    @contextmanager
    def excused(self, table: str | None = None) -> Iterator[None]:
        """Writers may wait during this block."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.excuses.append(Excuse(begin, time.monotonic() + _GRACE, table))

    def until_it_answers(self) -> None:
        """Waits until the server and PostgreSQL accept calls."""
        end = time.monotonic() + _STARTED
        while time.monotonic() < end:
            if self.server.accepts_calls:
                with suppress(psycopg.Error), psycopg.connect(self.server.dsn, connect_timeout=5):
                    return
            time.sleep(LOOK)
        raise RuntimeError("the server does not come back")

    def restart(self) -> None:
        with self.excused():
            self.server.stop()
            self.server.start()

    def sql(self, query: Any, values: Any = None) -> list[tuple[Any, ...]]:
        """The rows of the administrator's statement, in binary form."""
        options = "-c timezone=UTC"
        with psycopg.connect(self.server.dsn, autocommit=True, options=options) as connection:
            done = connection.execute(query, values, binary=True)
            return done.fetchall() if done.description is not None else []

    def rows(
        self, relation: tuple[str, str], *columns: str, since: datetime | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of a table that have a time; waveforms are tuples."""
        query = sql.SQL('select {} from {} where "time" >= {}').format(
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.Identifier(*relation),
            sql.Literal(since or "-infinity"),
        )
        return [
            tuple(tuple(value) if isinstance(value, list) else value for value in row)
            for row in self.sql(query)
        ]

    def close(self) -> None:
        self.server.stop()


@dataclass
class LoadedSite(Site):
    """A server and `ringlog load`, with connections that can be cut."""

    budget: int = BUDGET
    processes: int | None = None
    """of the writers; None: one a table"""
    length: float = 0.0
    """seconds of the recordings"""
    damaged_spools: Counter[str] = field(default_factory=Counter)
    load: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self.recordings = self.folder / "recordings"
        self.spool = self.folder / "spool"
        super().__post_init__()
        self.password = secrets.token_urlsafe(12)
        self.command("user", "add", "writer", "--writer", "--password-stdin", stdin=self.password)
        self.proxy = Proxy(self.server.port)

    @property
    @abstractmethod
    def loaded(self) -> Mapping[str, tuple[str, ...]]:
        """The tables of the recordings, and their columns."""

    def record_of(self, table: str) -> list[tuple[object, ...]]:
        """The rows that the log of a table must have: time and values."""
        (file,) = self.recordings.glob(f"{table}.*")
        return recorded(file)

    # --- the writers ---

    def start_load(self) -> None:
        form = next(self.recordings.iterdir()).suffix.removeprefix(".")
        command = [*RINGLOG, "load", "--facility", self.facility, "--spool", self.spool]
        command += ["--source", f"{form}:{self.recordings}", "--tables", ",".join(self.loaded)]
        command += ["--spool-budget", self.budget, "--url", f"tds://writer@127.0.0.1:{self.proxy.port}"]
        if self.processes is not None:
            command += ["--processes", self.processes]
        with (self.folder / "load.log").open("ab") as log:
            environment = os.environ | {"RINGLOG_PASSWORD": self.password}
            self.load = subprocess.Popen([*map(str, command)], stdout=log, stderr=log, env=environment)

    def tend(self) -> None:
        super().tend()
        if self.load is not None and self.load.poll():
            self.start_load()

    def works(self) -> bool:
        return self.load is not None and self.load.poll() != 0

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

    def await_rows(self) -> None:
        """Waits until every writer stores rows: a recording whose writer has just begun waits for the server,
        unlike a machine."""

        def stored() -> list[int]:
            return [len(self.rows(("log", name), "time")) for name in self.loaded]

        before, end = stored(), time.monotonic() + _STARTED
        while self.works() and any(now == then for now, then in zip(stored(), before, strict=True)):
            if time.monotonic() > end:
                raise RuntimeError(f"writers store nothing: {self._said_by_load()}")
            self.tend()
            time.sleep(2 * LOOK)

    def await_end(self) -> None:
        """Waits until the writers have stored their recordings."""
        end = time.monotonic() + self.length + _DRAINED
        while self.load is not None and self.load.poll() != 0:
            if time.monotonic() > end:
                raise RuntimeError(f"the writers do not end: {self._said_by_load()}")
            self.tend()
            time.sleep(2 * LOOK)

    def _said_by_load(self) -> str:
        return (self.folder / "load.log").read_text()[-2000:]

    def cut_off(self, seconds: float) -> None:
        """Keeps the writers from the server for this many seconds."""
        self.proxy.closed = True
        self.proxy.cut()
        time.sleep(seconds)
        self.proxy.closed = False

    def compare(self) -> None:
        """Compares the log with the recordings. Rows lost with a full or damaged spool are in the ledger, and
        no others may be missing."""
        for name, columns in self.loaded.items():
            query = "select coalesce(sum(repeated), 0)::int, coalesce(sum(late), 0)::int,"
            query += " coalesce(sum(thinned), 0)::int from ringlog.ledger where table_name = %s"
            ((repeated, late, thinned),) = self.sql(query, [name])
            self.figures.notes += Counter({"calls repeated": repeated, "rows late": late})
            explained = range(thinned + 1) if self.damaged_spools[name] else (thinned,)
            self.figures.count(
                f"log.{name}",
                self.record_of(name),
                self.rows(("log", name), "time", *columns),
                explained if self.damaged_spools[name] or self.budget < BUDGET else (),
            )

    def close(self) -> None:
        if self.load is not None and self.load.poll() is None:
            self.kill_load()
        super().close()


SiteT = TypeVar("SiteT", bound=Site)


@contextmanager
def serving(make: Callable[[Path], SiteT], **disks: str) -> Iterator[SiteT]:
    """A site in a temporary folder that every account can enter; it is kept if something is wrong. `disks`:
    sizes (600m) of file systems in memory for its folders of these names, whose mounting requires root."""
    folder = Path(mkdtemp(prefix="ringlog-chaos-", dir="/tmp"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        for name, size in disks.items():
            if size:
                stack.enter_context(small_disk(folder / name, size))
        site = make(folder)
        stack.callback(site.close)
        try:
            yield site
        except BaseException:
            log = (folder / "serve.log").read_text(errors="replace")
            site.say(f"{site.figures}\n{log[-4000:]}\nkept: {folder}")
            raise
    if site.figures.good:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        site.say(f"kept: {folder}")
