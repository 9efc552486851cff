from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from sites import Site, running_site

_numbers = count(1)


@pytest.fixture
def site(temporary_directory: Path) -> Iterator[Site]:
    with running_site(temporary_directory / f"site_{next(_numbers)}") as made:
        yield made
