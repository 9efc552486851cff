"""A process whose connections send texts that all differ, at a rate.

`sending` starts it with its options as JSON on its command line and the password as the first line of
standard input. It prints `ready` once every connection has had an answer, and for each further line of input
the number of texts answered since the line before.
"""

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field

from ringlog.loadtest.experiment.server import READER, Server
from ringlog_lab.bench.asking import answer_lines, asking


@dataclass(frozen=True)
class Options:
    """The server of the texts, the table that they read, and the texts per second of each connection."""

    host: str
    port: int
    user: str
    table: str
    columns: Sequence[str]
    connections: int
    rate: float


@dataclass
class _Senders:
    options: Options
    password: str
    sent: int = 0
    failure: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        ready = threading.Barrier(self.options.connections + 1)
        for number in range(self.options.connections):
            threading.Thread(target=self._send, args=(number, ready), daemon=True).start()
        answer_lines(ready, self.failure, self._newly_sent)

    def _newly_sent(self) -> str:
        with self._lock:
            sent, self.sent = self.sent, 0
        return str(sent)

    def _send(self, number: int, ready: threading.Barrier) -> None:
        import pymssql

        options = self.options
        try:
            connection = pymssql.connect(
                server=options.host,
                port=str(options.port),
                user=options.user,
                password=self.password,
                tds_version="7.4",
                autocommit=True,
            )
            with closing(connection):
                cursor = connection.cursor()
                texts = different(options.table, options.columns, number)
                cursor.execute(next(texts))
                cursor.fetchall()
                ready.wait(120)
                pause = 1 / options.rate
                due = time.monotonic() + pause * number / options.connections
                for text in texts:
                    time.sleep(max(0.0, due - time.monotonic()))
                    due += pause
                    cursor.execute(text)
                    cursor.fetchall()
                    with self._lock:
                        self.sent += 1
        except Exception as error:
            self.failure.append(f"{type(error).__name__}: {error}")
            ready.abort()


def different(table: str, columns: Sequence[str], number: int) -> Iterator[str]:
    """Texts that were not sent before: they differ in their names, not only in their literals."""
    some = ", ".join(columns[:10])
    for count in itertools.count():
        key = 1 + count % 100
        yield f"select seq_no as a{number}_{count}, {some} from online..{table} where seq_no = {key}"


@contextmanager
def sending(
    server: Server, table: str, columns: Sequence[str], connections: int, rate: float
) -> Iterator[Callable[[], int]]:
    """So many connections that send `rate` different texts a second together. Yields a function that returns
    how many were answered since its last call."""
    options = Options(server.host, server.port, READER, table, [*columns], connections, rate / connections)
    command = [sys.executable, "-m", "ringlog_lab.bench.texts", json.dumps(asdict(options))]
    with asking(command, server.password, "those who send texts") as answer:
        yield lambda: int(answer("sent"))


def main() -> None:
    options = Options(**json.loads(sys.argv[1]))
    _Senders(options, sys.stdin.readline().rstrip("\n")).run()


if __name__ == "__main__":
    main()
