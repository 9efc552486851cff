"""A database without case comes with its default collation and with those of its columns."""

from collections.abc import Iterator

import psycopg
import pymssql
import pytest

from ringlog.adoption.conversion.rights import rights
from ringlog.adoption.conversion.tables import table_scripts
from ringlog.adoption.rings import Rules, sort
from ringlog.adoption.server import collations
from ringlog.adoption.server.catalogue import read
from servers import RunningServer
from waiting import wait_until

OLD, NEW = "folded_there", "folded_here"
COLLATION = "SQL_Latin1_General_CP1_CI_AS"


@pytest.fixture
def administrator(server: RunningServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"create schema {OLD} authorization {server.reader.user}")
        connection.execute("call tsql.declare_schema(%s, %s)", [OLD, COLLATION])
        yield connection
        connection.execute(f"drop schema {OLD} cascade; drop schema if exists {NEW} cascade")
        connection.execute(f"drop role if exists {NEW}")


def test_a_database_without_case_moves_in(server: RunningServer, administrator: psycopg.Connection) -> None:
    def session(database: str) -> pymssql.Connection:
        login = server.reader
        opened = server.connect(login.user, login.password, database=database, timeout=60, autocommit=True)

        def is_folding() -> bool:
            """Whether the gateway has been notified of the collation."""
            with opened.cursor() as cursor:
                cursor.execute("select case when 'a' = 'A' then 1 else 0 end")
                return cursor.fetchall() == [(1,)]

        wait_until(is_folding)
        return opened

    with session(OLD) as there, there.cursor() as cursor:
        cursor.execute("create table t (a varchar(9), b varchar(9) collate Latin1_General_BIN, c int)")
        old = read(there, OLD)
    found = sort([old], Rules(), lambda *_: (None, None))[0]
    made = rights(old, found, NEW)
    (script,) = table_scripts(found.site, False)
    assert (old.collation, old.left) == (COLLATION, ())
    assert "[b] varchar(9) collate Latin1_General_BIN null" in script.text.replace("b varchar", "[b] varchar")
    for statement in made.roles:
        administrator.execute(statement.encode())
    administrator.execute(f"grant all on schema {NEW} to {server.reader.user}")
    with session(NEW) as here, here.cursor() as cursor:
        cursor.execute(script.text)
        cursor.execute("insert t values ('AC/DC', 'AC/DC', 1)")
        cursor.execute("select count(*) from t where a like '%ac/dc%'")
        assert cursor.fetchall() == [(1,)]
        cursor.execute("select count(*) from t where b like '%ac/dc%' or 'a' <> 'A'")
        assert cursor.fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("SQL_Latin1_General_CP1_CI_AS", "SQL_Latin1_General_CP1_CI_AS"),
        ("Latin1_General_100_CI_AS_SC_UTF8", "Latin1_General_100_CI_AS_SC_UTF8"),
        ("Japanese_BIN2", collations.BINARY),
        ("Latin1_General_CS_AS", collations.BINARY),
        ("Latin1_General_CI_AI", ""),
        ("Danish_Norwegian_CI_AS", ""),
    ],
)
def test_collations_that_compare_alike(there: str, here: str) -> None:
    assert collations.here(there) == here
