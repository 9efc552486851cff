"""Times as Python has them, where the driver has no type for them."""

from datetime import datetime, timedelta
from typing import Any

_YEAR_0 = timedelta(days=366)


def moment(value: Any) -> Any:
    """A time as Python has it; pymssql gives a bigdatetime of TDS 5.0 as its eight bytes.

    They are microseconds since the first day of the year 0 (SAP ASE, Reference Manual: bigdatetime).
    """
    if isinstance(value, bytes) and len(value) == 8:
        return datetime(1, 1, 1) + timedelta(microseconds=int.from_bytes(value, "little")) - _YEAR_0
    return value
