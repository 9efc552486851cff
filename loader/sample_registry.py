"""The signals of a table of samples, as its writer reads them from the server and reports them to it."""

import json
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from ringlog.clients import Address, Refused
from ringlog.clients.figures import Counts
from ringlog.clients.reconnecting import Failed, Interrupted, ReconnectingConnection, Released
from ringlog.clients.writer import spool_file
from ringlog.loader.sources import Wanted

# Seconds between two reads of the registry.
_LOOK = 2.0
# States in one report.
_REPORTED = 1000


class Registry:
    """Reads a table's signals from the server and reports their states to it, in a thread of its own.

    A file beside the spool has the latest list, for a start without the server.
    """

    def __init__(self, table: str, address: Address, password: str, spools: Path) -> None:
        self._table = table
        self._file = spool_file(spools, address, table).with_suffix(".signals")
        self._stop = threading.Event()
        self._connection = ReconnectingConnection(address, password, Counts(), self._sleep)
        self._version: int | None = None
        self._lists: deque[list[Wanted]] = deque(maxlen=1)
        self._states: deque[list[dict[str, Any]]] = deque()
        self.latest: dict[int, int] = {}
        """time of the latest sample of each signal, in nanoseconds since 1970, as of the start"""
        self.failed = False
        """whether states were lost"""
        self.answered = threading.Event()
        """set when the server has answered or could not be reached"""
        self._thread = threading.Thread(target=self._run, name=f"registry {table}", daemon=True)
        self._thread.start()

    def known(self) -> list[Wanted]:
        """The list of the file; empty if there is none."""
        with suppress(OSError, ValueError, TypeError):
            return [Wanted(*each) for each in json.loads(self._file.read_text())]
        return []

    def changed(self) -> list[Wanted] | None:
        """The latest list of the server, if it has changed since the last call."""
        return self._lists.pop() if self._lists else None

    def report(self, states: list[dict[str, Any]]) -> None:
        """Reports states of signals to the server."""
        if states:
            self._states.append(states)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(_LOOK)

    def _sleep(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Released

    def _run(self) -> None:
        with suppress(Released):
            while True:
                try:
                    self._look()
                except (Interrupted, Refused, Failed):
                    # the writer itself reports the reason
                    self.failed = True
                    self._states.clear()
                self.answered.set()
                self._sleep(_LOOK)
        self._connection.close()

    def _look(self) -> None:
        rows = self._connection.attempt("written_signals", self._table, self._version).rows
        if rows:
            self._version = int(rows[0][0])
            wanted = [Wanted(row[1], row[2], row[3], row[5]) for row in rows if row[1] is not None]
            self.latest = self.latest or {row[1]: row[4] for row in rows if row[4] is not None}
            self._lists.append(wanted)
            with suppress(OSError):
                self._file.write_text(json.dumps(wanted))
        while self._states:
            states = self._states[0]
            for first in range(0, len(states), _REPORTED):
                text = json.dumps(states[first : first + _REPORTED])
                self._connection.attempt("report_signals", self._table, text)
            self._states.popleft()
