"""Writers over TDS, a thread each: it sends a row until it is acknowledged, and then the next one."""

import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pymssql
from pymssql import _mssql

from chaos.ledger import Ledger, Row, microseconds
from chaos.recordings import any_double, any_int
from servers import Login
from tds_clients import Answer, CtClient, Param

ERRORS = (pymssql.Error, _mssql.MSSQLException)
_PAUSE = 0.05
"""seconds between attempts"""
_NINE_WEEKS = timedelta(weeks=9)


class Failed(Exception):
    """An answer that is not an acknowledgement; `words` are the reason."""

    def __init__(self, words: str, connected: bool) -> None:
        super().__init__(words)
        self.connected = connected


class Writer(threading.Thread, ABC):
    """Writes the ring of a table repeatedly."""

    def __init__(self, login: Login, table: str, rows: int, cycle: float, ledger: Ledger, seed: int) -> None:
        super().__init__(name=table, daemon=True)
        self._login = login
        self.table = table
        self.ledger = ledger
        self.answers: Counter[str] = Counter()
        """the answers instead of an acknowledgement, and their number"""
        self.ended = threading.Event()
        self.old: list[Row] = []
        """acknowledged before the faults began"""
        self._rows = rows
        self._cycle = cycle
        self._draw = random.Random(seed)
        self._place = 0
        self._last = 0

    def run(self) -> None:
        while not self.ended.is_set():
            self.send(self.next_row(datetime.now(UTC)))
            self.ended.wait(self._cycle)
        self.leave()

    def next_row(self, moment: datetime) -> Row:
        """A row of random values, with a time of the writer's own clock, which always advances."""
        self._place = self._place % self._rows + 1
        self._last = max(self._last + 1, microseconds(moment))
        return Row(self._place, self._last, any_double(self._draw), any_int(self._draw))

    def send(self, row: Row) -> None:
        """Sends a row until it is acknowledged."""
        begun = time.monotonic()
        answers: list[tuple[float, str]] = []
        while True:
            try:
                self.put(row)
            except Failed as failed:
                self.answers[str(failed)] += 1
                answers.append((time.monotonic(), str(failed)))
                if not failed.connected:
                    self.leave()
                time.sleep(_PAUSE)
            else:
                self.ledger.acknowledge(row, begun, answers)
                return

    @abstractmethod
    def put(self, row: Row) -> None:
        """Raises Failed."""

    @abstractmethod
    def leave(self) -> None:
        """Ends the connection."""


class Seven(Writer):
    """A writer by TDS 7.4, with DB-Library."""

    def __init__(self, address: tuple[str, int], *common: Any) -> None:
        super().__init__(*common)
        self._address = address
        self._connection: pymssql.Connection | None = None

    def put(self, row: Row) -> None:
        try:
            if self._connection is None:
                host, port = self._address
                self._connection = pymssql.connect(
                    server=host,
                    port=str(port),
                    user=self._login.user,
                    password=self._login.password,
                    tds_version="7.4",
                    autocommit=True,
                    login_timeout=20,
                    timeout=60,
                )
            with self._connection.cursor() as cursor:
                moment = f"{row.moment:%Y-%m-%d %H:%M:%S.%f}"
                cursor.callproc(f"put_{self.table}", (row.seq_no, moment, row.level, row.number))
                while cursor.nextset():
                    pass
        except ERRORS as error:
            number = error.args[0][0] if isinstance(error.args[0], tuple) else error.args[0]
            connected = self._connection is not None and self._connection._conn.connected
            raise Failed(f"{number} {error.args[-1]!r:.300}", connected) from None

    def leave(self) -> None:
        if self._connection is not None:
            with suppress(*ERRORS):
                self._connection.close()
            self._connection = None


class Retained(Seven):
    """Its rows have random times of the last nine weeks."""

    def next_row(self, moment: datetime) -> Row:
        self._place = self._place % self._rows + 1
        before = self._draw.random() * _NINE_WEEKS
        return Row(self._place, microseconds(moment - before), any_double(self._draw), any_int(self._draw))


class Five(Writer):
    """A writer by TDS 5.0, with ct-library."""

    def __init__(self, program: Path, configuration: Path, *common: Any) -> None:
        super().__init__(*common)
        self._program, self._configuration = program, configuration
        self._client: CtClient | None = None

    def put(self, row: Row) -> None:
        try:
            if self._client is None:
                self._client = CtClient(self._program, self._configuration, "5.0", self._login)
                if self._client.login.end != "login":
                    raise Failed(f"login: {_words(self._client.login)}", False)
            answer = self._client.call(
                f"put_{self.table}",
                [
                    Param("int", str(row.seq_no), "@seq_no"),
                    Param("char", f"{row.moment:%Y-%m-%d %H:%M:%S.%f}", "@time"),
                    Param("float", repr(row.level), "@level"),
                    Param("int", str(row.number), "@number"),
                ],
            )
        except (OSError, AssertionError) as error:
            raise Failed(f"ct_client: {type(error).__name__}", False) from None
        if answer.statuses != [0] or answer.errors:
            raise Failed(_words(answer), not answer.failed)

    def leave(self) -> None:
        if self._client is not None:
            with suppress(OSError):
                self._client.close()
            self._client = None


def _words(answer: Answer) -> str:
    errors = [f"{message.number} {message.text:.300}" for message in answer.errors]
    return "; ".join([*errors, *map(str, answer.client_messages)]) or "no answer"
