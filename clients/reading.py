"""Samples and trends of signals for programs, over HTTP, as pandas or Arrow.

    from ringlog.clients import read

    table = read("sr_rf/power", "2026-11-01", "2026-11-20", server="http://display@archive:8080")
    frame = table.to_pandas()
    trend = read(["sr_rf/power", "sr_rf/arcs"], "now-1y", "now", points=1000, server="http://archive:8080")

pyarrow is needed (the extra `history` or `parquet` brings it), pandas for to_pandas().
"""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode, urlsplit

from ringlog.clients.answers import Answers
from ringlog.clients.progress import Counted, Progress, line

if TYPE_CHECKING:
    from urllib.error import HTTPError

    import pyarrow as pa

SERVER = "RINGLOG_HTTP"
"""environment variable with the server's URL"""
_PASSWORD = "RINGLOG_PASSWORD"
_IN_MEMORY = Answers()


class ReadRefused(Exception):
    """The server refuses a request, or cannot be reached. `status` is the HTTP status; 0: no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def read(
    signals: str | Sequence[str],
    start: datetime | str,
    end: datetime | str = "now",
    *,
    points: int | None = None,
    wide: str | None = None,
    step: str | float | None = None,
    while_: str | None = None,
    gap: str | float | None = None,
    statistics: bool = False,
    weighted: bool = False,
    server: str | None = None,
    password: str | None = None,
    certificate: str | Path | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> "pa.Table":
    """Samples of signals from `start` on and before `end`, oldest first, as a table of Arrow.

    One signal has the columns `time` (timestamp[us, UTC]) and `value`; several have `signal` too. With
    `points` it is a trend of about so many points: `signal`, `time`, `n`, `min`, `max`, `mean`, `first`,
    `last`. With `statistics` it is a row for each signal: `signal`, `n`, `min`, `max`, `mean`, `std`, `rms`,
    `first`, `last`, `nans`, `nulls`, `seconds`, `time_mean`; if `weighted`, this is the mean weighted by
    duration, which reads all rows, otherwise null. With `wide` there is a column for each signal beside
    `time`: "last" (the newest sample at or before a time), "mean" (from a time to the next) or "linear"
    (between samples), at the multiples of `step` (seconds, or as "1m"); without a step at the times of all
    samples.

    With `while_` only samples and times in which a condition of signals holds, as "SR:CURRENT > 10 and
    SR:MODE = 'user'"; `gap` is the longest time for which a value is held (seconds, or as "10s").

    Times are aware datetimes or texts of the server's API, as now-7d. The metadata of the schema (`ringlog`,
    as JSON) has the facility's zone, units and descriptions; that of a signal's own column its unit and
    description.

    `server` is http[s]://[user@]host:port, by default the environment variable RINGLOG_HTTP; the password of
    its user is `password` or RINGLOG_PASSWORD. `certificate` is a file of trusted certificates for https.

    Answers of closed time are kept, in the folder `cache` or in memory (256 MiB at most), and returned when
    the server confirms that they have not changed. `progress` is called with the number of bytes of each
    part; without it a line on standard error counts them, if that is a terminal or a notebook and the answer
    takes more than a second.

    Raises ReadRefused; ValueError for a time without a zone or an invalid URL; OSError of the folder.
    """
    names = [signals] if isinstance(signals, str) else list(signals)
    path, query = request_of(
        names, start, end, "arrow", points, wide, step, while_, gap, statistics, weighted
    )
    kept = _IN_MEMORY if cache is None else Answers(Path(cache))
    key = repr((server or os.environ.get(SERVER), path, query))
    known = kept.find(key)
    headers = {} if known is None else {"If-None-Match": known[0]}
    try:
        with ExitStack() as stack:
            answer = stack.enter_context(opened(path, query, server, password, certificate, headers))
            table = table_of(Counted(answer, progress or stack.enter_context(line())))
    except ReadRefused as error:
        if known is None or error.status != 304:
            raise
        return known[1]
    if (tag := answer.headers["ETag"]) is not None:
        kept.keep(key, tag, table)
    return table


def request_of(
    signals: Sequence[str],
    start: datetime | str,
    end: datetime | str,
    form: str,
    points: int | None = None,
    wide: str | None = None,
    step: str | float | None = None,
    while_: str | None = None,
    gap: str | float | None = None,
    statistics: bool = False,
    weighted: bool = False,
) -> tuple[str, list[tuple[str, str]]]:
    """The path and the parameters of a request for what `read` returns. Raises ValueError."""
    query = [("signal", name) for name in signals]
    query += [("from", _time(start)), ("to", _time(end)), ("format", form)]
    if points is not None and (wide is not None or step is not None):
        raise ValueError("points is for a trend, step for signals in columns: give one of them")
    if statistics and (points, wide, step) != (None, None, None):
        raise ValueError("statistics are of the whole time: points, wide and step cannot be used with them")
    if weighted and not statistics:
        raise ValueError("weighted is for statistics")
    given = {"points": points, "wide": wide, "step": step, "while": while_, "gap": gap}
    given["weighted"] = 1 if weighted else None
    for name, value in given.items():
        if value is not None:
            query.append((name, str(value)))
    return "statistics" if statistics else "data" if points is None else "trend", query


def table_of(answer: Any) -> "pa.Table":
    """The table of an open answer in Arrow. Raises ReadRefused when it ends before its end."""
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(answer).read_all()
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        # a partial answer is never returned as a complete one
        raise ReadRefused(0, f"the connection was lost during the answer: {error}") from error


def opened(
    path: str,
    parameters: Sequence[tuple[str, str]],
    server: str | None,
    password: str | None,
    certificate: str | Path | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Any:
    """The open answer to a request of the plain API, a POST with `body`. Raises ReadRefused (304 for an
    answer that If-None-Match names) and ValueError like `read`."""
    # a third of the start of commands that read nothing over HTTP
    import ssl
    import urllib.error
    import urllib.request

    url = server or os.environ.get(SERVER)
    if not url:
        raise ValueError(f"no server: give server=http://host:port or set {SERVER}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        # without a user and password
        raise ValueError(f"{url.rpartition('@')[2]!r} is not a server: write http://host:port")
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    request = urllib.request.Request(
        f"{where}/api/v1/{path}?{urlencode(parameters)}", body, {**(headers or {})}
    )
    if parts.username:
        secret = password or (unquote(parts.password) if parts.password else os.environ.get(_PASSWORD))
        if secret is None:
            raise ValueError(f"no password for {parts.username}: give password= or set {_PASSWORD}")
        shown = base64.b64encode(f"{unquote(parts.username)}:{secret}".encode()).decode()
        request.add_header("Authorization", f"Basic {shown}")
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if parts.scheme == "https":
        trusted = ssl.create_default_context(cafile=None if certificate is None else str(certificate))
        handlers.append(urllib.request.HTTPSHandler(context=trusted))
    try:
        return urllib.request.build_opener(*handlers).open(request, timeout=600)
    except urllib.error.HTTPError as error:
        if error.code == 401 and not parts.username:
            login = f"{parts.scheme}://NAME@{parts.netloc}, and its password in {_PASSWORD}"
            raise ReadRefused(401, f"{where} answers nobody without a login: give {login}") from None
        raise ReadRefused(error.code, _message(error)) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            remedy = (
                "copy its certificate (DIR/ringlog.crt of `ringlog cert DIR`) to this machine, and set "
                "SSL_CERT_FILE to the copy, or give certificate="
            )
            message = (
                f"{where}: its certificate is not trusted here ({error.reason.verify_message}): {remedy}"
            )
            raise ReadRefused(0, message) from None
        raise ReadRefused(0, f"{where} does not answer: {error.reason}") from None


def _message(error: "HTTPError") -> str:
    text = error.read(10_000).decode(errors="replace")
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text.strip() or error.reason


def _time(when: datetime | str) -> str:
    if isinstance(when, str):
        return when
    if when.tzinfo is None:
        raise ValueError(f"a time must have a zone: {when}")
    return when.astimezone(UTC).isoformat()
