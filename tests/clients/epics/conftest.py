"""The clients of an IOC, which a module's fixture `ioc` starts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from iocs import Ioc, Programs


@pytest.fixture
def programs(ioc: Ioc, tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path, ioc.environment)
    yield programs
    programs.stop()
