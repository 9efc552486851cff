"""Parses the times in requests."""

import re
from datetime import UTC, datetime, timedelta

from ringlog.retrieval.serving.refused import Refused

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)

_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,](\d{1,9}))?)?(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_RELATIVE = re.compile(r"(now)?(?:-(\d{1,9}(?:\.\d{1,6})?)(s|min|m|h|d|w|y))?", re.ASCII)
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}


def instant(text: str, now: datetime, name: str) -> datetime:
    """Parses an instant: ISO 8601 (UTC without an offset), seconds since 1970, or `now`, `-90m`, `now-7d`.

    Digits below a microsecond are cut. `name` is the parameter's name. Raises Refused (400).
    """
    given = text.strip()
    # an unencoded plus sign of an offset arrives as a blank
    given = re.sub(r" (\d{2}:?\d{2})$", r"+\1", given) if "T" in given else given
    found: datetime | None = None
    try:
        if iso := _ISO.fullmatch(given):
            day, clock, fraction, zone = iso.groups()
            whole = f"{day}T{clock or '00:00:00'}{(zone or 'Z').replace('Z', '+00:00')}"
            found = datetime.fromisoformat(whole) + timedelta(microseconds=int(f"{fraction or 0:0<6}"[:6]))
        elif given and (relative := _RELATIVE.fullmatch(given)):
            _, amount, unit = relative.groups()
            found = now - (float(amount) * _UNITS[unit] if amount else timedelta())
        elif re.fullmatch(r"\d{1,11}(\.\d{1,9})?", given, re.ASCII):
            seconds, _, fraction = given.partition(".")
            found = datetime.fromtimestamp(int(seconds), UTC) + timedelta(
                microseconds=int(f"{fraction or 0:0<6}"[:6])
            )
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise Refused(
            400,
            f"{name}={text[:60]!r} is not a time: write 2026-11-20T14:00:00Z, seconds since 1970, or as "
            "now-90m (s, m, h, d, w, y)",
        )
    found = found.astimezone(UTC)
    if not EARLIEST <= found <= LATEST:
        raise Refused(400, f"{name}={text[:60]!r} is outside the years 1970 to 2261")
    return found


def duration(text: str, name: str) -> int:
    """Microseconds of a time span: seconds, or as 500ms, 10s, 5m, 1h, 1d. Raises Refused (400)."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|min|m|h|d|w)?", text.strip(), re.ASCII)
    unit = timedelta(milliseconds=1) if found and found[2] == "ms" else _UNITS[(found and found[2]) or "s"]
    length = 0 if found is None else round(float(found[1]) * (unit / timedelta(microseconds=1)))
    if length < 1:
        raise Refused(400, f"{name}={text[:40]!r} is not a time span: write 0.5, 10s, 5m or 1h")
    return length


def span(
    start: str | None, end: str | None, now: datetime, *, default: timedelta = timedelta(days=1)
) -> tuple[datetime, datetime]:
    """The interval of `from` and `to`; defaults are this duration and now. Raises Refused."""
    until = instant(end, now, "to") if end else now
    since = until - default if not start else instant(start, now, "from")
    if since > until:
        raise Refused(400, f"from ({since.isoformat()}) is after to ({until.isoformat()})")
    return since, until
