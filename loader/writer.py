"""The writer process of one table: takes rows from a source, and sends them."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

from ringlog.clients import Address
from ringlog.clients.figures import State
from ringlog.clients.reconnecting import Failed
from ringlog.clients.spool.stored import GiB
from ringlog.clients.writer import Writer
from ringlog.loader.ack_log import AckLog
from ringlog.loader.control.policy_channel import Policy, PolicyChannel
from ringlog.loader.control.stop_signal import StopSignal
from ringlog.loader.gaps import Gaps
from ringlog.loader.sampling import Filter
from ringlog.loader.sources import Changed, Source, SourceError
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table
from ringlog.schema.how_taken import longest_distance
from ringlog.schema.moments import microseconds

# Seconds between two checks of a server for which a recording waits.
_LOOK = 0.05
# Rows by which an unlimited source may be ahead of the server.
_AHEAD = 1000


@dataclass(frozen=True)
class WriterProcess:
    """The parameters of a writer process. `spool` is the folder of spools, `budget` bytes a table."""

    table: Table
    zone: ZoneInfo
    address: Address
    password: str
    source: Source
    spool: Path
    budget: int = GiB
    acknowledgements: Path | None = None
    take_over: bool = False
    policies: PolicyChannel[Policy] = field(default_factory=PolicyChannel)

    def run(self, statistics: Statistics, stop: StopSignal) -> None:
        """Writes until the source ends and the server has its rows, or the stop is released."""
        refused = statistics.state == State.REFUSED
        acknowledgements = AckLog(self.acknowledgements) if self.acknowledgements else None
        writer = Writer(
            self.table,
            self.zone,
            self.address,
            self.password,
            self.spool,
            budget=self.budget,
            # only at the first start: if another writer has the table at a restart, it has taken it over on
            # purpose
            take_over=self.take_over and not statistics.restarts,
            figures=statistics,
            acknowledged=acknowledgements.add if acknowledgements else None,
            ended=stop.set_here,
        )
        try:
            # another process may still write the rows of this source
            while refused and not writer.began:
                stop.sleep(_LOOK)
            self._write(writer, statistics, stop)
            while writer.waiting:
                stop.sleep(_LOOK)
        except SourceError as error:
            raise Failed(str(error)) from error
        finally:
            writer.close()
            if writer.error:
                raise writer.error

    def _write(self, writer: Writer, statistics: Statistics, stop: StopSignal) -> None:
        while self.source.recorded and not writer.began:
            stop.sleep(_LOOK)
        before = None if writer.latest is None else microseconds(writer.latest)
        table = self.table
        gaps = Gaps(longest_distance(table), not self.source.recorded, before, writer.note)
        kept = Filter(table)
        current = [table]

        def wait(seconds: float) -> None:
            end = time.monotonic() + seconds
            while stop.sleep(end - time.monotonic(), self.policies.fileno()):
                if policy := self.policies.take():
                    current[0] = policy.applied(table)
                    if not self.source.recorded:
                        raise Changed(current[0])

        for rows in self.source.rows(table, writer.latest, wait, statistics, writer.note):
            if current[0] is not table:
                table = current[0]
                kept.adopt(table)
                gaps.expect(longest_distance(table))
            if wanted := [row for row in rows if kept.takes(row)]:
                for row in wanted:
                    gaps.see(row.time)
                writer.take(wanted)
                statistics.sent += len(wanted)
            statistics.count_cpu()
            while self.source.unhindered and writer.waiting > _AHEAD:
                stop.sleep(_LOOK)
