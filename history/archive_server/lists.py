"""The lists of the archive's files. A query names its list by a digest, and the process that started this one
reads the list from the manifest when a query first needs it.

A line of output `files NUMBER TABLE` requests the list of a table, a line of input, a JSON array, is the
answer: the number, the list's text, and null or the reason why there is none.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from queue import Empty, SimpleQueue
from time import monotonic

from ringlog.history.archive.folder import Damaged

OF_SAMPLES = "samples-"
"""before the digest where the files are of a table of samples"""

_PATIENCE = 30.0  # seconds for an answer
_KEPT = 32
"""lists in memory, about 300 kB each for ten years"""


@dataclass(frozen=True)
class File:
    """A week's file: its name in the archive's folder, and the manifest's entry."""

    name: str
    begins: datetime
    ends: datetime
    rows: int
    footer: str


@dataclass(frozen=True)
class Files:
    """The archived weeks of a table in the order of time."""

    folder: str
    weeks: tuple[File, ...]


class Changed(Exception):
    """The list that a query has named is no longer the manifest's."""


class Lists:
    """The lists that queries need, for all connections."""

    def __init__(self, ask: Callable[[str], object]) -> None:
        """`ask` writes a line."""
        self._ask = ask
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Files] = OrderedDict()
        self._number = 0

    def answer(self, line: bytes) -> None:
        """For the thread that reads the answers."""
        self._answers.put(line)

    def of(self, name: str) -> Files:
        """The list that a query names `TABLE DIGEST` (`ringlog.list_archived`). Raises Changed,
        Damaged."""
        table, _, digest = name.rpartition(" ")
        with self._lock:
            known = self._known.get(name)
            if known is None:
                text = self._requested(table)
                if sha256(text.encode()).hexdigest() != digest.removeprefix(OF_SAMPLES):
                    raise Changed(f"weeks of {table} were archived or recalled meanwhile: repeat the query")
                known = self._known[name] = _parsed(text)
                if len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(name)
            return known

    def _requested(self, table: str) -> str:
        self._number += 1
        self._ask(f"files {self._number} {json.dumps(table)}\n")
        end = monotonic() + _PATIENCE
        try:
            while True:
                number, text, error = json.loads(self._answers.get(timeout=max(0.0, end - monotonic())))
                if number == self._number:
                    break
        except Empty:
            error = "there was no answer in time"
        if error is not None:
            raise Damaged(f"the list of the files of {table} cannot be read from the manifest: {error}")
        return str(text)


def _parsed(text: str) -> Files:
    given = json.loads(text)
    return Files(
        given["folder"],
        tuple(
            File(name, datetime.fromisoformat(begins), datetime.fromisoformat(ends), rows, footer)
            for name, begins, ends, rows, footer in given["files"]
        ),
    )
