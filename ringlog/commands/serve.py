"""The commands `ringlog serve` and `ringlog web`."""

import logging
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict

from ringlog.clients.password import only_line
from ringlog.commands.machines.cert import TlsUse, chosen_tls
from ringlog.commands.options import Data, Dsn, Programs, logging_command
from ringlog.errors import UsageError
from ringlog.loader.cli import option
from ringlog.nodes.everywhere import nodes_followed
from ringlog.nodes.servers import nodes_of, reached
from ringlog.schema.facility_files.facility_file import FacilityError
from ringlog.server.database import Embedded, External, chosen_database
from ringlog.server.embedded.postgres import Stopped
from ringlog.server.embedded.settings import parse_memory
from ringlog.server.processes.descriptors import raise_file_limit
from ringlog.server.processes.installer import Installer
from ringlog.server.processes.stopping import hang_ups, stop_at_signals
from ringlog.server.processes.web import Web, demand_parts, login_servers, warn_of_role
from ringlog.server.processes.web import settings as web_settings
from ringlog.server.server import Address, Http, Server

log = logging.getLogger(__name__)

_FacilityFile = Annotated[
    Path | None,
    option(
        "--facility",
        metavar="FILE",
        help="Facility file (TOML). Default: the tables that are already installed.",
    ),
]
_HttpRole = Annotated[
    str | None,
    option(
        "--http-role",
        metavar="ROLE",
        help="Login for HTTP requests without one. Default: such requests are refused.",
    ),
]

_Listen = Annotated[
    str, typer.Option(metavar="HOST:PORT", help=("Address that TDS clients connect to. Port 0: a free one."))
]
_PgPort = Annotated[
    int | None,
    option(
        "--pg-port",
        metavar="PORT",
        min=1,
        max=65535,
        help=(
            "TCP port of the embedded PostgreSQL. Default: the one used last; at the first start a free one."
        ),
    ),
]
_Memory = Annotated[
    str | None,
    option(
        metavar="SIZE",
        help=("Memory that the embedded PostgreSQL is configured for, as 8GB. Default: all of this machine."),
    ),
]
_Metrics = Annotated[
    str | None,
    option(
        metavar="HOST:PORT", help="Address of the gateway's metrics for Prometheus (/metrics). Default: none."
    ),
]
_Http = Annotated[
    str | None,
    option(
        metavar="HOST:PORT",
        help=(
            "Address for reading over HTTP: a page, the Archiver Appliance's API, a plain API. With "
            "--tls-cert it is HTTPS. Default: none."
        ),
    ),
]
_TlsCert = Annotated[
    Path | None,
    option(
        "--tls-cert",
        metavar="FILE",
        help="Certificate for TLS, with its chain (PEM). Default: no TLS. `ringlog cert` makes one.",
    ),
]
_TlsKey = Annotated[Path | None, option("--tls-key", metavar="FILE", help="The certificate's key (PEM).")]
_Tls = Annotated[
    TlsUse | None,
    typer.Option("--tls", show_default=False, help="Whether clients may or must use TLS. Default: offered."),
]
_GatewayPasswordFile = Annotated[
    Path | None,
    option(
        "--gateway-password-file",
        metavar="FILE",
        help=(
            "File whose first line is the password of the gateway's own role: the same for all "
            "gateways of one database. Default: a new password at each start, which is not stored."
        ),
    ),
]
_WritersFirst = Annotated[
    bool,
    typer.Option(
        "--writers-first/--writers-equal",
        help=(
            "Whether threads and processes that handle writers' calls have priority over all others "
            "(nice -10 and short time slices), as far as this account may set it."
        ),
    ),
]


@logging_command
def serve(
    facility: _FacilityFile = None,
    data: Data = None,
    dsn: Dsn = None,
    postgres: Programs = None,
    listen: _Listen = "127.0.0.1:5000",
    pg_port: _PgPort = None,
    memory: _Memory = None,
    metrics: _Metrics = None,
    http: _Http = None,
    http_role: _HttpRole = None,
    tls_cert: _TlsCert = None,
    tls_key: _TlsKey = None,
    tls: _Tls = None,
    gateway_password_file: _GatewayPasswordFile = None,
    writers_first: _WritersFirst = True,
) -> None:
    """Run the server until Ctrl-C or SIGTERM: PostgreSQL, the facility's tables, the TDS gateway."""
    database = chosen_database(data, dsn, postgres)
    address = Address.parse(listen)
    counts = None if metrics is None else Address.parse(metrics)
    encryption = chosen_tls(tls_cert, tls_key, tls)
    reading = chosen_http(http, http_role, tls_cert, tls_key)
    size = None if memory is None else parse_memory(memory)
    password = None if gateway_password_file is None else only_line(gateway_password_file)
    if not isinstance(database, Embedded) and (pg_port is not None or memory is not None):
        raise UsageError("--pg-port and --memory are for the embedded PostgreSQL, not for --dsn")
    if facility is None and isinstance(database, Embedded):
        # a cluster of another version may be under upgrade: the start checks the version
        database.postgres.demand(any_version=True)
    if not address.is_loopback and not (encryption and encryption.required):
        log.warning(
            "listening on %s: every machine that can connect can try passwords, and TDS sends passwords "
            "and data unencrypted",
            address,
        )
    if isinstance(database, Embedded) and not database.postgres.exists:
        # else another server of this data may have them, which the start names
        for option, where in (
            ("--listen", address),
            ("--metrics", counts),
            ("--http", None if reading is None else reading.listen),
        ):
            if where is not None:
                where.demand_free(option)
        if pg_port is not None:
            Address("127.0.0.1", pg_port).demand_free("--pg-port")
    installer = None if facility is None else _installer_of(facility, database)
    raise_file_limit()
    stop = stop_at_signals()
    hang_up = hang_ups()
    try:
        server = Server(
            database,
            installer,
            address,
            stop=stop,
            hang_up=hang_up,
            memory=size,
            port=pg_port,
            metrics=counts,
            tls=encryption,
            http=reading,
            gateway_password=password,
            writers_first=writers_first,
        )
        with server:
            _announce(server, database, data)
            server.wait()
    except Stopped:
        pass
    print("stopped", flush=True)


def chosen_http(
    listen: str | None, role: str | None, certificate: Path | None, key: Path | None
) -> Http | None:
    """The meaning of --http and --http-role. Raises UsageError when they cannot be fulfilled."""
    if listen is None:
        if role is not None:
            raise UsageError("--http-role needs --http HOST:PORT")
        return None
    demand_parts()
    http = Http(Address.parse(listen), role, certificate, key)
    if not http.listen.is_loopback and certificate is None and role is None:
        log.warning("HTTP on %s sends passwords unencrypted: use --tls-cert and --tls-key", http.listen)
    return http


@logging_command
def web(
    http: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address to listen on. Port 0: a free one.")
    ] = "127.0.0.1:8080",
    http_role: _HttpRole = None,
    tls_cert: Annotated[
        Path | None, option("--tls-cert", metavar="FILE", help="Certificate for HTTPS (PEM).")
    ] = None,
    tls_key: Annotated[
        Path | None, option("--tls-key", metavar="FILE", help="The certificate's key (PEM).")
    ] = None,
    dsn: Dsn = None,
) -> None:
    """Serve HTTP for a PostgreSQL on another machine, until Ctrl-C, as `ringlog serve --http` does.

    The connection string names the database; each client reads under its own login. With --http-role,
    clients without a login read under the connection string's login, which must be that role or a member
    of it.
    """
    database = chosen_database(None, dsn)
    if isinstance(database, Embedded):
        raise UsageError(
            "name the database with --dsn or RINGLOG_DSN; beside an embedded one: ringlog serve --http"
        )
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("--tls-cert and --tls-key must be given together")
    chosen = chosen_http(http, http_role, tls_cert, tls_key)
    assert chosen is not None
    nodes: dict[str, tuple[str, str]] | None
    try:
        warn_of_role(database.conninfo, http_role)
        nodes = nodes_of(reached(database.conninfo))
    except psycopg.Error as error:
        # only the administrator may read the nodes' addresses: for others a request for a node is refused. If
        # PostgreSQL does not answer, it is tried again.
        nodes = None if isinstance(error, psycopg.errors.InsufficientPrivilege) else {}
    wanted = web_settings(
        chosen.listen.host,
        chosen.listen.port,
        database.conninfo,
        role=http_role,
        certificate=tls_cert,
        key=tls_key,
        nodes=nodes,
    )
    stop = stop_at_signals()
    with ExitStack() as stack:
        running = stack.enter_context(Web(wanted).running())
        if nodes is not None:

            def add(new: Mapping[str, tuple[str, str]]) -> None:
                running.know_nodes(login_servers(new, http_role))

            stack.enter_context(nodes_followed(database.conninfo, nodes, add, looked_after=False))
        print(f"HTTP on {running.url}\n  stop: Ctrl-C", flush=True)
        stop.wait()
    print("stopped", flush=True)


def _installer_of(file: Path, database: Embedded | External) -> Installer | None:
    """The installer of a facility file. None, and a logged error, for an invalid file if a facility is
    installed: a machine that restarts at night must not stay down because of a typing error.
    """
    is_new = isinstance(database, Embedded) and not database.postgres.exists
    try:
        installer = Installer(file)
    except FacilityError as error:
        if is_new:
            raise
        log.error("%s\nTHE FACILITY FILE IS NOT USED: the server continues with the installed tables", error)
        return None
    if is_new:
        # else the file is checked while PostgreSQL starts
        installer.check(threading.Event())
    return installer


def _announce(server: Server, database: object, data: Path | None) -> None:
    """Prints the addresses of the server, and the next steps."""
    where = "" if data is None else f" --data {data}"
    host, port = server.address.host, server.address.port
    lines = []
    if report := server.installed:
        lines.append(f"facility: {len(report.created)} objects created, {len(report.changed)} changed")
    if isinstance(database, Embedded):
        lines.append(f"PostgreSQL on 127.0.0.1:{conninfo_to_dict(server.conninfo)['port']}")
    lines.append(f"TDS on {server.address}")
    if server.metrics is not None:
        lines.append(f"metrics on http://{server.metrics}/metrics")
    if server.http is not None:
        lines.append(f"HTTP on {server.http}")
    lines.append(f"  add a login:   ringlog user add NAME --writer{where}")
    lines.append(f"  call:          tsql -H {host} -p {port} -U NAME")
    if isinstance(database, Embedded):
        lines.append(f'  query:         psql "$(ringlog dsn{where})"')
    lines.append("  stop:          Ctrl-C")
    print("\n".join(lines), flush=True)
