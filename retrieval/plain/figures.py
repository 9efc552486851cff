"""Statistics, histograms and spectra over HTTP."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
from psycopg import sql
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.history.connection import ReadError, records, time_literal
from ringlog.retrieval.plain.analysis import histogram, spectrum
from ringlog.retrieval.plain.forms import MEDIA, attached, form_of, formed
from ringlog.retrieval.plain.notes import described, file_name, noted
from ringlog.retrieval.plain.trends import IN_ARCHIVE
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import (
    answer,
    asked_span,
    caller,
    json_response,
    names,
    number,
    services,
)
from ringlog.retrieval.serving.unchanged import tag_of
from ringlog.retrieval.signals import Signal, demand
from ringlog.retrieval.spans import Condition, Spans, condition_of, spans_of
from ringlog.retrieval.texts import query

_FIGURES = pa.schema(
    [("signal", pa.string()), ("n", pa.int64())]
    + [(name, pa.float64()) for name in ("min", "max", "mean", "std", "rms", "first", "last")]
    + [("nans", pa.int64()), ("nulls", pa.int64()), ("seconds", pa.float64()), ("time_mean", pa.float64())]
)


def figure_routes() -> list[Route]:
    return [
        Route("/api/v1/statistics", get_statistics),
        Route("/api/v1/histogram", get_histogram),
        Route("/api/v1/spectrum", get_spectrum),
    ]


async def get_statistics(request: Request) -> Response:
    wanted, (start, end) = names(request), asked_span(request)
    weighted = "weighted" in request.query_params
    condition, form = condition_of(request, without=weighted), form_of(request)

    def work(servers: Servers) -> tuple[list[Signal], list[dict[str, Any]]]:
        signals = demand(servers, wanted)
        spans = spans_of(servers, condition, start, end)
        return signals, [
            _statistics(servers, signal, start, end, condition, spans, weighted=weighted)
            for signal in signals
        ]

    def table(servers: Servers) -> Iterator[Part]:
        signals, found = work(servers)
        schema = noted(_FIGURES, servers, signals, start, end)
        rows = [{"signal": signal.name} | row for signal, row in zip(signals, found, strict=True)]
        batches = iter([pa.RecordBatch.from_pylist(rows, schema)])
        yield from formed(form, schema, batches, comments="comments" in request.query_params)

    if form == "json":
        signals, found = await answer(request, work)
        return json_response([described(signal) | row for signal, row in zip(signals, found, strict=True)])
    headers = attached(request, form, file_name(wanted, start, end))
    return services(request).queries.stream(caller(request), table, MEDIA[form], headers)


def _statistics(
    servers: Servers,
    signal: Signal,
    start: datetime,
    end: datetime,
    condition: Condition,
    spans: Spans | None,
    *,
    weighted: bool,
) -> dict[str, Any]:
    """The figures of a signal. Raises Refused (400) for texts and waveforms, for a signal of several
    servers, and for spans that need rows of archived weeks."""
    if not signal.is_number:
        raise Refused(400, f"signal {signal.name!r} is {signal.type} and has no statistics")
    if len(signal.nodes) > 1:
        raise Refused(400, f"signal {signal.name!r} has rows on several servers: request its data")
    text = query(
        "plain/statistics",
        signal=sql.Literal(signal.name),
        start=time_literal(start),
        end=time_literal(end),
        spans=sql.SQL("ringlog.condition_spans(null, {}, {})").format(time_literal(start), time_literal(end))
        if spans is None
        else sql.SQL("{}::tstzmultirange").format(sql.Literal(spans.literal)),
        gap=sql.Literal(condition.seconds.decode()),
        weighted=sql.Literal(weighted),
    )
    try:
        return records(servers.of(signal.node), text)[0]
    except ReadError as error:
        if error.sqlstate != IN_ARCHIVE:
            raise
        raise Refused(400, str(error).split("\n", 1)[0].removeprefix("ERROR:").strip()) from error


async def get_histogram(request: Request) -> Response:
    bins = number(request.query_params.get("bins"), "bins", 60, 1, 10_000)
    condition, log = condition_of(request), "log" in request.query_params

    def made(servers: Servers, signals: Sequence[Signal], start: datetime, end: datetime) -> Iterator[Part]:
        spans = spans_of(servers, condition, start, end)
        return histogram(servers, signals, start, end, bins, spans, log=log)

    return _stream(request, condition, made)


async def get_spectrum(request: Request) -> Response:
    points = number(request.query_params.get("points"), "points", 1000, 1, 100_000)
    condition, log = condition_of(request), "log" in request.query_params
    if condition.text is not None:
        raise Refused(400, "a spectrum needs all values of its time: while cannot be used with it")
    return _stream(request, condition, partial(spectrum, points=points, log=log))


def _stream(request: Request, condition: Condition, made: Callable[..., Iterator[Part]]) -> Response:
    """The answer that a function makes of the servers, the signals and the time of a request."""
    wanted, (start, end) = names(request), asked_span(request)

    def work(servers: Servers) -> Iterator[Part]:
        yield from made(servers, demand(servers, wanted), start, end)

    tag = condition.tag(partial(tag_of, names=wanted, start=start, end=end))
    return services(request).queries.stream(caller(request), work, MEDIA["json"], tag=tag)
