"""A `ringlog serve` that is killed and restarted."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from ringlog.clients.listening import free_port

RINGLOG = (sys.executable, "-P", "-m", "ringlog")
_PATIENCE = 120.0  # seconds for a start, and for an end


class KilledServer:
    """A server on a data directory, with ports that it keeps. It runs from construction on, until `stop`.

    `facility` None serves the installed tables. Its output goes to the file `log`, which each start replaces.
    `options` are further ones of `ringlog serve`.
    """

    environment: Mapping[str, str] = {}
    """variables of the next start"""

    def __init__(self, data: Path, facility: Path | None, log: Path, *options: str) -> None:
        self._data = data
        self._output = log
        self.port = free_port()
        self._command = self.command("serve", "--listen", f"127.0.0.1:{self.port}", "--memory", "512MB")
        self._command += ["--pg-port", str(free_port()), *options]
        if facility is not None:
            self._command += ["--facility", str(facility)]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def command(self, *words: str | Path) -> list[str]:
        """The command line of a command on its data directory."""
        return [*RINGLOG, *map(str, words), "--data", str(self._data)]

    @cached_property
    def dsn(self) -> str:
        """The administrator's connection string."""
        output = subprocess.run(self.command("dsn"), check=True, capture_output=True, text=True)
        return output.stdout.strip()

    @property
    def pid(self) -> int:
        """Its process, the last one if it has ended."""
        assert self._process is not None
        return self._process.pid

    @property
    def accepts_calls(self) -> bool:
        running = self._process is not None and self._process.poll() is None
        return running and re.search(r"^TDS on", self._log(), re.MULTILINE) is not None

    def start(self) -> None:
        """Starts it, and waits until it accepts calls."""
        until = time.monotonic() + _PATIENCE
        while True:
            with self._output.open("wb") as log:
                self._process = subprocess.Popen(
                    self._command, stdout=log, stderr=log, env=os.environ | self.environment
                )
            while self._process.poll() is None:
                if self.accepts_calls:
                    return
                time.sleep(0.05)
            if time.monotonic() > until:
                raise RuntimeError(f"the server does not start: {self._log()}")
            time.sleep(0.2)  # after a kill its port may be in use for a moment

    def tend(self) -> None:
        """Restarts it after it has ended, as systemd would."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def kill_postgresql(self) -> None:
        """Kills its PostgreSQL, which ends the server. Raises OSError, ValueError or IndexError if none
        runs.
        """
        lock = self._data / "postgresql-18" / "postmaster.pid"
        os.kill(int(lock.read_text().split()[0]), signal.SIGKILL)
        assert self._process is not None
        self._process.wait(_PATIENCE)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(_PATIENCE)

    def _log(self) -> str:
        return self._output.read_text(errors="replace")
