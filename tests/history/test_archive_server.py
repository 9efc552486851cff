"""SQL over the archive: `archive.<table>`, which is answered by the archive server."""

import json
import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TypeAlias

import numpy as np
import psutil
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from case_tables import cases
from psycopg import errors

from ringlog.history.archive import archiving
from ringlog.history.archive.folder import Damaged, Folder
from ringlog.history.archive.parquet import files
from ringlog.history.archive.recall import recall
from ringlog.history.archive_server import rows as rows_of_files
from ringlog.history.archive_server import statement
from ringlog.history.archive_server.engine import Engine, Failed
from ringlog.history.archive_server.lists import Changed, Lists
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from ringlog.server.processes.archive_server import ArchiveServers
from waiting import among_readers, wait_until

from .conftest import COLUMNS, conninfo_of, running

NOW = datetime(2026, 6, 10, tzinfo=UTC)
BEGIN = datetime(2026, 4, 27, tzinfo=UTC)

OTHERS = (
    Column("a_numeric", "t/numeric", "numeric(10,2)"),
    Column("a_time", "t/time", "datetime"),
    Column("a_text", "t/text", "text"),
    Column("reals", "t/reals", "real[]", points=8),
    Column("texts", "t/texts", "varchar(20)[]", points=8),
    Column("bits", "t/bits", "bit[]", points=8),
)

archive = partial(archiving.archive, pauses=0)


Databases: TypeAlias = Callable[[], AbstractContextManager[sa.URL]]


@pytest.fixture(scope="module")
def archived(prepared_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.URL]:
    with made(prepared_databases, tmp_path_factory.mktemp("archive_server") / "archive") as url:
        yield url


@contextmanager
def made(prepared_databases: Databases, folder: Path) -> Iterator[sa.URL]:
    """Rows every 20 minutes for six weeks, of which two remain online; they are in schema `copied` too."""
    tables = (Table("every_type", 10, 1.0, (*COLUMNS, *OTHERS)),)
    facility = Facility("test", "UTC", tables, history=History(Retention(2, "week"), str(folder)))
    with prepared_databases() as url:
        engine = sa.create_engine(url)
        install(engine, facility)
        with psycopg.connect(conninfo_of(url)) as connection:
            connection.execute(
                """
                insert into log.every_type
                select
                  1 + n % 3, %(begin)s + n * interval '20 minutes',
                  case when n %% 7 = 0 then 'NaN' when n %% 11 = 0 then null else sin(n) end,
                  case when n %% 5 = 0 then '-0' when n %% 3 = 0 then 'infinity' else cos(n) end,
                  n, n %% 100, n * 1000000000::bigint, n %% 2 = 0, 'text "' || n,
                  n / 100.0,
                  timestamptz '1066-10-14 12:00Z' - n * interval '290 days 1 hour 0.000001 second',
                  E'a\\\\b' || n,
                  case when n %% 4 <> 0 then array[n, 1e-20, 'NaN', -0.5]::real[] end,
                  array['a"b', null, 'c\\d', '', 'null', '{x,y}'], array[true, false]
                from generate_series(0, 3000) as n;
                create schema copied;
                create table copied.every_type as select * from log.every_type;
                """.replace("%(begin)s", f"timestamptz '{BEGIN.isoformat()}'").replace("%%", "%")
            )
        maintain(engine, NOW)
        [*archive(engine, conninfo_of(url), NOW)]
        engine.dispose()
        yield url


@pytest.fixture(scope="module")
def server(archived: sa.URL) -> Iterator[ArchiveServers]:
    with running(archived) as servers:
        yield servers


@pytest.fixture(scope="module")
def sql(archived: sa.URL, server: ArchiveServers) -> Iterator[psycopg.Connection]:
    """A connection with a running archive server."""
    with psycopg.connect(conninfo_of(archived), autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        yield connection


def one(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    found = connection.execute(query.encode()).fetchone()
    assert found is not None
    return found


def test_lists_of_files_are_requested_once() -> None:
    asked: list[str] = []
    lists = Lists(asked.append)
    week = ["t/1.parquet", "2026-04-27T00:00:00+00:00", "2026-05-04T00:00:00+00:00", 5, "f"]
    text = json.dumps({"folder": "/a", "files": [week]})
    name = f"a table {sha256(text.encode()).hexdigest()}"
    lists.answer(json.dumps([1, text, None]).encode())
    (week,) = lists.of(name).weeks
    assert (week.name, week.begins, week.ends, week.rows) == (
        "t/1.parquet",
        BEGIN,
        BEGIN + timedelta(weeks=1),
        5,
    )
    assert lists.of(name).folder == "/a"
    # one that the manifest has no longer, and none; an answer to an earlier question does not count
    lists.answer(json.dumps([2, text, None]).encode())
    with pytest.raises(Changed, match="weeks of a table were archived or recalled meanwhile"):
        lists.of("a table 1")
    lists.answer(json.dumps([2, text, None]).encode())
    lists.answer(json.dumps([3, None, "no connection"]).encode())
    with pytest.raises(Damaged, match="files of other cannot be read from the manifest: no connection"):
        lists.of("other 2")
    assert asked == ['files 1 "a table"\n', 'files 2 "a table"\n', 'files 3 "other"\n']


def test_no_list_of_files_is_sent(sql: psycopg.Connection) -> None:
    plan = sql.execute("explain (verbose) select * from archive.every_type").fetchall()
    assert "Remote SQL" in str(plan)
    assert ".parquet" not in str(plan)


def test_every_row(sql: psycopg.Connection) -> None:
    (rows,) = one(sql, "select sum(rows)::int from ringlog.cold_week where table_name = 'every_type'")
    assert one(sql, "select count(*) from archive.every_type") == (rows,)
    # bit by bit
    same = """
        select count(*) from archive.every_type as a join copied.every_type as c using ("time", seq_no)
        where (a.*) *= (c.*)
    """
    assert one(sql, same) == (rows,)


@pytest.mark.parametrize(
    ("query", "sent"),
    cases(__file__, "its_answers_equal_postgresqls")
)  # fmt: skip
def test_its_answers_equal_postgresqls(sql: psycopg.Connection, query: str, sent: str) -> None:
    there = query.replace("{}", "archive.every_type").replace("{{", "{").replace("}}", "}")
    # the rows that are not archived yet
    rows = "(select * from copied.every_type where time < '2026-05-25')"
    here = query.replace("{} a", f"{rows} a").replace("{} b", f"{rows} b").replace("{}", f"{rows} c")
    here = here.replace("{{", "{").replace("}}", "}")
    plan = sql.execute(f"explain verbose {there}".encode()).fetchall()
    assert any(sent in line for (line,) in plan if "Remote SQL" in line)
    found, expected = (sql.execute(text.encode()).fetchall() for text in (there, here))
    assert compared(found) == compared(expected)


def compared(rows: list[tuple[object, ...]]) -> str:
    """Rows as text, NaN as NaN; numerics with the digits that DuckDB has for an average."""
    return str([[float(value) if isinstance(value, Decimal) else value for value in row] for row in rows])


@pytest.mark.parametrize(("query", "words"), cases(__file__, "unsupported_requests"))
def test_unsupported_requests(sql: psycopg.Connection, query: str, words: str) -> None:
    with pytest.raises(errors.FeatureNotSupported, match=words):
        sql.execute(query.encode())
    # and continues
    taken = "with taken as materialized (select * from archive.every_type) select count(*) from taken"
    assert one(sql, f"{taken} where sinh(a_smallint) > 1") == (1995,)
    with pytest.raises(errors.Error):
        sql.execute("delete from archive.every_type")


def test_a_log_includes_its_archived_weeks(sql: psycopg.Connection) -> None:
    assert one(sql, "select count(*), sum(an_int) from log.every_type") == (3001, 3000 * 3001 // 2)
    same = """
        select count(*) from log.every_type as a join copied.every_type as c using ("time", seq_no)
        where (a.*) *= (c.*)
    """
    assert one(sql, same) == (3001,)
    newest = "select an_int from {} order by time desc limit 10"
    middle = "select an_int from {} where time < '2026-05-25 01:00Z' order by time desc, seq_no limit 10"
    words = "select count(*), max(upper(a_text)) from {} where a_text like '%1' and sinh(a_smallint) > 1"
    for query in (newest, middle, words):
        log, copied = (
            sql.execute(query.format(place).encode()).fetchall()
            for place in ("log.every_type", "copied.every_type")
        )
        assert log == copied
    plan = [line for (line,) in sql.execute(b"explain (verbose) " + newest.format("log.every_type").encode())]
    assert any("Remote SQL" in line and "ORDER BY" in line for line in plan)


@pytest.mark.parametrize("bound", ["< {}", "<= {}", "= {}", "> {}", ">= {}", "> {} and {} >= time"])
def test_bounds_of_time_are_exact(sql: psycopg.Connection, bound: str) -> None:
    """Also if only they are sent, and DuckDB is not used."""
    condition = "time " + bound.format("'2026-05-04 00:20Z'", "'2026-05-18 00:40Z'")
    for order in ("", "order by time", "order by time desc"):
        here, *there = (
            sql.execute(f"select an_int from {rows} where {condition} {order}".encode()).fetchall()
            for rows in ("copied.every_type", "log.every_type", "archive.every_type")
        )
        if not order:
            here, *there = (sorted(rows) for rows in (here, *there))
        archived = [row for row in here if row[0] < 2016]
        assert archived
        assert there == [here, archived]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ('SELECT "a:real" FROM {}', ["a:real"]),
        ('SELECT "a:real", "b:real" FROM {} WHERE (("time:timestamp with time zone" < $1)) '
         'ORDER BY "time:timestamp with time zone" DESC NULLS FIRST', ["a:real", "b:real"]),
        ('SELECT "a:real" FROM {} WHERE (("seq_no:integer" < 5))', None),
        ('SELECT "a:real" FROM {} WHERE (("number:integer" = 5))', None),
        ('SELECT "a:real" FROM {} WHERE (("time:timestamp with time zone" < \'infinity\'))', None),
        ('SELECT "a:real" FROM {} ORDER BY "a:real" ASC NULLS LAST', None),
        ('SELECT "a:real" FROM {} LIMIT 3::bigint', None),
        ('SELECT count("a:real") FROM {}', None),
        ("SELECT NULL FROM {}", None),
    ],
)  # fmt: skip
def test_queries_without_duckdb(query: str, columns: list[str] | None) -> None:
    assert statement.read(query.format('archive."t 1"'), ["2026-05-04 00:00:00+00"]).columns == columns


@pytest.mark.parametrize("order", ["ASC NULLS LAST", "DESC NULLS FIRST"])
def test_the_first_rows_come_from_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """The first answer has as many rows as requested; the next ones have more."""
    # this process, which runs other tests too, is larger than the archive server may be
    monkeypatch.setattr(rows_of_files, "resident", lambda: 0)
    folder, rows = Folder(str(tmp_path)), 5000
    begins = int(BEGIN.timestamp()) * 10**6
    times = pa.array(begins + np.arange(rows) * 10**6, pa.timestamp("us", "UTC"))
    with folder.created("there.parquet") as stream:
        columns = {"seq_no": pa.array(np.arange(rows), pa.int32()), "time": times}
        files.write(stream, iter([pa.record_batch(columns)]), {})
    here = [["there.parquet", BEGIN.isoformat(), (BEGIN + timedelta(weeks=1)).isoformat(), rows, None]]
    is_last = order.startswith("DESC")
    place = BEGIN - timedelta(weeks=1) if is_last else BEGIN + timedelta(weeks=1)
    gone = [["gone.parquet", place.isoformat(), (place + timedelta(weeks=1)).isoformat(), 1, None]]
    text = json.dumps({"folder": str(tmp_path), "files": gone + here if is_last else here + gone})
    lists = Lists(lambda _: None)
    lists.answer(json.dumps([1, text, None]).encode())
    engine = Engine(str(tmp_path), 1 << 20, 1, lists)
    answer = engine.query(
        f'SELECT "seq_no:integer" FROM archive."t {sha256(text.encode()).hexdigest()}"'
        f' ORDER BY "time:timestamp with time zone" {order}',
        [],
    )
    found, counts = b"", []
    while sum(counts) < rows:
        messages, count = answer.take(10)
        found += b"".join(messages)
        counts.append(count)
        answer.prepare()
    assert counts[:3] == [10, 90, 1000]
    # an error of rows that were made ahead is never the end of the rows
    for _ in range(2):
        with pytest.raises(Failed, match=r"gone\.parquet"):
            answer.take(10)
    answer.close()
    numbers = [*range(rows)]
    # a message of one value: D, its length, the number of values, the value's length and text
    texts = [str(number).encode() for number in (reversed(numbers) if is_last else numbers)]
    assert found == b"".join(
        b"D" + struct.pack("!ihi", 10 + len(value), 1, len(value)) + value for value in texts
    )


def test_procedures_read_it(sql: psycopg.Connection) -> None:
    """Like rows in PostgreSQL."""
    span = "'2026-04-28', '2026-06-01 00:10'"
    for call, query in {
        f"get_every_type_range({span})": "select * from {rows} order by time, seq_no",
        f"get_every_type_range({span}, 5)": "select * from {rows} order by time, seq_no limit 5",
        f"get_signal('t/smallint', {span})": "select time, a_smallint from {rows} order by time, seq_no",
        f"get_signal('t/bit', {span}, 7)": "select time, a_bit::int from {rows} order by time limit 7",
        "get_every_type_at('2026-04-30 01:01')": "select * from {all} where time = '2026-04-30 01:00'",
        f"get_waveforms('t/reals', {span}, every_nth => 5)": "select time, reals::float8[] from (select *,"
        " row_number() over (order by time, seq_no) as n from {rows} where reals is not null)"
        " where n % 5 = 1 order by n",
        "get_waveform('t/reals', '2026-05-04 00:01')": "select time, reals::float8[] from {all}"
        " where time <= '2026-05-04 00:01' and reals is not null order by time desc limit 1",
    }.items():
        rows = f"(select * from copied.every_type where time >= {span.replace(',', ' and time <')})"
        # as texts: Python has no years before 1
        found = sql.execute(f"select r::text from ringlog.{call} as r".encode()).fetchall()
        query = query.format(rows=rows, all="copied.every_type")
        assert found, call
        assert found == sql.execute(f"select r::text from ({query}) as r".encode()).fetchall(), call


def test_rows_of_a_log_with_archived_weeks(archived: sa.URL) -> None:
    """Rows are inserted, but neither changed nor locked."""
    with psycopg.connect(conninfo_of(archived)) as connection:
        insert = (
            "insert into log.every_type (seq_no, time, an_int) values (1, '2026-06-09', -1) returning an_int"
        )
        assert one(connection, insert) == (-1,)
        assert one(connection, "select count(*) from weeks.every_type where an_int = -1") == (1,)
        for refused in ("update log.every_type set an_int = 0", "delete from log.every_type"):
            with pytest.raises(errors.ObjectNotInPrerequisiteState), connection.transaction():
                connection.execute(refused.encode())
        connection.execute("set role ringlog_owner")
        for strength in ("update", "share"):
            with pytest.raises(errors.InsufficientPrivilege), connection.transaction():
                connection.execute(f"select seq_no from log.every_type for {strength}".encode())
        assert connection.execute("select 1 from weeks.every_type where an_int = -1 for update").rowcount == 1
        connection.rollback()


def test_a_log_before_its_first_archived_week(engine: sa.Engine, conninfo: str, tmp_path: Path) -> None:
    history = History(Retention(2, "week"), str(tmp_path / "archive"))
    tables = tuple(Table(name, 10, 1.0, (Column("a", f"{name}/a", "int"),)) for name in ("old", "new"))
    facility = Facility("test", "UTC", tables, history=history)
    install(engine, facility)
    with psycopg.connect(conninfo, autocommit=True) as connection:

        def reading(table: str) -> bool:
            plan = connection.execute(f"explain (verbose) select * from log.{table}".encode()).fetchall()
            return any("Foreign Scan" in line for (line,) in plan)

        connection.execute("insert into log.old values (1, '2026-04-28', 7)")
        assert connection.execute("select a from log.old for update").fetchall() == [(7,)]
        maintain(engine, NOW)
        assert not reading("old")
        [*archive(engine, conninfo, NOW)]
        assert [reading(table) for table in ("old", "new")] == [True, False]
        assert not install(engine, facility)
        # one more column; both remain so
        more = tuple(
            replace(table, columns=(*table.columns, Column("b", f"{table.name}/b", "real")))
            for table in tables
        )
        install(engine, replace(facility, tables=more))
        assert [reading(table) for table in ("old", "new")] == [True, False]
        connection.execute("insert into log.new values (1, '2026-04-28', 7, 8)")
        assert connection.execute("select b from log.new").fetchall() == [(8.0,)]


def test_analyze(sql: psycopg.Connection) -> None:
    """It samples no ten years of rows."""
    sql.execute("analyze")
    known = one(sql, "select count(*) from pg_stats where schemaname = 'archive_files'")
    assert known == (0,)


def test_archived_rows_cannot_be_changed_but_rows_are_inserted(sql: psycopg.Connection) -> None:
    with sql.transaction(force_rollback=True):
        sql.execute("insert into log.every_type (seq_no, time, an_int) values (9, '2026-06-09', -1)")
        sql.execute("insert into log.every_type (seq_no, time, an_int) values (9, '2026-05-01', -2)")
        assert one(sql, "select count(*), min(an_int) from log.every_type") == (3003, -2)
    with pytest.raises(errors.ObjectNotInPrerequisiteState):
        sql.execute("delete from log.every_type")


@pytest.fixture
def own(prepared_databases: Databases, tmp_path: Path) -> Iterator[tuple[sa.URL, psycopg.Connection]]:
    """A separate database with a running archive server."""
    with (
        made(prepared_databases, tmp_path / "archive") as url,
        running(url),
        psycopg.connect(conninfo_of(url), autocommit=True) as connection,
    ):
        yield url, connection


@pytest.mark.long
def test_each_row_is_counted_once(own: tuple[sa.URL, psycopg.Connection]) -> None:
    """Weeks are recalled and archived again, and late rows arrive, while others count: statement by
    statement, and in transactions whose snapshot is older than the weeks' state.
    """
    url, sql = own
    engine = sa.create_engine(url)
    conninfo = conninfo_of(url)
    query = "select count(*) filter (where an_int >= 0), sum(an_int) from log.every_type where an_int >= 0"
    counts: list[object] = []
    failed: list[psycopg.Error] = []
    done = threading.Event()
    random = Random(49)

    def count(old: bool) -> None:
        with psycopg.connect(conninfo, autocommit=not old) as connection:
            if old:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            took = 0.0
            while not done.is_set():
                # so that there are times without a query also on a busy machine
                done.wait(4 * took)
                connection.execute("select 1")  # an old snapshot is taken here
                done.wait(random.random() if old else 0.1)
                begun = time.monotonic()
                try:
                    counts.append(one(connection, query))
                except errors.SerializationFailure as error:
                    failed.append(error)
                connection.rollback()
                took = time.monotonic() - begun

    counting = [threading.Thread(target=count, args=(old,)) for old in (False, True, True)]
    late = 0
    for thread in counting:
        thread.start()
    try:
        for _ in range(3):
            begins = BEGIN + timedelta(weeks=random.randrange(3))
            weeks = (begins, begins + timedelta(weeks=2))
            among_readers(partial(recall, engine, conninfo, "every_type", *weeks, timedelta(0)))
            # they must remain until then
            sql.execute(
                "update ringlog.cold_week set recalled_until = %s where recalled_until > %s", [NOW, NOW]
            )
            for week in range(6):
                late += 1
                sql.execute(
                    "insert into weeks.every_type (seq_no, time, an_int) values (%s, %s, -1)",
                    [10 + late, BEGIN + timedelta(weeks=week, hours=late)],
                )
            among_readers(partial(archive, engine, conninfo, NOW))
    finally:
        done.set()
        for thread in counting:
            thread.join()
        engine.dispose()
    assert len(counts) > 3
    assert {*counts} == {(3001, 3000 * 3001 // 2)}
    assert one(sql, "select count(*) from log.every_type where an_int = -1") == (late,)


def test_a_server_that_ends_during_an_answer(server: ArchiveServers, archived: sa.URL) -> None:
    with psycopg.connect(conninfo_of(archived)) as connection:
        assert server.running is not None
        connection.execute("declare rows cursor for select * from archive.every_type")
        assert connection.execute("fetch 5 from rows").rowcount == 5
        opened = [each.readlink() for each in Path(f"/proc/{server.running.pid}/fd").iterdir()]
        (spill,) = [each for each in opened if each.name.startswith("ringlog-spill-")]
        os.kill(server.running.pid, signal.SIGKILL)
        os.utime(spill, (0, 0))  # as if it had existed for long
        with pytest.raises(errors.OperationalError, match="server closed the connection"):
            connection.execute("fetch all from rows")
        connection.rollback()
        with pytest.raises(errors.OperationalError, match=r"archive server \(see ringlog status\)"):
            connection.execute("select count(*) from archive.every_type")
        connection.rollback()

        def answers() -> bool:
            try:
                return one(connection, "select count(*) from archive.every_type") == (2016,)
            except errors.OperationalError:
                return False
            finally:
                connection.rollback()

        wait_until(answers)
        assert "1 restarts" in str(server.state)
        assert not spill.exists()


def test_a_log_without_an_archive_server(archived: sa.URL) -> None:
    """Queries of recent weeks run without the archive server; others fail with an error that names it."""
    recent = "select count(*) from log.every_type where time >= "
    with psycopg.connect(conninfo_of(archived)) as connection:
        connection.execute("alter server \"archive server (see ringlog status)\" options (set port '1')")
        for bound in ("'2026-05-25Z'", "now() - interval '1 day'"):
            assert one(connection, recent + bound) is not None
        connection.execute("set plan_cache_mode = force_generic_plan")
        connection.execute(f"prepare recent (timestamptz) as {recent} $1".encode())
        assert one(connection, "execute recent ('2026-05-25Z')") == (985,)
        with pytest.raises(errors.OperationalError, match=r"archive server \(see ringlog status\)"):
            connection.execute("execute recent ('2026-05-24Z')")
        connection.rollback()


def test_it_can_be_cancelled(sql: psycopg.Connection) -> None:
    """A join of each row with each, in groups."""
    endless = """
        select count(*) from archive.every_type a join archive.every_type b on a.an_int < b.an_int
        join archive.every_type c on b.an_int < c.an_int where a.a_real + b.a_real * c.a_real > 5
    """
    sql.execute("set statement_timeout = 500")
    with pytest.raises(errors.QueryCanceled):
        sql.execute(endless)
    sql.execute("reset statement_timeout")
    assert one(sql, "select count(*) from archive.every_type") == (2016,)


def test_damaged_and_missing_files_are_named(sql: psycopg.Connection, archived: sa.URL) -> None:
    query = """
        select archive || '/' || file from ringlog.history, ringlog.cold_week
        where table_name = 'every_type' and begins < '2026-05-05' order by begins desc limit 1
    """
    file = Path(str(one(sql, query)[0]))
    content = file.read_bytes()
    # somewhere in the pages
    for damaged in (content[:5000] + bytes([content[5000] ^ 1]) + content[5001:], content[:-100], b"", None):
        file.unlink(missing_ok=True)
        if damaged is not None:
            file.write_bytes(damaged)
        with pytest.raises(errors.IoError, match=rf"{file.stem}.*ringlog archive verify"):
            sql.execute("select * from archive.every_type")
        # others are read
        assert one(sql, "select count(a_real) from archive.every_type where time > '2026-05-15'") is not None
        assert one(sql, "select seq_no from archive.every_type order by time desc limit 1") == (3,)
    file.write_bytes(content)
    assert one(sql, "select count(a_real) from archive.every_type") == (1859,)


def test_it_answers_only_its_database(sql: psycopg.Connection) -> None:
    options = dict(
        option.split("=", 1)
        for (option,) in sql.execute("select unnest(srvoptions) from pg_foreign_server").fetchall()
    )
    for user, password in (("ringlog", "guessed"), ("postgres", ""), ("ringlog", "")):
        with pytest.raises(psycopg.OperationalError, match=r"its own database only|no password supplied"):
            psycopg.connect(
                host=options["host"], port=options["port"], user=user, password=password, dbname="archive"
            )


def test_rights_are_the_tables(sql: psycopg.Connection) -> None:
    sql.execute("create role archive_reader in role daq_reader; create role archive_nobody")
    try:
        for role, table, may in (
            ("archive_reader", "archive.every_type", True),
            ("archive_reader", "archive_files.every_type", False),
            ("archive_nobody", "archive.every_type", False),
        ):
            with sql.transaction(force_rollback=True):
                sql.execute(f"set local role {role}".encode())
                if may:
                    assert one(sql, f"select count(*) from {table}") == (2016,)
                else:
                    with pytest.raises(errors.InsufficientPrivilege):
                        sql.execute(f"select count(*) from {table}".encode())
    finally:
        sql.execute("drop role archive_reader, archive_nobody")


def test_a_view_created_again_keeps_its_readers(sql: psycopg.Connection) -> None:
    """The script that changes a column's type drops it; the next change of the manifest creates it again."""
    with sql.transaction(force_rollback=True):
        sql.execute("drop view recent.every_type, log.every_type")
        sql.execute("select ringlog.view_archive('every_type', 'every_type')")
        sql.execute("set local role daq_reader")
        assert one(sql, "select count(*) from log.every_type") == (3001,)


def test_without_postgres_fdw(
    engine: sa.Engine, conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "postgres_fdw_that_is_not_there"
    monkeypatch.setattr("ringlog.schema.relations.archive_tables._EXTENSION", missing)
    history = History(Retention(2, "week"), str(tmp_path))
    tables = (Table("every_type", 10, 1.0, COLUMNS),)
    facility = Facility("test", "UTC", tables, history=history)
    install(engine, facility)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        with pytest.raises(errors.FeatureNotSupported, match="no postgres_fdw"):
            connection.execute("select count(*) from archive.every_type")
        # and with it
        monkeypatch.undo()
        install(engine, facility)
        with pytest.raises(errors.OperationalError, match="archive server"):
            connection.execute("select count(*) from archive.every_type")
        # one more column; the view stays
        connection.execute("create view public.on_it as select seq_no from archive.every_type")
        more = replace(facility, tables=(Table("every_type", 10, 1.0, (*COLUMNS, *OTHERS[:3])),))
        assert "view archive.every_type" in install(engine, more).created
        assert not install(engine, more)
        connection.execute("drop view public.on_it")
        # by its new name alone
        (table,) = more.tables
        install(engine, replace(more, tables=(replace(table, name="renamed", renamed_from="every_type"),)))
        views = connection.execute("select viewname from pg_views where schemaname = 'archive'").fetchall()
        assert views == [("renamed",)]


@pytest.mark.long
def test_its_memory_is_bounded(database_url: sa.URL, engine: sa.Engine, tmp_path: Path) -> None:
    """Many simultaneous queries; those without room fail, and the server continues."""
    rows, names = 200_000, [f"v{n}" for n in range(100)]
    columns = tuple(Column(name, f"wide/{name}", "double") for name in names)
    history = History(Retention(2, "week"), str(tmp_path))
    install(engine, Facility("test", "UTC", (Table("wide", 10, 1.0, columns),), history=history))
    begins = int(BEGIN.timestamp()) * 10**6
    random = np.random.default_rng(1)
    batch = pa.record_batch(
        {
            "seq_no": pa.array(np.arange(rows) % 10 + 1, pa.int32()),
            "time": pa.array(begins + np.arange(rows) * 1000, pa.timestamp("us", "UTC")),
            **{name: pa.array(random.random(rows)) for name in names},
        }
    )
    folder = Folder(str(tmp_path))
    with folder.created("wide/1.parquet") as stream:
        files.write(stream, (batch.slice(n, 10_000) for n in range(0, rows, 10_000)), {})
    heavy = [
        "select * from archive.wide order by v1 limit 5",
        "select * from archive.wide order by time desc limit 5",
        "select v1, v2, v3, count(*) from archive.wide group by 1, 2, 3 order by 4 limit 5",
        "select count(*) from archive.wide a join archive.wide b on a.v1 = b.v1 and a.v2 = b.v2",
        "select * from archive.wide order by v9, v8 offset 199000",
    ]
    ended: list[object] = []

    def ask(query: str) -> None:
        with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
            try:
                ended.append(len(connection.execute(query.encode()).fetchall()))
            except errors.OutOfMemory as error:
                ended.append(error)

    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        connection.execute(
            "insert into ringlog.cold_week (table_name, begins, ends, file, rows, bytes, sha256, footer)"
            " values ('wide', %s, %s, 'wide/1.parquet', %s, 1, '', %s)",
            [BEGIN, BEGIN + timedelta(weeks=1), rows, files.footer(folder, "wide/1.parquet")],
        )
        with running(database_url) as servers:
            assert servers.running is not None
            process = psutil.Process(servers.running.pid)
            asking = [threading.Thread(target=ask, args=(query,)) for query in heavy]
            for thread in asking:
                thread.start()
            most = 0
            while any(thread.is_alive() for thread in asking):
                most = max(most, process.memory_info().rss)
                time.sleep(0.01)
            assert len(ended) == len(heavy)
            assert most < 512 << 20
            assert one(connection, "select count(*) from archive.wide") == (rows,)
            assert servers.running.state.restarts == 0
