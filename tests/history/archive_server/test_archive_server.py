"""The archive server: weeks that come and go, rights, kills, damaged files and memory."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import psutil
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from psycopg import errors

from ringlog.history.archive.folder import Folder
from ringlog.history.archive.parquet import files
from ringlog.history.archive.recall import recall
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from ringlog.server.processes.archive_server import ArchiveServer, ArchiveServers
from waiting import among_readers, wait_until

from ..conftest import COLUMNS, conninfo_of, running
from .conftest import BEGIN, NOW, OTHERS, Databases, archive, made, one


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
        [*archive(conninfo, NOW)]
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
            among_readers(partial(recall, conninfo, "every_type", *weeks, timedelta(0)))
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
            among_readers(partial(archive, conninfo, NOW))
    finally:
        done.set()
        for thread in counting:
            thread.join()
    assert len(counts) > 3
    assert {*counts} == {(3001, 3000 * 3001 // 2)}
    assert one(sql, "select count(*) from log.every_type where an_int = -1") == (late,)


@pytest.fixture
def may_start(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Another process of the archive server begins only then, and not after the second that it pauses."""
    new, event = ArchiveServer._new, threading.Event()
    monkeypatch.setattr(ArchiveServer, "_new", staticmethod(lambda: event.wait() and new()))
    yield event
    event.set()


def test_a_server_that_ends_during_an_answer(
    server: ArchiveServers, archived: sa.URL, may_start: threading.Event
) -> None:
    with psycopg.connect(conninfo_of(archived)) as connection:
        assert server.running is not None
        connection.execute("declare rows cursor for select * from archive.every_type")
        assert connection.execute("fetch 5 from rows").rowcount == 5
        opened = []
        for each in Path(f"/proc/{server.running.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # one that is closed
                opened.append(each.readlink())
        (spill,) = [each for each in opened if each.name.startswith("ringlog-spill-")]
        os.kill(server.running.pid, signal.SIGKILL)
        os.utime(spill, (0, 0))  # as if it had existed for long
        with pytest.raises(errors.OperationalError, match="server closed the connection"):
            connection.execute("fetch all from rows")
        connection.rollback()
        with pytest.raises(errors.OperationalError, match=r"archive server \(see ringlog status\)"):
            connection.execute("select count(*) from archive.every_type")
        connection.rollback()
        may_start.set()

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
    (week,) = one(sql, query.replace("archive || '/' || file", "begins"))
    # somewhere in the pages
    for damaged in (content[:5000] + bytes([content[5000] ^ 1]) + content[5001:], content[:-100], b"", None):
        file.unlink(missing_ok=True)
        if damaged is not None:
            file.write_bytes(damaged)
        with pytest.raises(errors.IoError, match=rf"{file.stem}.*ringlog archive verify"):
            sql.execute("select * from archive.every_type")
        why = sql.execute(
            "select since, evidence from ringlog.why_missing('t/real', '2026-04-29Z', '2026-05-16Z')"
            " where cause = 'archive unreadable'"
        ).fetchall()
        # the changed byte is one of another column
        wanted = [] if damaged is not None and len(damaged) == len(content) else [(week, True)]
        assert [(since, file.name in evidence) for since, evidence in why] == wanted
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
