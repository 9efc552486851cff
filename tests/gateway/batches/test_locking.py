"""`set transaction isolation level`, `set lock_timeout`: the visibility of other transactions, and the wait
for locks.

SQL Server: SET TRANSACTION ISOLATION LEVEL, SET LOCK_TIMEOUT; errors 1205 and 1222.
"""

from collections.abc import Iterator
from typing import Any

import pymssql
import pytest

from tds_clients import Admin, Clients, error_number, rows_of


@pytest.fixture(autouse=True)
def shared(admin: Admin) -> Iterator[None]:
    admin.execute(
        "create table public.shared_by_two (id integer primary key, n integer);"
        " insert into public.shared_by_two values (1, 10), (2, 20);"
        " grant all on public.shared_by_two to daq_writer, daq_reader"
    )
    yield
    admin.execute("drop table public.shared_by_two")


@pytest.fixture
def one(clients: Clients) -> Iterator[pymssql.Cursor]:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        yield cursor


@pytest.fixture
def other(clients: Clients) -> Iterator[pymssql.Cursor]:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        yield cursor


def value(cursor: pymssql.Cursor, query: str) -> Any:
    cursor.execute(query)
    ((found,),) = cursor.fetchall()
    return found


SUM = "select sum(n) from shared_by_two"


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_reads_are_repeated(one: pymssql.Cursor, other: pymssql.Cursor, level: str) -> None:
    one.execute(f"set transaction isolation level {level} begin transaction")
    assert value(one, SUM) == 30
    other.execute("update shared_by_two set n = 11 where id = 1")
    assert value(one, SUM) == 30
    one.execute("commit")
    assert value(one, SUM) == 31
    # it also applies to the next transaction, also after a rollback of the first
    one.execute("begin transaction update shared_by_two set n = 0 where id = 2 rollback begin transaction")
    assert value(one, SUM) == 31
    other.execute("update shared_by_two set n = 10 where id = 1")
    assert value(one, SUM) == 31
    one.execute("rollback set transaction isolation level read committed begin transaction")
    assert value(one, SUM) == 30
    other.execute("update shared_by_two set n = 0")
    assert value(one, SUM) == 0
    one.execute("commit")


def test_unserializable_transactions_are_not_both_committed(
    one: pymssql.Cursor, other: pymssql.Cursor
) -> None:
    for cursor in (one, other):
        cursor.execute("set transaction isolation level serializable begin transaction")
        assert value(cursor, SUM) == 30
    one.execute("update shared_by_two set n = 0 where id = 1 commit")
    assert error_number(other, "update shared_by_two set n = 0 where id = 2 commit") == 1205
    assert value(other, "select @@trancount") == 0
    assert value(one, SUM) == 20


def test_levels(one: pymssql.Cursor) -> None:
    for level, shown in [("serializable", 3), ("repeatable read", 2), ("read uncommitted", 1)]:
        one.execute(f"set transaction isolation level {level}")
        assert value(one, "select @@isolation") == shown
    assert error_number(one, "set transaction isolation level snapshot") == 195
    one.execute("begin transaction")
    value(one, "select count(*) from shared_by_two")
    one.execute("update shared_by_two set n = 1 where id = 1")
    assert error_number(one, "set transaction isolation level serializable") == 195
    one.execute("rollback")


def test_a_lock_timeout_is_kept(one: pymssql.Cursor, other: pymssql.Cursor) -> None:
    one.execute("begin transaction update shared_by_two set n = 1 where id = 1")
    assert value(other, "select @@lock_timeout") == -1
    for timeout in (0, 20):
        other.execute(f"set lock_timeout {timeout}")
        assert value(other, "select @@lock_timeout") == timeout
        # the statement ends, but neither its batch's transaction nor its earlier changes
        other.execute("begin transaction update shared_by_two set n = 2 where id = 2")
        assert error_number(other, "update shared_by_two set n = 2 where id = 1") == 1222
        assert value(other, "select n from shared_by_two where id = 2") == 2
        other.execute("rollback")
        assert error_number(other, "update shared_by_two set n = 2 where id = 1") == 1222
    one.execute("commit")
    other.execute("declare @n int = -1 set lock_timeout @n update shared_by_two set n = 2 where id = 1")
    assert (value(other, "select @@lock_timeout"), value(other, SUM)) == (-1, 22)


def test_hints_lock_read_rows(one: pymssql.Cursor, other: pymssql.Cursor) -> None:
    """SQL Server, "Table hints": UPDLOCK until the transaction ends; NOWAIT, READPAST; HOLDLOCK."""
    read = "select n from shared_by_two with (updlock{}) where id = {}"
    one.execute("begin transaction")
    assert value(one, read.format("", 1)) == 10
    assert error_number(other, read.format(", nowait", 1)) == 1222
    assert rows_of(other, "select id from shared_by_two with (updlock, readpast) order by id") == [(2,)]
    # readers wait for none of them
    assert value(other, SUM) == 30
    one.execute("rollback")
    assert value(other, read.format(", nowait", 1)) == 10
    one.execute("begin transaction")
    assert value(one, "select count(*) from shared_by_two with (updlock, holdlock) where id = 3") == 0
    other.execute("set lock_timeout 20")
    assert error_number(other, "insert shared_by_two values (3, 3)") == 1222
    one.execute("rollback")
    other.execute("begin transaction insert shared_by_two values (3, 3) rollback")


def test_a_change_locks_its_table(one: pymssql.Cursor, other: pymssql.Cursor) -> None:
    """SQL Server, "Table hints", TABLOCK: of a change until the transaction ends."""
    other.execute("set lock_timeout 20")
    one.execute("begin transaction")
    assert value(one, "select sum(n) from shared_by_two with (tablock)") == 30
    other.execute("begin transaction update shared_by_two set n = n where id = 2 rollback")
    one.execute("update shared_by_two with (tablock) set n = n where id = 1")
    assert error_number(other, "update shared_by_two set n = n where id = 2") == 1222
    assert value(other, SUM) == 30
    one.execute("rollback")
