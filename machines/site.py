"""The machines of a site."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

POSTGRESQL_PORT = 5432
PATRONI_PORT = 8008
ETCD_PORT = 2379
ETCD_PEER_PORT = 2380
GATEWAY_PORT = 5000
METRICS_PORT = 9400

# Names of hosts in etcd, Patroni and file names.
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class SiteError(ValueError):
    """Machines that cannot form a site; the text has the reason."""


class Unreachable(Exception):
    """No machine answered; the text names the queried ones."""


@dataclass(frozen=True)
class Machine:
    """A machine, with the name and address that the others use for it."""

    name: str
    address: str
    """IPv4 address"""
    witness: bool = False
    """a witness: it has a vote (etcd) and no data"""

    @classmethod
    def parse(cls, text: str, *, witness: bool = False) -> "Machine":
        """Reads NAME=ADDRESS. Raises SiteError."""
        name, _, address = text.partition("=")
        if not _NAME.fullmatch(name):
            raise SiteError(f"'{text}' is not a machine: write NAME=ADDRESS, for example db1=10.0.0.1")
        try:
            ipaddress.IPv4Address(address)
        except ValueError:
            raise SiteError(
                f"{name} has no IPv4 address: write {name}=10.0.0.1, which works without DNS too"
            ) from None
        return cls(name, address, witness)


@dataclass(frozen=True)
class Layout:
    """The folders and files on every machine."""

    account: str
    """that all programs run under"""
    postgresql: Path
    """folder of PostgreSQL's programs"""
    environment: Path
    """folder of the virtual environment that has ringlog and Patroni"""
    data: Path = Path("/var/lib/ringlog")
    socket: Path = Path("/run/ringlog")
    """PostgreSQL's, emptied at each boot: the lock file of a machine that died may name a process of today"""
    configuration: Path = Path("/etc/ringlog")
    etcd: Path = Path("/usr/bin/etcd")


@dataclass(frozen=True)
class Site:
    """Machines of which one is the primary."""

    machines: tuple[Machine, ...]

    @classmethod
    def of(cls, machines: Sequence[Machine]) -> "Site":
        """Raises SiteError for machines that could not continue if one dies."""
        for what in ("name", "address"):
            values = [getattr(machine, what) for machine in machines]
            if twice := next((value for value in values if values.count(value) > 1), None):
                raise SiteError(f"two machines have the {what} {twice}")
        members = [machine for machine in machines if not machine.witness]
        if len(members) < 2:
            raise SiteError("at least two machines have the data: name them as NAME=ADDRESS")
        if len(machines) < 3 or len(machines) % 2 == 0:
            raise SiteError(
                f"{len(machines)} machines have a vote, and a majority must remain when one fails: name "
                "three or five; --witness NAME=ADDRESS adds one without data"
            )
        return cls(tuple(machines))

    @property
    def members(self) -> tuple[Machine, ...]:
        return tuple(machine for machine in self.machines if not machine.witness)
