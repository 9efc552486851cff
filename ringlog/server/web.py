"""Retrieval over HTTP as a process beside the server, and the command that runs it on another machine."""

import importlib.util
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog import logs
from ringlog.errors import ServerError, UsageError
from ringlog.extras import demand
from ringlog.nodes.everywhere import known_by_gateway
from ringlog.server.account import Account, account_for, system_account

if TYPE_CHECKING:
    from ringlog.retrieval.access import Place
    from ringlog.retrieval.server import Settings

log = logging.getLogger(__name__)

_LOOK = 0.2  # seconds between two looks at the process
# Seconds before a process that has ended by itself is started again: at first, and at most. They double while
# the process does not last.
_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_LASTED = 60.0
_LONGEST_START = 120.0  # seconds that a start may take


def demand_parts() -> None:
    """Raises ModuleNotFoundError when a library that retrieval needs is missing."""
    demand("starlette", "uvicorn", "httptools", "orjson", "adbc_driver_postgresql", "pyarrow")


def settings(
    host: str,
    port: int,
    conninfo: str,
    *,
    role: str | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    data: Path | None = None,
    nodes: Mapping[str, tuple[str, str]] | None = None,
) -> "Settings":
    """The settings of a process that reads the database of `conninfo`, and those of its nodes.

    `role` is a role of PostgreSQL for all who show no login; `conninfo` must then be of a login that may
    act for it. `data` is the data directory of an embedded database, `nodes` are as `ringlog.nodes.nodes_of`
    gives them. Raises ServerError where the process would run as root.
    """
    from ringlog.retrieval.server import Settings

    if role is not None and (not role or not role.isprintable()):
        raise UsageError("--http-role needs the name of a PostgreSQL role")
    first = _place(conninfo, role)
    account = unprivileged(data)
    return Settings(
        host,
        port,
        first.database,
        first.everyone,
        None if certificate is None else str(certificate),
        None if key is None else str(key),
        None if account is None else account.uid,
        None if account is None else account.gid,
        None if data is None else str(data),
        nodes=places_of_nodes(nodes or {}, role),
    )


def unprivileged(data: Path | None) -> Account | None:
    """The account that the process runs under, with the data directory of an embedded database; None: that of
    this process. Raises ServerError where it could only run as root."""
    if os.geteuid() != 0:
        return None
    account = system_account() if data is None else account_for(data)
    libraries = importlib.util.find_spec("starlette")
    assert libraries is not None
    for needed in (os.__file__, __file__, libraries.origin or ""):
        if not account.can("r", Path(needed)):
            closed = account.barrier(Path(needed)) or needed
            raise ServerError(
                f"HTTP does not run as root, and the account {account.name} cannot read {needed}: "
                f"chmod o+rx {closed}, or install ringlog elsewhere, as in /opt/ringlog"
            )
    return account


def places_of_nodes(nodes: Mapping[str, tuple[str, str]], role: str | None) -> dict[str, "Place"]:
    """Where the process finds nodes; without a login it reads there as the gateway, in `role`."""
    return {name: _place(conninfo, role) for name, conninfo in known_by_gateway(nodes).items()}


def _place(conninfo: str, role: str | None) -> "Place":
    from ringlog.retrieval.access import Place

    database = {
        name: value
        for name, value in conninfo_to_dict(conninfo).items()
        if name not in ("user", "password", "options", "passfile", "service")
    }
    everyone = None
    if role is not None:
        named = role.replace("\\", "\\\\").replace(" ", "\\ ")
        everyone = make_conninfo(conninfo, options=f"-c role={named}")
    return Place(make_conninfo("", **database), everyone)


@dataclass(frozen=True)
class WebState:
    """Whether the process runs, and how often it has been started again."""

    up: bool
    restarts: int

    def __str__(self) -> str:
        """Empty while nothing has happened."""
        if self.up and not self.restarts:
            return ""
        return f"HTTP {'runs' if self.up else 'is down'}, {self.restarts} restarts"

    @property
    def metrics(self) -> str:
        """OpenMetrics text without its end."""
        return (
            "# HELP ringlog_http_up 1 while the process that serves HTTP runs.\n"
            "# TYPE ringlog_http_up gauge\n"
            f"ringlog_http_up {int(self.up)}\n"
            "# HELP ringlog_http_restarts Starts of the process after it ended by itself.\n"
            "# TYPE ringlog_http_restarts counter\n"
            f"ringlog_http_restarts_total {self.restarts}\n"
        )


class _Died(ServerError):
    """The process ended, or was stopped, before it served, and gave no reason."""


class Web:
    """A process that serves HTTP. When it ends by itself it is started again, after a pause that grows while
    it does not last."""

    def __init__(self, wanted: "Settings") -> None:
        self._wanted = wanted
        self._process: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()
        """on what is wanted, and on the process's input"""
        self._watch = threading.Thread(target=self._tend, name="web", daemon=True)
        self._restarts = 0
        self.address = (
            f"[{wanted.host}]:{wanted.port}" if ":" in wanted.host else f"{wanted.host}:{wanted.port}"
        )
        """HOST:PORT; of port 0 until it has started once"""

    @contextmanager
    def running(self) -> Iterator["Web"]:
        """Serves inside the with block. Raises ServerError when it cannot."""
        try:
            self._start()
        except _Died as error:
            log.error("%s; starting it again", error)
        self._watch.start()
        try:
            yield self
        finally:
            self._stop.set()
            # it may just be starting another process
            self._watch.join()
            self._end()

    def know_nodes(self, nodes: Mapping[str, "Place"]) -> None:
        """Sends the process the nodes that are new or elsewhere, this one and those after it."""
        from ringlog.retrieval.server import nodes_to_json

        with self._lock:
            self._wanted = replace(self._wanted, nodes={**self._wanted.nodes, **nodes})
            if self._process is not None:
                assert self._process.stdin is not None
                # one that has just ended is started again with all of them
                with suppress(BrokenPipeError):
                    self._process.stdin.write(nodes_to_json(nodes))

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    @property
    def state(self) -> WebState:
        process = self._process
        return WebState(process is not None and process.poll() is None, self._restarts)

    def _start(self) -> None:
        command = [sys.executable, "-P", "-m", "ringlog.server.web_process", *logs.running()]
        # in a session of its own: Ctrl-C is not for it, and its nice counts beside the gateway (sched(7))
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0
        )
        assert process.stdin is not None
        try:
            with self._lock:
                with suppress(BrokenPipeError):
                    process.stdin.write(self._wanted.to_json())
                known = self._wanted.nodes
            words = self._first_line(process)
            if not words.startswith("HTTP on "):
                process.stdin.close()
                code = process.wait(_LONGEST_START)
                if not words:
                    raise _Died(f"the process that serves HTTP ended while it started (code {code})")
                raise ServerError(f"HTTP: {words}")
        except BaseException:
            process.kill()
            process.wait()
            raise
        with self._lock:
            self.address = words.removeprefix("HTTP on ")
            self._process = process
            self._wanted = replace(self._wanted, port=int(self.address.rpartition(":")[2]))
            later = {name: place for name, place in self._wanted.nodes.items() if known.get(name) != place}
        if later:
            self.know_nodes(later)

    def _first_line(self, process: "subprocess.Popen[bytes]") -> str:
        """What a process says first; empty: it ended without a word. Raises _Died for one that takes too
        long, or when this one stops."""
        assert process.stdout is not None
        said = b""
        deadline = time.monotonic() + _LONGEST_START
        while not said.endswith(b"\n"):
            if time.monotonic() > deadline or self._stop.is_set():
                raise _Died(f"the process that serves HTTP did not start within {_LONGEST_START:.0f} s")
            if select.select([process.stdout], [], [], _LOOK)[0]:
                part = process.stdout.read(1)
                if not part:
                    break
                said += part
        return said.decode(errors="replace").strip()

    def _end(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _tend(self) -> None:
        pause, began = _PAUSE, time.monotonic()
        while not self._stop.wait(_LOOK):
            process = self._process
            if process is not None and process.poll() is None:
                continue
            if time.monotonic() - began > _LASTED:
                pause = _PAUSE
            if process is not None:
                log.error(
                    "the process that serves HTTP has ended (code %d); it is started again in %.0f s",
                    process.returncode,
                    pause,
                )
            if self._stop.wait(pause):
                return
            pause, began = min(2 * pause, _LONGEST_PAUSE), time.monotonic()
            self._restarts += 1
            try:
                self._start()
            except (ServerError, OSError) as error:
                if not self._stop.is_set():
                    log.error("%s; the next try is in %.0f s", error, pause)
