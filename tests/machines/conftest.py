from collections.abc import Iterator
from pathlib import Path

import pytest

from sites import Site, running_site


@pytest.fixture
def site(temporary_directory: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    with running_site(temporary_directory / request.node.name[:20]) as made:
        yield made
