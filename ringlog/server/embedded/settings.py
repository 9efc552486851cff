"""The settings of the embedded server: PostgreSQL's size for the machine, and its host-based
authentication."""

import re
from collections.abc import Mapping
from pathlib import Path

import psutil

from ringlog.errors import UsageError

MiB = 2**20
GiB = 2**30

# Read in the order of their names, so the operator's file wins.
GENERATED = "00-ringlog.conf"
OPERATOR = "50-site.conf"

ALLOCATION = {
    "MALLOC_TRIM_THRESHOLD_": str(8 * MiB),
    "MALLOC_MMAP_THRESHOLD_": str(32 * MiB),
    "MALLOC_TOP_PAD_": str(MiB // 4),
}
"""Variables for glibc's malloc (mallopt(3)): a backend keeps memory that a statement has freed, up to 8 MiB,
for the next one. By default it returns to the kernel after each statement, and is zeroed at the next."""

OPERATOR_TEXT = (
    f"# Your own PostgreSQL settings. They override {GENERATED}, which is written at every start.\n"
)

HBA_TEXT = """# Written once; you may change it. The first matching line is used.
# The administrator connects through the socket and is identified by his account (pg_ident.conf).
local  all          postgres       peer map=administrator
local  replication  postgres       peer map=administrator
# All other logins use a password, from every host.
local  all          all            scram-sha-256
host   all          all       all  scram-sha-256
"""


def ident_text(account: str) -> str:
    """pg_ident.conf: root and the account that PostgreSQL runs under are its administrators."""
    accounts = sorted({"root", account})
    return "".join(f"administrator  {name}  postgres\n" for name in accounts)


def parse_memory(text: str) -> int:
    """Bytes of a size in PostgreSQL's notation: 512MB, 8GB. Raises UsageError for anything else."""
    units = {"MB": MiB, "GB": GiB, "TB": 1024 * GiB}
    found = re.fullmatch(r"(\d+) *(MB|GB|TB)", text, re.ASCII)
    if found is None or int(found[1]) == 0:
        raise UsageError(f"{text!r} is not a memory size: write a whole number and MB, GB or TB, as 8GB")
    return int(found[1]) * units[found[2]]


CONNECTIONS = 300
_LOCKS_OF_A_TABLE = 40
"""locks to make a table: ring, log, weeks, summaries, views, their indexes and sequences"""


def machine_memory() -> int:
    """Bytes of memory that this machine, or its container, may use."""
    memory: int = psutil.virtual_memory().total
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(limit).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            memory = min(memory, int(text))
    return memory


def maintenance_memory(memory: int) -> int:
    """Bytes for making an index, or for a vacuum."""
    return min(max(memory // 16, 32 * MiB), GiB)


def process_memory(memory: int) -> int:
    """Bytes that each process of PostgreSQL may have for itself, besides the shared buffers.

    A value of the longest request is in memory several times while it is stored.
    """
    return 512 * MiB + 2 * maintenance_memory(memory)


def sized(memory: int, disk: int, tables: int = 0) -> dict[str, str | int]:
    """PostgreSQL's settings for a machine whose work is ringlog.

    `memory` and `disk` are bytes: the memory PostgreSQL may plan with, and the size of the file system of the
    data. `tables` may be installed at once. A quarter of the memory is the buffer cache: S-DALINAC found that
    best for an archive, and it leaves the rest to the operating system for caching reads (its paper on
    PostgreSQL for the EPICS archiver, section "Memory configuration").
    """
    buffers = max(memory // 4, 32 * MiB)
    wal = min(max(memory // 4, 256 * MiB), max(disk // 20, 256 * MiB), 8 * GiB)
    return {
        # 60 writers, 60 readers, the gateway's own, and some for administrators
        "max_connections": CONNECTIONS,
        # for each connection: pg_dump locks every week of every table at once, an installation all it makes
        "max_locks_per_transaction": max(256, -(-tables * _LOCKS_OF_A_TABLE // CONNECTIONS)),
        "password_encryption": "scram-sha-256",
        # an acknowledged row survives
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        # memory
        "shared_buffers": _megabytes(buffers),
        "effective_cache_size": _megabytes(max(memory * 3 // 4, buffers)),
        "maintenance_work_mem": _megabytes(maintenance_memory(memory)),
        "huge_pages": "try",
        # a sort or join of one process must not fill the disk
        "temp_file_limit": _megabytes(max(disk // 4, GiB)),
        # timed checkpoints, spread over their interval, keep the latency of writers even
        "checkpoint_timeout": "15min",
        "checkpoint_completion_target": "0.9",
        "max_wal_size": _megabytes(wal),
        "min_wal_size": _megabytes(wal // 4),
        "wal_compression": "on",
        # rings are updated all the time: vacuum them often, in small steps
        "autovacuum": "on",
        "autovacuum_naptime": "15s",
        "autovacuum_vacuum_cost_limit": 1000,
        # a file a day, or for these bytes: server_log removes them. No text of statements, for
        # one that fails may hold a password
        "logging_collector": "on",
        "log_directory": "log",
        "log_filename": "postgresql-%Y-%m-%d_%H%M%S.log",
        "log_rotation_age": "1d",
        "log_rotation_size": "16MB",
        "log_truncate_on_rotation": "off",
        "log_line_prefix": "%m [%p] %q%u@%d %h ",
        "log_statement": "none",
        "log_min_error_statement": "panic",
        "log_lock_waits": "on",
        # one that nobody ends keeps its locks and its files, also after a restart
        "max_prepared_transactions": 0,
        # a connection that never logs in occupies a slot
        "authentication_timeout": "10s",
    }


def reserved(connections: int, version: int) -> dict[str, str | int]:
    """PostgreSQL's settings that keep connections for the administrator, and for writers and the gateway,
    which guards.direct makes members of pg_use_reserved_connections; PostgreSQL 15 does not have it.

    `connections` is max_connections, `version` the major version.
    """
    own: dict[str, str | int] = {"superuser_reserved_connections": max(3, connections // 30)}
    return own | ({"reserved_connections": connections // 6} if version >= 16 else {})


def settings_text(
    *,
    memory: int,
    disk: int,
    port: int,
    socket: Path,
    tables: int = 0,
    kept: Mapping[str, str | int] | None = None,
) -> str:
    """The embedded server's generated settings file; `memory`, `disk` and `tables` as for `sized`, `kept` as
    `reserved` gives it."""
    fixed: dict[str, str | int] = {
        # listen on this machine only
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": str(socket),
        # for the administrator only, as its folder
        "unix_socket_permissions": "0700",
        "cluster_name": "ringlog",
        # `ringlog backup` sets the folder; until then nothing is archived
        "archive_mode": "on",
        "archive_command": "/bin/true",
    }
    values = fixed | sized(memory, disk, tables) | dict(kept or {})
    lines = [f"{name} = {_literal(value)}\n" for name, value in values.items()]
    return f"# Written by ringlog at every start; your own settings go into {OPERATOR}.\n" + "".join(lines)


def _megabytes(size: int) -> str:
    return f"{size // MiB}MB"


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
