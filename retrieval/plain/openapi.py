"""The plain API in OpenAPI 3.1."""

from typing import Any

_TIME = "ISO 8601 (2026-11-20T14:00:00Z), seconds since 1970, or now-90m (s, m, h, d, w, y)"


def _parameter(
    name: str, description: str, kind: str = "string", *, required: bool = False, many: bool = False
) -> Any:
    schema: dict[str, Any] = {"type": kind}
    if many:
        schema = {"type": "array", "items": schema}
    return {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


_SIGNALS = _parameter("signal", "name of a signal; may be repeated", required=True, many=True)
_SPAN = [
    _parameter("from", f"start of the time range (inclusive): {_TIME}"),
    _parameter("to", "end of the time range (exclusive); default now"),
]
_PARAMETER_TABLE = {"name": "table", "in": "path", "required": True, "schema": {"type": "string"}}
_FORMAT = {
    "name": "format",
    "in": "query",
    "description": "format of the answer",
    "schema": {"type": "string", "enum": ["json", "csv", "arrow", "parquet"], "default": "json"},
}
_COMMENTS = _parameter("comments", "1: CSV begins with lines of units, descriptions and the zone")
_ERRORS = {
    "400": "a parameter is wrong; the error names it",
    "401": "no login, or PostgreSQL refused it",
    "403": "this login has no right to read it",
    "404": "there is no such signal or table",
    "413": "more than this server returns at once",
    "429": "too many queries are running",
    "503": "PostgreSQL does not answer, or a file of the archive is missing or damaged",
    "504": "the query took longer than this server allows",
}


def _get(summary: str, parameters: list[Any], media: tuple[str, ...] = ("application/json",)) -> Any:
    responses: dict[str, Any] = {"200": {"description": summary, "content": {each: {} for each in media}}}
    responses |= {
        status: {
            "description": description,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, description in _ERRORS.items()
    }
    return {"get": {"summary": summary, "parameters": parameters, "responses": responses}}


_TABLES = (
    "application/json",
    "text/csv",
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.parquet",
)

DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {
        "title": "ringlog",
        "version": "1",
        "description": (
            "Signals of a machine, over any time range. A request is executed under the "
            "PostgreSQL login that it contains, with that login's rights. Times are UTC; in "
            "JSON they are milliseconds since 1970 within samples, ISO 8601 elsewhere. Null "
            "is no reading."
        ),
    },
    "components": {
        "securitySchemes": {
            "basic": {"type": "http", "scheme": "basic", "description": "a PostgreSQL login"},
            "bearer": {"type": "http", "scheme": "bearer", "description": "a token of POST /api/v1/token"},
        },
        "schemas": {
            "Error": {
                "type": "object",
                "properties": {"error": {"type": "string"}, "status": {"type": "integer"}},
                "required": ["error", "status"],
            }
        },
    },
    "security": [{"basic": []}, {"bearer": []}, {}],
    "paths": {
        "/api/v1/signals": _get(
            "current signals that contain all the words",
            [
                _parameter("search", "words, separated by blanks"),
                _parameter("limit", "maximum number; default 100", "integer"),
                _parameter("offset", "number of results to skip", "integer"),
            ],
        ),
        "/api/v1/signals/{name}": _get(
            "a signal, and the columns it has been stored in",
            [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
        ),
        "/api/v1/data": _get(
            "samples of signals",
            [
                _SIGNALS,
                *_SPAN,
                _parameter("limit", "maximum number of samples of each signal, the oldest ones", "integer"),
                _parameter(
                    "wide",
                    "a column for each signal: last (the newest sample at or before a time), mean (of the "
                    "samples to the next time), linear (between samples; of a held value as last). A row "
                    "without a reading gives none; csv, arrow or parquet",
                ),
                _parameter("step", "rows at its multiples, as 10s; without it at the times of all samples"),
                _COMMENTS,
                _FORMAT,
            ],
            _TABLES,
        ),
        "/api/v1/at": _get(
            "the newest sample of each signal at or before a time; null is one without a reading",
            [_SIGNALS, _parameter("time", f"the time; default now: {_TIME}")],
        ),
        "/api/v1/rows": _get(
            "rows of one table",
            [
                _parameter("table", "name of the table", required=True),
                _parameter("column", "a column; may be repeated; default all", many=True),
                *_SPAN,
                _FORMAT
                | {"schema": {"type": "string", "enum": ["csv", "arrow", "parquet"], "default": "csv"}},
            ],
            _TABLES[1:],
        ),
        "/api/v1/trend": _get(
            "few points for any time range: n, min, max, mean, first, last of each; few samples as they are",
            [
                _SIGNALS,
                *_SPAN,
                _parameter("points", "maximum number; default 1000", "integer"),
                _COMMENTS,
                _FORMAT,
            ],
            _TABLES,
        ),
        "/api/v1/histogram": _get(
            "counts of values in bins, which all signals have in common; of more than a million samples "
            "those of the means of equal times, whose `width` in seconds is in the answer",
            [
                _SIGNALS,
                *_SPAN,
                _parameter("bins", "number of bins; default 60", "integer"),
                _parameter("log", "1: bins are equally wide in the logarithm"),
            ],
        ),
        "/api/v1/spectrum": _get(
            "amplitudes by frequency in Hz; of more than a million samples those of means, as in histogram",
            [
                _SIGNALS,
                *_SPAN,
                _parameter(
                    "points",
                    "maximum number: the greatest amplitude of so many bands; default 1000",
                    "integer",
                ),
                _parameter("log", "1: the bands are equally wide in the logarithm"),
            ],
        ),
        "/api/v1/latest": _get("the newest value of signals", [_SIGNALS]),
        "/api/v1/live": _get(
            "new values as Server-Sent Events: event `values`, data {signal: [[milliseconds, value], …]}",
            [_SIGNALS, _parameter("since", f"rows after this time are new: {_TIME}")],
            ("text/event-stream",),
        ),
        "/api/v1/tables": _get("every table, its writer and its newest row", []),
        "/api/v1/disk": _get("bytes of the database, of each log, and of the disk where it is known", []),
        "/api/v1/parameters": _get("every parameter table: its columns, their types, units and limits", []),
        "/api/v1/parameters/{table}": _get(
            "the rows of a parameter table, now or at a time",
            [_PARAMETER_TABLE, _parameter("time", f"the time; default now: {_TIME}"), _FORMAT],
            _TABLES,
        ),
        "/api/v1/parameters/{table}/history": _get(
            "every version of the rows of a parameter table, oldest first, with its change and author",
            [
                _PARAMETER_TABLE,
                _parameter("from", f"versions valid at or after this time; default all: {_TIME}"),
                _parameter("to", "versions valid before this time; default all"),
                _FORMAT,
            ],
            _TABLES,
        ),
        "/api/v1/snapshots": _get("the named states of all parameter tables", []),
        "/api/v1/events": _get(
            "events; of kind `late`: hours in which rows arrived after newer ones",
            [
                *_SPAN,
                _parameter("table", "of this table only"),
                _parameter("limit", "maximum number", "integer"),
            ],
        ),
        "/api/v1/losses": _get(
            "the ledger of rows of each table and hour",
            [*_SPAN, _parameter("table", "of this table only")],
        ),
        "/api/v1/me": _get("the PostgreSQL login of the request, and the facility's time zone", []),
        "/api/v1/token": {
            "post": {
                "summary": "a bearer token for the login of the request",
                "responses": {
                    "200": {"description": "token, and its validity in seconds"},
                    "401": {"description": _ERRORS["401"]},
                },
            }
        },
    },
}
