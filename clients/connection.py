"""A connection as PEP 249 has it, from a URL."""

from pathlib import Path

import pymssql
from pymssql import _mssql

from ringlog.clients.address import Address
from ringlog.clients.password import find_password
from ringlog.clients.procedure import CLIENT_NUMBERS, LoginRefused, Unanswered, said

# SYBESMSG of sybdb.h: "General SQL Server error: Check messages from the SQL Server"
_CHECK_MESSAGES = 20018
# Login failed, at 7.x and at 5.0.
_LOGIN_FAILED = frozenset({18456, 4002})


def connect(
    url: str | Address,
    password: str | None = None,
    *,
    password_file: str | Path | None = None,
    login_timeout: float = 10.0,
    timeout: float = 30.0,
) -> pymssql.Connection:
    """Connects to a gateway as `tds://user@host:port[/database]`; each statement commits by itself.

    Without `password`, `find_password` looks for one, first in `password_file`. `login_timeout` and
    `timeout` (of one call) are in seconds, rounded up to whole ones; the driver keeps one pair of them for
    the whole process.

    Raises AddressError, PasswordError, Unanswered when there is no server, and LoginRefused when it
    does not let the login in.
    """
    address = Address.parse(url) if isinstance(url, str) else url
    if password is None:
        password = find_password(address, password_file)
    try:
        return pymssql.connect(
            server=address.host,
            port=str(address.port),
            user=address.user,
            password=password,
            database=address.database,
            appname="ringlog",
            tds_version="7.4",
            autocommit=True,
            # The driver would otherwise begin with ten SET statements: nothing here depends on them.
            conn_properties="",
            login_timeout=-int(-login_timeout // 1),
            timeout=-int(-timeout // 1),
        )
    except (pymssql.Error, _mssql.MSSQLException) as error:
        number, message = said(error)
        if message == "Unknown error":
            message = "no connection: is the host name right?"
        elif number == _CHECK_MESSAGES:
            # the driver keeps the server's words only of the first refusal in a process
            message = "the server refuses the login"
        elif number not in CLIENT_NUMBERS:
            message = f"the server refuses the login: {message}"
        refused = number == _CHECK_MESSAGES or number in _LOGIN_FAILED
        raise (LoginRefused if refused else Unanswered)(f"{address}: {message}", number) from None
