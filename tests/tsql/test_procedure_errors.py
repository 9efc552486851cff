"""Errors in procedures written in T-SQL: RAISERROR, @@error, XACT_ABORT, TRY and CATCH, transactions."""

import psycopg
import pytest
from procedure_site import Site


def test_raiserror_of_both_dialects_continues(site: Site) -> None:
    site.define(
        """create procedure complains @n int as
        raiserror ('value %d of %s', 16, 3, @n, 'magnet')
        raiserror ('just so', 10, 1)
        print 'went on'
        return -5"""
    )
    called = site.call("complains", 4)
    assert called.events == [
        ("error", 50000, 16, 3, 2, "value 4 of magnet"),
        ("message", 50000, 10, 1, 3, "just so"),
        ("print", "went on"),
    ]
    assert called.status == -5
    site.define(
        """create procedure complains5 @n int as
        if @n > 3
        begin
            raiserror 20001 "seq_no %1! is beyond %2!", @n, "the ring"
            return -100
        end
        return 0""",
        sybase=True,
    )
    called = site.call("complains5", 4)
    assert called.events == [("error", 20001, 16, 1, 4, "seq_no 4 is beyond the ring")]
    assert called.status == -100
    assert site.call("complains5", 1).status == 0


def test_an_error_ends_its_statement_in_a_procedure_that_does_not_read_it(site: Site, points: None) -> None:
    """learn.microsoft.com, SET XACT_ABORT: off by default, where only the statement with the error is rolled
    back."""
    site.define(
        """create procedure plain @id int as
        insert points values (10, 'kept', 0)
        insert points values (@id, 'b', 0)
        insert points values (11, 'after', 0)"""
    )
    assert [number for number, *_ in site.call("plain", 10).errors] == [2627]
    assert site.rows("select id, name from site.points order by 1") == [(10, "kept"), (11, "after")]


def test_an_error_that_ends_the_batch_keeps_earlier_changes(site: Site, points: None) -> None:
    """Outside of a transaction each statement was committed on its own (autocommit)."""
    site.define(
        """create procedure converts as
        declare @a int
        insert points values (20, 'before', 0)
        select 'sent' as a
        select @a = convert(int, 'abc')
        insert points values (21, 'not reached', 0)"""
    )
    site.define(
        """create procedure throws as
        insert points values (30, 'before', 0);
        throw 50001, 'thrown', 1
        insert points values (31, 'not reached', 0)"""
    )
    site.define(
        """create procedure calls as
        insert points values (40, 'before', 0)
        exec converts
        insert points values (41, 'not reached', 0)"""
    )
    called = site.call("converts")
    assert [number for number, *_ in called.errors] == [245]
    assert called.rows == [[("sent",)]]
    assert [number for number, *_ in site.call("throws").errors] == [50001]
    site.run("delete from site.points where id = 20")
    assert [number for number, *_ in site.call("calls").errors] == [245]
    assert site.rows("select id from site.points order by 1") == [(20,), (30,), (40,)]


def test_one_statement_needs_no_block(site: Site) -> None:
    """After an error there is nothing to keep and nothing to continue with."""
    (alone,) = site.compile(
        "create procedure alone @id int as set nocount on insert points values (@id, 'b', 0)"
    )
    assert "exception when" not in alone
    (several,) = site.compile(
        "create procedure several @id int as insert points values (@id, 'b', 0) print 'x'"
    )
    assert "exception when" in several


def test_a_procedure_that_reads_error_continues(site: Site, points: None) -> None:
    site.define(
        """create procedure asks @id int as
        declare @error int, @rows int
        insert points values (10, 'a', 0)
        insert points values (@id, 'b', 0)
        select @error = @@error, @rows = @@rowcount
        if @error <> 0
        begin
            print 'failed'
            insert points values (11, 'instead', 0)
        end
        if @@error = 0 print 'well'
        select @error, @rows"""
    )
    called = site.call("asks", 10)
    ((number, severity, _, line, text),) = called.errors
    assert (number, severity, line) == (2627, 14, 4)
    assert "duplicate key" in text
    assert called.prints == ["failed", "well"]
    assert called.rows == [[(2627, 0)]]
    assert site.rows("select id from site.points order by id") == [(10,), (11,)]
    assert site.call("asks", 12).errors[0][0] == 2627, "10 is there already"


def test_an_error_that_ends_a_batch_ends_any_procedure(site: Site, points: None) -> None:
    site.define(
        """create procedure converts_text @text varchar(10) as
        declare @n int
        insert points values (1, 'a', 0)
        set @n = convert(int, @text)
        if @@error <> 0 print 'never'"""
    )
    assert [number for number, *_ in site.call("converts_text", "no number").errors] == [245]
    assert site.rows("select id from site.points") == [(1,)]


def test_xact_abort_determines_the_errors_that_end_a_procedure(site: Site, points: None) -> None:
    site.define(
        """create procedure aborts as
        set xact_abort on
        insert points values (1, 'a', 0)
        insert points values (1, 'b', 0)
        if @@error <> 0 print 'never'"""
    )
    with pytest.raises(psycopg.errors.UniqueViolation):
        site.call("aborts")
    site.define(
        """create procedure goes_on as
        set xact_abort off
        insert points values (1, 'a', 0)
        insert points values (1, 'b', 0)
        insert points values (2, 'c', 0)"""
    )
    called = site.call("goes_on")
    assert [number for number, *_ in called.errors] == [2627]
    assert called.counts == [1, 1]
    assert site.rows("select id from site.points order by id") == [(1,), (2,)]


def test_try_and_catch(site: Site, points: None) -> None:
    site.define(
        """create procedure tries @id int, @divisor int as
        set nocount on
        begin try
            insert points values (1, 'before', 0)
            insert points values (@id, 'second', 100 / @divisor)
            print 'all well'
        end try
        begin catch
            print 'caught'
            select error_number() as number, error_severity(), error_state(), error_line(), error_procedure()
            insert points values (99, 'catch', 0)
        end catch
        print 'after'"""
    )
    called = site.call("tries", 2, 1)
    assert called.prints == ["all well", "after"]
    site.run("delete from site.points")
    called = site.call("tries", 1, 1)
    assert called.errors == [], "a caught error is not sent"
    assert called.prints == ["caught", "after"]
    assert called.rows == [[(2627, 14, 1, 5, "tries")]]
    # changes before the error remain
    assert site.rows("select id from site.points order by id") == [(1,), (99,)]
    site.run("delete from site.points")
    assert site.call("tries", 2, 0).rows == [[(8134, 16, 1, 5, "tries")]]


def test_raiserror_in_try_is_caught_and_rethrown(site: Site) -> None:
    site.define(
        """create procedure rethrows @how int as
        begin try
            raiserror ('small', 10, 1)
            raiserror ('big', 15, 7)
            print 'never'
        end try
        begin catch
            declare @message varchar(100)
            set @message = error_message()
            print @message
            if @how = 1
                throw
            if @how = 2
                throw 51000, 'my own', 3
            raiserror ('again', 16, 1)
        end catch
        return 4"""
    )
    called = site.call("rethrows", 0)
    assert called.events == [
        ("message", 50000, 10, 1, 3, "small"), ("print", "big"), ("error", 50000, 16, 1, 15, "again"),
    ]  # fmt: skip
    assert called.status == 4
    for how, thrown in ((1, (50000, 15, 7, 4, "big")), (2, (51000, 16, 3, 14, "my own"))):
        assert site.call("rethrows", how).errors == [thrown]


def test_the_status_of_a_procedure_with_errors(site: Site, points: None) -> None:
    """ASE Reference Manual: Procedures, "Procedure return status": -6 is a user error, -4 one of severity 14.

    "If more than one error occurs during execution, the code with the highest absolute value is returned.
    User-defined return values take precedence over system-defined values."
    """
    site.define(
        """create procedure fails @how int as
        if @how = 0 return
        insert points values (1, 'a', 0)
        insert points values (1, 'again', 0)
        select @@error
        if @how = 1 return
        raiserror 20001 'worse'
        if @how = 2 return 0
        if @how = 3 return 7""",
        sybase=True,
    )
    for how, status in ((0, 0), (1, -4), (2, 0), (3, 7), (4, -6)):
        assert site.call("fails", how).status == status, how
        site.run("truncate site.points")


@pytest.mark.parametrize(("sybase", "kept"), [(True, [(1,)]), (False, [(1,), (2,)])])
def test_an_arithmetic_error_ends_the_procedure_in_ase(
    site: Site, points: None, sybase: bool, kept: list[tuple[int]]
) -> None:
    """ASE Reference Manual: Building Blocks, "Arithmetic errors": "The default setting, arithabort
    arith_overflow on, rolls back the entire transaction in which the error occurs"; outside of a transaction
    it "does not roll back earlier commands in the batch, but Adaptive Server does not execute any statements
    in the batch that follow the error-generating statement"."""
    name = "divides_in_ase" if sybase else "divides"
    site.define(
        f"""create procedure {name} @by int as
        declare @n int
        insert points values (1, 'a', 0)
        select @n = 1 / @by
        if @@error <> 0 insert points values (2, 'b', 0)""",
        sybase=sybase,
    )
    assert len(site.call(name, 0).errors) == 1
    assert site.rows("select id from site.points order by id") == kept


def test_rollback_of_a_callers_transaction_is_refused(site: Site, points: None) -> None:
    site.define("create procedure rolls_back as insert points values (1, 'a', 0) rollback tran")
    site.define(
        """create procedure begins as
        begin tran
        insert points values (2, 'b', 0)
        exec rolls_back
        commit tran"""
    )
    with pytest.raises(psycopg.Error, match="would undo the transaction of its caller"):
        site.call("begins")
    assert site.rows("select * from site.points") == []
    called = site.call("rolls_back")
    assert [number for number, *_ in called.errors] == [3903]
    site.define("create procedure commits as commit tran")
    assert [number for number, *_ in site.call("commits").errors] == [3902]
