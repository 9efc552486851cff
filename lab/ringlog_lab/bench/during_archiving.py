"""Writers while a week is archived: the cost of writing and comparing an old week for them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables, old_week
from ringlog.schema.layout import OWNER
from ringlog.schema.relations.partitions import Week
from ringlog_lab.native_load import TDS74, Load, Stand
from ringlog_lab.record import Disturbed

RATE = 5.0
"""calls a second of each writer"""
PART = "archive"
_AGO = timedelta(weeks=20)
_ROWS = 20_000
"""More rows than the archive reads in a second."""
_BEFORE = 3.0
"""Seconds that the writers take to log in."""


def measure_during_archiving(
    stand: Stand,
    tables: Tables,
    folder: Path,
    *,
    connections: int,
    seconds: float,
    rounds: int,
    doing: Callable[[str], None],
) -> Iterator[Disturbed]:
    """`connections` writers at RATE each, alone and during the archiving of a week into a folder, in turns.

    The archive works as in the server's housekeeping, with the same rests. Raises LoadTestError when it ended
    before the writers.
    """
    administrator = stand.server.administrator
    doing("making an old week")
    _fill(administrator, Week.of(datetime.now(UTC) - _AGO), int(_ROWS * (seconds + _BEFORE)))
    chosen = "insert into ringlog.history (online, archive) values ('8 weeks', %s)"
    administrator.execute(chosen, [str(folder.resolve())])
    load = Load(TDS74, tables, connections, seconds, rate=RATE)
    for round in range(rounds):
        doing("writers alone")
        yield Disturbed(PART, 0, stand.run(load, PART, round))
        doing("writers during archiving")
        with _archiving(administrator.info.dsn):
            writing = stand.run(load, PART, round)
        yield Disturbed(PART, 1, writing)
    administrator.execute("delete from ringlog.history")


def _fill(administrator: psycopg.Connection, week: Week, rows: int) -> None:
    """Rows of a week, one per second: readings that use some of their bits, like those of an ADC."""
    (table,), columns = old_week().names, old_week().column_names
    administrator.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
    administrator.execute(
        sql.SQL("create table {} partition of {} for values from ({}) to ({})").format(
            sql.Identifier("log", week.partition(table)), sql.Identifier("weeks", table), week.start, week.end
        )
    )
    administrator.execute(
        sql.SQL(
            "insert into {} (seq_no, time, {}) select 1, {} + n * interval '1 s', {} from "
            "generate_series(0, {}) as n"
        ).format(
            sql.Identifier("weeks", table),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            week.start,
            sql.SQL(", ").join([sql.SQL("round(65536 * random()) / 64")] * len(columns)),
            min(rows, 7 * 86_400) - 1,
        )
    )
    # without summaries, which this table does not need here
    administrator.execute("update ringlog.summarised set levels = '{}' where table_name = %s", [table])
    administrator.execute("reset role")
    # like an old week: none of its pages is left to be written
    administrator.execute(
        sql.SQL("vacuum (freeze, analyze) {}").format(sql.Identifier("log", week.partition(table)))
    )
    administrator.execute("checkpoint")


@contextmanager
def _archiving(dsn: str) -> Iterator[None]:
    """Archives the week in a thread, like housekeeping, and stops at the end."""
    from ringlog.history.archive.archiving import archive

    end, failures, done = threading.Event(), list[BaseException](), threading.Event()

    def work() -> None:
        try:
            for _ in archive(dsn, stopped=end.is_set):
                done.set()
                return
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
        if failures:
            raise LoadTestError(f"the archive failed: {failures[0]}")
        if done.is_set():
            raise LoadTestError("the archive was done before the writers were measured: it needs more rows")
    finally:
        end.set()
        thread.join()
