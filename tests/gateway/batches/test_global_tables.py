"""Global temporary tables (`##t`): every session sees them, and they end with the session that made them.

"CREATE TABLE (Transact-SQL)": "Global temporary tables are automatically dropped when the session that
created the table ends and all other tasks have stopped referencing them."
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pymssql
import pytest

from servers import Login, RunningServer, add_logins, serving
from tds_clients import Admin, Clients, error_number, errors_of
from waiting import wait_until

MAKER = """
import sys, pymssql
server, port, user, password = sys.argv[1:]
connection = pymssql.connect(server=server, port=port, user=user, password=password, autocommit=True)
connection.cursor().execute("create table ##shared (a int) insert ##shared values (1)")
print("made", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def maker(clients: Clients) -> Iterator[pymssql.Connection]:
    with clients.pymssql(clients.server.reader) as connection:
        yield connection
    wait_until(lambda: left(clients.server.dsn) == [])


@pytest.fixture
def other(clients: Clients) -> Iterator[pymssql.Cursor]:
    """A session of another login."""
    with clients.pymssql(clients.server.writer) as connection, connection.cursor() as cursor:
        yield cursor


def run(connection: pymssql.Connection, text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text)


def rows(cursor: pymssql.Cursor, text: str) -> list[tuple[object, ...]]:
    cursor.execute(text)
    return list(cursor.fetchall())


def is_gone(cursor: pymssql.Cursor) -> bool:
    try:
        cursor.execute("select * from ##shared")
    except pymssql.Error as raised:
        return errors_of(raised).number == 208
    return False


def left(dsn: str) -> list[str]:
    """The global tables in PostgreSQL."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "select relname from pg_class where relnamespace = 'tsql_global'::regnamespace and relkind = 'r'"
            " order by 1"
        )
        return [name for (name,) in found]


def test_another_login_reads_and_writes_it(maker: pymssql.Connection, other: pymssql.Cursor) -> None:
    run(maker, "create table ##shared (Id int identity, Name varchar(5)) insert ##shared (name) values ('a')")
    other.execute("insert ##shared (name) values ('b') update ##shared set name = 'c' where id = 1")
    other.execute("set identity_insert ##shared on insert ##shared (id, name) values (9, 'd')")
    other.execute("insert ##shared (name) values ('e') delete ##shared where id = 2")
    assert rows(other, "select id, name from ##shared order by id") == [(1, "c"), (9, "d"), (10, "e")]
    assert [column[0] for column in other.description or ()] == ["Id", "Name"]
    assert error_number(other, "create table ##shared (a int)") == 2714
    other.execute("drop table ##shared")
    with maker.cursor() as cursor:
        assert is_gone(cursor)
        # and with other types, for which earlier plans would be wrong
        cursor.execute("create table ##shared (Id varchar(3)) insert ##shared values ('x')")
    assert rows(other, "select id from ##shared") == [("x",)]


def test_bulk_copy_fills_it(maker: pymssql.Connection, other: pymssql.Cursor) -> None:
    run(maker, "create table ##shared (a int, b varchar(5))")
    maker.bulk_copy("##shared", [(1, "x"), (2, "y")])
    assert rows(other, "select a, b from tempdb..##shared order by a") == [(1, "x"), (2, "y")]


def test_it_ends_with_the_session_that_created_it(
    clients: Clients, maker: pymssql.Connection, other: pymssql.Cursor
) -> None:
    with clients.pymssql(clients.server.reader) as connection:
        run(connection, "select 1 as a into ##shared")
        assert rows(other, "select a from ##shared") == [(1,)]
        with maker.cursor() as cursor:
            # another user of the table is not its creator
            assert rows(cursor, "select count(*) from ##shared") == [(1,)]
    wait_until(lambda: left(clients.server.dsn) == [])
    assert is_gone(other)


def test_it_remains_until_a_statement_that_uses_it_has_ended(
    clients: Clients, maker: pymssql.Connection, other: pymssql.Cursor
) -> None:
    with clients.pymssql(clients.server.reader) as connection:
        run(connection, "create table ##shared (a int) insert ##shared values (1)")
        other.execute("begin tran update ##shared set a = a + 1")
    with maker.cursor() as cursor:
        wait_until(lambda: is_gone(cursor))
        assert error_number(cursor, "create table ##shared (a int)") == 2714
        other.execute("commit")
        assert is_gone(cursor)
        assert left(clients.server.dsn) == []
        cursor.execute("create table ##shared (a int)")


def test_it_ends_with_a_killed_client(clients: Clients, other: pymssql.Cursor) -> None:
    server = clients.server
    arguments = [server.host, str(server.port), server.reader.user, server.reader.password]
    with subprocess.Popen(
        [sys.executable, "-c", MAKER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "made\n"
        assert rows(other, "select a from ##shared") == [(1,)]
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(other))
    assert left(server.dsn) == []


@pytest.mark.long
def test_it_ends_with_a_killed_gateway(temporary_directory: Path) -> None:
    data = temporary_directory / "globals"

    def session(server: RunningServer, login: Login) -> pymssql.Connection:
        return server.connect(login.user, login.password)

    with serving(data) as server:
        add_logins(server)
        connection = session(server, server.reader)
        run(connection, "create table ##shared (a int) create table ##second (a int)")
        server.process.kill()
        server.process.wait()
    with serving(data) as server, session(server, server.writer) as again, again.cursor() as cursor:
        assert is_gone(cursor)
        # housekeeping may be dropping them at the same moment
        wait_until(lambda: left(server.dsn) == [])
        cursor.execute("create table ##shared (a varchar(5)) insert ##shared values ('x')")
        assert rows(cursor, "select a from ##shared") == [("x",)]


def test_other_logins_cannot_keep_one(clients: Clients, admin: Admin, other: pymssql.Cursor) -> None:
    """A table in the schema that no session has created by T-SQL counts as ended."""
    admin.execute('create table tsql_global."##shared" (a int)')
    assert is_gone(other)
    assert left(clients.server.dsn) == []


def test_no_other_session_keeps_one(clients: Clients, other: pymssql.Cursor) -> None:
    """Whatever locks and temporary tables another login holds."""
    with psycopg.connect(clients.server.dsn_of(clients.server.writer), autocommit=True) as keeping:
        with clients.pymssql(clients.server.reader) as connection:
            run(connection, "create table ##shared (a int)")
            for key, number in keeping.execute(
                "select classid::bigint, objid::bigint from pg_locks where locktype = 'advisory'"
            ).fetchall():
                keeping.execute("select pg_advisory_lock_shared(%s::int, %s::int)", [key, number])
            keeping.execute("create temporary table tsql_global_marker (a int)")
            for statement in (
                "insert into tsql.global_table select relation, 'tsql_global_marker'::regclass"
                " from tsql.global_table",
                "update tsql.global_table set marker = 'tsql_global_marker'::regclass",
                "delete from tsql.global_table",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    keeping.execute(statement.encode())
        wait_until(lambda: left(clients.server.dsn) == [])
    assert is_gone(other)


def test_only_an_own_table_is_kept(clients: Clients, maker: pymssql.Connection) -> None:
    run(maker, "create table ##shared (a int)")
    with psycopg.connect(clients.server.dsn_of(clients.server.writer), autocommit=True) as connection:
        connection.execute("create temporary table own (a int)")
        for name in ("online.sr_vac", 'tsql_global."##shared"', "pg_temp.own"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                connection.execute("select tsql.keep_global(%s::regclass)", [name])
        connection.execute('create table tsql_global."##own" (a int)')
        connection.execute("select tsql.keep_global('tsql_global.\"##own\"'::regclass)")
        connection.execute("select tsql.end_globals()")
        assert left(clients.server.dsn) == ["##own", "##shared"]
        connection.execute("select tsql.end_own_globals()")
    assert left(clients.server.dsn) == ["##shared"]
