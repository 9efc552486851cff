"""Samples a server for days: sizes, dead rows, memory, write-ahead log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from psycopg.rows import dict_row

from ringlog.loadtest.experiment.server import Server
from ringlog_lab.soak.cpu import fixed_work
from ringlog_lab.stage import memory_of

_QUERY = """
with
  relation as (
    select nspname as schema, relkind, c.oid
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
  )
select
  coalesce(sum(pg_table_size(oid)) filter (where schema = 'log' and relkind = 'r'), 0) as logs,
  coalesce(sum(pg_relation_size(oid)) filter (where schema = 'log' and relkind = 'i'), 0) as log_indexes,
  coalesce(sum(pg_table_size(oid)) filter (where schema in ('online', 'ring') and relkind = 'r'), 0) as rings,
  coalesce(sum(pg_relation_size(oid)) filter (where schema in ('online', 'ring') and relkind = 'i'), 0)
    as ring_indexes,
  coalesce(sum(pg_total_relation_size(oid)) filter (where schema = 'pg_catalog' and relkind = 'r'), 0)
    as catalogue,
  coalesce(sum(pg_total_relation_size(oid)) filter (where schema = 'ringlog' and relkind = 'r'), 0) as own,
  coalesce(sum(pg_total_relation_size(oid)) filter (where schema = 'summary' and relkind = 'r'), 0)
    as summaries,
  coalesce(sum(pg_total_relation_size(oid)) filter (where schema = 'closed' and relkind = 'r'), 0) as closed,
  count(*) filter (where schema = 'log' and relkind = 'r') as partitions,
  count(*) as relations,
  (
    select coalesce(sum(n_dead_tup), 0) from pg_stat_user_tables where schemaname in ('log', 'online', 'ring')
  ) as dead,
  (select coalesce(sum(size), 0) from pg_ls_waldir()) as wal_files,
  (select coalesce(sum(rows), 0) from ringlog.cold_week) as archived_rows,
  (select coalesce(sum(bytes), 0) from ringlog.cold_week) as archived_bytes
from relation
"""
"""Figures of PostgreSQL, by the names of fields of Look."""


@dataclass(frozen=True)
class Look:
    """The server at a moment. Sizes and memory in bytes."""

    seconds: float
    """simulated, since the first row"""
    clock: float
    """seconds of load so far, of all starts"""
    start: int
    """number of the start"""
    rows: int
    """acknowledged so far"""
    gateway: int
    """memory"""
    postgres: int
    """memory, shared pages counted once"""
    private: int
    """the part of it that the processes do not share"""
    helpers: int
    """memory of the server's other processes"""
    logs: int
    log_indexes: int
    rings: int
    ring_indexes: int
    catalogue: int
    own: int
    """ringlog's own tables"""
    summaries: int
    closed: int
    partitions: int
    relations: int
    dead: int
    """rows that wait for vacuum"""
    wal: int
    """written since the server was made"""
    wal_files: int
    archived_rows: int
    archived_bytes: int
    cpu: float
    """CPU of gateway and PostgreSQL since this start, in seconds"""
    fixed: float
    """CPU of a fixed piece of work, in seconds"""


def look(server: Server, seconds: float, clock: float, start: int, rows: Callable[[], int]) -> Look:
    """Figures of this moment."""
    mark, count = server.mark(), rows()
    with server.administrator.cursor(row_factory=dict_row) as cursor:
        figures = cursor.execute(_QUERY).fetchone() or {}
    postgres = [server.postmaster, *server.postmaster.children(recursive=True)]
    helpers = [one for one in server.gateway.children(recursive=True) if one not in postgres]
    return Look(
        seconds=seconds,
        clock=clock,
        start=start,
        rows=count,
        gateway=mark.memory,
        postgres=round(memory_of(postgres)),
        private=round(memory_of(postgres, "Pss_Anon")),
        helpers=round(memory_of(helpers)),
        wal=mark.wal,
        cpu=mark.postgres + mark.gateway,
        fixed=fixed_work(),
        **{name: int(value) for name, value in figures.items()},
    )


MEMORY = {
    "gateway": "memory of the gateway",
    "private": "memory of PostgreSQL, without shared buffers",
    "helpers": "memory of the server's other processes",
}
"""Figures that begin anew with each start, and should stay."""
SERIES = {
    "rings": "size of the rings",
    "ring_indexes": "size of the rings' indexes",
    "dead": "dead rows",
    "catalogue": "PostgreSQL's catalogue",
    "fixed": "the machine: CPU of a fixed piece of work",
}
"""Figures that should stay as they are."""
EACH = {
    "wal": "write-ahead log, a row",
    "cpu": "CPU of the server, a row",
    "logs": "log, a row",
    "log_indexes": "the log's indexes, a row",
    "summaries": "summaries, a row",
    "closed": "closed rows, a row",
}
"""Figures that grow with the rows, and should grow in proportion."""
EXPECTED = {
    "rows": "rows",
    "logs": "log",
    "log_indexes": "the log's indexes",
    "summaries": "summaries",
    "closed": "closed rows",
    "wal_files": "files of the write-ahead log",
    "own": "ringlog's own tables",
    "archived_rows": "rows in the archive",
    "archived_bytes": "archive",
    "postgres": "memory of PostgreSQL, with shared buffers",
    "partitions": "partitions",
    "relations": "relations",
}
"""Figures that should grow with rows and weeks."""
_WINDOW = 43_200.0
_WINDOWS = 28

Samples = Sequence[tuple[float, float]]


def series(looks: Sequence[Look], name: str) -> Samples:
    """A figure over simulated seconds."""
    return [(one.seconds, float(getattr(one, name))) for one in looks]


def longest_start(looks: Sequence[Look]) -> list[Look]:
    starts = [one.start for one in looks]
    longest = max(starts, key=starts.count)
    return [one for one in looks if one.start == longest]


def each_row(looks: Sequence[Look], name: str) -> Samples:
    """The increase of a figure per row, of half days if there are enough, without those in which weeks went
    into the archive or the server was started."""
    length = looks[-1].seconds - looks[0].seconds
    window = min(_WINDOW, length / _WINDOWS)
    found, before = [], looks[0]
    for after in looks[1:]:
        if after.start != before.start or after.archived_rows != before.archived_rows:
            before = after
        elif after.seconds - before.seconds >= window and after.rows > before.rows:
            gained = getattr(after, name) - getattr(before, name)
            found.append(((before.seconds + after.seconds) / 2, gained / (after.rows - before.rows)))
            before = after
    return found
