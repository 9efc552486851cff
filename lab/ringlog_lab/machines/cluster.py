"""Machines with etcd, Patroni and a gateway, installed by `ringlog ha init`."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ringlog.machines.access import read_access
from ringlog.machines.site import GATEWAY_PORT, Unreachable
from ringlog.machines.state import SiteState, state
from ringlog.machines.units import ETCD, GATEWAY, GUARD, PATRONI
from ringlog_lab.machines.host import Host, account, lay_network

# A network for documentation (RFC 5737), which is not used outside of these namespaces either.
_NETWORK = "192.0.2"
_PATIENCE = 180.0
WRITER = "daq"
_PASSWORD = "rows-for-ever"

Found = TypeVar("Found")


class Cluster:
    """Two machines with data, each with a gateway, and a witness. They run from construction on."""

    def __init__(self, folder: Path, facility: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.say = say
        lay_network(f"{_NETWORK}.254/24")
        self.members = [self._host(name, number) for number, name in enumerate(("db1", "db2"), start=1)]
        self.witness = self._host("witness", 3)
        files = folder / "files"
        places = [f"{host.name}={host.address}" for host in self.members]
        arguments = [
            "--witness",
            f"witness={self.witness.address}",
            "--memory",
            "512MB",
            "--account",
            account(),
        ]
        self.ringlog("ha", "init", str(files), *places, *arguments)
        for host in (*self.members, self.witness):
            host.install(files / host.name)
            self.switch_on(host)
        self.config = self.members[0].folder / "etc/ringlog/patroni.yml"
        self._access = read_access(self.config)
        self.wait("a primary", lambda: self.state().leader)
        (self.dsn,) = re.findall(
            'RINGLOG_DSN="(.*)"', (self.members[0].folder / "etc/ringlog/gateway.env").read_text()
        )
        self.ringlog("init", "--facility", str(facility))
        self.ringlog("user", "add", WRITER, "--writer", "--password-stdin", stdin=_PASSWORD)
        self.wait_well()
        say("the machines are well\n" + self.ringlog("ha", "status", "--config", str(self.config)))

    def _host(self, name: str, number: int) -> Host:
        return Host(name, f"{_NETWORK}.{number}", self.folder / name)

    @property
    def urls(self) -> list[str]:
        """Of both gateways, in either order."""
        places = [f"{host.address}:{GATEWAY_PORT}" for host in self.members]
        return [f"tds://{WRITER}@{','.join(order)}" for order in (places, places[::-1])]

    @property
    def password(self) -> str:
        return _PASSWORD

    def switch_on(self, host: Host) -> None:
        """Boots a machine with its units."""
        host.boot()
        host.start(ETCD)
        if host is not self.witness:
            for unit in (PATRONI, GUARD, GATEWAY):
                host.start(unit)

    def switch_off(self) -> None:
        for host in (*self.members, self.witness):
            host.die()

    def ringlog(self, *arguments: str, stdin: str = "") -> str:
        """Runs the command `ringlog` to its end, as the facility's administrator."""
        environment = {"RINGLOG_DSN": self.dsn} if hasattr(self, "dsn") else {}
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "ringlog", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=os.environ | environment,
        )
        if ran.returncode:
            raise RuntimeError(f"ringlog {shlex.join(arguments)}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def state(self) -> SiteState:
        """The state of the cluster; an empty one while no machine answers."""
        try:
            return state(self._access)
        except Unreachable:
            return SiteState((), False, {}, {})

    @property
    def primary(self) -> Host:
        leader = self.wait("a primary", lambda: self.state().leader)
        return next(host for host in self.members if host.name == leader.name)

    def wait_well(self) -> None:
        """Waits until the cluster is healthy."""
        self.wait("all to be well", lambda: not self.state().troubles)

    def wait(self, what: str, find: Callable[[], Found | None]) -> Found:
        """Calls `find` until its result is true, and returns the result."""
        until = time.monotonic() + _PATIENCE
        while not (found := find()):
            if time.monotonic() > until:
                logs = "\n".join(host.logs() for host in (*self.members, self.witness))
                raise RuntimeError(f"waited in vain for {what}: {self.state()}\n{logs}")
            time.sleep(0.05)
        return found
