"""Marks over HTTP: notes of people at times of the readings. A note needs a login that may write it."""

from datetime import UTC, datetime
from typing import Any

from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.history.connection import records, time_literal
from ringlog.retrieval.plain.notes import marks_of
from ringlog.retrieval.plain.written import change, content_of, flag_of, signals_of, text_of
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import answer, asked_span, json_response, names, path_number
from ringlog.retrieval.times import instant

_ADD = sql.SQL("select ringlog.add_mark({time}, {text}, {until}, {signals}) as mark")
_CORRECT = sql.SQL(
    "select {mark} as mark from ringlog.correct_mark({mark}, {text}, {time}, {until}, {signals})"
)
_WITHDRAW = sql.SQL("select {mark} as mark from ringlog.withdraw_mark({mark}, {text})")
_HISTORY = sql.SQL("select * from ringlog.mark_history({})")
_KEYS = ("time", "until", "text", "signals")


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
    mark = path_number(request)
    found = await answer(request, lambda servers: records(servers.first, _HISTORY.format(sql.Literal(mark))))
    if not found:
        raise Refused(404, f"there is no mark {mark}, or you may not read it")
    return json_response(found)


async def post_mark(request: Request) -> Response:
    return json_response(await _written(request, _ADD, await content_of(request, "mark", _KEYS)))


async def post_version(request: Request) -> Response:
    """A correction, or with `withdraw` the end of a mark."""
    content = await content_of(request, "mark", (*_KEYS, "withdraw"))
    query = _WITHDRAW if flag_of(content, "withdraw") else _CORRECT
    return json_response(await _written(request, query, content, mark=sql.Literal(path_number(request))))


async def _written(
    request: Request, query: sql.SQL, content: dict[str, Any], **more: sql.Composable
) -> dict[str, Any]:
    """The answer of a procedure to the keys of a mark; those that are missing are null. Raises Refused."""
    now = datetime.now(UTC)
    moments = {
        name: time_literal(instant(str(given), now, name))
        if (given := content.get(name)) is not None
        else sql.Literal(None)
        for name in ("time", "until")
    }
    texts = {"text": text_of(content, "text"), "signals": signals_of(content)}
    return await change(request, query.format(**texts, **moments, **more))
