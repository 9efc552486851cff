"""ct-library in the conversation of conversation.py. ct_client.c reports values bit by bit."""

from datetime import datetime, timedelta
from itertools import count
from typing import Any

import tds_clients
from conversation import Answer, Failure
from tds_clients import CtClient, Param

EPOCH = datetime(1900, 1, 1)
FROM_YEAR_0_TO_1 = timedelta(days=366)


class CtSession:
    """A session through ct-library; transactions are text, since the library has no calls for them."""

    def __init__(self, client: CtClient) -> None:
        self.broken = False
        self._client = client
        self._names = (f"statement{number}" for number in count())
        self.login = _plain(client.login)

    def call(self, name: str, *params: Param) -> Answer:
        return _plain(self._client.call(name, [_bitwise(param) for param in params]))

    def execute(self, text: str, *params: Param) -> Answer:
        """ct_dynamic: prepared, executed and deallocated."""
        name = next(self._names)
        prepared = _plain(self._client.prepare(name, text))
        if prepared.failure:
            return prepared
        answer = _plain(self._client.execute(name, [_bitwise(param) for param in params]))
        self._client.close_dynamic(name)
        return answer

    def query(self, text: str) -> Answer:
        return _plain(self._client.language(text))

    def begin(self) -> Answer:
        return self.query("begin tran")

    def commit(self) -> Answer:
        return self.query("commit tran")

    def rollback(self) -> Answer:
        return self.query("rollback tran")

    def abandon(self, text: str) -> Answer:
        return _plain(self._client.cancelled_after_rows(text, 1))

    def cancel(self, text: str, after: float) -> Answer:
        return _plain(self._client.cancelled(text, after))

    def close(self) -> None:
        self._client.close()


def _bitwise(param: Param) -> Param:
    if param.type in ("bit", "bigint") and param.value is None:
        # at 5.0 FreeTDS fails an assertion of its own on their NULLs
        return param._replace(type="int")
    if param.type == "numeric":
        return param._replace(type="numeric:18:4")
    if param.type == "text":
        return param._replace(type="longchar:8000")
    if param.type in ("date", "datetime") and param.value is not None:
        since = datetime.fromisoformat(param.value) - EPOCH
        ticks = round(
            timedelta(seconds=since.seconds, microseconds=since.microseconds) / timedelta(seconds=1) * 300
        )
        return param._replace(type="datetime", value=f"{since.days} {ticks}")
    return param._replace(type="datetime") if param.type == "date" else param


def _plain(received: tds_clients.Answer) -> Answer:
    answer = Answer(columns=received.columns, messages=received.messages)
    answer.rows = [[_value(*pair) for pair in zip(received.types, row, strict=True)] for row in received.rows]
    if received.outputs:
        answer.outputs = [
            _value(*pair) for pair in zip(received.types, received.outputs.values(), strict=True)
        ]
    answer.status = received.statuses[-1] if received.statuses else None
    if received.errors:
        first = received.errors[0]
        answer.failure = Failure("server message", first.number, first.text)
    elif received.end == "connection lost":
        answer.failure = Failure("client message", None, received.client_messages[-1])
    return answer


def _value(type: int, text: str | None) -> Any:
    """A value of a type by its number in cspublic.h."""
    if text is None:
        return None
    match type:
        case 6 | 7 | 8 | 11 | 30:  # the integers and bit
            return int(text)
        case 9 | 10:  # real, float
            return float(text)
        case 12:  # datetime
            days, ticks = map(int, text.split())
            return _time(EPOCH + timedelta(days=days, milliseconds=round(ticks * 10 / 3)))
        case 27:  # date
            return str((EPOCH + timedelta(days=int(text))).date())
        case 28:  # time
            return (EPOCH + timedelta(seconds=int(text) / 300)).time().isoformat("microseconds")
        case 36:  # bigtime
            return (EPOCH + timedelta(microseconds=int(text))).time().isoformat("microseconds")
        case 35:  # bigdatetime
            return _time(datetime(1, 1, 1) + timedelta(microseconds=int(text)) - FROM_YEAR_0_TO_1)
    return text


def _time(time: datetime) -> str:
    return time.isoformat(" ", "microseconds")
