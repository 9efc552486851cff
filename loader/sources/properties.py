"""Properties of a signal that sources send, as columns of ringlog.signal."""

import json
import math
from collections.abc import Sequence
from typing import Any

_MOST_DECIMALS = 324


def limit_properties(low: float, high: float, kind: str = "limit") -> dict[str, Any]:
    """Two limits, of kind `limit` or `alarm`; NaN and infinities are none, nor are two that are not in this
    order.

    Integers of PV Access have no NaN: IOCs send 0 for none.
    """
    known = [
        float(each) if math.isfinite(each) and (each or not isinstance(each, int)) else None
        for each in (low, high)
    ]
    if None not in known and not low < high:
        known = [None, None]
    return {f"{kind}_low": known[0], f"{kind}_high": known[1]}


def states_text(names: Sequence[str]) -> str | None:
    """The names of 0, 1, …; None: there are none."""
    states = {str(number): text for number, name in enumerate(names) if (text := shown(name))}
    return json.dumps(states, ensure_ascii=False) if states else None


def decimal_places(digits: int) -> int | None:
    """Digits behind the point; a number beyond a double's is None."""
    return digits if 0 <= digits <= _MOST_DECIMALS else None


def shown(text: str) -> str:
    """A text of a source up to its NUL, which PostgreSQL's texts do not have."""
    return text.partition("\0")[0]
