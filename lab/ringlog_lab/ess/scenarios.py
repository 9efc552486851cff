"""The 48 scenarios of papers/003, table 1, and the tables with their waveforms as columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

SIZES = {"int": 4, "double": 8}
"""Bytes of a point."""
_COUNTS, _POINTS, _RATES = (1, 100, 1_000, 10_000), (1_000, 10_000, 100_000), (1, 14)
_ROW = 4_000_000
"""Bytes of a row at most, unless one waveform has more."""
_COLUMNS = 100


@dataclass(frozen=True)
class Scenario:
    """Waveforms of one length and type: their number, and the updates of each a second."""

    name: str
    waveforms: int
    points: int
    type: str
    rate: int
    """Hz"""

    @property
    def frame(self) -> int:
        """Bytes of a waveform."""
        return self.points * SIZES[self.type]

    @property
    def frames(self) -> int:
        """Frames a second of all waveforms."""
        return self.waveforms * self.rate

    @property
    def megabytes(self) -> float:
        """Asked for in a second."""
        return self.frames * self.frame / 1e6

    @property
    def group(self) -> tuple[int, str]:
        """Scenarios of one group share a server."""
        return self.points, self.type

    @property
    def columns(self) -> int:
        """Waveforms in a table."""
        return 1 if self.waveforms == 1 else max(1, min(_COLUMNS, _ROW // self.frame))

    @property
    def tables(self) -> Sequence[str]:
        prefix = "one" if self.waveforms == 1 else "some"
        return [f"{prefix}_{number}" for number in range(-(-self.waveforms // self.columns))]

    def column_names(self, table: str) -> list[str]:
        """Columns of a table that have waveforms: all but in the last."""
        first = int(table.rpartition("_")[2]) * self.columns
        return [f"wave_{n}" for n in range(1, min(self.columns, self.waveforms - first) + 1)]

    def signals(self, table: str) -> list[str]:
        """Their names at an IOC."""
        return [f"ESS:{table}:{name}" for name in self.column_names(table)]


def _scenarios() -> Iterator[Scenario]:
    for block, count in enumerate(_COUNTS):
        each = product(_POINTS, SIZES, _RATES)
        for number, (points, kind, rate) in enumerate(each, start=1):
            yield Scenario(f"AAPS-{200 * block + 10 * number:04}", count, points, kind, rate)


SCENARIOS = {one.name: one for one in _scenarios()}


def facility(scenarios: Sequence[Scenario]) -> str:
    """The facility file of scenarios of one group: one table a row of waveforms, rings as small as can be."""
    written: dict[str, str] = {}
    for one in scenarios:
        for table in one.tables:
            written[table] = (
                f'\n[[table]]\nname = "{table}"\nrows = 2\ncycle = {1 / _RATES[-1]}\n'
                'sample = "monitor"\nsummaries = []\n'
                f'[[table.column]]\nname = "wave_{{n}}"\ncount = {one.columns}\n'
                f'signal = "ESS:{table}:wave_{{n}}"\ntype = "{one.type}[]"\npoints = {one.points}\n'
            )
    return 'timezone = "UTC"\n' + "".join(written.values())
