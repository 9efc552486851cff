"""Why a reading is missing: causes injected on a running server, and the answers by all ways."""

import json
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from webs import Web

from servers import RunningServer, free_port, serving

from .asking import WAYS

FACILITY = Path(__file__).with_name("why.toml")
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
"""the injected past; each mix has two hours of its own"""
SLOT, CYCLE = timedelta(minutes=1), timedelta(seconds=10)
SLOTS = 12


@pytest.fixture(scope="module")
def own(temporary_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    port = free_port()
    with serving(temporary_directory / "why", "--http", f"127.0.0.1:{port}", facility=FACILITY) as running:
        # the settings and the writers of the past
        running.sql("update ringlog.how_taken set valid_from = %s", [BEGIN - timedelta(days=1)])
        yield Web(running, f"http://127.0.0.1:{port}", "")


Span = tuple[str, datetime | None, datetime | None, int | None]


class Mix:
    """A random mix of causes in a time of its own, with the answer that is right."""

    def __init__(self, web: Web, number: int, chance: random.Random) -> None:
        self.web, self.number = web, number
        self.begin = BEGIN + number * timedelta(hours=2)
        self.end = self.begin + SLOTS * SLOT
        self.kinds = ["ok", *chance.choices(["ok", *self.KINDS], k=SLOTS - 2), "ok"]
        self.events: list[dict[str, Any]] = []
        self.wanted: list[Span] = []

    KINDS: ClassVar[list[str]] = []

    def note(
        self, kind: str, start: datetime, message: str, until: datetime | None = None, rows: int | None = None
    ) -> None:
        number = self.number * 1_000_000 + len(self.events)
        self.events.append(
            {
                "number": number,
                "time": start.isoformat(),
                "kind": kind,
                "message": message,
                "until": until and until.isoformat(),
                "rows": rows,
            }
        )

    def expect(self, cause: str, since: datetime, until: datetime | None, rows: int | None = None) -> None:
        """Adds a span; one of these causes that follows another one is the same."""
        if self.wanted and cause in (
            "refused",
            "unfit",
            "source unreadable",
            "thinned",
            "null",
            "unknown",
            "unchanged",
        ):
            for index, (other, begin, end, count) in enumerate(self.wanted):
                if other == cause and end is not None and since - end <= 1.5 * self.step:
                    self.wanted[index] = cause, begin, until, None if count is None else count + (rows or 0)
                    return
        self.wanted.append((cause, since, until, rows))

    step = CYCLE


class RowsMix(Mix):
    """Of a column of a table of rows."""

    name = "mag/current"
    table = "mag"
    KINDS: ClassVar[list[str]] = [
        "unknown",
        "writer stopped",
        "no rows from source",
        "refused",
        "thinned",
        "source lost",
        "never processed",
        "null",
        "source unreadable",
        "unfit",
    ]

    def inject(self) -> None:
        rows: list[tuple[datetime, float | None]] = []
        lasting: list[datetime] = []
        per_slot = SLOT // CYCLE
        for index, kind in enumerate(self.kinds):
            start = self.begin + index * SLOT
            end, times = start + SLOT, [start + number * CYCLE for number in range(per_slot)]
            if kind in ("ok", "source lost", "never processed", "null", "unfit"):
                rows += [(at, 1.0 if kind == "ok" else None) for at in times]
            match kind:
                case "ok":
                    for at in lasting:
                        self.expect("never processed", at, start)
                    lasting = []
                case "unknown":
                    self.expect(kind, start, end)
                case "writer stopped" | "no rows from source":
                    message = (
                        "no writer was running" if kind == "writer stopped" else "the source gave no rows"
                    )
                    self.note("gap", start, message, end, per_slot)
                    self.expect(kind, start, end, per_slot)
                case "refused":
                    for at in times:
                        self.note("refused", at, f"numeric field overflow at {at}", None, 1)
                    self.expect(kind, times[0], times[-1], per_slot)
                case "thinned":
                    self.note("thinned", times[0], "the spool was full", times[-1], per_slot)
                    self.expect(kind, times[0], times[-1], per_slot)
                case "source unreadable":
                    for at in times:
                        self.note("unread", at, "daq:read: OSError: no route to host")
                    self.expect(kind, times[0], times[-1])
                case "unfit":
                    for at in times:
                        self.note("unfit", at, "current: 'x' is no number")
                    self.expect(kind, times[0], times[-1], per_slot)
                case "source lost":
                    self.note("disconnected", start, self.name)
                    self.note("connected", end - timedelta(seconds=2), self.name)
                    self.expect(kind, start, end - timedelta(seconds=2))
                case "never processed":
                    self.note("clock", start, f"{self.name}: it has no time: it was never processed")
                    lasting.append(start)
                case "null" if not lasting:
                    self.expect(kind, start, end, per_slot)
        server = self.web.server
        with psycopg.connect(server.dsn_of(server.writer)) as connection, connection.cursor() as cursor:
            put = "select ringlog.put_mag(row(%s, %s, %s)::online.mag)"
            cursor.executemany(put, [(number % 1000 + 1, *row) for number, row in enumerate(rows)])


class SamplesMix(Mix):
    """Of a signal of a table of samples."""

    table = "vac"
    step = timedelta(seconds=1)
    KINDS: ClassVar[list[str]] = [
        "unchanged",
        "writer stopped",
        "writer silent",
        "paused",
        "retired",
        "source lost",
        "null",
        "clock",
        "never processed",
        "refused",
    ]

    def __init__(self, web: Web, number: int, chance: random.Random) -> None:
        super().__init__(web, number, chance)
        self.name = f"gauge:{number}"
        self.stops: list[tuple[datetime, datetime, bool]] = []
        # one hour has one count of dropped samples, and the file of a retired signal one begin
        for kind in ("clock", "retired"):
            for index in [index for index, each in enumerate(self.kinds) if each == kind][1:]:
                self.kinds[index] = "ok"

    def inject(self) -> None:
        server, second = self.web.server, self.step
        ((number,),) = server.sql("select ringlog.add_signal('vac', %s)", [self.name])
        long_ago = [BEGIN - timedelta(days=1), self.name]
        server.sql("update ringlog.signal set valid_from = %s where signal = %s", long_ago)
        samples: list[tuple[datetime, float | None, int, int]] = []
        lasting: list[datetime] = []
        for index, kind in enumerate(self.kinds):
            start = self.begin + index * SLOT
            end = start + SLOT
            match kind:
                case "ok":
                    samples += [(start + n * second, float(n), 0, 0) for n in range(SLOT // second)]
                case "unchanged":
                    self.unchanged(start, end, lasting)
                case "writer stopped" | "writer silent":
                    self.stops.append((start, end, kind == "writer stopped"))
                    self.expect(kind, start, end)
                case "paused" | "retired":
                    server.sql(
                        f"select ringlog.{'pause' if kind == 'paused' else 'retire'}_signal(%s)", [self.name]
                    )
                    again = "resume_signal(%s)" if kind == "paused" else "add_signal('vac', %s)"
                    server.sql(f"select ringlog.{again}", [self.name])
                    latest = "select max(number) - %s from ringlog.signal_change where signal = %s"
                    for back, moment in ((1, start), (0, end)):
                        change = f"update ringlog.signal_change set time = %s where number = ({latest})"
                        server.sql(change, [moment, back, self.name])
                    if kind == "retired":
                        entry = (
                            "update ringlog.signal set {0} = %s where signal = %s and valid_to is {1} null"
                        )
                        server.sql(entry.format("valid_to", "not"), [start, self.name])
                        server.sql(entry.format("valid_from", ""), [end, self.name])
                    self.expect(kind, start, end)
                case "source lost" | "null":
                    severity, status = (3, 0) if kind == "source lost" else (2, 7)
                    samples += [(start, None, severity, status), (end - second, 1.0, 0, 0)]
                    if kind == "source lost":
                        self.note("disconnected", start, self.name)
                        self.note("connected", end - second, self.name)
                        self.expect(kind, start, end - second)
                    elif not lasting:
                        self.expect(kind, start, end - second, 1)
                case "clock":
                    dropped = "insert into ringlog.dropped_sample values (%s, 'vac', %s, 'clock', %s, %s, 60)"
                    server.sql(dropped, [number, self.begin, start, end - second])
                    self.expect(kind, start, end - second, 60)
                case "never processed":
                    message = (
                        f"{self.name}: it has no time: it was never processed: its samples are not stored"
                    )
                    self.note("clock", start, message)
                    lasting.append(start)
                case "refused":
                    middle = start + SLOT / 2
                    self.note("refused", middle, f"signal {number} at {middle}, 7.0: out of range", None, 1)
                    self.expect(kind, middle, middle, 1)
                    self.unchanged(start, end, lasting)
            if kind in ("ok", "source lost", "null"):
                first = next(at for at, value, *_ in samples if at >= start and value is not None)
                for at in lasting:
                    self.expect("never processed", at, first)
                lasting = []
        put = "select ringlog.put_vac_batch(%s::int[], %s::bigint[], %s::float[], %s::int2[], %s::int2[])"
        nanoseconds = [round(at.timestamp()) * 10**9 for at, *_ in samples]
        columns = [[number] * len(samples), nanoseconds, *([row[i] for row in samples] for i in (1, 2, 3))]
        server.sql(put, columns, login=server.writer)

    def unchanged(self, start: datetime, end: datetime, lasting: list[datetime]) -> None:
        if not lasting:
            self.expect("unchanged", start, end)


def report(web: Web, mixes: list[Mix]) -> None:
    """Reports events and writers of the mixes as writers do; those of the past get their times."""
    server = web.server
    for table in ("mag", "vac"):
        events = [event for mix in mixes if mix.table == table for event in mix.events]
        server.sql(
            "select ringlog.report_events(%s, 'spool', %s)", [table, json.dumps(events)], login=server.writer
        )
    begin = BEGIN - timedelta(days=1)
    for mix in mixes:
        for start, end, released in mix.stops if isinstance(mix, SamplesMix) else ():
            run = "insert into ringlog.writer_run values ('vac', %s, 'daq1 process 7', %s, %s)"
            server.sql(run, [begin, start, released])
            begin = end
    claim(server, "vac")
    server.sql("update ringlog.writer set since = %s where table_name = 'vac'", [begin])
    server.sql("select ringlog.report_writer('vac', 'spool', 'writing')", login=server.writer)


def claim(server: RunningServer, table: str, spool: str = "spool") -> None:
    query = "select ringlog.claim_writer(%s, %s, 'daq1 process 7')"
    server.sql(query, [table, spool], login=server.writer)


def assert_same(found: list[tuple[Any, ...]], mix: Mix) -> None:
    """The same causes, at the same times to a second, with the same numbers of rows."""

    def seconds(span: Span) -> tuple[Any, ...]:
        cause, since, until, rows = span
        moments = [each and (each if each.tzinfo else each.replace(tzinfo=UTC)) for each in (since, until)]
        return cause, *(each and (each - BEGIN).total_seconds() for each in moments), rows

    got = sorted((seconds(span[:4]) for span in found), key=lambda span: (span[1], span[0]))
    wanted = sorted((seconds(span) for span in mix.wanted), key=lambda span: (span[1], span[0]))
    shown = f"{mix.name} {mix.kinds}\n  found {got}\n wanted {wanted}"
    assert [(span[0], span[3]) for span in got] == [(span[0], span[3]) for span in wanted], shown
    for one, other in zip(got, wanted, strict=True):
        assert one[1:3] == pytest.approx(other[1:3], abs=1.01), shown


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.long)])
def test_mixes_of_causes(own: Web, count: int) -> None:
    seed = int(os.environ.get("WHY_SEED", random.randrange(10**6)))
    print(f"WHY_SEED={seed} repeats this")
    chance = random.Random(seed)
    mixes: list[Mix] = [(RowsMix, SamplesMix)[number % 2](own, number, chance) for number in range(count)]
    own.server.sql("update ringlog.signal set valid_from = %s", [BEGIN - timedelta(days=1)])
    for mix in mixes:
        mix.inject()
    report(own, mixes)
    for number, mix in enumerate(mixes):
        # the command takes a second
        ways = WAYS if number < 6 else [WAYS[number % 3]]
        for way in ways:
            assert_same(way(own, mix.name, mix.begin, mix.end), mix)
