"""Captures over HTTP: the rows that are kept around events."""

from collections.abc import Iterator
from itertools import chain, groupby
from typing import Any

from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.history.connection import Connection, records, rows
from ringlog.retrieval.plain.forms import MEDIA, formed
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import answer, caller, json_response, number, services

_LIST = sql.SQL("select * from ringlog.list_captures()")
_OF_TABLE = ("table_name", "is_of_samples", "rows", "state", "filtered", "lost", "trouble")


def capture_routes() -> list[Route]:
    return [
        Route("/api/v1/captures", get_captures),
        Route("/api/v1/captures/{number}/{table}", get_capture),
    ]


async def get_captures(request: Request) -> Response:
    def work(servers: Servers) -> list[dict[str, Any]]:
        found = []
        for _, of_tables in groupby(records(servers.first, _LIST), lambda row: row["capture"]):
            tables = [*of_tables]
            event = {name: value for name, value in tables[0].items() if name not in _OF_TABLE}
            found.append(event | {"tables": [{name: row[name] for name in _OF_TABLE} for row in tables]})
        return found

    return json_response(await answer(request, work))


async def get_capture(request: Request) -> Response:
    event = number(request.path_params["number"], "number", 1, 1, 2**31 - 1)
    table, form = request.path_params["table"], request.query_params.get("format", "csv")
    if form not in MEDIA or form == "json":
        raise Refused(400, "captures are available as csv, arrow or parquet")
    queries = services(request).queries

    def work(servers: Servers) -> Iterator[Part]:
        return _rows_of(servers.first, event, table, form, queries.limits.rows)

    named = {"Content-Disposition": f'attachment; filename="capture_{event}_{table}.{form}"'}
    return queries.stream(caller(request), work, MEDIA[form], named if table.isidentifier() else {})


def _rows_of(connection: Connection, event: int, table: str, form: str, most: int) -> Iterator[Part]:
    """The rows of a table in a capture. Raises Refused (404, 413)."""
    known = [
        row for row in records(connection, _LIST) if row["capture"] == event and row["table_name"] == table
    ]
    if not known:
        raise Refused(404, f"there is no capture {event} of table {table[:60]!r}, or you may not read it")
    if known[0]["rows"] > most:
        raise Refused(413, f"these are {known[0]['rows']} rows, of which {most} are allowed")
    place = "number, nanoseconds" if known[0]["is_of_samples"] else "seq_no"
    text = sql.SQL('select * from {} where capture = {} order by "time", ').format(
        sql.Identifier("capture", table), sql.Literal(event)
    ) + sql.SQL(place)
    batches = rows(connection, text)
    first = next(batches)
    yield from formed(form, first.schema, chain([first], batches))
