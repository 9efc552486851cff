"""Operators have the same results from summaries as from rows."""

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo

from ringlog.history.summaries.summarising import summarise
from ringlog.retrieval import samples as samples_of
from ringlog.retrieval.appliance.operators import FIGURES, processed
from ringlog.retrieval.appliance.pattern import parse_pv
from ringlog.retrieval.samples import Samples, samples, thinned
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.access import Login
from ringlog.retrieval.serving.connections import Connections
from ringlog.retrieval.signals import Signal, describe
from ringlog.retrieval.summarised import Summarised, summarised
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, SampleSignal, SampleTable, Table
from ringlog.schema.installing.install import install
from ringlog.schema.moments import MICROSECOND

BEGIN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
HOURS = 14
NOW = BEGIN + timedelta(hours=HOURS, minutes=7)

COLUMNS = (
    Column("field", "m/field", "double"),
    Column("current", "m/current", "real"),
    Column("severity", "m/current.SEVR", "smallint"),
    Column("steps", "m/steps", "int"),
    Column("rare", "m/rare", "real"),
)
SIGNALS = [column.signal for column in COLUMNS if column.name != "severity"]
OPERATORS = sorted({*FIGURES, "firstSample", "lastSample", "firstFill", "lastFill"} - {"stats6"})

Event = tuple[int, int, object]
"""time, severity, value"""


@pytest.fixture
def servers(database_url: sa.URL, engine: sa.Engine) -> Iterator[tuple[Servers, psycopg.Connection, str]]:
    """Rows every 20 s, some of them two of one time, with hours without rows, and hours of rows without a
    reading."""
    install(engine, Facility("test", "UTC", (Table("m", 9, 20.0, COLUMNS, summaries=(60, 600, 3600)),)))
    conninfo = make_conninfo(user=database_url.username, dbname=database_url.database, **database_url.query)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        with connection.transaction():
            put(connection, random.Random(1), range(0, HOURS * 180))
        # a little later, so that the spans of the last minute are over
        summarise(conninfo, NOW + timedelta(minutes=3), enough=1)
        connections = Connections()
        with closing(connections), Servers(connections, login(conninfo)) as found:
            yield found, connection, conninfo


def login(conninfo: str) -> Login:
    return Login("admin", conninfo, lambda node: login(conninfo))


def put(connection: psycopg.Connection, chance: random.Random, places: range | list[int]) -> None:
    rows = []
    for number in places:
        hour = number // 180 % 10
        if hour == 3 or (hour == 7 and number % 180 > 3):
            continue
        moment = BEGIN + timedelta(seconds=20 * number, microseconds=chance.randrange(10**6))
        field = {5: "NaN", 6: None}.get(hour, chance.gauss(1e6, 1))
        current = chance.choice((None, "NaN", 1.5, -2.25)) if hour in (4, 5) else chance.gauss(10, 3)
        severity = None if hour == 2 else int(hour == 1 and chance.random() < 0.1) * chance.randint(1, 3)
        rows.append((2, moment, field, current, severity, chance.randint(-5, 5), None if hour else 1.0))
        if number % 5 == 0:
            # of one time, and before it in the log's order
            rows.append((1, moment, field, current, severity, chance.randint(-5, 5), None))
    with connection.cursor() as cursor:
        cursor.executemany("select ringlog.put_m(row (%s, %s, %s, %s, %s, %s, %s)::online.m)", rows)


def events(
    servers: Servers, signal: Signal, pv: str, start: datetime, end: datetime, both: bool
) -> list[object]:
    """Time, severity and value of each event; of rows alone, or of summaries too."""
    read: Iterator[Samples] = samples(servers, signal, start, end + MICROSECOND, before=True)
    summaries = partial(summarised, servers, signal, start, end, before=True)
    given = (summaries, partial(thinned, servers, signal, start, end, before=True)) if both else ()
    found: list[Event] = []
    for part in processed(read, parse_pv(pv), start, end, NOW, *given):
        severities = [0] * len(part) if part.severity is None else part.severity.tolist()
        found += zip(part.nanoseconds.tolist(), severities, part.values.to_pylist(), strict=True)
    return found


def same(one: list[Event], other: list[Event]) -> None:
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        assert mine[:2] == theirs[:2], (mine, theirs)
        values = [np.array(value, float) for value in (mine[2], theirs[2])]
        np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-9)


def test_operators_have_the_same_results(
    servers: tuple[Servers, psycopg.Connection, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples_of, "_FEW_IN_A_BIN", 2)
    found, connection, conninfo = servers
    chance = random.Random(2)
    signals = describe(found, SIGNALS)
    for step in range(3):
        for _ in range(20):
            width = chance.choice((60, 120, 600, 3600, 7200, 90, 1800, 241, 2419, 5000, 11_111))
            operator = chance.choice(OPERATORS)
            number = chance.choice((5, 50, 5000)) if operator.startswith("optim") else width
            pv = f"{operator}_{number}({chance.choice(SIGNALS)})"
            start = BEGIN + timedelta(seconds=chance.uniform(-4000, HOURS * 3000))
            if chance.random() < 0.3:
                start = datetime.fromtimestamp(int(start.timestamp()) // width * width, UTC)
            end = start + timedelta(seconds=chance.uniform(1, HOURS * 3600))
            signal = signals[parse_pv(pv).signal]
            of_rows, of_both = (events(found, signal, pv, start, end, both) for both in (False, True))
            try:
                same(of_both, of_rows)
            except AssertionError as error:
                raise AssertionError(f"{pv} from {start} to {end}") from error
            found.first.rollback()
        if step == 0:
            # late rows, which summaries do not have yet
            put(connection, chance, [chance.randrange(HOURS * 180) for _ in range(40)])
        else:
            summarise(conninfo, NOW + timedelta(minutes=3), enough=1)


def test_most_is_read_from_summaries(servers: tuple[Servers, psycopg.Connection, str]) -> None:
    found, _, _ = servers
    signals = describe(found, SIGNALS)
    span = BEGIN, BEGIN + timedelta(hours=HOURS)
    known = summarised(found, signals["m/field"], *span, 3600, lambda stream, begin: stream, before=True)
    assert known is not None
    assert known.samples > 0.6 * HOURS * 180

    def of_width(signal: str, width: int) -> Summarised | None:
        return summarised(found, signals[signal], *span, width, lambda stream, begin: stream, before=True)

    assert of_width("m/field", 61) is None
    # of whole spans of several lengths, and of the rows at the ends of bins
    for width in (241, 2419, 5000):
        tiled = of_width("m/current", width)
        assert tiled is not None
        assert tiled.samples > 0.5 * HOURS * 180


SAMPLED = ("v/dense", "v/rare", "v/alarmed", "v/none")


@pytest.fixture
def of_samples(database_url: sa.URL, engine: sa.Engine) -> Iterator[tuple[Servers, psycopg.Connection, str]]:
    """Samples of 20 days, of which the last hours have no summaries."""
    tables = (SampleTable("v", ColumnType.of("double"), signals=tuple(map(SampleSignal, SAMPLED))),)
    install(engine, Facility("test", "UTC", (), sample_tables=tables))
    conninfo = make_conninfo(user=database_url.username, dbname=database_url.database, **database_url.query)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        put_samples(connection, random.Random(3), 3)
        # the samples are from the times before and after
        connection.execute("update ringlog.signal set valid_from = %s", [BEGIN + timedelta(days=9)])
        connection.execute("update ringlog.sample_signal set listed = false")
        connection.execute("""select ringlog.change_signal('v/dense', '{"limits": [0, 1]}')""")
        connection.execute("""select ringlog.change_signal('v/alarmed', '{"unit": "A"}')""")
        connection.execute(
            "update ringlog.signal set valid_to = valid_from + interval '1 day' where valid_to is not null"
        )
        connection.execute(
            "update ringlog.signal as later set valid_from = earlier.valid_to from ringlog.signal as earlier"
            " where later.signal = earlier.signal and later.valid_to is null and earlier.valid_to is not null"
        )
        summarise(conninfo, BEGIN + timedelta(days=20), enough=1)
        connections = Connections()
        with closing(connections), Servers(connections, login(conninfo)) as found:
            yield found, connection, conninfo


def put_samples(connection: psycopg.Connection, chance: random.Random, each: int) -> None:
    hour = 3_600_000_000_000
    begin = int(BEGIN.timestamp()) * 10**9
    for name in SAMPLED[:-1]:
        hours = [h for h in range(480) if name != "v/rare" or h % 50 == 7]
        times = [begin + h * hour + chance.randrange(hour) for h in hours for _ in range(each)]
        severities = [
            chance.randint(0, 3) if name == "v/alarmed" and (time - begin) // hour % 90 > 80 else 0
            for time in times
        ]
        values = [chance.choice((None, float("nan"), chance.gauss(0, 1), 7.0)) for _ in times]
        connection.execute(
            "select ringlog.put_v_batch(array_fill(number, array[%s]), %s::bigint[], %s::float8[],"
            " %s::smallint[]) from ringlog.sample_signal where signal = %s",
            [len(times), times, values, severities, name],
        )


def test_operators_on_samples_have_the_same_results(
    of_samples: tuple[Servers, psycopg.Connection, str],
) -> None:
    found, connection, conninfo = of_samples
    chance = random.Random(4)
    signals = describe(found, SAMPLED)
    used = 0
    # limits of one and the unit of the other have changed
    change = BEGIN + timedelta(days=10)
    for name, begin, unit in (("v/dense", BEGIN, ""), ("v/alarmed", BEGIN, ""), ("v/alarmed", change, "A")):
        span = begin, BEGIN + timedelta(days=18)
        made = summarised(found, signals[name], *span, 3600, lambda stream, begin: stream, before=False)
        assert made is not None
        assert made.samples > 500
        assert made.location.unit == unit
    for step in range(3):
        for _ in range(25):
            width = chance.choice((3600, 7200, 86_400, 172_800, 5000, 600))
            operator = chance.choice(OPERATORS)
            number = chance.choice((5, 50)) if operator.startswith("optim") else width
            pv = f"{operator}_{number}({chance.choice(SAMPLED)})"
            start = BEGIN + timedelta(seconds=chance.uniform(-90_000, 8 * 86_400))
            if chance.random() < 0.3:
                start = datetime.fromtimestamp(int(start.timestamp()) // width * width, UTC)
            end = start + timedelta(seconds=chance.uniform(1, 12 * 86_400))
            signal = signals[parse_pv(pv).signal]
            of_rows, of_both = (events(found, signal, pv, start, end, both) for both in (False, True))
            try:
                same(of_both, of_rows)
            except AssertionError as error:
                raise AssertionError(f"{pv} from {start} to {end}") from error
            made = summarised(found, signal, start, end, 3600, lambda stream, begin: stream, before=True)
            used += 0 if made is None else made.samples
            found.first.rollback()
        if step == 0:
            put_samples(connection, chance, 1)
        else:
            summarise(conninfo, BEGIN + timedelta(days=20), enough=1)
    assert used > 5000
