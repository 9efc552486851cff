"""Archived weeks of tables of rows, numbers, texts and waveforms: both tiers together always have every row
once."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from kills import killed_around

from ringlog.history import sampled
from ringlog.history.archive import archiving, leaving, merging
from ringlog.history.archive.addresses import NAMESPACE
from ringlog.history.archive.iceberg import catalog, publish
from ringlog.history.archive.manifest import ColdWeek
from ringlog.history.archive.ownership import adopt
from ringlog.history.archive.recall import recall
from ringlog.history.archive.restoring import restore
from ringlog.history.archive.round import Round
from ringlog.history.archive.stored import Rows
from ringlog.history.connection import connect
from ringlog.history.reading import read
from ringlog.history.signals import locations
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, History, Retention, SampleSignal, SampleTable, Table
from ringlog.schema.relations.partitions import Week, maintain
from ringlog.schema.relations.sample_tables import merge

from .conftest import Databases, conninfo_of, running, template

NOW = datetime(2026, 6, 10, tzinfo=UTC)
BEGIN = datetime(2026, 4, 27, tzinfo=UTC)
"""a Monday; four of its six weeks leave PostgreSQL"""
NS = 1_777_248_000_000_000_000
"""BEGIN, in nanoseconds since 1970"""
HOUR = 3_600_000_000_000
WEEKS = ["2026w18", "2026w19", "2026w20", "2026w21"]
SIGNALS = ("gauge:1", "gauge:2", "gauge:silent", "gauge:never")
TABLES = ("magnet", "traces", "vac", "words")

archive = partial(archiving.archive, pauses=0)
Samples = list[tuple[Any, ...]]


class Plant:
    """A database with a table of rows, `magnet`, and tables of samples: of numbers, `vac`, texts, `words`,
    and waveforms, `traces`."""

    def __init__(self, url: sa.URL, engine: sa.Engine, folder: Path) -> None:
        self.url, self.engine, self.folder = url, engine, folder
        self.conninfo = conninfo_of(url)
        self.connection = psycopg.connect(self.conninfo, autocommit=True)
        self.connection.execute("set timezone to 'UTC'")
        self.number = dict(self.rows("select signal, number from ringlog.sample_signal"))

    def rows(self, statement: str, *values: object) -> Samples:
        return self.connection.execute(statement.encode(), values or None).fetchall()

    def put(self, signal: str, after: int, value: float | None, severity: int = 0) -> None:
        """A sample this many nanoseconds after BEGIN."""
        self.rows(
            "select ringlog.put_vac_batch(array[%s]::integer[], array[%s], array[%s]::double precision[],"
            " array[%s]::smallint[])",
            *(self.number[signal], NS + after, value, severity),
        )

    def put_row(self, after: timedelta, current: float | None, seq_no: int = 1) -> None:
        """A row this long after BEGIN."""
        self.rows(
            "select ringlog.put_magnet(row (%s, %s, %s, 1)::online.magnet)", seq_no, BEGIN + after, current
        )

    def fill(self) -> None:
        """Samples of six weeks: one per two hours, of another signal one week only, and words."""
        random = np.random.default_rng(53)
        for signal, n in (("gauge:1", 504), ("gauge:2", 504), ("gauge:silent", 84)):
            times = [NS + k * 2 * HOUR + int(random.integers(HOUR)) for k in range(n)]
            values = [None if k % 50 == 7 else float("nan") if k % 50 == 9 else k / 7 for k in range(n)]
            severities = [k % 40 // 39 for k in range(n)] if signal == "gauge:1" else [0] * n
            self.rows(
                "select ringlog.put_vac_batch(%s::integer[], %s, %s, %s::smallint[])",
                *([self.number[signal]] * n, times, values, severities),
            )
        self.rows(
            "select ringlog.put_words_batch(array_agg(%s::integer), array_agg(%s + n * %s),"
            " array_agg('weiß ' || n)) from generate_series(0, 41) as n",
            *(self.number["state"], NS, 24 * HOUR),
        )
        waves = [None if day % 10 == 7 else [day / 7] * (day % 4) for day in range(41)]
        self.rows(
            "select ringlog.put_traces_batch(%s::integer[], %s, %s, lengths => %s::integer[],"
            " statuses => %s::smallint[])",
            [self.number["trace"]] * 41,
            [NS + day * 24 * HOUR + 5 for day in range(41)],
            [point for wave in waves for point in wave or ()],
            [None if wave is None else len(wave) for wave in waves],
            [day % 3 for day in range(41)],
        )
        self.rows(
            "insert into weeks.magnet select 1, %s + n * interval '2 hours',"
            " case when n %% 7 = 0 then 'NaN' when n %% 11 = 0 then null else sin(n) end, n"
            " from generate_series(0, 503) as n returning 1",
            BEGIN,
        )
        maintain(self.engine, NOW)
        # as if housekeeping had merged the blocks
        self.rows("update ringlog.sample_table set merged_until = now() returning 1")

    def archive(self) -> list[str]:
        summarise(self.conninfo, NOW, enough=1)
        return [*archive(self.conninfo, NOW)]

    def read(
        self, signal: str, start: datetime = BEGIN, end: datetime = NOW, limit: int | None = None
    ) -> Samples:
        """Read as by HTTP and export: nanoseconds after BEGIN, value, severity."""
        with closing(connect(self.conninfo)) as connection:
            (location,) = locations(connection, [signal])[signal]
            batches = [*sampled.read(connection, location, start, end, limit)]
            assert all(batch.num_rows for batch in batches)
            n = sum(batch.num_rows for batch in batches)
            assert limit is not None or sampled.count(connection, location, start, end) >= n
        return [
            (
                (row["time"] - BEGIN) // timedelta(microseconds=1) * 1000 + row["nanoseconds"],
                "NaN" if row[location.column] != row[location.column] else row[location.column],
                row["severity"],
            )
            for batch in batches
            for row in batch.to_pylist()
        ]

    def newest(self, signal: str, before: datetime) -> list[dict[str, Any]]:
        with closing(connect(self.conninfo)) as connection:
            (location,) = locations(connection, [signal])[signal]
            found = sampled.newest(connection, location, before)
            return [] if found is None else found.to_pylist()

    def rows_of_magnet(self) -> Samples:
        batches = read(self.conninfo, "magnet", ["seq_no", "current", "count"])
        rows = [row.values() for batch in batches for row in batch.to_pylist()]
        return [tuple("NaN" if value != value else value for value in row) for row in rows]

    def all(self) -> dict[str, Samples]:
        samples = {signal: self.read(signal) for signal in (*SIGNALS, "state", "trace")}
        return samples | {"magnet": self.rows_of_magnet()}

    def in_sql(self) -> list[Samples]:
        """The answers of procedures and views. Numbers are texts: NaN is not equal to itself."""
        part = [BEGIN + timedelta(days=24, hours=5), BEGIN + timedelta(days=30)]
        instants = [BEGIN - timedelta(days=1), BEGIN + timedelta(days=9.1), *part, NOW]
        # means do not depend on the order of additions
        trend = "select time, n, min, max, round(mean::numeric, 9), first, last, nans, nulls"
        trend += " from ringlog.get_trend('gauge:2', %s, %s, 20)"
        answers = [
            *(self.rows("select got::text from ringlog.get_vac(%s) as got", name) for name in SIGNALS),
            *(self.rows("select got::text from ringlog.get_vac_at(%s) as got", at) for at in instants),
            self.rows("select got::text from ringlog.get_vac('gauge:1', %s, %s) as got", *part),
            self.rows("select got::text from ringlog.get_words('state', max_rows => 30) as got"),
            self.rows("select got::text from ringlog.get_signal('gauge:2', %s, %s) as got", *part),
            self.rows("select got::text from ringlog.get_signal('gauge:2') as got"),
            *(self.rows("select got::text from ringlog.get_latest(%s) as got", name) for name in SIGNALS),
            self.rows("select signal, state, time from ringlog.last_vac()"),
            self.rows(
                "select number, count(*), count(value), sum(severity) from log.vac group by 1 order by 1"
            ),
            self.rows("select count(*), min(time), max(time) from log.vac where time < %s", part[1]),
            self.rows("select signal, time, value from log.words order by time desc limit 33"),
            self.rows(
                "select time, nanoseconds from log.vac where number = %s order by time desc limit 500",
                self.number["gauge:2"],
            ),
            self.rows(trend, BEGIN, NOW),
            self.rows("select got::text from ringlog.get_traces('trace') as got"),
            *(self.rows("select got::text from ringlog.get_traces_at(%s) as got", at) for at in instants),
            *(
                self.rows("select got::text from ringlog.get_waveform('trace', %s) as got", at)
                for at in instants
            ),
            self.rows("select got::text from ringlog.get_waveforms('trace', %s, %s) as got", *part),
            self.rows("select got::text from ringlog.get_magnet_range(%s, %s) as got", *part),
            *(self.rows("select got::text from ringlog.get_magnet_at(%s) as got", at) for at in instants),
            self.rows("select count(*), sum(count), min(time), max(time) from log.magnet"),
        ]
        assert all(answers[number] for number in (0, 1, 2, 6, 7, 8, 9, 10, 11, 12))
        return answers


def fill(engine: sa.Engine, _: psycopg.Connection) -> None:
    plant = Plant(engine.url, engine, Path())
    with plant.connection:
        plant.fill()


@pytest.fixture(scope="module")
def filled(prepared_databases: Databases) -> Iterator[str]:
    tables = (
        SampleTable("vac", ColumnType.of("double"), signals=tuple(map(SampleSignal, SIGNALS))),
        SampleTable("words", ColumnType.of("text"), signals=(SampleSignal("state"),)),
        SampleTable("traces", ColumnType.of("double[]"), signals=(SampleSignal("trace"),), points=9),
    )
    history = History(Retention(2, "week"), "/nowhere")
    columns = Column("current", "magnet/current", "double"), Column("count", "magnet/count", "int")
    magnet = Table("magnet", 10, 1.0, columns, summaries=(3600, 86_400))
    facility = Facility("test", "UTC", (magnet,), sample_tables=tables, history=history)
    with template(prepared_databases, facility, fill) as name:
        yield name


@contextmanager
def made(url: sa.URL, folder: Path) -> Iterator[Plant]:
    plant = Plant(url, sa.create_engine(url), folder)
    with plant.connection:
        plant.connection.execute("update ringlog.history set archive = %s", [str(folder)])
        yield plant
    plant.engine.dispose()


@pytest.fixture
def plant(filled: str, database_url: sa.URL, tmp_path: Path) -> Iterator[Plant]:
    with made(database_url, tmp_path / "archive") as plant:
        yield plant


@pytest.fixture(scope="module")
def cold(
    filled: str, copied_databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """The name of a database whose old weeks are archived, and its archive; tests get copies."""
    with copied_databases(filled) as url, made(url, tmp_path_factory.mktemp("cold") / "archive") as plant:
        plant.archive()
        plant.connection.close()
        plant.engine.dispose()
        yield str(url.database), plant.folder


@pytest.fixture
def archived(cold: tuple[str, Path], copied_databases: Databases, tmp_path: Path) -> Iterator[Plant]:
    """A plant whose four old weeks are in the archive."""
    database, folder = cold
    shutil.copytree(folder, tmp_path / "archive")
    with copied_databases(database) as url, made(url, tmp_path / "archive") as plant:
        [*adopt(plant.conninfo)]
        yield plant


def test_every_reading_has_both_tiers(plant: Plant) -> None:
    before, in_sql = plant.all(), plant.in_sql()
    middle = BEGIN + timedelta(days=24, hours=5)
    pieces = [plant.read("gauge:1", middle, NOW, limit) for limit in (1, 40, 84, 200)]
    instants = [BEGIN, middle, BEGIN + timedelta(days=3, hours=12), NOW]
    instants += [BEGIN + timedelta(hours=2 * k + 2) for k in (6, 7, 8, 39)]
    newest = [plant.newest(name, at) for name in ("gauge:1", "gauge:silent", "state") for at in instants]

    lines = plant.archive()
    assert [line.split(":")[0] for line in lines] == [
        f"archived log.{table}_{week}" for table in TABLES for week in WEEKS
    ]
    assert plant.rows("select min(time) from weeks.vac")[0][0] >= datetime(2026, 5, 25, tzinfo=UTC)
    assert plant.all() == before
    assert [plant.read("gauge:1", middle, NOW, limit) for limit in (1, 40, 84, 200)] == pieces
    assert newest == [
        plant.newest(name, at) for name in ("gauge:1", "gauge:silent", "state") for at in instants
    ]
    with running(plant.url):
        assert plant.in_sql() == in_sql
    # any tool reads the files, in the order of signals
    file = pq.read_table(plant.folder / "vac/2026w18.parquet")
    assert file.schema.names == ["number", "time", "nanoseconds", "value", "severity", "status"]
    times = [(row["number"], row["time"], row["nanoseconds"]) for row in file.to_pylist()]
    assert times == sorted(times)
    assert len(times) == 3 * 84
    assert b"gauge:silent" in file.schema.metadata[b"ringlog.signals"]


def test_iceberg_tables_have_the_archived_samples(archived: Plant) -> None:
    plant = archived
    assert [*publish(plant.conninfo)] == [
        "published log.magnet: 4 weeks more, 0 fewer; 4 with 336 rows",
        "published log.traces: 4 weeks more, 0 fewer; 4 with 28 rows",
        "published log.vac: 4 weeks more, 0 fewer; 4 with 756 rows",
        "published log.words: 4 weeks more, 0 fewer; 4 with 28 rows",
    ]
    # a late sample makes another file, which the round publishes
    plant.put("gauge:2", 8 * 24 * HOUR + 1, 2.5, 2)
    assert "published log.vac: 1 weeks more, 1 fewer; 4 with 757 rows" in plant.archive()
    tables = catalog(plant.conninfo, str(plant.folder))
    names = {number: name for name, number in plant.number.items()}
    found: dict[str, Samples] = {name: [] for name in plant.number}
    for table in ("traces", "vac", "words"):
        rows = tables.load_table((NAMESPACE, table)).scan().to_arrow()
        assert rows.schema.names == ["number", "time", "nanoseconds", "value", "severity", "status"]
        for row in rows.sort_by([("time", "ascending"), ("nanoseconds", "ascending")]).to_pylist():
            after = (row["time"] - BEGIN) // timedelta(microseconds=1) * 1000 + row["nanoseconds"]
            value = "NaN" if row["value"] != row["value"] else row["value"]
            found[names[row["number"]]].append((after, value, row["severity"]))
    end = 28 * 24 * HOUR
    assert found == {name: [one for one in plant.read(name) if one[0] < end] for name in found}


def test_late_rows_and_samples_of_an_archived_week(archived: Plant) -> None:
    plant = archived
    first, second, *_ = plant.read("gauge:1")
    plant.put("gauge:1", *first)  # a repeat
    plant.put("gauge:1", second[0], 99.0)  # another value of the same time
    plant.put("gauge:1", first[0] + 1, 1.5)
    plant.put("gauge:silent", 8 * 24 * HOUR, 2.5, 2)
    plant.rows("insert into weeks.magnet values (1, %s, 'NaN', 0) returning 1", BEGIN)  # a repeat
    plant.rows("insert into weeks.magnet values (1, %s, 99, 7) returning 1", BEGIN + timedelta(hours=2))
    plant.put_row(timedelta(hours=1), 1.5)
    now = plant.all()
    assert (BEGIN + timedelta(hours=1), 1, 1.5, 1) in now["magnet"]
    assert len(now["magnet"]) == 505
    assert (first[0] + 1, 1.5, 0) in now["gauge:1"]
    assert len(now["gauge:1"]) == 505, "of two samples of one time the file's is read"
    assert now["gauge:silent"][-1] == (8 * 24 * HOUR, 2.5, 2)
    merge(plant.engine)  # leaves the blocks of archived weeks, which the archive knows by their times
    assert plant.archive() == [
        "merged 1 late rows into magnet/2026w18-2.parquet, 1 were there already,"
        " 1 in conflict with it: see ringlog.event",
        "merged 1 late rows into vac/2026w18-2.parquet, 1 were there already,"
        " 1 in conflict with it: see ringlog.event",
        "merged 1 late rows into vac/2026w19-2.parquet, 0 were there already",
    ]
    assert plant.all() == now
    assert plant.rows("select count(*) from log.vac_default") == [(0,)]
    messages = plant.rows("select message from ringlog.event order by table_name")
    assert ["99" in message for (message,) in messages] == [True, True]
    silent = plant.rows("select time, value from ringlog.get_latest('gauge:silent')")
    assert silent == [(BEGIN + timedelta(days=8), 2.5)]


def test_rows_that_arrive_while_a_week_is_written(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    before = plant.all()
    written = Round._write

    def write(this: Round, stores: Rows, table: str, week: Week, source: Any, schema: Any) -> ColdWeek:
        made = written(this, stores, table, week, source, schema)
        if table == "vac":
            plant.put("gauge:2", (week.start - BEGIN) // timedelta(microseconds=1) * 1000 + 7, 1.0)
            plant.put("gauge:never", (week.start - BEGIN) // timedelta(microseconds=1) * 1000 + 7, 1.0)
            merge(plant.engine)
        if table == "magnet":
            plant.put_row(week.start - BEGIN + timedelta(microseconds=7), 1.0)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(Round, "_write", write)
        lines = plant.archive()
    for table, arrived in (("vac", 2), ("magnet", 1)):
        of_table = [line for line in lines if line.startswith(f"archived log.{table}_")]
        assert sum(f"{arrived} rows arrived meanwhile" in line for line in of_table) == 4
    for _ in range(2):
        now = plant.all()
        assert {signal: len(samples) - len(before[signal]) for signal, samples in now.items()} == {
            **dict.fromkeys(before, 0),
            "gauge:2": 4,
            "gauge:never": 4,
            "magnet": 4,
        }
        plant.archive()
    assert plant.rows("select (select count(*) from log.vac_default) + count(*) from log.magnet_default") == [
        (0,)
    ]


def test_killed_at_any_moment(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    before = plant.all()
    steps = ((leaving, "_watch"), (Round, "_write"), (leaving, "_put_away"))
    for _ in killed_around(monkeypatch, steps, plant.archive):
        assert plant.all() == before
    assert len(plant.archive()) == 16
    assert plant.all() == before
    plant.put_row(timedelta(hours=3), 1.0)
    plant.put("gauge:1", 3 * HOUR, 1.0)
    plant.put("gauge:1", before["gauge:1"][0][0], -1.0)
    late = plant.all()
    for after in (False, True):
        take = merging._take_late

        def cut(*values: Any, take: Any = take, after: bool = after, **named: Any) -> None:
            if after:
                take(*values, **named)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(merging, "_take_late", cut)
            with pytest.raises(KeyboardInterrupt):
                plant.archive()
        assert plant.all() == late
    plant.archive()
    assert plant.all() == late


def test_weeks_past_retention_leave_the_archive(archived: Plant) -> None:
    plant = archived
    before = plant.all()
    for registry in ("sample_table", "logged_table"):
        plant.rows(f"update ringlog.{registry} set retention = '3 weeks' returning 1")
    lines = plant.archive()
    assert sum(line.startswith("set aside") for line in lines) == 12
    assert [path.name for path in (plant.folder / "magnet").glob("*.parquet")] == ["2026w21.parquet"]
    kept = {"magnet": BEGIN + timedelta(weeks=3)}
    assert plant.all() == {
        signal: [sample for sample in samples if sample[0] >= kept.get(signal, 21 * 24 * HOUR)]
        for signal, samples in before.items()
    }
    assert plant.rows("select number from ringlog.last_archived where table_name = 'vac' order by 1") == [
        (plant.number[name],) for name in ("gauge:1", "gauge:2")
    ]


def test_a_week_is_recalled(archived: Plant) -> None:
    plant = archived
    before = plant.all()
    first = before["gauge:2"][0]
    plant.put("gauge:2", first[0], -7.0)
    plant.put("gauge:2", *before["gauge:2"][1])
    plant.put("gauge:2", HOUR // 2 + 1, 1.5)
    # a late waveform, and repeated ones: the file's and another
    late = [NS + 7, NS + 24 * HOUR + 5, NS + 2 * 24 * HOUR + 5]
    put = "select ringlog.put_traces_batch(%s::integer[], %s, %s, lengths => array[2, 1, 0])"
    plant.rows(put, [plant.number["trace"]] * 3, late, [0.5, 1.5, 1 / 7])
    plant.put_row(timedelta(days=1, microseconds=1), 1.5)
    now = plant.all()
    assert len(now["magnet"]) == 505
    assert (7, [0.5, 1.5], 0) in now["trace"]
    assert len(now["trace"]) == len(before["trace"]) + 1
    week = BEGIN, BEGIN + timedelta(weeks=1)
    for table in TABLES:
        (line,) = recall(plant.conninfo, table, *week, timedelta(days=3650))
        assert line.startswith(f"recalled {table}/2026w18.parquet")
    assert plant.all() == now
    (count,) = plant.rows("select count(*) from ringlog.get_magnet_range(%s, %s)", *week)
    assert count == (85,)
    assert plant.rows("select count(*) from weeks.vac where time < %s and n > 1", week[1])[0][0] == 0
    messages = " ".join(message for (message,) in plant.rows("select message from ringlog.event"))
    assert "-7" in messages
    assert "{0.14285714285714285} 0 1" in messages
    # later they are archived again, with what came meanwhile
    plant.rows(
        "update ringlog.cold_week set recalled_until = %s where recalled_until > now() returning 1", NOW
    )
    plant.rows("update ringlog.sample_table set merged_until = now() returning 1")
    lines = plant.archive()
    assert [line.partition(",")[0] for line in lines if "magnet" in line or "traces" in line] == [
        "archived log.magnet_2026w18: 85 rows",
        "archived log.traces_2026w18: 8 rows",
    ]
    assert plant.all() == now


def test_a_week_that_was_set_aside_is_restored(plant: Plant) -> None:
    before = plant.all()
    plant.rows("update ringlog.sample_table set retention = '8 days' returning 1")
    maintain(plant.engine, NOW)
    assert len(plant.read("gauge:2")) < 120
    plant.rows("update ringlog.sample_table set retention = null returning 1")
    week = BEGIN + timedelta(weeks=4)
    plant.put("gauge:never", 28 * 24 * HOUR, 1.5)
    plant.put("gauge:2", *next(sample for sample in before["gauge:2"] if sample[0] >= 28 * 24 * HOUR))
    [*restore(plant.conninfo, "vac", week, week + timedelta(weeks=1))]
    assert plant.read("gauge:2", week) == [each for each in before["gauge:2"] if each[0] >= 28 * 24 * HOUR]
    assert plant.read("gauge:never") == [(28 * 24 * HOUR, 1.5, 0)]
