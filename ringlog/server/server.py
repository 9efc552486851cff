"""The server: PostgreSQL, the gateway in front of it and the housekeeping, started and stopped as one."""

import ipaddress
import logging
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog.clients import listening
from ringlog.errors import ServerError, UsageError
from ringlog.gateway import Gateway, Tls
from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.history.memory import give_back_memory
from ringlog.monitoring.callers import callers_kept
from ringlog.monitoring.exported import Watch
from ringlog.monitoring.metrics import served, together
from ringlog.monitoring.presence import present
from ringlog.nodes.everywhere import nodes_followed
from ringlog.nodes.servers import known_by_gateway, nodes_of
from ringlog.schema import session
from ringlog.schema.facility_files.facility_file import FacilityError
from ringlog.schema.installing.install import InstallRefused, InstallReport, bring_up_to_date
from ringlog.schema.session import engine
from ringlog.server import certificates
from ringlog.server.captures import captures_copied
from ringlog.server.database import Embedded, External, demand_facility
from ringlog.server.embedded import releases
from ringlog.server.embedded.account import give_archive
from ringlog.server.embedded.settings import machine_memory
from ringlog.server.guards.direct import direct_connections_limited
from ringlog.server.guards.disk import full_disk_named
from ringlog.server.guards.lock_table import locks_kept_for_writers
from ringlog.server.guards.low_disk import disk_kept_for_writers
from ringlog.server.guards.low_memory import memory_limited
from ringlog.server.guards.server_log import server_log_limited
from ringlog.server.guards.storing import forbid_storing
from ringlog.server.guards.temporary import bytes_allowed, temporary_files_limited
from ringlog.server.guards.transaction_numbers import transaction_numbers_kept
from ringlog.server.housekeeping import housekeeping
from ringlog.server.logins import GATEWAY, Right, set_gateway_password
from ringlog.server.processes import web
from ringlog.server.processes.archive_server import ArchiveServers, archive_server
from ringlog.server.processes.cancelling import cancelled_at
from ringlog.server.processes.installer import Installer
from ringlog.server.processes.supervised import State

log = logging.getLogger(__name__)

_NO_SPACE = 1105  # the number of PostgreSQL's error disk_full
_RECENT = 30.0  # seconds in which a failed call is shown


@dataclass(frozen=True)
class Address:
    """An address to listen on: a host name or IP address, and a port (0: a free one)."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Reads HOST:PORT, with an IPv6 address in brackets."""
        where = listening.host_and_port(text)
        if where is None:
            raise UsageError(f"{text!r} is not an address to listen on: write HOST:PORT, as 127.0.0.1:5000")
        return cls(*where)

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def demand_free(self, option: str) -> None:
        """Raises ServerError if this process cannot listen on it, as `option` asks for."""
        try:
            listening.free(self.host, self.port)
        except OSError as error:
            raise self.refused(error, option) from None

    def refused(self, error: OSError, option: str) -> ServerError:
        """The error of a server that cannot listen on it."""
        return ServerError(
            f"cannot listen on {self}: {error.strerror or error}. Name another address with {option}"
        )


@dataclass(frozen=True)
class Http:
    """Retrieval over HTTP: its address, the role of requests without a login, the certificate."""

    listen: Address
    role: str | None = None
    """role of PostgreSQL for requests without a login; None refuses them"""
    certificate: Path | None = None
    key: Path | None = None


class Server:
    """A running server. Use it in a with statement; leaving that stops everything, PostgreSQL last.

    `installer` None uses the installed tables. `memory` and `port` are Postgres.running's. With
    `writers_first` the threads and processes for writers' calls get the processor first, as far as permitted.
    Raises ServerError for problems that an operator can fix, Stopped if `stop` was set before it was ready.
    """

    address: Address
    conninfo: str
    installed: InstallReport | None
    metrics: Address | None = None
    http: str | None = None
    """URL of retrieval, when it runs"""

    def __init__(
        self,
        database: Embedded | External,
        installer: Installer | None,
        listen: Address,
        *,
        stop: threading.Event,
        hang_up: threading.Event | None = None,
        memory: int | None = None,
        port: int | None = None,
        metrics: Address | None = None,
        tls: Tls | None = None,
        http: Http | None = None,
        gateway_password: str | None = None,
        writers_first: bool = True,
    ) -> None:
        self._database = database
        self._installer = installer
        self._listen = listen
        self._stop = stop
        self._hang_up = hang_up or threading.Event()
        self._memory = memory
        self._port = port
        self._metrics = metrics
        self._tls = tls
        self._http = http
        self._gateway_password = gateway_password
        self._writers_first = writers_first
        self._postgres: subprocess.Popen[bytes] | None = None
        self._gateway: Gateway | None = None
        self._web: web.Web | None = None
        self._archive: ArchiveServers | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "Server":
        with ExitStack() as stack:
            if isinstance(self._database, Embedded):
                stack.enter_context(full_disk_named(self._database.data))
            if self._installer is not None:
                stack.callback(self._installer.end)
            begun = None if self._http is None else web.Web.begin(stack)
            self.conninfo = self._start_postgres(stack)
            with session.connect(self.conninfo) as connection:
                if old := releases.outdated(connection.info.server_version):
                    log.warning("%s; ringlog doctor says how to get them", old)
                temporary = bytes_allowed(connection)
            administrator = engine(self.conninfo)
            stack.callback(administrator.dispose)
            self.installed = self._install(administrator)
            if isinstance(self._database, Embedded):
                cluster = self._database.postgres.cluster
                stack.enter_context(temporary_files_limited(self.conninfo, cluster, temporary))
                stack.enter_context(direct_connections_limited(self.conninfo, self._processes))
                stack.enter_context(server_log_limited(self.conninfo, cluster))
                stack.enter_context(disk_kept_for_writers(self.conninfo, cluster))
                stack.enter_context(transaction_numbers_kept(self.conninfo))
                stack.enter_context(locks_kept_for_writers(self.conninfo))
                memory = self._memory or machine_memory()
                stack.enter_context(memory_limited(self.conninfo, memory))
            data = self._database.data if isinstance(self._database, Embedded) else None
            stack.enter_context(captures_copied(self.conninfo, data))
            begin_housekeeping = stack.enter_context(housekeeping(administrator, self.conninfo))
            nodes = nodes_of(self.conninfo)
            login = self._gateway_login()
            gateway = self._gateway = self._start_gateway(stack, login, nodes)
            self.address = Address(*gateway.address)
            running = None
            if self._http is not None:
                running = self._web = self._start_web(stack, login, self._http, nodes, begun)
                self.http = running.url
            data = self._database.data if isinstance(self._database, Embedded) else None
            self._archive = stack.enter_context(archive_server(administrator, data))
            role = None if self._http is None else self._http.role

            def add(new: Mapping[str, tuple[str, str]]) -> None:
                gateway.know_nodes(known_by_gateway(new))
                if running is not None:
                    running.know_nodes(web.login_servers(new, role))

            stack.enter_context(nodes_followed(self.conninfo, nodes, add))
            stack.enter_context(present(self.conninfo, self._trouble))
            begin_housekeeping(self._stop)
            self._stack = stack.pop_all()
        give_back_memory()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _processes(self) -> list[int]:
        """Ringlog's processes that connect to PostgreSQL in the name of logins."""
        return [os.getpid(), *(() if self._web is None else (self._web.pid,))]

    def _trouble(self) -> str:
        """Calls that fail because PostgreSQL lacks disk, which it may not be able to store itself; and the
        states of the other processes, those that are down first; empty: there are none."""
        calls = [] if self._gateway is None else self._gateway.last_calls()
        recent = [call.error for call in calls if call.error and time.time() - call.error.at < _RECENT]
        full = f"calls fail by error {_NO_SPACE}" if any(e.number == _NO_SPACE for e in recent) else ""
        states = sorted(self._states(), key=lambda state: state.up)
        return "; ".join(filter(None, [full, *map(str, states)]))

    def _states(self) -> list[State]:
        beside = (self._web, self._archive)
        return [state for each in beside if each is not None and (state := each.state) is not None]

    def wait(self) -> None:
        """Serves until `stop` is set. Raises ServerError when PostgreSQL ends by itself."""
        while not self._stop.wait(0.5):
            if self._postgres is not None and self._postgres.poll() is not None:
                raise ServerError(
                    "PostgreSQL has ended unexpectedly: see its log in the data directory for the reason"
                )

    def _start_postgres(self, stack: ExitStack) -> str:
        if isinstance(self._database, External):
            return stack.enter_context(self._database.opened())
        postgres = self._database.postgres
        give_archive(self._database.data)
        tables = 0 if self._installer is None else self._installer.tables
        running = postgres.running(memory=self._memory, port=self._port, tables=tables, stop=self._stop)
        self._postgres = stack.enter_context(running)
        postgres.make_database()
        forbid_storing(postgres.conninfo())
        return postgres.conninfo()

    def _install(self, administrator: sqlalchemy.Engine) -> InstallReport | None:
        if self._installer is not None:
            try:
                return self._installer.install(self.conninfo, self._stop)
            except (FacilityError, InstallRefused) as error:
                if not sqlalchemy.inspect(administrator).has_table("logged_table", "ringlog"):
                    raise
                log.error(
                    "%s\nTHE FACILITY FILE IS NOT USED: the server continues with the installed tables", error
                )
        demand_facility(self.conninfo)
        # another change may hold its locks for a long time
        with cancelled_at(self._stop, administrator):
            return bring_up_to_date(administrator, [install_tsql])

    def _gateway_login(self) -> str:
        """The connection string of the role that acts for clients."""
        with session.connect(self.conninfo) as connection:
            info = connection.info
            # never the embedded server's socket: there PostgreSQL would identify every client of the gateway
            # as the administrator
            is_embedded = self._postgres is not None
            host, port = ("127.0.0.1" if is_embedded else info.host), str(info.port)
            named = conninfo_to_dict(self.conninfo)
            if "," in str(named.get("host")):
                host, port = str(named["host"]), str(named.get("port", ""))
            return make_conninfo(
                self.conninfo,
                host=host,
                port=port,
                dbname=info.dbname,
                user=GATEWAY,
                password=set_gateway_password(self.conninfo, self._gateway_password),
                **({"sslmode": "disable"} if is_embedded else {}),
            )

    def _start_web(
        self,
        stack: ExitStack,
        login: str,
        http: Http,
        nodes: Mapping[str, tuple[str, str]],
        begun: "subprocess.Popen[bytes] | None",
    ) -> web.Web:
        web.warn_of_role(self.conninfo, http.role)
        wanted = web.settings(
            http.listen.host,
            http.listen.port,
            login,
            role=http.role,
            certificate=http.certificate,
            key=http.key,
            data=self._database.data if isinstance(self._database, Embedded) else None,
            nodes=nodes,
        )
        return stack.enter_context(web.Web(wanted, begun).running())

    def _start_gateway(self, stack: ExitStack, login: str, nodes: Mapping[str, tuple[str, str]]) -> "Gateway":
        try:
            gateway = Gateway(
                login,
                self._listen.host,
                self._listen.port,
                self._tls,
                postmaster=None if self._postgres is None else self._postgres.pid,
                writers_first=self._writers_first,
                nodes=known_by_gateway(nodes),
                reserved_for=(Right.WRITER.value, Right.TABLE_WRITER.value, Right.PARAMETER_WRITER.value),
            )
        except ConnectionError as error:
            raise ServerError(f"the gateway cannot log in to PostgreSQL: {error}") from None
        except ValueError as error:
            raise ServerError(f"the gateway cannot start: {error}") from None
        except OSError as error:
            raise self._listen.refused(error, "--listen") from None
        stack.callback(gateway.stop)
        if self._tls is not None:
            stack.enter_context(certificates.renewed(gateway, self._tls, self._hang_up))
        stack.enter_context(callers_kept(gateway, self.conninfo))
        if self._metrics is not None:
            self.metrics = self._serve_metrics(stack, gateway, self._metrics)
        return gateway

    def _serve_metrics(self, stack: ExitStack, gateway: "Gateway", where: Address) -> Address:
        watch = Watch(self.conninfo, self._database.data if isinstance(self._database, Embedded) else None)

        def text() -> str:
            beside = (state.metrics for state in self._states())
            certificate = "" if self._tls is None else certificates.metrics_of(self._tls.certificate)
            return together(watch.text(), *beside, certificate, gateway.metrics())

        try:
            counts = served(text, watch.ready, where.host, where.port)
            return Address(*stack.enter_context(counts))
        except OSError as error:
            raise where.refused(error, "--metrics") from None
