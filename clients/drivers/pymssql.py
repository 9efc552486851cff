"""pymssql: TDS 7.4 by FreeTDS's DB-Library, which it includes."""

import re
import socket
from collections.abc import Mapping, Sequence

import pymssql
from pymssql import _mssql

from ringlog.clients.address import Address
from ringlog.clients.procedure import Answer, Argument, LoginRefused, Refused, Unanswered, output, sendable

# Errors of DB-Library itself (sybdb.h, SYBE*), among them 20003 timeout, 20004 read failed, 20006 write
# failed, 20047 connection dead: these do not come from the server.
_CLIENT_NUMBERS = range(20000, 21000)
_CLIENT_WORDS = re.compile(
    r"DB-Lib error message (?P<number>\d+), severity \d+:\n(?P<text>.*)\n?"
    r"(?:.* error during (?P<reason>.*) \(\d+\))?"
)
# Messages of dead connections, which the driver puts before the message of the next refused login.
_LEFT_BY_THE_DEAD = re.compile(r"DB-Lib error message 20047, severity \d+:\n.*\n")
# SYBESMSG of sybdb.h: "General SQL Server error: Check messages from the SQL Server"
_CHECK_MESSAGES = 20018
# "DBPROCESS is dead or not enabled": of a connection that was open before, if a new one fails
_DEAD = 20047
# The driver has no reason for a connection that failed before the first byte.
_NO_CONNECTION = ("Unknown error", "Connection to the database failed for an unknown reason.")
# Bytes in UTF-8 that the driver sends as Unicode. A longer text is sent in the connection's single-byte
# characters, and as a text, because it would be cut as a varchar.
_UNICODE_BYTES = 4000
_SINGLE_BYTE = "cp1252"
# Maximum bytes of a varbinary; longer values are sent as an image.
_BINARY_BYTES = 8000
# Login failed, at 7.x and at 5.0.
_LOGIN_FAILED = frozenset({18456, 4002})


def connect(
    address: Address, password: str, *, autocommit: bool, login_timeout: int, timeout: int
) -> pymssql.Connection:
    """Connects to a gateway. The driver keeps one pair of timeouts for the whole process."""
    connection = None
    try:
        connection = pymssql.connect(
            server=address.host,
            port=str(address.port),
            user=address.user,
            password=password,
            appname="ringlog",
            tds_version="7.4",
            autocommit=True,
            # Without this the driver begins with ten SET statements, on which nothing here depends.
            conn_properties="",
            login_timeout=login_timeout,
            timeout=timeout,
        )
        # the driver sets the timeout of calls only after its own `use`, for which it waits without limit
        if address.database:
            connection._conn.execute_non_query(f"use [{address.database.replace(']', ']]')}]")
        connection.autocommit(autocommit)
        return connection
    except (pymssql.Error, _mssql.MSSQLException) as error:
        if connection is not None:
            connection.close()
        number, message = _number_and_message(error, left=_LEFT_BY_THE_DEAD)
        if number == _DEAD or message in _NO_CONNECTION:
            message = "no connection" if _is_host(address.host) else "the host name is unknown"
        elif number == _CHECK_MESSAGES:
            # the driver keeps the server's message only of the first refusal in a process
            message = "the server refused the login"
        elif number not in _CLIENT_NUMBERS:
            message = f"the server refused the login: {message}"
        refused = number == _CHECK_MESSAGES or number in _LOGIN_FAILED
        raise (LoginRefused if refused else Unanswered)(f"{address}: {message}", number) from None


def _is_host(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True


def call(
    connection: pymssql.Connection,
    procedure: str,
    arguments: Sequence[Argument],
    named: Mapping[str, Argument],
) -> Answer:
    """Calls a procedure by RPC: see ringlog.clients.procedure.call."""
    labelled = [(str(position), "", argument) for position, argument in enumerate(arguments, start=1)]
    labelled += [(f"@{name}", f"@{name}", argument) for name, argument in named.items()]
    # most arguments are numbers with a point, which need no check
    sent = [
        (name, argument if type(argument) is float else _sendable(label, argument))
        for label, name, argument in labelled
    ]
    try:
        # Cursor.callproc has no named parameters: this does the same, with names.
        driver = connection._conn
        request = driver.init_procedure(procedure)
        for name, argument in sent:
            if type(argument) is float:
                request.bind(argument, _mssql.SQLFLT8, name)
            elif isinstance(argument, output):
                request.bind(argument.value, _mssql.py2db_type(argument.type, argument.value), name, True)
            elif isinstance(argument, str) and len(argument.encode()) > _UNICODE_BYTES:
                request.bind(argument, _mssql.SQLTEXT, name)
            elif isinstance(argument, bytes) and len(argument) > _BINARY_BYTES:
                request.bind(argument, _mssql.SQLIMAGE, name)
            else:
                request.bind(argument, _mssql.py2db_type(type(argument), argument), name)
        status = request.execute()
        columns = tuple(str(column[0]) for column in driver.get_header() or ())
        rows = list(driver.get_iterator(_mssql.ROW_FORMAT_TUPLE)) if columns else []
    except (pymssql.Error, _mssql.MSSQLException) as error:
        number, message = _number_and_message(error)
        if number == 0 or number in _CLIENT_NUMBERS:
            raise Unanswered(message, number) from None
        raise Refused(number, message) from None
    outputs = (index for index, (_, argument) in enumerate(sent) if isinstance(argument, output))
    return Answer(status, tuple(request.parameters[index] for index in outputs), columns, rows)


def _sendable(label: str, argument: Argument) -> Argument:
    argument = sendable(label, argument)
    if isinstance(argument, str) and len(argument.encode()) > _UNICODE_BYTES:
        try:
            argument.encode(_SINGLE_BYTE)
        except UnicodeEncodeError as error:
            raise ValueError(
                f"argument {label}: pymssql cannot send {argument[error.start]!r} in a text of more than"
                f" {_UNICODE_BYTES} bytes; ctds and psycopg can"
            ) from None
    return argument


def _number_and_message(error: Exception, *, left: re.Pattern[str] | None = None) -> tuple[int, str]:
    """Number and message of a driver's exception, without the driver's additions; number 0 if it has none.

    `left`: the text of earlier connections, removed unless there is no other text.
    """
    content = error.args[0] if len(error.args) == 1 else error.args
    if not (isinstance(content, tuple) and len(content) == 2):
        return 0, str(content)
    number, text = content
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if left is not None:
        text = left.sub("", text) or text
    words = _CLIENT_WORDS.search(text)
    if words is None:
        return int(number), text.strip()
    if server := text[: words.start()].strip():
        return int(number), server
    # The driver's number may belong to an earlier failed login: the text has the present one.
    reason = f" ({words['reason']})" if words["reason"] else ""
    return int(words["number"]), words["text"].strip() + reason
