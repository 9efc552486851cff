"""Schemas in a database.

SQL Server's documentation: CREATE SCHEMA; Transact-SQL syntax conventions, "Multipart names"; Catalog Views;
CREATE PROCEDURE, "Best practices": unqualified names are looked up in the procedure's schema, then in dbo."""

from collections.abc import Iterator
from typing import Any

import pymssql
import pytest
from case_tables import cases
from talks import hold, talks

from servers import Login
from tds_clients import Admin, Clients, rows_of

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


BEGIN, END = cases(__file__, "begin"), cases(__file__, "end")
SITES = {"works": OWNER, "strangers": OTHER}


@talks(__file__, versions=("7.4",))
def test_talks(clients: Clients, admin: Admin, version: str, talk: dict[str, Any]) -> None:
    hold(talk, version, clients, admin, SITES, "works", "works_db", BEGIN, END)


@pytest.fixture
def owner(clients: Clients) -> Iterator[pymssql.Cursor]:
    """A session in a database with schema `hr`, which has a table, as dbo has another of the name."""
    with clients.pymssql(OWNER, database="works_db") as connection, connection.cursor() as cursor:
        for text in BEGIN:
            cursor.execute(text)
        yield cursor
        for text in END:
            cursor.execute(text)


def test_a_schema_is_no_database(owner: pymssql.Cursor, clients: Clients) -> None:
    with pytest.raises(pymssql.Error):
        clients.pymssql(OWNER, database="hr")


def only(cursor: pymssql.Cursor, text: str) -> tuple[object, ...] | None:
    cursor.execute(text)
    return cursor.fetchone()


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
    assert {("INFORMATION_SCHEMA",), ("dbo",), ("hr",), ("sys",), ("db_owner",)} <= set(owner.fetchall())
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


@talks(__file__, versions=("7.4", "7.1"), table="near")
def test_developers(clients: Clients, admin: Admin, version: str, talk: dict[str, Any]) -> None:
    hold(
        talk,
        version,
        clients,
        admin,
        {"bounded": DEVELOPER},
        "bounded",
        "near",
        **cases(__file__, "developers"),
    )


def test_databases_are_listed_everywhere(clients: Clients) -> None:
    with clients.pymssql(DEVELOPER, database="near") as connection, connection.cursor() as cursor:
        assert rows_of(cursor, "exec sp_databases")
