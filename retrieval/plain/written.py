"""What people write over HTTP: JSON of a login that may write it."""

from collections.abc import Collection, Sequence
from typing import Any

import orjson
from psycopg import sql
from starlette.requests import Request

from ringlog.history.connection import ReadError
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.refused import CHALLENGE, Refused
from ringlog.retrieval.serving.request import body, caller, services

_REFUSALS = {"22023": 400, "42704": 404, "42710": 409}


async def content_of(request: Request, what: str, keys: Collection[str]) -> dict[str, Any]:
    """The keys of the body. Raises Refused."""
    if request.headers.get("authorization") is None:
        raise Refused(401, f"log in to write a {what}: it shows who wrote it", CHALLENGE)
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        # a browser sends it for no page of another site
        raise Refused(415, f"send the {what} as application/json")
    try:
        content = orjson.loads(await body(request))
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    if not isinstance(content, dict) or set(content) - {*keys}:
        raise Refused(400, f"a {what} has only {', '.join(keys)}")
    return content


def text_of(content: dict[str, Any], name: str) -> sql.Literal:
    """A text, or null. Raises Refused."""
    text = content.get(name)
    if not (text is None or (isinstance(text, str) and "\0" not in text)):
        raise Refused(400, f"{name} must be a text without a character NUL")
    return sql.Literal(text)


def signals_of(content: dict[str, Any]) -> sql.Literal:
    """Names as procedures take them, one a line. Raises Refused."""
    names: Sequence[Any] | None = content.get("signals")
    if not (
        names is None
        or (isinstance(names, list) and all(isinstance(each, str) and "\0" not in each for each in names))
    ):
        raise Refused(400, "signals must be a list of names without a character NUL")
    return sql.Literal(None if names is None else "\n".join(names))


def flag_of(content: dict[str, Any], name: str) -> bool:
    flag = content.get(name, False)
    if flag not in (True, False):
        raise Refused(400, f"{name} must be true or false")
    return bool(flag)


async def change(request: Request, query: sql.Composable) -> dict[str, Any]:
    """The row of a statement that writes. Raises Refused."""

    def work(servers: Servers) -> dict[str, Any]:
        try:
            return servers.first.change(query)[0]
        except ReadError as error:
            if error.sqlstate in _REFUSALS:
                raise Refused(_REFUSALS[error.sqlstate], str(error).splitlines()[0]) from error
            raise

    return await services(request).queries.answer(caller(request), work)
