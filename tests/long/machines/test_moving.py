"""Tables move from one server to another: completely, while they are written, and with interruptions."""

import json
import os
import subprocess
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta

import psycopg
import pymssql
import pytest
from site_load import Load, loaded, serve
from sql_names import names_in_sql
from stops import Stop, broken_off

from servers import RINGLOG, free_port, ringlog, serving_external
from sites import NOON, WHERE, Site, client, install, put, start
from waiting import one_sleeps, wait_until

# servers of their own, on a machine that others may use too
pytestmark = pytest.mark.timeout(900)

WAVES = """
[[table]]
name = "waves"
rows = 100
cycle = 1.0
[[table.column]]
name = "level"
type = "double"
limits = [0.0, 5.0]
[[table.column]]
name = "trace"
type = "real[]"
points = 100
"""


def move(site: Site, *tables: str) -> str:
    moved = ringlog("node", "move", *tables, "--facility", site.facility, RINGLOG_DSN=site.dsn)
    assert moved.returncode == 0, moved.stderr
    assert "-1" not in moved.stdout
    return moved.stdout


def everything_of(site: Site, table: str, node: str | None) -> dict[str, list[tuple[object, ...]]]:
    """All data of a table on a server, row by row."""
    queries = {
        "ring": 'select ring::text from online."{}" as ring order by seq_no',
        "log": 'select logged::text from log."{}" as logged order by "time", seq_no',
        "partitions": """select part.relname, pg_get_expr(part.relpartbound, part.oid) from pg_inherits
          join pg_class as part on part.oid = inhrelid where inhparent = 'weeks."{}"'::regclass order by 1""",
        "summaries": 'select span::text from summary."{}" as span order by level, column_name, begins',
        "summarised": "select levels, until from ringlog.summarised where table_name = '{}'",
        "until": "select pg_sequence_last_value('summary.{}_until')",
        "marks": "select \"time\" from ringlog.summary_mark where table_name = '{}' order by 1",
        "signals": "select signal::text from ringlog.signal where table_name = '{}' order by 1",
        "ledger": "select ledger::text from ringlog.ledger where table_name = '{}' order by 1",
        "events": "select event::text from ringlog.event where table_name = '{}' order by 1",
        "writer": "select writer::text from ringlog.writer where table_name = '{}'",
        "arguments": """select attname, format_type(atttypid, atttypmod) from pg_attribute
          where attrelid = 'online."{}"'::regclass and attnum > 0 order by attnum""",
    }
    with site.admin(node) as connection:
        connection.execute("set timezone = 'UTC'")
        return {
            name: connection.execute(query.format(table).encode()).fetchall()
            for name, query in queries.items()
        }


def all_came(site: Site, node: str | None, before: dict[str, list[tuple[object, ...]]]) -> None:
    after = everything_of(site, "waves", node)
    # as time goes on
    for kind in ("summarised", "until"):
        assert after.pop(kind) >= before.pop(kind) != [(None,)]
    assert after == before


def give_rows(site: Site, cursor: pymssql.Cursor) -> None:
    """Rows of the table waves, some of a year before, an event and a ledger; summaries and weeks are made."""
    for number in range(1, 200):
        # two weeks of a year before among them
        at = NOON - timedelta(days=300) * (number % 2) + timedelta(minutes=5 * number)
        cursor.execute(
            "exec put_waves @time = %s, @level = %s, @early = %s",
            (at.replace(tzinfo=None), number / 8, number),
        )
    with site.admin(None) as connection:
        connection.execute(
            """select ringlog.report_ledger('waves', 'a spool', '2026-11-20 12:00Z', 9, 8, 0, 0, 0, 1);
            insert into ringlog.event (spool, number, table_name, time, kind, message)
            values ('a spool', 1, 'waves', '2026-11-20 12:00Z', 'gap', 'a reason')"""
        )
        connection.execute(
            """insert into log.waves (seq_no, "time", level, trace)
            select n, timestamptz '2026-11-01' + n * interval '1 minute', 1, array[n, 2]
            from generate_series(1, 90) as n"""
        )
    for _ in range(2):
        kept = ringlog("maintain", RINGLOG_DSN=site.dsn)
        assert kept.returncode == 0, kept.stderr


def test_a_table_moves_with_all_its_data(site: Site) -> None:
    site.facility.write_text(site.facility.read_text() + WAVES)
    install(site)
    # a column added later is the last one, wherever it is in the file
    text = site.facility.read_text()
    later = 'name = "early"\ntype = "int"\n[[table.column]]\n'
    site.facility.write_text(text.replace('name = "level"', f'{later}name = "level"'))
    assert "column waves.early" in install(site)
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        cursor.callproc("claim_writer", ("waves", "a spool", "a writer"))
        give_rows(site, cursor)
        before = everything_of(site, "waves", None)
        assert len(before["log"]) == 199 + 90
        assert len(before["partitions"]) > 6
        assert len(before["summaries"]) > 10
        assert [name for name, _ in before["arguments"]] == ["seq_no", "time", "level", "trace", "early"]

        text = site.facility.read_text()
        site.facility.write_text(text.replace('name = "waves"\n', 'name = "waves"\nnode = "d"\n'))
        refused = ringlog("node", "move", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert "there is no [[node]] of name 'd'" in refused.stderr
        # a server that was unknown at the gateway's start
        site.add("d")
        site.facility.write_text(
            site.facility.read_text() + f'[[node]]\nname = "d"\ndsn = "{site.dsn_of("d")}"\n'
        )
        refused = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert "ringlog node move waves --facility FILE takes it there" in refused.stderr
        assert "waves: on node d now; writers waited" in move(site)

        all_came(site, "d", before)
        with site.admin(None) as connection:
            left = "select relname, relkind::text from pg_class where relname ~ 'waves' and relkind <> 'i'"
            assert connection.execute(left).fetchall() == 3 * [("waves", "c")]
            noted = connection.execute(
                "select count(*) from ringlog.signal where table_name = 'waves' union all"
                " select count(*) from ringlog.logged_table where table_name = 'waves' union all"
                " select count(*) from ringlog.move"
            ).fetchall()
            assert noted == [(0,), (0,), (0,)]
        # the installer is not a superuser, and cannot read passwords
        known = ringlog("user", "passwd", "writer", "--password-stdin", stdin="secret", RINGLOG_DSN=site.dsn)
        assert known.returncode == 0, known.stderr
        # the existing session, by position and with the claim that it had
        cursor.callproc("get_waves", (1,))
        (newest,) = cursor.fetchall()
        assert newest[-1] == 198
        at = NOON + timedelta(days=1)
        cursor.execute("exec put_waves @time = %s, @level = 1", (at.replace(tzinfo=None),))
        with site.admin("d") as connection:
            assert connection.execute("select count(*) from log.waves").fetchone() == (290,)
            assert connection.execute("select epoch from ringlog.writer").fetchone() == (1,)
    assert install(site) == "nothing to do\n"
    assert move(site) == "every table is where the facility file says\n"
    shown = ringlog("node", "list", RINGLOG_DSN=site.dsn)
    assert shown.returncode == 0, shown.stderr
    assert [line.rpartition("; ")[2] for line in shown.stdout.splitlines()] == [
        "1 table: magnets",
        "1 table: cavities",
        "1 table: vacuum",
        "1 table: waves",
    ]
    # from node to node
    site.facility.write_text(site.facility.read_text().replace('node = "c"', 'node = "b"'))
    move(site, "vacuum")
    assert everything_of(site, "vacuum", "b")["ring"]


def test_a_table_returns_to_the_first_server(site: Site) -> None:
    site.facility.write_text(site.facility.read_text() + WAVES)
    install(site)
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        cursor.callproc("claim_writer", ("waves", "a spool", "a writer"))
        for number in range(1, 50):
            at = NOON - timedelta(days=300) * (number % 2) + timedelta(minutes=5 * number)
            cursor.execute("exec put_waves @time = %s, @level = %s", (at.replace(tzinfo=None), number / 8))
        kept = ringlog("maintain", RINGLOG_DSN=site.dsn)
        assert kept.returncode == 0, kept.stderr
        before = everything_of(site, "waves", None)
        with site.admin(None) as connection:
            rights = connection.execute(RIGHTS).fetchall()
        here = site.facility.read_text()
        site.facility.write_text(here.replace('name = "waves"\n', 'name = "waves"\nnode = "c"\n'))
        move(site)
        site.facility.write_text(here)
        refused = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert "ringlog node move waves --facility FILE takes it there" in refused.stderr
        assert "waves: on the first server now; writers waited" in move(site)

        all_came(site, None, before)
        with site.admin(None) as connection:
            assert connection.execute(RIGHTS).fetchall() == rights
            left = "select table_name from ringlog.stand_in where table_name = 'waves' union all"
            left += " select table_name from ringlog.signal_elsewhere where table_name = 'waves' union all"
            left += " select table_name from ringlog.move"
            assert connection.execute(left.encode()).fetchall() == []
        with site.admin("c") as connection:
            left = "select relname from pg_class where relname ~ '^waves' and relkind <> 'i'"
            assert connection.execute(left).fetchall() == []
        # the existing session, by position and with the claim that it had
        cursor.callproc("get_waves", (1,))
        (newest,) = cursor.fetchall()
        assert newest[2] == 48 / 8
        at = NOON + timedelta(days=1)
        cursor.execute("exec put_waves @time = %s, @level = 1", (at.replace(tzinfo=None),))
        with site.admin(None) as connection:
            assert connection.execute("select count(*) from log.waves").fetchone() == (50,)
            assert connection.execute("select epoch from ringlog.writer").fetchone() == (1,)
    assert install(site) == "nothing to do\n"
    assert move(site) == "every table is where the facility file says\n"


RIGHTS = """
select oid::regprocedure::text, prosrc, prosecdef, proacl::text from pg_proc
where pronamespace = 'ringlog'::regnamespace and proname ~ 'waves'
union all
select attrelid::regclass::text, attname, null, attacl::text from pg_attribute
where attacl is not null and attrelid = any(array(select oid from pg_class where relname = 'waves'))
union all
select oid::regclass::text, relkind::text, null,
  (select string_agg(grantee::regrole || privilege_type, ' ' order by grantee, privilege_type)
    from aclexplode(relacl))
from pg_class
-- housekeeping makes the table of closed rows
where relname = 'waves' and relnamespace not in ('pg_toast'::regnamespace, 'closed'::regnamespace)
order by 1, 2
"""


OF_ROWS = "new.part <> ''"
COPYING = Stop("d", "ringlog.moved_part", "insert", OF_ROWS)
LAST_ROWS = Stop("d", "ringlog.writer", "insert")
SWITCH = Stop(None, "ringlog.move", "update")
CLOSING = Stop(
    "d",
    "ringlog.ledger",
    "update",
    "exists (select from ringlog.summarised where table_name = 'vacuum' and levels <> '{}')",
    at_commit=False,
)
DROPPING = Stop("c", "ringlog.logged_table", "delete")
FORGETTING = Stop("d", "ringlog.moved_part", "delete")


def nothing_is_left(site: Site, node: str) -> None:
    with site.admin(node) as connection:
        left = connection.execute(
            "select relname from pg_class where relname ~ '^vacuum' union all"
            " select table_name from ringlog.logged_table union all select table_name from ringlog.moved_row"
        ).fetchall()
        assert left == []


def test_tables_of_every_name_move(site: Site) -> None:
    """To a node and back, with columns and tables whose names occur in ringlog's own SQL."""
    names = names_in_sql()
    half = len(names) // 2
    columns = {
        "r": names[:half],
        "ring": names[half:],
        "n": ["n"],
        "place": ["place", "at"],
        "came": ["came"],
    }
    before_tables = site.facility.read_text()

    def write(node: str | None) -> None:
        text = before_tables
        for table, own in columns.items():
            text += f'[[table]]\nname = "{table}"\nrows = 4\ncycle = 1.0\n'
            text += f'node = "{node}"\n' if node else ""
            text += "".join(
                f'[[table.column]]\nname = "{name}"\nsignal = "{table}/{name}"\ntype = "double"\n'
                for name in own
            )
        site.facility.write_text(text)

    write(None)
    install(site)
    with site.admin(None) as connection:
        for table, own in columns.items():
            for number in range(6):
                values = {"seq_no": number % 4 + 1, "time": f"2026-11-20T12:00:0{number}Z"}
                values |= dict.fromkeys(own, number)
                query = f'select ringlog."put_{table}"(json_populate_record(null::online."{table}", %s))'
                connection.execute(query.encode(), [json.dumps(values)])
    before = {table: everything_of(site, table, None) for table in columns}
    for node in ("b", None):
        write(node)
        move(site)
        for table in columns:
            after = everything_of(site, table, node)
            for kind in ("ring", "log", "partitions", "arguments"):
                assert after[kind] == before[table][kind], (table, kind)


def test_readers_follow_a_table(site: Site) -> None:
    """Readers receive the rows during a move, without an error."""
    answers: Counter[object] = Counter()
    ended = threading.Event()

    def read(address: tuple[str, int], text: str) -> None:
        with client(address, "reader") as cursor:
            while not ended.is_set():
                try:
                    cursor.execute(text)
                    answers[cursor.fetchall()[0][0]] += 1
                except pymssql.Error as error:
                    answers[error.args] += 1

    with serving_external(site.dsn, site.folder / "serve.log") as address:
        with client(address) as cursor:
            for number in range(1, 51):
                put(cursor, "vacuum", number)
        texts = [
            "select count(*) from log..vacuum",
            "select max(count) from online..vacuum where count is not null",
        ]
        with ThreadPoolExecutor() as pool:
            reading = pool.map(read, 4 * [address], 2 * texts)
            try:
                for node in (None, "c", "b", None, "c"):
                    site.write_facility(WHERE | {"vacuum": node})
                    move(site, "vacuum")
            finally:
                ended.set()
        assert [*reading] == [None] * 4
    assert {*answers} == {50}, answers


def test_a_move_is_interrupted_anywhere(site: Site) -> None:
    site.add("d")
    site.write_facility(WHERE)
    install(site)
    moved = WHERE | {"vacuum": "d"}
    with loaded(site) as load:
        load.go_on(WHERE)
        report = "select ringlog.report_ledger('vacuum', 'a spool', '2026-11-20 12:00Z', 9, 8, 0, 0, 0, 1)"
        with site.admin("c") as connection:
            connection.execute(report)
        site.write_facility(moved)
        # while rows are copied, and the receiving node dies
        with broken_off(site, COPYING):
            load.go_on(WHERE)
            site.servers["d"].die()
        start(site.servers["d"])
        with site.admin("d") as connection:
            connection.execute("drop trigger stop on ringlog.moved_part; drop function sleep")
        # while the last rows are stored, and the gateway dies
        with broken_off(site, LAST_ROWS):
            load.gateway_dies()
        load.gateway_starts()
        load.go_on(WHERE)
        # in the switch, and the former node dies
        with broken_off(site, SWITCH):
            site.servers["c"].die()
        start(site.servers["c"])
        load.go_on(WHERE)
        half_way = ringlog("node", "list", RINGLOG_DSN=site.dsn)
        assert half_way.returncode == 1
        assert "vacuum from node c to node d: unfinished; ringlog node move vacuum" in half_way.stdout
        # as if it had ended between the two ends of the switch: the old copy is open, and gets a row
        with broken_off(site, CLOSING):
            pass
        load.go_on(moved)
        with site.admin("c") as connection:
            for schema in ("online", "weeks"):
                connection.execute(f"drop trigger ringlog_refuse_moved on {schema}.vacuum".encode())
            connection.execute("select ringlog.put_vacuum(row (900, '2026-11-20 12:00:00Z', 1000000))")
        with broken_off(site, DROPPING):
            load.go_on(moved)
        with broken_off(site, FORGETTING):
            pass
        load.gateway_dies()
        load.gateway_starts()
        assert "vacuum from node c to node d: done" in move(site)
        assert install(site) == "nothing to do\n"
        load.go_on(moved)
    load.all_are_there(moved)
    assert site.rows("vacuum", "d")[1_000_000] == 1
    nothing_is_left(site, "c")


BETWEEN_COMMITS = Stop("c", "public.closed_copy", "insert")
"""The first server sends calls to the new one, and the old copy is not closed yet."""
_NOTED = """
create table public.closed_copy ();
create function public.note() returns event_trigger language plpgsql security definer as $$
begin
  if exists (select from pg_event_trigger_ddl_commands() where object_identity ~ '^ringlog_refuse_moved') then
    insert into public.closed_copy default values;
  end if;
end $$;
create event trigger note on ddl_command_end when tag in ('CREATE TRIGGER') execute function public.note()
"""


@pytest.mark.parametrize("target", [None, "b"])
def test_rows_that_wait_between_the_two_commits_of_a_switch(site: Site, target: str | None) -> None:
    """Command and gateways die, and the waiting calls reach the old copy; two writers send theirs again,
    without seq_no. The third was answered by a gateway that lived.
    """
    port = free_port()
    load = Load(site, port, serve(site, port))
    waiting_rows = {1: NOON, 2: NOON + timedelta(seconds=20), 3: NOON + timedelta(seconds=30)}

    def put_without_place(number: int, at: datetime) -> None:
        with client(("127.0.0.1", port)) as cursor:
            cursor.execute("exec put_vacuum @time = %s, @count = %s", (at.replace(tzinfo=None), number))

    def put_on_old_copy(number: int, at: datetime) -> None:
        with site.admin("c") as connection:
            connection.execute("select ringlog.put_vacuum(row (null, %s, %s))", (at, number))

    try:
        put_without_place(10, NOON - timedelta(seconds=1))
        site.write_facility(WHERE | {"vacuum": target})
        with site.admin("c") as connection:
            connection.execute(_NOTED)
            waits = "select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'put_vacuum'"
            puts: list[Future[None]] = []
            with ThreadPoolExecutor() as pool, broken_off(site, BETWEEN_COMMITS):
                for row in waiting_rows.items():
                    puts.append(pool.submit(put_on_old_copy, *row))
                    wait_until(lambda: len(connection.execute(waits).fetchall()) == len(puts))
                put_without_place(11, NOON + timedelta(seconds=10))
                load.gateway_dies()
            assert [each.result() for each in puts] == [None] * 3
            connection.execute("drop event trigger note; drop function note; drop table public.closed_copy")
        load.gateway_starts()
        for number in (2, 1):
            put_without_place(number, waiting_rows[number])
        assert "done" in move(site)
    finally:
        load.serving.terminate()
        load.serving.wait()
    once = Counter([10, 11, *waiting_rows])
    assert site.rows("vacuum", target) == once
    with site.admin(target) as connection:
        ring = connection.execute("select count from online.vacuum where count is not null").fetchall()
    assert Counter(number for (number,) in ring) == once
    nothing_is_left(site, "c")


def test_the_return_of_a_table_is_interrupted(site: Site) -> None:
    moved = WHERE | {"vacuum": None}
    with loaded(site) as load:
        load.go_on(WHERE)
        site.write_facility(moved)
        # it is not used on the first server before the switch
        for stop in (
            Stop(None, "ringlog.moved_part", "insert", OF_ROWS),
            Stop(None, "ringlog.writer", "insert"),
            SWITCH,
        ):
            with broken_off(site, stop):
                pass
            with site.admin(None) as connection:
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is on node c"):
                    connection.execute("select ringlog.put_vacuum(row (900, now(), 2000000))")
                connection.execute("set role daq_reader")
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute("select from log.vacuum")
        load.go_on(WHERE)
        refused = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert "ringlog node move vacuum --facility FILE takes it there" in refused.stderr
        assert "vacuum from node c to the first server: done" in move(site)
        load.go_on(moved)
    load.all_are_there(moved)
    nothing_is_left(site, "c")


@pytest.mark.parametrize("target", ["d", None])
def test_a_move_is_reverted(site: Site, target: str | None) -> None:
    if target is not None:
        site.add(target)
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        put(cursor, "vacuum", 1)
        site.write_facility(WHERE | {"vacuum": target})
        with SWITCH.set_up(site) as connection:
            command = [RINGLOG, "node", "move", "--facility", site.facility]
            with subprocess.Popen(command, env=os.environ | {"RINGLOG_DSN": site.dsn}) as process:
                wait_until(lambda: one_sleeps(connection))
                process.kill()
        site.write_facility(WHERE)
        assert "vacuum from node c to " in (taken := move(site))
        assert taken.endswith("taken back\n")
        assert install(site) == "nothing to do\n"
        put(cursor, "vacuum", 2)
    assert site.rows("vacuum", "c") == Counter([1, 2])
    with site.admin(target) as connection:
        left = connection.execute("select relname, relkind::text from pg_class where relname ~ '^vacuum'")
        # the row types of a table on a node
        assert left.fetchall() == ([] if target else [("vacuum", "c")] * 3)
