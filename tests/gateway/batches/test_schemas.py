"""Schemas in a database.

SQL Server's documentation: CREATE SCHEMA; Transact-SQL syntax conventions, "Multipart names"; Catalog Views;
CREATE PROCEDURE, "Best practices": unqualified names are looked up in the procedure's schema, then in dbo."""

from collections.abc import Iterator

import pymssql
import pytest

from servers import Login
from tds_clients import Admin, Clients, error_number, errors_of, rows_of

OWNER = Login("works", "works")
OTHER = Login("strangers", "strangers")


@pytest.fixture(scope="module", autouse=True)
def databases(admin: Admin) -> Iterator[None]:
    """Databases of two sites, whose logins may make schemas."""
    for login in (OWNER, OTHER):
        admin.execute(
            f"create role {login.user} login password '{login.password}' in role daq_reader;"
            f"grant {login.user} to ringlog_gateway with inherit false, set true;"
            f"create schema {login.user}_db authorization {login.user};"
            f"grant usage on schema {login.user}_db to public;"
            "do $$ begin execute "
            f"format('grant create on database %I to {login.user}', current_database()); end $$"
        )
    yield
    admin.execute("drop schema if exists works_db, strangers_db, hr cascade")
    for login in (OWNER, OTHER):
        admin.execute(f"drop owned by {login.user}; drop role {login.user}")
    admin.execute("notify ringlog_catalogue")


@pytest.fixture
def owner(clients: Clients) -> Iterator[pymssql.Cursor]:
    """A session in a database with schema `hr`, which has a table, as dbo has another of the name."""
    with clients.pymssql(OWNER) as connection, connection.cursor() as cursor:
        cursor.execute("use works_db")
        cursor.execute("create schema hr")
        cursor.execute("create table staff (id int not null primary key, name varchar(20))")
        cursor.execute(
            "create table hr.staff (id int not null constraint pk_hr_staff primary key, boss int null "
            "constraint fk_boss references staff, name varchar(20) default 'new')"
        )
        cursor.execute("insert staff values (1, 'dbo') insert hr.staff values (2, 1, 'hr')")
        yield cursor
        cursor.execute("drop procedure if exists hr.pick, pick, hr.made drop function if exists hr.twice")
        cursor.execute("drop view if exists hr.bosses drop table if exists hr.own, hr.staff, staff")
        cursor.execute("drop schema hr")


def only(cursor: pymssql.Cursor, text: str) -> tuple[object, ...] | None:
    cursor.execute(text)
    return cursor.fetchone()


def test_names_of_two_and_three_parts(owner: pymssql.Cursor) -> None:
    for name, value in (
        ("staff", "dbo"),
        ("dbo.staff", "dbo"),
        ("hr.staff", "hr"),
        ("works_db.hr.staff", "hr"),
        ("Works_DB.HR.Staff", "hr"),
        ("works_db..staff", "dbo"),
    ):
        assert only(owner, f"select name from {name}") == (value,), name
    assert only(owner, "select works_db.hr.staff.name from works_db.hr.staff") == ("hr",)
    owner.execute("update works_db.hr.staff set name = 'both' from hr.staff h join staff d on d.id = h.boss")
    assert only(owner, "select name from hr.staff") == ("both",)
    for text in (
        "select * from strangers_db.hr.staff",
        "delete online.hr.staff",
        "select * from works_db.nowhere.staff",
    ):
        assert error_number(owner, text) == 208, text


def test_a_schema_is_no_database(owner: pymssql.Cursor, clients: Clients) -> None:
    assert error_number(owner, "use hr") == 911
    assert only(owner, "select count(*) from sysdatabases where name = 'hr'") == (0,)
    assert only(owner, "select db_id('hr')") == (None,)
    assert error_number(owner, "drop database hr") == 3701
    assert error_number(owner, "drop schema works_db") == 3701
    assert error_number(owner, "drop schema hr") == 3729
    with pytest.raises(pymssql.Error):
        clients.pymssql(OWNER, database="hr")
    owner.execute("use strangers_db")
    assert error_number(owner, "drop schema hr") == 3701
    assert error_number(owner, "create schema mine") == 262
    owner.execute("use works_db")
    assert error_number(owner, "create schema HR") == 2714


def test_the_catalogue_lists_schemas(owner: pymssql.Cursor) -> None:
    owner.execute("create view hr.bosses as select boss from hr.staff")
    owner.execute("create procedure hr.pick as select 1")
    owner.execute("create function hr.twice (@n int) returns int as begin return 2 * @n end")
    listed = [
        ("bosses", "hr"),
        ("staff", "dbo"),
        ("staff", "hr"),
    ]
    owner.execute("select table_name, table_schema from information_schema.tables order by 1, 2")
    assert owner.fetchall() == listed
    owner.execute(
        "select o.name, s.name from sys.objects o join sys.schemas s on s.schema_id = o.schema_id "
        "where o.type in ('U', 'V') order by 1, 2"
    )
    assert owner.fetchall() == listed
    owner.execute("select name, schema_name(uid) from sysobjects where type in ('U', 'V') order by 1, 2")
    assert owner.fetchall() == listed
    owner.execute("sp_tables")
    assert [(name, schema) for _, schema, name, *_ in owner.fetchall()] == [listed[1], listed[2], listed[0]]
    owner.execute("sp_columns staff, hr")
    assert [row[3] for row in owner.fetchall()] == ["id", "boss", "name"]
    owner.execute("sp_pkeys staff, hr")
    assert [row[:4] for row in owner.fetchall()] == [("works_db", "hr", "staff", "id")]
    owner.execute("sp_fkeys staff, dbo")
    assert [row[:7] for row in owner.fetchall()] == [
        ("works_db", "dbo", "staff", "id", "works_db", "hr", "staff"),
    ]
    owner.execute(
        "select routine_schema, routine_name from information_schema.routines where routine_name like '%i%'"
    )
    assert {("hr", "pick"), ("hr", "twice")} <= set(owner.fetchall())
    owner.execute(
        "select constraint_schema, constraint_name, unique_constraint_schema from "
        "information_schema.referential_constraints"
    )
    assert owner.fetchall() == [("hr", "fk_boss", "dbo")]
    owner.execute("select schema_name from information_schema.schemata order by 1")
    assert owner.fetchall() == [("INFORMATION_SCHEMA",), ("dbo",), ("hr",), ("sys",)]
    owner.execute(
        "select object_schema_name(object_id('hr.staff')), object_name(object_id('hr.staff')), "
        "object_id('works_db.hr.staff') - object_id('hr.staff'), object_id('online.hr.staff'), "
        "schema_name(schema_id('hr')), object_id('hr.nothing')"
    )
    assert owner.fetchall() == [("hr", "staff", 0, None, "hr", None)]
    owner.execute("use strangers_db")
    tables = "select count(*) from {}information_schema.tables where table_schema = 'hr'"
    assert only(owner, tables.format("works_db.")) == (2,)
    assert only(owner, tables.format("")) == (0,)
    owner.execute("use works_db")
    owner.execute("sp_help 'hr.staff'")
    assert owner.fetchall()[0][:2] == ("staff", "hr")


def test_properties_are_of_one_schema(owner: pymssql.Cursor) -> None:
    for schema in ("hr", "dbo"):
        owner.execute(f"sp_addextendedproperty 'of', '{schema}', 'schema', '{schema}', 'table', 'staff'")
    for schema in ("hr", "dbo"):
        listed = f"fn_listextendedproperty('of', 'schema', '{schema}', 'table', 'staff', null, null)"
        assert only(owner, f"select value from {listed}") == (schema,)


def test_procedures_look_into_their_schema_first(owner: pymssql.Cursor) -> None:
    """Compiled ones and ones that the gateway runs."""
    owner.execute("create table hr.own (a int) insert hr.own values (7)")
    owner.execute("create procedure pick as select 'dbo'")
    # the gateway runs a procedure that executes a text
    for head in ("", "exec ('select 0') "):
        begin = [(0,)] if head else []
        read = "select name, (select a from own), db_name() from staff"
        owner.execute(f"create procedure hr.made as {head}{read} exec pick")
        assert rows_of(owner, "exec hr.made") == [*begin, ("hr", 7, "works_db"), ("dbo",)]
        owner.execute("create procedure hr.pick as select 'hr'")
        owner.execute(f"alter procedure hr.made as {head}exec pick exec dbo.pick select name from dbo.staff")
        assert rows_of(owner, "exec works_db.hr.made") == [*begin, ("hr",), ("dbo",), ("dbo",)]
        owner.execute("drop procedure hr.made, hr.pick")
    assert error_number(owner, "exec online.hr.made") == 2812


def test_calls_by_rpc_name_schemas(clients: Clients, owner: pymssql.Cursor) -> None:
    owner.execute("create procedure hr.pick as return 5")
    for name in ("hr.pick", "works_db.hr.pick", "[works_db].[hr].[pick]"):
        assert rows_of(owner, f"declare @s int exec @s = {name} select @s") == [(5,)]
    with clients.pymssql(OWNER, database="works_db") as connection, connection.cursor() as cursor:
        cursor.callproc("works_db.hr.pick", ())
        while cursor.nextset():
            pass
        assert cursor.returnvalue == 5
        with pytest.raises(pymssql.Error) as missing:
            cursor.callproc("strangers_db.hr.pick", ())
        assert errors_of(missing.value).number == 2812


def test_a_stranger_shows_nothing_in_a_database(owner: pymssql.Cursor, admin: Admin) -> None:
    """A comment alone puts no schema into a database of others."""
    admin.execute(
        "create schema lure authorization strangers; set role strangers; create table lure.staff (a int);"
        "grant usage on schema lure to public; grant select on lure.staff to public;"
        "comment on schema lure is 'T-SQL schema of works_db'; reset role; notify ringlog_catalogue"
    )
    try:
        assert only(owner, "select count(*) from sys.schemas where name = 'lure'") == (0,)
        lured = "select count(*) from information_schema.tables where table_schema = 'lure'"
        assert only(owner, lured) == (0,)
    finally:
        admin.execute("drop schema lure cascade")


def test_rights_on_objects_of_a_schema(owner: pymssql.Cursor, clients: Clients) -> None:
    owner.execute("create procedure hr.pick as select name from staff")
    with clients.pymssql(OTHER, database="works_db") as connection, connection.cursor() as other:
        for text in ("select name from hr.staff", "exec hr.pick"):
            assert error_number(other, text) == 229
        owner.execute("grant select on hr.staff to strangers grant execute on works_db.hr.pick to strangers")
        for text in ("select name from hr.staff", "exec hr.pick"):
            assert rows_of(other, text) == [("hr",)]
        owner.execute("revoke all on hr.staff from strangers")
        assert error_number(other, "select name from hr.staff") == 229


def test_procedures_of_the_system_take_names_with_schemas(owner: pymssql.Cursor) -> None:
    owner.execute("create procedure hr.pick as select 1")
    assert rows_of(owner, "sp_helptext 'works_db.hr.pick'") == [("create procedure hr.pick as select 1",)]
    assert error_number(owner, "sp_helptext 'pick'") == 15009
    owner.execute("sp_rename 'hr.staff', 'people'")
    assert rows_of(owner, "select name from hr.people") == [("hr",)]
    owner.execute("sp_rename 'hr.people', 'staff'")
    owner.execute("create table hr.own (id int identity primary key)")
    owner.execute("set identity_insert works_db.hr.own on insert hr.own (id) values (7)")
    owner.execute("set identity_insert hr.own off insert hr.own default values")
    assert rows_of(owner, "select id from hr.own") == [(7,), (8,)]
    assert rows_of(owner, "select ident_current('hr.own')") == [(8,)]
    owner.execute("truncate table works_db.hr.own")
    owner.execute("create index By_Name on hr.staff (name)")
    assert rows_of(owner, "select name from sys.indexes where index_id = 3") == [("By_Name",)]
    owner.execute("drop index hr.staff.By_Name")


def test_dropping_a_database_drops_its_schemas(owner: pymssql.Cursor) -> None:
    owner.execute("create database brief")
    owner.execute("use brief")
    owner.execute("create schema inside")
    owner.execute("create table brief.inside.t (a int)")
    assert error_number(owner, "alter database brief collate SQL_Latin1_General_CP1_CI_AS") == 5072
    owner.execute("use works_db")
    owner.execute("drop database brief")
    assert error_number(owner, "select * from inside.t") == 208
    owner.execute("create schema inside")
    owner.execute("drop schema inside")
    owner.execute("create database inside")
    owner.execute("use inside")
    owner.execute("use works_db")
    owner.execute("drop database inside")
    owner.execute("begin transaction create schema inside")
    owner.execute("create table works_db.inside.t (a int)")
    owner.execute("rollback")
    assert error_number(owner, "select * from works_db.inside.t") == 208


# --- names are resolved within a database: nothing is called, dropped or identified in another one ---

DEVELOPER = Login("bounded", "bounded")


@pytest.fixture(scope="module", autouse=True)
def developers(admin: Admin) -> Iterator[None]:
    """Two developers of a site, and their logins."""
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
