"""The command `ringlog`."""

import getpass
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import psycopg
import sqlalchemy.exc
import typer
from psycopg.conninfo import conninfo_to_dict

from ringlog import report as reports
from ringlog.certificate import TlsUse, cert, chosen_tls
from ringlog.database import Embedded, chosen_database, demand_facility, engine
from ringlog.demo import demo
from ringlog.errors import ServerError, UsageError
from ringlog.gateway.tsql.install import install as install_tsql
from ringlog.loader.command import load, reload
from ringlog.loadtest.bench.command import bench
from ringlog.loadtest.paper.command import app as loadtest_app
from ringlog.logins import TDS5_LIMIT, Right, add_login
from ringlog.postgres import Postgres, Stopped
from ringlog.schema.facility import FacilityError, load_facility
from ringlog.schema.install import InstallRefused, install
from ringlog.schema.partitions import maintain as maintain_partitions
from ringlog.server import Address, Server
from ringlog.settings import parse_memory

app = typer.Typer(
    help="A data logger: writers call stored procedures over TDS, the data lives in PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
user = typer.Typer(help="Logins.", no_args_is_help=True)
facility_app = typer.Typer(help="Facility files.", no_args_is_help=True)
app.add_typer(user, name="user")
app.add_typer(facility_app, name="facility")
report_app = typer.Typer(help="What became of the rows.", no_args_is_help=True)
app.add_typer(report_app, name="report")
app.add_typer(loadtest_app, name="loadtest")

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        show_default=False,
        help="Data directory of the embedded PostgreSQL. Default: $RINGLOG_DATA, else /var/lib/ringlog for "
        "root and ~/.local/share/ringlog for others.",
    ),
]
Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        metavar="DSN",
        show_default=False,
        help="Connection string of a PostgreSQL of your own (15 or later), as its administrator. "
        "Default: $RINGLOG_DSN.",
    ),
]
FacilityFile = Annotated[Path, typer.Option("--facility", metavar="FILE", help="Facility file (TOML).")]
OptionalFacilityFile = Annotated[
    Path | None,
    typer.Option(
        "--facility",
        metavar="FILE",
        show_default=False,
        help="Facility file (TOML). Default: what is installed already.",
    ),
]


@app.command()
def serve(
    facility: OptionalFacilityFile = None,
    data: Data = None,
    dsn: Dsn = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where TDS clients connect. Port 0: a free one.")
    ] = "127.0.0.1:5000",
    pg_port: Annotated[
        int | None,
        typer.Option(
            "--pg-port",
            metavar="PORT",
            min=1,
            max=65535,
            show_default=False,
            help="TCP port of the embedded PostgreSQL. Default: the one used before, at first a free one.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            show_default=False,
            help="Memory the embedded PostgreSQL plans with, as 8GB. Default: all of this machine.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            show_default=False,
            help="Where Prometheus reads the gateway's counts (/metrics). Default: nowhere.",
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert",
            metavar="FILE",
            show_default=False,
            help="Certificate for TLS, with its chain (PEM). Default: no TLS. `ringlog cert` makes one.",
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option("--tls-key", metavar="FILE", show_default=False, help="The certificate's key (PEM)."),
    ] = None,
    tls: Annotated[
        TlsUse | None,
        typer.Option(
            "--tls", show_default=False, help="Whether clients may or must use TLS. Default: offered."
        ),
    ] = None,
) -> None:
    """Run the server until Ctrl-C or SIGTERM: PostgreSQL, the facility's tables, the TDS gateway."""
    database = chosen_database(data, dsn)
    address = Address.parse(listen)
    counts = None if metrics is None else Address.parse(metrics)
    encryption = chosen_tls(tls_cert, tls_key, tls)
    size = None if memory is None else parse_memory(memory)
    loaded = None if facility is None else load_facility(facility)
    if not isinstance(database, Embedded) and (pg_port is not None or memory is not None):
        raise UsageError("--pg-port and --memory are for the embedded PostgreSQL, not for --dsn")
    if facility is None and isinstance(database, Embedded):
        Postgres(database.data).demand()
    if not address.is_loopback and not (encryption and encryption.required):
        _warn(
            f"listening on {address}: every machine that reaches it can try passwords, and TDS carries them "
            "and the data unencrypted"
        )
    stop = _stop_at_signals()
    try:
        with Server(
            database,
            loaded,
            address,
            stop=stop,
            memory=size,
            port=pg_port,
            metrics=counts,
            tls=encryption,
        ) as server:
            _announce(server, database, data)
            server.wait()
    except Stopped:
        pass
    print("stopped", flush=True)


def _announce(server: Server, database: object, data: Path | None) -> None:
    """Says what listens where, and what a person may do next."""
    where = "" if data is None else f" --data {data}"
    host, port = server.address.host, server.address.port
    lines = []
    if report := server.installed:
        lines.append(f"facility: {len(report.created)} things created, {len(report.changed)} changed")
    if isinstance(database, Embedded):
        lines.append(f"PostgreSQL on 127.0.0.1:{conninfo_to_dict(server.conninfo)['port']}")
    lines.append(f"TDS on {server.address}")
    if server.metrics is not None:
        lines.append(f"metrics on http://{server.metrics}/metrics")
    lines.append(f"  make a login:  ringlog user add NAME --writer{where}")
    lines.append(f"  call:          tsql -H {host} -p {port} -U NAME")
    if isinstance(database, Embedded):
        lines.append(f'  look inside:   psql "$(ringlog dsn{where})"')
    lines.append("  stop:          Ctrl-C")
    print("\n".join(lines), flush=True)


@app.command()
def init(facility: FacilityFile, data: Data = None, dsn: Dsn = None) -> None:
    """Install a facility, or what its file has gained since; a second run changes nothing."""
    database = chosen_database(data, dsn)
    loaded = load_facility(facility)
    with database.opened(make=True) as conninfo:
        print(install(engine(conninfo), loaded, [install_tsql]))


@app.command()
def maintain(data: Data = None, dsn: Dsn = None) -> None:
    """Make the log's coming weeks and drop those past retention. A running server does this hourly."""
    with chosen_database(data, dsn).opened() as conninfo:
        demand_facility(conninfo)
        print(maintain_partitions(engine(conninfo)))


@app.command()
def dsn(data: Data = None) -> None:
    """Print the administrator's connection string, for psql "$(ringlog dsn)" and every PostgreSQL tool."""
    database = chosen_database(data, None)
    if not isinstance(database, Embedded):
        raise UsageError("RINGLOG_DSN names a PostgreSQL of your own; its connection string is that variable")
    postgres = Postgres(database.data)
    postgres.demand()
    if postgres.postmaster() is None:
        _warn(f"PostgreSQL in {postgres.data} is not running: start it with ringlog serve")
    print(postgres.conninfo())


@user.command("add")
def user_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new login.")],
    writer: Annotated[bool, typer.Option("--writer", help="It may call put procedures.")] = False,
    reader: Annotated[bool, typer.Option("--reader", help="It may call get procedures and select.")] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Make a login for writers or readers. The server may run meanwhile."""
    if writer == reader:
        raise UsageError("say what the login is for: --writer or --reader")
    database = chosen_database(data, dsn)
    password = _piped_password() if password_stdin else _typed_password(name)
    with database.opened() as conninfo:
        demand_facility(conninfo)
        add_login(conninfo, name, Right.WRITER if writer else Right.READER, password)
    print(f"login {name} added as a {'writer' if writer else 'reader'}")
    if len(name.encode()) > TDS5_LIMIT or len(password.encode()) > TDS5_LIMIT:
        _warn(f"TDS 5.0 clients cannot log in as {name}: they send {TDS5_LIMIT} bytes of name and password")


@report_app.command("losses")
def report_losses(
    since: Annotated[str, typer.Option(metavar="TIME", help="So long ago: 90m, 24h, 7d, 2w.")] = "24h",
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", show_default=False, help="This table only.")
    ] = None,
    hourly: Annotated[bool, typer.Option("--hourly", help="Each hour by itself.")] = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """What became of the rows of each table, and the events that say why. Code 1: some are lost."""
    begin = reports.since(since)
    with chosen_database(data, dsn).opened() as conninfo:
        demand_facility(conninfo)
        if not reports.losses(conninfo, begin, table, hourly):
            raise typer.Exit(1)


@app.command()
def status(data: Data = None, dsn: Dsn = None) -> None:
    """Who writes each table, and how it goes."""
    with chosen_database(data, dsn).opened() as conninfo:
        demand_facility(conninfo)
        reports.status(conninfo)


app.command()(load)
app.command()(reload)
app.command()(demo)
app.command()(bench)
app.command()(cert)


def _piped_password() -> str:
    """The first line of standard input."""
    return sys.stdin.readline().rstrip("\r\n")


def _typed_password(name: str) -> str:
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for the password at: give it with --password-stdin")
    password = getpass.getpass(f"Password of {name}: ")
    if getpass.getpass("Once more: ") != password:
        raise UsageError("the two passwords differ; no login was made")
    return password


@facility_app.command("check")
def facility_check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Facility file (TOML).")],
) -> None:
    """Read a facility file and say what is in it, or what is wrong with it."""
    facility = load_facility(file)
    columns = sum(len(table.columns) for table in facility.tables)
    print(f"{file}: {facility.name}, {len(facility.tables)} tables, {columns} data columns")
    for table in facility.tables:
        print(f"  {table.name}: {len(table.columns)} columns, {table.rows} rows, every {table.cycle:g} s")


def _stop_at_signals() -> threading.Event:
    """An event that SIGINT, SIGTERM and a hang-up set."""
    stop = threading.Event()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks for this
        signal.signal(signal.SIGHUP, handle)
    return stop


def _warn(text: str) -> None:
    print(f"ringlog: {text}", file=sys.stderr, flush=True)


@contextmanager
def _errors_told() -> Iterator[None]:
    """Turns what a person can mend into one line and an exit code: 1 failed, 2 wrongly asked."""
    try:
        yield
    except (UsageError, FacilityError) as error:
        _warn(str(error))
        sys.exit(2)
    except (ServerError, InstallRefused) as error:
        _warn(str(error))
        sys.exit(1)
    except (psycopg.Error, sqlalchemy.exc.DBAPIError) as error:
        cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
        _warn("PostgreSQL: " + " ".join(str(cause).split()))
        sys.exit(1)


def main() -> None:
    """The entry point."""
    logging.basicConfig(format="ringlog: %(message)s", level=logging.INFO, stream=sys.stderr)
    # a command that is told to end still stops the PostgreSQL it has started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with _errors_told():
        app()
