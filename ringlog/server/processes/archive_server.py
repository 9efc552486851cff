"""The archive server of `ringlog serve`: started when there is an archive; PostgreSQL stores its address."""

import io
import json
import logging
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from ringlog.errors import ServerError
from ringlog.extras import demand, hint
from ringlog.history.archive_server.settings import Settings
from ringlog.schema.change import ERRORS, cause_of, change
from ringlog.schema.relations import archive_tables
from ringlog.server.embedded.account import Account
from ringlog.server.processes.background import in_background
from ringlog.server.processes.supervised import State, Supervised
from ringlog.server.processes.web import unprivileged

log = logging.getLogger(__name__)

_LOOK = 10.0  # seconds between two looks whether there is an archive


class ArchiveServer(Supervised):
    """The process, which gets a new password, and perhaps another port, with each start."""

    name = "archive"
    metric = "archive_server"
    what = "the archive server"
    module = "ringlog.server.processes.archive_process"
    greeting = "archive on"

    def __init__(self, administrator: sa.Engine, account: Account | None) -> None:
        super().__init__()
        self._administrator = administrator
        self._account = account
        self._password = ""
        self._address = ("", 0)

    def send_settings(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        self._password = secrets.token_urlsafe(24)
        with self._administrator.begin() as connection:
            # this machine's address as PostgreSQL sees it; null for a Unix socket
            host = connection.scalar(sa.text("select host(inet_client_addr())")) or "127.0.0.1"
        account = self._account
        settings = Settings(
            host,
            0,
            self._password,
            None if account is None else account.uid,
            None if account is None else account.gid,
        )
        process.stdin.write(settings.to_json())

    def serves(self, process: "subprocess.Popen[bytes]", address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        threading.Thread(target=self._answer, args=(process,), name="files", daemon=True).start()
        self._announce()

    def _answer(self, process: "subprocess.Popen[bytes]") -> None:
        """Sends the lists of files that the process requests (`ringlog.history.archive_server.lists`)."""
        assert process.stdin is not None
        assert process.stdout is not None
        for line in io.BufferedReader(process.stdout):  # type: ignore[type-var]
            number, table = line.decode().removeprefix("files ").split(" ", 1)
            text = error = None
            try:
                with self._administrator.begin() as connection:
                    text = archive_tables.files(connection, json.loads(table))
            except ERRORS as failed:
                error = " ".join(str(cause_of(failed)).split())
            rest = memoryview(json.dumps([int(number), text, error]).encode() + b"\n")
            with suppress(OSError, ValueError):  # it has ended
                while rest:
                    rest = rest[process.stdin.write(rest) :]

    def _announce(self) -> None:
        def work(connection: sa.Connection) -> None:
            archive_tables.announce_server(connection, *self._address, self._password)

        try:
            change(self._administrator, work)
        except ERRORS as error:
            message = f"the archive server's address cannot be stored in PostgreSQL: {cause_of(error)}"
            raise ServerError(message) from None

    def look(self) -> None:
        """Stores this server's address if PostgreSQL has that of an ended one, from another ringlog serve on
        the database. Raises ServerError."""
        with self._administrator.begin() as connection:
            address = archive_tables.announced(connection)
        if address == self._address:
            return
        try:
            socket.create_connection(address, _LOOK).close()
        except OSError:
            if self.state.up:
                self._announce()


class ArchiveServers:
    """The archive server, as soon as there is an archive."""

    def __init__(self) -> None:
        self.running: ArchiveServer | None = None

    @property
    def state(self) -> State | None:
        return None if self.running is None else self.running.state


@contextmanager
def archive_server(administrator: sa.Engine, data: Path | None) -> Iterator[ArchiveServers]:
    """Keeps the archive server running inside the with block, once the facility has an archive.

    `data` is the data directory of an embedded database.
    """
    servers = ArchiveServers()
    end = threading.Event()

    def tend() -> None:
        while not _is_needed(administrator):
            if end.wait(_LOOK):
                return
        try:
            demand("duckdb", "pyarrow")
            account = unprivileged(data, "the archive server", "duckdb")
        except ModuleNotFoundError as error:
            log.warning("SQL does not reach the archive: %s", hint(error) or error)
            return
        except ServerError as error:
            log.warning("SQL does not reach the archive: %s", error)
            return
        while not end.is_set():
            server = ArchiveServer(administrator, account)
            try:
                with server.running():
                    servers.running = server
                    while not end.wait(_LOOK):
                        server.look()
            except (ServerError, OSError, *ERRORS) as error:
                log.error("%s; the next try is in %.0f s", error, _LOOK)
                end.wait(_LOOK)

    with in_background("archive server", tend, end):
        yield servers


def _is_needed(administrator: sa.Engine) -> bool:
    try:
        with administrator.begin() as connection:
            return archive_tables.is_needed(connection)
    except ERRORS:
        # PostgreSQL has stopped or moved; the parts that need it report that
        return False
