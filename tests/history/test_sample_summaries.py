"""Summaries of tables of samples: figures of each signal, late samples, the archive, kills, retention."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa

from ringlog.history.archive import archiving
from ringlog.history.archive.recall import recall
from ringlog.history.summaries import making_spans, sample_spans
from ringlog.history.summaries import summarising as summaries
from ringlog.history.summaries.resummarising import summarise_again
from ringlog.history.summaries.summarising import summarise
from ringlog.history.summaries.summary_table import SummaryTable
from ringlog.history.verification import problems_of
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Facility, History, Retention, SampleSignal, SampleTable
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from ringlog.schema.relations.sample_tables import merge

from .conftest import Databases, conninfo_of, template
from .trend_bins import same

NOW = datetime(2026, 6, 10, 5, 17, tzinfo=UTC)
BEGIN = datetime(2026, 4, 27, tzinfo=UTC)
"""a Monday; four of its six weeks leave PostgreSQL"""
NS = 1_777_248_000_000_000_000
"""BEGIN, in nanoseconds since 1970"""
HOUR = 3_600_000_000_000
HOURS = int((NOW - BEGIN) / timedelta(hours=1))
SIGNALS = ("dense", "rare", "alarmed", "silent")
FIGURES = "n, min, max, mean, std, rms, first, last, nans, nulls"

archive = partial(archiving.archive, pauses=0)


class Plant:
    """A database with a table of samples, `vac`, of six weeks."""

    def __init__(self, engine: sa.Engine, conninfo: str, folder: Path) -> None:
        self.engine, self.conninfo, self.folder = engine, conninfo, folder
        self.connection = psycopg.connect(conninfo, autocommit=True)
        self.connection.execute("set timezone to 'UTC'")

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement.encode(), values).fetchall()

    def number(self, signal: str) -> int:
        ((number,),) = self.rows("select number from ringlog.sample_signal where signal = %s", signal)
        return int(number)

    def put(
        self, signal: str, samples: dict[int, float | None], alarms: dict[int, int] | None = None
    ) -> None:
        """Samples by their time in nanoseconds after BEGIN."""
        self.rows(
            "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s::float8[], %s::smallint[])",
            [self.number(signal)] * len(samples),
            [NS + each for each in samples],
            [*samples.values()],
            [(alarms or {}).get(each, 0) for each in samples],
        )

    def summarise(self) -> int:
        return summarise(self.conninfo, NOW, enough=1).get("vac", 0)

    def without_summaries(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The answer computed from the samples."""
        with self.connection.transaction(force_rollback=True):
            self.connection.execute("update ringlog.summarised set until = null")
            return self.rows(query, *values)

    def same(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The answer by summaries, after a comparison with that from the samples."""
        found = self.rows(query, *values)
        if wanted := self.without_summaries(query, *values):
            same(found, wanted, rel=1e-9)
        else:
            assert found == wanted
        return found

    def compare(self) -> None:
        """Trends, statistics and values at intervals of all signals."""
        for signal in SIGNALS:
            for start, end, points in (
                (BEGIN, NOW, 40),
                (BEGIN + timedelta(hours=7, minutes=12), NOW - timedelta(minutes=3), 300),
                (BEGIN + timedelta(days=2), BEGIN + timedelta(days=9), 1),
            ):
                self.same("select * from ringlog.get_trend(%s, %s, %s, %s)", signal, start, end, points)
                self.same(f"select {FIGURES} from ringlog.get_statistics(%s, %s, %s)", signal, start, end)
            self.same("select * from ringlog.get_signal(%s, %s, %s, null, 86400)", signal, BEGIN, NOW)


@pytest.fixture(scope="module")
def filled(prepared_databases: Databases) -> Iterator[str]:
    tables = (SampleTable("vac", ColumnType.of("double"), signals=tuple(map(SampleSignal, SIGNALS))),)
    history = History(Retention(2, "week"), "/nowhere")
    facility = Facility("test", "UTC", (), history=history, sample_tables=tables)
    with template(prepared_databases, facility, fill) as name:
        yield name


@pytest.fixture
def plant(filled: str, engine: sa.Engine, conninfo: str, tmp_path: Path) -> Plant:
    folder = tmp_path / "archive"
    folder.mkdir()
    plant = Plant(engine, conninfo, folder)
    plant.connection.execute("update ringlog.history set archive = %s", [str(folder)])
    return plant


def fill(engine: sa.Engine, connection: psycopg.Connection) -> None:
    plant = Plant(engine, connection.info.dsn, Path())
    chance = random.Random(7)
    values = [*(chance.gauss(3, 2) for _ in range(20)), float("nan"), None]
    dense = {
        each * HOUR // 3 + chance.randrange(10**9): chance.choice(values) for each in range(3 * HOURS - 9)
    }
    plant.put("dense", dense)
    plant.put("rare", {each * 71 * HOUR + 5: each / 7 for each in range(14)})
    alarmed = {each * HOUR + 7: float(each % 24) for each in range(HOURS - 3)}
    plant.put("alarmed", alarmed, {each: 1 + each // HOUR % 3 for each in alarmed if each // HOUR % 100 > 96})
    merge(plant.engine)
    for week in range(6):
        plant.rows("select ringlog.make_week('vac', %s)", BEGIN + timedelta(weeks=week))
    plant.connection.close()


def test_trends_and_statistics_are_those_of_the_samples(plant: Plant) -> None:
    before = plant.rows("select n from ringlog.get_statistics('dense', %s, %s)", BEGIN, NOW)
    assert plant.summarise() > 0
    assert plant.summarise() == 0
    plant.compare()
    assert plant.rows("select n from ringlog.get_statistics('dense', %s, %s)", BEGIN, NOW) == before
    # one span of each, as the views have it
    day = BEGIN + timedelta(days=3)
    number = str(plant.number("alarmed"))
    assert plant.rows(
        "select n, min, max, mean from day.vac where column_name = %s and time = %s", number, day
    ) == [(24, 0.0, 23.0, 11.5)]
    assert plant.rows(
        "select count(*) from hour.vac where column_name = %s", str(plant.number("silent"))
    ) == [(0,)]
    severities = "select time, max, last from day.vac where column_name = %s order by max desc, time limit 1"
    # hours 97 to 99 have the severities 2, 3 and 1
    assert plant.rows(severities, f"{number}.severity") == [(BEGIN + timedelta(days=4), 3.0, 0.0)]
    assert [*problems_of(plant.connection)] == []


def test_answers_are_read_from_summaries(plant: Plant) -> None:
    plant.summarise()
    plant.rows("update summary.vac set max = array_fill(99::float8, array[cardinality(max)]) returning 1")
    assert plant.rows("select max from ringlog.get_statistics('rare', %s, %s)", BEGIN, NOW) == [(99.0,)]
    trend = plant.rows("select max from ringlog.get_trend('alarmed', %s, %s, 45)", BEGIN, NOW)
    assert {value for (value,) in trend[:-2]} == {99.0}


def test_late_samples_correct_the_summaries_of_their_signal(plant: Plant) -> None:
    plant.summarise()
    at = 50 * HOUR + 11
    plant.put("rare", {at: -100.0})
    marks = "select time, column_name from ringlog.summary_mark"
    assert plant.rows(marks) == [(BEGIN + timedelta(hours=50), str(plant.number("rare")))]
    # before the round too
    plant.compare()
    assert plant.summarise() == 1
    assert plant.rows(marks) == []
    plant.compare()
    assert plant.rows("select min from ringlog.get_statistics('rare', %s, %s)", BEGIN, NOW) == [(-100.0,)]
    assert [*problems_of(plant.connection)] == []
    # again, which changes nothing
    plant.put("rare", {at: -100.0})
    plant.summarise()
    plant.compare()


def test_samples_of_a_new_signal(plant: Plant) -> None:
    plant.summarise()
    plant.rows("select ringlog.add_signal('vac', 'new')")
    plant.put("new", {3 * HOUR: 5.0, 900 * HOUR: 7.0})
    plant.same("select * from ringlog.get_trend('new', %s, %s, 40)", BEGIN, NOW)
    plant.summarise()
    assert plant.same("select n, mean from ringlog.get_statistics('new', %s, %s)", BEGIN, NOW) == [(2, 6.0)]
    plant.compare()


def test_a_call_of_many_signals_marks_all(plant: Plant) -> None:
    plant.summarise()
    names = [f"more:{each}" for each in range(101)]
    numbers = [plant.rows("select ringlog.add_signal('vac', %s)", name)[0][0] for name in names]
    plant.rows(
        "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s::float8[])",
        numbers,
        [NS + 5] * 101,
        [float(each) for each in range(101)],
    )
    assert plant.rows("select time, column_name from ringlog.summary_mark") == [(BEGIN, None)]
    plant.summarise()
    assert plant.same("select n, mean from ringlog.get_statistics('more:7', %s, %s)", BEGIN, NOW) == [
        (1, 7.0)
    ]
    plant.compare()


def test_archived_weeks(plant: Plant) -> None:
    figures = f"select {FIGURES} from ringlog.get_statistics(%s, %s, %s)"
    merge(plant.engine)
    # not before they are summarised
    assert [*archive(plant.conninfo, NOW)] == []
    plant.summarise()
    before = {signal: plant.same(figures, signal, BEGIN, NOW) for signal in SIGNALS}
    assert len([*archive(plant.conninfo, NOW)]) == 4
    # the archive server does not run: only summaries have these
    for signal in SIGNALS:
        assert plant.rows(figures, signal, BEGIN, NOW) == before[signal]
        assert (
            plant.rows("select * from ringlog.get_trend(%s, %s, %s, 40)", signal, BEGIN, NOW)[:1]
            or signal == "silent"
        )
    # a late one, which the round reads from the log, and the next from the file
    plant.put("rare", {30 * HOUR: 1000.0})
    plant.put("alarmed", {30 * HOUR + 9: 1000.0}, {30 * HOUR + 9: 3})
    for merged in (["merged 2 late rows into vac/2026w18-2.parquet, 0 were there already"], []):
        assert plant.summarise() > 0
        ((n, low, high, *_),) = plant.rows(figures, "rare", BEGIN, NOW)
        assert (n, low, high) == (before["rare"][0][0] + 1, 0.0, 1000.0)
        severities = "select max, last from day.vac where column_name = %s and time = %s"
        number = f"{plant.number('alarmed')}.severity"
        assert plant.rows(severities, number, BEGIN + timedelta(days=1)) == [(3.0, 0.0)]
        assert [*archive(plant.conninfo, NOW)] == merged
        with plant.connection.transaction():
            plant.connection.execute("insert into ringlog.summary_mark values ('vac', %s)", [BEGIN])
            plant.connection.execute(
                "insert into ringlog.summary_mark values ('vac', %s)", [BEGIN + timedelta(hours=30)]
            )
    week = [*summarise_again(plant.conninfo, "vac", BEGIN, BEGIN + timedelta(weeks=1), NOW)]
    assert week == [(BEGIN, 504 + 3 + 168 + 2)]
    [*recall(plant.conninfo, "vac", BEGIN, NOW, timedelta(days=7))]
    plant.summarise()
    plant.compare()
    assert [*problems_of(plant.connection)] == []


@pytest.mark.long
def test_killed_at_any_moment(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[tuple[Any, str]] = [
        (summaries, "_closed"),
        (summaries, "make_part"),
        (SummaryTable, "store"),
        (making_spans, "_make_longer"),
    ]
    for late in (False, True):
        for target, name in places:
            if late:
                plant.put("rare", {len(name) * HOUR + 3: 2.0})
            work: Callable[..., object] = getattr(target, name)

            def killed(*values: object, work: Callable[..., object] = work, **named: object) -> object:
                work(*values, **named)
                raise KeyboardInterrupt

            with monkeypatch.context() as patched:
                patched.setattr(target, name, killed)
                with pytest.raises(KeyboardInterrupt):
                    plant.summarise()
            plant.compare()
        plant.summarise()
        plant.compare()
    assert [*problems_of(plant.connection)] == []


def test_summaries_remain_after_the_retention_of_samples(plant: Plant) -> None:
    plant.summarise()
    trend = "select * from ringlog.get_trend('alarmed', %s, %s, 45)"
    before = plant.rows(trend, BEGIN, NOW)
    with plant.connection.transaction():
        plant.rows("select set_config('role', 'ringlog_owner', true)")
        plant.rows("update ringlog.sample_table set retention = '3 weeks' returning 1")
    assert maintain(plant.engine, NOW).set_aside
    assert len(plant.rows("select from log.vac where signal = 'alarmed'")) == HOURS - 3 - 3 * 7 * 24
    assert plant.rows(trend, BEGIN, NOW) == before
    # one that arrives for an expired week
    plant.put("alarmed", {5: 77.0})
    plant.summarise()
    assert plant.rows(trend, BEGIN, NOW) == before


def test_texts_have_no_summaries(engine: sa.Engine, tmp_path: Path) -> None:
    table = SampleTable("notes", ColumnType.of("text"), signals=(SampleSignal("note"),))
    install(engine, Facility("test", "UTC", (), sample_tables=(table,)))
    with engine.begin() as connection:
        put = "select ringlog.put_notes('note', '2026-03-02 12:00+00', 'x')"
        connection.exec_driver_sql(put)
    assert summarise(conninfo_of(engine.url), NOW, enough=1) == {}


def test_spans_of_blocks_that_overlap() -> None:
    """Samples in two parts are one span, and severities of spans without an alarm are 0."""

    def part(times: list[int], values: list[float], severities: list[int]) -> sample_spans.Samples:
        return sample_spans.Samples(
            np.array([4] * len(times)),
            np.array(times),
            np.array(values),
            np.zeros(len(times), bool),
            np.array(severities, float),
        )

    parts = [part([1, 5], [1.0, 3.0], [0, 0]), part([7, HOUR + 1], [5.0, 9.0], [0, 2])]
    rows, spans = sample_spans.spans_of(parts, [2, 4], 3600)
    assert rows == 4
    assert spans is not None
    assert spans.numbers.tolist() == [0, 1]
    assert spans.n.tolist() == [[0, 3, 0, 3], [0, 1, 0, 1]]
    assert (spans.mean[0, 1], spans.squares[0, 1], spans.first[0, 1], spans.last[0, 1]) == (
        3.0,
        8.0,
        1.0,
        5.0,
    )
    stored = sample_spans.without_alarms(spans)
    assert stored.n.tolist() == [[0, 3, 0, 0], [0, 1, 0, 1]]
    again = sample_spans.filled(stored)
    assert again.n.tolist() == spans.n.tolist()
    assert again.max[:, 3].tolist() == [0.0, 2.0]
