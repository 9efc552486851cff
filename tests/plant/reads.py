"""Each way to read a plant, compared with the model."""

import math
import random
import struct
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pyarrow.parquet as pq
from psycopg import sql

from plant.model import Table, nights, same
from plant.sample_model import EPOCH, nanoseconds_of
from plant.site import Different
from plant.ways import Line, Reading, Ways, of_archive
from waiting import wait_until


class Reads(Ways):
    """The reads; each raises Different."""

    def compare(self, draw: random.Random) -> None:
        """A few of the reads, on spans of any length."""
        self._settle()
        table = self._table(draw)
        for read in draw.sample(self._every_read(), 3):
            read(draw, table)
            self.reads += 1

    def _every_read(self) -> list[Callable[[random.Random, Table], None]]:
        return [
            self._ring,
            self._latest,
            self._log,
            self._text,
            self._range,
            self._figures,
            self._hourly,
            self._samples,
            self._events,
            self._hours,
            self._parquet,
            self._row_at,
            self._latest_by_http,
            self._any_way,
            self._any_way,
            self._any_way,
        ]

    def compare_all(self) -> None:
        self._settle()
        draw = random.Random(0)
        for table in self.model.values():
            for _ in range(4):
                for read in self._every_read():
                    read(draw, table)
                    self.reads += 1
        self._command("verify")

    def _span(self, draw: random.Random, table: Table) -> tuple[datetime, datetime]:
        start, end = self._from(table), datetime.now(UTC) + timedelta(days=70)
        length = draw.choice([3600.0, 86_400.0, 7 * 86_400.0, (end - start).total_seconds()])
        begin = start + timedelta(seconds=draw.uniform(0, (end - start).total_seconds() - length))
        if draw.random() < 0.5 and self.sent:
            # a row at the very begin
            begin = max(start, draw.choice(self.sent)[2])
        return begin, begin + timedelta(seconds=length)

    def _rows(self, schema: str, table: Table, condition: str, values: list[Any]) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.dsn_of(self.server.reader)) as connection:
            connection.execute("set timezone = 'UTC'")
            query = sql.SQL("select seq_no, time, {} from {} where {} order by time, seq_no").format(
                sql.SQL(", ").join(map(sql.Identifier, table.columns)),
                sql.Identifier(schema, table.name),
                sql.SQL(condition),  # type: ignore[arg-type]
            )
            return [
                (seq_no, at.astimezone(UTC), *rest)
                for seq_no, at, *rest in connection.execute(query, values, binary=True)
            ]

    def _ring(self, draw: random.Random, table: Table) -> None:
        wanted = sorted(
            ((seq_no, at, *row.values()) for seq_no, (at, row) in table.ring.items()),
            key=lambda row: (row[1], row[0]),
        )
        self._wanted(f"online.{table.name}", self._rows("online", table, "time is not null", []), wanted)

    def _log(self, draw: random.Random, table: Table) -> None:
        """The log of all weeks, also from the archive."""
        begin, end = self._span(draw, table)
        wanted = [(seq_no, at, *row.values()) for (at, seq_no), row in table.logged(begin, end)]
        got = of_archive(lambda: self._rows("log", table, "time >= %s and time < %s", [begin, end]))
        self._wanted(f"log.{table.name} from {begin} to {end}", got, wanted)

    def _latest(self, draw: random.Random, table: Table) -> None:
        wanted = table.latest()
        found = self.server.sql(f"select * from ringlog.last_{table.name}()", login=self.server.reader)[0]  # type: ignore[arg-type]
        got = found and found[1] and (found[1].astimezone(UTC), found[0])
        self._wanted(f"last_{table.name}", got, wanted and wanted[:2])

    def _text(self, draw: random.Random, table: Table) -> None:
        """T-SQL on the log, for all rows."""
        begin, end = self._span(draw, table)
        bounds = [at.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S.%f") for at in (begin, end)]
        if any(at.astimezone(self.zone).replace(tzinfo=None) in self._twice() for at in (begin, end)):
            return
        connection = wait_until(lambda: self._connected("7.4", self.server.reader))
        with connection, connection.cursor() as cursor:

            def read() -> list[tuple[Any, ...]]:
                cursor.execute(
                    f"select seq_no, convert(varchar(30), time, 121) from log..{table.name}"
                    " where time >= %s and time < %s order by time, seq_no",
                    tuple(bounds),
                )
                return cursor.fetchall()

            found = of_archive(read)
        wanted = [
            (seq_no, at.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S.%f"))
            for (at, seq_no), _ in table.logged(begin, end)
        ]
        self._wanted(f"T-SQL on log.{table.name} from {begin} to {end}", found, wanted)

    def _range(self, draw: random.Random, table: Table) -> None:
        begin, end = self._span(draw, table)
        query = f"select time, seq_no from ringlog.get_{table.name}_range(%s, %s)"
        found = self._asked(query, begin, end)
        self._wanted(
            f"get_{table.name}_range from {begin} to {end}",
            [(at.astimezone(UTC), seq_no) for at, seq_no in found],
            [key for key, _ in table.logged(begin, end)],
        )

    def _hourly(self, draw: random.Random, table: Table) -> None:
        begin, _ = self._span(draw, table)
        self._trend(self._numbers_of(draw, table), begin, draw.choice([1, 24, 300]))

    def _events(self, draw: random.Random, table: Table) -> None:
        """Raw events for the Archiver Appliance's clients: the one before the span is the first."""
        signal, column = self._signal(draw, table, numeric=True)
        begin, end = self._span(draw, table)
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        got = self._get("/retrieval/data/getData.json", pv=signal, **span)
        events = got.json()[0]["data"] if got.json() else []
        found = [
            (event["secs"], event["nanos"], event["val"])
            for event in events
            if datetime.fromtimestamp(event["secs"], UTC) + timedelta(microseconds=event["nanos"] // 1000)
            >= begin
        ]
        single = struct.Struct("f") if table.columns[column] == "real" else struct.Struct("d")

        def packed(value: float | None) -> bytes | None:
            # a real is sent by its shortest digits
            # JSON has null for NaN and infinities
            return None if value is None or not math.isfinite(value) else single.pack(value)

        found = [(*at, packed(value)) for *at, value in found]
        wanted = [
            (int(at.timestamp()), at.microsecond * 1000, packed(value))
            # the appliance's span includes its end
            for at, value in table.readings(signal, begin, end + timedelta(microseconds=1))
        ]
        self._wanted(f"getData of {signal} from {begin} to {end}", found, wanted)

    def _parquet(self, draw: random.Random, table: Table) -> None:
        """The file of an archived week, once late rows are merged into it."""
        weeks = self._archived(table)
        if not weeks:
            return
        self._command("archive", "now")
        begins, ends, _ = draw.choice(weeks)
        for first, _, file in self._archived(table):
            if first == begins and begins >= self._from(table):
                read = pq.read_table(self.archive / file)
                times = [at.astimezone(UTC) for at in read["time"].to_pylist()]
                found = sorted(zip(times, read["seq_no"].to_pylist(), strict=True))
                self._wanted(f"{file}", found, [key for key, _ in table.logged(begins, ends)])

    def _twice(self) -> Container[datetime]:
        """Local times that occur twice, or never."""
        return _ChangedHours(nights(self.zone, self.start, datetime.now(UTC)))

    def _signal(self, draw: random.Random, table: Table, numeric: bool = False) -> tuple[str, str]:
        choices = [
            (signal, column)
            for signal, column in table.signals.items()
            if column not in table.retired
            and (not numeric or table.columns[column] in ("real", "double", "int", "bigint"))
        ]
        return draw.choice(choices)

    def _row_at(self, draw: random.Random, table: Table) -> None:
        """The row that was valid at a time, of ring and log."""
        begin, at = self._span(draw, table)
        wanted = table.at(at)
        if wanted is None or wanted[1] < begin:
            return
        query = f"select seq_no, time from ringlog.get_{table.name}_at(%s)"
        found = self._asked(query, at)
        got = [(seq_no, time.astimezone(UTC)) for seq_no, time in found]
        self._wanted(f"get_{table.name}_at {at}", got, [wanted[:2]])

    def _latest_by_http(self, draw: random.Random, table: Table) -> None:
        signal, column = self._signal(draw, table, numeric=True)
        wanted = table.latest()
        (found,) = self._get("/api/v1/latest", signal=signal).json()
        line = Line(signal, table.name, (), single=table.columns[column] == "real")
        time = found["time"] and datetime.fromisoformat(found["time"]).astimezone(UTC)
        row = (None, None) if wanted is None else (wanted[0], line.shown(wanted[2][column]))
        self._wanted(f"latest of {signal}", (time, line.shown(found["value"])), row)

    def _line_of(self, table: Table, signal: str, column: str) -> Line:
        readings = table.readings(signal, EPOCH, datetime.max.replace(tzinfo=UTC))
        return Line(
            signal,
            table.name,
            [Reading(nanoseconds_of(at), value) for at, value in readings],
            single=table.columns[column] == "real",
            kept=nanoseconds_of(self._from(table)),
        )

    def _numbers_of(self, draw: random.Random, table: Table) -> Line:
        return self._line_of(table, *self._signal(draw, table, numeric=True))

    def _any_way(self, draw: random.Random, table: Table) -> None:
        self._compare_line(draw, self._numbers_of(draw, table), *self._span(draw, table))

    def _figures(self, draw: random.Random, table: Table) -> None:
        self._statistics(self._numbers_of(draw, table), *self._span(draw, table))

    def _samples(self, draw: random.Random, table: Table) -> None:
        """Raw samples over HTTP, from PostgreSQL and the archive alike."""
        self._arrow(self._line_of(table, *self._signal(draw, table)), *self._span(draw, table))

    def _hours(self, draw: random.Random, table: Table) -> None:
        """The Archiver Appliance's count and mean of whole hours: of those that have values."""
        signal, _ = self._signal(draw, table, numeric=True)
        begin, end = (at.replace(minute=0, second=0, microsecond=0) for at in self._span(draw, table))
        end = min(max(end, begin + timedelta(hours=1)), datetime.now(UTC))
        if end <= begin:
            return
        for operator in ("count", "mean"):
            span = {"from": begin.isoformat(), "to": end.isoformat()}
            got = self._get("/retrieval/data/getData.json", pv=f"{operator}_3600({signal})", **span)
            found = {event["secs"] // 3600: event["val"] for event in got.json()[0]["data"]}
            hours: dict[int, list[float]] = {}
            for at, value in table.readings(signal, begin, end):
                if value is not None and not math.isnan(value):
                    hours.setdefault(int(at.timestamp()) // 3600, []).append(float(value))
            for hour, values in hours.items():
                wanted = float(len(values)) if operator == "count" else sum(values) / len(values)
                if not same(found.get(hour), wanted if math.isfinite(wanted) else None):
                    at = datetime.fromtimestamp(hour * 3600, UTC)
                    raise Different(
                        f"{operator}_3600({signal}) at {at}: {found.get(hour)}, expected {wanted}"
                    )


@dataclass
class _ChangedHours:
    """The first hours of some nights."""

    midnights: list[datetime]

    def __contains__(self, local: object) -> bool:
        assert isinstance(local, datetime)
        return any(night <= local < night + timedelta(hours=4) for night in self.midnights)
