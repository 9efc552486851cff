"""The files of archived weeks: what they have, how they are read and verified, and faults of disks."""

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo

from ringlog.commands.stored import verify as everything
from ringlog.history.archive.folder import Folder
from ringlog.history.archive.manifest import manifest, verify
from ringlog.history.archive.ownership import NotThere
from ringlog.history.archive.parquet import files
from ringlog.history.archive.recall import recall
from ringlog.history.reading import newest, read
from ringlog.history.summaries.resummarising import summarise_again
from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.schema.facility import Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.installing.obstacles import InstallRefused
from ringlog.schema.relations.partitions import maintain
from servers import ringlog

from ..conftest import COLUMNS
from .conftest import BEGIN, NOW, Prepared, Rows, all_rows, archive, in_log, put, stored


@pytest.mark.long
@pytest.mark.parametrize("file", ["ringlog.json", "manifest.json", "every_type/2026w12.parquet"])
def test_a_full_disk(
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
                [*archive(conninfo, NOW, pauses=0)]
            assert all_rows(conninfo) == online.rows
    [*archive(conninfo, NOW, pauses=0)]
    assert all_rows(conninfo) == online.rows
    with psycopg.connect(conninfo) as connection:
        named = {week.file: week.sha256 for week in manifest(connection)}
    listed = json.loads((folder / "manifest.json").read_text())
    assert {week["file"]: week["sha256"] for week in listed} == named
    weeks = {f"every_type/{path.name}" for path in (folder / "every_type").iterdir()}
    assert weeks == named.keys() == {f"every_type/2026w{n}.parquet" for n in range(10, 22)}


@pytest.mark.usefixtures("archived")
def test_an_archive_on_a_missing_disk_is_not_started_again(
    conninfo: str, folder: Path, table: psycopg.Connection
) -> None:
    folder.rename(folder.with_name("away"))
    folder.mkdir()
    with pytest.raises(NotThere, match="is its disk mounted"):
        [*archive(conninfo, NOW + timedelta(weeks=1))]
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
def test_any_tool_reads_the_files(conninfo: str, folder: Path, table: psycopg.Connection) -> None:
    whole = pq.read_table(folder / "every_type/2026w10.parquet")
    assert whole.num_rows == 7 * 72
    assert whole["an_int"].to_pylist() == [*range(7 * 72)]
    assert b"t/real" in whole.schema.metadata[b"ringlog.signals"]


@pytest.mark.usefixtures("archived")
def test_reading_a_part_across_tiers(conninfo: str, table: psycopg.Connection) -> None:
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
    [*archive(conninfo, NOW)]
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


@pytest.mark.long
@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("damage", ["truncated", "a byte", "gone", "footer", "swapped"])
def test_damaged_files_are_found(conninfo: str, folder: Path, table: psycopg.Connection, damage: str) -> None:
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
    with psycopg.connect(conninfo) as connection:
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
    (line,) = archive(conninfo, NOW)
    assert line.startswith("rows that arrived for every_type/2026w12.parquet stay in the log: ")
    assert table.execute("select count(*) from log.every_type_default").fetchone() == (1,)
    with pytest.raises(files.Damaged, match="2026w12"):
        [*recall(conninfo, "every_type", BEGIN, NOW, timedelta(days=1))]


@pytest.mark.usefixtures("archived")
def test_verification(conninfo: str, folder: Path, table: psycopg.Connection) -> None:
    put(table, BEGIN + timedelta(days=90), 1.0)  # marked, and not summarised yet
    assert [*problems_of(table)] == []
    (folder / "every_type/2026w12.parquet").write_bytes(b"")
    table.execute("delete from ringlog.summary_mark")
    table.execute(
        "update summary.every_type set n[7] = n[7] + 1 where level = 7200 and column_name = 'an_int'"
    )
    problems = [*problems_of(table)]
    assert any(
        "the span of 86400 s at 2026-05-31 00:00:00+0000 has 72 rows, the log 73" in each for each in problems
    )
    assert any(
        "column an_int" in each and "in 7200 s than in the spans of 3600 s" in each for each in problems
    )
    assert any("2026w12.parquet differs from the file that was written" in each for each in problems)


def test_rows_of_a_ring_from_archived_weeks_are_not_reported_missing(
    conninfo: str, table: psycopg.Connection
) -> None:
    put(table, BEGIN + timedelta(days=10), 1.0, seq_no=3)
    summarise(conninfo, NOW, enough=1)  # a week is archived once its summaries are made
    [*archive(conninfo, NOW)]
    put(table, BEGIN - timedelta(days=10), 1.0, seq_no=4)  # older than every cold week
    assert [*everything.problems_of(table)] == []
    table.execute('update online.every_type set "time" = %s where seq_no = 4', [BEGIN - timedelta(days=9)])
    assert [*everything.problems_of(table)] == [
        "online.every_type: 1 rows are missing in log.every_type, which stores every row"
    ]


@pytest.mark.usefixtures("archived")
def test_verification_with_a_password_for_postgresql(
    conninfo: str, folder: Path, table: psycopg.Connection
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
    conninfo: str, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = in_log(table)
    same = files.same
    answers = iter([False])
    monkeypatch.setattr(files, "same", lambda here, there: next(answers, None) is None and same(here, there))
    lines = [*archive(conninfo, NOW)]
    assert "2026w10.parquet differs from what was written; nothing was dropped" in lines[0]
    assert len(lines) == 12
    assert all(line.startswith("archived log.every_type_2026w") for line in lines[1:])
    assert stored(table) == before


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
    [*archive(conninfo, NOW)]
    assert all_rows(conninfo, "renamed") == archived
    rows = [row for batch in read(conninfo, "every_type", ["a_real"]) for row in batch.to_pylist()]
    assert rows == [{"time": BEGIN, "a_real": 1.0}]
    assert [*problems_of(table)] == []
