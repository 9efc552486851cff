"""HALF's data: PVs at 10 Hz with value, severity and status, as batches of rows for each target."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np

from ringlog.clients.samples import Samples
from ringlog.schema.moments import microseconds
from ringlog_lab.half.published import HERTZ

PVS_OF_A_TABLE = 100
RING = 1000
SAMPLED = "half_samples"
"""The table of samples."""
MOST_HOURS = 96
"""Of data: the paper's four days."""


def facility(pvs: int) -> str:
    """Tables of 100 PVs, each with value, severity and status; nanoseconds of the row's time are kept."""
    text = ['timezone = "UTC"\n']
    for table in range(tables(pvs)):
        first = table * PVS_OF_A_TABLE
        columns = "".join(
            f'[[table.column]]\nname = "pv_{n}"\nsignal = "HALF:{first + n}"\ntype = "double"\n'
            f'[[table.column]]\nname = "severity_{n}"\nsignal = "HALF:{first + n}.SEVR"\ntype = "smallint"\n'
            f'[[table.column]]\nname = "status_{n}"\nsignal = "HALF:{first + n}.STAT"\ntype = "smallint"\n'
            for n in range(1, PVS_OF_A_TABLE + 1)
        )
        text.append(
            f'\n[[table]]\nname = "half_{table}"\nrows = {RING}\ncycle = {1 / HERTZ}\nsample = "monitor"\n'
            f"nanoseconds = true\nsummaries = []\n{columns}"
        )
    return "".join(text)


def sample_table(pvs: int) -> str:
    """One table of samples of as many other PVs, in addition to `facility`."""
    return (
        f'\n[[table]]\nname = "{SAMPLED}"\nkind = "samples"\ntype = "double"\nring = {RING}\nsummaries = []\n'
        f'[[table.signal]]\nname = "SAMPLED:{{n}}"\ncount = {tables(pvs) * PVS_OF_A_TABLE}\n'
    )


def tables(pvs: int) -> int:
    """The number of tables for this number of PVs."""
    return -(-pvs // PVS_OF_A_TABLE)


class Recording:
    """The values of one table's PVs, from one batch to the next."""

    def __init__(self, table: int, begin: datetime) -> None:
        self._table = table
        self._dice = np.random.default_rng(table)
        self._begin = begin
        self._rows = 0
        self._values = self._dice.uniform(-50, 50, PVS_OF_A_TABLE)

    def rows(self, count: int) -> Iterator[tuple[int, datetime, int, Sequence[float], Sequence[int]]]:
        """The next rows: place in the ring, time, nanoseconds below it, values, severities."""
        steps = self._dice.normal(0, 1e-3, (count, PVS_OF_A_TABLE)).cumsum(axis=0)
        values = np.round(self._values + steps, 6)
        self._values = values[-1]
        severities = (np.abs(values) > 49).astype(int)
        for row, severity in zip(values.tolist(), severities.tolist(), strict=True):
            moment = self._begin + timedelta(seconds=self._rows / HERTZ)
            yield 1 + self._rows % RING, moment, self._rows % 1000, row, severity
            self._rows += 1

    def batch(self, count: int) -> str:
        """The next rows in the form of ringlog's put_<table>_batch."""
        found = []
        for seq_no, moment, nanoseconds, values, severities in self.rows(count):
            one: dict[str, object] = {
                "seq_no": seq_no,
                "time": moment.isoformat(),
                "nanoseconds": nanoseconds,
            }
            for number, (value, severity) in enumerate(zip(values, severities, strict=True), start=1):
                one[f"pv_{number}"] = value
                one[f"severity_{number}"] = severity
                one[f"status_{number}"] = 3 * severity
            found.append(one)
        return json.dumps(found, separators=(",", ":"))

    def samples(self, count: int, numbers: Sequence[int]) -> Samples:
        """The next rows as samples of signals with these numbers."""
        found = Samples()
        for _, moment, nanoseconds, values, severities in self.rows(count):
            time = 1000 * microseconds(moment) + nanoseconds
            for number, value, severity in zip(numbers, values, severities, strict=True):
                found.add(number, time, value, severity, 3 * severity)
        return found

    def lines(self, count: int) -> bytes:
        """The next rows in the form of PostgreSQL's COPY, a line per item: PV, time, nanoseconds, value,
        severity, status."""
        first = self._table * PVS_OF_A_TABLE
        text = []
        for _, moment, nanoseconds, values, severities in self.rows(count):
            time = moment.isoformat()
            for number, (value, severity) in enumerate(zip(values, severities, strict=True), start=1):
                text.append(f"{first + number}\t{time}\t{nanoseconds}\t{value}\t{severity}\t{3 * severity}\n")
        return "".join(text).encode()

    def protocol(self, count: int) -> list[str]:
        """The next rows as InfluxDB's line protocol, a line an item, in nanoseconds since 1970."""
        first = self._table * PVS_OF_A_TABLE
        lines = []
        for _, moment, nanoseconds, values, severities in self.rows(count):
            time = 1000 * microseconds(moment) + nanoseconds
            for number, (value, severity) in enumerate(zip(values, severities, strict=True), start=1):
                status = f"severity={severity}i,status={3 * severity}i"
                lines.append(f"half,pv={first + number} value={value},{status} {time}")
        return lines


@cache
def midnight() -> datetime:
    """The beginning of the data, the same for the whole run: its days end with today's first
    moment."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(hours=MOST_HOURS)
