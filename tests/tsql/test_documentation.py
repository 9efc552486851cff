"""docs/tsql.md names functions: each is there."""

import re
from pathlib import Path

import pytest

from ringlog.gateway.tsql import functions
from ringlog.gateway.tsql.errors import TsqlError

PAGE = (Path(__file__).parents[2] / "docs" / "tsql.md").read_text()


def row(name: str) -> list[str]:
    """The words in code style of a row of the tables."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {name} |")]
    return [word for code in re.findall(r"`([^`]*)`", line) for word in code.split() if word.isidentifier()]


@pytest.mark.parametrize("name", ["Texts", "Numbers", "Times", "Aggregates", "The catalogue"])
def test_functions_that_are_said_to_be_understood(name: str) -> None:
    niladic = {"current_timestamp", "distinct", "sysobjects", "sys"}
    named = [word for word in row(name) if word not in niladic]
    assert named
    assert [word for word in named if not functions.is_known(word)] == []


@pytest.mark.parametrize("name", ["checksum", "hashbytes", "soundex", "format", "try_convert"])
def test_functions_that_are_said_to_be_refused(name: str) -> None:
    assert name in PAGE
    with pytest.raises(TsqlError):
        functions.refuse_unknown(name, 1)
