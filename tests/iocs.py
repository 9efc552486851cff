"""Soft IOCs for the tests."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from waiting import wait_until


@dataclass
class Ioc:
    """A soft IOC, and its addresses for clients."""

    database: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    preload: str = ""
    """a library that is loaded first"""

    @property
    def log(self) -> Path:
        return self.database.with_suffix(".log")

    def start(self) -> None:
        own = {"LD_PRELOAD": self.preload} if self.preload else {}
        command = [sys.executable, "-m", "pvxslibs.ioc", "-d", str(self.database)]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ | self.environment | own,
            )
        wait_until(self._runs, lambda: self.log.read_text(errors="replace"))

    def _runs(self) -> bool:
        assert self.process is not None
        said = self.log.read_text(errors="replace")
        assert self.process.poll() is None, said
        return "IOC Running" in said

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
