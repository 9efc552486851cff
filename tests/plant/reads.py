"""Each way to read a plant, compared with the model."""

import math
import random
import struct
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pymssql
from psycopg import sql

from plant.model import FIGURES, Bin, Table, agree, nights, plain, same
from plant.sample_model import EPOCH, nanoseconds_of
from plant.site import Different
from plant.ways import Line, Reading, Ways
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
            self._statistics,
            self._trend,
            self._samples,
            self._events,
            self._hours,
            self._parquet,
            self._row_at,
            self._latest_by_http,
            self._line,
            self._line,
            self._line,
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
            ((place, at, *row.values()) for place, (at, row) in table.ring.items()),
            key=lambda row: (row[1], row[0]),
        )
        self._wanted(f"online.{table.name}", self._rows("online", table, "time is not null", []), wanted)

    def _log(self, draw: random.Random, table: Table) -> None:
        """The log of all weeks, also from the archive."""
        begin, end = self._span(draw, table)
        wanted = [(place, at, *row.values()) for (at, place), row in table.logged(begin, end)]
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
        said = [at.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S.%f") for at in (begin, end)]
        if any(at.astimezone(self.zone).replace(tzinfo=None) in self._twice() for at in (begin, end)):
            return
        connection = wait_until(lambda: self._connected("7.4", self.server.reader))
        with connection, connection.cursor() as cursor:

            def read() -> list[tuple[Any, ...]]:
                cursor.execute(
                    f"select seq_no, convert(varchar(30), time, 121) from log..{table.name}"
                    " where time >= %s and time < %s order by time, seq_no",
                    tuple(said),
                )
                return cursor.fetchall()

            found = of_archive(read)
        wanted = [
            (place, at.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S.%f"))
            for (at, place), _ in table.logged(begin, end)
        ]
        self._wanted(f"T-SQL on log.{table.name} from {begin} to {end}", found, wanted)

    def _range(self, draw: random.Random, table: Table) -> None:
        begin, end = self._span(draw, table)
        query = f"select time, seq_no from ringlog.get_{table.name}_range(%s, %s)"
        with psycopg.connect(self.server.dsn_of(self.server.reader), autocommit=True) as connection:
            found = of_archive(lambda: connection.execute(query.encode(), [begin, end]).fetchall())
        self._wanted(
            f"get_{table.name}_range from {begin} to {end}",
            [(at.astimezone(UTC), place) for at, place in found],
            [key for key, _ in table.logged(begin, end)],
        )

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

    def _trend(self, draw: random.Random, table: Table) -> None:
        """Bins of an hour."""
        signal, _ = self._signal(draw, table, numeric=True)
        begin, _ = self._span(draw, table)
        begin = begin.replace(minute=0, second=0, microsecond=0)
        hours = draw.choice([1, 24, 300])
        end = begin + timedelta(hours=hours)
        coming = self._coming(table.name)
        found = self.server.sql(
            f"select time, {FIGURES} from ringlog.get_trend(%s, %s, %s, %s)",
            # one more bin is omitted, for spans that do not begin at `begin`
            [signal, begin, end, hours + 1],
            login=self.server.reader,
        )
        self._compare_hours(
            f"get_trend {signal}, {hours} h from {begin}",
            {at.astimezone(UTC): figures for at, *figures in found},
            {
                hour: table.figures(signal, hour, hour + timedelta(hours=1))
                for hour in (begin + timedelta(hours=number) for number in range(hours))
            },
            coming,
        )

    def _compare_hours(
        self,
        what: str,
        got: dict[datetime, list[Any]],
        wanted: dict[datetime, Bin | None],
        coming: set[datetime],
    ) -> None:
        """The figures of hours, except those that are `coming`."""
        for hour, figures in wanted.items():
            found = got.pop(hour, None)
            if not agree(found, figures) and hour not in coming:
                raise Different(f"{what}: {hour} {found}, expected {figures}")
        if got:
            raise Different(f"{what}: not expected {got}")

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
        with psycopg.connect(self.server.dsn_of(self.server.reader), autocommit=True) as connection:
            found = of_archive(lambda: connection.execute(query.encode(), [at]).fetchall())
        got = [(place, time.astimezone(UTC)) for place, time in found]
        self._wanted(f"get_{table.name}_at {at}", got, [wanted[:2]])

    def _latest_by_http(self, draw: random.Random, table: Table) -> None:
        signal, column = self._signal(draw, table, numeric=True)
        wanted = table.latest()
        (found,) = self._get("/api/v1/latest", signal=signal).json()
        line = Line(signal, table.name, (), single=table.columns[column] == "real")
        time = found["time"] and datetime.fromisoformat(found["time"]).astimezone(UTC)
        row = (None, None) if wanted is None else (wanted[0], line.shown(wanted[2][column]))
        self._wanted(f"latest of {signal}", (time, line.shown(found["value"])), row)

    def _line(self, draw: random.Random, table: Table) -> None:
        signal, column = self._signal(draw, table, numeric=True)
        readings = table.readings(signal, EPOCH, datetime.max.replace(tzinfo=UTC))
        line = Line(
            signal,
            table.name,
            [Reading(nanoseconds_of(at), value) for at, value in readings],
            single=table.columns[column] == "real",
            kept=nanoseconds_of(self._from(table)),
        )
        self._compare_line(draw, line, *self._span(draw, table))

    def _statistics(self, draw: random.Random, table: Table) -> None:
        signal, _ = self._signal(draw, table, numeric=True)
        begin, end = self._span(draw, table)
        if self._is_coming(table.name, begin, end):
            return
        try:
            found = self.server.sql(
                f"select {FIGURES}, std, rms from ringlog.get_statistics(%s, %s, %s)",
                [signal, begin, end],
                login=self.server.reader,
            )
        except psycopg.Error as error:
            # its first or last rows are in the archive, which SQL does not read
            if error.sqlstate == "RL003" and begin < datetime.now(UTC) - timedelta(weeks=2):
                return
            raise
        wanted = table.figures(signal, begin, end)
        if len(found) > 1 or not agree(found[0] if found else None, wanted):
            raise Different(f"get_statistics {signal} from {begin} to {end}: {found}, expected {wanted}")

    def _samples(self, draw: random.Random, table: Table) -> None:
        """Raw samples over HTTP, from PostgreSQL and the archive alike."""
        signal, _ = self._signal(draw, table)
        begin, end = self._span(draw, table)
        span = {"from": begin.isoformat(), "to": end.isoformat()}
        got = self._get("/api/v1/data", signal=signal, format="arrow", **span)
        read = pa.ipc.open_stream(got.content).read_all()
        found = [
            *zip(
                (at.astimezone(UTC) for at in read["time"].to_pylist()),
                read["value"].to_pylist(),
                strict=True,
            )
        ]
        wanted = table.readings(signal, begin, end)
        self._wanted(f"/api/v1/data of {signal} from {begin} to {end}", found, wanted)

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
