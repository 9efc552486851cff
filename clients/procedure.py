"""Calls of stored procedures: their arguments, answers and errors, the same for every driver."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias
from uuid import UUID

Value: TypeAlias = bool | int | float | str | bytes | Decimal | datetime | date | time | UUID | None


@dataclass(frozen=True)
class output:  # noqa: N801 - written as PEP 249's drivers write theirs
    """An output parameter: the Python type of its returned value, and the value that is sent."""

    type: type
    value: Value = None


Argument: TypeAlias = bool | int | float | str | bytes | datetime | output | None

_SQLSTATE = re.compile(r"\(SQLSTATE (\w{5})\)")


class Connection(Protocol):
    """A connection of PEP 249. It is the driver's own, with the driver's further members."""

    def cursor(self) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> Any: ...


class Refused(Exception):
    """The server's error for a call, which has had no effect."""

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
    """No answer arrived: the connection broke or timed out. The call may or may not have been executed."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


class LoginRefused(Unanswered):
    """The server refused the login."""


@dataclass(frozen=True)
class Answer:
    """The result of a call. `status` is 0 where the driver does not return it: pymssql for a procedure with
    rows, ctds always."""

    status: int
    outputs: tuple[Value, ...]
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    """values, and waveforms as numpy arrays where numpy is installed"""


class Driver(Protocol):
    """The interface of each module of ringlog.clients.drivers."""

    def connect(
        self, address: Any, password: str, *, autocommit: bool, login_timeout: int, timeout: int
    ) -> Connection:
        """Connects; times in seconds. Raises Unanswered and LoginRefused."""
        ...

    def call(
        self, connection: Any, procedure: str, arguments: Sequence[Argument], named: Mapping[str, Argument]
    ) -> Answer:
        """See `call`."""
        ...


def sendable(label: str, argument: Argument) -> Argument:
    """The argument in a form that a TDS driver sends exactly. Raises TypeError or ValueError, which name
    `label`."""
    match argument:
        case None | bool() | float() | output():
            return argument
        case int():
            if not -(2**63) <= argument < 2**63:
                raise ValueError(f"argument {label}: {argument} does not fit in 64 bits")
            return argument
        case datetime():
            # The driver would cut microseconds and zone; the server reads this text exactly.
            return argument.isoformat(" ", "microseconds")
        case str():
            # The driver sends an empty string as NULL and ends a string at its first NUL.
            if not argument or "\0" in argument:
                raise ValueError(f"argument {label}: an empty string or one with a NUL cannot be sent")
            argument.encode("utf-8")
            return argument
        case bytes():
            if not argument:
                raise ValueError(f"argument {label}: empty binary data cannot be sent")
            return argument
        case _:
            raise TypeError(f"argument {label}: {type(argument).__name__} cannot be sent")
