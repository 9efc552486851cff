"""The archive server's process: it reads its settings from standard input, and ends with it.

Its first line of input is the settings in JSON, its first line of output `archive on HOST:PORT`; the further
lines are those of `lists`.
"""

import ctypes
import fcntl
import io
import logging
import os
import secrets
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa

from ringlog.history.archive_server.engine import Engine
from ringlog.history.archive_server.lists import Lists
from ringlog.history.archive_server.rows import resident
from ringlog.history.archive_server.session import Session
from ringlog.history.archive_server.settings import Settings
from ringlog.history.archive_server.wire import CANCEL, Closed, Password, Wire
from ringlog.history.memory import give_back_memory
from ringlog.history.priority import lower_process
from ringlog.history.privileges import become

log = logging.getLogger(__name__)

_MEMORY = 448 << 20
"""resident memory in bytes beyond which queries end; until the next check the process stays below 512 MiB"""
_LOOK = 0.05  # seconds between two checks
_ARENAS = (-8, 2)
"""arenas of glibc's malloc (M_ARENA_MAX of mallopt(3)): all threads reuse the memory that one frees"""
_CONNECTIONS = 100
_NICENESS = 10  # behind writers, and behind readers over HTTP
_STACK = 1 << 20  # bytes of a thread's
_SPILL = "ringlog-spill-"
_JUST_MADE = 60.0  # seconds for which another process may not have locked its new folder
_PART_OF_DISK = 4
"""the part of the free disk space for data beyond the memory"""


def main() -> None:
    """Serves until standard input ends or a signal arrives."""
    parent = io.BufferedReader(io.FileIO(sys.stdin.fileno(), "rb", closefd=False))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    settings = Settings.from_json(parent.readline())
    with suppress(OSError):
        lower_process(os.getpid(), _NICENESS)
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listening = socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        print(f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}", flush=True)
        sys.exit(1)
    if settings.uid is not None and settings.gid is not None:
        become(settings.uid, settings.gid)
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(_cores())
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(*_ARENAS)
    threading.stack_size(_STACK)
    with _spill() as spill:
        lists = Lists(partial(print, end="", flush=True))
        engine = Engine(str(spill), shutil.disk_usage(spill).free // _PART_OF_DISK, _cores(), lists)
        host, port = listening.getsockname()[:2]
        print(f"archive on [{host}]:{port}" if ":" in host else f"archive on {host}:{port}", flush=True)
        clients = Clients(engine, Password(settings.password))
        threading.Thread(target=clients.accept, args=(listening,), daemon=True).start()
        threading.Thread(target=clients.watch_memory, daemon=True).start()
        with suppress(OSError):
            for line in parent:
                lists.answer(line)


@contextmanager
def _spill() -> Iterator[Path]:
    """A folder for data beyond the memory. Removes the folders of killed processes."""
    with tempfile.TemporaryDirectory(prefix=_SPILL) as name:
        own = os.open(name, os.O_RDONLY)
        fcntl.flock(own, fcntl.LOCK_EX)
        for other in Path(name).parent.glob(f"{_SPILL}*"):
            with suppress(OSError):
                found = os.open(other, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    there = os.fstat(found)
                    if there.st_uid == os.getuid() and time.time() - there.st_mtime > _JUST_MADE:
                        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(other, ignore_errors=True)
                finally:
                    os.close(found)
        yield Path(name)
        os.close(own)


def _cores() -> int:
    return max(1, min(4, len(os.sched_getaffinity(0))))


class Clients:
    """The open connections."""

    def __init__(self, engine: Engine, password: Password) -> None:
        self._engine = engine
        self._password = password
        self._sessions: dict[tuple[int, int], Session] = {}
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(_CONNECTIONS)

    def accept(self, listening: socket.socket) -> None:
        while True:
            client, _ = listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if not self._slots.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def watch_memory(self) -> None:
        """Cancels all queries when the process has exceeded its memory."""
        while True:
            time.sleep(_LOOK)
            if resident() > _MEMORY:
                with self._lock:
                    sessions = [*self._sessions.values()]
                for session in sessions:
                    session.cancel(starved=True)
                give_back_memory()

    def _serve(self, client: socket.socket) -> None:
        wire = Wire(client)
        key = (secrets.randbits(31), secrets.randbits(32))
        try:
            startup = wire.startup()
            if startup.code == CANCEL:
                self._cancel(startup.content)
                return
            session = Session(wire, self._engine, key)
            with self._lock:
                self._sessions[key] = session
            session.serve(startup, self._password)
        except Closed:
            pass
        except Exception:
            log.exception("a connection of the archive server has failed")
        finally:
            with self._lock:
                self._sessions.pop(key, None)
            wire.close()
            self._slots.release()

    def _cancel(self, content: bytes) -> None:
        if len(content) == struct.calcsize("!II"):
            with self._lock:
                session = self._sessions.get(struct.unpack("!II", content))
            if session is not None:
                session.cancel()
