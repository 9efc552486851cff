"""Names are resolved within a database: nothing is called, dropped or identified in another one."""

from collections.abc import Iterator

import pymssql
import pytest

from servers import Login
from tds_clients import Admin, Clients, error_number, rows_of

DEVELOPER = Login("bounded", "bounded")


@pytest.fixture(scope="module", autouse=True)
def databases(admin: Admin) -> Iterator[None]:
    """Two databases of a site, and their logins."""
    admin.execute(
        "create role bounds nologin;"
        "create schema near authorization bounds; create schema far authorization bounds;"
        f"create role {DEVELOPER.user} login password '{DEVELOPER.password}' in role bounds, daq_reader;"
        f"grant {DEVELOPER.user} to ringlog_gateway with inherit false, set true;"
        f"alter role {DEVELOPER.user} set role = bounds; grant daq_reader to bounds"
    )
    yield
    admin.execute(
        f"drop schema near, far cascade; drop owned by bounds, {DEVELOPER.user};"
        f"drop role {DEVELOPER.user}, bounds; notify ringlog_catalogue"
    )


@pytest.fixture(params=["7.4", "7.1"])
def there(clients: Clients, request: pytest.FixtureRequest) -> Iterator[pymssql.Cursor]:
    """A session in the database `near`, when `far` has a procedure and tables."""
    with clients.pymssql(DEVELOPER, version=request.param) as connection, connection.cursor() as cursor:
        cursor.execute("use far")
        cursor.execute("create procedure px as select 'far'")
        cursor.execute("create table t (a int)")
        cursor.execute("create view v as select a from t")
        cursor.execute("use near")
        yield cursor
        cursor.execute("use far")
        for kind, name in (("procedure", "px"), ("view", "v"), ("table", "t")):
            cursor.execute(f"drop {kind} {name}")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("exec px", 2812),
        ("exec dbo.px", 2812),
        ("exec near..px", 2812),
        ("drop procedure px", 3701),
        ("drop procedure dbo.px", 3701),
        ("drop procedure near.dbo.px", 3701),
        ("drop table t", 3701),
        ("drop view near..v", 3701),
        ("truncate table t", 4701),
        ("alter table t add b int null", 4902),
        ("create index i on t (a)", 1088),
        ("exec sp_helptext px", 15009),
        ("exec sp_help px", 15009),
        ("drop procedure put_sr_vac", 3701),
    ],
)
def test_another_database_is_not_reached(there: pymssql.Cursor, text: str, number: int) -> None:
    assert error_number(there, text) == number


def test_ids_are_of_the_database_named(there: pymssql.Cursor) -> None:
    there.execute(
        "select object_id('px'), object_id('near..px'), object_id('dbo.t'), object_id('near.dbo.v')"
    )
    assert there.fetchone() == (None, None, None, None)
    there.execute("select object_id('far..px') / object_id('far.dbo.px'), sign(object_id('far..t'))")
    assert there.fetchone() == (1, 1)


def test_a_database_that_is_named_is_reached(there: pymssql.Cursor) -> None:
    assert rows_of(there, "exec far..px") == [("far",)]
    there.execute("use far")
    there.execute("create function doubled (@n int) returns int as begin return 2 * @n end")
    assert rows_of(there, "use near select far.dbo.doubled(2), far..doubled(3)") == [(4, 6)]
    assert error_number(there, "select dbo.doubled(2)") == 4121
    there.execute("use far drop function doubled drop view v")
    there.execute("use near select object_id('far..v')")
    assert there.fetchone() == (None,)
    there.execute("use far")
    there.execute("create view v as select a from t")


def test_properties_of_another_schema(there: pymssql.Cursor) -> None:
    """SQL Server, sp_addextendedproperty: level 0 names the schema, whatever the current one."""
    listed = "select objname, value from fn_listextendedproperty('p', 'schema', %s, 'table', 't', {}, null)"
    there.execute("sp_addextendedproperty 'p', 'of t', 'schema', 'far', 'table', 't'")
    there.execute("sp_addextendedproperty 'p', 'of a', 'schema', 'Far', 'table', 't', 'column', 'a'")
    there.execute(listed.format("null"), ("far",))
    assert there.fetchall() == [("t", "of t")]
    there.execute(listed.format("'column'"), ("far",))
    assert there.fetchall() == [("a", "of a")]
    for schema in ("dbo", "near", "nowhere"):
        there.execute(listed.format("null"), (schema,))
        assert there.fetchall() == []
    assert error_number(there, "sp_addextendedproperty 'p', '1', 'schema', 'near', 'table', 't'") == 15135
    there.execute("select db_name()")
    assert there.fetchone() == ("near",)


def test_system_and_ringlog_procedures_exist_everywhere(there: pymssql.Cursor) -> None:
    there.execute("exec sp_databases")
    assert there.fetchall()
    there.execute("exec last_sr_vac")


def test_databases_and_schemas_require_rights(clients: Clients, admin: Admin) -> None:
    with clients.pymssql(DEVELOPER) as connection, connection.cursor() as cursor:
        assert error_number(cursor, "create database made") == 262
        by_right = "do $$ begin execute format('{} bounds', current_database()); end $$"
        admin.execute(by_right.format("grant create on database %I to"))
        cursor.execute(
            "create database made on primary (name = 'made', filename = 'made.mdf') log on (name = 'l')"
        )
        assert error_number(cursor, "create database Made") == 1801
        assert error_number(cursor, "create schema tempdb") == 2714
        cursor.execute("use made")
        cursor.execute("create table t (a int) insert t values (5)")
        assert error_number(cursor, "drop database made") == 3702
        cursor.execute("use near")
        assert rows_of(cursor, "select a from made..t") == [(5,)]
        cursor.execute("drop database made")
        assert error_number(cursor, "use made") == 911
        cursor.execute("create schema part authorization dbo")
        cursor.execute("create table part.t (a int)")
        assert error_number(cursor, "drop schema part") == 3729
        cursor.execute("drop table part.t")
        cursor.execute("drop schema part")
        for name in ("online", "tsql", "sys", "pg_catalog", "far_away"):
            assert error_number(cursor, f"drop database {name}") == 3701
        admin.execute(by_right.format("revoke create on database %I from"))
