"""The plain API's paths, below /api/v1."""

import shutil
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ringlog.history.connection import records, time_literal
from ringlog.history.sampled import newest_of
from ringlog.history.signals import locations
from ringlog.retrieval.plain import parameters
from ringlog.retrieval.plain.captures import capture_routes
from ringlog.retrieval.plain.data import data, newest, rows
from ringlog.retrieval.plain.figures import figure_routes
from ringlog.retrieval.plain.forms import MEDIA, attached, form_of
from ringlog.retrieval.plain.live import Live
from ringlog.retrieval.plain.marks import mark_routes
from ringlog.retrieval.plain.notes import described, file_name
from ringlog.retrieval.plain.openapi import DESCRIPTION
from ringlog.retrieval.plain.trends import trend, trend_json, trend_table
from ringlog.retrieval.plain.views import view_routes
from ringlog.retrieval.plain.why import why
from ringlog.retrieval.plain.wide import HOW, rows_of, wide
from ringlog.retrieval.samples import demand_few
from ringlog.retrieval.servers import Servers, excluded
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import (
    answer,
    asked_span,
    caller,
    issue_token,
    json_response,
    names,
    number,
    services,
)
from ringlog.retrieval.serving.unchanged import tag_of
from ringlog.retrieval.signals import as_of, demand, latest, reduced, search
from ringlog.retrieval.spans import condition_of, spans_of
from ringlog.retrieval.texts import query
from ringlog.retrieval.times import duration, instant
from ringlog.schema.column_type import ColumnType
from ringlog.schema.moments import microseconds

_streams = 0


def routes() -> list[Route]:
    return [
        Route("/api/v1/openapi.json", get_description),
        Route("/api/v1/token", post_token, methods=["POST"]),
        Route("/api/v1/me", get_me),
        Route("/api/v1/signals", get_signals),
        Route("/api/v1/signals/{name:path}", get_signal),
        Route("/api/v1/data", get_data),
        Route("/api/v1/at", get_at),
        Route("/api/v1/rows", get_rows),
        Route("/api/v1/trend", get_trend),
        *figure_routes(),
        Route("/api/v1/latest", get_latest),
        Route("/api/v1/live", get_live),
        Route("/api/v1/tables", get_tables),
        Route("/api/v1/disk", get_disk),
        Route("/api/v1/parameters", get_parameter_tables),
        Route("/api/v1/parameters/{table}", get_parameters),
        Route("/api/v1/parameters/{table}/history", get_parameter_history),
        Route("/api/v1/snapshots", get_snapshots),
        *capture_routes(),
        *mark_routes(),
        *view_routes(),
        Route("/api/v1/events", get_events),
        Route("/api/v1/losses", get_losses),
        Route("/api/v1/why", get_why),
    ]


async def get_description(request: Request) -> Response:
    return json_response(DESCRIPTION)


async def post_token(request: Request) -> Response:
    """A bearer token for the request's login, after PostgreSQL has accepted it."""
    token, seconds = await issue_token(request)
    return json_response({"token": token, "seconds": seconds})


async def get_me(request: Request) -> Response:
    """The PostgreSQL login of the client, and the facility's time zone."""
    found = await answer(request, lambda servers: records(servers.first, query("plain/me"))[0])
    return json_response(found | {"open": services(request).access.open})


async def get_signals(request: Request) -> Response:
    words = request.query_params.get("search", "")
    if len(words) > 200 or "\0" in words:
        raise Refused(400, "search must have at most 200 characters")
    limit = number(request.query_params.get("limit"), "limit", 100, 1, 100_000)
    offset = number(request.query_params.get("offset"), "offset", 0, 0)
    found = await answer(request, lambda servers: search(servers.first, words, limit, offset))
    return json_response([described(signal) for signal in found])


async def get_signal(request: Request) -> Response:
    """A signal, with the columns that have stored it and their times."""
    name = request.path_params["name"]

    def work(servers: Servers) -> dict[str, Any]:
        signal = demand(servers, [name])[0]
        stored = name if signal.scalar is None else name.removesuffix(f".{signal.scalar}")
        where = [
            {
                "table": location.table,
                "column": location.column,
                "type": str(location.type),
                "unit": location.unit,
                "since": location.since,
                "until": location.until,
            }
            for node in signal.nodes
            for location in locations(servers.of(node), [stored])[stored]
        ]
        return described(signal) | {"places": where}

    return json_response(await answer(request, work))


def _alignment(request: Request, form: str) -> tuple[str | None, int | None]:
    """How samples of several signals are aligned, None is not at all; and the step in microseconds."""
    how, step = (request.query_params.get(name) for name in ("wide", "step"))
    if how is None:
        if step is not None:
            raise Refused(400, f"step is for wide={'|'.join(HOW)}")
        return None, None
    if how not in HOW:
        raise Refused(400, f"wide={how[:20]!r} is not one of {', '.join(HOW)}")
    if form == "json":
        raise Refused(400, "several signals in columns (wide) are available as csv, arrow or parquet")
    if "limit" in request.query_params:
        raise Refused(400, "limit cannot be used with wide")
    return how, None if step is None else duration(step, "step")


async def get_data(request: Request) -> Response:
    wanted, form = names(request), form_of(request)
    start, end = asked_span(request)
    queries = services(request).queries
    given = request.query_params.get("limit")
    limit = number(given, "limit", 1, 1, 100_000) if given else None
    how, step = _alignment(request, form)
    condition = condition_of(request, without=how in ("last", "linear"))
    if limit is not None and condition.text is not None:
        raise Refused(400, "limit cannot be used with while")
    if step is not None:
        values = rows_of((microseconds(start), microseconds(end)), step) * len(wanted)
        if values > queries.limits.rows:
            raise Refused(
                413,
                f"these are {values} values, of which {queries.limits.rows} are allowed: use a longer step",
            )
    comments = "comments" in request.query_params

    def work(servers: Servers) -> Iterator[Part]:
        signals = demand(servers, wanted)
        if limit is None or limit * len(signals) > queries.limits.rows:
            demand_few(servers, signals, start, end, queries.limits.rows)
        spans = spans_of(servers, condition, start, end)
        if how is not None:
            gap = condition.gap
            yield from wide(servers, signals, start, end, how, step, form, spans, gap, comments=comments)
        else:
            yield from data(servers, signals, start, end, form, limit, spans, comments=comments)

    return queries.stream(
        caller(request),
        work,
        MEDIA[form],
        attached(request, form, file_name(wanted, start, end)),
        condition.tag(lambda servers: tag_of(servers, wanted, start, end)),
    )


async def get_at(request: Request) -> Response:
    wanted = names(request)
    now, given = datetime.now(UTC), request.query_params.get("time")
    when = instant(given, now, "time") if given else now
    return services(request).queries.stream(
        caller(request), lambda servers: newest(servers, demand(servers, wanted), when), MEDIA["json"]
    )


async def get_rows(request: Request) -> Response:
    table, form = request.query_params.get("table", ""), form_of(request, "csv")
    chosen = request.query_params.getlist("column")
    start, end = asked_span(request)
    queries = services(request).queries
    if form == "json":
        raise Refused(400, "rows are available as csv, arrow or parquet")

    def work(servers: Servers) -> Iterator[Part]:
        text = query("plain/columns", table=sql.Literal(table))
        known = {row["column_name"]: row for row in records(servers.first, text)}
        if not known:
            raise Refused(404, f"there is no table {table[:60]!r}")
        for column in chosen:
            if column not in known:
                raise Refused(404, f"table {table} has no column {column[:60]!r}")
        columns = [(column, ColumnType.of(known[column]["type"])) for column in chosen or known]
        one = demand(servers, [known[columns[0][0]]["signal"]])
        if one[0].is_of_samples:
            raise Refused(400, f"table {table} has samples and no rows: request the data of its signals")
        demand_few(servers, one, start, end, queries.limits.rows)
        yield from rows(servers.of(one[0].node), table, columns, start, end, form)

    name = file_name([table], start, end)
    return queries.stream(caller(request), work, MEDIA[form], attached(request, form, name))


async def get_trend(request: Request) -> Response:
    wanted, form = names(request), form_of(request)
    start, end = asked_span(request)
    points = number(request.query_params.get("points"), "points", 1000, 1, 100_000)
    queries, condition = services(request).queries, condition_of(request)

    def work(servers: Servers) -> Iterator[Part]:
        signals = demand(servers, wanted)
        spans = spans_of(servers, condition, start, end)
        made = (trend(servers, signal, start, end, points, spans) for signal in signals)
        if form == "json":
            yield from trend_json(made, start, end)
        else:
            comments = "comments" in request.query_params
            yield from trend_table(form, made, servers, signals, (start, end), comments=comments)

    return queries.stream(
        caller(request),
        work,
        MEDIA[form],
        attached(request, form, file_name(wanted, start, end)),
        condition.tag(lambda servers: tag_of(servers, wanted, start, end)),
    )


async def get_latest(request: Request) -> Response:
    wanted = names(request)

    def work(servers: Servers) -> list[dict[str, Any]]:
        signals = demand(servers, wanted)
        found = {}
        ordered = sorted(signals, key=lambda signal: signal.table)
        for table, group in groupby(ordered, key=lambda signal: signal.table):
            of_table = [signal for signal in group if signal.now]
            if of_table and of_table[0].is_of_samples:
                columns = [signal.column for signal in of_table]
                samples = newest_of(servers.of(of_table[0].node), table, columns)
                for signal, sample in zip(of_table, samples, strict=True):
                    if sample is not None:
                        value = reduced(sample.column(1), signal.scalar)
                        found[signal.name] = {"time": sample.column(0)[0].as_py(), "value": value[0].as_py()}
                continue
            columns = [signal.column for signal in of_table]
            row = latest(servers.of(of_table[0].node), table, columns) if of_table else None
            for signal in of_table:
                if row is not None:
                    value = row.column(signal.column)
                    found[signal.name] = {
                        "time": row["time"][0].as_py(),
                        "value": reduced(value, signal.scalar)[0].as_py(),
                    }
        nothing = {"time": None, "value": None}
        return [
            described(as_of(signal, found[signal.name]["time"])) | found[signal.name]
            if signal.name in found
            else described(signal) | nothing
            for signal in signals
        ]

    return json_response(await answer(request, work))


async def get_live(request: Request) -> Response:
    global _streams
    wanted, login, queries = names(request), caller(request), services(request).queries
    since = request.query_params.get("since")
    now = datetime.now(UTC)
    begin = instant(since, now, "since") if since else now - timedelta(seconds=5)
    if _streams >= queries.limits.streams:
        raise Refused(429, "too many live streams are open: try again later", {"Retry-After": "30"})
    _streams += 1
    try:
        signals = await queries.answer(login, lambda servers: demand(servers, wanted))
    except BaseException:
        _streams -= 1
        raise
    live = Live(queries, login, [signal for signal in signals if signal.now], begin)
    return _Stream(live.events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


class _Stream(StreamingResponse):
    """A stream, which ends its part of the limit also if its client is gone before its first event."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        global _streams
        try:
            async with aclosing(self.body_iterator):  # type: ignore[type-var]
                await super().__call__(scope, receive, send)
        finally:
            _streams -= 1


async def get_tables(request: Request) -> Response:
    """Every table, its node, its writer, and the time of its newest row; nodes that cannot be reached."""

    def work(servers: Servers) -> dict[str, Any]:
        tables: list[dict[str, Any]] = []
        away = {}
        for node, connection, others in servers.each():
            if isinstance(connection, Refused):
                away[node] = str(connection)
                continue
            there = records(connection, query("plain/tables", others=excluded(others)))
            newest = {}
            of_rows = [table["table_name"] for table in there if table["cycle"] is not None]
            if len(of_rows) < len(there):
                names = [table["table_name"] for table in there if table["cycle"] is None]
                states = sql.SQL("select table_name, newest from ringlog.table_states({})").format(
                    sql.Literal(names)
                )
                newest = {row["table_name"]: row["newest"] for row in records(connection, states)}
            if of_rows:
                each = sql.SQL(" union all ").join(
                    sql.SQL('select {} as table_name, max("time") as newest from {}').format(
                        sql.Literal(name), sql.Identifier("online", name)
                    )
                    for name in of_rows
                )
                newest |= {row["table_name"]: row["newest"] for row in records(connection, each)}
            calls = sql.SQL("select table_name, called from ringlog.arrivals()")
            called = {row["table_name"]: row["called"] for row in records(connection, calls)}
            for table in there:
                name = table["table_name"]
                tables.append(table | {"newest": newest[name], "called": called.get(name), "node": node})
        return {"tables": sorted(tables, key=lambda table: str(table["table_name"])), "away": away}

    return json_response({"now": datetime.now(UTC)} | await answer(request, work))


async def get_disk(request: Request) -> Response:
    """Bytes of all databases and of each log; free and total bytes of the first server's disk, if it is on
    this machine; nodes that cannot be reached."""
    data = services(request).data

    def work(servers: Servers) -> dict[str, Any]:
        size = sql.SQL("select pg_database_size(current_database()) as bytes")
        logs: list[dict[str, Any]] = []
        bytes_in_all, away = 0, {}
        for node, connection, others in servers.each():
            if isinstance(connection, Refused):
                away[node] = str(connection)
                continue
            logs += records(connection, query("plain/log_sizes", others=excluded(others)))
            bytes_in_all += records(connection, size)[0]["bytes"]
        logs.sort(key=lambda log: (-log["bytes"], log["table_name"]))
        found = {"logs": logs, "database": bytes_in_all, "free": None, "total": None, "away": away}
        if data is not None:
            disk = shutil.disk_usage(data)
            found |= {"free": disk.free, "total": disk.total}
        return found

    return json_response(await answer(request, work))


async def get_parameter_tables(request: Request) -> Response:
    return json_response(await answer(request, lambda servers: parameters.tables(servers.first)))


async def get_parameters(request: Request) -> Response:
    table, form = request.path_params["table"], form_of(request)
    given = request.query_params.get("time")
    when = instant(given, datetime.now(UTC), "time") if given else None

    def work(servers: Servers) -> Iterator[Part]:
        yield from parameters.current(servers.first, table, when, form)

    return services(request).queries.stream(
        caller(request), work, MEDIA[form], attached(request, form, table)
    )


async def get_parameter_history(request: Request) -> Response:
    table, form = request.path_params["table"], form_of(request)
    now = datetime.now(UTC)
    start, end = (
        instant(given, now, name) if (given := request.query_params.get(name)) else None
        for name in ("from", "to")
    )

    def work(servers: Servers) -> Iterator[Part]:
        yield from parameters.history(servers.first, table, start, end, form)

    return services(request).queries.stream(
        caller(request), work, MEDIA[form], attached(request, form, table)
    )


async def get_snapshots(request: Request) -> Response:
    return json_response(await answer(request, lambda servers: parameters.snapshots(servers.first)))


async def get_events(request: Request) -> Response:
    start, end = asked_span(request)
    limit = number(request.query_params.get("limit"), "limit", 1000, 1, 100_000)

    def work(servers: Servers) -> list[dict[str, Any]]:
        found = _of_servers(request, servers, "events", start, end, limit=sql.Literal(limit))
        return sorted(found, key=lambda event: event["time"], reverse=True)[:limit]

    return json_response(await answer(request, work))


async def get_why(request: Request) -> Response:
    """Why a signal has no reading."""
    wanted = names(request)
    if len(wanted) > 1:
        raise Refused(400, "signal must be one name")
    start, end = asked_span(request)
    return json_response(await answer(request, lambda servers: why(servers, wanted[0], start, end)))


async def get_losses(request: Request) -> Response:
    start, end = asked_span(request)

    def work(servers: Servers) -> list[dict[str, Any]]:
        found = _of_servers(request, servers, "losses", start, end)
        return sorted(found, key=lambda book: (book["hour"], book["table_name"]))

    return json_response(await answer(request, work))


def _of_servers(
    request: Request, servers: Servers, name: str, start: datetime, end: datetime, **others: sql.Composable
) -> list[dict[str, Any]]:
    """The rows of a query on each server, for one table if the request names one. Raises Refused for a node
    that cannot be reached."""
    table = request.query_params.get("table")
    times = {"start": time_literal(start), "end": time_literal(end)}
    found = []
    for _, connection, gone in servers.each(table):
        if isinstance(connection, Refused):
            raise connection
        text = query(f"plain/{name}", of_table=sql.Literal(table), others=excluded(gone), **times, **others)
        found += records(connection, text)
    return found
