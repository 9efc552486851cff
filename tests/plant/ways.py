"""Reads of one signal, of rows or of samples: at a time, aligned, by operators, as trends and as files. Each
is compared with the readings in the model."""

import csv
import io
import math
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pymssql

from plant.model import FIGURES, Bin, agree, figures_of, plain, same
from plant.sample_model import EPOCH, MICROSECOND, nanoseconds_of
from plant.site import Different, Site
from servers import ringlog
from waiting import wait_until

SECOND = 10**9
"""nanoseconds"""


@dataclass(frozen=True)
class Reading:
    """`time`: nanoseconds since 1970. `value`: None is no reading."""

    time: int
    value: float | None
    severity: int = 0

    @property
    def is_number(self) -> bool:
        return self.value is not None and not math.isnan(self.value)


@dataclass(frozen=True)
class Line:
    """The readings of a signal by time. `single`: they have single precision. Those before `kept`, in
    nanoseconds since 1970, may be past retention."""

    signal: str
    table: str
    readings: Sequence[Reading]
    single: bool = False
    kept: int = 0

    def before(self, moment: int) -> Reading | None:
        """The newest one that is not later."""
        number = bisect_right(self.readings, moment, key=lambda reading: reading.time)
        return self.readings[number - 1] if number else None

    def within(self, begin: int, end: int) -> list[Reading]:
        return [reading for reading in self.readings if begin <= reading.time < end]

    def figures(self, begin: int, end: int) -> Bin | None:
        """Figures of the values in a span; None: there is no reading."""
        return figures_of([reading.value for reading in self.within(begin, end)])

    def shown(self, value: Any) -> Any:
        """A value as it is compared: JSON has null for NaN and infinities."""
        if value is None or not math.isfinite(value):
            return None
        return float(np.float32(value)) if self.single else value


def figures_by_numpy(values: Sequence[float]) -> dict[str, float]:
    """The Archiver Appliance's figures of a bin's values."""
    numbers = np.array(values, float)
    if not len(numbers):
        return {"count": 0.0}
    with np.errstate(invalid="ignore", over="ignore"):
        return {
            "count": float(len(numbers)),
            "mean": float(numbers.mean()),
            "min": float(numbers.min()),
            "max": float(numbers.max()),
            "std": float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0,
            "popvariance": float(numbers.var()),
            "rms": float(np.sqrt(np.square(numbers).mean())),
        }


class Ways(Site):
    """Each raises Different."""

    def _compare_line(self, draw: random.Random, line: Line, begin: datetime, end: datetime) -> None:
        """One of the reads. Readings before `begin` are in the model too."""
        ways: list[Callable[[random.Random, Line, datetime, datetime], None]] = [
            self._at_a_time,
            self._at_a_time,
            self._wide,
            self._wide,
            self._operator,
            self._operator,
            self._trend_by_http,
            self._file,
        ]
        draw.choice(ways)(draw, line, begin, end)
        self.reads += 1

    # --- at a time ---

    def _at_a_time(self, draw: random.Random, line: Line, begin: datetime, end: datetime) -> None:
        """Every way of asking at a time has the newest sample, whatever it is."""
        at = begin + (end - begin) * draw.random()
        if line.readings and draw.random() < 0.7:
            near = draw.choice(line.readings).time // 1000 + draw.choice([-1, 0, 0, 1])
            at = min(max(begin, EPOCH + near * MICROSECOND), end)
        held = line.before(nanoseconds_of(at))
        if held is None or held.time < nanoseconds_of(begin):
            # readings before the begin may be past retention
            return
        what = f"{line.signal} at {at}"
        (signal,) = self._get("/api/v1/at", signal=line.signal, time=at.isoformat()).json()["signals"]
        got = [(round(time * 1000), line.shown(value)) for time, value in signal["samples"]]
        self._wanted(f"/api/v1/at of {what}", got, [(held.time // 1000, line.shown(held.value))])
        severity = 3 if held.value is None else held.severity
        wanted = (held.time, line.shown(held.value), severity)
        found = self._get("/retrieval/data/getDataAtTime", pv=line.signal, at=at.isoformat()).json()
        self._wanted(f"getDataAtTime of {what}", _event(line, found[line.signal]), wanted)
        span = {"from": at.isoformat(), "to": (at + MICROSECOND).isoformat()}
        for call in ("getData", "getDataForPVs"):
            (found,) = self._get(f"/retrieval/data/{call}.json", pv=line.signal, **span).json()
            self._wanted(f"{call} of {what}", _event(line, found["data"][0]), wanted)
        rows = self._aligned(line, at, at + MICROSECOND, wide="last", step="0.000001")
        self._wanted(f"wide=last of {what}", rows, [(nanoseconds_of(at) // 1000, held.value)])

    # --- aligned ---

    def _aligned(self, line: Line, begin: datetime, end: datetime, **how: str) -> list[tuple[int, Any]]:
        """Rows of one signal: microseconds since 1970 and value."""
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        got = self._get("/api/v1/data", signal=line.signal, format="arrow", **span, **how)
        read = pa.ipc.open_stream(got.content).read_all()
        times = read["time"].cast(pa.int64()).to_pylist()
        return [*zip(times, read[line.signal].to_pylist(), strict=True)]

    def _wide(self, draw: random.Random, line: Line, begin: datetime, end: datetime) -> None:
        first, last = nanoseconds_of(begin), nanoseconds_of(end)
        how = draw.choice(["samples", "last", "linear", "mean"])
        inside = line.within(first, last)
        if how == "samples":
            values = {reading.time // 1000: reading.value for reading in inside}
            got = self._aligned(line, begin, end, wide="last")
            self._wanted(f"wide=last of {line.signal} from {begin} to {end}", got, [*values.items()])
            return
        seconds = [1, 7, 60, 600, 3600, 86_400]
        step = draw.choice(
            [each for each in seconds if (last - first) / SECOND / each < 3000] or seconds[-1:]
        )
        wanted: list[tuple[int, Any]] = []
        before = first // (step * SECOND)
        grid = before if how == "mean" else -(-first // (step * SECOND))
        for time in range(grid * step * SECOND, last, step * SECOND):
            wanted.append((time // 1000, self._value_at(line, time, step, first, last, how)))
        got = self._aligned(line, begin, end, wide=how, step=str(step))
        what = f"wide={how} step={step} of {line.signal} from {begin} to {end}"
        if [time for time, _ in got] != [time for time, _ in wanted]:
            raise Different(f"{what}: {len(got)} rows, expected {len(wanted)}")
        for (time, value), (_, other) in zip(got, wanted, strict=True):
            held = line.before(time * 1000)
            # past retention a newer reading may be gone before an older one
            may_be_gone = how != "mean" and held is not None and held.time < line.kept
            if not same(value, other) and not may_be_gone:
                raise Different(f"{what}: {value} at {EPOCH + time * MICROSECOND}, expected {other}")

    def _value_at(self, line: Line, time: int, step: int, first: int, last: int, how: str) -> float | None:
        if how == "mean":
            numbers = [
                r.value for r in line.within(max(time, first), min(time + step * SECOND, last)) if r.is_number
            ]
            mean = figures_by_numpy(numbers).get("mean", math.nan)  # type: ignore[arg-type]
            return None if math.isnan(mean) else mean
        held = line.before(time)
        if how == "last" or held is None:
            return None if held is None else held.value
        right = next((reading for reading in line.readings if reading.time > time), None)
        value = held.value
        if held.time != time:
            if right is None or right.time >= last or value is None or right.value is None:
                return None
            share = (time - held.time) / (right.time - held.time)
            value = value * (1 - share) + right.value * share
        return None if value is None or math.isnan(value) else value

    # --- operators ---

    def _operator(self, draw: random.Random, line: Line, begin: datetime, end: datetime) -> None:
        """Whole bins of the Archiver Appliance's operators."""
        width = draw.choice([60, 241, 600, 3600, 7200, 86_400])
        first = (nanoseconds_of(begin) // (width * SECOND) + 2) * width
        past = min(
            nanoseconds_of(min(end, datetime.now(UTC))) // (width * SECOND) * width, first + 2000 * width
        )
        since, until = (EPOCH + timedelta(seconds=second) for second in (first, past))
        if since >= until or self._is_coming(
            line.table, since - timedelta(days=1), until + timedelta(days=1)
        ):
            return
        operator = draw.choice(["count", "mean", "min", "max", "std", "popvariance", "rms"])
        pv = f"{operator}Sample_{width}({line.signal})"
        found = self._get(
            "/retrieval/data/getData.json", pv=pv, **{"from": since.isoformat(), "to": until.isoformat()}
        ).json()
        got = {}
        for event in found[0]["data"] if found else []:
            got[(event["secs"] * SECOND + event["nanos"]) // (width * SECOND)] = event
        bins: dict[int, list[Reading]] = {}
        for reading in line.within(first * SECOND, past * SECOND):
            bins.setdefault(reading.time // (width * SECOND), []).append(reading)
        for number, readings in bins.items():
            numbers = [reading.value for reading in readings if reading.is_number]
            figure = figures_by_numpy(numbers).get(operator)  # type: ignore[arg-type]
            wanted = None if figure is None or not math.isfinite(figure) else figure
            severity = max(reading.severity for reading in readings)
            if all(reading.value is None for reading in readings):
                severity = 3
            event = got.get(number)
            largest = max((abs(value) for value in numbers if value is not None), default=0.0)
            close = operator in ("std", "popvariance") and wanted is not None and event is not None
            is_same = event is not None and (
                math.isclose(event["val"], wanted, rel_tol=1e-9, abs_tol=1e-9 * max(largest, largest**2))
                if close and event["val"] is not None
                else same(event["val"], wanted)
            )
            if event is None or not is_same or event["severity"] != severity:
                at = EPOCH + timedelta(seconds=number * width)
                raise Different(
                    f"{pv} from {since} to {until} at {at}: {event}, expected {wanted}, severity {severity}"
                )

    # --- figures, trends and files ---

    def _statistics(self, line: Line, begin: datetime, end: datetime) -> None:
        if self._is_coming(line.table, begin, end):
            return
        try:
            found = self._asked(
                f"select {FIGURES}, std, rms from ringlog.get_statistics(%s, %s, %s)",
                *(line.signal, begin, end),
            )
        except psycopg.Error as error:
            # its first or last rows are in the archive, which SQL does not read
            if error.sqlstate == "RL003" and begin < datetime.now(UTC) - timedelta(weeks=2):
                return
            raise
        wanted = line.figures(nanoseconds_of(begin), nanoseconds_of(end))
        if len(found) > 1 or not agree(found[0] if found else None, wanted):
            raise Different(
                f"get_statistics of {line.signal} from {begin} to {end}: {found}, expected {wanted}"
            )

    def _trend(self, line: Line, begin: datetime, hours: int) -> None:
        """Bins of an hour, except those whose summaries get late rows in the next round."""
        begin = begin.replace(minute=0, second=0, microsecond=0)
        coming = self._coming(line.table)
        query = f"select time, {FIGURES} from ringlog.get_trend(%s, %s, %s, %s)"
        # one more bin is omitted, for spans that do not begin at `begin`
        rows = self._asked(query, line.signal, begin, begin + timedelta(hours=hours), hours + 1)
        got = {at.astimezone(UTC): figures for at, *figures in rows}
        what = f"get_trend of {line.signal}, {hours} h from {begin}"
        for hour in (begin + timedelta(hours=number) for number in range(hours)):
            found, first = got.pop(hour, None), nanoseconds_of(hour)
            wanted = line.figures(first, first + 3600 * SECOND)
            if not agree(found, wanted) and hour not in coming:
                raise Different(f"{what}: {hour} {found}, expected {wanted}")
        if got:
            raise Different(f"{what}: not expected {got}")

    def _arrow(self, line: Line, begin: datetime, end: datetime) -> None:
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        got = self._get("/api/v1/data", signal=line.signal, format="arrow", **span)
        read = pa.ipc.open_stream(got.content).read_all()
        times = read["time"].cast(pa.int64()).to_pylist()
        wanted = [
            (reading.time // 1000, reading.value)
            for reading in line.within(nanoseconds_of(begin), nanoseconds_of(end))
        ]
        what = f"/api/v1/data of {line.signal} from {begin} to {end}"
        self._wanted(what, [*zip(times, read["value"].to_pylist(), strict=True)], wanted)

    def _trend_by_http(self, draw: random.Random, line: Line, begin: datetime, end: datetime) -> None:
        if self._is_coming(line.table, begin - timedelta(days=1), end + timedelta(days=1)):
            return
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        points = draw.choice([1, 20, 300])
        (found,) = self._get("/api/v1/trend", signal=line.signal, points=points, **span).json()["signals"]
        width = round(found["width"] * SECOND)
        rows = zip(
            *(found[name] for name in ("time", "n", "min", "max", "mean", "first", "last")), strict=True
        )
        for number, (time, *got) in enumerate(rows):
            at = round(time * 10**6)
            if width == 0 or number == 0 or at + width >= nanoseconds_of(end):
                continue
            values = [reading.value for reading in line.within(at, at + width)]
            figures = figures_of(values)
            wanted = figures and [line.shown(each) for each in [*vars(figures).values()][:6]]
            if wanted is None or not agree([line.shown(each) for each in got], wanted):
                raise Different(
                    f"/api/v1/trend of {line.signal} from {begin} to {end}, {points} points, at"
                    f" {EPOCH + at // 1000 * MICROSECOND}: {got}, expected {wanted}"
                )

    def _file(self, draw: random.Random, line: Line, begin: datetime, end: datetime) -> None:
        """The files that programs and `ringlog export` read."""
        form = draw.choice(["csv", "parquet"])
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        if draw.random() < 0.3:
            content = self._exported(line.signal, form, span)
        else:
            content = self._get("/api/v1/data", signal=line.signal, format=form, **span).content
        got: list[tuple[int, Any]]
        if form == "parquet":
            read = pq.read_table(io.BytesIO(content))
            got = [*zip(read["time"].cast(pa.int64()).to_pylist(), read["value"].to_pylist(), strict=True)]
        else:
            got = []
            for time, text in [*csv.reader(io.StringIO(content.decode()))][1:]:
                value = float(text) if text else None
                if line.single and value is not None:
                    value = float(np.float32(value))
                got.append(((datetime.fromisoformat(time) - EPOCH) // MICROSECOND, value))
        inside = line.within(nanoseconds_of(begin), nanoseconds_of(end))
        wanted = [(reading.time // 1000, reading.value) for reading in inside]
        self._wanted(f"{form} of {line.signal} from {begin} to {end}", got, wanted)

    def _exported(self, signal: str, form: str, span: dict[str, str]) -> bytes:
        file = self.folder / f"export.{form}"
        options = [word for name, value in span.items() for word in (f"--{name}", value)]
        done = ringlog("export", signal, *options, "-o", file, "--server", f"http://127.0.0.1:{self.http}")
        if done.returncode != 0:
            raise Different(f"export of {signal} {span}: code {done.returncode}: {done.stdout}{done.stderr}")
        content = file.read_bytes()
        file.unlink()
        return content

    # --- used by all reads ---

    def _wanted(self, what: str, got: Any, wanted: Any) -> None:
        got, wanted = plain(got), plain(wanted)
        if got != wanted:
            missing = [one for one in wanted if one not in got] if isinstance(wanted, list) else wanted
            extra = [one for one in got if one not in wanted] if isinstance(got, list) else got
            if not missing and not extra:
                # repeated, or in another order
                extra = got
            raise Different(f"{what}: missing {missing!r}, not expected {extra!r}")

    def _asked(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a reader's statement."""
        with psycopg.connect(self.server.dsn_of(self.server.reader), autocommit=True) as connection:
            return of_archive(lambda: connection.execute(query.encode(), values, binary=True).fetchall())

    def _coming(self, table: str) -> set[datetime]:
        """The hours of archived weeks whose summaries get late rows in the next round. Must be called before
        the comparison: a round may begin at any time.
        """
        marks = self.server.sql(
            "select distinct date_trunc('hour', mark.time, 'UTC') from ringlog.summary_mark as mark"
            " join ringlog.cold_week as week using (table_name)"
            " where table_name = %s and recalled_until is null and begins <= time and time < ends",
            [table],
        )
        return {hour.astimezone(UTC) for (hour,) in marks}

    def _is_coming(self, table: str, begin: datetime, end: datetime) -> bool:
        return any(begin - timedelta(hours=1) < hour < end for hour in self._coming(table))


def _event(line: Line, event: dict[str, Any]) -> tuple[int, Any, int]:
    return event["secs"] * SECOND + event["nanos"], line.shown(event["val"]), event["severity"]


def of_archive(read: Callable[[], list[Any]]) -> list[Any]:
    """The rows of a log in their order, including the archive server if there is one. A row sent again for an
    archived week is repeated until the next round.
    """

    def answer() -> list[list[Any]]:
        try:
            return [read()]
        except (psycopg.Error, pymssql.Error) as error:
            if "archive server" not in str(error):
                raise
            return []

    (rows,) = wait_until(answer)
    return [row for before, row in zip([None, *rows], rows, strict=False) if plain(row) != plain(before)]
