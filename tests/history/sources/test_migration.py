"""Old rows are written from their source directly into the archive, each once, with summaries."""

import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.folder import Folder
from ringlog.history.archive.manifest import damages, manifest
from ringlog.history.incoming import Description, Incoming, IncomingError, Source, description_of
from ringlog.history.migration.migrating import Existing, Migration, MigrationError
from ringlog.history.migration.progress import Moved, progress
from ringlog.history.reading import read
from ringlog.history.sources.csv_files import CsvFiles
from ringlog.history.sources.parquet_files import ParquetFiles
from ringlog.history.sources.postgresql import PostgresRows
from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.schema.facility import Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from servers import run

from ..conftest import COLUMNS, conninfo_of

NOW = datetime(2026, 6, 10, tzinfo=UTC)
PLAIN = Description()
BEGIN = datetime(2026, 3, 2, 6, tzinfo=UTC)
ROWS = 1990
"""every 20 minutes: four weeks"""


def table(rows: int = ROWS, begin: datetime = BEGIN) -> pa.Table:
    """Rows of a log, with nulls, NaN and infinity."""
    numbers = range(rows)
    reals = [None if n % 11 == 0 else float("nan") if n % 7 == 0 else n / 4 for n in numbers]
    return pa.table(
        {
            "seq_no": pa.array([n % 10 + 1 for n in numbers], pa.int32()),
            "time": pa.array([begin + n * timedelta(minutes=20) for n in numbers], pa.timestamp("us", "UTC")),
            "a_real": pa.array(reals, pa.float32()),
            "a_double": pa.array([float("inf") if n % 5 == 0 else -n / 3 for n in numbers], pa.float64()),
            "an_int": pa.array(numbers, pa.int32()),
            "a_smallint": pa.array([n % 100 for n in numbers], pa.int16()),
            "a_bigint": pa.array([n * 10**9 for n in numbers], pa.int64()),
            "a_bit": pa.array([n % 2 == 0 for n in numbers]),
            "a_varchar": pa.array([None if n % 3 == 0 else f"text é {n}" for n in numbers]),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def new(engine: sa.Engine, conninfo: str, folder: Path) -> Iterator[psycopg.Connection]:
    """A facility with an archive and no rows."""
    facility = Facility(
        "test",
        "UTC",
        (Table("every_type", 10, 1.0, COLUMNS, summaries=(3600, 86_400)),),
        history=History(Retention(2, "week"), str(folder)),
    )
    install(engine, facility)
    maintain(engine, NOW)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


def move(
    conninfo: str,
    source: Source,
    described: Description = PLAIN,
    existing: Existing = Existing.REFUSE,
) -> list[Moved]:
    return [*Migration(conninfo, "every_type", source, described, existing=existing, now=NOW).run()]


def stored(conninfo: str) -> pa.Table:
    names = ["seq_no", *(column.name for column in COLUMNS)]
    found = pa.Table.from_batches(read(conninfo, "every_type", names))
    return found.select(table(1).schema.names).combine_chunks()


def plain(rows: pa.Table) -> list[dict[str, object]]:
    return [
        {name: "NaN" if value != value else value for name, value in row.items()} for row in rows.to_pylist()
    ]


def shaped(source: Source, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The rows of a source in the form of the log."""
    came = source.batches(schema, None, NOW)
    return [*Incoming(schema, {}, 10, PLAIN).batches(came, None, NOW)]


def test_parquet_becomes_weeks(conninfo: str, new: psycopg.Connection, folder: Path, tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "old.parquet", row_group_size=300)
    source = ParquetFiles(tmp_path / "old.parquet", Description())
    moved = move(conninfo, source)
    assert [f"{each.week.start:%m-%d}" for each in moved] == ["03-02", "03-09", "03-16", "03-23"]
    assert sum(each.rows for each in moved) == ROWS
    assert plain(stored(conninfo)) == plain(table())
    with psycopg.connect(conninfo) as connection:
        weeks = manifest(connection)
        (done,) = progress(connection)
    assert [week.file for week in weeks] == [f"every_type/2026w{week}.parquet" for week in range(10, 14)]
    assert [*damages(Folder(str(folder)), weeks)] == []
    assert (done.rows, done.values, done.is_done) == (ROWS, 7 * ROWS, True)
    # no row came through PostgreSQL
    assert new.execute("select count(*) from weeks.every_type").fetchone() == (0,)
    assert not [*(folder / "every_type" / "_coming").iterdir()]
    # nothing remains to be done
    assert move(conninfo, source) == []


def test_summaries_are_made_during_the_migration(
    conninfo: str, new: psycopg.Connection, tmp_path: Path
) -> None:
    pq.write_table(table(), tmp_path / "old.parquet", row_group_size=77)
    move(conninfo, ParquetFiles(tmp_path / "old.parquet", Description()))
    query = (
        "select level, column_name, begins, n, min, max, mean, first, last, squares, nans, nulls"
        " from summary.every_type order by 1, 2, 3"
    )
    made = new.execute(query).fetchall()
    assert {level for level, *_ in made} > {3600, 86_400}
    # the same again by housekeeping, from the files
    new.execute("truncate summary.every_type")
    new.execute("update ringlog.summarised set until = null")
    summarise(conninfo, NOW, enough=1)
    again = new.execute(query).fetchall()
    assert [row[:3] for row in made] == [row[:3] for row in again]
    for one, other in zip(made, again, strict=True):
        for mine, theirs in zip(one[3:], other[3:], strict=True):
            assert str(mine) == str(theirs) or mine == pytest.approx(theirs, nan_ok=True), one[:3]
    assert [*problems_of(new)] == []


_KILLED = """
import os, signal, sys
from datetime import datetime, timedelta
from pathlib import Path
from ringlog.history.archive import folder
from ringlog.history.migration import migrating as migration, week
from ringlog.history.incoming import Description
from ringlog.history.sources.parquet_files import ParquetFiles

conninfo, file, now, where, step = sys.argv[1:]
place = {"rename": folder.Folder, "enter_spans": week}.get(where, migration)
found = getattr(place, where)

def killed(*values, **more):
    if step == "after":
        found(*values, **more)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(place, where, killed)
source = ParquetFiles(Path(file), Description())
moment = datetime.fromisoformat(now)
run = migration.Migration(conninfo, "every_type", source, Description(), now=moment).run()
print(*run)
"""


def test_a_kill_at_any_step_loses_and_repeats_nothing(
    conninfo: str, new: psycopg.Connection, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "old.parquet"
    pq.write_table(table(), file, row_group_size=300)
    steps = ["rename after", "enter_spans after", "note after", "tried after"]
    for step in steps:
        killed = run(sys.executable, "-c", _KILLED, conninfo, file, NOW.isoformat(), *step.split())
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    moved = move(conninfo, ParquetFiles(file, Description()))
    assert sum(each.rows for each in moved) == ROWS
    assert plain(stored(conninfo)) == plain(table())
    with psycopg.connect(conninfo) as connection:
        (done,) = progress(connection)
        weeks = manifest(connection)
    assert done.rows == ROWS
    # housekeeping deletes the files that the killed runs have left
    [*archive(conninfo, NOW, pauses=0)]
    left = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet*")}
    assert left == {week.file for week in weeks}


def test_a_killed_run_is_continued(conninfo: str, new: psycopg.Connection, tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "old.parquet", row_group_size=300)
    source = ParquetFiles(tmp_path / "old.parquet", Description())
    first = Migration(conninfo, "every_type", source, Description(), now=NOW).run()
    assert next(first).week.start == datetime(2026, 3, 2, tzinfo=UTC)
    with psycopg.connect(conninfo) as connection:
        (half,) = progress(connection)
    assert half.reached == datetime(2026, 3, 9, tzinfo=UTC)
    assert half.ends(NOW) is not None
    with pytest.raises(MigrationError, match="another process moves old rows of every_type"):
        move(conninfo, source)
    first.close()
    assert [f"{each.week.start:%m-%d}" for each in move(conninfo, source)] == [
        "03-09",
        "03-16",
        "03-23",
    ]
    assert plain(stored(conninfo)) == plain(table())


def test_a_week_of_the_archive_is_refused_or_merged(
    conninfo: str, new: psycopg.Connection, tmp_path: Path
) -> None:
    rows = table()
    even = pa.array([n % 2 == 0 or n % 50 == 1 for n in range(ROWS)])
    changed = rows.set_column(4, "an_int", pa.array([-n if n == 51 else n for n in range(ROWS)], pa.int32()))
    pq.write_table(rows.filter(even), tmp_path / "first.parquet", row_group_size=300)
    pq.write_table(changed.filter(pa.array([n % 2 == 1 for n in range(ROWS)])), tmp_path / "second.parquet")
    move(conninfo, ParquetFiles(tmp_path / "first.parquet", Description()))
    second = ParquetFiles(tmp_path / "second.parquet", Description())
    with pytest.raises(MigrationError, match="the archive has 253 rows of the week of 2026-03-02 already"):
        move(conninfo, second)
    moved = move(conninfo, second, existing=Existing.MERGE)
    assert sum(each.conflicting for each in moved) == 1
    assert sum(each.repeated for each in moved) == len(range(1, ROWS, 50)) - 1
    assert plain(stored(conninfo)) == plain(rows)
    assert [*problems_of(new)] == []
    found = new.execute(
        "select sum(each) from summary.every_type, unnest(n) as each"
        " where level = 3600 and column_name = 'an_int'"
    )
    assert found.fetchone() == (ROWS,)


def test_late_and_new_rows_during_the_migration(
    conninfo: str, new: psycopg.Connection, tmp_path: Path
) -> None:
    """A row of an old week sent by a writer is merged into the week's file."""
    pq.write_table(table(), tmp_path / "old.parquet")
    put = "select ringlog.put_every_type(row (2, %s, 1, 1, 1, 1, 1, true, 'x')::online.every_type)"
    new.execute(put, [BEGIN + timedelta(minutes=5)])
    new.execute(put, [NOW - timedelta(days=1)])
    move(conninfo, ParquetFiles(tmp_path / "old.parquet", Description()))
    assert stored(conninfo).num_rows == ROWS + 2
    assert any(line.startswith("merged 1 late rows") for line in archive(conninfo, NOW, pauses=0))
    assert stored(conninfo).num_rows == ROWS + 2
    summarise(conninfo, NOW, enough=1)
    assert [*problems_of(new)] == []


def test_csv_with_zones_and_seven_digits(conninfo: str, new: psycopg.Connection, tmp_path: Path) -> None:
    """Times of a zone with summer time, as written by SQL Server's datetime2."""
    tokyo = "Asia/Tokyo"
    rows = table()
    local = rows["time"].combine_chunks().cast(pa.timestamp("us", tokyo))
    texts = [f"{moment.as_py():%Y-%m-%d %H:%M:%S}.0000004" for moment in local]
    reals = [None if n % 11 == 0 else n / 4 for n in range(ROWS)]
    plain_rows = rows.set_column(2, "a_real", pa.array(reals, pa.float32()))
    plain_rows = plain_rows.set_column(3, "a_double", pa.array([-n / 3 for n in range(ROWS)]))
    written = plain_rows.set_column(1, "Stamp", pa.array(texts)).rename_columns(
        ["nr", "Stamp", "A", *plain_rows.schema.names[3:]]
    )
    (tmp_path / "csv").mkdir()
    for number in range(2):
        part = written.slice(number * 1000, 1000)
        pa.csv.write_csv(
            part, tmp_path / "csv" / f"{number}.csv", pa.csv.WriteOptions(delimiter=";" if number else ",")
        )
    described = Description("stamp", "nr", tokyo, columns={"a_real": "A"})
    with pytest.raises(IncomingError, match="more than six digits of a second"):
        move(conninfo, CsvFiles(tmp_path / "csv", described), described)
    described = replace(described, digits="round")
    assert sum(each.rows for each in move(conninfo, CsvFiles(tmp_path / "csv", described), described)) == ROWS
    assert plain(stored(conninfo)) == plain(plain_rows)


def test_a_number_beyond_the_range_of_reals_is_refused(tmp_path: Path) -> None:
    schema = table(1).select(["seq_no", "time", "a_real"]).schema
    (tmp_path / "old.csv").write_text("seq_no,time,a_real\n1,2026-03-02 00:00:00,1e39\n")
    with pytest.raises(IncomingError, match="a_real has a number beyond the range"):
        shaped(CsvFiles(tmp_path / "old.csv", Description()), schema)
    (batch,) = CsvFiles(tmp_path / "old.csv", Description(values="round")).batches(schema, None, NOW)
    assert batch["a_real"].to_pylist() == [float("inf")]


def test_a_query_of_postgresql(
    conninfo: str, new: psycopg.Connection, empty_database_url: sa.URL, tmp_path: Path
) -> None:
    rows = table()
    there = conninfo_of(empty_database_url)
    with psycopg.connect(there) as old:
        old.execute(
            "create table history (nr int, at timestamp, a_real real, a_double double precision, an_int int,"
            " a_smallint smallint, a_bigint bigint, a_bit boolean, a_varchar text)"
        )
        with old.cursor().copy("copy history from stdin") as copy:
            for row in rows.to_pylist():
                row["time"] = row["time"].replace(tzinfo=None)
                copy.write_row([*row.values()])
    described = Description("at", "nr")
    source = PostgresRows(there, "select * from history where an_int >= 0;", described)
    moved = move(conninfo, source, described)
    assert sum(each.rows for each in moved) == ROWS
    assert moved[-1].fraction == 1
    assert plain(stored(conninfo)) == plain(rows)


@pytest.mark.parametrize(
    ("change", "described", "words"),
    [
        (lambda rows: rows.take(pa.array([1, 0])), Description(), "not in the order of time"),
        (
            lambda rows: rows.take(pa.array([0, 0])),
            Description(),
            "two rows have the time .* and the seq_no 1",
        ),
        (lambda rows: rows.drop_columns("time"), Description(), "no column 'time'"),
        (
            lambda rows: rows.set_column(2, "a_real", pa.array([0.1, 0.2])),
            Description(),
            "column a_real has doubles, of which a_real would lose digits",
        ),
        (
            lambda rows: rows.set_column(5, "a_smallint", pa.array([70_000, 1])),
            Description(),
            "column a_smallint is int64 and a_smallint int16: .*70000",
        ),
        (
            lambda rows: rows.set_column(8, "a_varchar", pa.array(["é" * 41, ""])),
            Description(),
            "column a_varchar has a text of more than 40 characters",
        ),
        (
            lambda rows: rows.set_column(1, "time", pa.array([datetime(2026, 3, 29, 2, 30)] * 2)),
            Description(timezone="Europe/Berlin"),
            "2026-03-29 02:30:00",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    conninfo: str,
    new: psycopg.Connection,
    tmp_path: Path,
    change: Callable[[pa.Table], pa.Table],
    described: Description,
    words: str,
) -> None:
    pq.write_table(change(table(2)), tmp_path / "old.parquet")
    with pytest.raises(IncomingError, match=words):
        move(conninfo, ParquetFiles(tmp_path / "old.parquet", described), described)
    with psycopg.connect(conninfo) as connection:
        assert manifest(connection) == []


def test_rows_without_time_or_seq_no(conninfo: str, new: psycopg.Connection, tmp_path: Path) -> None:
    rows = table(30)
    some = pa.array(
        [None if n % 10 == 3 else moment for n, moment in enumerate(rows["time"].to_pylist())],
        pa.timestamp("us", "UTC"),
    )
    pq.write_table(rows.set_column(1, "time", some).drop_columns("seq_no"), tmp_path / "old.parquet")
    source = ParquetFiles(tmp_path / "old.parquet", Description())
    migration = Migration(conninfo, "every_type", source, Description(), now=NOW)
    [*migration.run()]
    assert migration.left_out == {"without a time": 3, "repeated": 0}
    found = stored(conninfo)
    assert found["seq_no"].to_pylist() == [n % 10 + 1 for n in range(27)]
    with psycopg.connect(conninfo) as connection:
        assert [each.left_out for each in progress(connection)] == [3]


def test_the_description_of_a_source_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "columns.toml"
    file.write_text('[every_type]\ntime = "at"\nzone = "UTC"')
    with pytest.raises(IncomingError, match=r"\[every_type\] has zone; known are "):
        description_of(file, "every_type")
    file.write_text('[every_type]\ntimezone = "Moon"')
    with pytest.raises(IncomingError, match="there is no time zone 'Moon'"):
        description_of(file, "every_type")
    file.write_text('[every_type]\ncolumns = { a_real = "I1" }')
    assert description_of(file, "every_type").named("a_real") == "I1"
    assert description_of(file, "another") == Description()
