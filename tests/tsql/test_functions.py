"""Functions, triggers, table variables and scrolling cursors written in T-SQL, as PostgreSQL runs them."""

import psycopg
import pytest
from procedure_site import Refused, Site


@pytest.fixture
def three(site: Site, points: None) -> Site:
    """Three points to read."""
    site.run("insert into site.points values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    return site


def rows(site: Site, text: str) -> list[tuple[object, ...]]:
    """The rows of a select of T-SQL."""
    (query,) = site.compile(text)
    with site.connection.transaction():
        site.connection.execute("set local search_path = site, online, public")
        return site.connection.execute(query.encode()).fetchall()


def test_a_function_computes_a_value(site: Site) -> None:
    site.define(
        """create function dbo.twice(@a int, @b varchar(3) = 'abcdef') returns varchar(20) as
        begin
            declare @x int
            if @a is null return 'none'
            set @x = @a * 2
            return convert(varchar, @x) + @b
        end"""
    )
    found = rows(
        site, "select dbo.twice(4, 'x') as a, dbo.twice(null, 'y') as b, dbo.twice(1, 'longer') as c"
    )
    assert found == [("8x", "none", "2lon")]
    site.define(
        "alter function twice(@a int) returns int as begin while @a > 100 set @a = @a / 2 return @a end"
    )
    assert rows(site, "select dbo.twice(1000) as a") == [(62,)]
    (kind,) = site.rows("select prosecdef, provolatile from pg_proc where proname = 'twice'")
    assert kind == (True, "s")
    site.define("drop function twice")
    with pytest.raises(psycopg.Error) as gone:
        site.define("drop function dbo.twice")
    assert (gone.value.diag.message_detail or "").startswith("3701 11 ")
    site.define("drop function if exists twice")


def test_a_default_may_be_the_value_of_a_function(site: Site) -> None:
    site.define("create function seven() returns int as begin return 7 end")
    site.define("create function seventh(@a int) returns varchar(9) as begin return 'x' + str(@a, 1) end")
    for text in (
        "create table defaulted (a int default dbo.seven(), b varchar(9) default dbo.seventh(7), c int)",
        "alter table defaulted add default dbo.seven() for c",
        "insert defaulted default values",
    ):
        (query,) = site.compile(text)
        site.run(query)
    assert rows(site, "select a, b, c from defaulted") == [(7, "x7", 7)]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        # SQL Server, "CREATE FUNCTION": permitted statements of a function, and its errors
        ("create function f() returns int as begin insert points values (1, 'a', 1) return 1 end", 443),
        ("create function f() returns int as begin exec p return 1 end", 443),
        ("create function f() returns int as begin print 'x' return 1 end", 443),
        ("create function f() returns int as begin declare @a int end", 455),
        ("create function f() returns int as begin return end", 456),
        ("create function f() returns int as begin select 1 return 1 end", 444),
        ("create function f() returns table as return (select 1)", 4514),
        ("create function f() returns table as return (select @a as b)", 137),
        ("create trigger tr on points after insert as return 1", 178),
        ("create trigger tr on points after insert as select * from inserted", 444),
        ("create trigger tr on points instead of insert as print 'x'", 102),
        ("create trigger tr on points after insert, insert as print 'x'", 1034),
        ("create trigger tr on #t after insert as print 'x'", 102),
    ],
)
def test_refused_statements_of_functions_and_triggers(site: Site, text: str, number: int) -> None:
    with pytest.raises(Refused) as refused:
        site.compile(text)
    assert refused.value.number == number, refused.value.text


def test_a_function_returns_the_rows_of_a_query(three: Site) -> None:
    three.define(
        "create function above(@n int) returns table as"
        " return (select id, value * 2 as v, name from points where id > @n)"
    )
    assert rows(three, "select p.id, v from dbo.above(1) as p order by 1") == [(2, 4.0), (3, 6.0)]
    # a name means the function's parameter if the columns of its rows have other names
    assert rows(three, "select count(*) as n from above(2)") == [(1,)]
    three.define("drop function above")


def test_a_trigger_reads_inserted_and_deleted_rows(three: Site) -> None:
    three.run("create table site.audit (what varchar(20), id int, n int)")
    three.define(
        """create trigger watches on points for insert, update, delete as
        if @@rowcount = 0 return
        insert audit select 'new', id, (select count(*) from deleted) from inserted
        insert audit select 'old', d.id, 0 from deleted d
            where not exists (select 1 from inserted i where i.id = d.id)
        if exists (select * from inserted where id < 0)
        begin
            raiserror ('negative', 16, 1)
            rollback tran
        end"""
    )
    three.run("insert into site.points values (7, 'a', 1), (8, 'b', 2)")
    three.run("update site.points set name = 'z' where id = 7")
    three.run("delete from site.points where id = 8")
    three.run("delete from site.points where id = 99")
    found = three.rows("select * from site.audit order by 1, 2, 3")
    assert found == [("new", 7, 0), ("new", 7, 1), ("new", 8, 0), ("old", 8, 0)]
    with pytest.raises(psycopg.Error, match="The transaction ended in the trigger") as ended:
        three.run("insert into site.points values (-1, 'a', 1)")
    assert (ended.value.diag.message_detail or "").startswith("3609 16 ")
    with pytest.raises(psycopg.Error) as there:
        three.define("create trigger watches on points for insert as print 'x'")
    assert (there.value.diag.message_detail or "").startswith("2714 ")
    three.define("alter trigger watches on points after delete as print 'gone'")
    three.run("insert into site.points values (-5, 'a', 1)")
    three.define("drop trigger watches")
    # a table's triggers are dropped with it (SQL Server, "DROP TABLE")
    for _ in range(2):
        three.run("create table site.brief (a int)")
        three.define("create trigger watches on brief for insert, delete as print 'x'")
        three.run("drop table site.brief")
    assert three.rows("select count(*) from pg_trigger where tgname like 'watches%'") == [(0,)]
    with pytest.raises(psycopg.Error) as missing:
        three.define("create trigger watches on nowhere for insert as print 'x'")
    assert (missing.value.diag.message_detail or "").startswith("8197 ")


def test_a_table_variable_of_a_procedure(three: Site) -> None:
    three.define(
        """create procedure uses_variable @n int as
        declare @t table (id int, v float)
        insert @t select id, value from points where id >= @n
        update @t set v = v + 1
        select sum(v) from @t
        declare @i int
        select @i = count(*) from @t
        return @i"""
    )
    for _ in range(2):
        called = three.call("uses_variable", 2)
        assert (called.rows, called.status) == ([[(7.0,)]], 2)
