"""The command `ringlog`."""

import json
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import psycopg
import sqlalchemy.exc
import typer

from ringlog import report as reports
from ringlog import watching
from ringlog.adopt import adopt
from ringlog.archive import archive_app, recall_weeks
from ringlog.backup import backup, restore
from ringlog.certificate import cert
from ringlog.database import Embedded, chosen_database, demand_facility, engine
from ringlog.demo import demo
from ringlog.doctor import doctor
from ringlog.errors import ServerError, UsageError
from ringlog.export import export, plot
from ringlog.extras import hint
from ringlog.facility import facility_app
from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.ha import ha_app
from ringlog.history.summaries import summarise
from ringlog.loader.command import load, reload
from ringlog.loadtest.bench.command import bench
from ringlog.loadtest.command import app as loadtest_app
from ringlog.loadtest.ess.plan import plan
from ringlog.mirror import mirror, mirror_switch
from ringlog.options import Data, Dsn, logging_command
from ringlog.postgres import Postgres
from ringlog.schema.facility_file import FacilityError, load_facility
from ringlog.schema.install import InstallRefused, install
from ringlog.schema.merging import merge
from ringlog.schema.partitions import maintain as maintain_partitions
from ringlog.serving import serve, web
from ringlog.upgrade import upgrade
from ringlog.users import user
from ringlog.verification import verify

log = logging.getLogger(__name__)
# what a command says to whoever has given it
command_log = logging.getLogger("ringlog")

app = typer.Typer(
    help="A data logger: writers call stored procedures over TDS, the data lives in PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(user, name="user")
app.add_typer(facility_app, name="facility")
report_app = typer.Typer(help="What became of the rows.", no_args_is_help=True)
app.add_typer(report_app, name="report")
app.add_typer(archive_app, name="archive")
app.add_typer(ha_app, name="ha")
app.add_typer(loadtest_app, name="loadtest")

FacilityFile = Annotated[Path, typer.Option("--facility", metavar="FILE", help="Facility file (TOML).")]


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
        administrator = engine(conninfo)
        print(maintain_partitions(administrator))
        for line in merge(administrator):
            print(line)
        for table, rows in summarise(conninfo, enough=1).items():
            print(f"summarised {rows} rows of log.{table}")


@app.command()
def dsn(data: Data = None) -> None:
    """Print the administrator's connection string, for psql "$(ringlog dsn)" and every PostgreSQL tool."""
    database = chosen_database(data, None)
    if not isinstance(database, Embedded):
        raise UsageError("RINGLOG_DSN names a PostgreSQL of your own; its connection string is that variable")
    postgres = Postgres(database.data)
    postgres.demand()
    if postgres.postmaster() is None:
        log.warning("PostgreSQL in %s is not running: start it with ringlog serve", postgres.data)
    print(postgres.conninfo())


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
def status(
    data: Data = None,
    dsn: Dsn = None,
    machine: Annotated[bool, typer.Option("--json", help="For machines: the tables and the disk.")] = False,
) -> None:
    """How each table does, whoever writes it, and the disk. Code 1: a table is silent."""
    database = chosen_database(data, dsn)
    disk = database.data if isinstance(database, Embedded) else None
    with database.opened() as conninfo:
        demand_facility(conninfo)
        if machine:
            states = watching.table_states(conninfo)
            left = None if disk is None else watching.space(conninfo, disk)
            print(json.dumps(watching.as_json(states, left)))
        else:
            states = reports.status(conninfo, disk)
    if any(state.silent for state in states):
        raise typer.Exit(1)


app.command()(serve)
app.command()(web)
app.command("recall")(recall_weeks)
app.command()(logging_command(load))
app.command()(reload)
app.command()(adopt)
app.command()(logging_command(mirror))
app.command("mirror-switch")(mirror_switch)
app.command()(demo)
app.command()(bench)
app.command()(cert)
app.command()(export)
app.command()(plot)
app.command()(plan)
app.command()(backup)
app.command()(restore)
app.command()(verify)
app.command()(upgrade)
app.command()(doctor)


@contextmanager
def _errors_told() -> Iterator[None]:
    """Turns what a person can mend into one line and an exit code: 1 failed, 2 wrongly asked."""
    try:
        yield
    except (UsageError, FacilityError) as error:
        command_log.error("%s", error)
        sys.exit(2)
    except (ServerError, InstallRefused) as error:
        command_log.error("%s", error)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (missing := hint(error)) is None:
            raise
        command_log.error("%s", missing)
        sys.exit(2)
    except (psycopg.Error, sqlalchemy.exc.DBAPIError) as error:
        cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
        command_log.error("PostgreSQL: %s", " ".join(str(cause).split()))
        sys.exit(1)
    except OSError as error:
        command_log.error("%s: %s", error.filename or "the operating system", error.strerror or error)
        sys.exit(1)


def main() -> None:
    """The entry point."""
    logging.basicConfig(format="ringlog: %(message)s", level=logging.INFO, stream=sys.stderr)
    # a command that is told to end still stops the PostgreSQL it has started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with _errors_told():
        app()
