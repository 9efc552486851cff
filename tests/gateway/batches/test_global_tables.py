"""Global temporary tables (`##t`): every session sees them, and they end with the session that made them.

"CREATE TABLE (Transact-SQL)": "Global temporary tables are automatically dropped when the session that
created the table ends and all other tasks have stopped referencing them."
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pymssql
import pytest
from case_tables import cases
from talks import hold, talks

from servers import Login, RunningServer, serving
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


@talks(__file__, versions=("7.4",))
def test_talks(clients: Clients, admin: Admin, version: str, talk: dict[str, Any]) -> None:
    hold(talk, version, clients, admin)
    wait_until(lambda: left(clients.server.dsn) == [])


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
        # the end of its session may be dropping it at the same moment
        wait_until(lambda: left(clients.server.dsn) == [])
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
    wait_until(lambda: left(server.dsn) == [])


@pytest.mark.long
def test_it_ends_with_a_killed_gateway(temporary_directory: Path) -> None:
    data = temporary_directory / "globals"

    def session(server: RunningServer, login: Login) -> pymssql.Connection:
        return server.connect(login.user, login.password)

    with serving(data) as server:
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


def test_what_others_leave_in_the_schema_counts_as_ended(
    clients: Clients, admin: Admin, other: pymssql.Cursor
) -> None:
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


# statements of a login that has psql too, on a global table of its own
ATTACHED = cases(__file__, "attached")

# Columns of drafts. A user of the table would run code of its maker, or show what only the user may read.
UNFIT = cases(__file__, "unfit")


@pytest.fixture
def psql(clients: Clients) -> Iterator[psycopg.Connection]:
    """A login's own connection to PostgreSQL, with code in its temporary schema."""
    with psycopg.connect(clients.server.dsn_of(clients.server.reader), autocommit=True) as connection:
        connection.execute(
            "create function pg_temp.constant(n int) returns int immutable language sql return 1;"
            " create function pg_temp.attack() returns trigger language plpgsql as 'begin return new; end';"
            " create domain pg_temp.positive as int check (pg_temp.constant(value) = 1);"
            " create type pg_temp.mood as enum ('glad')"
        )
        yield connection
        connection.execute("select tsql.end_own_globals()")
    wait_until(lambda: left(clients.server.dsn) == [])


def test_nobody_attaches_code_to_one(psql: psycopg.Connection, other: pymssql.Cursor) -> None:
    """It would run as whoever uses the table: also by the login that has made it."""
    columns = "a int default 1 check (a > 0), b timestamp default clock_timestamp()"
    definition = f'create temporary table "##shared" ({columns})'
    psql.execute("call tsql.define_global('##shared', %s)", [definition])
    for statement in ATTACHED.values():
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            psql.execute(statement.format('tsql_global."##shared"').encode())
    other.execute("insert ##shared default values")
    assert rows(other, "select a from ##shared where b <= sysdatetime()") == [(1,)]


@pytest.mark.parametrize("kind", UNFIT)
def test_a_draft_with_code_is_refused(psql: psycopg.Connection, kind: str) -> None:
    definition = f'create temporary table "##shared" ({UNFIT[kind]})'
    with pytest.raises(psycopg.Error, match="is not supported: it would run as every login"):
        psql.execute("call tsql.define_global('##shared', %s)", [definition])


@pytest.mark.parametrize(
    ("harmless", "default"), cases(__file__, "an_own_operator_or_cast_makes_no_function_harmless")
)
def test_an_own_operator_or_cast_makes_no_function_harmless(
    psql: psycopg.Connection, harmless: str, default: str
) -> None:
    """`ts_rewrite(tsquery, text)` runs a query, as whoever uses the table."""
    psql.execute(harmless.encode())
    definition = f'create temporary table "##shared" (a text default {default})'
    with pytest.raises(psycopg.Error, match="is not supported: it would run as every login"):
        psql.execute("call tsql.define_global('##shared', %s)", [definition])


def test_an_index_with_code_is_refused(psql: psycopg.Connection) -> None:
    for index in ("(pg_temp.constant(a))", "(a) where pg_temp.constant(a) = 1"):
        definition = f'create temporary table "##shared" (a int); create index on pg_temp."##shared" {index}'
        with pytest.raises(psycopg.Error, match="is not supported: it would run as every login"):
            psql.execute("call tsql.define_global('##shared', %s)", [definition])


def test_what_hangs_on_a_draft_is_not_shared(psql: psycopg.Connection, other: pymssql.Cursor) -> None:
    draft = 'pg_temp."##shared"'
    psql.execute(f'create temporary table "##shared" (a int); {ATTACHED["trigger"].format(draft)};'.encode())
    psql.execute(f"{ATTACHED['rule'].format(draft)}; alter table {draft} enable row level security".encode())
    psql.execute("call tsql.share_draft('##shared')")
    other.execute("insert ##shared values (1)")
    found = psql.execute(
        "select relhastriggers, relhasrules, relrowsecurity, relowner = %s::regrole"
        " from pg_class where oid = 'tsql_global.\"##shared\"'::regclass",
        ["ringlog_owner"],
    )
    assert found.fetchone() == (False, False, False, True)


def test_a_session_has_a_limited_number(psql: psycopg.Connection) -> None:
    def define(number: int) -> None:
        definition = f'create temporary table "##t{number}" (a int)'
        psql.execute("call tsql.define_global(%s, %s)", [f"##t{number}", definition])

    for number in range(250):
        define(number)
    with pytest.raises(psycopg.Error, match="more than 250 global temporary tables"):
        define(250)
