"""`ringlog` as a process that is forked from one that has its modules: the start of Python and these imports
take a third of a second of CPU, and the tests start `ringlog` a thousand times.

The command has the arguments, environment, folder, files and session of a start of its own. One that would
differ (a variable that Python or a library reads at its start, a terminal) is started by itself.
"""

import gc
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

RINGLOG = Path(sys.executable).with_name("ringlog")
# of the commands that tests start often, but nothing that starts a thread: a fork has only one
_IMPORTED = (
    "commands.status",
    "commands.serve",
    "loader.command",
    "commands.facility",
    "commands.user",
    "commands.dsn",
    "commands.machines.doctor",
    "commands.stored.report",
)
_READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC", "GLIBC", "FAKE", "OPENSSL", "SSL_")
_HEADER = 8
_STATUS = 4


class Command(subprocess.Popen[str]):
    """A process `ringlog`."""

    _status: int | None = None

    def _execute_child(self, *given: Any) -> None:
        # the order of the parameters is the same from Python 3.11 to 3.14
        cwd, env, pipes, umask, new_session = given[5], given[6], given[10:16], given[20], given[21]
        files = [usual if pipe == -1 else pipe for usual, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        environment = dict(os.environ if env is None else env)
        if _reads(environment) != _reads(os.environ) or any(map(os.isatty, files)):
            super()._execute_child(*given)
            return
        request = {
            "argv": [os.fspath(word) for word in given[0]],
            "cwd": os.fspath(cwd or Path.cwd()),
            "environment": environment,
            "umask": _umask() if umask == -1 else umask,
            "session": new_session,
        }
        self._status, told = os.pipe()
        try:
            self.pid = _python().start(json.dumps(request).encode(), [*files, told])
        finally:
            os.close(told)
            self._close_pipe_fds(*pipes)
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._status is None:
            return super()._try_wait(wait_flags)
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        raw = os.read(self._status, _STATUS)
        assert raw, f"the parent process of {self.args} has ended"
        os.close(self._status)
        return self.pid, int.from_bytes(raw, "little")

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        def poll(_: int, flags: int) -> tuple[int, int]:
            return self._try_wait(flags)

        if self._status is not None:
            named["_waitpid"] = poll
        return super()._internal_poll(*given, **named)


def _reads(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def _umask() -> int:
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Umask")
    )
    return int(line.split()[1], 8)


class _Python:
    """The process that has imported the modules."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._alone = threading.Lock()

    def start(self, request: bytes, files: list[int]) -> int:
        with self._alone:
            socket.send_fds(self._socket, [len(request).to_bytes(_HEADER, "little")], files)
            self._socket.sendall(request)
            return int.from_bytes(_received(self._socket, _HEADER), "little")

    def end(self) -> None:
        self._socket.close()
        self._process.wait()


_started: list[_Python] = []
_starting = threading.Lock()


def _python() -> _Python:
    with _starting:
        if not _started:
            _started.append(_Python())
        return _started[0]


def end() -> None:
    """Ends the process whose forks the commands are; none of them is waited for afterwards."""
    while _started:
        _started.pop().end()


def _received(connection: socket.socket, size: int) -> bytes:
    raw = b""
    while len(raw) < size:
        part = connection.recv(size - len(raw))
        if not part:
            raise EOFError
        raw += part
    return raw


# --- in that process ---


def _forked(control: socket.socket) -> dict[str, Any]:
    """Starts the requested commands until the tests end. Returns only in a command's process: its request."""
    running: dict[int, tuple[int, int]] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in running:
                process, told = running.pop(ready)
                poll.unregister(ready)
                os.write(told, os.waitpid(process, 0)[1].to_bytes(_STATUS, "little"))
                os.close(told)
                os.close(ready)
                continue
            header, files, _, _ = socket.recv_fds(control, _HEADER, 4)
            if not header:
                os._exit(0)
            request = _received(control, int.from_bytes(header, "little"))
            process = os.fork()
            if process == 0:
                for number, file in enumerate(files[:3]):
                    os.dup2(file, number)
                told = [told for _, told in running.values()]
                os.closerange(3, 1 + max([control.detach(), *files, *running, *told]))
                return dict(json.loads(request))
            for file in files[:3]:
                os.close(file)
            watched = os.pidfd_open(process)
            running[watched] = process, files[3]
            poll.register(watched, select.POLLIN)
            control.sendall(process.to_bytes(_HEADER, "little"))


if __name__ == "__main__":
    sys.path[0] = str(RINGLOG.parent)
    for name in _IMPORTED:
        import_module(f"ringlog.{name}")
    assert len(os.listdir("/proc/self/task")) == 1, "a fork would lack the other threads"
    gc.freeze()
    wanted = _forked(socket.socket(fileno=int(sys.argv[1])))
    if wanted["session"]:
        os.setsid()
    os.umask(wanted["umask"])
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.argv = wanted["argv"]
    sys.exit(import_module("ringlog.cli").main())
