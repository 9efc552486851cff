"""Calls of stored procedures by RPC: the one place that knows what pymssql does to parameters and errors."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import TypeAlias
from uuid import UUID

import pymssql
from pymssql import _mssql
from pymssql import output as output

Argument: TypeAlias = bool | int | float | str | bytes | datetime | output | None
Value: TypeAlias = bool | int | float | str | bytes | Decimal | datetime | date | time | UUID | None

# Errors of DB-Library itself (sybdb.h, SYBE*), among them 20003 timeout, 20004 read failed, 20006 write
# failed, 20047 connection dead: the server did not say these.
CLIENT_NUMBERS = range(20000, 21000)
_CLIENT_WORDS = re.compile(
    r"DB-Lib error message (?P<number>\d+), severity \d+:\n(?P<text>.*)\n?"
    r"(?:.* error during (?P<reason>.*) \(\d+\))?"
)
_SQLSTATE = re.compile(r"\(SQLSTATE (\w{5})\)")


class Refused(Exception):
    """The server's error in answer to a call: nothing of the call was done."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(f"error {number}: {message}")
        self.number = number
        self.message = message

    @property
    def sqlstate(self) -> str:
        """PostgreSQL's name of the error, empty when the gateway itself refused."""
        found = _SQLSTATE.search(self.message)
        return found[1] if found else ""


class Unanswered(Exception):
    """No answer came: the connection or its time ran out. Whether the call was done is not known."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


class LoginRefused(Unanswered):
    """The server answered, and does not let this login in."""


@dataclass(frozen=True)
class Answer:
    """What a procedure gave back. `status` is 0 for a procedure with rows: the driver does not tell it."""

    status: int
    outputs: tuple[Value, ...]
    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]


def call(
    connection: pymssql.Connection, procedure: str, /, *arguments: Argument, **named: Argument
) -> Answer:
    """Calls a procedure by RPC, with arguments by position and then by name (without the @).

    `output(type)` stands for an output parameter. None is NULL. A datetime keeps its microseconds; without a
    zone it is meant in the facility's, as those that come back are.

    Raises TypeError or ValueError for an argument that cannot be sent exactly, before anything is sent;
    Refused for the server's error; Unanswered when the connection is of no further use and must be closed.
    """
    places = [(str(place), "", argument) for place, argument in enumerate(arguments, start=1)]
    places += [(f"@{name}", f"@{name}", argument) for name, argument in named.items()]
    sent = [(name, _sendable(place, argument)) for place, name, argument in places]
    try:
        # Cursor.callproc knows no names: this is what it does, with names.
        driver = connection._conn
        request = driver.init_procedure(procedure)
        for name, argument in sent:
            if isinstance(argument, output):
                request.bind(argument.value, _mssql.py2db_type(argument.type, argument.value), name, True)
            else:
                request.bind(argument, _mssql.py2db_type(type(argument), argument), name)
        status = request.execute()
        columns = tuple(str(column[0]) for column in driver.get_header() or ())
        rows = list(driver.get_iterator(_mssql.ROW_FORMAT_TUPLE)) if columns else []
    except (pymssql.Error, _mssql.MSSQLException) as error:
        number, message = said(error)
        if number == 0 or number in CLIENT_NUMBERS:
            raise Unanswered(message, number) from None
        raise Refused(number, message) from None
    outputs = (place for place, (_, argument) in enumerate(sent) if isinstance(argument, output))
    return Answer(status, tuple(request.parameters[place] for place in outputs), columns, rows)


def said(error: Exception) -> tuple[int, str]:
    """Number and words of a driver's exception, without the driver's wrapping; number 0 when it has none."""
    content = error.args[0] if len(error.args) == 1 else error.args
    if not (isinstance(content, tuple) and len(content) == 2):
        return 0, str(content)
    number, text = content
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    words = _CLIENT_WORDS.search(text)
    if words is None:
        return int(number), text.strip()
    if server := text[: words.start()].strip():
        return int(number), server
    # The driver's number may be that of an earlier failed login: the text tells this one's.
    reason = f" ({words['reason']})" if words["reason"] else ""
    return int(words["number"]), words["text"].strip() + reason


def _sendable(place: str, argument: Argument) -> Argument:
    match argument:
        case None | bool() | float() | output():
            return argument
        case int():
            if not -(2**63) <= argument < 2**63:
                raise ValueError(f"argument {place}: {argument} does not fit in 64 bits")
            return argument
        case datetime():
            # The driver would cut microseconds and zone; the server reads this text exactly.
            return argument.isoformat(" ", "microseconds")
        case str():
            # The driver sends an empty string as NULL and ends a string at its first NUL.
            if not argument or "\0" in argument:
                raise ValueError(f"argument {place}: an empty string or one with a NUL cannot be sent")
            argument.encode("utf-8")
            return argument
        case bytes():
            if not argument:
                raise ValueError(f"argument {place}: empty binary data cannot be sent")
            return argument
        case _:
            raise TypeError(f"argument {place}: {type(argument).__name__} cannot be sent")
