"""The times in which a condition of signals holds, to which readings are restricted (`while`).

PostgreSQL evaluates the condition (procedures/conditions).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from starlette.requests import Request

from ringlog.history.arrays import sent
from ringlog.history.closed import text_of
from ringlog.history.connection import ReadError, records
from ringlog.history.summaries.copying import POSTGRES_EPOCH
from ringlog.retrieval.samples import Samples, Whole
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.signals import describe
from ringlog.retrieval.texts import query, text
from ringlog.retrieval.times import duration
from ringlog.schema.moments import microseconds

Tag = Callable[[Servers], str | None]

_WRONG = {"22003": 400, "22023": 400, "42601": 400, "42804": 400, "42704": 404}
"""SQLSTATEs of a wrong condition (condition_spans.sql), and the HTTP status of each"""
_MESSAGE = re.compile(r"(?:ERROR:\s+)?([^\n]{1,500})")


@dataclass(frozen=True)
class Condition:
    """A condition as ringlog.condition_steps reads it, None: all times; and the longest time in microseconds
    for which a value is held, None: to the next one."""

    text: str | None
    gap: int | None

    def tag(self, of: Tag) -> Tag | None:
        """The tag of an answer that depends on no other signals."""
        return of if self.text is None else None

    @property
    def seconds(self) -> bytes:
        """`gap` as a parameter of PostgreSQL."""
        return b"infinity" if self.gap is None else str(self.gap / 1e6).encode()


@dataclass(frozen=True)
class Spans:
    """Spans of time in microseconds since 1970, oldest first, apart: each from its begin on and before its
    end."""

    begins: Whole
    ends: Whole
    literal: str
    """the same as a tstzmultirange"""

    def holds(self, times: Whole) -> NDArray[np.bool_]:
        """Which of these times lie in them."""
        index = np.searchsorted(self.begins, times, side="right")
        return np.asarray(times < np.append(-1, self.ends)[index])

    def overlap(self, times: Whole, width: int) -> NDArray[np.bool_]:
        """Which of these times begin `width` microseconds that lie in them, or in part."""
        begun = np.searchsorted(self.begins, times + width)
        return np.asarray(begun > np.searchsorted(self.ends, times, side="right"))


def chosen(parts: Iterator[Samples], spans: Spans | None) -> Iterator[Samples]:
    """The samples that lie in the spans; None: all."""
    for part in parts:
        if spans is None or (inside := spans.holds(part.time)).all():
            yield part
        elif inside.any():
            yield part.at(np.flatnonzero(inside))


def condition_of(request: Request, *, without: bool = False) -> Condition:
    """`while` and `gap` of a request. `gap` needs the other, except where the answer holds values `without`
    a condition. Raises Refused (400)."""
    text, gap = (request.query_params.get(name) for name in ("while", "gap"))
    if gap is not None and text is None and not without:
        raise Refused(400, "gap is for while=, wide=last, wide=linear and weighted means")
    if text is not None and "\0" in text:
        raise Refused(400, "while must have no NUL")
    return Condition(text, None if gap is None else duration(gap, "gap"))


def spans_of(servers: Servers, condition: Condition, start: datetime, end: datetime) -> Spans | None:
    """The spans from `start` on and before `end`, or now, in which a condition holds; None: all times.

    Raises Refused: 400 for a wrong condition, 404 for a signal that never existed, 400 for signals on
    several servers.
    """
    if condition.text is None:
        return None
    bounds = map(text_of, (microseconds(start), microseconds(end)))
    try:
        named = records(servers.first, query("condition", condition=sql.Literal(condition.text)))
        signals = describe(servers, [row["signal"] for row in named])
        nodes = {signal.node for signal in signals.values()}
        if len(nodes) > 1:
            raise Refused(400, "the signals of the condition are on several servers: name those of one")
        connection = servers.of(nodes.pop() if nodes else None)
        answer = connection.answer(text("spans"), condition.text.encode(), *bounds, condition.seconds)
    except ReadError as error:
        if error.sqlstate not in _WRONG:
            raise
        message = _MESSAGE.match(str(error))
        raise Refused(_WRONG[error.sqlstate], message[1] if message else "the condition is wrong") from error
    if answer.get_value(0, 0) is None:
        return Spans(np.empty(0, np.int64), np.empty(0, np.int64), "{}")
    begins, ends = (sent(answer.get_value(0, column) or b"", "i8")[0] + POSTGRES_EPOCH for column in (0, 1))
    return Spans(begins, ends, (answer.get_value(0, 2) or b"").decode())
