"""The writer process of one table: takes rows from a source, and has them sent."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

from ringlog.clients import Address
from ringlog.clients.line import Failed
from ringlog.clients.spool import GiB, microseconds
from ringlog.clients.writer import Writer as SpoolingWriter
from ringlog.loader.gaps import Gaps
from ringlog.loader.leash import Leash
from ringlog.loader.orders import Orders
from ringlog.loader.receipts import Receipts
from ringlog.loader.sampling import Filter
from ringlog.loader.sources import Changed, Source, SourceError
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table

# Seconds between two looks at a server that a recording waits for.
_LOOK = 0.05
# Rows that an unhindered source may be ahead of the server.
_AHEAD = 1000


@dataclass(frozen=True)
class Writer:
    """What one writer process needs to know. `spool` is the folder of spools, `budget` bytes a table."""

    table: Table
    zone: ZoneInfo
    address: Address
    password: str
    source: Source
    spool: Path
    budget: int = GiB
    receipts: Path | None = None
    take_over: bool = False
    orders: Orders = field(default_factory=Orders)

    def run(self, statistics: Statistics, leash: Leash) -> None:
        """Writes until the source ends and the server has its rows, or the leash is released."""
        receipts = Receipts(self.receipts) if self.receipts else None
        writer = SpoolingWriter(
            self.table,
            self.zone,
            self.address,
            self.password,
            self.spool,
            budget=self.budget,
            # once: when it is started again and somebody else has taken the table, that was on purpose
            take_over=self.take_over and not statistics.restarts,
            figures=statistics,
            acknowledged=receipts.add if receipts else None,
            ended=leash.cut,
        )
        try:
            self._write(writer, statistics, leash)
            while writer.waiting:
                leash.sleep(_LOOK)
        except SourceError as error:
            raise Failed(str(error)) from error
        finally:
            writer.close()
            if writer.error:
                raise writer.error

    def _write(self, writer: SpoolingWriter, statistics: Statistics, leash: Leash) -> None:
        while self.source.recorded and not writer.began:
            leash.sleep(_LOOK)
        before = None if writer.latest is None else microseconds(writer.latest)
        table = self.table
        gaps = Gaps(_longest_distance(table), not self.source.recorded, before, writer.note)
        kept = Filter(table)
        current = [table]

        def wait(moment: int) -> None:
            while leash.sleep((moment - time.time_ns() // 1000) / 1e6, self.orders.fileno()):
                if policy := self.orders.take():
                    current[0] = policy.applied(table)
                    if not self.source.recorded:
                        raise Changed(current[0])

        for row in self.source.rows(table, writer.latest, wait, statistics, writer.note):
            if current[0] is not table:
                table = current[0]
                kept.adopt(table)
                gaps.expect(_longest_distance(table))
            if not kept.takes(row):
                continue
            gaps.see(microseconds(row.time))
            writer.take(microseconds(row.time), row.values)
            statistics.sent += 1
            statistics.count_cpu()
            while self.source.unhindered and writer.waiting > _AHEAD:
                leash.sleep(_LOOK)


def _longest_distance(table: Table) -> float | None:
    """Seconds from row to row at most; None where only changes give rows."""
    sample = table.sample
    if sample.max_period is not None:
        return max(sample.max_period, table.cycle)
    if sample.mode == "monitor" or any(column.deadband for column in table.columns):
        return None
    return table.cycle
