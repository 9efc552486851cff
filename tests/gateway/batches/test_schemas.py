"""Schemas in a database.

SQL Server's documentation: CREATE SCHEMA; Transact-SQL syntax conventions, "Multipart names"; Catalog Views;
CREATE PROCEDURE, "Best practices": unqualified names are looked up in the procedure's schema, then in dbo.
"""

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
