"""The reader of one table: asks for its latest row as often as one is written."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ringlog.clients import Address, Refused
from ringlog.clients.line import Line
from ringlog.clients.procedure import Argument
from ringlog.loader.leash import Leash
from ringlog.loader.schedule import Schedule, now
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table

# Every tenth call asks for the history of the last ten cycles instead.
_HISTORY = 10


@dataclass(frozen=True)
class Reader:
    """What one reader process needs to know."""

    table: Table
    address: Address
    password: str

    def run(self, statistics: Statistics, leash: Leash) -> None:
        """Reads until the leash is released."""
        line = Line(self.address, self.password, statistics, leash.sleep)
        line.connect()
        schedule = Schedule.of(f"read {self.table.name}", self.table.cycle)
        due = schedule.after(now())
        while True:
            leash.wait(due)
            procedure, arguments = question(self.table, statistics.sent)
            statistics.sent += 1
            begun = time.perf_counter()
            try:
                answer = line.call(procedure, *arguments)
            except Refused as error:
                statistics.refused += 1
                statistics.message = str(error)
            else:
                statistics.answered(time.perf_counter() - begun)
                statistics.rows += len(answer.rows)
            statistics.count_cpu()
            previous, due = due, schedule.after(now(), due)
            statistics.missed += schedule.missed(previous, due)


def question(table: Table, number: int) -> tuple[str, tuple[Argument, ...]]:
    """The procedure and arguments of a reader's call: the latest row, or each tenth time the log's last."""
    if number % _HISTORY != _HISTORY - 1:
        return f"get_{table.name}", (1,)
    end = datetime.now(UTC)
    begin = end - _HISTORY * timedelta(seconds=table.cycle)
    return f"get_{table.name}_range", (begin, end, _HISTORY)
