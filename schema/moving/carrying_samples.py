"""Copies a table of samples from one server to another, while more of them arrive: blocks and the registry.

Numbers of signals are the same on both. A block is known by its signal and time: no other of the signal ends
at the same time, and none are merged meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from ringlog.procedures import OF_A_SAMPLE_TABLE
from ringlog.schema.moving import moves
from ringlog.schema.moving.carrying import Carrier, Connection, names_of, staged


@dataclass(frozen=True)
class SampleCarrier(Carrier):
    """`ring` is the log itself: online.<table> is a view of it."""

    key = "signal"
    recording = "record_moved_block"

    to_first: bool = False
    """whether the target is the first server, which knows the names of signals by the switch"""

    def carry_ring(self, since: str | None) -> None:
        """Nothing: the ring is a view."""

    def missing_of_ring(self) -> int | None:
        return None

    def close(self) -> None:
        """Refuses changes of its signals too."""
        super().close()
        self.source.execute(moves.closing_signals(self.table))

    def let_read(self, first: Connection) -> None:
        """Nothing: its views have their rights from the beginning."""

    def lock(self) -> None:
        """Keeps changes of signals out too."""
        # with less, a report of a writer that waits here would have the other lock
        self.source.execute("lock table ringlog.sample_signal in share row exclusive mode")
        super().lock()

    def hand_over(self) -> None:
        super().hand_over()
        for name in ("sample_table", "sample_signal", "sample_mark", "last_archived", "dropped_sample"):
            self._replace_own(name)
        if not self.to_first:
            self._replace_own("signal")
        self._replace_own(
            "signal_state", "number in (select number from ringlog.sample_signal where table_name = {})"
        )
        # numbered anew among the changes there
        self._replace_own("signal_change", without="number")

    def _add_to_log(self, columns: Sequence[str]) -> None:
        self.target.execute(
            sql.SQL(
                "insert into {log} ({columns}) select {columns} from {staged} as came"
                " where not exists (select from {log} as there"
                ' where there.signal = came.signal and there."time" = came."time")'
            ).format(log=self.log, columns=names_of(columns), staged=staged(self.log))
        )

    def carry_late_rows(self) -> None:
        """Blocks that came to the source after the switch, in a transaction of the source in which none come.
        Their samples are put on the target, where those of them that were sent again are."""
        keys = self.source.execute(
            'delete from ringlog.moved_row where table_name = %s returning "time", seq_no', [self.table]
        ).fetchall()
        if not keys:
            return
        columns = self._columns(self.log)
        put = sql.Identifier("ringlog", OF_A_SAMPLE_TABLE["put_batch"].format(self.table))
        if "points" in columns:
            lengths = ", null, null, array[cardinality(points)]"
            values = sql.SQL("coalesce(points, '{}'), severities, statuses" + lengths)
        else:
            values = sql.SQL("samples, severities, statuses")
        with self.target.transaction():
            self._stage(self._logged(columns, keys), self.log, columns)
            self.target.execute(
                sql.SQL("select {}(array_fill(signal, array[n]), times, {}) from {}").format(
                    put, values, staged(self.log)
                )
            )
        times, numbers = zip(*keys, strict=True)
        self.source.execute(
            sql.SQL(
                "delete from {} using unnest(%s::timestamptz[], %s::integer[]) as key (at, number)"
                ' where "time" = key.at and signal = key.number'
            ).format(self.log),
            [[*times], [*numbers]],
        )
