"""Marks over HTTP: notes of people at times of the readings. A note needs a login that may write it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.history.connection import ReadError, records, time_literal
from ringlog.retrieval.plain.notes import marks_of
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.refused import CHALLENGE, Refused
from ringlog.retrieval.serving.request import (
    answer,
    asked_span,
    body,
    caller,
    json_response,
    names,
    number,
    services,
)
from ringlog.retrieval.times import instant

_ADD = sql.SQL("select ringlog.add_mark({time}, {text}, {until}, {signals}) as mark")
_CORRECT = sql.SQL(
    "select {mark} as mark from ringlog.correct_mark({mark}, {text}, {time}, {until}, {signals})"
)
_WITHDRAW = sql.SQL("select {mark} as mark from ringlog.withdraw_mark({mark}, {text})")
_HISTORY = sql.SQL("select * from ringlog.mark_history({})")
_REFUSALS = {"22023": 400, "42704": 404}


def mark_routes() -> list[Route]:
    return [
        Route("/api/v1/marks", get_marks),
        Route("/api/v1/marks", post_mark, methods=["POST"]),
        Route("/api/v1/marks/{number}", get_mark),
        Route("/api/v1/marks/{number}", post_version, methods=["POST"]),
    ]


async def get_marks(request: Request) -> Response:
    wanted = names(request) if "signal" in request.query_params else None
    start, end = asked_span(request)
    return json_response(await answer(request, lambda servers: marks_of(servers.first, wanted, start, end)))


async def get_mark(request: Request) -> Response:
    mark = _number(request)
    found = await answer(request, lambda servers: records(servers.first, _HISTORY.format(sql.Literal(mark))))
    if not found:
        raise Refused(404, f"there is no mark {mark}, or you may not read it")
    return json_response(found)


async def post_mark(request: Request) -> Response:
    return json_response(await _written(request, _ADD, await _content(request)))


async def post_version(request: Request) -> Response:
    """A correction, or with `withdraw` the end of a mark."""
    content, mark = await _content(request), {"mark": sql.Literal(_number(request))}
    withdrawn = content.pop("withdraw", False)
    if withdrawn not in (True, False):
        raise Refused(400, "withdraw must be true or false")
    return json_response(await _written(request, _WITHDRAW if withdrawn else _CORRECT, content, mark))


def _number(request: Request) -> int:
    return number(request.path_params["number"], "number", 1, 1, 2**31 - 1)


async def _content(request: Request) -> dict[str, Any]:
    """The keys of the body. Raises Refused."""
    if request.headers.get("authorization") is None:
        raise Refused(401, "log in to write a mark: it shows who wrote it", CHALLENGE)
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        # a browser sends it for no page of another site
        raise Refused(415, "send the mark as application/json")
    try:
        content = orjson.loads(await body(request))
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    if not isinstance(content, dict) or set(content) - {"time", "until", "text", "signals", "withdraw"}:
        raise Refused(400, "a mark has time, until, text and signals, and a version of it withdraw")
    return content


async def _written(
    request: Request,
    statement: sql.SQL,
    content: dict[str, Any],
    more: Mapping[str, sql.Composable] | None = None,
) -> dict[str, Any]:
    """The answer of a procedure to the keys of a mark; those that are missing are null. Raises Refused."""
    now, signals, text = datetime.now(UTC), content.get("signals"), content.get("text")
    moments = {
        name: time_literal(instant(str(given), now, name))
        if (given := content.get(name)) is not None
        else sql.Literal(None)
        for name in ("time", "until")
    }
    if not (text is None or isinstance(text, str)) or not (
        signals is None or (isinstance(signals, list) and all(isinstance(each, str) for each in signals))
    ):
        raise Refused(400, "text must be a text, signals a list of names")
    if any("\0" in each for each in (text or "", *(signals or ()))):
        raise Refused(400, "text and signals must not have a character NUL")
    names_of = sql.Literal(None if signals is None else "\n".join(signals))
    query = statement.format(text=sql.Literal(text), signals=names_of, **moments, **(more or {}))

    def work(servers: Servers) -> dict[str, Any]:
        try:
            return servers.first.change(query)[0]
        except ReadError as error:
            if error.sqlstate in _REFUSALS:
                raise Refused(_REFUSALS[error.sqlstate], str(error).splitlines()[0]) from error
            raise

    return await services(request).queries.answer(caller(request), work)
