"""Procedures in T-SQL as objects: compiled, stored as text or refused; rights; the source."""

import psycopg
import pytest
from procedure_site import Site

from servers import RunningServer

BY_GATEWAY = [
    "insert points (n)\nexec flow 1",
    "begin tran\nif @n = 1 commit",
    "begin tran\nreturn 1",
    "begin tran\nwhile 1 = 1 commit",
    "begin tran\nbegin tran\ncommit\ncommit",
    "begin tran\nsave tran s\ncommit",
    "begin tran\nselect 1\nrollback",
    "while 1 = 1 begin\nbegin tran\nbreak\ncommit end",
    "execute ('select 1')",
    "exec sp_executesql N'select 1'",
    "again:\ngoto again",
    "execute ('x')\ndeclare @t table (a int)",
    "declare @p varchar(30)\nexec @p",
    "if @n = 1\nset nocount on",
    "set rowcount 5",
    "print @@spid",
    "waitfor time '12:00'",
    "select found\nfrom points",
    "select kept.n\nfrom points kept",
    "declare c cursor for select * from points\nopen c",
]


@pytest.mark.parametrize("body", BY_GATEWAY)
def test_procedures_that_plpgsql_cannot_express_are_kept_as_text(site: Site, points: None, body: str) -> None:
    """tests/gateway/procedures/test_interpreted_procedures.py calls such procedures."""
    text = f"create or alter procedure kept @n int as\n{body}"
    site.define(text)
    assert site.rows("select tsql.source('site.kept'::regproc)") == [(text,)]
    with pytest.raises(psycopg.Error, match="'kept' is run by the gateway"):
        site.call("kept", 1)


REFUSED = [
    ("use log", 2, "USE"),
    ("print 'a'\ngoto somewhere", 3, "somewhere"),
    ("create procedure inner_one as print 'x'", 2, "CREATE/ALTER PROCEDURE"),
    ("print @missing", 2, "@missing"),
    ("declare @n int", 2, "@n"),
    ("execute ('x')\nprint @missing", 3, "@missing"),
    ("execute ('x')\ndbcc checkdb", 3, "dbcc"),
    ("execute ('x')\ndeclare @t table (a int)\nrollback", 4, "rollback"),
]


@pytest.mark.parametrize(("body", "line", "named"), REFUSED)
def test_refused_constructs_are_named_with_their_line(site: Site, body: str, line: int, named: str) -> None:
    refusal = site.refusal(body)
    assert refusal.line == line
    assert named in refusal.text


def test_alter_keeps_rights_and_drop_removes_them(site: Site) -> None:
    site.define("create procedure changes @a int as return @a")
    with pytest.raises(psycopg.Error) as taken:
        site.define("create procedure changes as return 1")
    assert (taken.value.diag.message_detail or "").startswith("2714 ")
    assert site.rows("select has_function_privilege('daq_reader', 'site.changes(integer)', 'execute')") == [
        (False,)
    ]
    site.define("grant execute on changes to daq_reader")
    site.define("alter procedure changes @a varchar(10), @b int output as select @b = 5 select 1")
    assert site.rows(
        "select p.prokind, a.grantee::regrole::text from pg_proc p, aclexplode(p.proacl) a"
        " where p.proname = 'changes' order by 2"
    ) == [("p", "daq_reader"), ("p", "site_owner")]
    assert site.call("changes", "x", 0).outputs == {"b": 5}
    site.define("drop procedure changes")
    with pytest.raises(psycopg.Error) as gone:
        site.define("drop procedure changes")
    assert (gone.value.diag.message_detail or "").startswith("3701 11 ")
    site.define("drop procedure if exists changes")
    with pytest.raises(psycopg.Error) as nothing:
        site.define("alter procedure changes as return 1")
    assert (nothing.value.diag.message_detail or "").startswith("208 ")


def test_a_function_of_postgresql_is_not_replaced(site: Site) -> None:
    site.run("create function site.pg_own() returns integer language sql as 'select 1'")
    with pytest.raises(psycopg.Error, match="already a function of PostgreSQL named 'pg_own'"):
        site.define("create or alter procedure pg_own as return 2")
    assert site.rows("select site.pg_own()") == [(1,)]


def test_the_source_is_returned_and_survives(site: Site) -> None:
    source = "-- it's a \\ test\r\ncreate procedure texts @a int = 1 as\n\tprint 'Größe; $$ \\n' /* no end */"
    site.define(source)
    assert site.rows("select tsql.source('site.texts'::regproc)") == [(source,)]
    assert site.call("texts").prints == ["Größe; $$ \\n"]
    site.connection.execute("comment on function site.texts(integer) is 'something else'")
    assert site.rows("select tsql.source('site.texts'::regproc)") == [(None,)]


def test_a_caller_needs_the_right_to_execute_and_no_other(
    site: Site, points: None, server: RunningServer
) -> None:
    site.define("create procedure reads_points as insert points values (1, 'a', 0) print suser_name()")
    with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as reader:
        heard: list[str] = []
        reader.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
        site.connection.execute("grant usage on schema site to daq_reader")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("select site.reads_points()")
        site.define("grant execute on reads_points to daq_reader")
        reader.execute("select site.reads_points()")
        # the row count, the printed text, its end, the @@rowcount after it
        assert heard == ["1", "reader", "end", "0"]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("select * from site.points")
        site.define("revoke execute on reads_points from daq_reader")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("select site.reads_points()")


def test_only_logins_with_the_right_create_in_the_schema(server: RunningServer, site: Site) -> None:
    first, *_ = site.compile("create procedure foreign_one as return 1")
    with (
        psycopg.connect(server.dsn_of(server.reader), autocommit=True) as reader,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        reader.execute(first.encode())
