"""Tables of samples: their registry, and their objects in the database.

`weeks.<table>` has a row, a block, for some samples of one signal within one hour: arrays in the order of
time. A call stores a block for each signal; housekeeping merges those of hours that are over. A waveform is a
block of its own, whose column `points` has it in place of `samples`. Signals are
known by a number, which stays when they are renamed, and which is their `column_name` in ringlog.signal.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.procedures import (
    OF_A_SAMPLE_TABLE,
    VALUES,
    WAVEFORMS,
    Procedure,
    SampleBlocks,
    sample_procedures,
)
from ringlog.schema import registry
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import run
from ringlog.schema.facility import Facility, SampleTable
from ringlog.schema.installing.obstacles import (
    Obstacle,
    as_owner,
    drop_procedures,
    unregister,
    weeks_leave_manifest,
)
from ringlog.schema.layout import ARCHIVIST, LOG, LOG_TABLES, READER, SUMMARIES
from ringlog.schema.moving.elsewhere import signal_elsewhere
from ringlog.schema.own_tables import (
    bigint,
    boolean,
    double,
    grant_select,
    integer,
    own_table,
    smallint,
    text,
    timestamp,
)
from ringlog.schema.registry import signal
from ringlog.schema.sql_files import sql_file

NUMBERS = 2**24
"""signals of one server: those of each have numbers of their own, which they keep on another one"""

OF_SOURCE = ("address", "deadband", "policy")
"""Settings of a signal by which its writer takes it."""

sample_table = own_table(
    "sample_table",
    text("table_name", key=True),
    text("description"),
    text("type", "of the values, as in the facility file"),
    integer("ring", "online shows so many samples of each signal"),
    text("retention", "interval for which samples are kept; null: for ever", null=True),
    double("clock_drift", "seconds; a sample further ahead is dropped"),
    timestamp(
        "merged_until", "the blocks of the hours before this are merged, but those of sample_mark", null=True
    ),
    comment="tables of samples of the facility",
)

sample_signal = own_table(
    "sample_signal",
    integer("number", "of the signal, fixed", sa.Identity(always=True), key=True),
    text("table_name"),
    text("signal", "its name now"),
    text("state", "active, paused or retired", default="active"),
    boolean("listed", "in the facility file", default=sa.false()),
    text("address", "name at the source; empty: its own", default=""),
    text("deadband", "empty: the table's", default=""),
    text("policy", "empty: the first one that applies", default=""),
    text(
        "own",
        "columns of ringlog.signal that the facility file or an archivist has set, as a JSON object",
        default="{}",
    ),
    text(
        "reported", "columns of ringlog.signal that its source has sent; own ones replace them", default="{}"
    ),
    sa.UniqueConstraint("table_name", "signal", name="sample_signal_name"),
    comment="signals of tables of samples; ringlog.signal has their present and former properties",
)

signal_change = own_table(
    "signal_change",
    bigint("number", None, sa.Identity(always=True), key=True),
    timestamp("time", default=sa.func.clock_timestamp()),
    text("login"),
    text("program", "as the client reports it"),
    text("table_name"),
    text("signal", "its name before the change"),
    text("change", "add, pause, resume, change, rename or retire"),
    text("detail", "the new name"),
    sa.Index("signal_change_signal", "table_name", "signal"),
    comment="who changed which signal of a table of samples, and when",
)

signal_state = own_table(
    "signal_state",
    integer("number", "of the signal"),
    boolean("connected", "null: its writer does not know yet", null=True),
    timestamp("since", "of the latest change"),
    text("trouble", "why its values are not stored", null=True),
    bigint("dropped", "samples that its writer did not take"),
    text("policy", "policy of the facility file by which it is taken; null: none", null=True),
    sa.PrimaryKeyConstraint("number", name="signal_state_pkey"),
    comment="reports of the writers of tables of samples about their signals",
)

sample_mark = own_table(
    "sample_mark",
    text("table_name", key=True),
    timestamp("hour", "its begin", key=True),
    comment="hours with late samples, whose blocks are to be merged again",
)

last_archived = own_table(
    "last_archived",
    integer("number", "of the signal", key=True, autoincrement=False),
    text("table_name"),
    bigint("time", "nanoseconds since 1970 UTC"),
    text("value", "null: no reading", null=True),
    smallint("severity"),
    smallint("status"),
    comment="the newest archived sample of each signal, which often is still its value",
)

TABLES = (sample_table, sample_signal, signal_change, signal_state, sample_mark, last_archived)


def log(table: SampleTable) -> sa.Table:
    """The blocks of a table of samples, partitioned by week. `time` is the time of a block's last sample."""
    return sa.Table(
        table.name,
        sa.MetaData(),
        sa.Column("signal", sa.INTEGER, nullable=False, comment="number of the signal"),
        sa.Column("n", sa.INTEGER, nullable=False, comment="number of samples"),
        sa.Column("time", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column(
            "begins", postgresql.TIMESTAMP(timezone=True), nullable=False, comment="time of the first sample"
        ),
        sa.Column("times", postgresql.ARRAY(sa.BIGINT), nullable=False, comment="nanoseconds since 1970 UTC"),
        sa.Column("points", table.type.sqlalchemy, comment="the waveform; null: no reading")
        if table.type.is_array
        else sa.Column("samples", postgresql.ARRAY(table.type.sqlalchemy), nullable=False, comment="values"),
        sa.Column("severities", postgresql.ARRAY(sa.SMALLINT), comment="null: all are 0"),
        sa.Column("statuses", postgresql.ARRAY(sa.SMALLINT), comment="null: all are 0"),
        sa.Index(f"{table.name}_signal", "signal", "time"),
        sa.Index(f"{table.name}_time", "time", postgresql_using="brin"),
        schema=LOG_TABLES,
        postgresql_partition_by='range ("time")',
    )


def known_tables(connection: sa.Connection) -> dict[str, Mapping[str, Any]]:
    """The installed tables of samples by name."""
    found = connection.execute(sa.select(sample_table)).mappings()
    return {row["table_name"]: {**row} for row in found}


def blocks_of(connection: psycopg.Connection, table: str) -> SampleBlocks:
    query = "select type from ringlog.sample_table where table_name = %s"
    ((kind,),) = connection.execute(query, [table]).fetchall()
    return WAVEFORMS if kind.endswith("[]") else VALUES


_OF_A_SAMPLE_TABLE = (
    *("signal", "sample_signal", "sample_mark", "sample_table"),
    *("last_archived", "cold_week", "summarised", "summary_mark", "dropped"),
    *("writer_run", "how_taken", "dropped_sample"),
)
"""tables of schema ringlog with rows on a table of samples"""


def dropped(name: str) -> str:
    """The SQL that drops a table of samples."""
    return as_owner(
        sql.SQL("drop view if exists {}, {}").format(
            sql.Identifier(LOG, name), sql.Identifier("online", name)
        ),
        sql.SQL("drop table {}").format(sql.Identifier(LOG_TABLES, name)),
        sql.SQL("drop table if exists {} cascade").format(sql.Identifier(SUMMARIES, name)),
        sql.SQL("drop sequence if exists {}").format(sql.Identifier(SUMMARIES, f"{name}_until")),
        *drop_procedures(pattern.format(name) for pattern in OF_A_SAMPLE_TABLE.values()),
        weeks_leave_manifest(name),
        *unregister(name, _OF_A_SAMPLE_TABLE),
    )


def obstacles(
    connection: sa.Connection, facility: Facility, rows: Mapping[str, object]
) -> Iterator[Obstacle]:
    """Conflicts of the tables of samples; `rows` are the installed tables of rows."""
    known = known_tables(connection)
    wanted = {table.name: table for table in facility.sample_tables}
    yield from taken(connection, facility)
    for table in facility.tables:
        if table.name in known:
            yield Obstacle(
                f"table {table.name}: it is a table of samples in the database, and one of rows in the file",
                "-- give it another name in the facility file",
            )
    for name in known:
        if name not in wanted:
            yield Obstacle(
                f"table {name}: is not in the facility file any more; this drops it with its samples, as"
                f" ringlog facility drop {name} does",
                dropped(name),
            )
    for name, sampled in wanted.items():
        if name in rows:
            yield Obstacle(
                f"table {name}: it is a table of rows in the database, and one of samples in the file",
                "-- give it another name in the facility file",
            )
        elif name in known and known[name]["type"] != str(sampled.type):
            yield Obstacle(
                f"table {name}: its samples are {known[name]['type']} in the database"
                f" and {sampled.type} in the file",
                "-- make another table for values of another type",
            )


def exist(connection: sa.Connection) -> bool:
    """Whether there is a registry of them."""
    return sa.inspect(connection).has_table(sample_table.name, sample_table.schema)


def names(connection: sa.Connection) -> list[str]:
    """The installed tables, of rows and of samples."""
    return [*registry.ring_sizes(connection), *known_tables(connection)] if exist(connection) else []


_NUMBER = "pg_get_serial_sequence('ringlog.sample_signal', 'number')"


def are_numbered(connection: sa.Connection, server: int) -> bool:
    """Whether signals of this server get numbers unlike those of others; the first server is 0."""
    query = sa.text(f"select coalesce(pg_sequence_last_value({_NUMBER}), 0) >= :first")
    return exist(connection) and bool(connection.scalar(query, {"first": server * NUMBERS}))


def number(connection: sa.Connection, server: int) -> None:
    """Has them get such numbers."""
    connection.execute(sa.text(f"select setval({_NUMBER}, :first)"), {"first": server * NUMBERS})


def taken(connection: sa.Connection, facility: Facility) -> Iterator[Obstacle]:
    """Names of the file's signals that signals of other tables of samples have now, of any server."""
    if not exist(connection):
        return
    known = [*known_tables(connection), *(table.name for table in facility.sample_tables)]
    of_rows = {column.signal: table.name for table in facility.tables for column in table.columns}
    wanted = of_rows | {each.name: table.name for table in facility.sample_tables for each in table.signals}
    query = sa.union_all(
        *(
            sa.select(each.c.signal, each.c.table_name).where(
                each.c.signal == sa.any_(sa.literal([*wanted], postgresql.ARRAY(sa.TEXT))),
                each.c.table_name == sa.any_(sa.literal(known, postgresql.ARRAY(sa.TEXT))),
                each.c.valid_to.is_(None),
            )
            for each in (signal, signal_elsewhere)
        )
    )
    for name, table in connection.execute(query):
        if wanted[name] != table:
            yield Obstacle(
                f"table {wanted[name]}: signal '{name}' is one of table {table} in the database",
                "-- give it another name in the facility file, or retire the other first",
            )


def procedures(tables: Sequence[SampleTable]) -> Iterator[Procedure]:
    for table in tables:
        yield from sample_procedures(table.name, table.type.sql, table.clock_drift, table.points)


def merge(
    engine: sa.Engine, stopped: Callable[[], bool] = lambda: False, seconds: float = float("inf")
) -> int:
    """Merges the blocks of hours that are over, one hour in a transaction, for about so many seconds. Returns
    the number of merged signals and hours."""
    begin = time.monotonic()
    merged = 0
    with engine.connect() as connection:
        tables = [
            *connection.scalars(sa.select(sample_table.c.table_name).order_by(sample_table.c.table_name))
        ]
    for table in tables:
        while not stopped() and time.monotonic() - begin < seconds:
            with engine.begin() as connection:
                become_owner(connection)
                number = connection.scalar(sa.select(sa.func.ringlog.merge_samples(table)))
            if number is None:
                break
            merged += number
    return merged


_EVERY_TABLE = sql_file(__file__, "sample_tables_every_table")


def prepare(connection: sa.Connection) -> None:
    """Makes the view of the tables of both kinds; archivists may read the registry of signals."""
    run(connection, _EVERY_TABLE)
    run(connection, sql.SQL("grant select on ringlog.every_table to {}").format(sql.Identifier(READER)))
    grant_select(connection, TABLES, ARCHIVIST)
