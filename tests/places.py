"""The folders of the tests' servers."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

_MEMORY = Path("/dev/shm")
_ROOM = 9 * 2**30
"""bytes that are enough for four workers"""


def _root() -> Path:
    """The folder is below /dev/shm, if it has room for the files of all workers: PostgreSQL creates a
    database in memory in a tenth of the time on a disk. Otherwise it is below /tmp. Both are short enough for
    the paths of sockets.
    """
    free = shutil.disk_usage(_MEMORY).free if os.access(_MEMORY, os.W_OK | os.X_OK) else 0
    return _MEMORY if min(free, psutil.virtual_memory().available - _ROOM) > _ROOM else Path("/tmp")


ROOT = Path(os.environ.get("TEST_ROOT") or _root())
# the workers of a run, its programs, and pytest's own folders have the same
os.environ["TEST_ROOT"] = os.environ["TMPDIR"] = str(ROOT)
tempfile.tempdir = None


def new_folder(name: str = "") -> Path:
    """An empty folder that every account may enter; `name` is part of its name."""
    folder = Path(tempfile.mkdtemp(prefix=f"ringlog-{name}-" if name else "ringlog-", dir=ROOT))
    folder.chmod(0o755)
    return folder


@pytest.fixture
def data() -> Iterator[Path]:
    """A path for a new data directory, short enough for its socket."""
    folder = new_folder()
    yield folder / "data"
    folder.chmod(0o755)
    shutil.rmtree(folder)
