"""Procedures that PostgreSQL cannot run, which the gateway runs: dynamic SQL, savepoints, transactions
that begin here and end there. Expectations are from the documentation of SQL Server and ASE, named there."""

from collections.abc import Callable, Iterator

import psycopg
import pymssql
import pytest

from authors import author_and_caller
from servers import Login, RunningServer
from tds_clients import Admin, Clients, CtClient, Param, error_number, error_of, result_sets

AUTHOR = Login("interpreted_author", "author")
CALLER = Login("interpreted_caller", "caller")

Make = Callable[..., None]


@pytest.fixture(scope="module")
def site(server: RunningServer) -> Iterator[Admin]:
    """A schema whose owner may log in and create procedures, and a login with rights granted by each test."""
    with author_and_caller(server, AUTHOR, CALLER, "interpreted") as admin:
        yield admin


@pytest.fixture
def author(site: Admin, clients: Clients) -> Iterator[pymssql.Connection]:
    with clients.pymssql(AUTHOR, database="interpreted") as connection:
        yield connection


@pytest.fixture
def ct(site: Admin, clients: Clients) -> Iterator[CtClient]:
    """The author at TDS 5.0."""
    with clients.ct(AUTHOR) as client:
        client.language("use interpreted")
        yield client


@pytest.fixture
def make(site: Admin, clients: Clients) -> Make:
    """Creates procedures again, and grants their execution."""

    def make(*texts: str, sybase: bool = False) -> None:
        texts = (*texts, *(f"grant execute on {text.split()[2]} to {CALLER.user}" for text in texts))
        if sybase:
            with clients.ct(AUTHOR) as client:
                for text in ("use interpreted", *texts):
                    answer = client.language(text.replace("create procedure", "create or alter procedure"))
                    assert not answer.errors, answer.errors
            return
        with clients.pymssql(AUTHOR, database="interpreted") as connection, connection.cursor() as cursor:
            for text in texts:
                cursor.execute(text.replace("create procedure", "create or alter procedure"))

    return make


@pytest.fixture
def points(site: Admin) -> Iterator[None]:
    site.execute(
        "create table interpreted.points (n int primary key);"
        f" alter table interpreted.points owner to {AUTHOR.user}"
    )
    yield
    site.execute("drop table interpreted.points")


def stored(site: Admin) -> list[object]:
    return [n for (n,) in site.execute("select n from interpreted.points order by n")]


DYNAMIC = """create procedure dynamic @column varchar(30), @from int = 2, @found int output as
declare @text nvarchar(200), @n int
set @text = N'select ' + @column + N' from points where n >= @from order by n select @count = @@rowcount'
exec sp_executesql @text, N'@from int, @count int output', @from, @found output
exec ('select ' + @column + ' from points where n = 1')
if @found > 1 return 7
return 8"""


def test_dynamic_text_in_every_form_of_call(
    make: Make, points: None, author: pymssql.Connection, ct: CtClient, site: Admin
) -> None:
    """sp_executesql (SQL Server), execute (ASE Reference Manual): parameters, defaults, outputs, status."""
    make(DYNAMIC)
    site.execute("insert into interpreted.points values (1), (2), (3)")
    text = "declare @r int, @f int exec @r = dynamic 'n', @found = @f output select @r, @f"
    with author.cursor() as cursor:
        assert result_sets(cursor, text) == [[(2,), (3,)], [(1,)], [(7, 2)]]
        assert result_sets(cursor, text.replace("'n',", "'n', 3,")) == [[(3,)], [(1,)], [(8, 1)]]
        make(
            "create procedure gives @a int output as set nocount on"
            " exec sp_executesql N'set @x = isnull(@x, 3) + 5', N'@x int output', @a output return 4"
        )
        found = cursor.callproc("gives", (pymssql.output(int, 3),))
        assert (found, cursor.returnvalue) == ((8,), 4)
    called = ct.call("dynamic", [Param("char", "n", "@column"), Param("int", "0", "@found", out=True)])
    assert (called.statuses, called.rows) == ([7], [["2"], ["3"], ["1"]])
    assert list(called.outputs.values()) == ["2"]
    assert ct.language(text).rows == [["2"], ["3"], ["1"], ["7", "2"]]


def test_wrong_calls(make: Make, author: pymssql.Connection) -> None:
    """Database Engine errors 201, 8144, 8145, 8162, 8114."""
    make("create procedure takes @a int, @b int = 5 as exec ('select 1')")
    with author.cursor() as cursor:
        for call, number in [
            ("takes", 201),
            ("takes @b = 1", 201),
            ("takes 1, 2, 3", 8144),
            ("takes @c = 1", 8145),
            ("takes 'x'", 8114),
        ]:
            assert error_number(cursor, f"exec {call}") == number, call
        assert error_number(cursor, "declare @v int exec takes @v output") == 8162
        assert result_sets(cursor, "exec takes 1") == [[(1,)]]


def test_the_levels_of_the_documentation(make: Make, author: pymssql.Connection, ct: CtClient) -> None:
    """@@NESTLEVEL (SQL Server), examples A and B; a procedure is one level deep in every form of call."""
    make(
        "create procedure usp_InnerProc as select @@NESTLEVEL as 'Inner Level'",
        "create procedure usp_OuterProc as select @@NESTLEVEL as 'Outer Level' exec usp_InnerProc",
        "create procedure usp_NestLevelValues as select @@NESTLEVEL as 'Current Nest Level';"
        "exec ('select @@NESTLEVEL as OneGreater'); exec sp_executesql N'select @@NESTLEVEL as TwoGreater';",
    )
    with author.cursor() as cursor:
        assert result_sets(cursor, "exec usp_OuterProc") == [[(1,)], [(2,)]]
        assert result_sets(cursor, "exec usp_NestLevelValues") == [[(1,)], [(2,)], [(3,)]]
        cursor.callproc("usp_OuterProc")
        assert cursor.fetchall() == [(1,)]
    assert ct.call("usp_OuterProc").rows == [["1"], ["2"]]


def test_a_procedure_calls_itself_at_most_to_level_16(make: Make, ct: CtClient) -> None:
    """Error 217 (ASE: maximum nesting level 16), which ends the batch."""
    make("create procedure deeper as print '%1!', @@nestlevel exec ('print ''.''') exec deeper", sybase=True)
    answer = ct.language("exec deeper print 'not reached'")
    assert [error.number for error in answer.errors] == [217]
    levels = [message.text for message in answer.messages if message.text.isdigit()]
    assert levels == [str(level) for level in range(1, 17)]
    assert "not reached" not in [message.text for message in answer.messages]
    # and the session continues
    assert ct.language("select 1").rows == [["1"]]


def test_texts_have_the_callers_rights(
    make: Make, points: None, clients: Clients, author: pymssql.Connection
) -> None:
    """SQL Server, "Customizing Permissions with Impersonation": no ownership chain covers dynamic SQL.
    Without the right to execute the procedure itself is refused (229)."""
    make("create procedure reads as exec ('select count(*) from points')")
    with clients.pymssql(CALLER, database="interpreted") as connection, connection.cursor() as cursor:
        refused = error_of(cursor, "exec reads")
        assert (refused.number, "points" in refused.text) == (229, True)
        with author.cursor() as granting:
            granting.execute(f"grant select on points to {CALLER.user}")
        assert result_sets(cursor, "exec reads") == [[(0,)]]
        with author.cursor() as granting:
            granting.execute(f"revoke execute on reads from {CALLER.user}")
        for form in ("exec reads", "exec interpreted..reads"):
            refused = error_of(cursor, form)
            assert (refused.number, "reads" in refused.text) == (229, True)


def test_a_caller_of_one_is_run_by_the_gateway(
    make: Make, points: None, author: pymssql.Connection, site: Admin
) -> None:
    """Whichever was created first; when it is PL/pgSQL again, so are its callers."""
    make(
        "create procedure inner_one as return 3",
        "create procedure outer_one as declare @r int exec @r = inner_one return @r",
    )
    call = "declare @r int exec @r = outer_one select @r"
    with author.cursor() as cursor:
        assert result_sets(cursor, call) == [[(3,)]]
        make("create procedure inner_one as begin tran save tran s rollback return 4")
        assert result_sets(cursor, call) == [[(4,)]]
        make("create procedure later as exec not_yet")
        make("create procedure not_yet as exec ('select 5')")
        assert result_sets(cursor, "exec later") == [[(5,)]]
        make("create procedure inner_one as return 6")
        assert result_sets(cursor, call) == [[(6,)]]
    # PostgreSQL itself reports that it cannot run it
    with pytest.raises(psycopg.Error, match="'not_yet' is run by the gateway"):
        site.execute("call interpreted.not_yet(null)")


def test_a_caller_of_a_system_procedure_is_run_by_the_gateway(
    make: Make, points: None, author: pymssql.Connection
) -> None:
    """sp_spaceused, Microsoft: "name" and "rows" come first."""
    make(
        "create procedure size_of @table sysname as exec master..sp_spaceused @table return 7",
        "create procedure size_of_points as declare @r int exec @r = size_of 'points' return @r",
    )
    with author.cursor() as cursor:
        sizes, status = result_sets(cursor, "declare @r int exec @r = size_of_points select @r")
        assert (sizes[0][0], str(sizes[0][1]).strip(), status) == ("points", "0", [(7,)])


def test_it_behaves_like_any_other_procedure(make: Make, author: pymssql.Connection) -> None:
    text = "create procedure as_any @a varchar(10) = 'x', @b int output as exec ('select 1')"
    with author.cursor() as cursor:
        cursor.execute(text)
        assert "".join(line for (line,) in result_sets(cursor, "sp_helptext as_any")[0]).strip() == text
        assert result_sets(cursor, "select name, type from sysobjects where name = 'as_any'") == [
            [("as_any", "P ")]
        ]
        assert result_sets(cursor, "select object_name(object_id('as_any'))") == [[("as_any",)]]
        parameters = result_sets(cursor, "sp_sproc_columns as_any")[0]
        assert [row[3] for row in parameters] == ["@RETURN_VALUE", "@a", "@b"]
        assert result_sets(cursor, "sp_stored_procedures as_any")[0][0][2].startswith("as_any")
        # both list those of the current database (SQL Server: sp_sproc_columns, "@procedure_qualifier")
        cursor.execute("use log")
        for listing, database in (
            ("sp_sproc_columns", "@procedure_qualifier"),
            ("sp_stored_procedures", "@sp_qualifier"),
        ):
            assert result_sets(cursor, f"{listing} as_any") == [[]]
            assert result_sets(cursor, f"{listing} as_any, {database} = 'interpreted'")[0]
        cursor.execute("use interpreted")
        cursor.execute("alter procedure as_any as exec ('select 2')")
        assert result_sets(cursor, "exec as_any") == [[(2,)]]
        cursor.execute("create or alter procedure as_any as select 3")
        assert result_sets(cursor, "exec as_any") == [[(3,)]]
        cursor.execute("alter procedure as_any as exec ('select 4')")
        assert result_sets(cursor, "exec as_any") == [[(4,)]]
        cursor.execute("drop procedure as_any")
        assert error_number(cursor, "exec as_any") == 2812


def test_the_reason_is_sent_when_one_is_created(site: Admin, ct: CtClient) -> None:
    answer = ct.language("create procedure reported as\nbegin tran\nsave tran x\ncommit")
    assert [message.severity for message in answer.messages] == [0]
    assert "line 3" in answer.messages[0].text
    assert "save transaction" in answer.messages[0].text
    for body, number in [
        ("use log exec ('x')", 154),
        ("exec (@not)", 137),
        ("exec ('x') create view v as select 1", 111),
    ]:
        assert ct.language(f"create procedure refused as {body}").error.number == number
    ct.language("drop procedure reported")


def test_a_transaction_of_its_definition(make: Make, author: pymssql.Connection) -> None:
    """A procedure created in a transaction can be called there, and disappears at its rollback."""
    with author.cursor() as cursor:
        cursor.execute("begin tran")
        cursor.execute("create procedure passing as exec ('select 9')")
        assert result_sets(cursor, "exec passing") == [[(9,)]]
        cursor.execute("rollback")
        assert error_number(cursor, "exec passing") == 2812


def test_a_cancel_leaves_it_and_its_objects(make: Make, ct: CtClient) -> None:
    make(
        "create procedure waits as create table #left_over (a int) exec ('waitfor delay ''00:00:30''')",
        sybase=True,
    )
    assert ct.cancelled("exec waits", 0.5).end == "cancelled"
    assert ct.language("select @@nestlevel").rows == [["0"]]
    assert [error.number for error in ct.language("select * from #left_over").errors] == [208]
    assert ct.language("exec interpreted..waits2").error.number == 2812


def test_blocks_nest_in_procedures_that_nest(make: Make, ct: CtClient) -> None:
    """Each of 32 procedures makes its call inside 80 blocks, which require more than a usual stack."""
    inside = "exec ('') exec deeper"
    for _ in range(40):
        inside = f"if 1 = 1 begin {inside} end"
    make(f"create procedure deeper as {inside}")
    assert [error.number for error in ct.language("exec deeper").errors] == [217]
    assert ct.language("select 1").rows == [["1"]]
