"""The address of a server as a URL: tds://user@host:port[/database], and the driver that connects to it."""

from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote, unquote, urlsplit

DEFAULT_PORT = 5000
_POSTGRESQL_PORT = 5432

DRIVERS = {
    "tds": "pymssql",
    "tds+pymssql": "pymssql",
    "tds+ctds": "ctds",
    "postgresql": "psycopg",
    "postgresql+psycopg": "psycopg",
}
"""Schemes of URLs, and the driver of each: the gateway's by TDS, or PostgreSQL itself."""

_FORM = "tds://user@host:port[/database]"


class AddressError(ValueError):
    """A URL that names no server; the message never repeats a password."""


@dataclass(frozen=True)
class Address:
    """Who connects to where. Its text form never holds the password."""

    user: str
    host: str
    port: int = DEFAULT_PORT
    database: str = ""
    password: str | None = field(default=None, repr=False)
    driver: str = "pymssql"

    @classmethod
    def parse(cls, url: str) -> Self:
        """Reads `tds://user[:password]@host[:port][/database]`; %xx stands for a character in each part.

        The scheme names the driver: `tds` or `tds+pymssql`, `tds+ctds`, `postgresql`. Raises AddressError
        naming the part that is missing or wrong.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            # The reason would repeat a part of the URL: perhaps of a password with a '/' in it.
            raise AddressError(
                "the URL's port is not a number up to 65535 (or a password needs %xx for a character)"
            ) from None
        driver = DRIVERS.get(parts.scheme)
        if driver is None:
            raise AddressError(
                f"the URL begins with '{parts.scheme}:', which is none of {', '.join(DRIVERS)} ({_FORM})"
                if parts.scheme
                else f"the URL has no scheme: write {_FORM}"
            )
        if not parts.username:
            raise AddressError(f"the URL names no user: write {_FORM}")
        if not parts.hostname:
            raise AddressError(f"the URL names no host: write {_FORM}")
        if ":" in parts.hostname:
            raise AddressError(f"the URL's host {parts.hostname} is an IPv6 address: give a name")
        if parts.query or parts.fragment:
            raise AddressError("the URL takes no options after '?' or '#'")
        database = unquote(parts.path.removeprefix("/"))
        if "/" in database:
            raise AddressError(f"the URL names the database '{database}': a database has no '/' in its name")
        if driver == "psycopg" and not database:
            raise AddressError("the URL names no database: write postgresql://user@host:port/database")
        return cls(
            user=unquote(parts.username),
            host=parts.hostname,
            port=port or (_POSTGRESQL_PORT if driver == "psycopg" else DEFAULT_PORT),
            database=database,
            password=None if parts.password is None else unquote(parts.password),
            driver=driver,
        )

    def __str__(self) -> str:
        database = f"/{quote(self.database, safe='')}" if self.database else ""
        scheme = next(scheme for scheme, driver in DRIVERS.items() if driver == self.driver)
        return f"{scheme}://{quote(self.user, safe='')}@{self.host}:{self.port}{database}"
