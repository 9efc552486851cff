"""The rows of the rings: 1 to the size of each, which are always there."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TypeVar

import sqlalchemy as sa
from psycopg import errors, sql

from ringlog.schema import registry
from ringlog.schema.access.roles import become_owner
from ringlog.schema.catalogue import columns, relations
from ringlog.schema.change import ERRORS, cause_of, change, run
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.many import by_connection
from ringlog.schema.relations.partitions import log_partitions
from ringlog.schema.relations.tables import RINGS
from ringlog.schema.relations.tiers import damage
from ringlog.schema.sql_files import sql_file

T = TypeVar("T")

_AT_ONCE = 200
"""rings that one query looks at"""


def short(connection: sa.Connection, rings: Collection[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Those of these rings (schema, name, size) that lack rows."""
    count = sql.SQL(
        "select {} where (select count(*) from {} as ring where ring.seq_no between 1 and {rows}) < {rows}"
    )
    given = [*rings]
    indexes: set[int] = set()
    for begin in range(0, len(given), _AT_ONCE):
        counts = sql.SQL(" union all ").join(
            count.format(sql.Literal(index), sql.Identifier(schema, name), rows=sql.Literal(rows))
            for index, (schema, name, rows) in enumerate(given[begin : begin + _AT_ONCE], begin)
        )
        indexes.update(
            connection.exec_driver_sql(
                counts.as_string(), execution_options={"no_parameters": True}
            ).scalars()
        )
    return [given[index] for index in sorted(indexes)]


def fill(connection: sa.Connection, schema: str, name: str, rows: int) -> int:
    """Makes the missing rows of a ring. Returns how many."""
    return run(connection, filling(schema, name, rows))


def filling(schema: str, name: str, rows: int) -> sql.Composable:
    """The statement that makes the missing rows of a ring."""
    statement = sql.SQL(
        "insert into {ring} (seq_no) select wanted.seq_no from generate_series(1, {rows}) as wanted (seq_no)"
        " where not exists (select from {ring} as existing where existing.seq_no = wanted.seq_no)"
    )
    return statement.format(ring=sql.Identifier(schema, name), rows=sql.Literal(rows))


def complete(engine: sa.Engine) -> Iterator[str]:
    """Makes rows that somebody has deleted from rings of this database; a line for each ring."""
    with engine.connect() as connection:
        sizes = registry.ring_sizes(connection)
        stored = relations(connection, ("online", RINGS), sizes)
        rings = [(schema, name, sizes[name]) for (schema, name), kind in stored.items() if kind == "r"]
    for some in by_connection(rings):
        lacking = _read(engine, partial(short, rings=some))
        for schema, name, _ in lacking:
            if made := change(engine, partial(_complete, schema=schema, name=name)):
                yield f"ring {name}: {made} rows more"
        engine.dispose()


def _complete(connection: sa.Connection, schema: str, name: str) -> int:
    rows = registry.ring_sizes(connection)[name]
    become_owner(connection)
    return fill(connection, schema, name, rows)


def refill(engine: sa.Engine, table: str) -> tuple[int, int]:
    """Makes the empty rows of a ring again from the log, and its indexes, after a damage
    (procedures/housekeeping/mend_ring.sql). Writers and readers continue. Returns the number of rows made,
    and of those that stay empty because the log has no row for them.

    Raises LookupError when there is no such table here.
    """
    with engine.connect() as connection:
        stored = relations(connection, ("online", RINGS), [table])
        schema = next((schema for (schema, _), kind in stored.items() if kind == "r"), None)
        if schema is None or table not in registry.ring_sizes(connection):
            raise LookupError(f"there is no table {table}")
        weeks = log_partitions(connection, table)
    ring, log = sql.Identifier(schema, table), sql.Identifier(LOG_TABLES, table)
    # first repair damage that no call has met yet
    _read(engine, partial(run, statements=_WHOLE.format(ring)))
    refilled = 0
    for week in sorted(weeks, key=lambda week: week.start, reverse=True):
        with engine.begin() as connection:
            become_owner(connection)
            empty = _empty(connection, ring)
            if not empty:
                break
            statement = sql.SQL(_FROM_LOG).format(
                ring=ring,
                log=log,
                numbers=sql.Literal(empty),
                start=sql.Literal(week.start),
                end=sql.Literal(week.end),
                values=sql.SQL(", ").join(
                    sql.SQL("{} = {}").format(sql.Identifier(name), sql.Identifier("logged", name))
                    for name in columns(connection, ring)
                    if name != "seq_no"
                ),
            )
            refilled += run(connection, statement)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # a damaged page that no call has met yet
        run(connection, sql.SQL("reindex table concurrently {}").format(ring))
    with engine.begin() as connection:
        become_owner(connection)
        connection.execute(damage.delete().where((damage.c.work == "ring") & (damage.c.table_name == table)))
        return refilled, len(_empty(connection, ring))


_WHOLE = sql.SQL("select sum(length((ring.*)::text)) from {} as ring")

# A row that arrives meanwhile is newer, and stays. Rows ahead of the clock may have been for the log only.
_FROM_LOG = sql_file(__file__, "rings_from_log")


def _empty(connection: sa.Connection, ring: sql.Identifier) -> list[int]:
    statement = sql.SQL('select ring.seq_no from {} as ring where ring."time" is null').format(ring)
    return [*connection.exec_driver_sql(statement.as_string()).scalars()]


def _read(engine: sa.Engine, work: Callable[[sa.Connection], T]) -> T:
    def read() -> T:
        with engine.connect() as connection:
            return work(connection)

    return repaired(engine, read)


def repaired(engine: sa.Engine, work: Callable[[], T]) -> T:
    """Does work that reads rings, again after a damaged ring has been repaired."""
    while True:
        try:
            return work()
        except ERRORS as error:
            cause = cause_of(error)
            if not isinstance(cause, errors.DataCorrupted | errors.IndexCorrupted):
                raise
            message = " ".join(str(cause).split())
            with engine.begin() as connection:
                if not connection.scalar(sa.select(sa.func.ringlog.mend_ring(message))):
                    raise
