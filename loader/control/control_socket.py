"""A socket in the folder of spools, by which `ringlog reload` reaches all `ringlog load` processes that use
them."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ringlog.loader.control.reload import Reloaded

# Seconds that an answer may take.
_PATIENCE = 30.0


class ControlSocket:
    """Listens in the folder of spools. Raises OSError when it cannot."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"load-{os.getpid()}.socket"
        # renamed once it listens: a socket that does not listen counts as left by a killed process
        made = self._file.with_suffix(".new")
        made.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        with _short(made) as name:
            self._socket.bind(name)
        # accessible to accounts that may write the folder's spools
        made.chmod(0o600)
        self._socket.listen()
        self._socket.setblocking(False)
        made.rename(self._file)

    def answer(self, reload: Callable[[], Reloaded]) -> None:
        """Answers the requests that have arrived."""
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            with caller, suppress(OSError):
                caller.settimeout(1.0)
                done = reload()
                caller.sendall(json.dumps([done.whole, done.lines]).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.unlink(missing_ok=True)
        self._socket.close()


def ring(folder: Path) -> Iterator[tuple[int, Reloaded]]:
    """Requests a reload from every `ringlog load` with spools in this folder; yields process ids and answers.

    Raises OSError when one does not answer.
    """
    for file in sorted(folder.glob("load-*.socket")):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(_PATIENCE)
            try:
                with _short(file) as name:
                    caller.connect(name)
            except (ConnectionRefusedError, FileNotFoundError):
                # left by a killed process
                file.unlink(missing_ok=True)
                continue
            text = b"".join(iter(lambda: caller.recv(65536), b""))
        whole, lines = json.loads(text)
        yield int(file.stem.removeprefix("load-")), Reloaded(whole, tuple(lines))


@contextmanager
def _short(file: Path) -> Iterator[str]:
    """A name of the file within the 107 bytes of a socket's address."""
    folder = os.open(file.parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)
