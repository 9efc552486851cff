"""The Archiver Appliance's paths: /retrieval/data/…, /retrieval/bpl/…, /mgmt/bpl/…."""

import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ringlog.retrieval.appliance import texts
from ringlog.retrieval.appliance.events import Events, of_samples
from ringlog.retrieval.appliance.names import chosen, expression, listed, most, posted, signals_of
from ringlog.retrieval.appliance.operators import FIGURES, processed
from ringlog.retrieval.appliance.pattern import SignalRequest, parse_pv
from ringlog.retrieval.appliance.raw import payload_type, ping_events, raw
from ringlog.retrieval.samples import Samples, at, demand_few, samples, thinned
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.request import answer, caller, json_response, services
from ringlog.retrieval.signals import LONGEST, Signal, matching
from ringlog.retrieval.summarised import summarised
from ringlog.retrieval.times import instant, span
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.moments import MICROSECOND

VERSION = "ringlog Archiver Appliance interface 2.0"
IDENTITY = "ringlog"
_MEDIA = {
    "json": "application/json",
    "qw": "application/json",
    "csv": "text/csv; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "raw": "application/x-protobuf",
}
_SEVERAL = ("json", "qw", "txt", "raw")
_PING = "ArchApplPingPV"


def routes() -> list[Route]:
    """The routes, below /retrieval and /mgmt as in the appliance, and below / as readers are configured."""
    made = []
    for prefix in ("/retrieval", ""):
        made += [
            Route(f"{prefix}/data/getData.{{form}}", get_data),
            Route(f"{prefix}/data/getDataForPVs.{{form}}", get_data, methods=["GET", "POST"]),
            Route(f"{prefix}/data/getDataAtTime", get_data_at_time, methods=["GET", "POST"]),
            Route(f"{prefix}/data/getDataAtTime.json", get_data_at_time, methods=["GET", "POST"]),
            Route(f"{prefix}/bpl/getMatchingPVs", get_matching_pvs),
            Route(f"{prefix}/bpl/searchForPVsRegex", search_for_pvs_regex),
            Route(f"{prefix}/bpl/getVersion", get_version),
            Route(f"{prefix}/bpl/areWeArchivingPV", are_we_archiving_pv),
            Route(f"{prefix}/bpl/getMetadata", get_metadata),
            Route(f"{prefix}/bpl/filterArchivedPVs", filter_archived_pvs, methods=["POST"]),
            Route(f"{prefix}/bpl/ping", ping),
            Route(f"{prefix}/ping", ping),
        ]
    made += [
        Route("/mgmt/bpl/getAllPVs", get_all_pvs),
        Route("/mgmt/bpl/getMatchingPVs", get_matching_pvs),
        Route("/mgmt/bpl/getPVStatus", get_pv_status, methods=["GET", "POST"]),
        Route("/mgmt/bpl/getPVTypeInfo", get_pv_type_info),
        Route("/mgmt/bpl/getApplianceInfo", get_appliance_info),
        Route("/mgmt/bpl/getAppliancesInCluster", get_appliances_in_cluster),
        Route("/mgmt/bpl/getVersions", get_versions),
    ]
    return made


async def get_data(request: Request) -> Response:
    """The samples of a signal, or an operator's result, in one of five forms."""
    form = request.path_params["form"]
    if form not in _MEDIA:
        raise Refused(400, f"there is no format {form[:20]!r}: use {', '.join(_MEDIA)}")
    names = await posted(request) if request.method == "POST" else request.query_params.getlist("pv")
    if not names:
        raise Refused(400, "pv is missing: the name of a signal")
    if form == "raw" and names == [_PING]:
        return Response(ping_events(_PING), media_type=_MEDIA[form])
    several = "getDataForPVs" in request.url.path
    if len(names) > 1 and not several:
        raise Refused(400, "getData accepts one pv: use getDataForPVs for several")
    queries = services(request).queries
    if len(names) > queries.limits.signals:
        raise Refused(413, f"{len(names)} signals are more than {queries.limits.signals}")
    if len(names) > 1 and form not in _SEVERAL:
        raise Refused(400, f"{form} supports one signal only: use {', '.join(_SEVERAL)} for several")
    now = datetime.now(UTC)
    ranges = _ranges(request, now)
    reduced = "firstSample" if request.query_params.get("usereduced", "").lower() == "true" else None
    wants = [parse_pv(name, request.query_params.get("pp") or reduced) for name in names]

    def work(servers: Servers) -> Iterator[bytes]:
        found = _demanded(servers, wants)
        # summaries first; rows are counted only if the summaries do not suffice
        read = [signal for want, signal in found if want.operator not in FIGURES]
        for start, end in ranges:
            demand_few(servers, read, start, end, queries.limits.rows)
        if form in ("json", "qw"):
            yield b"[ "
        for index, (want, signal) in enumerate(found):
            if index and form != "txt":
                yield b",\n" if form in ("json", "qw") else b"\n"
            yield from _formed(
                form, want, signal, _events(servers, signal, want, ranges, now, queries.limits.rows)
            )
        if form in ("json", "qw"):
            yield b" ]\n"

    return queries.stream(caller(request), work, _MEDIA[form])


def _formed(form: str, want: SignalRequest, signal: Signal, events: Iterator[Events]) -> Iterator[bytes]:
    name = signal.name
    if form == "csv":
        return texts.csv(events)
    if form == "txt":
        return texts.txt(name, events)
    headers = _headers(signal)
    if form == "json":
        return texts.json({"name": name} | headers, events)
    if form == "qw":
        return texts.qw({"name": want.signal} | headers, signal.type, events)
    return raw(name, signal.type, headers, events)


def _events(
    servers: Servers,
    signal: Signal,
    want: SignalRequest,
    ranges: Sequence[tuple[datetime, datetime]],
    now: datetime,
    most: int,
) -> Iterator[Events]:
    for index, (start, end) in enumerate(ranges):
        summaries = partial(summarised, servers, signal, start, end, before=index == 0)
        fewer = partial(thinned, servers, signal, start, end, before=index == 0)
        uncounted = want.operator in FIGURES
        stream = _samples(servers, signal, start, end, index == 0, most if uncounted else None)
        yield from processed(stream, want, start, end, now, summaries, fewer)


def _samples(
    servers: Servers, signal: Signal, start: datetime, end: datetime, before: bool, most: int | None
) -> Iterator[Samples]:
    """Samples from the one before the start to the end. Raises Refused (413) for more than `most`."""
    if most is not None:
        demand_few(servers, [signal], start, end, most)
    yield from samples(servers, signal, start, end + MICROSECOND, before=before)


def _demanded(servers: Servers, wants: Sequence[SignalRequest]) -> list[tuple[SignalRequest, Signal]]:
    there = signals_of(servers, [want.signal for want in wants])
    for want in wants:
        if want.signal not in there:
            words = f"there is no signal {want.signal!r}: /retrieval/bpl/getMatchingPVs finds signals"
            raise Refused(404, words)
    return [(want, there[want.signal]) for want in wants]


def _ranges(request: Request, now: datetime) -> list[tuple[datetime, datetime]]:
    """The interval of `from` and `to`, or those of `timeranges`, in their order."""
    given = request.query_params.get("timeranges")
    if not given:
        return [span(request.query_params.get("from"), request.query_params.get("to"), now)]
    times = given.split(",")
    if len(times) % 2 or len(times) > 2000:
        raise Refused(400, "timeranges must be pairs of times, separated by commas")
    found = [span(times[i], times[i + 1], now) for i in range(0, len(times), 2)]
    if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(found)):
        raise Refused(400, "timeranges must be in order of time and not overlap")
    return found


def _headers(signal: Signal) -> dict[str, str]:
    """The metadata that clients show with the values, by the names of EPICS's fields."""
    headers = {"EGU": signal.unit, "DESC": signal.description}
    for names, limits in (
        (("LOPR", "HOPR"), signal.limits),
        (("LOW", "HIGH"), signal.limits),
        (("LOLO", "HIHI"), signal.alarm_limits),
    ):
        known = zip(names, limits or (), strict=False)
        headers |= {name: f"{limit:.17g}" for name, limit in known if limit is not None}
    if signal.type.is_float and not signal.type.is_array:
        headers["PREC"] = _precision(signal)
    if signal.type == ColumnType(Kind.BIT):
        headers |= {"ENUM_0": "0", "ENUM_1": "1"}
    if signal.states is not None:
        headers |= {f"ENUM_{number}": name for number, name in signal.states.items() if int(number) >= 0}
    return {name: value for name, value in headers.items() if value}


async def get_data_at_time(request: Request) -> Response:
    """The newest sample of each signal at or before an instant; signals without one are omitted."""
    given = await posted(request) if request.method == "POST" else request.query_params.getlist("pv")
    limits = services(request).queries.limits
    if len(given) > limits.signals:
        raise Refused(413, f"{len(given)} signals are more than {limits.signals}")
    now = datetime.now(UTC)
    when = instant(request.query_params.get("at") or "now", now, "at")

    def work(servers: Servers) -> dict[str, Any]:
        there = signals_of(servers, given)
        found = {}
        for name, signal in there.items():
            sample = at(servers, signal, when)
            if sample is None:
                continue
            event = of_samples(sample)
            value = sample.values[0].as_py()
            severity, status = (0, 0) if event.alarms is None else (int(each[0]) for each in event.alarms)
            found[name] = {
                "secs": int(event.seconds[0]),
                "nanos": int(event.nanos[0]),
                "val": None if event.invalid[0] else int(value) if isinstance(value, bool) else value,
                "severity": severity,
                "status": status,
                "meta": {"DBRType": f"DBR_{payload_type(signal.type).name}"} | _headers(signal),
            }
        return found

    return json_response(await answer(request, work))


async def get_matching_pvs(request: Request) -> Response:
    """Names that match a glob (pv) or a regular expression (regex) as a whole; at most `limit`, -1: all."""
    return json_response(await _matching(request, most(request, 500)))


async def search_for_pvs_regex(request: Request) -> Response:
    """Names that match a regular expression as a whole, one per line."""
    names = await _matching(request, None)
    return PlainTextResponse("".join(f"{name}\n" for name in names))


async def _matching(request: Request, limit: int | None) -> list[str]:
    fits = expression(request)
    if fits is None:
        raise Refused(404, "a parameter is missing: pv=<name with * and ?> or regex=<regular expression>")
    return await answer(request, lambda servers: matching(servers.first, fits, limit))


async def get_all_pvs(request: Request) -> Response:
    """Names of signals: see `listed`."""
    return json_response(await answer(request, lambda servers: listed(servers, request, 500, unknown=False)))


async def get_version(request: Request) -> Response:
    """The name and version of the interface."""
    return json_response({"retrieval_version": VERSION})


async def get_versions(request: Request) -> Response:
    return json_response({"mgmt_version": VERSION, "retrieval_version": VERSION})


async def ping(request: Request) -> Response:
    return PlainTextResponse("pong\n")


async def are_we_archiving_pv(request: Request) -> Response:
    """Whether the signal exists now."""
    there = await _described(request, [_one_pv(request)])
    return json_response({"status": str(any(signal.now for signal in there.values())).lower()})


async def get_metadata(request: Request) -> Response:
    """The description of a signal, as texts."""
    name = _one_pv(request)
    there = await _described(request, [name])
    if name not in there:
        raise Refused(404, f"there is no signal {name!r}")
    return json_response(_type_info(there[name]) | _headers(there[name]))


async def get_pv_type_info(request: Request) -> Response:
    name = _one_pv(request)
    there = await _described(request, [name])
    if name not in there:
        raise Refused(404, f"there is no signal {name!r}")
    return json_response(_type_info(there[name]))


async def filter_archived_pvs(request: Request) -> Response:
    """The names in the body that are signals."""
    names = await posted(request)
    there = await _described(request, names)
    return json_response([name for name in names if name in there])


async def get_pv_status(request: Request) -> Response:
    """Whether each signal is archived: of a body, or see `listed`."""
    given = await posted(request) if request.method == "POST" else None

    def work(servers: Servers) -> list[dict[str, str]]:
        if given is None:
            names = listed(servers, request, -1, unknown=True)
        else:
            names = chosen(servers, given, most(request, -1), unknown=True)
        there = signals_of(servers, names)
        return [_status(name, there.get(name)) for name in names]

    return json_response(await answer(request, work))


def _status(name: str, signal: Signal | None) -> dict[str, str]:
    if signal is None:
        return {"pvName": name, "status": "Not being archived"}
    return {
        "pvName": name,
        "pvNameOnly": signal.name,
        "status": "Being archived" if signal.now else "Paused",
        "appliance": IDENTITY,
        "samplingPeriod": f"{signal.cycle or 0:g}",
        "isMonitored": str(signal.is_of_samples).lower(),
    }


def _type_info(signal: Signal) -> dict[str, str]:
    # the number of points of a waveform is not known
    count = {"scalar": "false"} if signal.type.is_array else {"scalar": "true", "elementCount": "1"}
    return count | {
        "pvName": signal.name,
        "DBRType": f"DBR_{payload_type(signal.type).name}",
        "applianceIdentity": IDENTITY,
        "paused": str(not signal.now).lower(),
        "samplingMethod": "MONITOR" if signal.is_of_samples else "SCAN",
        "samplingPeriod": f"{signal.cycle or 0:g}",
        "units": signal.unit,
        "precision": _precision(signal),
    }


def _precision(signal: Signal) -> str:
    return str(6 if signal.decimals is None else signal.decimals)


async def get_appliance_info(request: Request) -> Response:
    """The addresses of the appliance's components: all are this server."""
    return json_response(_appliance(request))


async def get_appliances_in_cluster(request: Request) -> Response:
    return json_response([_appliance(request)])


def _appliance(request: Request) -> dict[str, str]:
    root = str(request.base_url).rstrip("/")
    return {
        "identity": IDENTITY,
        "mgmtURL": f"{root}/mgmt/bpl",
        "engineURL": f"{root}/retrieval/bpl",
        "retrievalURL": f"{root}/retrieval/bpl",
        "etlURL": f"{root}/retrieval/bpl",
        "dataRetrievalURL": f"{root}/retrieval",
        "version": VERSION,
    }


def _one_pv(request: Request) -> str:
    name = request.query_params.get("pv", "")
    if not name or len(name) > LONGEST or "\0" in name:
        raise Refused(404, "pv is missing: the name of a signal")
    return name


async def _described(request: Request, names: list[str]) -> dict[str, Signal]:
    return await answer(request, lambda servers: signals_of(servers, names))
