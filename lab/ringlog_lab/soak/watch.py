"""Samples a server for days: sizes, dead rows, memory, write-ahead log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ringlog.loadtest.experiment.server import Server
from ringlog_lab.stage import memory_of

_SIZES = """
select
  coalesce(sum(pg_table_size(c.oid)) filter (where n.nspname = 'log' and c.relkind = 'r'), 0),
  coalesce(sum(pg_relation_size(c.oid)) filter (where n.nspname = 'log' and c.relkind = 'i'), 0),
  coalesce(sum(pg_table_size(c.oid)) filter (where n.nspname in ('online', 'ring') and c.relkind = 'r'), 0),
  coalesce(sum(pg_relation_size(c.oid))
    filter (where n.nspname in ('online', 'ring') and c.relkind = 'i'), 0),
  coalesce(sum(pg_total_relation_size(c.oid))
    filter (where n.nspname = 'pg_catalog' and c.relkind = 'r'), 0),
  coalesce(sum(pg_total_relation_size(c.oid))
    filter (where n.nspname = 'ringlog' and c.relkind = 'r'), 0),
  coalesce(sum(pg_total_relation_size(c.oid))
    filter (where n.nspname = 'summary' and c.relkind = 'r'), 0),
  coalesce(sum(pg_total_relation_size(c.oid))
    filter (where n.nspname = 'closed' and c.relkind = 'r'), 0),
  count(*) filter (where n.nspname = 'log' and c.relkind = 'r'),
  count(*)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
"""
_DEAD = """
select coalesce(sum(n_dead_tup), 0) from pg_stat_user_tables where schemaname in ('log', 'online', 'ring')
"""
_WAL = "select coalesce(sum(size), 0) from pg_ls_waldir()"
_ARCHIVE = "select coalesce(sum(rows), 0), coalesce(sum(bytes), 0) from ringlog.cold_week"


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
    """seconds of gateway and PostgreSQL since this start"""


def look(server: Server, seconds: float, clock: float, start: int, rows: Callable[[], int]) -> Look:
    """Figures of this moment."""
    mark, count = server.mark(), rows()

    def row(query: str) -> list[int]:
        found = server.administrator.execute(query).fetchone()
        assert found is not None
        return [int(one) for one in found]

    logs, log_indexes, rings, ring_indexes, catalogue, own, summaries, closed, partitions, relations = row(
        _SIZES
    )
    archived_rows, archived_bytes = row(_ARCHIVE)
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
        logs=logs,
        log_indexes=log_indexes,
        rings=rings,
        ring_indexes=ring_indexes,
        catalogue=catalogue,
        own=own,
        summaries=summaries,
        closed=closed,
        partitions=partitions,
        relations=relations,
        dead=row(_DEAD)[0],
        wal=mark.wal,
        wal_files=row(_WAL)[0],
        archived_rows=archived_rows,
        archived_bytes=archived_bytes,
        cpu=mark.postgres + mark.gateway,
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
    """The looks of the start that has the most."""
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
