"""Batches that are programs, beside the cases of programs.toml: sessions, cancelling, nesting, transactions.

The expected answers follow SQL Server's documentation of each statement (Transact-SQL reference; for errors
"TRY...CATCH", "@@ERROR", "SET XACT_ABORT"), and for TDS 5.0 the same if ASE's reference manual agrees.
"""

import time

import pytest

from tds_clients import Admin, Answer, Clients, Message, Param
from waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("functions")
BOTH = pytest.mark.parametrize("version", ["5.0", "7.4"])

ROW, MESSAGE, COUNT = "row", "message", "count"


def said(answer: Answer) -> list[tuple[str, object]]:
    return [
        (kind, value.text if isinstance(value, Message) else value)
        for kind, value in answer.events
        if kind != "columns" and (kind, value) != (COUNT, -1)
    ]


@BOTH
def test_a_check_of_a_table_is_caught(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        answer = client.language(
            "begin try exec enter_myself 'bad' end try begin catch"
            " select case when error_number() in (547, 548) then 'check' end end catch"
        )
        assert (answer.errors, answer.rows) == ([], [["check"]])


@BOTH
def test_a_temporary_table_belongs_to_its_session(clients: Clients, version: str) -> None:
    with (
        clients.ct(clients.server.reader, version) as client,
        clients.ct(clients.server.reader, version) as other,
    ):
        assert client.language("create table #t (id int)").errors == []
        assert other.language("select * from #t").error.number == 208
        assert client.language("drop table #t").errors == []
        assert client.language("select * from #t").error.number == 208
        assert other.language("create table #t (a int) drop table #t").errors == []


@BOTH
def test_a_failed_statement_keeps_the_transaction_and_a_conversion_ends_it(
    clients: Clients, version: str
) -> None:
    with clients.ct(clients.server.reader, version) as client:
        client.language("create table #t (id int not null primary key)")
        answer = client.language(
            "begin tran insert #t values (1) insert #t values (1) insert #t values (2) "
            "select @@trancount commit select count(*) from #t"
        )
        assert [error.number for error in answer.errors] == [2601 if version == "5.0" else 2627]
        assert answer.rows == [["1"], ["2"]]
        answer = client.language("begin tran insert #t values (3) select convert(int, 'x') print 'never'")
        assert [error.number for error in answer.errors] == [245]
        assert client.language("select @@trancount select count(*) from #t").rows == [["0"], ["2"]]


def test_xact_abort(clients: Clients) -> None:
    with clients.ct(clients.server.reader, "7.4") as client:
        client.language("create table #t (id int not null primary key)")
        answer = client.language(
            "set xact_abort on begin tran insert #t values (1) insert #t values (1) print 'never'"
        )
        assert [error.number for error in answer.errors] == [2627]
        assert client.language("select @@trancount select count(*) from #t").rows == [["0"], ["0"]]
        assert client.language("set xact_abort off select 1 / 0 select 2").rows == [["2"]]


@BOTH
def test_waiting_and_looping_can_be_cancelled(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        start = time.monotonic()
        assert client.language("waitfor delay '00:00:00.3' select 1").rows == [["1"]]
        assert time.monotonic() - start > 0.3
        for text in (
            "waitfor delay '00:10'",
            "while 1 = 1 begin print 'on and on' end",
            "while 1 = 1 begin end",
        ):
            start = time.monotonic()
            client.cancelled(text, after=0.2)
            assert time.monotonic() - start < PATIENCE
            assert client.language("select 1").rows == [["1"]]


def test_a_text_that_nests_without_end_is_refused(clients: Clients) -> None:
    with clients.ct(clients.server.reader, "7.4") as client:
        for text in (
            "select " + "(" * 20_000 + "1" + ")" * 20_000,
            "select 1" + " + 1" * 20_000,
            "if 1 = 1 " * 20_000 + "print 'deep'",
            "begin " * 20_000 + "print 'deep' " + "end " * 20_000,
        ):
            answer = client.language(text)
            assert len(answer.errors) == 1 or answer.rows == [["20001"]], text[:40]
            assert client.language("select 1").rows == [["1"]]


@BOTH
def test_several_result_sets_of_a_procedure(clients: Clients, admin: Admin, version: str) -> None:
    """As procedures compiled from T-SQL report them."""
    admin.execute(
        "create procedure gateway_test.several(inout n integer) language plpgsql as $$ "
        "declare first refcursor := 'first'; second refcursor := 'second'; begin "
        "raise notice 'before'; "
        "open first for select i, i * i as square from generate_series(1, n) i; "
        "raise notice using errcode = '01R01', message = 'first', detail = '[\"i\", \"\"]'; "
        "raise notice 'between'; "
        "open second for select 'text'; raise notice using errcode = '01R01', message = 'second'; "
        "raise notice using errcode = '01R02', message = '7'; raise notice 'after'; n := n + 1; end $$; "
        "notify ringlog_catalogue"
    )
    expected: list[tuple[str, object]] = [
        (MESSAGE, "before"),
        (ROW, ["1", "1"]),
        (ROW, ["2", "4"]),
        (MESSAGE, "between"),
        (ROW, ["text"]),
        (MESSAGE, "after"),
    ]
    with clients.ct(clients.server.reader, version) as client:
        for transaction in ("", "begin tran"):
            assert client.language(f"{transaction} print ''").errors == []
            by_text = client.language("declare @n int = 2 exec several @n output select @n")
            by_rpc = client.call("several", [Param("int", "2", "@n", out=True)])
            assert by_rpc.outputs == {"@n": "3"}, by_rpc
            for answer in (by_text, by_rpc):
                assert answer.errors == []
                shown = [event for event in said(answer) if event[0] in (ROW, MESSAGE)]
                assert shown[:6] == expected
            assert by_text.rows[-1] == ["3"]
    admin.execute("drop procedure gateway_test.several")


@BOTH
def test_a_procedure_that_is_defined_can_be_called_at_once(
    clients: Clients, admin: Admin, version: str
) -> None:
    """Also inside a transaction, where no other session sees it."""
    admin.execute("grant create on schema gateway_test to daq_writer")
    with clients.ct(clients.server.writer, version) as client:
        assert client.language("use gateway_test").errors == []
        create = "create procedure doubled @a int, @b int output as set @b = @a * 2 return 3"
        assert client.language(create).errors == []
        answer = client.call("doubled", [Param("int", "4", "@a"), Param("int", None, "@b", out=True)])
        assert (answer.statuses, answer.outputs) == ([3], {"@b": "8"})
        assert client.language("drop procedure doubled").errors == []
        assert client.call("doubled").error.number == 2812
        client.language("begin tran")
        assert client.language(create.replace("doubled", "for_now")).errors == []
        assert client.language("declare @b int exec for_now 5, @b output select @b").rows == [["10"]]
        client.language("rollback")
        assert client.call("for_now").error.number == 2812
    admin.execute("revoke create on schema gateway_test from daq_writer")
