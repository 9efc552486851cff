"""The rows of the rings: 1 to the size of each, which are always there."""

from collections.abc import Collection, Iterator
from functools import partial

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema import registry
from ringlog.schema.change import change, run
from ringlog.schema.many import by_connection
from ringlog.schema.roles import become_owner
from ringlog.schema.tables import RINGS

_AT_ONCE = 200
"""rings that one query looks at"""


def short(connection: sa.Connection, rings: Collection[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Those of some rings, each with its schema, name and size, of which rows are missing."""
    count = sql.SQL(
        "select {} where (select count(*) from {} as ring where ring.seq_no between 1 and {rows}) < {rows}"
    )
    given = [*rings]
    found: set[int] = set()
    for begin in range(0, len(given), _AT_ONCE):
        counts = sql.SQL(" union all ").join(
            count.format(sql.Literal(place), sql.Identifier(schema, name), rows=sql.Literal(rows))
            for place, (schema, name, rows) in enumerate(given[begin : begin + _AT_ONCE], begin)
        )
        found.update(
            connection.exec_driver_sql(
                counts.as_string(), execution_options={"no_parameters": True}
            ).scalars()
        )
    return [given[place] for place in sorted(found)]


def fill(connection: sa.Connection, schema: str, name: str, rows: int) -> int:
    """Makes the rows of a ring that are not there. Returns how many."""
    statement = sql.SQL(
        "insert into {ring} (seq_no) select wanted.place from generate_series(1, {rows}) as wanted (place)"
        " where not exists (select from {ring} as there where there.seq_no = wanted.place)"
    )
    return run(connection, statement.format(ring=sql.Identifier(schema, name), rows=sql.Literal(rows)))


def complete(engine: sa.Engine) -> Iterator[str]:
    """Makes the rows that rings of this database lack, since somebody has deleted them; a line for each."""
    with engine.connect() as connection:
        sizes = registry.ring_sizes(connection)
        stored = sa.text(
            "select nspname, relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace"
            " where nspname in ('online', :rings) and relkind = 'r' and relname = any(:names) order by 2"
        )
        rings = [
            (schema, name, sizes[name])
            for schema, name in connection.execute(stored, {"rings": RINGS, "names": [*sizes]})
        ]
    for some in by_connection(rings):
        with engine.connect() as connection:
            lacking = short(connection, some)
        for schema, name, _ in lacking:
            if made := change(engine, partial(_complete, schema=schema, name=name)):
                yield f"ring {name}: {made} rows more"
        engine.dispose()


def _complete(connection: sa.Connection, schema: str, name: str) -> int:
    rows = registry.ring_sizes(connection)[name]
    become_owner(connection)
    return fill(connection, schema, name, rows)
