"""The last caller of each put, kept in the database for `ringlog status`, which is another process than the
gateway."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
from psycopg import sql

from ringlog.gateway import Gateway, LastCall
from ringlog.schema import session
from ringlog.schema.layout import OWNER
from ringlog.schema.sql_files import sql_file
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

_PAUSE = 10.0  # seconds
_WRITING = "ringlog.put_"


@contextmanager
def callers_kept(gateway: Gateway, conninfo: str) -> Iterator[None]:
    """Notes the last callers every ten seconds, in a thread, and at the end."""
    end = threading.Event()
    known: dict[str, float] = {}

    def keep() -> None:
        failed = False
        ended = False
        while not ended:
            ended = end.wait(_PAUSE)
            calls = [
                call
                # in a fixed order, so that the gateways of a database cannot deadlock
                for call in sorted(gateway.last_calls(), key=lambda call: call.procedure)
                if call.procedure.startswith(_WRITING) and known.get(call.procedure) != call.called
            ]
            try:
                _note(conninfo, calls)
                known.update({call.procedure: call.called for call in calls})
                failed = False
            except psycopg.Error as error:
                if not failed:  # once is enough while the reason lasts
                    log.warning("last callers were not recorded: %s", " ".join(str(error).split()))
                failed = True

    with in_background("callers", keep, end):
        yield


def _note(conninfo: str, calls: list[LastCall]) -> None:
    if not calls:
        return
    query = sql_file(__file__, "callers_note")
    rows = [
        (
            call.procedure.removeprefix("ringlog."),
            # PostgreSQL's texts have no NUL
            *(word.replace("\0", "") for word in (call.host, call.program, call.login)),
            _moment(call.called),
            None if call.error is None else _moment(call.error.at),
            None if call.error is None else call.error.number,
            None if call.error is None else call.error.text.replace("\0", ""),
        )
        for call in calls
    ]
    with session.connect(conninfo, connect_timeout=5) as connection:
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(OWNER)))
        columns = [list(column) for column in zip(*rows, strict=True)]
        connection.execute(query, columns)
        connection.execute(sql_file(__file__, "callers_refused"), columns)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
