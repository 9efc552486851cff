"""Locust as a process: started, watched by the records of its users, and ended."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

import ringlog.loadtest
from ringlog.clients.listening import free_port
from ringlog.clients.password import ENVIRONMENT as PASSWORD
from ringlog.loadtest.calls import Kind
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.load import LocustLoad
from ringlog.loadtest.spring8.recorded import Recorded, of_kind, well

_LOCUSTFILE = Path(ringlog.loadtest.__file__).parent / "locustfile.py"
# Locust looks for modules in the working directory first, which may have another folder `ringlog`.
_LOCUST = "import ringlog.loadtest; from locust.main import main; main()"
# Seconds for locust to start, for one user to log in, for all to end, and for all other work: locust ends by
# itself when its load test is killed.
_UP, _LOGIN, _DOWN, _AT_MOST = 60.0, 0.2, 120.0, 600.0
# More at once would only wait for each other.
_SPAWNED_A_SECOND = 100


def locust_command(arguments: Sequence[str]) -> list[str]:
    """The command line of locust with our users."""
    return [sys.executable, "-P", "-c", _LOCUST, "-f", str(_LOCUSTFILE), *arguments]


def locust_environment(load: LocustLoad, password: str | None) -> dict[str, str]:
    own = {} if password is None else {PASSWORD: password}
    return os.environ | load.environment() | own


class Swarm:
    """Running users and their records so far."""

    def __init__(self, process: subprocess.Popen[bytes], load: LocustLoad, log: Path) -> None:
        assert load.calls is not None
        self.process = psutil.Process(process.pid)
        self.recorded = Recorded(load.calls)
        self._process = process
        self._log = log

    def logged_in(self) -> int:
        """How many users have logged in."""
        self.recorded.catch_up()
        logins = well(of_kind(self.recorded.all, Kind.LOGIN))
        return int((logins["number"] == 0).sum())

    def wait_for_logins(self, users: int) -> Iterator[int]:
        """Yields the number of users logged in, until all are or it takes too long."""
        until = time.monotonic() + _UP + _LOGIN * users
        while True:
            self.check()
            found = self.logged_in()
            yield found
            if found >= users or time.monotonic() > until:
                return
            time.sleep(0.2)

    def check(self) -> None:
        """Raises LoadTestError when locust has ended by itself."""
        if self._process.poll() is not None:
            raise LoadTestError(
                f"locust has ended by itself: {self.complaint or self._log.read_text()[-500:]}"
            )

    @property
    def complaint(self) -> str:
        """The failed calls in its log: the most frequent failure, or the last error."""
        text = self._log.read_text(errors="replace")
        if report := text.partition("Error report")[2]:
            failures = re.findall(r"^(\d+) +(\S.*?) *$", report, re.MULTILINE)
            if failures:
                number, what = max(failures, key=lambda one: int(one[0]))
                return f"{number} times: {what}"
        errors = re.findall(r"/(?:ERROR|CRITICAL)/\S+: (.+)", text)
        return str(errors[-1]) if errors else ""

    def stop(self) -> None:
        """Lets running calls end and their records arrive, then ends locust."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_DOWN)
            except subprocess.TimeoutExpired:
                raise LoadTestError(f"locust did not end within {_DOWN:g} s") from None
        self.recorded.catch_up()


@dataclass(frozen=True)
class Workers:
    """The processes of the users: so many of our own, or so many workers from other machines."""

    own: int = 2
    foreign: int = 0

    def __str__(self) -> str:
        number = self.foreign or self.own
        kind = (
            "foreign worker"
            if self.foreign
            else "process of locust"
            if number == 1
            else "processes of locust"
        )
        return f"{number} {kind}" + "s" * (self.foreign > 1)

    def arguments(self) -> list[str]:
        if self.foreign:
            return ["--master", "--expect-workers", str(self.foreign)]
        port = str(free_port())
        where = ["--master-bind-host", "127.0.0.1", "--master-bind-port", port, "--master-port", port]
        return ["--processes", str(self.own), *where]


@contextmanager
def swarm(
    load: LocustLoad, password: str | None, users: int, workers: Workers, seconds: float, folder: Path
) -> Iterator[Swarm]:
    """Users without locust's web page, for some seconds after all are logged in; `folder` is for its log."""
    longest = seconds + _UP + _LOGIN * users + _AT_MOST
    arguments = ["--headless", "--only-summary", "--users", str(users), *workers.arguments()]
    arguments += ["--spawn-rate", str(min(users, _SPAWNED_A_SECOND)), "--stop-timeout", "20"]
    arguments += ["--run-time", f"{longest:.0f}s"]
    log = folder / "locust.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            locust_command(arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=locust_environment(load, password),
            # Ctrl-C must not reach it: the load test ends it in order
            process_group=0,
        )
    one = Swarm(process, load, log)
    try:
        yield one
        one.stop()
    finally:
        if process.poll() is None:
            for child in [*one.process.children(recursive=True), one.process]:
                child.kill()
            process.wait()
