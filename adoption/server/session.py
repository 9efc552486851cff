"""Sessions at an old server, Sybase ASE or SQL Server, and its error messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymssql
from pymssql import _mssql

from ringlog.clients import Address
from ringlog.clients.drivers.freetds import tds_version

SYBASE = "5.0"
TIMEOUT = 600
"""seconds for one answer"""
_TIMED_OUT = 20003  # DB-Library's SYBETIME
# error numbers of clauses that are left out: no such object, column, or permission
ABSENT = frozenset({207, 208, 229, 230, 911})
# errors of DB-Library itself: no connection, no answer in time
_OF_DRIVER = range(20000, 21000)


@contextmanager
def connected(
    address: Address, password: str, version: str, timeout: int = TIMEOUT
) -> Iterator[pymssql.Connection]:
    """A session at the old server. `version` is 5.0 for ASE, 7.0 to 7.4 for SQL Server.

    Raises pymssql.Error, also where the server does not answer within `timeout` seconds.
    """
    if version == SYBASE:
        # messages have severity 10 there and are not errors
        _mssql.min_error_severity = 11
    # pymssql's timeout is one for all sessions, and is set only after `use` was sent
    _mssql.MSSQLConnection.__new__(_mssql.MSSQLConnection).query_timeout = timeout
    try:
        # pymssql has no name for TDS 5.0
        with tds_version(version):
            connection = pymssql.connect(
                server=address.host,
                port=str(address.port),
                user=address.user,
                password=password,
                database=address.database,
                appname="ringlog adopt",
                autocommit=True,
                conn_properties="",
                login_timeout=30,
                timeout=timeout,
            )
    except (pymssql.InterfaceError, _mssql.MSSQLException) as error:
        # the driver reports a timeout, or gives no reason
        known = error.args[0] if error.args and isinstance(error.args[0], tuple) else error.args
        if isinstance(error, _mssql.MSSQLException) and known[0] != _TIMED_OUT:
            raise pymssql.OperationalError(*known) from error
        what = f"no answer within {timeout} s to the login or to 'use {address.database}'"
        raise pymssql.OperationalError(_TIMED_OUT, what) from error
    try:
        # longer values are cut silently
        with connection.cursor() as cursor:
            cursor.execute("set textsize 2147483647")
        yield connection
    finally:
        connection.close()


def rows_of(cursor: Any) -> list[tuple[Any, ...]]:
    """All rows of a cursor's query, in the server's types."""
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def number(error: pymssql.Error) -> int:
    """The number of the server's error."""
    first = error.args[0] if error.args else 0
    while isinstance(first, tuple):
        first = first[0]
    return first if isinstance(first, int) else 0


def is_of_server(error: pymssql.Error) -> bool:
    """Whether the server has refused a statement; otherwise server or session are lost."""
    found = number(error)
    return found != 0 and found not in _OF_DRIVER


def message_of(error: pymssql.Error) -> str:
    message: object = error.args
    while isinstance(message, tuple):
        message = message[-1] if message else ""
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    of_server, _, of_driver = text.partition("DB-Lib error")
    # an error of the driver, such as a server that cannot be reached: the lines after its number
    return of_server.strip() or " ".join(of_driver.partition("\n")[2].split())
