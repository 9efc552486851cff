"""The reader of one table: requests its latest row as often as one is written."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ringlog.clients import Address, Refused
from ringlog.clients.procedure import Argument
from ringlog.clients.reconnecting import ReconnectingConnection
from ringlog.loader.control.stop_signal import StopSignal
from ringlog.loader.schedule import Schedule
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table

# Every tenth call requests the history of the last ten cycles instead.
_HISTORY = 10
# And every twentieth for a parameter table.
_PARAMETERS = 20


@dataclass(frozen=True)
class Reader:
    """The settings of a reader process."""

    table: Table
    address: Address
    password: str
    parameters: tuple[str, ...] = ()
    """the parameter tables that it reads"""

    def run(self, statistics: Statistics, stop: StopSignal) -> None:
        """Reads until the stop is released."""
        connection = ReconnectingConnection(self.address, self.password, statistics, stop.sleep)
        connection.connect()
        schedule = Schedule.of(f"read {self.table.name}", self.table.cycle)
        for _ in schedule.instants(stop.sleep, statistics):
            procedure, arguments = question(self.table, statistics.sent, self.parameters)
            statistics.sent += 1
            begun = time.perf_counter()
            try:
                answer = connection.call(procedure, *arguments)
            except Refused as error:
                statistics.refused += 1
                statistics.message = str(error)
            else:
                statistics.answered(time.perf_counter() - begun)
                statistics.rows += len(answer.rows)
            statistics.count_cpu()


def question(table: Table, number: int, parameters: Sequence[str]) -> tuple[str, tuple[Argument, ...]]:
    """The procedure and arguments of a reader's call: the latest row, each tenth time the log's last, each
    twentieth a parameter table, one after the other."""
    turn, rest = divmod(number, _PARAMETERS)
    if parameters and rest == _PARAMETERS // 4:
        return f"get_{parameters[turn % len(parameters)]}", ()
    if number % _HISTORY != _HISTORY - 1:
        return f"get_{table.name}", (1,)
    end = datetime.now(UTC)
    begin = end - _HISTORY * timedelta(seconds=table.cycle)
    return f"get_{table.name}_range", (begin, end, _HISTORY)
