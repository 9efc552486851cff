"""A connection of PEP 249, from a URL."""

from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from ringlog.clients.address import Address, AddressError
from ringlog.clients.drivers import driver
from ringlog.clients.password import find_password
from ringlog.clients.procedure import Connection, Unanswered


class Options(TypedDict):
    autocommit: bool
    login_timeout: int
    timeout: int


def connect(
    url: str | Address,
    password: str | None = None,
    *,
    password_file: str | Path | None = None,
    autocommit: bool = True,
    login_timeout: float = 10.0,
    timeout: float = 30.0,
) -> Connection:
    """Connects to a gateway, or to PostgreSQL itself, and returns the driver's own connection.

    Of several hosts (`host:port,host:port`) the first that answers is used. The URL selects the driver:
    `tds://user@host:port[/database]` or `tds+pymssql:` by pymssql, `tds+ctds:` by ctds,
    `postgresql://user@host:port/database` by psycopg. `ringlog.call` calls procedures in the same way over
    all of them.

    Each statement commits by itself, unless `autocommit` is turned off: rows are logged one by one, and the
    gateway combines those of many writers into one transaction. Without `password`, `find_password` looks for
    one, first in `password_file`. `login_timeout` and `timeout` (of one call) are in seconds, rounded up to
    whole ones.

    Raises AddressError, PasswordError, Unanswered when no server answers, and LoginRefused.
    """
    address = Address.parse(url) if isinstance(url, str) else url
    try:
        chosen = driver(address.driver)
    except ModuleNotFoundError as error:
        if error.name != address.driver:
            raise
        raise AddressError(
            f"{address.driver} is not installed: pip install 'ringlog[{address.driver}]'"
        ) from None
    options: Options = {
        "autocommit": autocommit,
        "login_timeout": -int(-login_timeout // 1),
        "timeout": -int(-timeout // 1),
    }
    if password is None:
        password = find_password(address, password_file)
    *others, last = address.each
    for one in others:
        # another gateway has the same logins, but may reach a server that this one does not
        with suppress(Unanswered):
            return chosen.connect(one, password, **options)
    return chosen.connect(last, password, **options)
