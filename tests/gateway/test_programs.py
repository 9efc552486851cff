"""Batches that are programs: control flow, variables, errors and TRY, temporary tables, several result sets.

What is expected is what SQL Server's documentation says of each statement (Transact-SQL reference; for errors
"TRY...CATCH", "@@ERROR", "SET XACT_ABORT"), and for TDS 5.0 the same where ASE's reference manual agrees.
"""

import time

import pytest

from tds_clients import Admin, Answer, Clients, CtClient, Message, Param
from waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("functions")
BOTH = pytest.mark.parametrize("version", ["5.0", "7.4"])

ROW, MESSAGE, COUNT, STATUS = "row", "message", "count", "status"


def events(client: CtClient, text: str) -> list[tuple[str, object]]:
    """What a batch says: rows, the texts of messages, counts and statuses."""
    return said(client.language(text))


def said(answer: Answer) -> list[tuple[str, object]]:
    return [
        (kind, value.text if isinstance(value, Message) else value)
        for kind, value in answer.events
        if kind != "columns" and (kind, value) != (COUNT, -1)
    ]


ONE_ASSIGNED = (COUNT, 1)
"""an assignment's number of rows, which SQL Server reports (microsoft/mssql-rs, #372), and ASE too (FreeTDS,
src/odbc/unittests/moreandcount.c)"""
PROGRAMS: dict[str, list[tuple[str, object]]] = {
    # control flow
    "declare @i int set @i = 0 while @i < 5 begin set @i = @i + 1 if @i = 2 continue if @i = 4 break "
    "print 'turn ' + convert(varchar(9), @i) end print 'end'": [
        ONE_ASSIGNED,
        ONE_ASSIGNED,
        (MESSAGE, "turn 1"),
        ONE_ASSIGNED,
        ONE_ASSIGNED,
        (MESSAGE, "turn 3"),
        ONE_ASSIGNED,
        (MESSAGE, "end"),
    ],
    "if 1 = 2 print 'then' else if 2 = 2 print 'else if' else print 'else'": [(MESSAGE, "else if")],
    "declare @a int if @a = 1 print 'equal' else print 'unknown'": [(MESSAGE, "unknown")],
    "print 'a' return print 'b'": [(MESSAGE, "a")],
    "declare @n int = 3 begin declare @m int = @n * 2 end select @n + @m": [
        ONE_ASSIGNED,
        ONE_ASSIGNED,
        (ROW, ["9"]),
        (COUNT, 1),
    ],
    "declare @i int = 0 while @i < 3 begin declare @kept int set @kept = isnull(@kept, 10) + 1 "
    "set @i = @i + 1 end select @kept": [*[ONE_ASSIGNED] * 7, (ROW, ["13"]), (COUNT, 1)],
    # the order of everything
    "print 'one' select 2 as two print 'three' select 4 as four select 5 as five": [
        (MESSAGE, "one"),
        (ROW, ["2"]),
        (COUNT, 1),
        (MESSAGE, "three"),
        (ROW, ["4"]),
        (COUNT, 1),
        (ROW, ["5"]),
        (COUNT, 1),
    ],
    # @@rowcount and @@error are those of the statement before
    "declare @a int select 1 union all select 2 select @@rowcount": [
        (ROW, ["1"]),
        (ROW, ["2"]),
        (COUNT, 2),
        (ROW, ["2"]),
        (COUNT, 1),
    ],
    "declare @a int set @a = 5 select @@rowcount": [ONE_ASSIGNED, (ROW, ["1"]), (COUNT, 1)],
    "declare @a int select @a = 1 where 1 = 2 select @@rowcount, @a": [
        (COUNT, 0),
        (ROW, ["0", None]),
        (COUNT, 1),
    ],
    "select 1 if @@rowcount = 1 select @@rowcount": [(ROW, ["1"]), (COUNT, 1), (ROW, ["0"]), (COUNT, 1)],
    "print 'x' select @@rowcount": [(MESSAGE, "x"), (ROW, ["0"]), (COUNT, 1)],
    "set nocount on select 1 set nocount off select 2": [(ROW, ["1"]), (ROW, ["2"]), (COUNT, 1)],
    "set rowcount 2 select 1 union all select 2 union all select 3 select @@rowcount set rowcount 0": [
        (ROW, ["1"]),
        (ROW, ["2"]),
        (COUNT, 2),
        (ROW, ["2"]),
        (COUNT, 1),
    ],
    # strings that are run
    "exec ('declare @x int = 1 select @x') exec ('print ''in'' exec (''print ''''deeper'''''')')": [
        ONE_ASSIGNED,
        (ROW, ["1"]),
        (COUNT, 1),
        (MESSAGE, "in"),
        (MESSAGE, "deeper"),
    ],
    "declare @s varchar(20) = 'print ' exec (@s + '''built''')": [ONE_ASSIGNED, (MESSAGE, "built")],
    # procedures among queries
    "declare @r int, @n int = 2 exec @r = status @n select @r + 1 as r": [
        ONE_ASSIGNED,
        (STATUS, 2),
        (ROW, ["3"]),
        (COUNT, 1),
    ],
}


@BOTH
def test_programs(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        for text, expected in PROGRAMS.items():
            assert events(client, text) == expected, text


ERRORS: dict[str, tuple[list[int], list[list[str | None]]]] = {
    # a statement ends, the batch goes on
    "select a = (select 1 union select 2) select @@error": ([512], [["512"]]),
    "raiserror ('oops %d', 16, 1, 7) select @@error": ([50000], [["50000"]]),
    "raiserror ('by the way', 10, 1) select @@error": ([], [["0"]]),
    "exec no_such_procedure select @@error": ([2812], [["2812"]]),
    "exec ('select * from no_such_table select 1') select 2": ([208], [["2"]]),
    # the batch ends
    "select * from no_such_table select 2": ([208], []),
    "select convert(int, 'x') select 2": ([245], []),
    "exec ('select convert(int, ''x'')') select 2": ([245], []),
    # nothing runs
    "select 1 selct 2 from": ([102], []),
    "select @undeclared select 1": ([137], []),
}


@BOTH
@pytest.mark.parametrize("text", ERRORS)
def test_what_an_error_ends(clients: Clients, version: str, text: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.language(text)
        assert ([error.number for error in answer.errors], answer.rows) == ERRORS[text]
        assert client.language("select 1").rows == [["1"]]


TRIES: dict[str, list[tuple[str, object]]] = {
    "begin try select 1 / 0 print 'not reached' end try begin catch "
    "select error_number(), error_severity(), error_state(), @@error end catch print 'after'": [
        (COUNT, 0),
        (ROW, ["8134", "16", "1", "8134"]),
        (COUNT, 1),
        (MESSAGE, "after"),
    ],
    "begin try raiserror ('mine', 12, 3) end try "
    "begin catch select error_message(), error_state() end catch": [
        (ROW, ["mine", "3"]),
        (COUNT, 1),
    ],
    # one of severity 10 is not caught
    "begin try raiserror ('raised', 10, 1) print 'reached' end try begin catch print 'caught' end catch": [
        (MESSAGE, "raised"),
        (MESSAGE, "reached"),
    ],
    "begin try begin try select 1 / 0 end try begin catch throw end catch end try "
    "begin catch print 'outer ' + convert(varchar(9), error_number()) end catch select error_number()": [
        (COUNT, 0),
        (MESSAGE, "outer 8134"),
        (ROW, [None]),
        (COUNT, 1),
    ],
    "begin try throw 60000, 'thrown', 5 end try begin catch "
    "select error_number(), error_message(), error_state() end catch": [
        (ROW, ["60000", "thrown", "5"]),
        (COUNT, 1),
    ],
    "begin try exec enter_myself 'bad' end try "
    "begin catch select case when error_number() in (547, 548) then 'check' end end catch": [
        (ROW, ["check"]),
        (COUNT, 1),
    ],
    # a name that is not there is seen by a CATCH outside of its text only
    "begin try exec ('select * from no_such_table') end try begin catch select error_number() end catch": [
        (ROW, ["208"]),
        (COUNT, 1),
    ],
    "begin try select * from no_such_table end try begin catch print 'not caught' end catch print 'never'": [
        (MESSAGE, "208"),
    ],
}


@BOTH
@pytest.mark.parametrize("text", TRIES)
def test_try_and_catch(clients: Clients, version: str, text: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        answer = client.language(text)
        numbers = [error.number for error in answer.errors]
        shown = [
            (kind, str(numbers[0]) if kind == MESSAGE and numbers else value) for kind, value in said(answer)
        ]
        assert shown == TRIES[text]


@BOTH
def test_a_throw_ends_the_batch(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.language("throw 60001, 'the end', 1; print 'never'")
        assert [(error.number, error.text) for error in answer.errors] == [(60001, "the end")]
        assert len(answer.messages) == 1


@BOTH
def test_temporary_tables(clients: Clients, version: str) -> None:
    with (
        clients.ct(clients.server.reader, version) as client,
        clients.ct(clients.server.reader, version) as other,
    ):
        made = client.language(
            "create table #t (id int identity, name varchar(20) null) insert #t (name) values ('a') "
            "insert into #t (name) select 'b' union select 'c' select @@rowcount, @@identity"
        )
        assert (made.errors, made.rows) == ([], [["2", "3"]])
        assert [count for count in made.counts if count >= 0] == [1, 2, 1]
        assert other.language("select * from #t").error.number == 208
        changed = client.language(
            "update #t set name = 'z' where id > 1 delete #t where id = 3 select * from #t"
        )
        assert (changed.rows, changed.counts) == ([["1", "a"], ["2", "z"]], [2, 1, 2])
        assert client.language("select name into #u from #t where id = 2 select * from #u").rows == [["z"]]
        assert client.language("select @@identity").rows == [["3"]]
        assert client.language("drop table #t").errors == []
        assert client.language("select * from #t").error.number == 208
        assert other.language("create table #u (a int) drop table #u").errors == []


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


def test_texts_nest_32_deep(clients: Clients) -> None:
    with clients.ct(clients.server.reader, "7.4") as client:
        text = "select 1"
        for _ in range(3):
            text = "exec ('" + text.replace("'", "''") + "')"
        assert client.language(text).rows == [["1"]]
        endless = (
            "declare @s varchar(8000) = 'declare @s varchar(8000) = (select s from #s) exec (@s)' "
            "create table #s (s varchar(8000)) insert #s values (@s) exec (@s)"
        )
        assert [error.number for error in client.language(endless).errors] == [217]
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
    """Inside a transaction too, where nobody else sees it."""
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
