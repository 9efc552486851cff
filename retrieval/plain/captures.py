"""Captures over HTTP: the rows that are kept around events."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.history.connection import Connection, records, rows
from ringlog.history.signals import Location
from ringlog.retrieval.plain.data import as_json
from ringlog.retrieval.plain.forms import MEDIA, form_of, formed
from ringlog.retrieval.plain.notes import described
from ringlog.retrieval.samples import Column, Samples
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import answer, caller, json_response, path_number, services
from ringlog.retrieval.signals import Signal, as_of, demand, shown_type
from ringlog.schema.column_type import ColumnType

_LIST = sql.SQL("select * from ringlog.list_captures()")
_SIGNALS = sql.SQL("select * from ringlog.captured_signals({})")
_OF_TABLE = ("table_name", "is_of_samples", "rows", "state", "filtered", "lost", "trouble")


def capture_routes() -> list[Route]:
    return [
        Route("/api/v1/captures", get_captures),
        Route("/api/v1/captures/{number}", get_capture),
        Route("/api/v1/captures/{number}/{table}", get_table),
    ]


async def get_captures(request: Request) -> Response:
    return json_response(await answer(request, lambda servers: _captures(servers.first)))


async def get_capture(request: Request) -> Response:
    """A capture with its signals, as they were at the event."""
    event = path_number(request)

    def work(servers: Servers) -> dict[str, Any]:
        captures = [each for each in _captures(servers.first) if each["capture"] == event]
        if not captures:
            raise Refused(404, f"there is no capture {event}, or you may not read it")
        columns = _columns(servers, event, [each["table_name"] for each in captures[0]["tables"]])
        return captures[0] | {"signals": [described(signal) for signal, _ in columns.values()]}

    return json_response(await answer(request, work))


async def get_table(request: Request) -> Response:
    event = path_number(request)
    table, form = request.path_params["table"], form_of(request, "csv")
    queries = services(request).queries
    chosen = request.query_params.getlist("signal")
    if chosen and form != "json":
        raise Refused(400, "signal chooses signals in json; other forms have every column")

    def work(servers: Servers) -> Iterator[Part]:
        return _rows_of(servers, event, table, form, queries.limits.rows, chosen)

    attached = {"Content-Disposition": f'attachment; filename="capture_{event}_{table}.{form}"'}
    is_file = form != "json" and table.isidentifier()
    return queries.stream(caller(request), work, MEDIA[form], attached if is_file else {})


def _captures(connection: Connection) -> list[dict[str, Any]]:
    found = []
    for _, of_tables in groupby(records(connection, _LIST), lambda row: row["capture"]):
        tables = [*of_tables]
        event = {name: value for name, value in tables[0].items() if name not in _OF_TABLE}
        found.append(event | {"tables": [{name: row[name] for name in _OF_TABLE} for row in tables]})
    return found


def _columns(servers: Servers, event: int, tables: list[str]) -> dict[str, tuple[Signal, Column]]:
    """The signals of these tables in a capture as they were at the event, with the columns that have them."""
    all_of = records(servers.first, _SIGNALS.format(sql.Literal(event)))
    rows = [row for row in all_of if row["table_name"] in tables]
    columns = {}
    for row, signal in zip(rows, demand(servers, [row["signal"] for row in rows]), strict=True):
        then, kind = as_of(signal, row["time"]), ColumnType.of(row["type"])
        location = Location(
            then.name,
            row["table_name"],
            row["column_name"],
            kind,
            then.unit,
            None,
            None,
            row["is_of_samples"],
        )
        shown = replace(then, table=location.table, column=location.column, type=shown_type(kind))
        columns[then.name] = (shown, Column(servers.first, location, None, None, None, None))
    return columns


def _rows_of(
    servers: Servers, event: int, table: str, form: str, most: int, chosen: list[str]
) -> Iterator[Part]:
    """The rows of a table in a capture. Raises Refused (400, 404, 413)."""
    listed = records(servers.first, _LIST)
    captured = [row for row in listed if row["capture"] == event and row["table_name"] == table]
    if not captured:
        raise Refused(404, f"there is no capture {event} of table {table[:60]!r}, or you may not read it")
    number_of_rows, of_samples = captured[0]["rows"], captured[0]["is_of_samples"]
    if number_of_rows > most:
        raise Refused(413, f"these are {number_of_rows} rows, of which {most} are allowed")
    if form != "json":
        batches = _stored(servers.first, event, table, sql.SQL("*"), of_samples=of_samples)
        first = next(batches)
        yield from formed(form, first.schema, chain([first], batches))
        return
    stored = _columns(servers, event, [table])
    for name in chosen:
        if name not in stored:
            raise Refused(404, f"table {table} has no signal {name[:60]!r} in capture {event}")
    values = number_of_rows * (1 if of_samples else len(chosen or stored))
    if values > most:
        raise Refused(413, f"these are {values} values, of which {most} are allowed: request some signals")
    wanted = [stored[name] for name in chosen or stored]
    columns = (
        ("number", "value") if of_samples else dict.fromkeys(column.location.column for _, column in wanted)
    )
    selected = sql.SQL(", ").join(map(sql.Identifier, ("time", *columns)))
    kept = [*_stored(servers.first, event, table, selected, of_samples=of_samples)]

    def of(signal: Signal) -> Iterator[Samples]:
        column = stored[signal.name][1]
        for batch in kept:
            own = batch.filter(pc.equal(batch["number"], int(signal.column))) if of_samples else batch
            value = own["value" if of_samples else signal.column]
            yield column.samples(pa.RecordBatch.from_arrays([own["time"], value], ["time", signal.column]))

    yield from as_json([signal for signal, _ in wanted], of)


def _stored(
    connection: Connection, event: int, table: str, columns: sql.Composable, *, of_samples: bool
) -> Iterator[pa.RecordBatch]:
    """Columns of a table's rows in a capture, in their order."""
    text = sql.SQL('select {} from {} where capture = {} order by "time", {}').format(
        columns,
        sql.Identifier("capture", table),
        sql.Literal(event),
        sql.SQL("number, nanoseconds" if of_samples else "seq_no"),
    )
    return rows(connection, text)
