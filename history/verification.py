"""Verifies summaries, closed rows and archived weeks against the rows they were made from."""

from collections.abc import Iterator, Mapping

import psycopg
from psycopg import sql

from ringlog.history import closing
from ringlog.history.summaries.summary_table import summarised_columns
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.sql_files import sql_file

_DAY = 86_400


def problems_of(connection: psycopg.Connection) -> Iterator[str]:
    """Yields a line for each defect. Reads all of the log's times and all files."""
    tables = connection.execute(
        "select table_name, levels, until, is_of_samples from ringlog.summarised"
        " join ringlog.every_table using (table_name) where until is not null order by table_name"
    ).fetchall()
    for table, levels, until, is_of_samples in tables:
        yield from whole(connection, f"summary.{table}", _levels(connection, table, levels))
        length = max((level for level in levels if level <= _DAY), default=levels[0])
        names = {
            "log": sql.Identifier(LOG_TABLES, table),
            "storage": sql.Identifier("summary", table),
            "table": sql.Literal(table),
            "level": sql.Literal(length),
            "length": sql.SQL("interval {}").format(sql.Literal(f"{length} seconds")),
            "until": sql.Literal(until),
        }
        compare = _compared_samples if is_of_samples else _compared
        yield from whole(connection, f"summary.{table}", compare(connection, table, length, names))
        yield from whole(connection, f"closed.{table}", closing.problems_of(connection, table))
    yield from _archive(connection)


def whole(connection: psycopg.Connection, relation: str, problems: Iterator[str]) -> Iterator[str]:
    """These problems, and one more if PostgreSQL raises an error; the rest is read too."""
    try:
        yield from problems
    except psycopg.Error as error:
        if connection.broken:
            raise
        message = str(error.diag.message_primary or error)
        damaged = connection.execute("select ringlog.damaged_place(%s)", [message]).fetchone()
        where = "" if damaged is None or damaged[0] is None else f" ({damaged[0]})"
        yield f"{relation}: {message}{where}"


def _compared(
    connection: psycopg.Connection, table: str, length: int, names: Mapping[str, sql.Composable]
) -> Iterator[str]:
    there = sql.Literal([*summarised_columns(connection, table)])
    for column, spans, begin in connection.execute(sql.SQL(_COLUMNS).format(there=there, **names)):
        yield (
            f"summary.{table}: column {column} has fewer rows than others in {spans} spans of {length} s,"
            f" the first at {begin:%Y-%m-%d %H:%M:%S%z}"
        )
    for begin, stored, logged in connection.execute(
        sql.SQL(_COUNTS + _COMPARED).format(key=sql.SQL("begin"), **names)
    ):
        yield (
            f"summary.{table}: the span of {length} s at {begin:%Y-%m-%d %H:%M:%S%z} has {stored} rows,"
            f" the log {logged}"
        )


def _compared_samples(
    connection: psycopg.Connection, table: str, length: int, names: Mapping[str, sql.Composable]
) -> Iterator[str]:
    query = sql.SQL(_SAMPLES + _COMPARED).format(key=sql.SQL("signal, begin"), **names)
    for begin, stored, there in connection.execute(query):
        yield (
            f"summary.{table}: a signal has {stored} samples in the span of {length} s at"
            f" {begin:%Y-%m-%d %H:%M:%S%z}, and {there} in the log"
        )


# columns of the log with spans whose counts, including nulls, differ from another column's: every row has all
# columns, and null in a younger one
_COLUMNS = sql_file(__file__, "verification_columns")

# spans that are over, without marks and outside the archive: counts of the summaries and of the log
_COUNTS = sql_file(__file__, "verification_counts")

# the same for each signal of samples; no block is of two spans
_SAMPLES = sql_file(__file__, "verification_samples")

_COMPARED = sql_file(__file__, "verification_compared")


def _levels(connection: psycopg.Connection, table: str, levels: list[int]) -> Iterator[str]:
    """Longer spans whose counts differ from the sum of their shorter spans."""
    storage = sql.Identifier("summary", table)
    for level in levels[1:]:
        shorter = max(each for each in levels if each < level and level % each == 0)
        query = sql.SQL(sql_file(__file__, "verification_levels")).format(
            storage=storage,
            level=sql.Literal(level),
            shorter=sql.Literal(shorter),
            length=sql.SQL("interval {}").format(sql.Literal(f"{level} seconds")),
        )
        for column, begin in connection.execute(query):
            yield (
                f"summary.{table}: column {column} at {begin:%Y-%m-%d %H:%M:%S%z} has"
                f" another number of values in {level} s than in the spans of {shorter} s"
            )


def _archive(connection: psycopg.Connection) -> Iterator[str]:
    if not connection.execute("select from ringlog.cold_week limit 1").rowcount:
        return
    from ringlog.history.archive.folder import Folder  # which takes the extra `history`
    from ringlog.history.archive.manifest import damages, manifest, settings

    chosen, weeks = settings(connection), manifest(connection)
    if chosen is None:
        yield f"{len(weeks)} weeks are in the archive, but its folder is not configured"
    else:
        yield from map(str, damages(Folder(chosen[1]), weeks))
