"""The number of files that this process may have open: each client takes one."""

import resource

MOST = 65_536
"""enough for all clients that the gateway takes, with their connections to PostgreSQL"""


def raise_file_limit() -> None:
    """Raises the soft limit, which is often 1,024, as far as the hard one allows. Processes started from
    now on have it too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
