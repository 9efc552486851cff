"""Extended properties: who may give them, what PostgreSQL's clients see, and texts that are altered.

SQL Server's documentation: sp_addextendedproperty ("Permissions"), sys.extended_properties, ALTER VIEW,
ALTER TRIGGER.
"""

from collections.abc import Iterator

import psycopg
import pymssql
import pytest

from authors import author_and_caller
from servers import Login, RunningServer
from tds_clients import Clients, errors_of

AUTHOR = Login("property_author", "property_author")
READER = Login("property_reader", "property_reader")
DESCRIBE = "exec sp_addextendedproperty 'MS_Description', '{}', 'schema', 'dbo', '{}', '{}'"
VALUE = "select value from sys.extended_properties where major_id = object_id('{}')"


@pytest.fixture(scope="module")
def admin(server: RunningServer) -> Iterator[psycopg.Connection]:
    """The creator of the database `properties`, its author, and a reader of its table."""
    with author_and_caller(server, AUTHOR, READER, "properties") as admin:
        admin.execute(
            f"create table properties.t (a integer); alter table properties.t owner to {AUTHOR.user};"
            f" grant select on properties.t to {READER.user}".encode()
        )
        yield admin


@pytest.fixture
def author(clients: Clients, admin: psycopg.Connection) -> Iterator[pymssql.Cursor]:
    with clients.pymssql(AUTHOR, database="properties") as connection, connection.cursor() as cursor:
        yield cursor


def value(cursor: pymssql.Cursor, text: str) -> object:
    cursor.execute(text)
    ((found,),) = cursor.fetchall()
    return found


def test_only_the_owner_adds_them(clients: Clients, admin: psycopg.Connection) -> None:
    with clients.pymssql(READER, database="properties") as connection, connection.cursor() as cursor:
        with pytest.raises(pymssql.Error) as raised:
            # a property that no other test gives the table
            cursor.execute("exec sp_addextendedproperty 'Mine', 'I', 'schema', 'dbo', 'table', 't'")
        assert errors_of(raised.value).number == 15135


def test_a_description_is_a_comment(author: pymssql.Cursor, admin: psycopg.Connection) -> None:
    author.execute(DESCRIBE.format("currents", "table", "t"))
    comment = "select obj_description('properties.t'::regclass)"
    assert admin.execute(comment).fetchall() == [("currents",)]
    author.execute("exec sp_addextendedproperty 'Caption', 'I', 'schema', 'dbo', 'table', 't'")
    author.execute("exec sp_dropextendedproperty 'Caption', 'schema', 'dbo', 'table', 't'")
    assert admin.execute(comment).fetchall() == [("currents",)]
    admin.execute("comment on table properties.t is 'by PostgreSQL'")
    assert value(author, VALUE.format("t")) == "by PostgreSQL"


def test_texts_keep_theirs_when_they_are_altered(author: pymssql.Cursor) -> None:
    for kind, make, altered in (
        ("view", "create view v as select a from t", "alter view v as select a + 1 as a from t"),
        ("procedure", "create procedure p as select 1", "alter procedure p as select 2"),
    ):
        name = make.split()[2]
        author.execute(make)
        author.execute(DESCRIBE.format(f"a {kind}", kind, name))
        author.execute(altered)
        assert value(author, VALUE.format(name)) == f"a {kind}"
        text = value(author, f"select object_definition(object_id('{name}'))")
        assert text == altered.replace("alter", "CREATE")
        author.execute(f"drop {kind} {name}")


def test_a_trigger_keeps_its_own_when_it_is_altered(author: pymssql.Cursor) -> None:
    made = "create trigger r on t after insert, delete as set nocount on"
    author.execute(made)
    author.execute(
        "exec sp_addextendedproperty 'MS_Description', 'a trigger', 'schema', 'dbo', 'table', 't',"
        " 'trigger', 'r'"
    )
    author.execute(made.replace("create", "alter"))
    assert value(author, VALUE.format("r")) == "a trigger"
    assert value(author, "select count(*) from sys.triggers where name like 'r%'") == 1
    author.execute("drop trigger r")
