"""scope_identity() belongs to the same procedure or batch, @@identity to any (SQL Server, SCOPE_IDENTITY)."""

from collections.abc import Iterator

import pymssql
import pytest

from authors import author_with_schema
from servers import Login, RunningServer
from tds_clients import result_sets

TABLES = """
    create table tz (z_id int identity(1, 1) primary key, z_name varchar(20) not null)
    insert tz values ('Lisa') insert tz values ('Mike') insert tz values ('Carla')
    create table ty (y_id int identity(100, 5) primary key, y_name varchar(20) null)
    insert ty (y_name) values ('boathouse') insert ty (y_name) values ('rocks')
    insert ty (y_name) values ('elevator')
    create table plain (a int)
"""
TRIGGER = "create trigger ztrig on tz for insert as begin insert ty values ('') end"


@pytest.fixture
def cursor(server: RunningServer) -> Iterator[pymssql.Cursor]:
    login = Login("identifier", "identifier")
    with (
        author_with_schema(server, login, "identities"),
        server.connect(login.user, login.password, database="identities") as connection,
        connection.cursor() as cursor,
    ):
        for text in (TABLES, TRIGGER):
            cursor.execute(text)
        yield cursor


def row(cursor: pymssql.Cursor, text: str) -> tuple[object, ...] | None:
    """The row of the last result set."""
    *_, last = result_sets(cursor, text)
    return last[0] if last else None


def test_identities_of_a_batch(cursor: pymssql.Cursor) -> None:
    assert row(cursor, "insert tz values ('Rosalie') select scope_identity(), @@identity") == (4, 115)
    # NULL after an insert into a table without such a column; SCOPE_IDENTITY: the last that was generated
    assert row(cursor, "insert plain values (1) select scope_identity(), @@identity") == (4, None)
    assert row(cursor, "insert tz select 'nobody' where 1 = 0 select scope_identity()") == (4,)


@pytest.mark.parametrize("makes", ["", "create table #own (a int)"], ids=["compiled", "with a table"])
def test_identities_of_a_procedure(cursor: pymssql.Cursor, makes: str) -> None:
    cursor.execute(
        f"create procedure adds @z numeric output, @y numeric output, @before numeric output as {makes} "
        "set @before = scope_identity() insert tz values ('Rosalie') update tz set z_name = 'R' "
        "set @z = scope_identity() set @y = @@identity"
    )
    called = (
        "declare @z numeric, @y numeric, @b numeric "
        "exec adds @z output, @y output, @b output select @z, @y, @b"
    )
    assert row(cursor, called) == (4, 115, None)
    assert row(cursor, called) == (5, 120, None)
    # the procedure's scope is not that of the batch, which has inserted before it
    around = f"insert ty values ('own') {called.replace('select @z', 'select scope_identity(), @z')}"
    assert row(cursor, around) == (125, 6, 130, None)


def test_identities_of_a_nested_procedure(cursor: pymssql.Cursor) -> None:
    cursor.execute("create procedure inner_one as insert ty values ('inner') select scope_identity()")
    cursor.execute(
        "create procedure outer_one as insert tz values ('outer') exec inner_one select scope_identity()"
    )
    assert row(cursor, "exec outer_one") == (4,)


def test_identities_after_a_procedure_that_only_writes(cursor: pymssql.Cursor) -> None:
    """@@IDENTITY is not limited to a scope."""
    cursor.execute("create procedure writes as insert ty values ('x')")
    assert row(cursor, "insert tz values ('Rosalie') exec writes select @@identity, scope_identity()") == (
        120,
        4,
    )
    assert row(cursor, "exec writes select @@identity") == (125,)
