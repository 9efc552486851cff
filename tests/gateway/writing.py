"""Writers without pauses, whose acknowledged rows must be stored whatever happens to the server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import LiteralString

import psycopg
import pymssql
from pymssql import _mssql

from tds_clients import Clients
from waiting import wait_until

# A call on a connection that was lost meanwhile raises the driver's own error, which is not one of PEP 249's.
ERRORS = (pymssql.Error, _mssql.MSSQLException)

Row = tuple[int, datetime, float, int]
"""seq_no, time and two values"""


@dataclass
class Writers:
    """Threads that put rows one after another, each until it is acknowledged."""

    clients: Clients
    procedure: str
    start: datetime
    rows: int
    """size of the ring"""
    acknowledged: list[Row] = field(default_factory=list)
    unanswered: list[Row] = field(default_factory=list)
    """rows that were sent last and not acknowledged"""
    errors: list[str] = field(default_factory=list)
    """messages of the server or the library instead of acknowledgements"""
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, count: int) -> Iterator[None]:
        """`count` writers write while the body runs."""
        threads = [threading.Thread(target=self._write, args=(writer,)) for writer in range(count)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def wait_for_more(self, count: int) -> None:
        """Waits until `count` more rows are acknowledged."""
        enough = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= enough, lambda: self.errors[-5:])

    def _write(self, writer: int) -> None:
        version = ("7.1", "7.4")[writer % 2]
        connection: pymssql.Connection | None = None
        number = 0
        while not self._stop.is_set():
            number += 1
            # the times of two writers differ
            at = self.start + timedelta(hours=writer, milliseconds=10 * number)
            row = (1 + number % self.rows, at, number / 4, writer)
            while not self._stop.is_set():
                try:
                    connection = connection or self.clients.pymssql(
                        self.clients.server.writer, version=version, timeout=100
                    )
                    connection.cursor().callproc(self.procedure, row)
                    self.acknowledged.append(row)
                    break
                except ERRORS as error:
                    self.errors.append(str(error.args))
                    with suppress(*ERRORS):
                        if connection is not None:
                            connection.close()
                    connection = None
                    self._stop.wait(0.05)
            else:
                self.unanswered.append(row)

    def check(self, dsn: str, log: LiteralString, columns: LiteralString) -> None:
        """Asserts that the log has every acknowledged row once, and otherwise only rows that were sent."""
        with psycopg.connect(dsn) as connection:
            found = connection.execute(
                f"select {columns} from {log} where time >= %s and time < %s",
                [self.start, self.start + timedelta(days=1)],
            ).fetchall()
            zone = connection.info.timezone
        stored = [
            (seq_no, time.astimezone(zone).replace(tzinfo=None), *rest) for seq_no, time, *rest in found
        ]
        assert len(stored) == len(set(stored)), "a row is stored twice"
        missing = set(self.acknowledged) - set(stored)
        assert not missing, f"{len(missing)} acknowledged rows are lost"
        unknown = set(stored) - set(self.acknowledged) - set(self.unanswered)
        assert not unknown, f"rows that nobody sent: {sorted(unknown)}, beside {self.errors[-5:]}"
