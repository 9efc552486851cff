"""Retrieval over HTTP as a process beside the server, and the command that runs it on another machine."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog import logs
from ringlog.errors import ServerError, UsageError
from ringlog.extras import demand
from ringlog.nodes.everywhere import known_by_gateway
from ringlog.server.account import Account

if TYPE_CHECKING:
    from ringlog.retrieval.access import Place
    from ringlog.retrieval.server import Settings

log = logging.getLogger(__name__)

_PAUSE = 5.0  # seconds before a process that has ended by itself is started again


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
    account: Account | None = None,
    data: Path | None = None,
    nodes: Mapping[str, tuple[str, str]] | None = None,
) -> "Settings":
    """The settings of a process that reads the database of `conninfo`, and those of its nodes.

    `role` is a role of PostgreSQL for all who show no login; `conninfo` must then be of a login that may
    act for it. `account` is whom the process runs under, `data` a folder on the disk of an embedded database,
    `nodes` are as `ringlog.nodes.everywhere.nodes_of` gives them.
    """
    from ringlog.retrieval.server import Settings

    if role is not None and (not role or not role.isprintable()):
        raise UsageError("--http-role needs the name of a PostgreSQL role")
    first = _place(conninfo, role)
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


class Web:
    """A process that serves HTTP. It is started again when it ends by itself."""

    def __init__(self, wanted: "Settings") -> None:
        self._wanted = wanted
        self._process: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()
        """on what is wanted, and on the process's input"""
        self._watch = threading.Thread(target=self._tend, name="web", daemon=True)
        self.address = ""
        """HOST:PORT"""

    @contextmanager
    def running(self) -> Iterator["Web"]:
        """Serves inside the with block. Raises ServerError when it cannot."""
        self._start()
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

    def _start(self) -> None:
        with self._lock:
            self._begin()

    def _begin(self) -> None:
        command = [sys.executable, "-P", "-m", "ringlog.server.web_process", *logs.running()]
        # in a session of its own: Ctrl-C is not for it, and its nice counts beside the gateway (sched(7))
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._wanted.to_json())
        said = b""
        while not said.endswith(b"\n") and (part := process.stdout.read(1)):
            said += part
        words = said.decode(errors="replace").strip()
        if not words.startswith("HTTP on "):
            process.stdin.close()
            process.wait()
            raise ServerError(
                f"HTTP: {words or 'the process ended at once'}. Name another address with --http"
            )
        self.address = words.removeprefix("HTTP on ")
        self._process = process
        port = int(self.address.rpartition(":")[2])
        self._wanted = replace(self._wanted, port=port)

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
        while not self._stop.wait(0.5):
            if self._process is None or self._process.poll() is None:
                continue
            log.warning(
                "the process that serves HTTP has ended (code %d); starting it again",
                self._process.returncode,
            )
            try:
                self._start()
            except (ServerError, OSError) as error:
                log.error("%s", error)
            if self._process.poll() is not None:
                self._stop.wait(_PAUSE)
