"""Cancels running statements when a stop is requested."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import sqlalchemy as sa

from ringlog.schema.change import ERRORS, cause_of
from ringlog.server.embedded.postgres import Stopped
from ringlog.server.processes.background import in_background

_PAUSE = 0.2  # seconds between two looks whether to stop


@contextmanager
def cancelled_at(stop: threading.Event, engine: sa.Engine) -> Iterator[None]:
    """Cancels the statements of the engine's connections once `stop` is set, and raises Stopped."""
    connections: set[psycopg.Connection] = set()
    ended = threading.Event()

    def add(connection: psycopg.Connection, *_: object) -> None:
        connections.add(connection)

    def cancel() -> None:
        while not ended.wait(_PAUSE):
            if stop.is_set():
                # repeatedly: PostgreSQL ignores a cancel between two statements
                for connection in [*connections]:
                    with suppress(psycopg.Error):
                        connection.cancel()

    sa.event.listen(engine, "checkout", add)
    try:
        with in_background("cancelling", cancel, ended):
            yield
    except ERRORS as error:
        if stop.is_set() and isinstance(cause_of(error), psycopg.errors.QueryCanceled):
            raise Stopped from None
        raise
    finally:
        sa.event.remove(engine, "checkout", add)
