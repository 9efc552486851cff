"""Transactions in procedures written in T-SQL."""

import psycopg
import pytest
from procedure_site import Site

TRANSACTIONS = {
    "commit": "begin tran insert points values (@n, 'a', 0) insert points values (2, 'b', 0) commit tran",
    "branches": """begin tran
        insert points values (@n, 'a', 0)
        insert points values (2, 'b', 0)
        if @@error = 0
            commit tran
        else
        begin
            rollback tran
            print 'undone'
        end
        print 'end'""",
    "return": """begin transaction
        insert points values (1, 'a', 0)
        if @n > 1
        begin
            rollback transaction
            raiserror ('too big', 16, 1)
            return -1
        end
        insert points values (2, 'b', 0)
        commit transaction
        print 'end'""",
    "inside_try": """begin try
            begin tran
            insert points values (1, 'a', 0)
            insert points values (@n, 'b', 0)
            commit tran
            print 'committed'
        end try
        begin catch
            if @@trancount > 0 rollback tran
            print 'undone'
            print @@trancount
        end catch
        print 'end'""",
    "around_try": """begin tran
        begin try
            insert points values (1, 'a', 0)
            insert points values (@n, 'b', 0)
            commit tran
        end try
        begin catch
            print error_number()
            rollback tran
            print 'undone'
            return -1
        end catch
        print 'end'""",
    "loop": """declare @i int = 0
        while @i < 3
        begin
            set @i = @i + 1
            begin tran
            insert points values (@i, 'a', 0)
            if @i = @n
                rollback
            else
                commit
        end""",
    "after_commit": """begin tran
        begin try
            insert points values (1, 'a', 0)
            if @n = 1
            begin
                commit
                insert points values (1, 'again', 0)
            end
            else
                rollback
            print 'not after an error'
        end try
        begin catch
            declare @message varchar(200)
            select @message = error_message()
            print error_number()
            if @@trancount > 0 rollback
        end catch
        print 'end'""",
    "continues": """declare @i int = 0
        while @i < 4
        begin
            set @i = @i + 1
            begin tran
            insert points values (@i, 'a', 0)
            if @i = @n
            begin
                rollback
                continue
            end
            commit
            print @i
        end""",
    "rolled_back": "begin tran insert points values (1, 'a', 0) print @@trancount rollback print @@trancount",
}


@pytest.mark.parametrize(
    ("name", "n", "stored", "prints", "errors", "status"),
    [
        ("commit", 1, [1, 2], [], [], 0),
        ("branches", 1, [1, 2], ["end"], [], 0),
        ("branches", 2, [], ["undone", "end"], [2627], -4),
        ("return", 1, [1, 2], ["end"], [], 0),
        ("return", 2, [], [], [50000], -1),
        ("inside_try", 2, [1, 2], ["committed", "end"], [], 0),
        ("inside_try", 1, [], ["undone", "0", "end"], [], 0),
        ("around_try", 2, [1, 2], ["end"], [], 0),
        ("around_try", 1, [], ["2627", "undone"], [], -1),
        ("loop", 2, [1, 3], [], [], 0),
        ("after_commit", 1, [1], ["2627", "end"], [], 0),
        ("after_commit", 2, [], ["not after an error", "end"], [], 0),
        ("continues", 3, [1, 2, 4], ["1", "2", "4"], [], 0),
        ("rolled_back", 1, [], ["1", "0"], [], 0),
    ],
)
def test_transactions(
    site: Site,
    points: None,
    name: str,
    n: int,
    stored: list[int],
    prints: list[str],
    errors: list[int],
    status: int,
) -> None:
    site.define(f"create or alter procedure transacts @n int as set nocount on {TRANSACTIONS[name]}")
    called = site.call("transacts", n)
    assert [id for (id,) in site.rows("select id from site.points order by id")] == stored
    assert called.prints == prints
    assert [number for number, *_ in called.errors] == errors
    assert called.status == status


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
