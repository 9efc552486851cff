"""Cases as data: `test_facility.toml` has the tables of test_facility.py."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _tables(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text())


def cases(file: str, table: str) -> Any:
    """The rows of a table beside the test file, as lists, or a dict by name."""
    return _tables(Path(file).with_suffix(".toml"))[table]


def plain(value: Any) -> Any:
    """A value in which NULL is None, at any depth."""
    match value:
        case list():
            return [*map(plain, value)]
        case dict():
            return {name: plain(one) for name, one in value.items()}
    return None if value == "NULL" else value
