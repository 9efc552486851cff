"""An Iceberg REST catalogue, below /iceberg/v1: what its specification asks of readers.

A login of PostgreSQL shows itself by HTTP Basic, a bearer token, or the client credentials of OAuth 2. The
tables are those of all servers whose logs it may read.

https://iceberg.apache.org/spec/, https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from typing import Any

import orjson
from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.history.archive.addresses import NAMESPACE, address, object_store
from ringlog.history.archive.folder import Folder
from ringlog.history.connection import records
from ringlog.retrieval.servers import Servers, excluded
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import answer, demand_login, issue_token, json_response
from ringlog.retrieval.texts import query

BASE = "/iceberg/v1"
TOKENS = f"{BASE}/oauth/tokens"
_NAMESPACE = "/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
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
    found = await answer(request, _tables)
    identifiers = [{"namespace": [namespace], "name": row["table_name"]} for row in found]
    return json_response({"identifiers": identifiers})


async def get_table(request: Request) -> Response:
    """A table's newest metadata. Of an object store the answer has its address, and no key."""
    namespace, name = _namespace(request), request.path_params["table"]

    def work(servers: Servers) -> dict[str, Any]:
        found = _tables(servers, name)
        if not found:
            raise Missing("NoSuchTableException", f"there is no table {namespace}.{name} that you may read")
        place, archive = found[0]["metadata_location"], found[0]["archive"]
        with Folder(archive).opened(place.removeprefix(address(archive, ""))) as file:
            metadata = orjson.loads(file.read())
        return {"metadata-location": place, "metadata": metadata, "config": _config(archive)}

    return json_response(await answer(request, work))


def _namespace(request: Request) -> str:
    name = str(request.path_params["namespace"])
    if name != NAMESPACE:
        raise Missing("NoSuchNamespaceException", f"there is no namespace {name[:100]}, only {NAMESPACE}")
    return name


def _tables(servers: Servers, table: str | None = None) -> list[dict[str, Any]]:
    """The tables of all servers, or one of them. Raises Refused for a node that cannot be reached."""
    found = []
    for _, connection, others in servers.each(table):
        if isinstance(connection, Refused):
            raise connection
        if records(connection, _PUBLISHED)[0]["published"]:
            found += records(
                connection, query("iceberg_tables", others=excluded(others), wanted=sql.Literal(table))
            )
    return sorted(found, key=lambda row: str(row["table_name"]))


def _config(archive: str) -> dict[str, str]:
    """The settings by which a client reads an object store."""
    store = object_store(archive)
    if store:
        store["s3.path-style-access"] = "true"
    return store | ({"client.region": store["s3.region"]} if "s3.region" in store else {})
