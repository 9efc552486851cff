"""The T-SQL of views, as sent by their authors.

SQL Server's documentation: sp_helptext (rows of up to 255 characters), sys.sql_modules, OBJECT_DEFINITION,
sys.syscomments, INFORMATION_SCHEMA.VIEWS; ALTER VIEW. ASE, Reference Manual: sp_helptext; Tables: syscomments
(pieces of 255 characters).
"""

import re
from collections.abc import Iterator

import psycopg
import pymssql
import pytest
from psycopg import sql

from authors import author_with_schema
from servers import READER, Login, RunningServer
from tds_clients import Clients, error_number, error_of

AUTHOR = Login("view_author", "view_author")
LONG = "-- " + "é" * 300
TEXT = f"""/* what the ring keeps */
create view Kept (Number, [its time])
as
  select a, 'it''s \\n' + cast(b as varchar(30)) -- as it was
{LONG}
  from t where a > 0 with check option;"""


@pytest.fixture(scope="module")
def admin(server: RunningServer) -> Iterator[psycopg.Connection]:
    """The creator of the database `views`, with a table, and its author."""
    with author_with_schema(server, AUTHOR, "views") as admin:
        admin.execute(
            "create table views.t (a integer, b timestamp);"
            f" alter table views.t owner to {AUTHOR.user}".encode()
        )
        yield admin


@pytest.fixture
def author(clients: Clients, admin: psycopg.Connection) -> Iterator[pymssql.Cursor]:
    with clients.pymssql(AUTHOR) as connection, connection.cursor() as cursor:
        cursor.execute("use views")
        yield cursor
        cursor.execute("drop view if exists Kept, stale, own")


MODULE = "select definition from sys.sql_modules where object_id = object_id('{}')"


def values(cursor: pymssql.Cursor, text: str) -> list[object]:
    cursor.execute(text)
    return [value for (value,) in cursor.fetchall()]


def test_rules_and_defaults_are_shown_to_those_of_their_schema(
    author: pymssql.Cursor, clients: Clients
) -> None:
    query = "select text from sys.syscomments where text like '%4711%'"
    author.execute("create rule hidden as @value > 4711")
    author.execute("create default hidden_too as 4711")
    try:
        assert len(values(author, query)) == 2
        with clients.pymssql(READER) as connection, connection.cursor() as reader:
            assert values(reader, query) == []
    finally:
        author.execute("drop rule hidden")
        author.execute("drop default hidden_too")


def test_the_text_is_the_author_s(author: pymssql.Cursor) -> None:
    author.execute(TEXT)
    lines = TEXT.split("\n")
    cut = lines.index(LONG)
    assert values(author, "exec sp_helptext Kept") == [
        *lines[:cut], LONG[:255], LONG[255:], *lines[cut + 1 :]
    ]  # fmt: skip
    pieces = values(author, "select text from syscomments where id = object_id('Kept') order by colid")
    assert pieces == [TEXT[:255], TEXT[255:]]
    assert values(author, "select definition from sys.sql_modules where object_id = object_id('Kept')") == [
        TEXT
    ]
    assert values(author, "select object_definition(object_id('Kept'))") == [TEXT]
    of_schema = "select view_definition from information_schema.views where table_name = 'kept'"
    assert values(author, of_schema) == [TEXT]
    # its description is not its text
    author.execute("exec sp_tables 'kept'")
    assert author.fetchall() == [("views", "dbo", "kept", "VIEW", None)]


def test_typed_at_a_console_of_ase(clients: Clients, author: pymssql.Cursor) -> None:
    text = "create view own as\n    select a from t\n    where a = 1"
    made = clients.tsql(AUTHOR, "use views", text, section="5.0")
    assert made.errors == []
    read = clients.tsql(
        AUTHOR,
        "use views",
        "sp_helptext own",
        "select count(*) from syscomments where id = object_id('own')",
        section="5.0",
    )
    assert read.errors == []
    assert [line for (line, *_) in read.rows[1:4]] == text.split("\n")
    assert read.rows[-1] == ["1"]


def test_the_text_is_that_of_the_last_alter_view(author: pymssql.Cursor) -> None:
    refused = error_of(author, "alter view stale as select a from t")
    assert refused.number == 208
    assert "Invalid object name 'stale'." in refused.text
    author.execute("create view stale as select a from t")
    for text in (
        "alter view stale as select a from t where a = 1",
        "create or alter view stale as select a, b from t",
        "ALTER VIEW dbo.stale AS SELECT a, b FROM t -- once more",
    ):
        author.execute(text)
        # SQL Server replaces ALTER by CREATE
        kept = re.sub("^alter", "CREATE", text, flags=re.IGNORECASE)
        assert values(author, "exec sp_helptext stale") == [kept]
    # a name that a table gets later is not in the text, and a view that is dropped takes its text along
    author.execute("drop view stale")
    author.execute("create view stale as select b from t")
    assert values(author, "exec sp_helptext stale") == ["create view stale as select b from t"]


def test_a_view_of_postgresql_has_no_text_and_reports_that(
    author: pymssql.Cursor, admin: psycopg.Connection
) -> None:
    none = "There is no text for object 'own': it was made, or changed, in PostgreSQL and not in T-SQL."
    admin.execute(
        f"create view views.own as select a from views.t; alter view views.own owner to {AUTHOR.user}"
    )
    for change in (
        "comment on view views.own is 'of PostgreSQL'",
        "comment on view views.own is 'T-SQL view of PostgreSQL 15, 00000000000000000000000000000000'",
    ):
        admin.execute(change)
        assert none in error_of(author, "exec sp_helptext own").text
        assert values(
            author, "select definition from sys.sql_modules where object_id = object_id('own')"
        ) == [None]
        assert values(author, "select object_definition(object_id('own'))") == [None]
        assert values(author, "select text from syscomments where id = object_id('own')") == []
    author.execute("alter view own as select a from t")
    assert values(author, "exec sp_helptext own") == ["CREATE view own as select a from t"]
    # another query, and the comment still there
    admin.execute("create or replace view views.own as select a + 1 as a from views.t")
    assert none in error_of(author, "exec sp_helptext own").text
    admin.execute("create or replace view views.own as select a from views.t")
    assert values(author, "exec sp_helptext own") == ["CREATE view own as select a from t"]


def test_a_session_s_settings_do_not_matter(
    author: pymssql.Cursor, admin: psycopg.Connection, server: RunningServer
) -> None:
    author.execute(TEXT)
    for setting in ("quote_all_identifiers = on", "search_path = pg_catalog", "search_path = views"):
        with psycopg.connect(server.dsn) as connection:
            connection.execute(f"set {setting}".encode())
            found = connection.execute("select tsql.view_source('views.kept'::regclass)").fetchone()
        assert found == (TEXT,)


def test_a_dump_contains_it(author: pymssql.Cursor, admin: psycopg.Connection) -> None:
    """A dump makes a view of its query in PostgreSQL's words, without a search path, and then its comment."""
    author.execute(TEXT)
    with admin.transaction():
        admin.execute("set local search_path = ''")
        dumped = "select pg_catalog.pg_get_viewdef(oid), pg_catalog.obj_description(oid, 'pg_class')"
        found = admin.execute(
            f"{dumped} from pg_catalog.pg_class where oid = 'views.kept'::regclass"
        ).fetchone()
        assert found is not None
        query, comment = found
        admin.execute("drop view views.kept")
        admin.execute(f'create view views.kept (number, "its time") as {query}'.encode())
        admin.execute(sql.SQL("comment on view views.kept is {}").format(comment))
        admin.execute(f"alter view views.kept owner to {AUTHOR.user}")
    assert values(author, "select object_definition(object_id('kept'))") == [TEXT]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        # "CREATE VIEW statements cannot be combined with other statements in a batch. The CREATE statement
        # must start the batch." (SQL Server, Rules for Using Batches)
        ("declare @a int create view mixed as select a from t", 111),
        ("select 1; alter view mixed as select a from t", 111),
        ("create view mixed as select a from t; drop table t", 156),
    ],
)
def test_a_view_is_the_only_statement_of_its_batch(author: pymssql.Cursor, text: str, number: int) -> None:
    assert error_number(author, text) == number
    assert values(author, "select object_id('mixed')") == [None]
