"""Reads a facility file and installs it for the server, in a process of its own.

The memory for it, hundreds of megabytes for 500,000 signals, is freed when this process and its PostgreSQL
session end.
"""

import gc
import multiprocessing
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ringlog.errors import ServerError
from ringlog.nodes.everywhere import install_everywhere
from ringlog.schema.facility_files.facility_file import FacilityFile
from ringlog.schema.installing.install import InstallReport
from ringlog.schema.session import engine
from ringlog.server.embedded.postgres import Stopped

_PAUSE = 0.2  # seconds between two looks whether to stop
# a fork has the modules already; a new interpreter would read them for half a second
_FORK = multiprocessing.get_context("fork")


class Installer:
    """The facility of a file, which has been read. Raises FacilityError.

    Make it before any thread is started, since it forks this process. The file is checked in the background.
    """

    tables: int
    """how many the file has"""

    def __init__(self, file: Path) -> None:
        self._answers, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_work, args=(file, theirs, self._answers), daemon=True)
        self._process.start()
        theirs.close()
        self._checked = False
        try:
            self.tables = self._answer(threading.Event())
        except BaseException:
            self.end()
            raise

    def check(self, stop: threading.Event) -> None:
        """Waits until the whole file has been checked. Raises FacilityError; Stopped when `stop` is set."""
        if not self._checked:
            self._answer(stop)
            self._checked = True

    def install(self, conninfo: str, stop: threading.Event) -> InstallReport:
        """Installs it on the first server and its nodes. Raises FacilityError, InstallRefused; Stopped when
        `stop` is set: uncommitted changes are then not made."""
        try:
            self.check(stop)
            self._answers.send(conninfo)
            report: InstallReport = self._answer(stop)
            return report
        finally:
            self.end()

    def end(self) -> None:
        """Ends the process, if it is still there."""
        self._process.kill()
        self._process.join()
        self._answers.close()

    def _answer(self, stop: threading.Event) -> Any:
        while not self._answers.poll(_PAUSE):
            if stop.is_set():
                raise Stopped
        try:
            answer = self._answers.recv()
        except EOFError:
            raise ServerError("the process that installs the facility has ended") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _work(file: Path, answers: Connection, others: Connection) -> None:
    # otherwise this process would keep that end open
    others.close()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # sent to the whole process group: only the server reacts
        signal.signal(number, signal.SIG_IGN)
    # a large facility is hundreds of thousands of objects, of which none is garbage
    gc.freeze()
    gc.disable()
    with suppress(EOFError, BrokenPipeError):
        try:
            content = FacilityFile(file)
            answers.send(content.tables)
            facility = content.facility()
            answers.send(None)
            administrator = engine(answers.recv())
            answers.send(install_everywhere(administrator, facility, alone=True))
        except (EOFError, BrokenPipeError):
            raise
        except Exception as error:
            answers.send(error)
