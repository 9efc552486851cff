"""A process of readers: each reads a log repeatedly until standard input ends.

`ringlog_lab.bench.mixed` starts it with its options as JSON on its command line and the password as the
first line of standard input. It prints `ready` once every reader has had a result, and answers each further
line by the amount read since the line before.
"""

import json
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

from ringlog.schema import session
from ringlog_lab.bench.asking import answer_lines

ROWS = 20_000
"""of a query of wide rows or of one signal"""
_FETCHED = 500  # rows taken at once


@dataclass(frozen=True)
class Options:
    """The queries of a process, one per reader, and its server. `path` is tds or psycopg."""

    path: str
    host: str
    port: int
    database: str
    user: str
    queries: Sequence[str]


@dataclass
class Received:
    """The amount read by a process since `ready`. Times in seconds."""

    rows: int = 0
    results: int = 0
    longest: float = 0.0
    """the longest that any reader waited for rows"""


@dataclass
class _Readers:
    options: Options
    password: str
    found: Received = field(default_factory=Received)
    since: dict[int, float] = field(default_factory=dict)
    """when each reader has had its latest rows"""
    failure: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        ready = threading.Barrier(len(self.options.queries) + 1)
        threads = [
            threading.Thread(target=self._read, args=(query, ready), daemon=True)
            for query in self.options.queries
        ]
        for thread in threads:
            thread.start()
        answer_lines(ready, self.failure, self._newly_found)

    def _newly_found(self) -> str:
        with self._lock:
            found, self.found = self.found, Received()
            # a reader that waits at this moment has waited at least until now
            waits = [time.monotonic() - since for since in self.since.values()]
        found.longest = max(found.longest, *waits)
        return json.dumps(asdict(found))

    def _read(self, query: str, ready: threading.Barrier) -> None:
        try:
            with closing(self._connect()) as connection:
                self._loop(connection.cursor(), query, ready)
        except Exception as error:
            self.failure.append(f"{type(error).__name__}: {error}")
            ready.abort()

    def _connect(self) -> Any:
        options = self.options
        if options.path == "tds":
            import pymssql

            return pymssql.connect(
                server=options.host,
                port=str(options.port),
                user=options.user,
                password=self.password,
                tds_version="7.4",
                autocommit=True,
            )
        return session.connect(
            host=options.host,
            port=options.port,
            dbname=options.database,
            user=options.user,
            password=self.password,
            autocommit=True,
        )

    def _loop(self, cursor: Any, query: str, ready: threading.Barrier) -> None:
        self._one(cursor, query)
        ready.wait(120)
        while True:
            self._one(cursor, query)

    def _one(self, cursor: Any, query: str) -> None:
        """One query and its rows."""
        reader = threading.get_ident()
        self.since[reader] = time.monotonic()
        cursor.execute(query)
        while rows := cursor.fetchmany(_FETCHED):
            now = time.monotonic()
            with self._lock:
                self.found.rows += len(rows)
                self.found.longest = max(self.found.longest, now - self.since[reader])
                self.since[reader] = now
        with self._lock:
            self.found.results += 1


def queries(path: str, table: str, column: str, kinds: Sequence[str]) -> list[str]:
    """The queries of some kinds (wide, signal, aggregate) for the log of a table."""
    name = f"log..{table}" if path == "tds" else f"log.{table}"
    top, limit = (f"top {ROWS} ", "") if path == "tds" else ("", f" limit {ROWS}")
    of_kind: dict[str, str] = {
        "wide": f"select {top}* from {name}{limit}",
        "signal": f"select {top}time, {column} from {name}{limit}",
        "aggregate": f"select count(*), min({column}), max({column}), avg({column}) from {name}",
    }
    return [of_kind[kind] for kind in kinds]


def main() -> None:
    options = Options(**json.loads(sys.argv[1]))
    _Readers(options, sys.stdin.readline().rstrip("\n")).run()


if __name__ == "__main__":
    main()
