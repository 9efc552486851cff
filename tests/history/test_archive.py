"""Old weeks are archived in files and recalled; log and files together always have every row once."""

import errno
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from kills import killed_around
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo
from typer.testing import CliRunner

from ringlog.cli import app
from ringlog.commands.stored import verify as everything
from ringlog.history.archive import archiving, file_owner, leaving
from ringlog.history.archive.folder import Folder
from ringlog.history.archive.manifest import ColdWeek, manifest, note, verify
from ringlog.history.archive.ownership import NotThere, adopt
from ringlog.history.archive.parquet import files
from ringlog.history.archive.recall import recall
from ringlog.history.archive.round import Round
from ringlog.history.reading import newest, read
from ringlog.history.summaries.resummarising import summarise_again
from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.schema import change
from ringlog.schema.facility import Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.installing.obstacles import InstallRefused
from ringlog.schema.layout import OWNER
from ringlog.schema.relations.partitions import Week, maintain
from servers import ringlog
from waiting import wait_until

from .conftest import COLUMNS, conninfo_of

NOW = datetime(2026, 6, 10, tzinfo=UTC)
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
NAMES = [column.name for column in COLUMNS]


Databases = Callable[[str], AbstractContextManager[sa.URL]]
Rows = list[dict[str, object]]

# without its pauses, which test_the_archive_gives_way_to_writers tests
archive = partial(archiving.archive, pauses=0)


@dataclass(frozen=True)
class Prepared:
    """A database, which the tests copy, and the folder of its archive."""

    name: str
    folder: Path
    rows: Rows
    """all, of log and archive"""

    @classmethod
    def of(cls, url: sa.URL, folder: Path) -> Self:
        assert url.database is not None
        return cls(url.database, folder, all_rows(conninfo_of(url)))


@pytest.fixture(scope="module")
def online(
    prepared_databases: Callable[[], AbstractContextManager[sa.URL]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prepared]:
    """Rows every 20 minutes for 14 weeks, of which two remain online."""
    folder = tmp_path_factory.mktemp("online") / "archive"
    facility = Facility("test", "UTC", (Table("every_type", 10, 1.0, COLUMNS, summaries=(3600, 86_400)),))
    with prepared_databases() as url:
        engine = sa.create_engine(url)
        install(engine, replace(facility, history=History(Retention(2, "week"), str(folder))))
        with psycopg.connect(conninfo_of(url)) as connection:
            connection.execute(
                """
                insert into weeks.every_type
                select
                  1, %s + n * interval '20 minutes',
                  case when n %% 7 = 0 then 'NaN' when n %% 11 = 0 then null else sin(n) end,
                  case when n %% 5 = 0 then '-0' when n %% 3 = 0 then 'infinity' else cos(n) end,
                  n, n %% 100, n * 1000000000::bigint, n %% 2 = 0, 'text ' || n
                from generate_series(0, 7000) as n
                """,
                [BEGIN],
            )
        maintain(engine, NOW)
        summarise(conninfo_of(url), NOW, enough=1)
        engine.dispose()
        yield Prepared.of(url, folder)


@pytest.fixture(scope="module")
def cold(
    online: Prepared, copied_databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prepared]:
    """The same with its old weeks in the archive."""
    folder = tmp_path_factory.mktemp("cold") / "archive"
    with copied_databases(online.name) as url:
        set_folder(url, folder)
        engine = sa.create_engine(url)
        [*archive(engine, conninfo_of(url), NOW)]
        engine.dispose()
        yield Prepared.of(url, folder)


def set_folder(url: sa.URL, folder: Path) -> None:
    with psycopg.connect(conninfo_of(url)) as connection:
        connection.execute("update ringlog.history set archive = %s", [str(folder)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def database_url(
    request: pytest.FixtureRequest, online: Prepared, copied_databases: Databases, folder: Path
) -> Iterator[sa.URL]:
    """A copy of `online`, or of `cold` for a test with `archived`."""
    source = request.getfixturevalue("cold") if "archived" in request.fixturenames else online
    with copied_databases(source.name) as url:
        set_folder(url, folder)
        yield url


@pytest.fixture
def table(conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


@pytest.fixture
def archived(cold: Prepared, online: Prepared, folder: Path, engine: sa.Engine) -> Rows:
    """The old weeks are in the archive: all rows remain unchanged."""
    shutil.copytree(cold.folder, folder)
    [*adopt(engine)]
    return online.rows


def put(connection: psycopg.Connection, moment: datetime, value: float, seq_no: int = 2) -> None:
    connection.execute(
        "select ringlog.put_every_type(row (%s, %s, %s, 1, 1, 1, 1, true, 'x')::online.every_type)",
        [seq_no, moment, value],
    )


def all_rows(conninfo: str, table: str = "every_type") -> Rows:
    found = [row for batch in read(conninfo, table, ["seq_no", *NAMES]) for row in batch.to_pylist()]
    return [{key: "NaN" if value != value else value for key, value in row.items()} for row in found]


def in_log(connection: psycopg.Connection) -> int:
    row = connection.execute("select count(*) from weeks.every_type").fetchone()
    assert row is not None
    return int(row[0])


def stored(connection: psycopg.Connection) -> int:
    """The number of rows in PostgreSQL and in the files, as log.<table> shows them."""
    row = connection.execute("select coalesce(sum(rows), 0) from ringlog.cold_week").fetchone()
    assert row is not None
    return in_log(connection) + int(row[0])


def test_the_archive_gives_way_to_writers(
    table: psycopg.Connection, engine: sa.Engine, conninfo: str, folder: Path
) -> None:
    nices: set[tuple[int, ...]] = set()

    def stopped() -> bool:
        """Called by the writing thread, while its connection is open."""
        reading = table.execute(
            "select pid from pg_stat_activity where query like 'COPY%' or query like 'copy%'"
        ).fetchall()
        own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        nices.add((own, *(psutil.Process(pid).nice() for (pid,) in reading)))
        return False

    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    assert next(archiving.archive(engine, conninfo, NOW, stopped)).startswith(
        "archived log.every_type_2026w10"
    )
    assert nices == {(19, 19)}
    # and nothing else does
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own
    nices.clear()
    assert next(archive(engine, conninfo, NOW, stopped)).startswith("archived log.")
    assert {one[0] for one in nices} == {own}


def test_old_weeks_become_files(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection, online: Prepared
) -> None:
    before = online.rows
    lines = [*archive(engine, conninfo, NOW)]
    # weeks 10 to 21 ended before 27 May
    assert [line.split(":")[0] for line in lines] == [
        f"archived log.every_type_2026w{n}" for n in range(10, 22)
    ]
    assert in_log(table) == len(before) - 12 * 7 * 72
    assert all_rows(conninfo) == before
    assert sorted(path.name for path in (folder / "every_type").iterdir()) == [
        f"2026w{n}.parquet" for n in range(10, 22)
    ]
    assert [*archive(engine, conninfo, NOW)] == []
    maintain(engine, NOW)
    assert all_rows(conninfo) == before


@pytest.mark.long
@pytest.mark.parametrize("file", ["ringlog.json", "manifest.json", "every_type/2026w12.parquet"])
def test_a_full_disk(
    engine: sa.Engine,
    conninfo: str,
    folder: Path,
    online: Prepared,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
) -> None:
    """Whatever could not be written, the next round continues, and then all files agree."""
    created = Folder.created

    @contextmanager
    def full(self: Folder, name: str) -> Iterator[pa.NativeFile]:
        with created(self, name) as stream:
            yield stream
            if name == file:
                raise OSError(errno.ENOSPC, "No space left on device", name)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "created", full)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                [*archive(engine, conninfo, NOW, pauses=0)]
            assert all_rows(conninfo) == online.rows
    [*archive(engine, conninfo, NOW, pauses=0)]
    assert all_rows(conninfo) == online.rows
    with engine.connect() as connection:
        named = {week.file: week.sha256 for week in manifest(connection)}
    said = json.loads((folder / "manifest.json").read_text())
    assert {week["file"]: week["sha256"] for week in said} == named
    weeks = {f"every_type/{path.name}" for path in (folder / "every_type").iterdir()}
    assert weeks == named.keys() == {f"every_type/2026w{n}.parquet" for n in range(10, 22)}


@pytest.mark.usefixtures("archived")
def test_an_archive_on_a_missing_disk_is_not_started_again(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection
) -> None:
    folder.rename(folder.with_name("away"))
    folder.mkdir()
    with pytest.raises(NotThere, match="is its disk mounted"):
        [*archive(engine, conninfo, NOW + timedelta(weeks=1))]
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize(
    ("a_day", "groups"),
    [(72, [504]), (900, [100, 1700, 1800, 1800, 900]), (3000, [100, 2900, *[3000] * 5, 2900, 100])],
)
def test_row_groups(tmp_path: Path, a_day: int, groups: list[int]) -> None:
    """Days of at least 1,000 rows; the first and the last rows are groups of 100."""
    count = 7 * a_day
    times = pa.array(np.arange(count) * (86_400_000_000 // a_day), pa.timestamp("us", "UTC"))
    rows = pa.record_batch({"seq_no": pa.array(np.arange(count), pa.int32()), "time": times})
    with Folder(str(tmp_path)).created("week.parquet") as stream:
        files.write(stream, iter([rows.slice(0, 100), rows.slice(100)]), {})
    written = pq.ParquetFile(tmp_path / "week.parquet")
    found = [written.metadata.row_group(number).num_rows for number in range(written.num_row_groups)]
    assert found == groups
    assert written.read().equals(pa.Table.from_batches([rows]))


def test_a_column_has_the_smaller_encoding(tmp_path: Path) -> None:
    n, dice = 20_000, np.random.default_rng(72)
    few, noise = dice.integers(0, 50, n) / 7, dice.normal(size=n)
    columns = {
        "few": pa.array(few, pa.float32()),
        "noise": pa.array(noise),
        "few_points": pa.ListArray.from_arrays(
            np.arange(0, n + 1, 10, dtype=np.int32).repeat(10)[: n + 1], few
        ),
        "count": pa.array(np.arange(n) ** 2),
        "state": pa.array(dice.choice([1, 1 << 40], n)),
    }
    times = pa.array(np.arange(n) * 1_000_000, pa.timestamp("us", "UTC"))
    rows = pa.record_batch({"seq_no": pa.array(np.arange(n), pa.int32()), "time": times, **columns})
    with Folder(str(tmp_path)).created("week.parquet") as stream:
        files.write(stream, iter([rows]), {})
    written = pq.ParquetFile(tmp_path / "week.parquet")
    group = written.metadata.row_group(1)
    encodings = {
        column.path_in_schema: {*column.encodings} - {"RLE", "PLAIN"}
        for column in map(group.column, range(group.num_columns))
    }
    assert encodings == {
        "seq_no": {"DELTA_BINARY_PACKED"},
        "time": {"DELTA_BINARY_PACKED"},
        "few": {"RLE_DICTIONARY"},
        "noise": {"BYTE_STREAM_SPLIT"},
        "few_points.list.element": {"RLE_DICTIONARY"},
        "count": {"DELTA_BINARY_PACKED"},
        "state": {"RLE_DICTIONARY"},
    }
    assert written.read().equals(pa.Table.from_batches([rows]))


@pytest.mark.usefixtures("archived")
def test_any_tool_reads_the_files(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection
) -> None:
    whole = pq.read_table(folder / "every_type/2026w10.parquet")
    assert whole.num_rows == 7 * 72
    assert whole["an_int"].to_pylist() == [*range(7 * 72)]
    assert b"t/real" in whole.schema.metadata[b"ringlog.signals"]


@pytest.mark.usefixtures("archived")
def test_reading_a_part_across_tiers(engine: sa.Engine, conninfo: str, table: psycopg.Connection) -> None:
    start, end = datetime(2026, 5, 24, 12, tzinfo=UTC), datetime(2026, 5, 25, 12, tzinfo=UTC)
    found = [
        n
        for batch in read(conninfo, "every_type", ["an_int"], start, end)
        for n in batch["an_int"].to_pylist()
    ]
    first = (start - BEGIN) // timedelta(minutes=20)
    assert found == [*range(first, first + 72)]
    before, *_ = read(conninfo, "every_type", ["an_int"], start, end, newest_before=True)
    assert before["an_int"].to_pylist() == [first - 1]
    # the last of a file and the first of the log
    start = datetime(2026, 5, 24, 23, 30, tzinfo=UTC)
    limited = [*read(conninfo, "every_type", ["an_int"], start, limit=3)]
    first = (start - BEGIN) // timedelta(minutes=20) + 1
    assert [n for batch in limited for n in batch["an_int"].to_pylist()] == [*range(first, first + 3)]
    monday = datetime(2026, 5, 25, tzinfo=UTC)  # the first week online; the row before is in a file
    before, *_ = read(conninfo, "every_type", ["an_int"], monday, end, newest_before=True)
    assert before["an_int"].to_pylist() == [(monday - BEGIN) // timedelta(minutes=20) - 1]
    # of a file: row 11 has no a_real
    after = BEGIN + 11 * timedelta(minutes=20, microseconds=1)
    row = newest(conninfo, "every_type", ["an_int", "a_real"], after)
    assert row is not None
    assert (row["an_int"].to_pylist(), row["a_real"].to_pylist()) == ([11], [None])


def test_late_rows_of_an_archived_week(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection, archived: Rows
) -> None:
    before = archived
    put(table, BEGIN + timedelta(days=3, microseconds=1), 1.5)
    table.execute("insert into weeks.every_type select 1, %s, 'NaN', '-0', 0, 0, 0, true, 'text 0'", [BEGIN])
    other = BEGIN + timedelta(minutes=20)
    table.execute("insert into weeks.every_type (seq_no, time, an_int) values (1, %s, 99)", [other])
    now = all_rows(conninfo)
    assert len(now) == len(before) + 1, "of two rows with one key the file's is read"
    maintain(engine, NOW)
    (line,) = archive(engine, conninfo, NOW)
    assert line == (
        "merged 1 late rows into every_type/2026w10-2.parquet, 1 were there already, "
        "1 in conflict with it: see ringlog.event"
    )
    after = all_rows(conninfo)
    assert [row for row in after if row not in before] == [
        {"time": BEGIN + timedelta(days=3, microseconds=1), "seq_no": 2, "a_real": 1.5, "a_double": 1.0}
        | {"an_int": 1, "a_smallint": 1, "a_bigint": 1, "a_bit": True, "a_varchar": "x"}
    ]
    assert after == now
    (message,) = table.execute("select message from ringlog.event").fetchone() or ("",)
    assert '"an_int": 99' in message
    assert not (folder / "every_type/2026w10.parquet").exists()
    assert (folder / "every_type/_replaced/2026w10.parquet").exists()
    # an acknowledged row that is refused later is in the ledger
    books = table.execute("select hour, acknowledged, refused, repeated from ringlog.ledger")
    assert books.fetchall() == [(BEGIN, -1, 1, 1)]
    losses = "select in_log, refused, waiting, missing from ringlog.losses()"
    assert table.execute(losses).fetchall() == [(None, 1, 0, None)]


def test_late_rows_of_an_archived_week_are_in_its_trends(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection
) -> None:
    trend = (
        "select sum(n), max(max), sum(nans), sum(nulls) from ringlog.get_trend('t/real', %s, %s, 50)",
        [BEGIN, NOW],
    )
    (n, _, *others) = table.execute(*trend).fetchone() or ()
    [*archive(engine, conninfo, NOW)]
    put(table, BEGIN + timedelta(days=3, microseconds=1), 77.5)
    put(table, BEGIN + timedelta(days=12, microseconds=1), 3.5)
    # a repeat is not counted again
    table.execute("insert into weeks.every_type select 1, %s, 'NaN', '-0', 0, 0, 0, true, 'text 0'", [BEGIN])
    table.execute("insert into ringlog.summary_mark values ('every_type', %s)", [BEGIN])
    week = folder / "every_type/2026w11.parquet"
    content = week.read_bytes()
    week.write_bytes(content[:-9])
    summarise(conninfo, NOW, enough=1)
    assert table.execute(*trend).fetchone() == (n + 1, 77.5, *others)
    # that of the damaged week waits
    assert table.execute("select count(*) from ringlog.summary_mark").fetchone() == (1,)
    week.write_bytes(content)
    for _ in range(2):
        summarise(conninfo, NOW, enough=1)
        assert table.execute(*trend).fetchone() == (n + 2, 77.5, *others)
        assert len([*archive(engine, conninfo, NOW)]) in (0, 2)


@pytest.mark.long
def test_other_summaries_are_also_made_from_the_archive(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection
) -> None:
    def hours() -> list[tuple[object, ...]]:
        # mean and std are rounded differently when computed from shorter spans
        return table.execute(
            "select column_name, time, row (n, min, max, first, last, nans, nulls)::text from hour.every_type"
            " order by 1, 2"
        ).fetchall()

    before = hours()
    [*archive(engine, conninfo, NOW)]
    facility = Facility("test", "UTC", (Table("every_type", 10, 1.0, COLUMNS, summaries=(600, 3600)),))
    install(engine, replace(facility, history=History(Retention(2, "week"), str(folder))))
    summarise(conninfo, NOW, enough=1)
    assert hours() == before
    spans = table.execute("select sum(n) from ten_minutes.every_type where column_name = 'an_int'")
    assert spans.fetchone() == (7001,)


@pytest.mark.long
@pytest.mark.usefixtures("archived")
def test_summaries_are_made_again(table: psycopg.Connection, conninfo: str) -> None:
    """From rows in the archive and in the log; those of rows past retention remain."""

    def summaries() -> list[tuple[object, ...]]:
        query = "select made::text from summary.every_type as made order by level, column_name, begins"
        return table.execute(query).fetchall()

    summarise(conninfo)  # up to the present time
    right = summaries()
    table.execute("update summary.every_type set max = min where begins > %s", [BEGIN - timedelta(days=1)])
    assert summaries() != right
    weeks = [*summarise_again(conninfo, "every_type", BEGIN + timedelta(days=3), NOW + timedelta(days=70))]
    assert [begin for begin, _ in weeks] == [
        BEGIN + timedelta(days=3),
        *(BEGIN + timedelta(weeks=number) for number in range(1, 14)),
    ]
    assert sum(rows for _, rows in weeks) == 7001 - 3 * 72
    assert summaries() != right
    assert (
        len([*summarise_again(conninfo, "every_type", BEGIN - timedelta(days=3), BEGIN + timedelta(days=3))])
        == 1
    )
    assert summaries() == right
    with pytest.raises(ValueError, match="has no summaries"):
        next(summarise_again(conninfo, "nothing", BEGIN, NOW))


def test_rows_that_arrive_while_a_week_is_written(
    engine: sa.Engine,
    conninfo: str,
    table: psycopg.Connection,
    online: Prepared,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = online.rows
    written = Round._write

    def write(this: Round, stores: Any, name: str, week: Week, source: Any, schema: Any) -> ColdWeek:
        made = written(this, stores, name, week, source, schema)
        put(table, week.start + timedelta(microseconds=7), 1.0)
        return made

    monkeypatch.setattr(Round, "_write", write)
    lines = [*archive(engine, conninfo, NOW)]
    assert all("1 rows arrived meanwhile" in line for line in lines)
    monkeypatch.setattr(Round, "_write", written)
    assert len(all_rows(conninfo)) == len(before) + 12
    [*archive(engine, conninfo, NOW)]
    assert len(all_rows(conninfo)) == len(before) + 12
    assert table.execute("select count(*) from log.every_type_default").fetchone() == (0,)


def test_a_late_row_between_writing_a_file_and_comparing_it(
    engine: sa.Engine, conninfo: str, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(table)
    same = files.same
    starts = iter(range(12))

    def compared(here: Any, there: Any) -> bool:
        put(table, BEGIN + timedelta(weeks=next(starts), hours=1, microseconds=7), 1.0)
        return same(here, there)

    monkeypatch.setattr(files, "same", compared)
    lines = [*archive(engine, conninfo, NOW)]
    assert all("1 rows arrived meanwhile" in line for line in lines)
    assert stored(table) == before + 12


def test_late_rows_of_a_killed_round_are_shown_once(
    engine: sa.Engine, conninfo: str, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killed round's trigger has marked rows that the next round's files have."""
    before = stored(table)

    def killed(*values: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Round, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            [*archive(engine, conninfo, NOW)]
    put(table, BEGIN + timedelta(hours=1, microseconds=7), 1.0)
    summarise(conninfo, NOW, enough=1)  # a week is archived once its summaries are made
    lines = [*archive(engine, conninfo, NOW)]
    assert lines[0].startswith("archived log.every_type_2026w10: 505 rows")
    assert "meanwhile" not in lines[0]
    assert stored(table) == before + 1


@pytest.mark.usefixtures("archived")
def test_procedures_report_archived_weeks(
    engine: sa.Engine, conninfo: str, table: psycopg.Connection
) -> None:
    """Those that read only rows of PostgreSQL, and all if it does not reach the archive."""
    recent, old = datetime(2026, 5, 28, tzinfo=UTC), datetime(2026, 5, 20, tzinfo=UTC)

    def refused(query: str, *times: datetime) -> None:
        weeks = r"1 weeks of table every_type .* archive: 2026w21"
        with pytest.raises(errors.Error, match=weeks) as error, table.transaction():
            table.execute(query.encode(), times)
        assert error.value.sqlstate == "RL003"
        assert "ringlog recall every_type 2026-05-18 2026-05-25" in str(error.value.diag.message_hint)

    refused("select * from ringlog.get_signal('t/real', %s, %s, every => 1)", old, NOW)
    at = "select an_int from ringlog.get_every_type_at(%s)"
    assert table.execute(at, [recent]).fetchone() == ((recent - BEGIN) // timedelta(minutes=20),)
    calls = ("get_every_type_range(%s, %s)", "get_signal('t/real', %s, %s)")
    for call in calls:
        assert table.execute(f"select * from ringlog.{call}".encode(), [recent, NOW]).fetchall()
    with table.transaction(force_rollback=True):
        table.execute(
            "create or replace view log.every_type as select * from weeks.every_type;"
            "drop table archive_files.every_type"
        )
        for call in calls:
            refused(f"select * from ringlog.{call}", old, NOW)
        with pytest.raises(errors.Error, match="archive"), table.transaction():
            table.execute(at, [old])
    # trends continue: their summaries remain
    trend = "select sum(n + nans + nulls) from ringlog.get_trend('t/real', %s, %s, 50)"
    assert table.execute(trend, [BEGIN, NOW]).fetchone() == (7001,)
    ends = [BEGIN + timedelta(days=10, seconds=1), BEGIN + timedelta(days=50, seconds=1)]
    # where the rows are cold they begin and end with whole spans, here of an hour
    assert table.execute(trend, ends).fetchone() == (40 * 72 + 3,)


def test_recalled_weeks_are_in_the_log_again(
    engine: sa.Engine, conninfo: str, table: psycopg.Connection, archived: Rows
) -> None:
    before = archived
    put(table, BEGIN + timedelta(days=1, microseconds=1), 1.5)
    lines = [*recall(engine, conninfo, "every_type", BEGIN, BEGIN + timedelta(days=8), timedelta(days=7))]
    assert lines == [
        f"recalled every_type/2026w{n}.parquet: 504 rows in log.every_type_2026w{n}" for n in (10, 11)
    ]
    query = "select count(*) from ringlog.get_every_type_range(%s, %s)"
    assert table.execute(query, [BEGIN, BEGIN + timedelta(days=14)]).fetchone() == (1009,)
    assert len(all_rows(conninfo)) == len(before) + 1
    # later they are archived again, with the row that came meanwhile
    table.execute("update ringlog.cold_week set recalled_until = %s where recalled_until is not null", [NOW])
    summarise(conninfo, NOW, enough=1)
    lines = [*archive(engine, conninfo, NOW)]
    assert [line.split(",")[0] for line in lines] == [
        "archived log.every_type_2026w10: 505 rows",
        "archived log.every_type_2026w11: 504 rows",
    ]
    assert len(all_rows(conninfo)) == len(before) + 1


def test_a_partition_over_weeks_in_the_archive(
    engine: sa.Engine, conninfo: str, table: psycopg.Connection, archived: Rows
) -> None:
    before = archived
    put(table, BEGIN + timedelta(days=1, microseconds=1), 1.5)
    # a month of which the archive has all weeks, with one row that it lacks
    table.execute(
        sql.SQL(
            "create table log.month (like weeks.every_type including all);"
            " with late as (delete from log.every_type_default returning *) insert into log.month"
            " select * from late; alter table weeks.every_type attach partition log.month"
            " for values from ({}) to ({}); alter table log.month owner to {}"
        ).format(BEGIN, BEGIN + timedelta(weeks=4), sql.Identifier(OWNER))
    )
    summarise(conninfo, NOW, enough=1)
    assert [*archive(engine, conninfo, NOW)] == [
        "archived log.month: 0 rows, 0 bytes, 1 rows arrived meanwhile"
    ]
    assert len(all_rows(conninfo)) == len(before) + 1
    [*archive(engine, conninfo, NOW)]
    assert table.execute("select rows from ringlog.cold_week where begins = %s", [BEGIN]).fetchone() == (505,)
    assert len(all_rows(conninfo)) == len(before) + 1


def test_two_rounds_at_once(
    engine: sa.Engine,
    conninfo: str,
    table: psycopg.Connection,
    online: Prepared,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if PostgreSQL were killed and with it the lock that excluded the other round."""
    before = online.rows
    written = Round._write

    def write(this: Round, stores: Any, name: str, week: Week, source: Any, schema: Any) -> ColdWeek:
        made = written(this, stores, name, week, source, schema)
        with engine.begin() as connection:
            note(connection, replace(made, rows=made.rows - 1))
        return made

    monkeypatch.setattr(Round, "_write", write)
    lines = [*archive(engine, conninfo, NOW)]
    assert len(lines) == 12
    assert all("another round has changed the manifest meanwhile" in line for line in lines)
    assert in_log(table) == len(before)


def test_killed_at_any_moment(
    engine: sa.Engine,
    conninfo: str,
    table: psycopg.Connection,
    online: Prepared,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = online.rows
    steps = ((Round, "_write"), (leaving, "_put_away"), (leaving, "_watch"))
    for _ in killed_around(monkeypatch, steps, lambda: [*archive(engine, conninfo, NOW)]):
        assert all_rows(conninfo) == before
    assert len([*archive(engine, conninfo, NOW)]) == 12
    assert all_rows(conninfo) == before


@pytest.mark.long
@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("damage", ["truncated", "a byte", "gone", "footer", "swapped"])
def test_damaged_files_are_found(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection, damage: str
) -> None:
    path = folder / "every_type/2026w12.parquet"
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "footer":
        content[-200] ^= 1
        path.write_bytes(content)
    elif damage == "swapped":
        path.write_bytes((folder / "every_type/2026w11.parquet").read_bytes())
    else:
        column = pq.ParquetFile(path).metadata.row_group(0).column(3)
        content[column.data_page_offset + column.total_compressed_size - 9] ^= 1
        path.write_bytes(content[:-1000] if damage == "truncated" else content)
    with engine.begin() as connection:
        weeks = {week.file: week for week in manifest(connection)}
    with pytest.raises(files.Damaged, match="2026w12"):
        verify(Folder(str(folder)), weeks["every_type/2026w12.parquet"])
    verify(Folder(str(folder)), weeks["every_type/2026w13.parquet"])
    with pytest.raises(files.Damaged, match="2026w12"):
        all_rows(conninfo)
    start = weeks["every_type/2026w12.parquet"].begins
    with pytest.raises(files.Damaged, match="2026w12"):
        [*read(conninfo, "every_type", ["a_double"], start, start + timedelta(days=7))]
    put(table, weeks["every_type/2026w12.parquet"].begins, 1.0)
    (line,) = archive(engine, conninfo, NOW)
    assert line.startswith("rows that arrived for every_type/2026w12.parquet stay in the log: ")
    assert table.execute("select count(*) from log.every_type_default").fetchone() == (1,)
    with pytest.raises(files.Damaged, match="2026w12"):
        [*recall(engine, conninfo, "every_type", BEGIN, NOW, timedelta(days=1))]


@pytest.mark.usefixtures("archived")
def test_verification(engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection) -> None:
    put(table, BEGIN + timedelta(days=90), 1.0)  # marked, and not summarised yet
    assert [*problems_of(table, engine)] == []
    (folder / "every_type/2026w12.parquet").write_bytes(b"")
    table.execute("delete from ringlog.summary_mark")
    table.execute(
        "update summary.every_type set n[7] = n[7] + 1 where level = 7200 and column_name = 'an_int'"
    )
    problems = [*problems_of(table, engine)]
    assert any(
        "the span of 86400 s at 2026-05-31 00:00:00+0000 has 72 rows, the log 73" in each for each in problems
    )
    assert any(
        "column an_int" in each and "in 7200 s than in the spans of 3600 s" in each for each in problems
    )
    assert any("2026w12.parquet differs from the file that was written" in each for each in problems)


def test_rows_of_a_ring_from_archived_weeks_are_not_reported_missing(
    engine: sa.Engine, conninfo: str, table: psycopg.Connection
) -> None:
    put(table, BEGIN + timedelta(days=10), 1.0, seq_no=3)
    summarise(conninfo, NOW, enough=1)  # a week is archived once its summaries are made
    [*archive(engine, conninfo, NOW)]
    put(table, BEGIN - timedelta(days=10), 1.0, seq_no=4)  # older than every cold week
    assert [*everything.problems_of(table, engine)] == []
    table.execute('update online.every_type set "time" = %s where seq_no = 4', [BEGIN - timedelta(days=9)])
    assert [*everything.problems_of(table, engine)] == [
        "online.every_type: 1 rows are missing in log.every_type, which stores every row"
    ]


@pytest.mark.usefixtures("archived")
def test_verification_with_a_password_for_postgresql(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection
) -> None:
    (folder / "every_type/2026w12.parquet").write_bytes(b"")
    table.execute("create role auditor superuser login password 'audit-5317'")
    try:
        dsn = make_conninfo(
            host="127.0.0.1",
            port=table.info.port,
            dbname=table.info.dbname,
            user="auditor",
            password="audit-5317",
        )
        verified = ringlog("verify", RINGLOG_DSN=dsn)
    finally:
        # the extension amcheck belongs to its first user
        table.execute("drop owned by auditor cascade")
        table.execute("drop role auditor")
    assert verified.returncode == 1, verified.stderr
    assert "2026w12.parquet differs from the file that was written" in verified.stdout


def test_a_file_that_differs_drops_nothing(
    engine: sa.Engine, conninfo: str, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = in_log(table)
    same = files.same
    answers = iter([False])
    monkeypatch.setattr(files, "same", lambda here, there: next(answers, None) is None and same(here, there))
    lines = [*archive(engine, conninfo, NOW)]
    assert "2026w10.parquet differs from what was written; nothing was dropped" in lines[0]
    assert len(lines) == 12
    assert all(line.startswith("archived log.every_type_2026w") for line in lines[1:])
    assert stored(table) == before


def test_a_failed_part_is_the_code_of_the_command(conninfo: str, table: psycopg.Connection) -> None:
    before = stored(table)
    table.execute(
        'create table public.kept (seq_no integer, "time" timestamptz,'
        ' foreign key ("time", seq_no) references log.every_type_2026w11 ("time", seq_no))'
    )
    failed = ringlog("archive", "now", RINGLOG_DSN=conninfo)
    assert failed.returncode == 1, failed.stderr
    assert "archived log.every_type_2026w12" in failed.stdout
    assert "archive of every_type failed: cannot truncate a table" in failed.stdout
    assert stored(table) == before
    table.execute("drop table public.kept")
    succeeded = ringlog("archive", "now", RINGLOG_DSN=conninfo)
    assert succeeded.returncode == 0, succeeded.stdout + succeeded.stderr
    nothing = ringlog("archive", "now", RINGLOG_DSN=conninfo)
    assert nothing.stdout.splitlines()[-1].startswith("nothing to archive: no week is older")


def test_nothing_that_depends_on_a_week_keeps_its_rows(conninfo: str, table: psycopg.Connection) -> None:
    before = stored(table)
    parts = [f"log.every_type_2026w{week}" for week in (10, 11, 12, 13)]
    numbers = [table.execute("select %s::regclass::oid", [part]).fetchone() or (0,) for part in parts]
    table.execute(f"create view public.kept as select * from {parts[0]}")
    with closing(psycopg.connect(conninfo, autocommit=True)) as reader:
        reader.execute("set session authorization daq_reader")
        reader.execute(f"create temporary view kept as select * from {parts[1]}")
        reader.execute(f"create function pg_temp.kept({parts[2]}) returns integer return 1".encode())
        # a number needs no right on the schema
        reader.execute(f"create temporary table kept_too (part regclass default '{numbers[3][0]}')".encode())
        archived = ringlog("archive", "now", RINGLOG_DSN=conninfo)
        assert archived.returncode == 0, archived.stdout + archived.stderr
        assert stored(table) == before
        relations = "select count(*) from weeks.every_type where tableoid = any(%s::oid[])"
        assert table.execute(relations, [[number for (number,) in numbers]]).fetchone() == (0,)
        sizes = table.execute(
            "select relname, pg_relation_size(oid) from pg_class"
            " where relnamespace = 'set_aside'::regnamespace and relkind = 'r' order by oid"
        ).fetchall()
        assert sizes == [(f"emptied_{number}", 0) for (number,) in numbers]
        retained = ringlog("maintain", RINGLOG_DSN=conninfo)
        assert retained.returncode == 0, retained.stderr
        kinds = ("view public.kept", "view", "function", "default")
        for (number,), dependent in zip(numbers, kinds, strict=True):
            assert f"kept the empty table set_aside.emptied_{number}: {dependent}" in retained.stdout
    table.execute("drop view public.kept")
    wait_until(lambda: "kept the empty" not in ringlog("maintain", RINGLOG_DSN=conninfo).stdout)
    assert table.execute("select from pg_class where relname ~ '^emptied_'").fetchone() is None


@pytest.mark.usefixtures("archived")
def test_a_postponed_part_is_a_round_that_is_not_complete(
    engine: sa.Engine, conninfo: str, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change, "PATIENCE", 0.0)
    # which the command sets in this process
    monkeypatch.setattr(file_owner, "_owner", None)
    maintained = partial(CliRunner().invoke, app, ["maintain"], env={"RINGLOG_DSN": conninfo})

    def retained(days: int) -> None:
        table.execute("update ringlog.logged_table set retention = %s", [f"{days} days"])

    def archived() -> tuple[list[str], bool]:
        lines = []
        this_round = archive(engine, conninfo, NOW)
        while True:
            try:
                lines.append(next(this_round))
            except StopIteration as end:
                return lines, end.value

    first_week, first_online = BEGIN + timedelta(weeks=1), BEGIN + timedelta(weeks=13)
    with psycopg.connect(conninfo) as reader:
        reader.execute("select count(*) from weeks.every_type")
        retained((NOW - first_week).days)
        week = "every_type/2026w10.parquet"
        assert archived() == ([f"postponed {week}, which is past retention: its table is in use"], False)
        retained((datetime.now(UTC) - first_online).days)
        postponed = maintained()
        assert "postponed log.every_type_2026w22: its table is in use" in postponed.output
        assert postponed.exit_code == 1, postponed.output
    done = maintained()
    assert done.exit_code == 0, done.output
    retained((NOW - first_week).days)
    assert archived() == ([f"set aside {week}: past retention"], True)


@pytest.mark.long
@pytest.mark.usefixtures("archived")
def test_retention_deletes_files(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection
) -> None:
    table.execute("update ringlog.logged_table set retention = '8 weeks'")
    lines = [*archive(engine, conninfo, NOW)]
    # 8 weeks before 10 June is 15 April, in week 16
    assert lines == [f"set aside every_type/2026w{n}.parquet: past retention" for n in range(10, 16)]
    assert not (folder / "every_type/2026w15.parquet").exists()


def test_another_table_with_a_former_name_has_its_own_files(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection, archived: Rows
) -> None:
    history = History(Retention(2, "week"), str(folder))
    renamed = Table("renamed", 10, 1.0, COLUMNS, renamed_from="every_type")
    install(engine, Facility("test", "UTC", (renamed,), history=history))
    again = Table("every_type", 10, 1.0, (replace(COLUMNS[0], signal="t/new"),))
    with pytest.raises(InstallRefused) as refused:
        install(engine, Facility("test", "UTC", (renamed, again), history=history))
    for obstacle in refused.value.obstacles:
        table.execute(obstacle.sql)
    install(engine, Facility("test", "UTC", (renamed, again), history=history))
    table.execute("insert into weeks.every_type values (1, %s, 1)", [BEGIN])
    maintain(engine, NOW)
    [*archive(engine, conninfo, NOW)]
    assert all_rows(conninfo, "renamed") == archived
    rows = [row for batch in read(conninfo, "every_type", ["a_real"]) for row in batch.to_pylist()]
    assert rows == [{"time": BEGIN, "a_real": 1.0}]
    assert [*problems_of(table, engine)] == []
