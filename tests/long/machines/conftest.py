from collections.abc import Iterator
from pathlib import Path

import pytest

from sites import Site, running_site


@pytest.fixture
def site(temporary_directory: Path) -> Iterator[Site]:
    with running_site(temporary_directory / "nodes") as made:
        yield made
