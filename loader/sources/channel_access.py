"""EPICS Channel Access for tables of samples: monitors by native code, whose events are taken together."""

import time
from collections.abc import Sequence
from typing import Any

from ringlog.gateway import _core
from ringlog.loader.sources import Describe, Event, Receive, SourceError, Wanted
from ringlog.loader.sources.properties import decimal_places, limit_properties, states_text
from ringlog.schema.column_type import ColumnType

# Fields of records, and the properties that they become.
_FIELDS = {"RTYP": "record_type", "DESC": "description", "EGU": "unit"}


def monitors() -> _core.ChannelAccess:
    """Monitors for this thread. Raises SourceError."""
    # its library starts threads: only a writer's own process may load it
    from epicscorelibs.path import get_lib

    try:
        return _core.ChannelAccess(get_lib("ca"))
    except OSError as error:
        raise SourceError(f"EPICS's libca: {error}") from None


class ChannelAccess:
    """Monitors for a table of samples. It is used by the thread that made it."""

    def __init__(self, kind: ColumnType, deadband: str, receive: Receive, describe: Describe) -> None:
        self._kind, self._deadband, self._receive, self._describe = kind, deadband, receive, describe
        self._monitors = monitors()

    def add(self, wanted: Sequence[Wanted]) -> None:
        for each in wanted:
            self._monitors.add(
                each.number,
                each.address,
                is_text=self._kind.is_text,
                is_array=self._kind.is_array,
                is_log=(each.deadband or self._deadband) == "ADEL",
                has_properties=True,
            )
        self._monitors.flush()

    def remove(self, number: int) -> None:
        self._monitors.remove(number)

    def wait(self, seconds: float) -> None:
        self._monitors.read_fields()
        time.sleep(seconds)
        events, properties = self._monitors.events(0.0)
        for number, moment, value, *alarm in events:
            if self._kind.is_array and isinstance(value, int | float):
                # Channel Access does not distinguish a number from an array of one
                value = [value]
            self._receive(Event(number, moment, value, *alarm))
        for number, kind, content in properties:
            self._describe(number, _property(kind, content))

    def close(self) -> None:
        self._monitors.end()


def _property(kind: str, content: Any) -> dict[str, Any]:
    """Columns of ringlog.signal."""
    if kind == "states":
        return {"states": states_text(content)}
    if kind != "numbers":
        return {_FIELDS[kind]: content}
    decimals, unit, (low, high, lolo, hihi) = content
    described = {"decimals": decimal_places(decimals)}
    described |= limit_properties(low, high) | limit_properties(lolo, hihi, "alarm")
    return described if unit is None else described | {"unit": unit}
