"""A table of samples in the plant: signals that are added and retired, samples, and each way to read them."""

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from plant.reads import Reads
from plant.sample_model import (
    DRIFT,
    EPOCH,
    MICROSECOND,
    NAME,
    TRACES,
    Sample,
    Signal,
    instant,
    nanoseconds_of,
)
from plant.site import Different
from plant.ways import Line, Reading, of_archive
from waiting import wait_until

NO_NUMBERS = (math.nan, math.inf, -math.inf)
ALWAYS = EPOCH, datetime.max.replace(tzinfo=UTC)


@dataclass
class Samples(Reads):
    """Operations and reads, by random choices."""

    signals: dict[str, Signal] = field(
        default_factory=lambda: {f"gauge:{number}": Signal() for number in (1, 2, 3)}
    )

    waves: dict[str, Signal] = field(
        default_factory=lambda: {f"trace:{number}": Signal() for number in (1, 2)}
    )

    former: dict[str, str] = field(default_factory=dict)
    """names of signals before they were renamed, and their names since"""

    # --- operations ---

    def _time(self, draw: random.Random, *, late: bool) -> int:
        """The time of a sample, in nanoseconds."""
        now = datetime.now(UTC)
        if late:
            moment = self.start + timedelta(seconds=draw.uniform(0, (now - self.start).total_seconds()))
            return nanoseconds_of(moment) + draw.choice([0, draw.randint(0, 999)])
        self.plant = min(self.plant + timedelta(seconds=draw.choice([0.01, 1, 60, 5000])), now)
        return nanoseconds_of(self.plant) + draw.randint(0, 999)

    def _sample(self, draw: random.Random) -> Sample:
        value = draw.choice(
            [None, 0.0, draw.uniform(-1e3, 1e3), draw.randint(0, 5) / 4, draw.uniform(0, 1e-9), *NO_NUMBERS]
        )
        # a value of None with 3 is the loss of its source
        alarm = draw.choice([(0, 0), (0, 0), (1, 3), (3, 17)])
        return value, *alarm

    def _send(self, samples: list[tuple[str, int, Sample]]) -> None:
        """Sends many at once, all or none; the model then contains them."""
        numbers = self._numbers()
        written = [each for each in samples if not self.signals[each[0]].is_retired]
        if not written:
            return
        names, times, of = zip(*written, strict=True)
        self.server.sql(
            f"select ringlog.put_{NAME}_batch(%s::integer[], %s::bigint[], %s::float8[],"
            " %s::smallint[], %s::smallint[])",
            [[numbers[name] for name in names], [*times], *map(list, zip(*of, strict=True))],
            login=self.server.writer,
        )
        for name, at, sample in written:
            if not self.signals[name].is_paused and instant(at) <= datetime.now(UTC) + DRIFT:
                self.signals[name].samples[at] = sample

    def _numbers(self) -> dict[str, int]:
        return dict(self.server.sql("select signal, number from ringlog.sample_signal"))

    def send_samples(self, draw: random.Random) -> None:
        """Samples of several signals, in order and late."""
        late = draw.random() < 0.3
        samples: dict[tuple[str, int], Sample] = {}
        for _ in range(draw.randint(1, 60)):
            name, at = draw.choice([*self.signals]), self._time(draw, late=late)
            if at not in self.signals[name].samples:
                samples[name, at] = self._sample(draw)
        self._send([(name, at, sample) for (name, at), sample in samples.items()])

    def send_one(self, draw: random.Random) -> None:
        """One sample by a call over TDS, which has microseconds and the nanoseconds below them."""
        name, at, sample = draw.choice([*self.signals]), self._time(draw, late=False), self._sample(draw)
        signal = self.signals[name]
        if signal.is_retired or at in signal.samples:
            return
        connection = wait_until(lambda: self._connected("7.4"))
        with connection, connection.cursor() as cursor:
            written = f"{instant(at):%Y-%m-%d %H:%M:%S.%f}+00:00"
            cursor.callproc(f"put_{NAME}", (name, written, *sample, at % 1000))
            while cursor.nextset():
                pass
        if not signal.is_paused:
            signal.samples[at] = sample

    def send_again(self, draw: random.Random) -> None:
        """Sends stored samples again, and twice in the same batch."""
        stored = [(name, at) for name, signal in self.signals.items() for at in signal.samples]
        chosen = draw.sample(stored, min(5, len(stored)))
        self._send([(name, at, self.signals[name].samples[at]) for name, at in chosen + chosen[:1]])

    def send_other(self, draw: random.Random) -> None:
        """Sends another sample for a time in PostgreSQL: nothing of the batch is stored."""
        weeks = self._weeks(NAME)
        stored = [
            (name, at)
            for name, signal in self.signals.items()
            if not signal.is_paused and not signal.is_retired
            for at in signal.samples
            if not any(begins <= instant(at) < ends for begins, ends, _ in weeks)
        ]
        if not stored:
            return
        name, at = draw.choice(stored)
        value, severity, status = self.signals[name].samples[at]
        try:
            self._send([(name, at - 1, (1.0, 0, 0)), (name, at, (value, severity, status + 1))])
        except psycopg.errors.UniqueViolation:
            return
        raise Different(f"another sample of {name} at {at} was accepted")

    def send_ahead(self, draw: random.Random) -> None:
        """Sends a sample further ahead than the clock's drift, which is not stored."""
        at = nanoseconds_of(datetime.now(UTC) + DRIFT + timedelta(hours=draw.randint(1, 50)))
        self._send([(draw.choice([*self.signals]), at, (1.0, 0, 0))])

    def change_signals(self, draw: random.Random) -> None:
        """Adds a signal, or pauses, resumes, renames, retires or restores another one."""
        names = [*self.signals]
        name = draw.choice(names)
        signal = self.signals[name]
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:

            def call(procedure: str, *arguments: str) -> None:
                given = ", ".join(["%s"] * len(arguments))
                connection.execute(f"select ringlog.{procedure}({given})".encode(), arguments)

            match draw.choice(["add", "pause", "rename", "retire"]):
                case "add" if len(names) < 8:
                    self._names += 1
                    call("add_signal", NAME, f"extra:{self._names}")
                    self.signals[f"extra:{self._names}"] = Signal()
                case "pause" if not signal.is_retired:
                    call("resume_signal" if signal.is_paused else "pause_signal", name)
                    signal.is_paused = not signal.is_paused
                case "rename" if name.startswith("extra") and not signal.is_retired:
                    self._names += 1
                    call("rename_signal", name, f"extra:{self._names}")
                    self.signals[f"extra:{self._names}"] = self.signals.pop(name)
                    names = {**self.former, name: name}
                    self.former = {
                        old: f"extra:{self._names}" if new == name else new for old, new in names.items()
                    }
                case "retire" if name.startswith("extra") and not signal.is_paused:
                    call(*(("add_signal", NAME, name) if signal.is_retired else ("retire_signal", name)))
                    signal.is_retired = not signal.is_retired

    # --- reads ---

    def _signal_of(self, name: str) -> Signal:
        return self.waves[name] if name in self.waves else self.signals[name]

    def _table_of(self, name: str) -> str:
        return TRACES if name in self.waves else NAME

    def compare_samples(self, draw: random.Random) -> None:
        self._compare_some(draw, self.signals, self._reads_of_samples())

    def _compare_some(self, draw: random.Random, names: Iterable[str], reads: list[Any]) -> None:
        """A few of the reads, on spans of any length."""
        self._settle()
        for read in draw.sample(reads, 3):
            self._compare_one(draw, read, draw.choice([*names]))

    def compare_every_sample(self) -> None:
        """All reads of all signals."""
        draw = random.Random(0)
        for name in self.signals:
            for read in self._reads_of_samples():
                self._compare_one(draw, read, name)

    def _compare_one(self, draw: random.Random, read: Any, name: str) -> None:
        begin, end = self._span_of(draw, [*self._signal_of(name).samples])
        read(name, begin, end)
        self.reads += 1

    def _span_of(self, draw: random.Random, times: list[int]) -> tuple[datetime, datetime]:
        """Of any length; often one of these samples is at its very begin."""
        end = datetime.now(UTC) + timedelta(days=1)
        length = draw.choice([3600.0, 86_400.0, 7 * 86_400.0, (end - self.start).total_seconds()])
        begin = self.start + timedelta(seconds=draw.uniform(0, (end - self.start).total_seconds() - length))
        if times and draw.random() < 0.5:
            begin = instant(draw.choice(times))
        return begin, begin + timedelta(seconds=length)

    def _reads_of_both(self) -> list[Any]:
        return [self._samples_in_log, self._samples_by_procedure, self._newest_sample]

    def _reads_of_samples(self) -> list[Any]:
        return [
            *self._reads_of_both(),
            self._samples_by_text,
            self._samples_by_arrow,
            self._statistics_of_samples,
            self._trend_of_samples,
            self._latest_by_each_name,
            *[self._line_of_samples] * 3,
        ]

    def _rows_of_samples(self, query: str, *values: object) -> list[tuple[int, Any]]:
        rows = self._asked(f"select time, nanoseconds, value, severity, status from {query}", *values)
        return [(nanoseconds_of(at) + below, (*sample,)) for at, below, *sample in rows]

    def _samples_in_log(self, name: str, begin: datetime, end: datetime) -> None:
        query = f"log.{self._table_of(name)} where signal = %s and time >= %s and time < %s"
        got = self._rows_of_samples(f"{query} order by time, nanoseconds", name, begin, end)
        self._wanted(f"{query} of {name} {begin} {end}", got, self._signal_of(name).span(begin, end))

    def _samples_by_procedure(self, name: str, begin: datetime, end: datetime) -> None:
        query = f"ringlog.get_{self._table_of(name)}(%s, %s, %s)"
        got = self._rows_of_samples(query, name, begin, end)
        self._wanted(f"{query} of {name} {begin} {end}", got, self._signal_of(name).span(begin, end))

    def _samples_by_text(self, name: str, begin: datetime, end: datetime) -> None:
        """T-SQL on the log: all samples of the signal."""
        connection = wait_until(lambda: self._connected("7.4", self.server.reader))
        with connection, connection.cursor() as cursor:

            def read() -> list[tuple[Any, ...]]:
                cursor.execute(
                    "select convert(varchar(30), time, 121), nanoseconds, value, severity, status"
                    f" from log..{NAME} where signal = %s order by time, nanoseconds",
                    (name,),
                )
                return cursor.fetchall()

            got = of_archive(read)
        wanted = [
            (f"{instant(at).astimezone(self.zone):%Y-%m-%d %H:%M:%S.%f}", at % 1000, *sample)
            for at, sample in sorted(self.signals[name].samples.items())
        ]
        self._wanted(f"T-SQL on log.{NAME} of {name}", got, wanted)

    def _samples_by_arrow(self, name: str, begin: datetime, end: datetime) -> None:
        self._arrow(self._line(name), begin, end)

    def _statistics_of_samples(self, name: str, begin: datetime, end: datetime) -> None:
        self._statistics(self._line(name), begin, end)

    def _trend_of_samples(self, name: str, begin: datetime, end: datetime) -> None:
        self._trend(self._line(name), begin, max(1, min(300, (end - begin) // timedelta(hours=1))))

    def _newest_sample(self, name: str, begin: datetime, end: datetime) -> None:
        query = f"select time, value from ringlog.get_{self._table_of(name)}_at(%s) where signal = %s"
        before = self._signal_of(name).span(EPOCH, end + MICROSECOND)
        wanted = [(instant(before[-1][0]), before[-1][1][0])] if before else []
        got = [(at.astimezone(UTC), value) for at, value in self._asked(query, end, name)]
        self._wanted(f"{query}: {name} at {end}", got, wanted)

    def _latest_by_each_name(self, name: str, begin: datetime, end: datetime) -> None:
        """The newest sample by a signal's name and by those before."""
        if self.signals[name].is_retired:
            return
        newest = self.signals[name].span(*ALWAYS)[-1:]
        wanted = [(instant(at), value) for at, (value, _, _) in newest]
        for each in (name, *(old for old, new in self.former.items() if new == name)):
            found = self._asked("select time, value from ringlog.get_latest(%s)", each)
            got = [(at.astimezone(UTC), value) for at, value in found]
            self._wanted(f"get_latest of {each}", got, wanted)
            (shown,) = self._get("/api/v1/latest", signal=each).json()
            time = shown["time"] and datetime.fromisoformat(shown["time"]).astimezone(UTC)
            value = wanted[0][1] if wanted else None
            value = None if value is None or not math.isfinite(value) else value
            self._wanted(
                f"latest of {each}", (time, shown["value"]), (wanted[0][0] if wanted else None, value)
            )

    def _line(self, name: str) -> Line:
        samples = self.signals[name].span(*ALWAYS)
        return Line(name, NAME, [Reading(at, value, severity) for at, (value, severity, _) in samples])

    def _line_of_samples(self, name: str, begin: datetime, end: datetime) -> None:
        """The reads that rows have too; of a signal without a past in another life."""
        if not self.signals[name].is_retired:
            draw = random.Random(f"{name} {begin} {end}")
            self._compare_line(draw, self._line(name), begin, end)
