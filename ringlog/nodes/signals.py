"""Signals of tables of samples on nodes: changed there, and known by their names to the first server."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import sql

from ringlog.errors import UsageError
from ringlog.nodes.servers import label, reached
from ringlog.schema import locks, session
from ringlog.schema.sql_files import sql_file
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

_LOOK = 2.0
"""seconds between two looks at a node's registry"""

_TABLES = """
select distinct table_name from ringlog.stand_in where node = %s order by 1
"""
_OF_SAMPLES = "select table_name from ringlog.sample_table where table_name = any(%s)"
_TAKEN = sql_file(__file__, "signals_taken")


@contextmanager
def changing(conninfo: str, node: str | None, dsn: str) -> Iterator[psycopg.Connection]:
    """A transaction on a server, in which signals of its tables of samples are changed. At its end the first
    server knows those of a node. Raises UsageError for a name that a signal of another server has."""
    if node is None:
        with session.connect(dsn) as first:
            yield first
        return
    with session.connect(conninfo) as first, session.connect(dsn) as there:
        first.execute(locks.statement(locks.CHANGES))
        # as those who add signals of the first server do
        first.execute("lock table ringlog.sample_signal in share row exclusive mode")
        yield there
        record_samples(first, there, node)


def record_samples(first: psycopg.Connection, there: psycopg.Connection, node: str) -> None:
    """Records on the first server the signals of samples that a node has now, in transactions that exclude
    changes of tables. Raises UsageError for a name that a signal of another server has."""
    tables = [table for (table,) in first.execute(_TABLES, [node])]
    sampled = [table for (table,) in there.execute(_OF_SAMPLES, [tables])]
    query = "select signal from ringlog.signal where table_name = any(%s) and valid_to is null"
    names = [name for (name,) in there.execute(query, [sampled])]
    for signal, table in first.execute(_TAKEN, {"node": node, "names": names}):
        raise UsageError(f"signal '{signal}' is there already, in table {table}")
    note(first, there, node, sampled)


def note(first: psycopg.Connection, there: psycopg.Connection, node: str, tables: Sequence[str]) -> None:
    """Records on the first server what another server has registered of these tables, which are on a node."""
    # SQLAlchemy takes longer to import than `ringlog signal` to run, which needs it for nodes only
    from ringlog.schema.moving.carrying import pipe
    from ringlog.schema.registry import signal

    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in signal.columns)
    first.execute("delete from ringlog.signal_elsewhere where table_name = any(%s)", [[*tables]])
    query = sql.SQL("select {}, {} from ringlog.signal where table_name = any({}::text[])")
    into = sql.SQL("ringlog.signal_elsewhere ({}, node)").format(columns)
    pipe(there, query.format(columns, sql.Literal(node), sql.Literal([*tables])), first, into)


@contextmanager
def signals_followed(conninfo: str, node: str, dsn: str) -> Iterator[None]:
    """The first server knows within seconds what else changes a node's signals, as what sources tell."""
    end = threading.Event()

    def follow() -> None:
        logged = ""
        while not end.wait(_LOOK):
            try:
                for _ in _changes(reached(dsn), end):
                    with session.connect(conninfo) as first, session.connect(reached(dsn)) as there:
                        first.execute("set local lock_timeout = '10s'")
                        first.execute(locks.statement(locks.CHANGES))
                        record_samples(first, there, node)
                    logged = ""
            except (psycopg.Error, UsageError) as error:
                reason = " ".join(str(error).split())
                if reason != logged:  # once is enough while the reason lasts
                    log.warning("signals of %s are not followed: %s", label(node), reason)
                logged = reason

    with in_background(f"signals of {node}", follow, end):
        yield


def _changes(conninfo: str, end: threading.Event) -> Iterator[None]:
    """Once at the begin, and each time that a server's registry has changed."""
    known = None
    with session.connect(conninfo, autocommit=True) as connection:
        while True:
            version = connection.execute("select version::text from ringlog.registry_state").fetchone()
            if version != known:
                known = version
                yield
            if end.wait(_LOOK):
                return
