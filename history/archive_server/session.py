"""A connection of postgres_fdw: its transaction and its cursors.

postgres_fdw sends SET when it connects, START TRANSACTION, DECLARE … CURSOR with the extended protocol,
FETCH, CLOSE, COMMIT or ABORT, and savepoints. The archive server changes nothing, so it only tracks the state
of transactions.
"""

import re
import struct
import threading
from collections.abc import Callable

from ringlog.history.archive_server.engine import Answer, Engine, Failed
from ringlog.history.archive_server.wire import PROTOCOL, Closed, Password, Startup, Wire, Wrong, texts

USER = "ringlog"

_DECLARE = re.compile(r"DECLARE (\w+) CURSOR FOR\s+(.*)", re.S)
_FETCH = re.compile(r"FETCH (\d+) FROM (\w+)")
_CLOSE = re.compile(r"CLOSE (\w+)")
_REWIND = re.compile(r"MOVE BACKWARD ALL IN (\w+)")
_NOTHING = re.compile(r"(SET|RESET|SAVEPOINT|RELEASE SAVEPOINT|DEALLOCATE ALL|DISCARD ALL)\b.*", re.S)
_BEGIN = re.compile(r"(START TRANSACTION|BEGIN)\b.*", re.S)
_END = re.compile(r"(COMMIT|ABORT|ROLLBACK)( TRANSACTION)?")
_SIZE = re.compile(r"SELECT pg_catalog\.pg_relation_size\(.*", re.S)
_BACK = re.compile(r"ROLLBACK TO SAVEPOINT \w+")

_SETTINGS = {
    "server_version": "16.0",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "TimeZone": "GMT",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
}


class Session:
    """Serves one connection on the thread that runs it."""

    def __init__(self, wire: Wire, engine: Engine, key: tuple[int, int]) -> None:
        self._wire = wire
        self._engine = engine
        self._key = key
        self._cursors: dict[str, Answer] = {}
        self._running: Answer | None = None
        self._fetched: Answer | None = None
        """the answer of the last FETCH"""
        self._lock = threading.Lock()
        self._state = b"I"
        self._statement = ""
        self._parameters: list[str | None] = []
        self._skips = False
        """whether messages are skipped until Sync, after an error"""

    def serve(self, startup: Startup, password: Password) -> None:
        """Answers until the client ends the connection."""
        message = [*texts(startup.content)]
        named = dict(zip(message[::2], message[1::2], strict=False))
        if startup.code >> 16 != PROTOCOL >> 16:
            self._refuse("0A000", "the archive server speaks version 3 of PostgreSQL's protocol")
            return
        try:
            password.demand(self._wire)
            if named.get("user") != USER:
                raise Wrong
        except Wrong:
            self._refuse("28P01", "the archive server answers its own database only")
            return
        self._wire.put(b"R", struct.pack("!I", 0))
        for setting in _SETTINGS.items():
            self._wire.put(b"S", *(f"{text}\0".encode() for text in setting))
        self._wire.put(b"K", struct.pack("!II", *self._key))
        self._ready()
        try:
            self._answer_all()
        finally:
            self._close_all()

    def cancel(self, *, starved: bool = False) -> None:
        """For another thread: cancels the query."""
        with self._lock:
            if self._running is not None:
                self._running.cancel(starved=starved)

    def _refuse(self, state: str, message: str) -> None:
        self._wire.put_error(state, message, "FATAL")
        self._wire.flush()

    def _ready(self) -> None:
        self._wire.put(b"Z", self._state)
        self._wire.flush()

    def _answer_all(self) -> None:
        while True:
            kind, content = self._wire.read()
            if kind == b"X":
                return
            if kind == b"Q":
                self._fetched = None
                self._tried(lambda: self._simple(content[:-1].decode()))  # noqa: B023
                self._ready()
                if self._fetched is not None:
                    self._fetched.prepare()
            elif kind == b"S":
                self._skips = False
                self._ready()
            elif kind == b"H":
                self._wire.flush()
            elif not self._skips:
                self._skips = not self._tried(lambda: self._extended(kind, content))  # noqa: B023

    def _tried(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except Failed as error:
            if self._state == b"T":
                self._state = b"E"
            self._wire.put_error(error.state, str(error))
            return False
        return True

    def _simple(self, text: str) -> None:
        for statement in filter(None, (each.strip() for each in text.split(";"))):
            self._run(statement, [])

    def _extended(self, kind: bytes, content: bytes) -> None:
        match kind:
            case b"P":
                _, self._statement, *_ = texts(content[: content.index(b"\0", content.index(b"\0") + 1)])
                self._wire.put(b"1")
            case b"B":
                self._parameters = _parameters(content)
                self._wire.put(b"2")
            case b"D":
                self._wire.put(b"n")
            case b"E":
                self._run(self._statement, self._parameters)
            case b"C":
                self._wire.put(b"3")
            case _:
                raise Closed(f"the archive server does not know the message {kind!r}")

    def _run(self, text: str, parameters: list[str | None]) -> None:
        if _END.fullmatch(text) or _BACK.fullmatch(text):
            if _END.fullmatch(text):
                self._close_all()
            self._state = b"T" if _BACK.fullmatch(text) else b"I"
            self._complete(text.split()[0])
            return
        if self._state == b"E":
            raise Failed("25P02", "the transaction has failed: commands are ignored until its end")
        if found := _FETCH.fullmatch(text):
            self._fetch(int(found[1]), self._cursor(found[2]))
        elif found := _DECLARE.fullmatch(text):
            if found[1] in self._cursors:
                raise Failed("42P03", f"cursor {found[1]} is there already")
            self._cursors[found[1]] = self._engine.query(found[2], parameters)
            self._complete("DECLARE CURSOR")
        elif found := _CLOSE.fullmatch(text):
            self._cursor(found[1]).close()
            del self._cursors[found[1]]
            self._complete("CLOSE CURSOR")
        elif found := _REWIND.fullmatch(text):
            self._cursor(found[1]).rewind()
            self._complete("MOVE 0")
        elif _SIZE.fullmatch(text):
            # ANALYZE of a database takes no sample of a table without pages
            self._wire.put_columns(["pages"])
            self._wire.put(b"D", struct.pack("!hi", 1, 1), b"0")
            self._complete("SELECT 1")
        elif _BEGIN.fullmatch(text):
            self._state = b"T"
            self._complete("START TRANSACTION")
        elif found := _NOTHING.fullmatch(text):
            self._complete(found[1])
        else:
            raise Failed("0A000", "the archive server only reads, for PostgreSQL's postgres_fdw")

    def _cursor(self, name: str) -> Answer:
        try:
            return self._cursors[name]
        except KeyError:
            raise Failed("34000", f"there is no cursor {name}") from None

    def _fetch(self, count: int, answer: Answer) -> None:
        with self._lock:
            self._running = answer
        try:
            messages, rows = answer.take(count)
        finally:
            with self._lock:
                self._running = None
        self._wire.put_columns(answer.columns)
        for each in messages:
            self._wire.put_rows(each)
        self._complete(f"FETCH {rows}")
        self._fetched = answer

    def _complete(self, tag: str) -> None:
        self._wire.put(b"C", f"{tag}\0".encode())

    def _close_all(self) -> None:
        while self._cursors:
            self._cursors.popitem()[1].close()


def _parameters(content: bytes) -> list[str | None]:
    """The values of a message Bind, which must be text."""
    at = content.index(b"\0", content.index(b"\0") + 1) + 1
    (formats,) = struct.unpack_from("!H", content, at)
    kinds = struct.unpack_from(f"!{formats}H", content, at + 2)
    if any(kinds):
        raise Failed("0A000", "the archive server takes parameters as text")
    at += 2 + 2 * formats
    (count,) = struct.unpack_from("!H", content, at)
    at += 2
    values: list[str | None] = []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", content, at)
        at += 4
        values.append(None if length < 0 else content[at : at + length].decode())
        at += max(length, 0)
    return values
