"""System procedures with several result sets: their cursors, fetched as by the gateway."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import psycopg
import pytest

from servers import RunningServer, serving
from waiting import once, one_sleeps, stopped, wait_until

Connection = psycopg.Connection[tuple[Any, ...]]


class Result(NamedTuple):
    columns: list[str]
    rows: list[tuple[Any, ...]]


class Report(NamedTuple):
    results: list[Result]
    messages: list[str]


def report(connection: Connection, call: LiteralString) -> Report:
    """Runs a call and fetches the cursors named by its notices."""
    notices: list[tuple[str, str]] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        notices.append((str(notice.sqlstate), str(notice.message_primary)))

    connection.add_notice_handler(hear)
    try:
        with connection.transaction():
            connection.execute("select " + call)
            results = []
            for state, message in notices:
                if state == "01R01":
                    cursor = connection.execute(f'fetch all from "{message}"'.encode())
                    assert cursor.description is not None
                    results.append(Result([column.name for column in cursor.description], cursor.fetchall()))
    finally:
        connection.remove_notice_handler(hear)
    return Report(results, [message for state, message in notices if state != "01R01"])


@pytest.fixture
def reader(server: RunningServer) -> Iterator[Connection]:
    with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as connection:
        yield connection


@pytest.fixture
def writer(server: RunningServer) -> Iterator[Connection]:
    with psycopg.connect(server.dsn_of(server.writer), autocommit=True) as connection:
        yield connection


def test_sp_help_of_a_table(reader: Connection) -> None:
    about, columns, indexes, constraints = report(reader, "sys.sp_help('sr_rf')").results
    assert about == Result(
        ["Name", "Owner", "Type", "Created_datetime"], [("sr_rf", "dbo", "user table", None)]
    )
    assert columns == Result(
        ["Column_name", "Type", "Computed", "Length", "Prec", "Scale", "Nullable"],
        [
            ("seq_no", "int", "no", 4, 10, 0, "no"),
            ("time", "datetime2", "no", 8, 26, 6, "yes"),
            ("power", "real", "no", 4, 24, None, "yes"),
            ("arcs", "int", "no", 4, 10, 0, "yes"),
        ],
    )
    assert indexes.rows[0] == ("sr_rf_pkey", "clustered, unique, primary key located on PRIMARY", "seq_no")
    assert constraints.rows == [("PRIMARY KEY", "sr_rf_pkey", "PRIMARY KEY (seq_no)")]
    sybase = report(reader, "sybsystemprocs.sp_help('sr_rf')").results[1]
    assert [row[1:4:2] for row in sybase.rows] == [("int", 4), ("bigdatetime", 8), ("real", 4), ("int", 4)]


def test_lengths_are_those_of_the_bytes_that_are_stored(admin: Connection) -> None:
    admin.execute("create table lengths (a tsql.datetime, b tsql.money, c varchar(10), d text)")
    columns = report(admin, "sybsystemprocs.sp_help('lengths')").results[1]
    admin.execute("drop table lengths")
    # ASE, "Data types": storage sizes; of text the pointer's
    assert [(row[0], row[3]) for row in columns.rows] == [("a", 8), ("b", 8), ("c", 10), ("d", 16)]


def test_sp_help_of_other_things(reader: Connection) -> None:
    about, parameters = report(reader, "sys.sp_help('get_sr_rf')").results
    assert about.rows == [("get_sr_rf", "dbo", "stored procedure", None)]
    assert parameters.rows == [("@n", "int", 4, 10, 0, 1, "no")]
    (all_there,) = report(reader, "sys.sp_help()").results
    assert ("sr_rf", "dbo", "user table") in all_there.rows
    (type_,) = report(reader, "sys.sp_help('datetime')").results
    assert type_.rows == [("datetime", "datetime", 8, 23, 3, "yes")]
    for name in ("no_such_thing", "put_sr_rf"):
        with pytest.raises(psycopg.Error, match=f"'{name}' does not exist in database 'online'"):
            reader.execute("select sys.sp_help(%s)", [name])
    with pytest.raises(psycopg.Error, match="must be in the current database"):
        reader.execute("select sys.sp_help('log..sr_rf')")


def test_sp_helpindex_of_a_table_without_any(admin: Connection) -> None:
    with admin.transaction(force_rollback=True):
        admin.execute("create table online.bare (a integer)")
        printed = report(admin, "count(*) from sys.sp_helpindex('bare')")
    assert printed.messages == [
        "The object 'bare' does not have any indexes, or you do not have permissions."
    ]


def test_sp_spaceused(admin: Connection) -> None:
    with admin.transaction(force_rollback=True):
        admin.execute("create table online.filled (a integer primary key)")
        admin.execute("insert into online.filled select generate_series(1, 10000)")
        total, indexes = admin.execute(
            "select pg_total_relation_size('online.filled') / 1024, pg_indexes_size('online.filled') / 1024"
        ).fetchall()[0]
        (used,) = report(admin, "sys.sp_spaceused('filled')").results
        assert used.columns == ["name", "rows", "reserved", "data", "index_size", "unused"]
        # rows that statistics do not know of yet
        assert [cell.strip() for cell in used.rows[0][:2]] == ["filled", "10000"]
        assert used.rows[0][2] == f"{total} KB"
        assert used.rows[0][4] == f"{indexes} KB"
    # a log is the sum of its weeks
    with admin.transaction():
        # no autovacuum adds its maps between the two looks
        admin.execute("lock table weeks.sr_rf in share update exclusive mode")
        admin.execute("select set_config('search_path', 'log', true)")
        (weeks,) = report(admin, "sys.sp_spaceused('sr_rf')").results
        (expected,) = admin.execute(
            "select sum(pg_total_relation_size(relid)) / 1024 || ' KB' from pg_partition_tree('weeks.sr_rf')"
        ).fetchall()[0]
    assert weeks.rows[0][2] == expected.replace(".0000000000000000", "")
    database, space = report(admin, "sys.sp_spaceused()").results
    assert database.rows[0][0] == "online"
    assert space.rows[0][0].endswith(" KB")


def test_blocking_sessions(server: RunningServer, admin: Connection) -> None:
    with (
        psycopg.connect(server.dsn, application_name="71 tsql (console)") as holder,
        psycopg.connect(server.dsn, application_name="72 tsql (console)") as waiter,
    ):
        holder.execute("lock table online.sr_rf in exclusive mode")
        waits = threading.Thread(target=waiter.execute, args=["lock table online.sr_rf in exclusive mode"])
        waits.start()
        try:
            query = "select spid, status, hostname, blk, cmd from sys.sp_who()"
            wait_until(lambda: (72, "suspended", "console", "71", "LOCK") in admin.execute(query).fetchall())
            assert (71, "sleeping", "console", "0", "AWAITING COMMAND") in admin.execute(query).fetchall()
            locks = admin.execute(
                'select spid, "Type", "Mode", "Status", "ObjId" = sys.object_id(\'sr_rf\')'
                " from sys.sp_lock(71, 72) where \"Type\" = 'TAB' order by 1"
            ).fetchall()
            assert locks == [(71, "TAB", "X", "GRANT", True), (72, "TAB", "X", "WAIT", True)]
            assert admin.execute("select count(*) from sys.sp_lock(71)").fetchone() != (0,)
        finally:
            holder.rollback()
            waits.join()
    with pytest.raises(psycopg.DatabaseError, match="'nobody' is not a valid login"):
        admin.execute("select * from sys.sp_who('nobody')")


PUTS = 150


@pytest.fixture
def durable(temporary_directory: Path) -> Iterator[RunningServer]:
    """A server whose PostgreSQL waits for the disk, unlike that of other tests.

    It is for one test alone: a session of another test would be counted when it ends.
    """
    with serving(temporary_directory / "durable") as running:

        def is_set() -> bool:
            return running.sql("show fsync")[0] == ("on",)

        with psycopg.connect(running.dsn, autocommit=True) as admin:
            admin.execute("alter system set fsync = on")
            admin.execute("select pg_reload_conf()")
        wait_until(is_set)
        yield running


@pytest.mark.long
def test_sp_sysmon_counts_its_interval(durable: RunningServer) -> None:
    with (
        psycopg.connect(durable.dsn_of(durable.reader), autocommit=True) as reader,
        psycopg.connect(durable.dsn_of(durable.writer), autocommit=True) as writer,
    ):
        sysmon_counts(durable, reader, writer)


def sysmon_counts(server: RunningServer, reader: Connection, writer: Connection) -> None:
    def put() -> None:
        # the first sample is taken, with this connection's counts so far
        sleeping = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and query ~ 'sysmon'"
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            wait_until(lambda: admin.execute(sleeping).fetchone() != (0,))
        # the interval is not over before all rows are there
        with stopped(reader.info.backend_pid):
            for number in range(PUTS):
                writer.execute(
                    "select ringlog.put_sr_rf("
                    "row (%s, '2031-01-01'::timestamptz + %s * interval '1 s', 1.5, 2))",
                    [number % 10 + 1, number],
                )
            # PostgreSQL adds up once a second
            writer.execute("select pg_stat_force_next_flush()")
            writer.execute("select 1")

    writer.execute("select pg_stat_force_next_flush()")
    puts = threading.Thread(target=put)
    puts.start()
    printed = report(reader, "sys.sp_sysmon('00:00:04')")
    puts.join()
    found = re.match(r"sp_sysmon: ([\d.]+) s from ", printed.messages[0])
    assert found, printed.messages
    seconds = float(found[1])
    assert seconds >= 4
    sections = {result.columns[0]: result for result in printed.results}
    assert list(sections) == [
        "Transactions",
        "Rows changed",
        "Disk I/O (KB)",
        "Disk I/O (operations)",
        "Data cache (pages)",
        "Checkpoints",
        "Table",
    ]
    assert sections["Transactions"].columns[1:] == ["per sec", "per xact", "count", "% of total"]
    counts = {
        (title, row[0]): row[-2]
        for title, section in sections.items()
        if title != "Table"
        for row in section.rows
    }
    assert counts["Transactions", "Committed"] >= PUTS
    assert counts["Rows changed", "Updated"] >= PUTS
    assert counts["Disk I/O (KB)", "Log written"] > 0
    assert counts["Disk I/O (operations)", "Log syncs"] >= 1
    shares = [float(row[-1]) for row in sections["Disk I/O (KB)"].rows]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    written = {row[0]: row for row in sections["Table"].rows}
    _, inserted, updated, deleted, rate, _ = written["online..sr_rf"]
    assert (updated, deleted) == (PUTS, 0)
    # the rows that the installation made may be counted only now
    assert inserted in (0, 10)
    assert float(rate) == pytest.approx((inserted + updated) / seconds, rel=0.02)
    # a row per minute is logged, whatever its week
    assert written["log..sr_rf"][1] == 3


def test_sp_sysmon_of_one_section(reader: Connection) -> None:
    printed = report(reader, "sys.sp_sysmon('00:00:00', 'diskio')")
    assert [result.columns[0] for result in printed.results] == ["Disk I/O (KB)", "Disk I/O (operations)"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("sys.sp_sysmon('60')", "'60' is not of the form 'hh:mm:ss'"),
        ("sys.sp_sysmon('00:00:01', 'cache')", "there is no section 'cache': there are xactsum, diskio"),
    ],
)
def test_sp_sysmon_refuses(reader: Connection, call: LiteralString, error: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=error):
        report(reader, call)


def test_sp_sysmon_can_be_cancelled(reader: Connection, server: RunningServer) -> None:
    with (
        psycopg.connect(server.dsn, autocommit=True) as admin,
        once(lambda: one_sleeps(admin), reader.cancel_safe),
        pytest.raises(psycopg.errors.QueryCanceled),
    ):
        report(reader, "sys.sp_sysmon('01:00:00')")


def metrics(puts: int, seconds: float, buckets: dict[str, int], groups: dict[str, int], sent: int) -> str:
    lines = [
        f'ringlog_gateway_call_seconds_sum{{procedure="ringlog.put_a"}} {seconds}',
        f'ringlog_gateway_call_seconds_count{{procedure="ringlog.put_a"}} {puts}',
        *(
            f'ringlog_gateway_call_seconds_bucket{{le="{bound}",procedure="ringlog.put_a"}} {count}'
            for bound, count in buckets.items()
        ),
        'ringlog_gateway_failed_calls_total{procedure="ringlog.put_a"} 1',
        *(f'ringlog_gateway_group_commit_calls_bucket{{le="{le}"}} {count}' for le, count in groups.items()),
        "ringlog_gateway_received_bytes_total 4096",
        f"ringlog_gateway_sent_bytes_total {sent}",
        "# EOF",
    ]
    return "\n".join(lines)


def test_the_gateways_part_of_sp_sysmon(reader: Connection) -> None:
    before = metrics(
        100, 1.0, {"0.001": 50, "0.002": 100, "+Inf": 100}, {"1.0": 10, "2.0": 10, "+Inf": 10}, 0
    )
    after = metrics(
        300, 1.4, {"0.001": 150, "0.002": 299, "+Inf": 300}, {"1.0": 40, "2.0": 90, "+Inf": 90}, 20480
    )
    reader.execute(
        "select set_config('test.before', %s, false), set_config('test.after', %s, false)", [before, after]
    )
    network, commits, procedures = report(
        reader, "sys.sp_sysmon_gateway(current_setting('test.before'), current_setting('test.after'), 10)"
    ).results
    assert [tuple(map(str, row)) for row in network.rows] == [
        ("Received", "0.0", "0.0", "0.0"),
        ("Sent", "2.0", "20.0", "100.0"),
    ]
    assert [row[:1] + row[2:3] for row in commits.rows] == [("1 call", 30), ("2 calls", 50)]
    # 200 calls took 0.4 s: half of them below 1 ms, all but one below 2 ms
    assert [(*row[:2], *map(str, row[2:])) for row in procedures.rows] == [
        ("ringlog.put_a", 200, "20.0", "0", "2.000", "1.000", "2.000", "None")
    ]


def test_collations_of_a_table(reader: Connection) -> None:
    """The query of SqlBulkCopy: it returns the collation of each text column, and none for others."""
    rows = reader.execute("select * from sys.sp_tablecollations_100('.[sr_rf]')").fetchall()
    assert [(row[0], row[1]) for row in rows] == [(1, "seq_no"), (2, "time"), (3, "power"), (4, "arcs")]
    assert {row[2:] for row in rows} == {(None, None)}
