"""ctds: TDS 7.4 by the ct-library of the system's FreeTDS."""

from collections.abc import Mapping, Sequence
from typing import Any

import ctds

from ringlog.clients.address import Address
from ringlog.clients.procedure import Answer, Argument, LoginRefused, Refused, Unanswered, output, sendable

_LOGIN_FAILED = frozenset({18456, 4002})
# Bytes of a text or binary output; a longer value is returned whole nevertheless.
_OUTPUT_BYTES = 255


def connect(address: Address, password: str, *, autocommit: bool, login_timeout: int, timeout: int) -> Any:
    try:
        return ctds.connect(
            address.host,
            port=address.port,
            user=address.user,
            password=password,
            database=address.database or None,
            appname="ringlog",
            tds_version="7.4",
            autocommit=autocommit,
            login_timeout=login_timeout,
            timeout=timeout,
        )
    except ctds.Error as error:
        number, message = _number_and_message(error)
        kind = LoginRefused if number in _LOGIN_FAILED else Unanswered
        words = f"the server refused the login: {message}" if kind is LoginRefused else message
        raise kind(f"{address}: {words}", number) from None


def call(
    connection: Any, procedure: str, arguments: Sequence[Argument], named: Mapping[str, Argument]
) -> Answer:
    """Calls a procedure by RPC: see ringlog.clients.procedure.call. The driver returns no status."""
    given = {str(position): argument for position, argument in enumerate(arguments, start=1)}
    given |= {f"@{name}": argument for name, argument in named.items()}
    sent = {label: _sendable(label, argument) for label, argument in given.items()}
    try:
        with connection.cursor() as cursor:
            returned = cursor.callproc(procedure, sent if named else tuple(sent.values()))
            columns = tuple(str(column[0]) for column in cursor.description or ())
            rows = [tuple(row) for row in cursor.fetchall()] if columns else []
    except ctds.Error as error:
        number, message = _number_and_message(error)
        if number:
            raise Refused(number, message) from None
        raise Unanswered(message) from None
    values = returned.values() if named else returned
    wanted = zip(given.values(), values, strict=True)
    outputs = tuple(
        float(value) if argument.type is float and value is not None else value
        for argument, value in wanted
        if isinstance(argument, output)
    )
    return Answer(0, outputs, columns, rows)


def _sendable(label: str, argument: Argument) -> Any:
    if not isinstance(argument, output):
        return sendable(label, argument)
    if argument.type in (int, bool):
        return ctds.Parameter(ctds.SqlBigInt(argument.value), output=True)
    if argument.type is bytes:
        return ctds.Parameter(ctds.SqlVarBinary(argument.value, size=_OUTPUT_BYTES), output=True)
    if argument.type in (str, float):
        # the driver has no type for a float output: it is returned as text
        value = None if argument.value is None else str(argument.value)
        return ctds.Parameter(ctds.SqlVarChar(value, size=_OUTPUT_BYTES), output=True)
    raise TypeError(f"argument {label}: ctds has no output of {argument.type.__name__}")


def _number_and_message(error: Exception) -> tuple[int, str]:
    """The server's error number and message; without one, 0 and the library's own message."""
    message = getattr(error, "last_message", None)
    if message and message.get("number") and not getattr(error, "os_error", None):
        return int(message["number"]), str(message["description"]).strip()
    return 0, str(error).strip()
