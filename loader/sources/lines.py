"""Lines on a TCP socket, as simple data loggers send them: `name value time`.

The name is a column's signal or name; a value `-` is no reading; the time is in seconds since 1970 or in ISO
8601 with an offset, by default the present. An invalid line is answered with the reason, recorded as an
event, and ignored; a valid line is not answered.
"""

import socketserver
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import ClassVar
from zoneinfo import ZoneInfo

from ringlog.loader.sampling import Cells
from ringlog.loader.schedule import SECOND, now
from ringlog.loader.sources import Note, Reading, Row, SourceError, Wait
from ringlog.loader.sources.csv_replay import cell_reader
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table
from ringlog.schema.moments import microseconds

# Bytes of a line, at most.
_LONGEST = 4096
# A datetime without an offset.
_UTC = ZoneInfo("UTC")


@dataclass(frozen=True)
class Lines:
    """Listens on `host` and `port`, for one table."""

    host: str
    port: int
    recorded: ClassVar[bool] = False

    @property
    def unhindered(self) -> bool:
        return False

    def rows(
        self, table: Table, after: datetime | None, wait: Wait, statistics: Statistics, note: Note
    ) -> Iterator[Sequence[Row]]:
        """Rows as the table's sampling policy makes them."""
        cells = Cells(table, statistics)
        reader = LineReader(table)

        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while line := self.rfile.readline(_LONGEST):
                    try:
                        index, reading, stamp = reader.read(line)
                    except ValueError as error:
                        note("unread", now(), str(error), None, None)
                        self.wfile.write(f"{error}\n".encode())
                    else:
                        signal = table.columns[index].signal
                        cells.set([(index, reading)], cells.plausible(stamp, signal, note))

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        try:
            server = Server((self.host, self.port), Connection)
        except OSError as error:
            raise SourceError(f"cannot listen on {self.host}:{self.port}: {error.strerror}") from None
        threading.Thread(target=server.serve_forever, name="lines", daemon=True).start()
        try:
            yield from cells.rows(wait)
        finally:
            server.shutdown()
            server.server_close()


class LineReader:
    """Reads lines for a table's columns."""

    def __init__(self, table: Table) -> None:
        self._table = table.name
        self._cells = [cell_reader(column, _UTC) for column in table.columns]
        self._indexes = {column.name: index for index, column in enumerate(table.columns)}
        self._indexes |= {column.signal: index for index, column in enumerate(table.columns)}

    def read(self, line: bytes) -> tuple[int, Reading, int]:
        """The column's index, its reading, and the time in microseconds since 1970. Raises ValueError."""
        try:
            words = line.decode().split()
        except UnicodeDecodeError:
            raise ValueError("the line is not UTF-8 text") from None
        if not line.endswith(b"\n") or len(words) not in (2, 3):
            raise ValueError("a line must have the form: name value time")
        name, value = words[:2]
        index = self._indexes.get(name)
        if index is None:
            raise ValueError(f"table {self._table} has no column or signal '{name}'")
        try:
            reading = None if value == "-" else self._cells[index](value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return index, reading, _stamp(words[2]) if len(words) == 3 else now()


def _stamp(text: str) -> int:
    try:
        seconds = Decimal(text)
    except InvalidOperation:
        pass
    else:
        if not seconds.is_finite() or not 0 <= seconds < 2**40:
            raise ValueError(f"time {text} is out of range")
        return round(seconds * SECOND)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text}' is neither seconds since 1970 nor an ISO 8601 time") from None
    if moment.tzinfo is None:
        raise ValueError(f"time {text} has no offset")
    return microseconds(moment)
