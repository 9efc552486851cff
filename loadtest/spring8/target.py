"""The server under load: one started for the load, or one that is already running."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from ringlog.clients import Address, connect
from ringlog.loadtest.experiment.errors import LoadTestError, LoadTestUsageError
from ringlog.loadtest.experiment.server import READER, WRITER, Server, serving
from ringlog.loadtest.parameters import fill
from ringlog.schema import catalogue, session
from ringlog.schema.facility_files.facility_file import load_facility

_RINGLOG = [sys.executable, "-P", "-m", "ringlog"]
# Settings of an embedded server (ringlog/server/embedded/settings.py), less some for gateway and observer.
_ORDINARY_USERS = 250


@dataclass(frozen=True)
class Target:
    """The server where users log in, and the PostgreSQL whose rows are checked."""

    writer: Address
    reader: Address | None
    conninfo: str
    """of a login that may select from every table"""
    server: Server | None
    """None: another server, perhaps on another machine"""

    @property
    def password(self) -> str | None:
        """The password of both logins; None: found as `ringlog.clients` finds passwords."""
        return self.server.password if self.server else self.writer.password


@contextmanager
def own_target(facility: Path, data: Path, users: int = 0) -> Iterator[Target]:
    """A server with a facility on a new data directory, where so many users may log in.

    The server's messages go to the folder of `facility`.
    """
    if users > _ORDINARY_USERS:
        prepare(facility, data, f"max_connections = {users + 100}\n")
    with serving(facility, data, keep=False) as server:
        fill(server.administrator, load_facility(facility))
        yield Target(
            Address(WRITER, server.host, server.port),
            Address(READER, server.host, server.port),
            server.administrator.info.dsn,
            server,
        )


def prepare(facility: Path, data: Path, settings: str) -> None:
    """Makes the database, with an operator's settings of PostgreSQL."""
    command = [*_RINGLOG, "init", "--facility", str(facility), "--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise LoadTestError(done.stderr.strip())
    (file,) = data.glob("postgresql-*/conf.d/50-site.conf")
    with file.open("a") as opened:
        opened.write(settings)


def given_target(url: str, reader: str | None, dsn: str) -> Target:
    """A server that runs already.

    Raises Unanswered, LoadTestError when its PostgreSQL cannot be used, AddressError, PasswordError.
    """
    writer = Address.parse(url)
    target = Target(writer, replace(writer, user=reader) if reader else None, dsn, None)
    for address in filter(None, (target.writer, target.reader)):
        connect(address).close()
    try:
        with session.connect(dsn) as connection:
            if not catalogue.exists(connection, "ringlog", "logged_table"):
                raise LoadTestUsageError("--dsn: no facility is installed in this database")
    except psycopg.Error as error:
        raise LoadTestError(f"--dsn: {str(error).strip()}") from None
    return target
