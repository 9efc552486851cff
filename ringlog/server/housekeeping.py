"""The background work of the server: partitions of the logs, summaries, the archive."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial

import sqlalchemy

from ringlog.history.memory import give_back_memory
from ringlog.schema import session
from ringlog.schema.relations import partitions, rings
from ringlog.schema.relations.partitions import MaintenanceReport, maintain
from ringlog.schema.relations.sample_tables import merge
from ringlog.schema.relations.statistics import turn_off_near
from ringlog.server.embedded.postgres import Stopped
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

INTERVAL = 3600.0  # seconds
RETRY = 5.0
"""Seconds after a round that failed, as while PostgreSQL starts again; then twice as many each time."""
DOUBTFUL = 300.0
"""Seconds between two rounds while PostgreSQL's clock is not trusted."""
SUMMARIES = 60.0  # seconds
CLOSING = 20.0
"""Seconds in each minute for closed rows, while there are more to be packed."""
_PAUSE = 0.05  # seconds between two looks at the first round


@contextmanager
def housekeeping(engine: sqlalchemy.Engine, conninfo: str) -> Iterator[Callable[[threading.Event], None]]:
    """Maintains the database in a thread until the end.

    Partitions are made and set aside at once and then every hour; rings with deleted rows are completed once;
    every minute summaries are updated, closed rows packed as columns, and blocks of samples merged.

    The function that this yields waits for the first round of partitions, raises its error, and lets the rest
    begin, which would slow a start down. It raises Stopped when its event is set: another process may have
    the logs for hours. Later errors are logged and the work is repeated: the default partition takes rows
    without a partition.
    """
    first: Future[MaintenanceReport] = Future()
    begun = threading.Event()
    end = threading.Event()

    def begin(stop: threading.Event) -> None:
        while not first.done():
            if stop.wait(_PAUSE):
                raise Stopped
        _log(first.result())
        begun.set()

    def hourly() -> None:
        try:
            first.set_result(maintain(engine, stopped=end.is_set))
        except Exception as error:
            first.set_exception(error)
            return
        begun.wait()
        report = first.result()
        steps: dict[str, Callable[[], Iterable[str]]] = {
            "statistics": lambda: turn_off_near(engine),
            "archive": lambda: _archived(conninfo, end),
            "global temporary tables": lambda: _end_global_tables(engine),
        }
        again = RETRY
        pause = 0.0
        rings_looked_at = False
        while not end.wait(pause):
            failed = False
            try:
                if pause:
                    logged, report = report, maintain(engine, stopped=end.is_set)
                    if report != logged:
                        _log(report)
            except partitions.Stopped:
                return
            except Exception:
                log.exception("housekeeping: the weeks of the logs failed")
                failed = True
            todo = steps if rings_looked_at else {"rings": lambda: rings.complete(engine)} | steps
            for what, step in todo.items():
                try:
                    for line in step():
                        log.info("housekeeping: %s", line)
                    rings_looked_at = rings_looked_at or what == "rings"
                except partitions.Stopped:
                    return
                except Exception:
                    # each by itself: a failure must not stop the next task
                    log.exception("housekeeping: %s failed", what)
                    failed = True
            # ends PostgreSQL's process, which has memory allocated for all tables and thousands of logins
            engine.dispose()
            give_back_memory()
            pause, again = (again, min(2 * again, INTERVAL)) if failed else (INTERVAL, RETRY)
            if report.doubt is not None:
                pause = min(pause, DOUBTFUL)

    each_minute = partial(_every_minute, engine, conninfo, end)
    with in_background("housekeeping", hourly, end), in_background("summaries", each_minute, end):
        try:
            yield begin
        finally:
            end.set()
            # after a start that has failed
            begun.set()


def _every_minute(engine: sqlalchemy.Engine, conninfo: str, end: threading.Event) -> None:
    """Updates summaries, packs closed rows and merges blocks each minute, until `end` is set."""
    failed = False
    whole = time.monotonic()
    read: Counter[str] = Counter()
    """rows that summaries have read since all rows that were due were packed, by table"""
    while not end.wait(SUMMARIES):
        try:
            # imports numpy, which would delay the start
            from ringlog.history.closing import close
            from ringlog.history.summaries.summarising import Turn, summarise

            read.update(summarise(conninfo, stopped=end.is_set, turn=Turn.SKIPPED))
            full = time.monotonic() >= whole
            closed = close(conninfo, end.is_set, full=full, read=read, seconds=CLOSING, turn=Turn.SKIPPED)
            if closed.complete:
                read.clear()
                whole = time.monotonic() + INTERVAL if full else whole
            merge(engine, stopped=end.is_set, seconds=CLOSING)
            failed = False
        except Exception:
            if not failed:  # once is enough while the reason lasts
                log.exception(
                    "summaries, closed rows or blocks were not made; the next attempt is in a minute"
                )
            failed = True


def _archived(conninfo: str, end: threading.Event) -> Iterator[str]:
    """Archives old weeks if the facility file has [history]; it takes the extra `history`."""
    with session.connect(conninfo) as connection:
        wanted = connection.execute("select from ringlog.history").rowcount
    if wanted:
        from ringlog.history.archive.archiving import archive
        from ringlog.history.archive.ownership import NotOurs

        try:
            yield from archive(conninfo, stopped=end.is_set)
        except NotOurs as error:
            log.error("housekeeping: %s", error)


def _end_global_tables(engine: sqlalchemy.Engine) -> tuple[()]:
    """Drops the global temporary tables (##t) that killed sessions have left and nobody has named since."""
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("select tsql.end_globals()"))
    return ()


def _log(report: MaintenanceReport) -> None:
    if report:
        level = logging.WARNING if report.doubt or report.failed else logging.INFO
        log.log(level, "housekeeping: %s", "; ".join(str(report).splitlines()))
