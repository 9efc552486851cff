"""The queue on disk between a source and the server: one SQLite file per table.

A row that `put` has taken survives kill -9 and a power failure, and stays until the server has acknowledged
it. Its seq_no is assigned by `put`: however late and however often it is sent, the server recognizes it. The
file also holds the writer's records, written in the same transactions: numbers of rows by the hour
(`ledger`), events (`event`), and rows that the server refused for their content (`refused`).

Each row has a checksum: a row with damaged bytes is moved to `refused`. A damaged file is renamed, and the
spool continues in a new one with all readable rows. Both are events (`damaged`), and the ledger counts lost
rows as thinned.

When the budget or the disk is full, the older half of the rows is thinned from its oldest row on: one row in
2 is kept, then one in 4, 8 and so on, as the time that it covers grows. So the newest rows are complete, and
the others cover the whole outage evenly. The ledger counts the rows that were dropped.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ringlog.clients.readings import Content, Reading, restored
from ringlog.clients.spool.books import Event, Hour, Shares
from ringlog.clients.spool.damage import Row
from ringlog.clients.spool.stored import Stored, locked

# Maximum number of acknowledged rows before they are removed.
_TOGETHER = 256


class Spooled(NamedTuple):
    """A row on its way: `id` counts the rows put, `time` is in microseconds since 1970, `seq_no` is None
    until the server's position is known."""

    id: int
    time: int
    seq_no: int | None
    content: Content

    @property
    def readings(self) -> tuple[Reading, ...]:
        return restored(self.content)


class Spool(Stored):
    """A table's queue, for one process, which may use it from several threads.

    `rows` is the size of the ring, `columns` are the names of the data columns, `budget` is in bytes. Raises
    SpoolError if another process has it, it belongs to another table, or it has rows of removed columns.
    `shares` returns the ledger's counts for a row's time and content.
    """

    # --- the source's side ---

    def put(self, rows: Sequence[tuple[int, Content]]) -> None:
        """Stores rows durably, in one transaction: their times in microseconds since 1970, and contents. It
        never waits for the server. On a full disk it makes room, and if that fails keeps some rows in
        memory."""
        size = 0
        for _, content in rows:
            # a text has no surrogates, which cannot be stored
            size += len(content.encode() if isinstance(content, str) else content)
        with self._lock:
            self._held += [(time, content, self._shares(time, content)) for time, content in rows]
            self._store(size)

    @locked
    def _store(self, more: int) -> None:
        if self._held and self._room.is_full(more):
            self._thin()
        while self._held and not self._take_in():
            if not self._thin():
                self._give_up()
                break

    @locked
    def note(
        self, kind: str, time: int, message: str, until: int | None = None, rows: int | None = None
    ) -> None:
        """Keeps an event, to be sent to the server."""
        self._commit(lambda: self._books.note(kind, time, message, until, rows))

    @locked
    def begin(self, seq_no: int, time: int | None) -> None:
        """Takes the server's latest row: 0 and None for an empty ring.

        A new spool's rows are numbered now. Another one continues after the server's number if that row is
        later than its own, because another writer has written meanwhile.
        """
        later = time is not None and (self.time is None or time > self.time)
        if self.seq_no is not None and not later:
            return
        state = self._state

        def number() -> None:
            nonlocal state
            last = seq_no
            for (row,) in self._sql("select id from row where seq_no is null order by id").fetchall():
                last = last % self._rows + 1
                self._number(row, last)
            state = self._state._replace(seq_no=last, time=time if later else self.time)
            state.store(self._database)

        if self._commit(number):
            self._state = state

    # --- the sender's side ---

    def after(self, row: int, until: int | None = None) -> Spooled | None:
        """The first row put after that of the id `row` and up to that of the id `until`; it counts as in
        flight from now on, and is not thinned."""
        found = self.batch(row, self.newest if until is None else until, 1, 0)
        return found[0] if found else None

    @locked
    def batch(self, row: int, until: int, rows: int, size: int) -> list[Spooled]:
        """As `after`, the first rows in their order: at most `rows`, and one or as many as have `size`
        characters of readings."""
        found: list[Spooled] = []
        wrong: list[Row] = []
        waiting = self._sql(
            "select id, time, seq_no, readings, crc from row where id > ? and id <= ? order by id", row, until
        )
        for each in waiting:
            number, time, seq_no, content, _ = each
            if number in self._done:
                continue
            if not self._is_sound(each):
                wrong.append(each)
                continue
            size -= len(content)
            if found and (size < 0 or len(found) >= rows):
                break
            found.append(Spooled(number, time, seq_no, content))
            if len(found) >= rows:
                break
        waiting.close()
        if wrong:
            self._lay_aside(wrong)
        if found:
            self._in_flight = range(found[0].id, found[-1].id + 1)
        return found

    @locked
    def acknowledge(self, rows: Sequence[Spooled], late: bool = False, refused: Shares = ()) -> None:
        """The server has the rows: they are removed with the next put, or at `settle`. `late`: later rows
        arrived before. `refused` are the shares that the server will never take."""
        for row in rows:
            if row.id not in self._done:
                self._doubtful.discard(row.id)
                self._done[row.id] = self._shares(row.time, row.content), late, refused
                refused = ()
                self.depth -= 1
        if len(self._done) < _TOGETHER or not self._commit():
            self._keep_count()

    @locked
    def renumber(self, row: Spooled) -> Spooled:
        """Gives a row the next number of the ring: its own belongs to another row of this time."""
        other = row._replace(seq_no=(row.seq_no or 0) % self._rows + 1)
        return other if self._commit(lambda: self._number(other.id, other.seq_no)) else row

    @locked
    def refuse(self, row: Spooled, reason: str) -> None:
        """The server will never accept the row: it is moved to `refused`."""

        def lay_aside() -> None:
            self._sql(
                "insert into refused select id, time, seq_no, readings, ? from row where id = ?",
                reason,
                row.id,
            )
            self._sql("delete from row where id = ?", row.id)
            shares = self._shares(row.time, row.content)
            for moment, rows in shares:
                self._books.count(moment, refused=rows)
            self._books.note("refused", row.time, reason, None, sum(rows for _, rows in shares))

        if self._commit(lay_aside):
            self.depth -= 1
            self._keep_count()

    def repeat(self, unknown: bool = False) -> None:
        """Counts a call that is sent again. When it is `unknown` whether the server has the rows in flight,
        they are not thinned: stored rows would be counted as lost."""
        with self._lock:
            self._repeated += 1
            if unknown:
                self._doubtful.update(self._in_flight)

    @locked
    def settle(self) -> None:
        """Removes acknowledged rows now, instead of at the next put."""
        if self._held:
            self._take_in()
        elif self._done or self._repeated or self._given_up:
            self._commit()

    @property
    @locked
    def oldest(self) -> int | None:
        """The time of the row that waits longest."""
        waiting = self._sql("select id, time, seq_no, readings, crc from row order by id")
        return next((row[1] for row in waiting if row[0] not in self._done and self._is_sound(row)), None)

    # --- the ledger ---

    @locked
    def hours(self) -> list[Hour]:
        """Hours whose figures have changed since they were sent; at most a hundred, oldest first."""
        hours, damaged = self._books.hours()
        if damaged:
            self._commit(lambda: self._books.lay_aside_hours(damaged))
        return hours

    @locked
    def hour_reported(self, hour: Hour) -> None:
        """The server has these figures."""
        self._commit(lambda: self._books.hour_reported(hour))

    @locked
    def events(self) -> list[Event]:
        """Events that have not been sent, oldest first; at most EVENTS."""
        events, damaged = self._books.events()
        if damaged:
            self._commit(lambda: self._books.lay_aside_events(damaged))
        return events

    @locked
    def events_reported(self, last: Event) -> None:
        """The server has the events up to this one."""
        self._commit(lambda: self._books.events_reported(last))

    def close(self) -> None:
        """Stores the current state and closes the file."""
        self.settle()
        with self._lock:
            self._close()
            if self._count_file is not None:
                self._count_file.close()
