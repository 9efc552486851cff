"""An Iceberg REST catalogue, below /iceberg/v1: what its specification asks of readers.

A login of PostgreSQL shows itself by HTTP Basic, a bearer token, or the client credentials of OAuth 2. The
tables are those of all servers whose logs it may read.

https://iceberg.apache.org/spec/, https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import orjson
from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.history.archive.addresses import NAMESPACE, address
from ringlog.history.archive.folder import Folder
from ringlog.history.connection import Connection, records
from ringlog.retrieval.iceberg.signature import keys_of_environment
from ringlog.retrieval.iceberg.signing import is_metadata, reading, settings, store
from ringlog.retrieval.servers import Servers, excluded
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import answer, body, demand_login, issue_token, json_response
from ringlog.retrieval.texts import query

BASE = "/iceberg/v1"
TOKENS = f"{BASE}/oauth/tokens"
_NAMESPACE = "/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_DELEGATION = "X-Iceberg-Access-Delegation"
_PUBLISHED = sql.SQL("select to_regclass('iceberg.iceberg_tables') is not null as published")
_TYPES = {401: "NotAuthorizedException", 403: "ForbiddenException", 503: "ServiceUnavailableException"}


class Missing(Refused):
    """A namespace or table that is not there for this login. `kind` is its name in the specification."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(404, message)
        self.kind = kind


def routes() -> list[Route]:
    return [
        Route(f"{BASE}/config", get_config),
        Route(TOKENS, post_token, methods=["POST"]),
        Route(f"{BASE}/namespaces", get_namespaces),
        Route(f"{BASE}{_NAMESPACE}", get_namespace),
        Route(f"{BASE}{_NAMESPACE}/tables", get_tables),
        Route(f"{BASE}{_TABLE}", get_table),
        Route(f"{BASE}{_TABLE}/sign", post_sign, methods=["POST"]),
    ]


def error_of(error: Refused) -> dict[str, Any]:
    """An error in the specification's form."""
    kind = error.kind if isinstance(error, Missing) else _TYPES.get(error.status, "BadRequestException")
    return {"error": {"message": str(error), "type": kind, "code": error.status}}


async def get_config(request: Request) -> Response:
    """The supported requests; there is no prefix."""
    await demand_login(request)
    paths = ("/namespaces", _NAMESPACE, f"{_NAMESPACE}/tables", _TABLE)
    reading = [f"GET /v1/{{prefix}}{path}" for path in paths]
    heads = [f"HEAD /v1/{{prefix}}{path}" for path in (_NAMESPACE, _TABLE)]
    return json_response({"defaults": {}, "overrides": {}, "endpoints": reading + heads})


async def post_token(request: Request) -> Response:
    """A bearer token for client credentials, which `Credentials` has made HTTP Basic."""
    token, seconds = await issue_token(request)
    kind = "urn:ietf:params:oauth:token-type:access_token"
    fields = {"access_token": token, "token_type": "bearer", "issued_token_type": kind}
    return json_response(fields | {"expires_in": int(seconds)})


async def get_namespaces(request: Request) -> Response:
    found = [] if request.query_params.get("parent") else [[NAMESPACE]]
    await demand_login(request)
    return json_response({"namespaces": found})


async def get_namespace(request: Request) -> Response:
    await demand_login(request)
    return json_response({"namespace": [_namespace(request)], "properties": {}})


async def get_tables(request: Request) -> Response:
    namespace = _namespace(request)
    found = await answer(
        request, lambda servers: sorted(str(row["table_name"]) for _, row in _tables(servers))
    )
    return json_response({"identifiers": [{"namespace": [namespace], "name": name} for name in found]})


async def get_table(request: Request) -> Response:
    """A table's newest metadata. Of an object store the answer has its address and, if the client wants it,
    the settings by which reads are signed; no key."""
    namespace, name = _namespace(request), request.path_params["table"]
    wanted = request.headers.get(_DELEGATION, "").split(",")
    is_signed = "remote-signing" in (word.strip() for word in wanted)
    signing = settings(f"v1/namespaces/{namespace}/tables/{quote(name)}/sign") if is_signed else {}

    def work(servers: Servers) -> dict[str, Any]:
        _, row = _table(servers, name)
        location, archive = row["metadata_location"], row["archive"]
        with Folder(archive).opened(location.removeprefix(address(archive, ""))) as file:
            metadata = orjson.loads(file.read())
        stored = store(archive)
        config = stored.options() | signing if stored else {}
        return {"metadata-location": location, "metadata": metadata, "config": config}

    return json_response(await answer(request, work))


async def post_sign(request: Request) -> Response:
    """The signature of a read of a table's file in an object store."""
    _namespace(request)
    name, wanted = request.path_params["table"], reading(await body(request))

    def work(servers: Servers) -> dict[str, Any]:
        connection, row = _table(servers, name)
        stored = store(row["archive"])
        file = stored and stored.name(wanted.url)
        if not stored or not file or not (is_metadata(file, name) or _has_rows(connection, name, file)):
            raise Refused(403, f"this address is no file of table {name} in an object store")
        keys = keys_of_environment()
        if keys is None:
            raise Refused(503, "the server of HTTP has no keys of the object store in its environment")
        return wanted.signed(stored, keys, datetime.now(UTC))

    return json_response(await answer(request, work))


def _has_rows(connection: Connection, table: str, file: str) -> bool:
    named = {"table": sql.Literal(table), "file": sql.Literal(file)}
    return bool(records(connection, query("iceberg/file", **named)))


def _namespace(request: Request) -> str:
    name = str(request.path_params["namespace"])
    if name != NAMESPACE:
        raise Missing("NoSuchNamespaceException", f"there is no namespace {name[:100]}, only {NAMESPACE}")
    return name


def _table(servers: Servers, name: str) -> tuple[Connection, dict[str, Any]]:
    """A table and the connection to its server. Raises Missing for one that the login may not read."""
    if "\0" not in name:
        for connection, row in _tables(servers, name):
            return connection, row
    raise Missing("NoSuchTableException", f"there is no table {NAMESPACE}.{name[:100]} that you may read")


def _tables(servers: Servers, table: str | None = None) -> Iterator[tuple[Connection, dict[str, Any]]]:
    """The tables of all servers, or one of them. Raises Refused for a node that cannot be reached."""
    for _, connection, others in servers.each(table):
        if isinstance(connection, Refused):
            raise connection
        if records(connection, _PUBLISHED)[0]["published"]:
            listed = query("iceberg/tables", others=excluded(others), wanted=sql.Literal(table))
            yield from ((connection, row) for row in records(connection, listed))
