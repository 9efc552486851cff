"""Views over HTTP: states of the page that people keep by name."""

from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.history.connection import records
from ringlog.retrieval.plain.written import change, content_of, flag_of, signals_of, text_of
from ringlog.retrieval.serving.request import answer, json_response

_LIST = sql.SQL("select * from ringlog.list_views()")
_SAVE = sql.SQL("select {name} as name from ringlog.save_view({name}, {state}, {description}, {signals})")
_REMOVE = sql.SQL("select {name} as name from ringlog.remove_view({name})")
_KEYS = ("name", "state", "description", "signals", "remove")


def view_routes() -> list[Route]:
    return [
        Route("/api/v1/views", get_views),
        Route("/api/v1/views", post_view, methods=["POST"]),
    ]


async def get_views(request: Request) -> Response:
    return json_response(await answer(request, lambda servers: records(servers.first, _LIST)))


async def post_view(request: Request) -> Response:
    """Keeps a view, or with `remove` deletes it."""
    content = await content_of(request, "view", _KEYS)
    query = _REMOVE if flag_of(content, "remove") else _SAVE
    texts = {name: text_of(content, name) for name in ("name", "state", "description")}
    return json_response(await change(request, query.format(signals=signals_of(content), **texts)))
