"""The life cycle of the embedded PostgreSQL."""

import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil
import psycopg
from psycopg import sql

from ringlog.clients.listening import free_port
from ringlog.errors import ServerError
from ringlog.schema import session
from ringlog.server.embedded import settings
from ringlog.server.embedded.cluster import ADMINISTRATOR, DATABASE, Cluster
from ringlog.server.embedded.data_lock import Held, held, is_wanted, joined, wanted
from ringlog.server.embedded.shutdown import pid_file, stop_server
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

# 5432 is left to a PostgreSQL of the system
PORTS = range(5433, 32_768)
_PAUSE = 0.05  # seconds between two looks at a starting or stopping server
_REPORT = 10.0  # seconds between two messages about it
_REPORT_COMMAND = 60.0  # seconds between two messages about a command that keeps `ringlog serve` waiting
_TAKEN = "Address already in use"  # PostgreSQL's message for a port that another program has
_LOG_DELAY = 20.0  # seconds until its log has the reason for its end, on a busy machine


class Stopped(Exception):
    """A stop was requested while the server was still starting."""


class AlreadyServed(ServerError):
    """Another process runs the server of this data directory."""


class Postgres(Cluster):
    """The cluster in a data directory, and its server."""

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
        memory = memory or settings.machine_memory()
        self.prepare()
        with ExitStack() as stack:
            release = self._hold(stack, stop if serves else None)
            self.refuse_others()
            if not self.exists:
                self.make()
            self._stop_leftover()
            process = self._start_at(memory, port, tables, stop)
            try:
                self.remember_programs()
                with ExitStack() if serves else self._giving_way(process, release):
                    yield process
            finally:
                _stop_child(process)

    @contextmanager
    def _giving_way(self, process: subprocess.Popen[bytes], release: Callable[[], None]) -> Iterator[None]:
        """Stops PostgreSQL and unlocks the data directory as soon as a server waits for it. An error of the
        with block is then a ServerError."""
        end, has_given_way = threading.Event(), threading.Event()

        def watch() -> None:
            while not end.wait(_PAUSE):
                if is_wanted(self.data, self.account):
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
        self.prepare()
        deadline = time.monotonic() + 60
        with joined(self.data, self.account) as commands:
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
            self._hold(stack, None)
            yield

    def make_database(self) -> None:
        """Makes the database `ringlog` when it is missing."""
        with session.connect(self.conninfo(ADMINISTRATOR), autocommit=True) as connection:
            known = connection.execute("select from pg_database where datname = %s", [DATABASE]).fetchone()
            if known is None:
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))

    # --- the steps of a start ---

    def _hold(self, stack: ExitStack, stop: threading.Event | None) -> Callable[[], None]:
        """Takes the data directory for this process alone. Returns the function that gives it up.

        A server (with `stop`) waits until a command has given way or ended, but not for another server.
        """
        began = time.monotonic()
        reported = -_REPORT_COMMAND
        with ExitStack() as waiting:
            while True:
                try:
                    return stack.enter_context(held(self.data, self.account, serves=stop is not None))
                except Held as other:
                    if stop is None or other.holder is None or other.holder.serves:
                        raise AlreadyServed(self._taken_by(other)) from None
                    if reported < 0:
                        waiting.enter_context(wanted(self.data, self.account))
                    if (waited := time.monotonic() - began) - reported >= _REPORT_COMMAND:
                        reported = waited
                        log.warning("%s. Waiting until it ends, %.0f s so far", self._taken_by(other), waited)
                if stop.wait(_PAUSE):
                    raise Stopped

    def _taken_by(self, other: Held) -> str:
        if other.holder is None or other.holder.serves:
            return f"{other} serves {self.data} already: stop it first, or choose another --data"
        return f"{other} has {self.data} locked until it ends"

    def _stop_leftover(self) -> None:
        if leftover := self.postmaster():
            log.info(
                "stopping the PostgreSQL that an earlier process left running (process %d)", leftover.pid
            )
            stop_server(leftover)

    def _start_at(
        self, memory: int, port: int | None, tables: int, stop: threading.Event
    ) -> subprocess.Popen[bytes]:
        """Starts the server at this port, else the one used before, else a free one. A given port at which it
        cannot start is not remembered."""
        before = self.recorded_port()
        chosen = port or before or free_port(PORTS)
        while True:
            self.write_settings(memory, chosen, tables)
            try:
                return self._start(memory, stop)
            except ServerError as error:
                taken = _TAKEN in str(error) and f"port {chosen}" in str(error)
                if port is None and taken:
                    log.warning("port %d is taken by another program: PostgreSQL gets another one", chosen)
                    chosen = free_port(PORTS)
                    continue
                if before is not None:
                    self.write_settings(memory, before, tables)
                else:
                    with self.account.acting():
                        self.generated.unlink()
                raise

    def _start(self, memory: int, stop: threading.Event) -> subprocess.Popen[bytes]:
        """Starts the server and waits until it takes connections."""
        deadline = time.monotonic() + 60
        while True:
            with self.account.acting():
                output = self.start_log.open("wb")
            with output:
                # when this process is killed, the kernel sends PostgreSQL the signal of a fast shutdown
                command = ["/usr/bin/setpriv", "--pdeathsig", "INT"]
                # a statement that needs more gets an error; otherwise the kernel would kill processes
                command += ["/usr/bin/prlimit", f"--data={settings.process_memory(memory)}"]
                command += [str(self.programs / "postgres"), "-D", str(self.cluster)]
                # the operator's own values win
                variables = settings.ALLOCATION | {
                    name: value for name, value in os.environ.items() if name in settings.ALLOCATION
                }
                process = self.account.popen(command, cwd=self.cluster, output=output, variables=variables)
            try:
                self._wait_until_ready(process, stop)
                # after recovery the checkpointer ignores archive_timeout until something wakes it
                process.send_signal(signal.SIGHUP)
                return process
            except ServerError as error:
                # after kill -9 of the server its children live on for a moment, and must end first; a server
                # that a killed process had just started may appear now
                is_ending = re.search(r"still in use|postmaster\.pid. already exists", str(error))
                if is_ending is None or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
                self._stop_leftover()
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
        return reason or f"see {self.start_log}"

    def _last_lines(self) -> list[str]:
        lines = self.start_log.read_text(errors="replace").splitlines()
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
