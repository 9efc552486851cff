"""The hourly look after the log's partitions while the server runs."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy

from ringlog.schema.partitions import MaintenanceReport, maintain

log = logging.getLogger(__name__)

INTERVAL = 3600.0  # seconds


@contextmanager
def housekeeping(engine: sqlalchemy.Engine) -> Iterator[None]:
    """Maintains the partitions at once and then every hour, in a thread, until the end.

    The first round is done when this returns, and its error is the caller's. A later round that fails is
    told and tried again an hour later: the default partition takes what has no other place.
    """
    told = maintain(engine)
    _tell(told)
    end = threading.Event()

    def rounds() -> None:
        nonlocal told
        while not end.wait(INTERVAL):
            try:
                done = maintain(engine)
            except Exception:
                log.exception("housekeeping failed; the next try is in an hour")
                continue
            if done != told:
                _tell(done)
            told = done

    thread = threading.Thread(target=rounds, name="housekeeping")
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _tell(report: MaintenanceReport) -> None:
    if report:
        log.info("housekeeping: %s", "; ".join(str(report).splitlines()))
