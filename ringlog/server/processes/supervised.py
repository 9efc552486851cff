"""A process of the server that is restarted when it ends by itself."""

import logging
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from ringlog import logs
from ringlog.errors import ServerError
from ringlog.monitoring.metrics import exposition

log = logging.getLogger(__name__)

LOOK = 0.2  # seconds between two looks at the process
# Seconds before a process that has ended by itself is started again: at first, and at most. They double while
# the process does not last.
_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_LASTED = 60.0
_LONGEST_START = 120.0  # seconds that a start may take


@dataclass(frozen=True)
class State:
    """Whether a process runs, and how often it has been started again."""

    name: str
    metric: str
    what: str
    up: bool
    restarts: int

    def __str__(self) -> str:
        """Empty while nothing has happened."""
        if self.up and not self.restarts:
            return ""
        return f"{self.name} {'runs' if self.up else 'is down'}, {self.restarts} restarts"

    @property
    def metrics(self) -> str:
        """OpenMetrics text without its end."""
        name = f"ringlog_{self.metric}"
        up = GaugeMetricFamily(f"{name}_up", f"1 while {self.what} runs.", self.up)
        description = "Starts of the process after it ended by itself."
        return exposition([up, CounterMetricFamily(f"{name}_restarts", description, self.restarts)])


class Died(ServerError):
    """The process ended, or was stopped, before it served, and gave no reason."""


class Supervised:
    """A process that reads its settings from its input, and first prints its address: `HTTP on HOST:PORT`.

    When it ends by itself it is started again, after a pause that grows while it does not last. It ends
    when its input does.
    """

    name: str
    """in the server's state"""
    metric: str
    what: str
    """as in `the process that serves HTTP`"""
    module: str
    """of Python, which is run with the options of its log"""
    greeting: str

    def __init__(self, begun: "subprocess.Popen[bytes] | None" = None) -> None:
        self._begun = begun
        """the first process, which waits for its settings"""
        self._process: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._supervise, name=self.metric, daemon=True)
        self._restarts = 0

    def send_settings(self, process: "subprocess.Popen[bytes]") -> None:
        """Writes what the process needs to begin to its input."""
        raise NotImplementedError

    def serves(self, process: "subprocess.Popen[bytes]", address: str) -> None:
        """Called when the process serves at HOST:PORT. Raises ServerError if it is unusable."""
        raise NotImplementedError

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Serves inside the with block. Raises ServerError when it cannot."""
        try:
            self._start()
        except Died as error:
            log.error("%s; starting it again", error)
        self._watch.start()
        try:
            yield self
        finally:
            self._stop.set()
            # it may just be starting another process
            self._watch.join()
            self._end()

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    @property
    def state(self) -> State:
        process = self._process
        is_up = process is not None and process.poll() is None
        return State(self.name, self.metric, self.what, is_up, self._restarts)

    @classmethod
    def begin(cls, stack: ExitStack) -> "subprocess.Popen[bytes]":
        """A process for `begun`: it reads its modules while others start. It is killed with the stack, if it
        still runs then."""
        process = cls._new()

        def end() -> None:
            process.kill()
            process.wait()

        stack.callback(end)
        return process

    @classmethod
    def _new(cls) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", "-m", cls.module, *logs.running()]
        # in a session of its own: out of reach of Ctrl-C, and its nice counts beside the gateway (sched(7))
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0
        )

    def _start(self) -> None:
        process, self._begun = self._begun or self._new(), None
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError):
                self.send_settings(process)
            line = self._first_line(process)
            if not line.startswith(f"{self.greeting} "):
                process.stdin.close()
                code = process.wait(_LONGEST_START)
                if not line:
                    raise Died(f"{self.what} ended while it started (code {code})")
                raise ServerError(f"{self.name}: {line}")
            self.serves(process, line.removeprefix(f"{self.greeting} "))
        except BaseException:
            process.kill()
            process.wait()
            raise
        self._process = process

    def _first_line(self, process: "subprocess.Popen[bytes]") -> str:
        """The first line of a process's output; empty: it ended without one. Raises Died for a process that
        takes too long, or when this one stops."""
        assert process.stdout is not None
        received = b""
        deadline = time.monotonic() + _LONGEST_START
        while not received.endswith(b"\n"):
            if time.monotonic() > deadline or self._stop.is_set():
                raise Died(f"{self.what} did not start within {_LONGEST_START:.0f} s")
            if select.select([process.stdout], [], [], LOOK)[0]:
                part = process.stdout.read(1)
                if not part:
                    break
                received += part
        return received.decode(errors="replace").strip()

    def _end(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _supervise(self) -> None:
        pause, began = _PAUSE, time.monotonic()
        while not self._stop.wait(LOOK):
            process = self._process
            if process is not None and process.poll() is None:
                continue
            if time.monotonic() - began > _LASTED:
                pause = _PAUSE
            if process is not None:
                log.error(
                    "%s has ended (code %d); it is started again in %.0f s",
                    self.what,
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
