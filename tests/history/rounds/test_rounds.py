"""Old weeks are archived in files and recalled; log and files together always have every row once."""

import os
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors, sql
from typer.testing import CliRunner

from ringlog.cli import app
from ringlog.history.archive import archiving, file_owner, leaving
from ringlog.history.archive.manifest import ColdWeek, note
from ringlog.history.archive.parquet import files
from ringlog.history.archive.round import Round
from ringlog.history.summaries.summarising import summarise
from ringlog.schema import change
from ringlog.schema.layout import OWNER
from ringlog.schema.relations.partitions import Partition, Week, maintain
from servers import ringlog
from waiting import wait_until

from .conftest import BEGIN, NOW, Prepared, Rows, all_rows, archive, in_log, put, stored


def test_the_archive_gives_way_to_writers(table: psycopg.Connection, conninfo: str, folder: Path) -> None:
    nices: set[tuple[int, ...]] = set()

    def stopped() -> bool:
        """Called by the writing thread, while its connection is open."""
        reading = table.execute(
            "select pid from pg_stat_activity where query ilike 'copy%' and datname = current_database()"
        ).fetchall()
        own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        nices.add((own, *(psutil.Process(pid).nice() for (pid,) in reading)))
        return False

    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    assert next(archiving.archive(conninfo, NOW, stopped)).startswith("archived log.every_type_2026w10")
    assert nices == {(19, 19)}
    # and nothing else does
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own
    nices.clear()
    assert next(archive(conninfo, NOW, stopped)).startswith("archived log.")
    assert {one[0] for one in nices} == {own}


def test_old_weeks_become_files(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection, online: Prepared
) -> None:
    before = online.rows
    lines = [*archive(conninfo, NOW)]
    # weeks 10 to 21 ended before 27 May
    assert [line.split(":")[0] for line in lines] == [
        f"archived log.every_type_2026w{n}" for n in range(10, 22)
    ]
    assert in_log(table) == len(before) - 12 * 7 * 72
    assert all_rows(conninfo) == before
    assert sorted(path.name for path in (folder / "every_type").iterdir()) == [
        f"2026w{n}.parquet" for n in range(10, 22)
    ]
    assert [*archive(conninfo, NOW)] == []
    maintain(engine, NOW)
    assert all_rows(conninfo) == before


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
    (line,) = archive(conninfo, NOW)
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
    conninfo: str, folder: Path, table: psycopg.Connection
) -> None:
    trend = (
        "select sum(n), max(max), sum(nans), sum(nulls) from ringlog.get_trend('t/real', %s, %s, 50)",
        [BEGIN, NOW],
    )
    (n, _, *others) = table.execute(*trend).fetchone() or ()
    [*archive(conninfo, NOW)]
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
        assert len([*archive(conninfo, NOW)]) in (0, 2)


def test_a_late_row_between_writing_a_file_and_comparing_it(
    conninfo: str, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(table)
    same = files.same
    starts = iter(range(12))

    def compared(here: Any, there: Any) -> bool:
        put(table, BEGIN + timedelta(weeks=next(starts), hours=1, microseconds=7), 1.0)
        return same(here, there)

    monkeypatch.setattr(files, "same", compared)
    lines = [*archive(conninfo, NOW)]
    assert all("1 rows arrived meanwhile" in line for line in lines)
    assert stored(table) == before + 12


def test_late_rows_of_a_killed_round_are_shown_once(
    conninfo: str, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killed round's trigger has marked rows that the next round's files have."""
    before = stored(table)

    def killed(*values: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Round, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            [*archive(conninfo, NOW)]
    put(table, BEGIN + timedelta(hours=1, microseconds=7), 1.0)
    summarise(conninfo, NOW, enough=1)  # a week is archived once its summaries are made
    lines = [*archive(conninfo, NOW)]
    assert lines[0].startswith("archived log.every_type_2026w10: 505 rows")
    assert "meanwhile" not in lines[0]
    assert stored(table) == before + 1


@pytest.mark.usefixtures("archived")
def test_procedures_report_archived_weeks(conninfo: str, table: psycopg.Connection) -> None:
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


def test_a_partition_over_weeks_in_the_archive(
    conninfo: str, table: psycopg.Connection, archived: Rows
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
    assert [*archive(conninfo, NOW)] == ["archived log.month: 0 rows, 0 bytes, 1 rows arrived meanwhile"]
    assert len(all_rows(conninfo)) == len(before) + 1
    [*archive(conninfo, NOW)]
    assert table.execute("select rows from ringlog.cold_week where begins = %s", [BEGIN]).fetchone() == (505,)
    assert len(all_rows(conninfo)) == len(before) + 1


def test_weeks_without_rows_need_no_file(
    engine: sa.Engine, conninfo: str, folder: Path, table: psycopg.Connection, online: Prepared
) -> None:
    """Also of a table that nobody writes, and has no summaries."""
    names = (
        "select relname from pg_class where relnamespace = 'log'::regnamespace and relname ~ '2026w1[01]$'"
    )
    table.execute("truncate log.every_type_2026w10")
    table.execute("update ringlog.summarised set until = null")
    assert [*archive(conninfo, NOW)] == ["dropped log.every_type_2026w10, which has no rows"]
    assert table.execute(names).fetchall() == [("every_type_2026w11",)]
    table.execute("truncate log.every_type_2026w11")
    summarise(conninfo, NOW, enough=1)
    lines = [*archive(conninfo, NOW)]
    assert lines[0].startswith("dropped log.every_type_2026w11, which has no rows (1 of ")
    assert lines[1].startswith("archived log.every_type_2026w12: 504 rows")
    assert not (folder / "every_type/2026w11.parquet").exists()
    assert table.execute(names).fetchall() == []
    # a row that comes later makes no difference to others
    put(table, BEGIN + timedelta(days=1), 1.5)
    maintain(engine, NOW)
    [*archive(conninfo, NOW)]
    assert len(all_rows(conninfo)) == len(online.rows) - 2 * 504 + 1


def test_a_row_that_comes_first_keeps_its_week(
    conninfo: str, folder: Path, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.execute("truncate log.every_type_2026w10")
    looked = leaving._is_empty

    def then_a_row(connection: psycopg.Connection, partition: Partition) -> bool:
        found = looked(connection, partition)
        monkeypatch.setattr(leaving, "_is_empty", looked)
        put(table, BEGIN + timedelta(days=1), 1.5)
        return found

    monkeypatch.setattr(leaving, "_is_empty", then_a_row)
    summarise(conninfo, NOW, enough=1)
    first = next(archive(conninfo, NOW))
    assert first.startswith("postponed log.every_type_2026w10: rows came meanwhile")
    assert in_log(table)
    summarise(conninfo, NOW, enough=1)
    assert next(archive(conninfo, NOW)).startswith("archived log.every_type_2026w10: 1 rows")


def test_two_rounds_at_once(
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
        with psycopg.connect(conninfo) as connection:
            note(connection, replace(made, rows=made.rows - 1))
        return made

    monkeypatch.setattr(Round, "_write", write)
    lines = [*archive(conninfo, NOW)]
    assert len(lines) == 12
    assert all("another round has changed the manifest meanwhile" in line for line in lines)
    assert in_log(table) == len(before)


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
    conninfo: str, table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change, "PATIENCE", 0.0)
    # which the command sets in this process
    monkeypatch.setattr(file_owner, "_owner", None)
    maintained = partial(CliRunner().invoke, app, ["maintain"], env={"RINGLOG_DSN": conninfo})

    def retained(days: int) -> None:
        table.execute("update ringlog.logged_table set retention = %s", [f"{days} days"])

    def archived() -> tuple[list[str], bool]:
        lines = []
        this_round = archive(conninfo, NOW)
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
