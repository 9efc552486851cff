"""The common parts of all requests: authentication, parameters, bodies, answers in JSON."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.access import Access, Login
from ringlog.retrieval.serving.queries import Queries
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.signals import LONGEST
from ringlog.retrieval.times import span

Result = TypeVar("Result")


@dataclass(frozen=True)
class Services:
    """The application's state, for its requests."""

    access: Access
    queries: Queries
    data: str | None
    """folder on the disk of the data; None: the data are on another machine"""


def services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


def caller(request: Request) -> Login:
    """The client's login. Raises Refused (401)."""
    return services(request).access.login(request.headers.get("authorization"))


async def answer(request: Request, work: Callable[[Servers], Result]) -> Result:
    """The result of `work` with the connections of the client's login. Raises Refused."""
    return await services(request).queries.answer(caller(request), work)


async def demand_login(request: Request) -> None:
    """Raises Refused (401) unless PostgreSQL accepts the client's login, or nobody needs one."""
    await answer(request, lambda servers: None)


async def issue_token(request: Request) -> tuple[str, float]:
    """A bearer token for the client's login, which PostgreSQL has accepted, and the seconds for which it is
    valid. Raises Refused (401), also without a login."""
    if request.headers.get("authorization") is None:
        raise Refused(401, "log in with HTTP Basic", {"WWW-Authenticate": 'Basic realm="ringlog"'})
    await demand_login(request)
    return services(request).access.token(caller(request))


def number(text: str | None, name: str, default: int, least: int = -1, most: int = 10_000_000) -> int:
    """An integer parameter. Raises Refused (400)."""
    if text is None or text == "":
        return default
    try:
        value = int(text) if len(text) < 20 and text.isascii() else least - 1
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise Refused(400, f"{name}={text[:40]!r} must be a whole number from {least} to {most}")
    return value


def path_number(request: Request) -> int:
    """The number in the path of a mark or a capture. Raises Refused (400)."""
    return number(request.path_params["number"], "number", 1, 1, 2**31 - 1)


def names(request: Request, parameter: str = "signal") -> list[str]:
    """The requested signals, each once. Raises Refused (400, 413)."""
    found = list(dict.fromkeys(request.query_params.getlist(parameter)))
    most = services(request).queries.limits.signals
    if not found:
        raise Refused(400, f"{parameter} is missing: write {parameter}=<name>, repeated for several")
    if len(found) > most:
        raise Refused(413, f"{len(found)} signals are more than {most}")
    for name in found:
        if not name or len(name) > LONGEST or "\0" in name:
            raise Refused(400, f"{parameter} must be a name of at most {LONGEST} characters")
    return found


def asked_span(request: Request) -> tuple[datetime, datetime]:
    """The interval of `from` and `to`; default: the last hour. Raises Refused (400)."""
    given = request.query_params
    return span(given.get("from"), given.get("to"), datetime.now(UTC), default=timedelta(hours=1))


async def body(request: Request) -> bytes:
    """A request's body. Raises Refused (413)."""
    most = services(request).queries.limits.body
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Refused(413, f"the body is longer than {most} bytes")
        parts.append(part)
    return b"".join(parts)


def json_response(content: Any) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")
