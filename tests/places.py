"""A place for a server of one test's own."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def data() -> Iterator[Path]:
    """A data directory to be, with a path short enough for its socket."""
    folder = Path(tempfile.mkdtemp(prefix="ringlog-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder / "data"
    folder.chmod(0o755)
    shutil.rmtree(folder)
