"""The address of a server as a URL: tds://user@host:port[/database], and the driver that connects to it.

Several gateways of one facility, on different machines, are named as `host:port,host:port`.
"""

from dataclasses import dataclass, field, replace
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

_FORM = "tds://user@host:port[,host:port …][/database]"


class AddressError(ValueError):
    """A URL without a valid server; the message never contains a password."""


@dataclass(frozen=True)
class Address:
    """A login and the address of its server. The text form never contains the password."""

    user: str
    host: str
    port: int = DEFAULT_PORT
    database: str = ""
    password: str | None = field(default=None, repr=False)
    driver: str = "pymssql"
    others: tuple[tuple[str, int], ...] = ()
    """further hosts and ports with the same data, tried if this one does not answer"""

    @property
    def each(self) -> "tuple[Address, ...]":
        """The address of every host, in the order in which they are tried."""
        addresses = ((self.host, self.port), *self.others)
        return tuple(replace(self, host=host, port=port, others=()) for host, port in addresses)

    @classmethod
    def parse(cls, url: str) -> Self:
        """Reads `tds://user[:password]@host[:port][,host[:port] …][/database]`; %xx stands for a character in
        each part.

        The scheme names the driver: `tds` or `tds+pymssql`, `tds+ctds`, `postgresql`. Raises AddressError
        naming the part that is missing or wrong.
        """
        try:
            parts = urlsplit(url)
            *_, addresses = parts.netloc.rpartition("@")
            first, *others = [urlsplit(f"//{address}") for address in addresses.split(",")]
            ports = [server.port for server in (first, *others)]
        except ValueError:
            # The reason would repeat a part of the URL, perhaps of a password that contains '/'.
            raise AddressError(
                "the URL's port is not a number up to 65535 (or a password needs %xx for a character)"
            ) from None
        driver = DRIVERS.get(parts.scheme)
        if driver is None:
            raise AddressError(
                f"the URL begins with '{parts.scheme}:', which is not one of {', '.join(DRIVERS)} ({_FORM})"
                if parts.scheme
                else f"the URL has no scheme: write {_FORM}"
            )
        if not parts.username:
            raise AddressError(f"the URL names no user: write {_FORM}")
        hosts = [server.hostname or "" for server in (first, *others)]
        if not all(hosts):
            raise AddressError(f"the URL names no host: write {_FORM}")
        if ipv6 := [host for host in hosts if ":" in host]:
            raise AddressError(f"the URL's host {ipv6[0]} is an IPv6 address: give a name")
        if parts.query or parts.fragment:
            raise AddressError("the URL takes no options after '?' or '#'")
        database = unquote(parts.path.removeprefix("/"))
        if "/" in database:
            raise AddressError(f"the URL names the database '{database}': a database has no '/' in its name")
        if driver == "psycopg" and not database:
            raise AddressError("the URL names no database: write postgresql://user@host:port/database")
        usual = _POSTGRESQL_PORT if driver == "psycopg" else DEFAULT_PORT
        (host, port), *rest = [(host, port or usual) for host, port in zip(hosts, ports, strict=True)]
        return cls(
            user=unquote(parts.username),
            host=host,
            port=port,
            database=database,
            password=None if parts.password is None else unquote(parts.password),
            driver=driver,
            others=tuple(rest),
        )

    def __str__(self) -> str:
        database = f"/{quote(self.database, safe='')}" if self.database else ""
        scheme = next(scheme for scheme, driver in DRIVERS.items() if driver == self.driver)
        hosts = ",".join(f"{one.host}:{one.port}" for one in self.each)
        return f"{scheme}://{quote(self.user, safe='')}@{hosts}{database}"
