"""Times as whole microseconds since 1970."""

from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
HOUR = 3_600_000_000
"""In microseconds."""


def microseconds(moment: datetime) -> int:
    """A time with its zone, in microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def in_utc(value: Any) -> Any:
    """A time in UTC; any other value unchanged."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def moment_of(time: int) -> datetime:
    """The time, in UTC, of microseconds since 1970."""
    return EPOCH + time * MICROSECOND
