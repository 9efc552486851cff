"""The database that a command works on: the embedded one of a data directory, or one named by --dsn."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog.errors import ServerError, UsageError
from ringlog.schema import catalogue, session
from ringlog.server.embedded.account import give_archive
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.guards.disk import full_disk_named


@dataclass(frozen=True)
class Embedded:
    """The PostgreSQL in a data directory, which ringlog starts and stops itself."""

    data: Path
    programs: str | None = None
    """folder of PostgreSQL's programs, or PACKAGED; None: those used last"""

    @property
    def postgres(self) -> Postgres:
        return Postgres(self.data, self.programs)

    @contextmanager
    def opened(self, *, make: bool = False) -> Iterator[str]:
        """The administrator's connection string; PostgreSQL runs while this is open.

        `make` makes the database when there is none; otherwise that is a ServerError.
        """
        postgres = self.postgres
        if not make:
            postgres.demand()
        give_archive(self.data)
        with full_disk_named(self.data), postgres.reachable():
            postgres.make_database()
            yield postgres.conninfo()


@dataclass(frozen=True)
class External:
    """A PostgreSQL (15 or later) that ringlog does not start or stop."""

    conninfo: str

    @contextmanager
    def opened(self, *, make: bool = False) -> Iterator[str]:
        """The connection string, after a test. The database must exist already."""
        with session.connect(self.conninfo) as connection:
            version = connection.info.server_version // 10000
            if version < 15:
                raise ServerError(f"this server is PostgreSQL {version}; ringlog needs 15 or later")
        give_archive(None)
        yield self.conninfo


def chosen_database(data: Path | None, dsn: str | None, programs: str | None = None) -> Embedded | External:
    """The database that the options name, then the environment, then the default data directory.

    `programs` is that of Embedded. Raises UsageError when both are given, and for a password in `dsn`: every
    user of the machine can read the command line.
    """
    if dsn is not None and "password" in _read(dsn):
        raise UsageError(
            "the connection string contains a password, which every user of this machine can read in the "
            "process list: put the whole string into the environment variable RINGLOG_DSN, or the "
            "password into ~/.pgpass"
        )
    if data is None and dsn is None:
        dsn = os.environ.get("RINGLOG_DSN") or None
        data = Path(os.environ["RINGLOG_DATA"]) if os.environ.get("RINGLOG_DATA") else None
    if data is not None and dsn is not None:
        raise UsageError("a data directory and a connection string name two databases: give only one of them")
    if dsn is not None:
        if programs is not None:
            raise UsageError("--postgres is for the embedded PostgreSQL, not for --dsn")
        settings = _read(dsn)
        if "," in str(settings.get("host", "")):
            # of several servers, the one that accepts writes
            dsn = make_conninfo(**{"target_session_attrs": "read-write"} | settings)
        return External(dsn)
    return Embedded(data or default_data(), programs)


def _read(conninfo: str) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in conninfo_to_dict(conninfo).items() if value is not None}
    except psycopg.ProgrammingError as error:
        raise UsageError(f"the connection string cannot be read: {str(error).strip()}") from None


def default_data() -> Path:
    """/var/lib/ringlog for root, the user's own data folder for everyone else."""
    if os.geteuid() == 0:
        return Path("/var/lib/ringlog")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "ringlog"


@contextmanager
def facility_opened(data: Path | None, dsn: str | None) -> Iterator[str]:
    """The administrator's connection string of the chosen database, while its server runs. Raises ServerError
    when no facility is installed in it."""
    with chosen_database(data, dsn).opened() as conninfo:
        demand_facility(conninfo)
        yield conninfo


def demand_facility(conninfo: str) -> None:
    """Raises ServerError when no facility is installed in the database."""
    with session.connect(conninfo) as connection:
        if not catalogue.exists(connection, "ringlog", "logged_table"):
            raise ServerError(
                "no facility is installed in this database: "
                "install one with --facility FILE (ringlog init, ringlog serve)"
            )
