"""Tables on three servers behind one gateway: the server of each call, and the effect of one server's
failure."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pymssql
import pytest

from servers import RINGLOG, free_port, ringlog, serving_external
from sites import NOON, WHERE, Site, client, install, put, start
from spools import waiting
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.long

COUNTING = Path(__file__).parents[1] / "harness" / "counting.py"


def signals_are_found_by_name(cursor: pymssql.Cursor) -> None:
    """In the registry of the first server."""
    cursor.callproc("find_signals", ("%",))
    assert [row[:3] for row in cursor.fetchall()] == [(table, table, "count") for table in sorted(WHERE)]
    bounds = (NOON.replace(tzinfo=None), NOON.replace(tzinfo=None) + timedelta(minutes=1))
    for table in WHERE:
        cursor.callproc("get_latest", (table,))
        assert [value for _, value in cursor.fetchall()] == [6]
        cursor.callproc("get_signal", (table,))
        assert [value for _, value in cursor.fetchall()] == [1, 2, 3, 4, 5, 6]
        cursor.callproc("get_trend", (table, *bounds, 1))
        assert [row[1:5] for row in cursor.fetchall()] == [(6, 1, 6, 3.5)]
    cursor.execute("exec get_trends @names = 'vacuum', @from_time = %s, @to_time = %s, @points = 1", bounds)
    assert [row[0] for row in cursor.fetchall()] == ["vacuum"]
    with pytest.raises(pymssql.Error, match="the signals are on several servers"):
        cursor.callproc("get_trends", ("vacuum,magnets", *bounds, 1))
    with pytest.raises(pymssql.Error, match="there is no signal 'nothing'"):
        cursor.callproc("get_signal", ("nothing",))


def test_calls_are_sent_to_the_node_of_their_table(site: Site) -> None:
    assert install(site) == "nothing to do\n"
    same = ringlog("facility", "diff", site.facility, RINGLOG_DSN=site.dsn)
    assert (same.returncode, same.stdout) == (0, "no difference\n")
    for table, node in WHERE.items():
        for name in site.servers:
            with site.admin(name) as connection:
                stored = connection.execute(
                    "select relkind::text from pg_class where relname = %s"
                    " and relnamespace = 'log'::regnamespace",
                    [table],
                ).fetchall()
                assert stored == ([("v",)] if name == node else [("c",)] if name is None else [])
    with serving_external(site.dsn, site.folder / "serve.log") as address:
        with client(address) as cursor:
            for number in range(1, 6):
                for table in WHERE:
                    put(cursor, table, number)
            for table, node in WHERE.items():
                assert site.rows(table, node) == Counter(range(1, 6))
                # in a text, with outputs, rows on the wire, and refused calls
                cursor.execute(f"exec put_{table} @seq_no = 6, @time = '2026-11-20 12:00:06', @count = 6")
                seq_no, _ = cursor.callproc(f"last_{table}", (pymssql.output(int), pymssql.output(str)))
                assert seq_no == 6
                cursor.callproc(f"get_{table}", (1,))
                assert [row[-1] for row in cursor.fetchall()] == [6]
                with pytest.raises(pymssql.Error, match="seq_no 1001 is outside 1 to 1000"):
                    put(cursor, table, 1001)
            signals_are_found_by_name(cursor)
            # the claim is on the table's server
            cursor.callproc("claim_writer", ("vacuum", "a spool", "a writer"))
            with site.admin("c") as connection:
                held = connection.execute("select table_name, spool from ringlog.writer").fetchall()
                assert held == [("vacuum", "a spool")]
            with site.admin(None) as connection:
                assert connection.execute("select count(*) from ringlog.writer").fetchone() == (0,)
            cursor.execute("begin tran")
            put(cursor, "magnets", 7)
            with pytest.raises(pymssql.Error, match=r"put_vacuum is on node c.* no part of a transaction"):
                put(cursor, "vacuum", 7)
            # reading continues
            cursor.callproc("get_vacuum", (1,))
            assert [row[-1] for row in cursor.fetchall()] == [6]
            cursor.execute("rollback")
        # rights are those of the login on the node
        with client(address, "reader") as cursor:
            with pytest.raises(pymssql.Error, match="permission denied for function put_vacuum"):
                put(cursor, "vacuum", 8)
            cursor.callproc("get_vacuum", (1,))
            assert [row[-1] for row in cursor.fetchall()] == [6]
        with client(address) as cursor:
            put(cursor, "vacuum", 8)
            locked = ringlog("user", "lock", "writer", RINGLOG_DSN=site.dsn)
            assert locked.returncode == 0, locked.stderr

            def is_refused() -> bool:
                try:
                    put(cursor, "vacuum", 9)
                except pymssql.Error as error:
                    return "login of this session is no longer there" in str(error)
                return False

            wait_until(is_refused)
    assert max(site.rows("vacuum", "c")) <= 9


def user(site: Site, *words: str) -> None:
    done = ringlog("user", *words, "--password-stdin", stdin="secret", RINGLOG_DSN=site.dsn)
    assert done.returncode == 0, done.stderr


def test_rights_to_tables_of_several_servers(site: Site) -> None:
    """By their names and by groups; the rights remain where a table moves to."""

    def write(where: dict[str, str | None]) -> None:
        site.write_facility(where)
        grouped = '[groups]\nold = ["magnets", "cavities"]\n'
        site.facility.write_text(site.facility.read_text() + grouped)

    write(WHERE)
    install(site)
    user(site, "add", "old_writer", "--writer", "--tables", "old")
    user(site, "add", "one_writer", "--writer", "--tables", "cavities")
    user(site, "add", "old_reader", "--reader", "--tables", "old")
    user(site, "add", "one_reader", "--reader", "--tables", "vacuum")
    its = {
        "old_writer": {"magnets", "cavities"},
        "one_writer": {"cavities"},
        "old_reader": {"magnets", "cavities"},
        "one_reader": {"vacuum"},
    }

    refusals = set()

    def may_use(address: tuple[str, int], login: str) -> set[str]:
        used = set()
        with client(address, login) as cursor:
            for table in WHERE:
                try:
                    if login.endswith("writer"):
                        put(cursor, table, 1)
                    else:
                        for text in (f"select count(*) from log..{table}", f"exec get_signal '{table}'"):
                            cursor.execute(text)
                            cursor.fetchall()
                        cursor.callproc(f"get_{table}", (1,))
                    used.add(table)
                except pymssql.Error as error:
                    refusals.add(error.args[0])
        return used

    with serving_external(site.dsn, site.folder / "serve.log") as address:
        assert {login: may_use(address, login) for login in its} == its
        moved = {"magnets": "c", "cavities": None, "vacuum": "b"}
        write(moved)
        done = ringlog("node", "move", "--facility", site.facility, RINGLOG_DSN=site.dsn, timeout=300)
        assert done.returncode == 0, done.stderr
        assert {login: may_use(address, login) for login in its} == its
    assert refusals == {229}
    assert install(site) == "nothing to do\n"


def test_the_file_changes(site: Site) -> None:
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        put(cursor, "vacuum", 1)
        more = '[[table.column]]\nname = "pressure"\ntype = "real"\n'
        site.write_facility(WHERE, more)
        assert "column vacuum.pressure on node c" in install(site)
        assert install(site) == "nothing to do\n"

        def takes_it() -> bool:
            try:
                cursor.callproc("put_vacuum", (2, NOON + timedelta(seconds=2), 2, 0.5))
            except pymssql.Error:
                return False
            return True

        wait_until(takes_it)
        cursor.callproc("get_vacuum", (1,))
        assert [row[-2:] for row in cursor.fetchall()] == [(2, 0.5)]
        site.write_facility(WHERE | {"vacuum": "b"}, more)
        moved = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert moved.returncode == 1
        assert (
            "table vacuum is on node c with its rows, and the facility file puts it on node b" in moved.stderr
        )
        site.write_facility(WHERE | {"magnets": "b"}, more)
        moved = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert "table magnets is on the first server with its rows" in moved.stderr
        site.facility.write_text(
            re.sub(
                r'\[\[node\]\]\nname = "c"\n.*\n',
                "",
                site.facility.read_text().replace('node = "c"\n', "").replace('node = "b"\n', "", 1),
            )
        )
        lost = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert "node c is missing in the facility file, but has tables: vacuum" in lost.stderr


@pytest.mark.long
def test_a_node_dies_and_its_tables_wait(site: Site) -> None:
    shutil.copy(COUNTING, site.folder)
    log = site.folder / "load.log"

    def given(table: str) -> int:
        file = site.folder / f"given.{table}"
        return len(file.read_text().split()) if file.exists() else 0

    def rows_go_on(tables: list[str]) -> None:
        before = {table: given(table) for table in tables}
        wait_until(
            lambda: all(
                max(site.rows(table, WHERE[table]), default=0) > before[table] + 10 for table in tables
            ),
            log.read_text,
        )

    with serving_external(site.dsn, site.folder / "serve.log") as address:
        url = f"tds://writer@{address[0]}:{address[1]}"
        with (
            log.open("w") as output,
            subprocess.Popen(
                [
                    *(RINGLOG, "load", "--facility", site.facility, "--url", url),
                    *("--source", "python:counting:read"),
                ],
                cwd=site.folder,
                stdout=output,
                stderr=output,
                env=os.environ | {"RINGLOG_PASSWORD": "secret", "RINGLOG_SPOOL": str(site.folder / "spool")},
            ) as load,
        ):
            for _ in range(2):
                rows_go_on(list(WHERE))
                site.servers["c"].die()
                rows_go_on(["magnets", "cavities"])
                with client(address) as cursor:
                    with pytest.raises(pymssql.Error, match="Node c cannot be reached, nothing was written"):
                        put(cursor, "vacuum", 1)
                    with pytest.raises(pymssql.Error, match="Node c cannot be read"):
                        cursor.callproc("get_vacuum", (1,))
                    cursor.execute("select count(*) from online..magnets")
                    assert cursor.fetchall() == [(1000,)]
                start(site.servers["c"])
            rows_go_on(list(WHERE))
            load.send_signal(signal.SIGTERM)
            assert load.wait(PATIENCE) == 0, log.read_text()
    for table, node in WHERE.items():
        found = site.rows(table, node)
        # the row in transit at the request to end may not have left the source
        assert set(range(1, given(table))) <= {*found, *waiting(site.folder / "spool", table)}
        assert all(times == 1 for times in found.values())


def test_why_a_reading_is_missing_on_a_node(site: Site) -> None:
    port = free_port()
    log = site.folder / "serve.log"
    # NOON of the sites' rows may be ahead of the clock
    now = datetime.now(UTC)

    def by_http() -> list[str]:
        basic = {"auth": ("reader", "secret"), "timeout": 60, "trust_env": False}
        asked = {"signal": "vacuum", "from": (now - timedelta(minutes=1)).isoformat()}
        answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/why", params=asked, **basic)
        assert answer.status_code == 200, answer.text
        return [span["cause"] for span in answer.json()]

    def by_command() -> list[str]:
        done = ringlog("why", "vacuum", "--from", "1m", "--json", RINGLOG_DSN=site.dsn)
        assert done.returncode == 0, done.stderr
        return [span["cause"] for span in json.loads(done.stdout)]

    with serving_external(site.dsn, log, "--http", f"127.0.0.1:{port}") as address:
        with client(address, "reader") as cursor:
            cursor.execute("exec why_missing @signal = 'vacuum'")
            there = [row[0] for row in cursor]
        assert "unknown" in there
        assert by_command()[-1] == "unknown"
        assert wait_until(by_http, log.read_text)[-1] == "unknown"
        site.servers["c"].die()
        assert by_command() == ["node"]
        assert by_http() == ["node"]
        start(site.servers["c"])


@pytest.mark.long
def test_a_server_starts_without_a_node(site: Site) -> None:
    site.servers["c"].die()
    refused = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
    assert refused.returncode == 1
    assert "node c cannot be reached" in refused.stderr
    # a table of its own cannot be anywhere else meanwhile
    for other in ("b", None):
        site.write_facility(WHERE | {"vacuum": other})
        refused = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
        assert "ringlog node move vacuum --facility FILE takes it there" in refused.stderr
    site.write_facility(WHERE)
    log = site.folder / "serve.log"
    with serving_external(site.dsn, log, "--facility", site.facility) as address, client(address) as cursor:
        put(cursor, "cavities", 1)
        with pytest.raises(pymssql.Error, match="Node c cannot be reached"):
            put(cursor, "vacuum", 1)
        # a lock does not wait for the node
        locked = ringlog("user", "lock", "reader", RINGLOG_DSN=site.dsn)
        assert (locked.returncode, locked.stdout) == (1, "login reader is locked\n")
        assert "node c cannot be reached" in locked.stderr
        for name in (None, "b"):
            with site.admin(name) as connection:
                found = connection.execute("select rolcanlogin from pg_roles where rolname = 'reader'")
                assert found.fetchall() == [(False,)]
        start(site.servers["c"])

        def is_taken() -> bool:
            try:
                put(cursor, "vacuum", 1)
            except pymssql.Error:
                return False
            return True

        wait_until(is_taken)
    assert "node c cannot be reached, and its tables cannot be written or read" in log.read_text()
    assert site.rows("vacuum", "c") == Counter([1])
