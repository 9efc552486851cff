"""The content of the appliance's answers: events with a time and a value, in blocks."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringlog.history.signals import Location
from ringlog.retrieval.samples import Samples
from ringlog.schema.column_type import ColumnType, Kind

# EPICS Base, alarm.h
INVALID = 3
UDF = 17
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Events:
    """Some events, oldest first, of one kind.

    The values of waveforms are lists. Null means no reading; answers show it as an undefined value with
    severity INVALID and status UDF. NaN is a value with its recorded severity.
    """

    kind: ColumnType
    unit: str
    nanoseconds: NDArray[np.int64]
    """since 1970-01-01 UTC"""
    values: pa.Array
    fields: dict[str, pa.Array] = field(default_factory=dict)
    """further values of each event, as text, by name"""
    severity: NDArray[np.int64] | None = None
    """of alarms; None: no alarm"""
    status: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.nanoseconds)

    @property
    def seconds(self) -> NDArray[np.int64]:
        return self.nanoseconds // 1_000_000_000

    @property
    def nanos(self) -> NDArray[np.int64]:
        return self.nanoseconds - self.seconds * 1_000_000_000

    @property
    def invalid(self) -> NDArray[np.bool_]:
        """A mask of the events without a reading."""
        return np.asarray(self.values.is_null().to_numpy(zero_copy_only=False), bool)

    @property
    def alarms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Severity and status of each event; None where no event has any."""
        if self.severity is None and self.status is None and not self.values.null_count:
            return None
        invalid = self.invalid
        severity, status = (
            np.zeros(len(self), np.int64) if given is None else np.clip(given, 0, _MOST)
            for given in (self.severity, self.status)
        )
        return np.where(invalid, INVALID, severity), np.where(invalid & (status == 0), UDF, status)

    def slice(self, start: int, end: int) -> "Events":
        return Events(
            self.kind,
            self.unit,
            self.nanoseconds[start:end],
            self.values.slice(start, end - start),
            {name: values.slice(start, end - start) for name, values in self.fields.items()},
            None if self.severity is None else self.severity[start:end],
            None if self.status is None else self.status[start:end],
        )


def of_samples(part: Samples) -> Events:
    return Events(
        part.location.type,
        part.location.unit,
        part.nanoseconds,
        part.values,
        severity=part.severity,
        status=part.status,
    )


def doubles(
    location: Location,
    nanoseconds: NDArray[np.int64],
    values: NDArray[np.float64],
    missing: NDArray[np.bool_] | None = None,
) -> Events:
    """Events of numbers; where `missing`, NaN is no reading."""
    numbers = pa.array(values, pa.float64(), mask=None if missing is None else missing & np.isnan(values))
    return Events(ColumnType(Kind.DOUBLE), location.unit, nanoseconds, numbers)


def vectors(location: Location, nanoseconds: NDArray[np.int64], columns: list[NDArray[np.float64]]) -> Events:
    """Events of several numbers each."""
    flat = pa.array(np.column_stack(columns).ravel(), pa.float64())
    offsets = pa.array(np.arange(0, len(flat) + 1, len(columns)), pa.int32())
    kind = ColumnType(Kind.DOUBLE, is_array=True)
    return Events(kind, location.unit, nanoseconds, pa.ListArray.from_arrays(offsets, flat))
