"""The address of a server as a URL: tds://user@host:port[/database]."""

from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote, unquote, urlsplit

DEFAULT_PORT = 5000


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

    @classmethod
    def parse(cls, url: str) -> Self:
        """Reads `tds://user[:password]@host[:port][/database]`; %xx stands for a character in each part.

        Raises AddressError naming the part that is missing or wrong.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            # The reason would repeat a part of the URL: perhaps of a password with a '/' in it.
            raise AddressError(
                "the URL's port is not a number up to 65535 (or a password needs %xx for a character)"
            ) from None
        if parts.scheme != "tds":
            raise AddressError(
                f"the URL begins with '{parts.scheme}:', not with 'tds:' (tds://user@host:port[/database])"
                if parts.scheme
                else "the URL has no scheme: write tds://user@host:port[/database]"
            )
        if not parts.username:
            raise AddressError("the URL names no user: write tds://user@host:port[/database]")
        if not parts.hostname:
            raise AddressError("the URL names no host: write tds://user@host:port[/database]")
        if ":" in parts.hostname:
            raise AddressError(f"the URL's host {parts.hostname} is an IPv6 address: give a name")
        if parts.query or parts.fragment:
            raise AddressError("the URL takes no options after '?' or '#'")
        database = unquote(parts.path.removeprefix("/"))
        if "/" in database:
            raise AddressError(f"the URL names the database '{database}': a database has no '/' in its name")
        return cls(
            user=unquote(parts.username),
            host=parts.hostname,
            port=DEFAULT_PORT if port is None else port,
            database=database,
            password=None if parts.password is None else unquote(parts.password),
        )

    def __str__(self) -> str:
        database = f"/{quote(self.database, safe='')}" if self.database else ""
        return f"tds://{quote(self.user, safe='')}@{self.host}:{self.port}{database}"
