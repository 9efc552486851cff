"""T-SQL texts that read tables of nodes: each is answered by the node that has all its tables, or refused."""

from datetime import datetime

import psycopg
import pymssql
import pytest
from case_tables import cases

from ringlog.schema.layout import SCHEMA_OF_LEVEL
from servers import ringlog, serving_external
from sites import Site, client, install, put, start
from waiting import wait_until

pytestmark = pytest.mark.long

SUMMARIES = 'summaries = ["10 s", "1 min", "10 min", "1 h", "1 day"]\n'


def rows_of(cursor: pymssql.Cursor, text: str, *parameters: object) -> list[tuple[object, ...]]:
    cursor.execute(text, parameters or None)
    return cursor.fetchall()


def test_a_text_is_answered_by_the_node_of_its_tables(site: Site) -> None:
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        for table, count in (("magnets", 2), ("cavities", 3), ("vacuum", 4)):
            for number in range(1, count + 1):
                put(cursor, table, number)
        for table, count in (("magnets", 2), ("cavities", 3), ("vacuum", 4)):
            assert rows_of(cursor, f"select count(*) from log..{table}") == [(count,)]
            assert rows_of(cursor, f"select max(seq_no) from online.dbo.{table} where time is not null") == [
                (count,)
            ]
        assert rows_of(
            cursor, "select top 2 time, count from log..vacuum where count > %s order by count desc", 1
        ) == [(datetime(2026, 11, 20, 12, 0, 4), 4), (datetime(2026, 11, 20, 12, 0, 3), 3)]
        # joins, subqueries, common tables, variables and conditions
        text = (
            "with few as (select seq_no, count from log..vacuum where count < 3)"
            " select ring.seq_no, few.count from online..vacuum as ring join few on few.seq_no = ring.seq_no"
            " where exists (select 1 from log..vacuum where count = ring.count) order by 1"
        )
        assert rows_of(cursor, text) == [(1, 1), (2, 2)]
        text = (
            "declare @n int, @m int select @n = count(*) from log..vacuum"
            " set @m = (select max(count) from log..cavities)"
            " if exists (select * from log..vacuum where count = 4) select @n, @m"
        )
        assert rows_of(cursor, text) == [(4, 3)]
        cursor.execute("use log")
        assert rows_of(cursor, "select count(*) from vacuum") == [(4,)]
        cursor.execute("use online")
        assert rows_of(cursor, "select count(*) from vacuum where time is not null") == [(4,)]
        # prepared, and the columns alone
        cursor.execute(
            "exec sp_executesql N'select count from log..vacuum where count = @c', N'@c int', @c = 2"
        )
        assert cursor.fetchall() == [(2,)]
        cursor.execute("set fmtonly on")
        cursor.execute("select time, count from log..vacuum")
        assert [column[0] for column in cursor.description] == ["time", "count"]
        cursor.execute("set fmtonly off")
        cursor.execute("begin tran")
        assert rows_of(cursor, "select count(*) from log..vacuum") == [(4,)]
        cursor.execute("rollback")


def test_summaries_of_a_node_are_read_by_texts(site: Site) -> None:
    text = site.facility.read_text().replace("rows = 1000\n", "rows = 1000\n" + SUMMARIES)
    site.facility.write_text(text)
    install(site)
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        for number in range(1, 61):
            put(cursor, "vacuum", number)
        made = ringlog("maintain", RINGLOG_DSN=site.dsn_of("c"))
        assert made.returncode == 0, made.stderr
        for schema in SCHEMA_OF_LEVEL.values():
            with psycopg.connect(site.servers["c"].conninfo("plant")) as connection:
                expected = connection.execute(f"select count(*) from {schema}.vacuum".encode()).fetchall()
            assert expected != [(0,)]
            assert rows_of(cursor, f"select count(*) from {schema}..vacuum") == expected
        assert rows_of(cursor, "select count(*) from recent..vacuum") == [(60,)]


def test_rights_are_those_of_the_login_on_the_node(site: Site) -> None:
    with serving_external(site.dsn, site.folder / "serve.log") as address:
        with client(address) as cursor:
            put(cursor, "vacuum", 1)
        with site.admin("c") as connection:
            connection.execute("revoke daq_reader from reader")
        with client(address, "reader") as cursor, pytest.raises(pymssql.Error, match="permission denied"):
            rows_of(cursor, "select count(*) from log..vacuum")
        # a node that dies is named, and read again when it is back
        with client(address) as cursor:
            assert rows_of(cursor, "select count(*) from log..vacuum") == [(1,)]
            site.servers["c"].die()
            with pytest.raises(pymssql.Error, match="Node c cannot be read"):
                rows_of(cursor, "select count(*) from log..vacuum")
            start(site.servers["c"])

            def is_read() -> bool:
                try:
                    return rows_of(cursor, "select count(*) from log..vacuum") == [(1,)]
                except pymssql.Error:
                    return False

            wait_until(is_read)


REFUSED = cases(__file__, "refused")


def test_texts_that_no_server_can_answer_are_refused(site: Site) -> None:
    with serving_external(site.dsn, site.folder / "serve.log") as address, client(address) as cursor:
        put(cursor, "magnets", 1)
        put(cursor, "vacuum", 1)
        for text, words in REFUSED:
            with pytest.raises(pymssql.Error, match=words):
                rows_of(cursor, text)
            # the session continues
            cursor.execute("set transaction isolation level read committed")
            assert rows_of(cursor, "select count(*) from log..magnets") == [(1,)]
