"""Retrieval over HTTP as a process of the server, or of a command on another machine."""

import importlib.util
import logging
import os
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog.errors import ServerError, UsageError
from ringlog.extras import demand
from ringlog.nodes.servers import known_by_gateway
from ringlog.retrieval.serving.limits import Limits
from ringlog.retrieval.serving.settings import LoginServer, Settings, nodes_to_json
from ringlog.schema import session
from ringlog.server.embedded.account import Account, account_for, system_account
from ringlog.server.processes.supervised import Supervised

log = logging.getLogger(__name__)

_TRUSTED = 2.0
"""seconds in which a login of the embedded PostgreSQL is not tried again: it is near"""


def demand_parts() -> None:
    """Raises ModuleNotFoundError when a library that retrieval needs is missing."""
    demand("starlette", "uvicorn", "httptools", "orjson", "adbc_driver_postgresql", "pyarrow")


def settings(
    host: str,
    port: int,
    conninfo: str,
    *,
    role: str | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    data: Path | None = None,
    nodes: Mapping[str, tuple[str, str]] | None = None,
) -> Settings:
    """The settings of a process that reads the database of `conninfo`, and those of its nodes.

    `role` is a role of PostgreSQL for requests without a login; `conninfo` must then be of a login that may
    act for it. `data` is the data directory of an embedded database, `nodes` are as `ringlog.nodes.nodes_of`
    gives them. Raises ServerError where the process would run as root.
    """
    if role is not None and (not role or not role.isprintable()):
        raise UsageError("--http-role needs the name of a PostgreSQL role")
    first = _login_server(conninfo, role)
    account = unprivileged(data)
    return Settings(
        host,
        port,
        first.database,
        first.everyone,
        None if certificate is None else str(certificate),
        None if key is None else str(key),
        None if account is None else account.uid,
        None if account is None else account.gid,
        None if data is None else str(data),
        Limits() if data is None else Limits(trusted=_TRUSTED),
        nodes=login_servers(nodes or {}, role),
    )


def unprivileged(data: Path | None, what: str = "HTTP", library: str = "starlette") -> Account | None:
    """The account that a process runs under, with the data directory of an embedded database; None: that of
    this process. Raises ServerError where it could only run as root: `what` is its name, `library` one
    that it has to read."""
    if os.geteuid() != 0:
        return None
    account = system_account() if data is None else account_for(data)
    libraries = importlib.util.find_spec(library)
    assert libraries is not None
    for needed in (os.__file__, __file__, libraries.origin or ""):
        if not account.can("r", Path(needed)):
            closed = account.barrier(Path(needed)) or needed
            raise ServerError(
                f"{what} does not run as root, and the account {account.name} cannot read {needed}: "
                "install Python and ringlog where every account can read them, as in /opt/ringlog, or open "
                f"the folder to all accounts of this machine (chmod o+rx {closed})"
            )
    return account


def login_servers(nodes: Mapping[str, tuple[str, str]], role: str | None) -> dict[str, LoginServer]:
    """Where the process finds nodes; without a login it reads there as the gateway, in `role`."""
    return {name: _login_server(conninfo, role) for name, conninfo in known_by_gateway(nodes).items()}


def _login_server(conninfo: str, role: str | None) -> LoginServer:
    database = {
        name: value
        for name, value in conninfo_to_dict(conninfo).items()
        if name not in ("user", "password", "options", "passfile", "service")
    }
    everyone = None
    if role is not None:
        named = role.replace("\\", "\\\\").replace(" ", "\\ ")
        everyone = make_conninfo(conninfo, options=f"-c role={named}")
    return LoginServer(make_conninfo("", **database), everyone)


def warn_of_role(conninfo: str, role: str | None) -> None:
    """Logs a warning when the role of requests without a login does not exist."""
    if role is None:
        return
    with session.connect(conninfo) as connection:
        exists = connection.execute("select exists (select from pg_roles where rolname = %s)", [role])
        if exists.fetchone() == (False,):
            log.warning(
                "--http-role %s: there is no such login, and HTTP fails without one until there is:"
                " ringlog user add %s --reader",
                *(role, role),
            )


class Web(Supervised):
    """A process that serves HTTP."""

    name = "HTTP"
    metric = "http"
    what = "the process that serves HTTP"
    module = "ringlog.server.processes.web_process"
    greeting = "HTTP on"

    def __init__(self, wanted: Settings, begun: "subprocess.Popen[bytes] | None" = None) -> None:
        super().__init__(begun)
        self._wanted = wanted
        self._input: IO[bytes] | None = None
        self._sent: Mapping[str, LoginServer] = {}
        """the nodes that were sent to the process when it started"""
        self._lock = threading.Lock()
        """on the requested settings, and on the process's input"""
        self.address = (
            f"[{wanted.host}]:{wanted.port}" if ":" in wanted.host else f"{wanted.host}:{wanted.port}"
        )
        """HOST:PORT; of port 0 until it has started once"""

    @property
    def url(self) -> str:
        """The page's URL."""
        return f"{'http' if self._wanted.certificate is None else 'https'}://{self.address}"

    def know_nodes(self, nodes: Mapping[str, LoginServer]) -> None:
        """Sends new and changed nodes to the process, and to those that replace it."""
        with self._lock:
            self._wanted = replace(self._wanted, nodes={**self._wanted.nodes, **nodes})
            if self._input is not None:
                # a process that has just ended is started again with all nodes
                with suppress(BrokenPipeError, ValueError):
                    self._input.write(nodes_to_json(nodes))

    def send_settings(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        with self._lock:
            self._sent = self._wanted.nodes
            process.stdin.write(self._wanted.to_json())

    def serves(self, process: "subprocess.Popen[bytes]", address: str) -> None:
        with self._lock:
            self.address = address
            self._input = process.stdin
            self._wanted = replace(self._wanted, port=int(address.rpartition(":")[2]))
            later = {
                name: server for name, server in self._wanted.nodes.items() if self._sent.get(name) != server
            }
        if later:
            self.know_nodes(later)
