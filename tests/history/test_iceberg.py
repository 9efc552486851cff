"""The archive as Iceberg tables, read by pyiceberg and DuckDB: the manifest's rows, and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import duckdb
import psycopg
import pyarrow.compute as pc
import pytest
import sqlalchemy as sa
from kills import Deaths
from pyarrow import dataset
from pyiceberg.io.pyarrow import PyArrowFile
from sqlalchemy.orm import Session

from ringlog.history.archive import archiving, iceberg
from ringlog.history.archive.addresses import METADATA, NAMESPACE
from ringlog.history.archive.folder import Folder
from ringlog.history.archive.iceberg import catalog, is_published, publish
from ringlog.history.archive.ownership import NotOurs
from ringlog.history.archive.recall import recall
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain

from .conftest import COLUMNS, conninfo_of

NOW = datetime(2026, 6, 10, tzinfo=UTC)
BEGIN = datetime(2026, 4, 27, tzinfo=UTC)
OTHERS = (
    Column("a_numeric", "t/numeric", "numeric(10,2)"),
    Column("a_time", "t/time", "datetime"),
    Column("reals", "t/reals", "real[]", points=8),
)
TABLES = (
    Table("every_type", 10, 1.0, (*COLUMNS, *OTHERS)),
    Table("other", 10, 1.0, (Column("a_real", "o/real", "real"),)),
)

archive = partial(archiving.archive, pauses=0)


@pytest.fixture
def sql(engine: sa.Engine, conninfo: str, where: str) -> Iterator[psycopg.Connection]:
    """Rows every 20 minutes for six weeks, of which four are in the archive; all are in `copied` too."""
    install(engine, Facility("test", "UTC", TABLES, history=History(Retention(2, "week"), where)))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("create table copied (like log.every_type)")
        insert(connection, BEGIN, 3000)
        maintain(engine, NOW)
        [*archive(conninfo, NOW)]
        yield connection


def insert(connection: psycopg.Connection, begin: datetime, rows: int) -> None:
    connection.execute(
        """
        insert into copied
        select
          1 + n % 3, %(begin)s::timestamptz + n * interval '20 minutes', sin(n), cos(n), n, n %% 100,
          n * 1000000000::bigint, n %% 2 = 0, 'text ' || n, n / 100.0,
          '1966-10-14'::timestamptz + n * interval '1 day', array[n, 0.5]::real[]
        from generate_series(1, %(rows)s) as n
        """.replace("n % 3", "n %% 3"),
        {"begin": begin, "rows": rows},
    )
    connection.execute(
        "insert into weeks.every_type select * from copied where time > %s on conflict do nothing", [begin]
    )


SUMS = """
    select count(*), count(distinct time), min(time), max(time), sum(seq_no), sum(an_int), sum(a_smallint),
      sum(a_bigint), count(*) filter (where a_bit), max(a_varchar), sum(a_numeric::numeric), max(a_time),
      sum(floor(a_real * 1024)::bigint), sum(floor(a_double * 1024)::bigint), sum(reals[1]::bigint)
    from {}
"""


def test_readers_find_the_rows_of_the_manifest(conninfo: str, sql: psycopg.Connection, where: str) -> None:
    assert [*archive(conninfo, NOW)] == []
    assert not is_published(sql)
    (line,) = publish(conninfo)
    assert line == "published log.every_type: 4 weeks more, 0 fewer; 4 with 2015 rows"
    assert [*publish(conninfo)] == []
    same(conninfo, sql, where)
    # a late row causes another file, which the round publishes
    insert(sql, BEGIN + timedelta(days=2, seconds=1), 5)
    lines = [*archive(conninfo, NOW)]
    assert "published log.every_type: 1 weeks more, 1 fewer; 4 with 2020 rows" in lines
    same(conninfo, sql, where)
    # a recalled week remains published, and has another file when it is archived again
    [*recall(conninfo, "every_type", BEGIN, BEGIN + timedelta(days=7), timedelta(days=1))]
    assert [*publish(conninfo)] == []
    sql.execute("update ringlog.cold_week set recalled_until = %s where recalled_until is not null", [NOW])
    lines = [*archive(conninfo, NOW)]
    assert "published log.every_type: 1 weeks more, 1 fewer; 4 with 2020 rows" in lines
    same(conninfo, sql, where)
    # retention
    sql.execute("update ringlog.logged_table set retention = '5 weeks' where table_name = 'every_type'")
    lines = [*archive(conninfo, NOW)]
    assert "published log.every_type: 0 weeks more, 1 fewer; 3 with 1512 rows" in lines, lines
    sql.execute("delete from copied where time < %s", [BEGIN + timedelta(days=7)])
    same(conninfo, sql, where)
    # again, from the manifest alone
    catalog(conninfo, where).drop_table((NAMESPACE, "every_type"))
    assert "published log.every_type: 3 weeks more" in "".join(publish(conninfo))
    same(conninfo, sql, where)
    # and without the metadata that the catalogue names
    folder = Folder(where)
    for file, _ in [*folder.names()]:
        if file.startswith(METADATA):
            folder.delete(file)
    assert "published log.every_type: 3 weeks more" in "".join(publish(conninfo))
    same(conninfo, sql, where)
    # a copy of the database leaves the tables unchanged
    sql.execute("update ringlog.archive_owner set database = 1")
    with pytest.raises(NotOurs):
        [*publish(conninfo)]


def same(conninfo: str, sql: psycopg.Connection, where: str) -> None:
    table = catalog(conninfo, where).load_table((NAMESPACE, "every_type"))
    duckdb = table.scan().to_duckdb("rows")
    duckdb.execute("set timezone = 'UTC'; set threads = 1")
    (found,) = duckdb.execute(SUMS.format("rows").replace("::numeric", "::decimal(38, 10)")).fetchall()
    (expected,) = sql.execute(SUMS.format("copied where time < '2026-05-25'").encode()).fetchall()
    assert [float(value) if hasattr(value, "as_tuple") else value for value in found] == [
        float(value) if hasattr(value, "as_tuple") else value for value in expected
    ]
    # one snapshot, after files have left
    assert len(table.snapshots()) == 1
    # files outside of the condition are excluded by their bounds
    day = table.scan(row_filter=f"time >= '{(BEGIN + timedelta(days=15)).isoformat()}'")
    assert len([*day.plan_files()]) == 2


# files are equal in an object store, which DuckDB reads by an extension that it downloads
@pytest.mark.parametrize("where", ["disk"], indirect=True)
def test_readers_find_rows_of_nan(
    engine: sa.Engine, conninfo: str, sql: psycopg.Connection, where: str
) -> None:
    """Bounds of a row group's floats leave NaN out, by which readers would skip it."""
    sql.execute(
        """
        insert into weeks.other (seq_no, time, a_real)
        select 1, %s + n * interval '1 hour', case when n %% 10 = 0 then 'NaN' else 1::real end
        from generate_series(0, 299) as n
        """,
        [BEGIN],
    )
    maintain(engine, NOW)
    [*archive(conninfo, NOW)]
    [*publish(conninfo)]
    table = catalog(conninfo, where).load_table((NAMESPACE, "other"))
    files = [task.file.file_path for task in table.scan().plan_files()]
    assert len(files) == 2
    conditions = "a_real <> 1", "a_real > 1", "isnan(a_real)"
    for condition in conditions:
        query = f"select count(*) from read_parquet({files}) where {condition}"
        assert duckdb.sql(query).fetchall() == [(30,)], condition
        scanned = table.scan().to_duckdb("rows").execute(f"select count(*) from rows where {condition}")
        assert scanned.fetchall() == [(30,)], condition
    rows = dataset.dataset([file.removeprefix("file://") for file in files])
    assert rows.count_rows(filter=pc.field("a_real") != 1) == 30
    assert rows.count_rows(filter=pc.is_nan(pc.field("a_real"))) == 30
    for row_filter in ("a_real != 1", "a_real is nan"):
        assert table.scan(row_filter=row_filter).to_arrow().num_rows == 30, row_filter


@pytest.mark.long
def test_added_and_changed_columns(
    engine: sa.Engine, conninfo: str, sql: psycopg.Connection, where: str
) -> None:
    [*publish(conninfo)]
    facility = Facility("test", "UTC", TABLES, history=History(Retention(2, "week"), where))
    grown = replace(TABLES[0], columns=(*TABLES[0].columns, Column("more", "t/more", "double")))
    install(engine, replace(facility, tables=(grown, TABLES[1])))
    [*publish(conninfo)]
    table = catalog(conninfo, where).load_table((NAMESPACE, "every_type"))
    assert "more" in table.schema().column_names
    rows = table.scan(selected_fields=("an_int", "more")).to_arrow()
    assert (rows.num_rows, rows["more"].null_count) == (2015, 2015)
    # one that Iceberg does not widen to
    sql.execute("drop view log.every_type cascade; alter table weeks.every_type alter a_smallint type text")
    assert [*publish(conninfo)] == []
    rows = catalog(conninfo, where).load_table((NAMESPACE, "every_type")).scan().to_arrow()
    assert (rows["a_smallint"].null_count, rows["a_smallint_2"].null_count) == (0, 2015)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_at_every_step(
    conninfo: str, sql: psycopg.Connection, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Publishing dies before each of its steps, at first without tables, then with a replaced file."""
    steps: list[tuple[object, str]] = [(Session, "commit"), (PyArrowFile, "create"), (Folder, "delete")]
    steps += [(Folder, "give"), (iceberg, "_added"), (iceberg, "_expire"), (iceberg, "_tidy")]
    deaths = Deaths(monkeypatch, steps)

    def killed() -> bool:
        """Whether publishing dies at the next step."""
        number[0] += 1
        deaths.left = number[0]
        try:
            [*publish(conninfo)]
        except KeyboardInterrupt:
            return True
        finally:
            deaths.left = 0
        return False

    # so that no file outlives its snapshot
    monkeypatch.setattr(iceberg, "_KEPT", timedelta(seconds=-60))
    number = [0]
    states: list[set[str]] = [set(), in_manifest(sql, where)]
    while killed():
        assert in_table(conninfo, where) in states
    first = number[0]
    same(conninfo, sql, where)
    number = [0]
    late = 0
    while True:
        late += 1
        insert(sql, BEGIN + timedelta(days=2, seconds=late), 1)
        monkeypatch.setattr(archiving, "_publish", lambda *_: iter(()))
        [*archive(conninfo, NOW)]
        states = [in_table(conninfo, where), in_manifest(sql, where)]
        dies = killed()
        assert in_table(conninfo, where) in states
        if not dies:
            break
    assert first > 5
    assert late > 15
    same(conninfo, sql, where)
    # nothing is left of rounds that died
    [*publish(conninfo)]
    named = {file for file, _ in Folder(where).names() if file.startswith(METADATA)}
    table = catalog(conninfo, where).load_table((NAMESPACE, "every_type"))
    (snapshot,) = table.snapshots()
    used = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    used |= {snapshot.manifest_list, *(each.manifest_path for each in snapshot.manifests(table.io))}
    assert {iceberg.address(where, file) for file in named} == used


def in_manifest(sql: psycopg.Connection, where: str) -> set[str]:
    """The addresses of the files of the manifest."""
    found = sql.execute("select file from ringlog.cold_week where table_name = 'every_type' and rows > 0")
    return {iceberg.address(where, file) for (file,) in found}


def in_table(conninfo: str, where: str) -> set[str]:
    """The addresses of the files of the Iceberg table; none without it."""
    tables = catalog(conninfo, where)
    if not tables.namespace_exists(NAMESPACE) or not tables.table_exists((NAMESPACE, "every_type")):
        return set()
    files = iceberg._files(tables.load_table((NAMESPACE, "every_type")))
    return {*files}


@pytest.mark.parametrize("damage", ["gone", "short", "footer"])
def test_a_damaged_file_is_named(conninfo: str, sql: psycopg.Connection, where: str, damage: str) -> None:
    folder, name = Folder(where), "every_type/2026w19.parquet"
    with folder.opened(name) as stream:
        content = bytearray(stream.read())
    folder.delete(name)
    if damage != "gone":
        content[-200] ^= 1
        with folder.created(name) as stream:
            stream.write(bytes(content[:-100] if damage == "short" else content))
    (line,) = publish(conninfo)
    assert line.startswith("log.every_type is not published: ")
    assert name in line


@pytest.mark.long
def test_another_database_with_the_folder_is_refused(
    conninfo: str,
    sql: psycopg.Connection,
    where: str,
    prepared_databases: Callable[[], AbstractContextManager[sa.URL]],
) -> None:
    [*publish(conninfo)]
    there = in_table(conninfo, where)
    with prepared_databases() as url:
        other = sa.create_engine(url)
        install(other, Facility("test", "UTC", TABLES, history=History(Retention(2, "week"), where)))
        with pytest.raises(NotOurs, match="it belongs to another database"):
            [*publish(conninfo_of(url))]
        other.dispose()
    assert in_table(conninfo, where) == there
    same(conninfo, sql, where)
