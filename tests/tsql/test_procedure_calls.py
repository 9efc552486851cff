"""Calls inside procedures written in T-SQL."""

import psycopg
import pytest
from procedure_site import Site


def test_nested_calls(site: Site, points: None) -> None:
    site.define(
        """create procedure inner_one @id int, @double int output, @factor int = 2 as
        if @id < 0
        begin
            raiserror ('negative', 16, 1)
            return -1
        end
        insert points values (@id, 'inner', 0)
        set @double = @id * @factor
        return 3"""
    )
    site.define(
        """create procedure outer_one @id int as
        declare @status int, @got int, @more int
        exec @status = inner_one @id, @got output
        exec inner_one @factor = 10, @id = 100, @double = @more output
        select @status, @got, @more"""
    )
    called = site.call("outer_one", 4)
    assert called.rows == [[(3, 8, 1000)]]
    assert called.counts == [1, 1]
    site.run("delete from site.points")
    called = site.call("outer_one", -4)
    assert called.errors == [(50000, 16, 1, 4, "negative")]
    assert called.rows == [[(-1, None, 1000)]]


def test_a_called_procedure_may_come_later_and_have_been_changed(site: Site) -> None:
    site.define("create procedure calls_later as declare @s int exec @s = comes_later return @s")
    with pytest.raises(psycopg.Error, match="Could not find stored procedure 'comes_later'"):
        site.call("calls_later")
    site.define("create procedure comes_later as return 5")
    assert site.call("calls_later").status == 5
    site.define("alter procedure comes_later @a int = 6 as select @a return @a")
    called = site.call("calls_later")
    assert called.status == 6
    assert called.rows == [[(6,)]]


def test_calls_of_postgresql_functions(site: Site) -> None:
    site.run(
        """create function site.pg_sum(a integer, b float, out total float, out n integer)
        language sql as 'select a + b, 2';
        create function site.pg_rows(n integer) returns table (i integer, half numeric)
        language sql as 'select i, i / 2.0 from generate_series(1, n) i';
        create function site.pg_status(n integer default 9) returns integer language sql as 'select n'"""
    )
    site.define(
        """create procedure calls_postgres as
        declare @total float, @n int, @status int, @b float
        set @b = 2.5
        exec pg_sum 1, @b, @total output, @n = @n output
        exec pg_rows 2
        exec @status = pg_status
        select @total, @n, @status"""
    )
    called = site.call("calls_postgres")
    assert [[*map(float, row)] for row in called.rows[0]] == [[1, 0.5], [2, 1]]
    assert called.rows[1] == [(3.5, 2, 9)]


def test_calls_of_put_with_its_columns_as_parameters(site: Site) -> None:
    site.define(
        """create procedure put_pair @seq_no int, @time datetime, @real float as
        declare @status int
        exec @status = put_every_type @seq_no = @seq_no, @time = @time, @a_real = @real,
            @a_varchar = 'by T-SQL'
        return @status"""
    )
    assert site.call("put_pair", 7, "2024-05-06 07:08:09", 1.25).status == 0
    assert site.rows("select a_real, a_varchar, an_int from online.every_type where seq_no = 7") == [
        (1.25, "by T-SQL", None)
    ]


def test_wrong_calls_inside_a_procedure(site: Site) -> None:
    site.define("create procedure takes_two @a int, @b int = 1 as return @a")
    for number, call, text in [
        (201, "takes_two", "expects parameter '@a'"),
        (8144, "takes_two 1, 2, 3", "too many arguments"),
        (8145, "takes_two @a = 1, @c = 2", "@c is not a parameter"),
        (8162, "takes_two @n output", "'@a' was not declared as an OUTPUT"),
        (2812, "takes_nothing", "Could not find stored procedure 'takes_nothing'"),
    ]:
        site.define(f"create or alter procedure calls_wrong as declare @n int exec {call}")
        with pytest.raises(psycopg.Error, match=text) as error:
            site.call("calls_wrong")
        assert (error.value.diag.message_detail or "").split()[0] == str(number)


def test_an_error_of_a_called_procedure_is_handled_by_the_callers_catch(site: Site) -> None:
    site.define("create procedure fails_inside as raiserror ('inside', 16, 5) print 'not reached'")
    site.define(
        """create procedure guards as
        begin try
            exec fails_inside
        end try
        begin catch
            print error_message()
        end catch
        exec fails_inside"""
    )
    called = site.call("guards")
    assert called.events == [
        ("print", "inside"), ("error", 50000, 16, 5, 1, "inside"), ("print", "not reached"),
    ]  # fmt: skip


def test_error_and_rowcount_after_a_call(site: Site, points: None) -> None:
    site.define("create procedure leaves_error as raiserror 20005 'left' return 0", sybase=True)
    site.define("create procedure leaves_none as insert points values (1, 'a', 0) if @@rowcount = 0 return 1")
    site.define(
        """create procedure looks as
        declare @a int, @b int
        exec leaves_error
        set @a = @@error
        exec leaves_none
        set @b = @@error
        select @a, @b"""
    )
    assert site.call("looks").rows == [[(20005, 0)]]
    site.define("create procedure counts_not as delete points")
    site.define("create procedure asks_count as exec counts_not select @@rowcount")
    with pytest.raises(psycopg.Error, match="@@rowcount is not known after the call"):
        site.call("asks_count")
