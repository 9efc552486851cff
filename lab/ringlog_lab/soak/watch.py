"""Samples a server for days: sizes, dead rows, memory, write-ahead log, latency."""

from collections.abc import Sequence
from dataclasses import dataclass

from ringlog.loadtest.experiment.server import Server
from ringlog_lab.stage import memory_of

_SIZES = """
select
  coalesce(sum(pg_relation_size(c.oid)) filter (where n.nspname = 'log' and c.relkind = 'r'), 0),
  coalesce(sum(pg_relation_size(c.oid)) filter (where n.nspname = 'log' and c.relkind = 'i'), 0),
  coalesce(sum(pg_table_size(c.oid)) filter (where n.nspname in ('online', 'ring') and c.relkind = 'r'), 0),
  coalesce(sum(pg_relation_size(c.oid))
    filter (where n.nspname in ('online', 'ring') and c.relkind = 'i'), 0),
  count(*) filter (where n.nspname = 'log' and c.relkind = 'r')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('log', 'online', 'ring')
"""
_DEAD = """
select coalesce(sum(n_dead_tup), 0) from pg_stat_user_tables where schemaname in ('log', 'online', 'ring')
"""


@dataclass(frozen=True)
class Look:
    """The server at a moment. Sizes and memory in bytes."""

    seconds: float
    gateway: int
    """memory"""
    postgres: int
    """memory, shared pages counted once"""
    logs: int
    log_indexes: int
    rings: int
    ring_indexes: int
    partitions: int
    dead: int
    """rows that wait for vacuum"""
    wal: int
    """written since the server was made"""
    cpu: float
    """seconds of gateway and PostgreSQL"""


def look(server: Server, seconds: float) -> Look:
    """Figures of this moment."""
    mark = server.mark()
    sizes = server.administrator.execute(_SIZES).fetchone()
    dead = server.administrator.execute(_DEAD).fetchone()
    assert sizes is not None
    assert dead is not None
    postgres = memory_of([server.postmaster, *server.postmaster.children(recursive=True)])
    logs, log_indexes, rings, ring_indexes, partitions = (int(one) for one in sizes)
    return Look(
        seconds=seconds,
        gateway=mark.memory,
        postgres=round(postgres),
        logs=logs,
        log_indexes=log_indexes,
        rings=rings,
        ring_indexes=ring_indexes,
        partitions=partitions,
        dead=int(dead[0]),
        wal=mark.wal,
        cpu=mark.postgres + mark.gateway,
    )


SERIES = {
    "gateway": "memory of the gateway",
    "postgres": "memory of PostgreSQL",
    "rings": "size of the rings",
    "ring_indexes": "size of the rings' indexes",
    "dead": "dead rows",
    "partitions": "partitions",
}
"""Figures that should stay as they are."""
EACH = {
    "logs": "log, a row",
    "log_indexes": "the log's indexes, a row",
    "wal": "write-ahead log, a row",
    "cpu": "CPU of the server, a row",
}
"""Figures that grow with the rows, and should grow in proportion."""


def series(looks: Sequence[Look], name: str) -> list[tuple[float, float]]:
    """A figure over time."""
    return [(one.seconds, float(getattr(one, name))) for one in looks]


def each_row(looks: Sequence[Look], rows: Sequence[int], name: str) -> list[tuple[float, float]]:
    """The increase of a figure per row between two samples; `rows` are the rows written before each
    sample."""
    found = []
    for before, after, few, many in zip(looks, looks[1:], rows, rows[1:], strict=False):
        if many > few:
            gained = getattr(after, name) - getattr(before, name)
            found.append(((before.seconds + after.seconds) / 2, gained / (many - few)))
    return found
