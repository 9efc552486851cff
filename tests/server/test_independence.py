"""No test depends on another, according to the sources of the tests."""

import re
from pathlib import Path

from servers import READER, WRITER

TESTS = Path(__file__).parents[1]
# logins that many tests of one server use
SHARED = (WRITER.user, READER.user, "plain", "display")


def test_no_test_counts_the_sessions_of_a_shared_login() -> None:
    """A session of another test may remain: `own_login` has sessions of one test only."""
    by_login = re.compile(rf"usename\W{{0,5}}(=|in)\W{{0,5}}({'|'.join(SHARED)})\b")
    found = [
        f"{path.relative_to(TESTS)}: {line.strip()}"
        for path in TESTS.rglob("*.py")
        for line in path.read_text().splitlines()
        if by_login.search(line) and "re.compile" not in line
    ]
    assert found == []
