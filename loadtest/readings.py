"""The rows that a load's writers send: a few sets of readings for each table, made before the load begins.

Making readings during the load would cost the writers more than sending them. The set of a row follows from
the row's time, so that the check knows the expected values.
"""

from collections.abc import Mapping, Sequence

from ringlog.loader.sources import Reading
from ringlog.loader.sources.simulator import Simulator
from ringlog.schema.facility import Table

SETS = 8
# Seconds of the simulated machine between two sets, from 2000-01-01 on.
_APART = 7
_EPOCH = 946_684_800


def readings(table: Table) -> Sequence[Mapping[str, Reading]]:
    """The sets of readings of a table, by the columns' names; the same on every machine."""
    simulator = Simulator()
    signals = simulator.signals(table)
    names = [column.name for column in table.columns]
    rows = (simulator.row(table, signals, (_EPOCH + number * _APART) * 1_000_000) for number in range(SETS))
    return [dict(zip(names, row.values, strict=True)) for row in rows]


def chosen(time: int) -> int:
    """The index of the set for a row's time (in microseconds since 1970)."""
    return time % SETS
