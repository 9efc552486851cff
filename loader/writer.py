"""The writer of one table: asks where to continue, then sends each row until it is acknowledged."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from ringlog.clients import Address, Refused, output
from ringlog.loader.leash import Leash
from ringlog.loader.line import Line
from ringlog.loader.receipts import Receipts
from ringlog.loader.sources import Source, SourceError
from ringlog.loader.statistics import Statistics
from ringlog.loader.supervisor import Failed
from ringlog.schema.facility import Table


@dataclass(frozen=True)
class Writer:
    """What one writer process needs to know.

    A row that got no answer is sent again with the same seq_no and time until it does: the procedures store
    it once. A row that the server refuses for its content is counted and left; its seq_no goes to the next.
    """

    table: Table
    zone: ZoneInfo
    address: Address
    password: str
    source: Source
    receipts: Path | None = None

    def run(self, statistics: Statistics, leash: Leash) -> None:
        """Writes until the source ends or the leash is released."""
        line = Line(self.address, self.password, statistics, leash)
        receipts = Receipts(self.receipts) if self.receipts else None
        put = f"put_{self.table.name}"
        # By name: the ring's columns are in another order when the facility file gained some.
        names = [column.name for column in self.table.columns]
        last, after = self._last(line)
        try:
            for row in self.source.rows(self.table, after, leash.wait, statistics):
                seq_no = last % self.table.rows + 1
                statistics.sent += 1
                begun = time.perf_counter()
                try:
                    readings = dict(zip(names, row.values, strict=True))
                    line.call(put, seq_no=seq_no, time=row.time, **readings)
                except (Refused, ValueError) as error:
                    statistics.refused += 1
                    statistics.message = f"row of {row.time.isoformat()} refused: {error}"
                else:
                    statistics.answered(time.perf_counter() - begun)
                    statistics.seq_no = last = seq_no
                    if receipts:
                        receipts.add(seq_no, row.time)
                statistics.count_cpu()
        except SourceError as error:
            raise Failed(str(error)) from error

    def _last(self, line: Line) -> tuple[int, datetime | None]:
        # As text the time comes exactly; the driver's own datetime parameter counts 1/300 s.
        seq_no, moment = line.call(f"last_{self.table.name}", output(int), output(str)).outputs
        if seq_no is None or moment is None:
            return 0, None
        # A time of the hour that is twice, when clocks go back, is taken for the earlier one: a recording's
        # row may then be stored twice, but none is left out.
        return int(str(seq_no)), datetime.fromisoformat(str(moment)).replace(tzinfo=self.zone).astimezone(UTC)
