"""The clients' side of the conversation that tests/clients/compat/conversation.py describes."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

TYPES: dict[str, type[Any]] = {
    "bit": bool,
    "smallint": int,
    "int": int,
    "bigint": int,
    "real": float,
    "float": float,
    "char": str,
    "datetime": datetime,
    "date": date,
    "numeric": Decimal,
    "binary": bytes,
    "text": str,
}


class Param(NamedTuple):
    type: str
    """one of TYPES"""
    name: str
    out: bool
    value: Any


def report(kind: str, value: Any) -> None:
    """One line of an answer."""
    print(json.dumps({kind: value}, default=_text), flush=True)


def report_rows(cursor: Any) -> None:
    """All result sets of a DB-API cursor."""
    while True:
        if cursor.description is not None:
            report("row_columns", [column[0] for column in cursor.description])
            for row in cursor.fetchall():
                report("row", list(row))
        if not cursor.nextset():
            return


class DbApi:
    """The common part of clients of the DB-API."""

    connection: Any

    def language(self, text: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            report_rows(cursor)

    def execute(self, text: str, params: list[Param]) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text.replace("?", "%s"), tuple(param.value for param in params))
            report_rows(cursor)

    def begin(self) -> None:
        self.connection.autocommit = False

    def commit(self) -> None:
        self.connection.commit()
        self.connection.autocommit = True

    def rollback(self) -> None:
        self.connection.rollback()
        self.connection.autocommit = True


def converse(
    database: type[Any],
    failures: type[Exception] | tuple[type[Exception], ...],
    number: Callable[[Any], int | None],
    text: Callable[[Any], str] = str,
) -> None:
    """Runs the requests of standard input with `database(host, port, user, password, *more)`.

    `number` and `text` are those of an exception of the types `failures`.
    """

    @contextmanager
    def answering() -> Iterator[None]:
        try:
            yield
        except failures as error:
            name = f"{type(error).__module__}.{type(error).__qualname__}"
            report("error", [name, number(error), text(error)])
        report("end", "results")

    host, port, user, *more = sys.argv[1:]
    connected = None
    with answering():
        connected = database(host, int(port), user, sys.stdin.readline().rstrip("\n"), *more)
    if connected is None:
        return
    for line in sys.stdin:
        request, *fields = map(_unescaped, line.rstrip("\n").split("\t"))
        with answering():
            match request, fields:
                case "rpc" | "execute", [words]:
                    getattr(connected, request)(words, _params())
                case "cancel" | "timeout", [seconds, words]:
                    getattr(connected, request)(float(seconds), words)
                case _:
                    getattr(connected, request)(*fields)


def _params() -> list[Param]:
    params = []
    while (line := sys.stdin.readline()) != "go\n":
        word, type, name, direction, *value = map(_unescaped, line.rstrip("\n").split("\t"))
        assert word == "param", line
        params.append(Param(type, name, direction == "out", _value(TYPES[type], *value)))
    return params


def _value(type: type[Any], text: str | None = None) -> Any:
    if text is None:
        return None
    if type is bytes:
        return bytes.fromhex(text)
    if type in (date, datetime):
        return type.fromisoformat(text)
    return bool(int(text)) if type is bool else type(text)


def _unescaped(field: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"t": "\t", "n": "\n"}.get(found[1], found[1]), field)


def _text(value: Any) -> str:
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ", "microseconds")
        case date() | time() | UUID() | Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case _:
            raise TypeError(f"a value of {type(value)}: {value!r}")
