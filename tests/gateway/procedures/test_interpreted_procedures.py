"""Procedures that PostgreSQL cannot run, which the gateway runs: dynamic SQL, savepoints, transactions
that begin here and end there. Expectations are from the documentation of SQL Server and ASE, named there."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pymssql
import pytest
from talks import hold, talks

from authors import author_and_caller
from servers import Login, RunningServer
from tds_clients import Admin, Clients, CtClient, result_sets

AUTHOR = Login("interpreted_author", "author")
CALLER = Login("interpreted_caller", "caller")
LOGINS = {"author": AUTHOR, "caller": CALLER}

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


@talks(__file__)
def test_talks(clients: Clients, site: Admin, version: str, talk: dict[str, Any]) -> None:
    hold(talk, version, clients, site, LOGINS, "author", "interpreted")


def test_postgresql_reports_that_it_cannot_run_it(make: Make, site: Admin) -> None:
    make("create procedure not_yet as exec ('select 5')")
    with pytest.raises(psycopg.Error, match="'not_yet' is run by the gateway"):
        site.execute("call interpreted.not_yet(null)")


def test_a_caller_of_a_system_procedure_is_run_by_the_gateway(
    make: Make, site: Admin, author: pymssql.Connection
) -> None:
    """sp_spaceused, Microsoft: "name" and "rows" come first."""
    make(
        "create procedure size_of @table sysname as exec master..sp_spaceused @table return 7",
        "create procedure size_of_points as declare @r int exec @r = size_of 'points' return @r",
    )
    site.execute("create table interpreted.points (n int primary key)")
    site.execute("alter table interpreted.points owner to interpreted_author")
    with author.cursor() as cursor:
        sizes, status = result_sets(cursor, "declare @r int exec @r = size_of_points select @r")
        assert (sizes[0][0], str(sizes[0][1]).strip(), status) == ("points", "0", [(7,)])
        cursor.execute("drop table points")


def test_it_behaves_like_any_other_procedure(make: Make, author: pymssql.Connection) -> None:
    text = "create procedure as_any @a varchar(10) = 'x', @b int output as exec ('select 1')"
    with author.cursor() as cursor:
        cursor.execute(text)
        assert "".join(line for (line,) in result_sets(cursor, "sp_helptext as_any")[0]).strip() == text
        parameters = result_sets(cursor, "sp_sproc_columns as_any")[0]
        assert [row[3] for row in parameters] == ["@RETURN_VALUE", "@a", "@b"]
        assert result_sets(cursor, "sp_stored_procedures as_any")[0][0][2].startswith("as_any")
        # both list those of the current database (SQL Server: sp_sproc_columns, "@procedure_qualifier")
        cursor.execute("use log")
        for listing, database in (
            ("sp_sproc_columns", "@procedure_qualifier"),
            ("sp_stored_procedures", "@sp_qualifier"),
        ):
            assert result_sets(cursor, f"{listing} as_any, {database} = 'interpreted'")[0]
        cursor.execute("use interpreted drop procedure as_any")


def test_the_reason_is_sent_when_one_is_created(site: Admin, ct: CtClient) -> None:
    answer = ct.language("create procedure reported as\nbegin tran\nsave tran x\ncommit")
    assert [message.severity for message in answer.messages] == [0]
    assert "line 3" in answer.messages[0].text
    assert "save transaction" in answer.messages[0].text
    ct.language("drop procedure reported")


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
