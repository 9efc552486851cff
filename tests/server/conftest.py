from collections.abc import Iterator
from pathlib import Path

import pytest
from places import data

from servers import RunningServer, serving

__all__ = ["data"]


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest, temporary_directory: Path) -> Iterator[RunningServer]:
    """A server of the tests of one file."""
    with serving(temporary_directory / request.path.stem) as server:
        yield server
