"""A table of samples that are waveforms in the plant: the model, and each way to write and to read them."""

import math
import random
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from plant.sample_model import DRIFT, POINTS, TRACES, Wave, instant, nanoseconds_of
from plant.samples import NO_NUMBERS, Samples
from plant.site import Different
from waiting import wait_until


class Waves(Samples):
    """Operations and reads, by random choices."""

    # --- operations ---

    def _wave(self, draw: random.Random) -> Wave:
        kinds = (0.0, draw.uniform(-1e3, 1e3), draw.uniform(-1e3, 1e3), draw.choice(NO_NUMBERS))
        points = [draw.choice(kinds) for _ in range(draw.randint(0, POINTS))]
        return draw.choice([None, points, points, points]), *draw.choice([(0, 0), (0, 0), (2, 5)])

    def send_waves(self, draw: random.Random) -> None:
        """Many in a call, in order and late; some are stored already, and come once more in the same call."""
        numbers = self._numbers()
        late = draw.random() < 0.3
        sent: dict[tuple[str, int], Wave] = {}
        for _ in range(draw.randint(1, 12)):
            name, at = draw.choice([*self.waves]), self._time(draw, late=late)
            stored = [*self.waves[name].samples]
            at = draw.choice(stored) if stored and draw.random() < 0.2 else at
            sent[name, at] = self.waves[name].samples.get(at) or self._wave(draw)
        each = [*sent.items(), draw.choice([*sent.items()])]
        ahead = nanoseconds_of(datetime.now(UTC) + DRIFT + timedelta(hours=1))
        self.server.sql(
            f"select ringlog.put_{TRACES}_batch(%s::integer[], %s::bigint[], %s::float8[],"
            " %s::smallint[], %s::smallint[], lengths => %s::integer[])",
            [
                [*(numbers[name] for (name, _), _ in each), numbers["trace:1"]],
                # one of a time ahead, which alone is dropped
                [*(at for (_, at), _ in each), ahead],
                [*(point for _, (points, _, _) in each for point in points or ()), 1.0],
                [*(severity for _, (_, severity, _) in each), 0],
                [*(status for _, (_, _, status) in each), 0],
                [*(None if points is None else len(points) for _, (points, _, _) in each), 1],
            ],
            login=self.server.writer,
        )
        for (name, at), wave in sent.items():
            self.waves[name].samples[at] = wave

    def send_wave(self, draw: random.Random) -> None:
        """By a call over TDS, its points packed."""
        name, at = draw.choice([*self.waves]), self._time(draw, late=False)
        points, *alarm = self._wave(draw)
        if at in self.waves[name].samples:
            return
        # DB-Library sends no bytes as NULL
        packed = struct.pack(f"<{len(points)}d", *points) if points else None
        connection = wait_until(lambda: self._connected("7.4"))
        with connection, connection.cursor() as cursor:
            written = f"{instant(at):%Y-%m-%d %H:%M:%S.%f}+00:00"
            cursor.callproc(f"put_{TRACES}", (name, written, packed, *alarm, at % 1000))
            while cursor.nextset():
                pass
        self.waves[name].samples[at] = points or None, alarm[0], alarm[1]

    def send_other_wave(self, draw: random.Random) -> None:
        """Another one of a time that PostgreSQL has is refused."""
        weeks = self._weeks(TRACES)
        stored = [
            (name, at)
            for name, waves in self.waves.items()
            for at in waves.samples
            if not any(begins <= instant(at) < ends for begins, ends, _ in weeks)
        ]
        if not stored:
            return
        name, at = draw.choice(stored)
        points, severity, status = self.waves[name].samples[at]
        try:
            self.server.sql(
                f"select ringlog.put_{TRACES}(%s, %s, %s, %s::smallint, %s::smallint, %s::smallint)",
                [name, instant(at), [*(points or ()), 1.0][-POINTS:], severity, status + 1, at % 1000],
                login=self.server.writer,
            )
        except psycopg.errors.UniqueViolation:
            return
        raise Different(f"another waveform of {name} at {at} was accepted")

    # --- reads ---

    def compare_waves(self, draw: random.Random) -> None:
        self._compare_some(draw, self.waves, self._reads_of_waves())

    def compare_every_sample(self) -> None:
        super().compare_every_sample()
        draw = random.Random(0)
        for name in self.waves:
            for read in self._reads_of_waves():
                self._compare_one(draw, read, name)

    def _reads_of_waves(self) -> list[Any]:
        return [*self._reads_of_both(), self._waves_of_signal, self._waves_by_http, self._lengths]

    def _waves_of_signal(self, name: str, begin: datetime, end: datetime) -> None:
        """Those that are no reading are left out."""
        found = self._asked("select time, value from ringlog.get_waveforms(%s, %s, %s)", name, begin, end)
        wanted = [
            (instant(at), points)
            for at, (points, _, _) in self.waves[name].span(begin, end)
            if points is not None
        ]
        got = [(at.astimezone(UTC), points) for at, points in found]
        self._wanted(f"get_waveforms of {name} from {begin} to {end}", got, wanted)

    def _waves_by_http(self, name: str, begin: datetime, end: datetime) -> None:
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        (signal,) = self._get("/api/v1/data", signal=name, **span).json()["signals"]
        wanted = [
            (
                nanoseconds_of(instant(at)) / 10**6,
                None if points is None else [point if math.isfinite(point) else None for point in points],
            )
            for at, (points, _, _) in self.waves[name].span(begin, end)
        ]
        got = [(milliseconds, points) for milliseconds, points in signal["samples"]]
        self._wanted(f"/api/v1/data of {name} from {begin} to {end}", got, wanted)

    def _lengths(self, name: str, begin: datetime, end: datetime) -> None:
        """The scalars of waveforms, in one bin."""
        found = self._asked(
            "select n, shortest, longest, nulls, min, max from ringlog.get_waveform_trend(%s, %s, %s, 1)",
            *(name, begin, end),
        )
        lengths = [
            None if points is None else len(points) for _, (points, _, _) in self.waves[name].span(begin, end)
        ]
        known = [length for length in lengths if length is not None]
        numbers = [
            point
            for _, (points, _, _) in self.waves[name].span(begin, end)
            for point in points or ()
            if not math.isnan(point)
        ]
        bounds = min(numbers, default=None), max(numbers, default=None)
        wanted = [(len(known), min(known), max(known), lengths.count(None), *bounds)] if known else []
        got = [row for row in found if row[0]]
        self._wanted(f"get_waveform_trend of {name} from {begin} to {end}", got, wanted)
