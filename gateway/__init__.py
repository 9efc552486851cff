"""The TDS server in front of PostgreSQL, for legacy clients."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from psycopg.conninfo import conninfo_to_dict

from ringlog.gateway._core import (
    BcpFile,
    OldServer,
    OldServerError,
    PbError,
    PbFile,
    Server,
    TsqlError,
    bin_starts,
    charset_name,
    combine,
    decode_text,
    self_signed,
    start_log,
    summarise,
    translate,
    unpack_numbers,
    whole_figures,
)
from ringlog.gateway._core import Mirror as _Mirror

__all__ = [
    "BcpFile",
    "Gateway",
    "LastCall",
    "LastError",
    "Mirror",
    "OldServer",
    "OldServerError",
    "PbError",
    "PbFile",
    "Tls",
    "TsqlError",
    "bin_starts",
    "charset_name",
    "combine",
    "decode_text",
    "self_signed",
    "start_log",
    "summarise",
    "translate",
    "unpack_numbers",
    "whole_figures",
]


@dataclass(frozen=True)
class Tls:
    """How the gateway encrypts: PEM files of a certificate (with its chain) and its key.

    With `required` nobody logs in without TLS; otherwise clients that do not ask for it go on in the clear.
    """

    certificate: Path
    key: Path
    required: bool


@dataclass(frozen=True)
class LastError:
    """The error that a procedure answered last. `at` is in seconds since 1970."""

    at: float
    number: int
    text: str


@dataclass(frozen=True)
class LastCall:
    """The last call of a procedure: host and program as the client calls them. `called` is in seconds since
    1970; `error` may be of an earlier call."""

    procedure: str
    host: str
    program: str
    login: str
    called: float
    error: LastError | None


class Gateway:
    """A running TDS server. It listens from construction on and serves until `stop`.

    `postgres` is a libpq connection string for the gateway's own role (host, port, dbname, user,
    password, sslmode, sslrootcert, target_session_attrs). Client logins go to the same host, port and
    dbname, by TLS in the same way, with the client's own user and password. Of several hosts the one that
    takes changes is used, whichever it is at the time. `port` 0 takes a free port.

    Raises OSError when the address cannot be listened on, ValueError for a connection string that
    says too little or too much and for a certificate or key that cannot be used, ConnectionError when
    PostgreSQL refuses the gateway's own login.

    With `writers_first` the threads that take writers' calls and PostgreSQL's processes that commit them
    get the processor before everything else, as far as this process may: the latter where they are on this
    machine. `postmaster` is the process id of PostgreSQL's first process, which a Unix socket reports too.

    `nodes` are other servers, by name, each a connection string like `postgres`: a procedure that the table
    `ringlog.stand_in` names is called there. They are connected when they are first needed.

    A quarter of the sessions, and of PostgreSQL's connections, is for members of the roles `reserved_for`.
    """

    def __init__(
        self,
        postgres: str,
        host: str = "127.0.0.1",
        port: int = 5000,
        tls: Tls | None = None,
        *,
        postmaster: int | None = None,
        writers_first: bool = True,
        nodes: Mapping[str, str] | None = None,
        reserved_for: Sequence[str] = (),
    ) -> None:
        (hosts, read_write, sslmode, sslrootcert, database), role, password = _server(postgres)
        self._server = Server(
            postgres=hosts,
            read_write=read_write,
            sslmode=sslmode,
            sslrootcert=sslrootcert,
            database=database,
            role=role,
            password=password,
            host=host,
            port=port,
            reserved_for=list(reserved_for),
            nodes=_nodes(nodes or {}),
            tls=None if tls is None else (tls.certificate, tls.key, tls.required),
            postmaster=postmaster,
            writers_first=writers_first,
        )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port it listens on."""
        return self._server.address

    def metrics(self) -> str:
        """The gateway's metrics, as OpenMetrics text."""
        return self._server.metrics()

    def reload_tls(self) -> None:
        """Reads certificate and key again, for connections that begin from now on. Raises ValueError; then
        those from before stay in use."""
        self._server.reload_tls()

    def know_nodes(self, nodes: Mapping[str, str]) -> None:
        """Makes nodes known that are new, or elsewhere than those of these names were; others stay.
        Raises ValueError."""
        self._server.know_nodes(_nodes(nodes))

    def last_calls(self) -> list[LastCall]:
        """The last call of each procedure that was called since the start, by schema.name."""
        return [
            LastCall(name, *caller, called, None if error is None else LastError(*error))
            for name, caller, called, error in self._server.last_calls()
        ]

    def stop(self) -> None:
        """Ends the sessions after their running call and releases the port."""
        self._server.stop()


class Mirror:
    """Passes clients to one of two servers, and compares what the other one answers.

    `old` and `new` are host:port; `report` is the file for differences. It listens from construction on and
    serves until `stop`. Raises OSError when the address cannot be listened on, or the report not written.
    """

    def __init__(self, host: str, port: int, old: str, new: str, report: Path) -> None:
        self._mirror = _Mirror(host=host, port=port, old=old, new=new, report=report)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port it listens on."""
        return self._mirror.address

    @property
    def new_answers(self) -> bool:
        """Whether clients that connect now are answered by the new server."""
        return self._mirror.new_answers

    def switch(self, to: Literal["old", "new"], *, close: bool = False) -> None:
        """Clients that connect from now on are answered by that server; `close` ends idle sessions."""
        self._mirror.switch(to == "new", close)

    def metrics(self) -> str:
        """The mirror's metrics, as OpenMetrics text."""
        return self._mirror.metrics()

    def stop(self) -> None:
        """Ends all sessions and releases the port."""
        self._mirror.stop()


_Servers: TypeAlias = tuple[list[tuple[str, int]], bool, str, Path | None, str]
"""hosts with their ports, whether only one that takes changes will do, sslmode, sslrootcert, database"""


def _nodes(nodes: Mapping[str, str]) -> list[tuple[str, _Servers, str, str]]:
    return [(name, *_server(conninfo)) for name, conninfo in nodes.items()]


def _server(conninfo: str) -> tuple[_Servers, str, str]:
    """The servers, the role and the password of a connection string. Raises ValueError."""
    settings = {key: str(value) for key, value in conninfo_to_dict(conninfo).items() if value is not None}
    missing = [key for key in ("host", "dbname", "user", "password") if key not in settings]
    if missing:
        raise ValueError(f"the gateway's connection string lacks {', '.join(missing)}")
    servers = (_hosts(settings), _read_write(settings), *_encryption(settings), settings["dbname"])
    return servers, settings["user"], settings["password"]


def _hosts(settings: Mapping[str, str]) -> list[tuple[str, int]]:
    """Hosts and their ports: one port for each, or one for all, as libpq has it. Raises ValueError."""
    hosts = settings["host"].split(",")
    ports = (settings.get("port") or "5432").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    if len(ports) != len(hosts) or "" in hosts:
        raise ValueError(f"the connection string has {len(hosts)} hosts and {len(ports)} ports")
    return [(host, int(port or "5432")) for host, port in zip(hosts, ports, strict=True)]


def _read_write(settings: Mapping[str, str]) -> bool:
    """Whether only a server that takes changes will do. Raises ValueError for a wish that is not served."""
    wanted = settings.get("target_session_attrs") or "any"
    if wanted not in ("any", "read-write", "primary"):
        raise ValueError(
            f"target_session_attrs={wanted}: the gateway writes, and needs read-write (or primary, or any)"
        )
    return wanted != "any"


_UNSERVED = {
    "sslcrl": None,
    "sslcrldir": None,
    "sslnegotiation": "postgres",
    "channel_binding": "prefer",
}
"""settings of libpq that would make TLS stricter, with the value that asks for nothing more"""


def _encryption(settings: Mapping[str, str]) -> tuple[str, Path | None]:
    """sslmode and the file of trusted certificates, found as libpq finds them.

    Raises ValueError for a setting that the gateway would have to leave out.
    """
    for name, harmless in _UNSERVED.items():
        if settings.get(name) not in (None, "", "disable", harmless):
            raise ValueError(f"the gateway cannot keep to {name}={settings[name]} of the connection string")
    mode = settings.get("sslmode") or os.environ.get("PGSSLMODE") or "prefer"
    given = settings.get("sslrootcert") or os.environ.get("PGSSLROOTCERT")
    if given == "system":
        raise ValueError("sslrootcert=system is not understood: name the file of certificates to trust")
    usual = Path.home() / ".postgresql" / "root.crt"
    if given:
        return mode, Path(given)
    return mode, usual if usual.exists() else None
