"""The connection to an old server."""

from dataclasses import dataclass

from ringlog.clients import Address


@dataclass(frozen=True)
class Source:
    """An old server, and how its times and texts are read."""

    address: Address
    password: str
    version: str
    timezone: str
    charset: str = ""
    """the character set of its char and varchar"""
    is_ase: bool = False
