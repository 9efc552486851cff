"""A plant on a real `ringlog serve`, with the model of its rows."""

import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import psycopg
import pymssql
from prepared_python import RINGLOG, Command

from plant.model import Table, Values, facility, monday, tables
from plant.sample_model import FACILITY, WAVES
from servers import Login, RunningServer, free_port, ringlog, serving
from waiting import wait_until

Step = tuple[str, int]
"""an operation and the seed of its random choices"""


class Different(AssertionError):
    """A read differs from the model."""


@dataclass
class Site:
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

    def _write_facility(self) -> None:
        rows = facility(self.model, str(self.archive), self.renamed, self.zone.key)
        self.file.write_text(rows + FACILITY + WAVES)

    def _serve(self) -> None:
        self._write_facility()
        options = ("--http", f"127.0.0.1:{self.http}", "--http-role", "reader")
        self._up = ExitStack()
        self.server = self._up.enter_context(serving(self.data, *options, facility=self.file))

    @contextmanager
    def alive(self) -> Iterator[None]:
        try:
            yield
        finally:
            for command in self.running:
                command.kill()
                command.wait()
            self._up.close()

    def _command(self, *words: str | Path) -> None:
        """Runs a command of the operator's."""
        done = ringlog(*words, "--data", self.server.data)
        if done.returncode != 0:
            raise Different(
                f"ringlog {' '.join(map(str, words))}: code {done.returncode}: {done.stdout}{done.stderr}"
            )

    def _begin(self, *words: str) -> None:
        """Starts a command that runs during writing; two of them do not overlap."""
        self._settle()
        self.running.append(
            Command(
                [str(RINGLOG), *words, "--data", str(self.server.data)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )

    def _settle(self) -> None:
        """Waits for the started commands."""
        for command in self.running:
            output, _ = command.communicate()
            if command.returncode != 0:
                raise Different(f"{' '.join(command.args[1:])}: code {command.returncode}: {output}")  # type: ignore[index]
        self.running.clear()

    def _install(self, *, by_hand: bool = False) -> None:
        """Installs the facility. `by_hand`: first runs the SQL of its refusal."""
        self._settle()
        self._write_facility()
        if by_hand:
            refused = ringlog("init", "--facility", self.file, "--data", self.server.data)
            if refused.returncode == 0:
                return
            self.server.sql(refused.stderr.partition("run:\n")[2])  # type: ignore[arg-type]
        self._command("init", "--facility", self.file)

    def _archived(self, table: Table) -> list[tuple[datetime, datetime, str]]:
        return self._weeks(table.name)

    def _weeks(self, table: str, *, recalled: bool = False) -> list[tuple[datetime, datetime, str]]:
        """The weeks of a table in the archive: begin, end and file. `recalled`: includes recalled ones."""
        return self.server.sql(
            "select begins, ends, file from ringlog.cold_week where table_name = %s and rows > 0"
            " and (recalled_until is null or %s) order by begins",
            [table, recalled],
        )

    def _is_there(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.server.dsn):
            return True
        return False

    def _table(self, draw: random.Random) -> Table:
        return draw.choice([*self.model.values()])

    def _from(self, table: Table) -> datetime:
        """The time from which rows are certainly kept."""
        return max(self.start, table.kept_from or self.start)

    def _connected(self, section: str, login: Login | None = None) -> pymssql.Connection | None:
        login = login or self.server.writer
        with suppress(pymssql.OperationalError):
            return self.server.connect(login.user, login.password, database="online", tds_version=section)
        return None

    def _get(self, path: str, **parameters: Any) -> httpx.Response:
        refused: object = None

        def answer() -> httpx.Response | None:
            nonlocal refused
            try:
                got = httpx.get(
                    f"http://127.0.0.1:{self.http}{path}", params=parameters, timeout=60, trust_env=False
                )
            except httpx.TransportError as error:
                # the HTTP process begins a moment after the gateway
                refused = error
                return None
            if got.status_code == 503:
                refused = got.text
                return None
            return got

        got = wait_until(answer, lambda: (path, parameters, refused))
        if got.status_code != 200:
            raise Different(f"{path} {parameters}: {got.status_code} {got.text[:300]}")
        return got
