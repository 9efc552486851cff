"""Procedures, functions, triggers and views are compiled with the types of the columns that they name, and
compiled again when these change (SQL Server: "Recompile a stored procedure", error 2801; "ISNULL", "CASE",
"Precision, scale, and length")."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial

import psycopg
import pymssql
import pytest

from authors import author_and_caller
from servers import Login, RunningServer
from tds_clients import Admin, Clients, error_number, errors_of, result_sets, rows_of

AUTHOR = Login("bound_author", "author")
CALLER = Login("bound_caller", "caller")

Run = Callable[[str], list[list[tuple[object, ...]]]]


@pytest.fixture(scope="module")
def site(server: RunningServer) -> Iterator[Admin]:
    """A schema of a login that makes procedures, and a login that calls them."""
    with author_and_caller(server, AUTHOR, CALLER, "bound") as admin:
        yield admin


@pytest.fixture
def author(site: Admin, clients: Clients) -> Iterator[pymssql.Connection]:
    with clients.pymssql(AUTHOR, database="bound") as connection:
        yield connection


@pytest.fixture
def run(author: pymssql.Connection) -> Iterator[Run]:
    """Runs a batch, and returns its result sets."""
    with author.cursor() as cursor:
        yield partial(result_sets, cursor)


@pytest.fixture
def t(site: Admin, run: Run) -> None:
    site.execute("drop table if exists bound.t cascade")
    run(
        "create table t (i int null, d decimal(5, 2) null, dt datetime null, v varchar(9) null)"
        " insert t values (-1, -1, '20200101', 'a') insert t values (2, 2.55, null, 'b')"
    )


def test_types_are_known_in_every_place(t: None, run: Run) -> None:
    run(
        """create or alter procedure everywhere as
        select i from t where isnull(dt, 0) < getdate()
        select i from t order by isnull(dt, 0)
        select i from t where case when d < 0 then null else d end > 1
        select i from t where iif(i < 0, null, dt) is null
        select a.i from t a join t b on isnull(a.dt, 0) = isnull(b.dt, 0) and a.i = 2
        select x.i from (select i, dt as moment from t) x where isnull(x.moment, 0) = '19000101'
        select d * d, d / 3 from t where i = 2
        update t set i = 3 where isnull(dt, 0) = 0
        if exists (select * from t where i = 3 and isnull(dt, 0) = 0) select 'null is 0'"""
    )
    assert run("exec everywhere") == [
        [(-1,), (2,)],
        [(2,), (-1,)],
        [(2,)],
        [(-1,), (2,)],
        [(2,)],
        [(2,)],
        [(Decimal("6.5025"), Decimal("0.850000"))],
        [("null is 0",)],
    ]


def test_its_own_tables_are_known(run: Run) -> None:
    run(
        """create or alter procedure own_tables as
        create table #own (dt datetime null, d decimal(5, 2))
        declare @own table (dt datetime null, d decimal(5, 2))
        insert #own values (null, 1.25) insert @own select * from #own
        select d * d from #own where isnull(dt, 0) = 0
        select d * d from @own where isnull(dt, 0) = 0"""
    )
    assert run("exec own_tables") == [[(Decimal("1.5625"),)], [(Decimal("1.5625"),)]]


def test_functions_triggers_and_views(t: None, site: Admin, run: Run) -> None:
    run("create or alter function latest(@i int) returns datetime as begin return"
        " (select max(isnull(dt, 0)) from t where i = @i) end")  # fmt: skip
    run("create or alter view known as select i, isnull(dt, 0) as moment from t")
    run("create table noted (n int)")
    run("create or alter trigger note on t after update as"
        " if exists (select * from inserted where isnull(dt, 0) = 0) insert noted values (1)")  # fmt: skip
    assert run("select convert(varchar(10), bound.dbo.latest(2), 120)") == [[("1900-01-01",)]]
    assert run("select i from known where moment = 0") == [[(2,)]]
    run("update t set i = 4 where i = 2")
    assert run("select n from noted") == [[(1,)]]
    site.execute("drop table bound.noted")


QUOTIENT = "create or alter procedure quotient as select convert(varchar(20), d / 3) from t where i = 2"


@pytest.mark.parametrize("within", ["{}", "begin tran {} commit"])
def test_a_changed_column_of_t_sql(t: None, run: Run, within: str) -> None:
    run(QUOTIENT)
    assert run("exec quotient") == [[("0.850000",)]]
    run(within.format("alter table t alter column d decimal(9, 6)"))
    assert run("exec quotient") == [[("0.85000000",)]]
    run("begin tran alter table t alter column d decimal(5, 2)")
    assert run("exec quotient") == [[("0.850000",)]]
    run("rollback")
    assert run("exec quotient") == [[("0.85000000",)]]
    run("drop table t create table t (i int, d decimal(5, 2)) insert t values (2, 2.55)")
    assert run("exec quotient") == [[("0.850000",)]]


def test_a_column_that_psql_has_changed(t: None, site: Admin, clients: Clients, run: Run) -> None:
    run(QUOTIENT)
    run(f"grant execute on quotient to {CALLER.user}")
    site.execute("alter table bound.t alter d type numeric(9, 6)")
    # nobody computes with the former type
    with pytest.raises(psycopg.Error) as refused:
        site.execute("begin; call bound.quotient(null)")
    site.execute("rollback")
    assert refused.value.sqlstate == "S2801"
    with clients.pymssql(CALLER, database="bound") as connection, connection.cursor() as cursor:
        assert error_number(cursor, "exec quotient") == 2801
    assert run("exec quotient") == [[("0.85000000",)]]
    with clients.pymssql(CALLER, database="bound") as connection, connection.cursor() as cursor:
        assert rows_of(cursor, "exec quotient") == [("0.85000000",)]


def test_a_trigger_of_a_changed_table_is_compiled_again(t: None, site: Admin, run: Run) -> None:
    run("create table thirds (d varchar(20))")
    run(
        "create or alter trigger note on t after update as"
        " insert thirds select convert(varchar(20), d / 3) from inserted"
    )
    site.execute("alter table bound.t alter d type numeric(9, 6)")
    run("update t set i = 5 where i = 2")
    assert run("select d from thirds") == [[("0.85000000",)]]
    site.execute("drop table bound.thirds")


def test_a_statement_that_does_not_fit_any_more(t: None, run: Run) -> None:
    run("create or alter procedure sums as select d + 1 from t where i = 2")
    run("drop table t create table t (i int, d uniqueidentifier)")
    with pytest.raises(pymssql.Error) as error:
        run("exec sums")
    assert errors_of(error.value).number == 206
    run("drop table t")
    with pytest.raises(pymssql.Error) as error:
        run("exec sums")
    assert errors_of(error.value).number == 208


def test_another_one_that_does_not_fit_is_no_obstacle(t: None, site: Admin, run: Run) -> None:
    run("create or alter procedure sums as select d + 1 from t where i = 2")
    run(QUOTIENT)
    run("create table other (d decimal(5, 2))")
    run("create or alter procedure broken as select d + 1 from other")
    site.execute("drop table bound.other; create table bound.other (d uuid)")
    site.execute("alter table bound.t alter d type numeric(9, 6)")
    assert run("exec quotient") == [[("0.85000000",)]]
    assert run("exec sums") == [[(Decimal("3.550000"),)]]
    site.execute("drop table bound.other")


def test_a_dropped_trigger_does_not_come_back(t: None, site: Admin, run: Run) -> None:
    run("create table moments (d decimal(5, 2))")
    run("create or alter trigger gone on t after update as insert moments select d * 1 from inserted")
    site.execute("drop table bound.t cascade")
    run("create table t (i int null, d decimal(9, 6) null) insert t values (1, 1)")
    run("update t set i = 2")
    assert run("select * from moments") == [[]]
    site.execute("drop table bound.moments")
