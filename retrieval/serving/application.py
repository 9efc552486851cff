"""The application: all routes, and the common parts of all answers."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import anyio
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringlog.history.connection import ReadError
from ringlog.retrieval import page
from ringlog.retrieval.appliance import routes as appliance
from ringlog.retrieval.iceberg import routes as iceberg
from ringlog.retrieval.iceberg.credentials import Credentials
from ringlog.retrieval.plain import routes as plain
from ringlog.retrieval.serving.access import Access
from ringlog.retrieval.serving.guesses import Guesses
from ringlog.retrieval.serving.limits import Limits
from ringlog.retrieval.serving.queries import Queries
from ringlog.retrieval.serving.refused import Refused, refused
from ringlog.retrieval.serving.request import Services, json_response

log = logging.getLogger(__name__)

_SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def application(access: Access, limits: Limits, data: str | None = None) -> ASGIApp:
    """The application, for any ASGI server. `data` is a folder on the disk of the data."""
    queries = Queries(limits)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queries.tidied)
            yield
            tasks.cancel_scope.cancel()
        queries.connections.close()

    app = Starlette(
        routes=[*appliance.routes(), *plain.routes(), *iceberg.routes(), *page.routes()],
        exception_handlers={
            Refused: _error,
            ReadError: _error,
            404: _unknown_path,
            405: _wrong_method,
            500: _defect,
        },
        lifespan=lifespan,
    )
    app.state.services = Services(access, queries, data)
    return _Safe(Credentials(Guesses(app)))


class _Safe:
    """Adds the headers that protect browsers to every answer. There is no CORS: pages of other sites cannot
    read anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in _SAFE.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                message["headers"] = headers.raw
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)


def _answer(request: Request, error: Refused) -> Response:
    if f"{iceberg.BASE}/" in request.url.path:
        response = json_response(iceberg.error_of(error))
        response.status_code = error.status
    elif "/api/" in request.url.path or "application/json" in request.headers.get("accept", ""):
        response = json_response({"error": str(error), "status": error.status})
        response.status_code = error.status
    else:
        response = PlainTextResponse(f"{error}\n", error.status)
    response.headers.update(error.headers)
    return response


async def _error(request: Request, error: Exception) -> Response:
    return _answer(request, error if isinstance(error, Refused) else refused(cast(ReadError, error)))


async def _unknown_path(request: Request, _: Exception) -> Response:
    return _answer(request, Refused(404, f"{request.url.path[:200]} does not exist"))


async def _wrong_method(request: Request, _: Exception) -> Response:
    return _answer(request, Refused(405, f"{request.url.path[:200]} does not support {request.method}"))


async def _defect(request: Request, _: Exception) -> Response:
    return _answer(request, Refused(500, "this is a defect of the server: see its log"))
