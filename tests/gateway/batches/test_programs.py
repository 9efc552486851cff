"""Batches that are programs, beside the cases of programs.toml: sessions, cancelling, nesting, transactions.

The expected answers follow SQL Server's documentation of each statement (Transact-SQL reference; for errors
"TRY...CATCH", "@@ERROR", "SET XACT_ABORT"), and for TDS 5.0 the same if ASE's reference manual agrees."""

import time

import psycopg
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


# --- a batch is compiled before it runs ---

MISSING = "insert #t values (1) begin tran insert #t values (2) select * from no_such commit"


def test_no_statement_has_run(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        client.language("create table #t (a int)")
        answer = client.language(MISSING)
        assert [error.number for error in answer.errors] == [208]
        assert (answer.counts, answer.rows) == ([-1], [])
        assert client.language("select @@error, @@trancount, @@rowcount").rows == [["208", "0", "0"]]
        assert client.language("select count(*) from #t").rows == [["0"]]


def test_a_transaction_continues(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        client.language("create table #t (a int)")
        client.language("begin tran insert #t values (0)")
        assert [error.number for error in client.language(MISSING).errors] == [208]
        assert client.language("select a, @@trancount from #t").rows == [["0", "1"]]
        client.language("commit")
        assert client.language("select a, @@trancount from #t").rows == [["0", "0"]]


def test_tables_of_other_databases(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        answer = client.language("print 'ran' select count(*) from online..sr_vac where 1 = 2")
        assert ([message.text for message in answer.messages], answer.rows) == (["ran"], [["0"]])
        answer = client.language("print 'ran' select * from online..no_such")
        assert [message.number for message in answer.messages] == [208]


@pytest.mark.parametrize("text", ["execute ('{0}')", "declare @n int execute ('{0}')"])
def test_a_text_in_a_batch_is_compiled_first_too(clients: Clients, text: str) -> None:
    with clients.ct(clients.server.reader) as client:
        answer = client.language(text.format("print ''ran'' select * from no_such"))
        assert [message.number for message in answer.messages] == [208]


def test_a_dynamic_statement_is_compiled_first_too(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        client.language("create table #t (a int)")
        client.prepare("both", "insert #t values (1) select * from no_such")
        assert [error.number for error in client.execute("both").errors] == [208]
        assert client.language("select count(*) from #t").rows == [["0"]]


def test_sql_server_runs_the_statements_before(clients: Clients) -> None:
    with clients.ct(clients.server.reader, "7.4") as client:
        client.language("create table #t (a int)")
        assert [error.number for error in client.language(MISSING).errors] == [208]
        assert client.language("select count(*), @@trancount from #t").rows == [["2", "1"]]


# the second statement, and its error
UNFIT = [
    ("select no_such from #t", 207),
    ("update #t set no_such = 1", 207),
    ("if 1 = 2 delete from #t where no_such = 1", 207),
    ("if exists (select no_such from #t) print 'there'", 207),
    ("declare @n int select @n = no_such from #t", 207),
    ("select a.a from #t as a, #t as b where a = 1", 209),
    ("select x.a from #t", 4104),
    ("insert #t values (1, 'x', 3)", 213),
    ("insert #t values (1)", 213),
    ("insert #t select a from #t", 213),
    ("insert #t (a) select a, b from #t", 121),
    ("select a from #t union select a, b from #t", 205),
    ("select sum(max(a)) from #t", 130),
    ("select a from #t where count(*) > 1", 147),
]
BOTH_FAIL = pytest.mark.parametrize("section", ["5.0", "7.4"])


@BOTH_FAIL
@pytest.mark.parametrize(("statement", "number"), UNFIT)
def test_nothing_runs_of_a_batch_with_a_statement_that_does_not_fit(
    clients: Clients, section: str, statement: str, number: int
) -> None:
    with clients.ct(clients.server.reader, section) as client:
        client.language("create table #t (a int, b varchar(10))")
        for _ in range(3):
            answer = client.language(f"insert #t values (1, 'x') select 1 {statement}")
            assert ([error.number for error in answer.errors], answer.rows) == ([number], [])
        client.language("begin tran insert #t values (2, 'y')")
        answer = client.language(f"insert #t values (1, 'x') commit {statement}")
        assert [error.number for error in answer.errors] == [number]
        assert client.language("select a, @@trancount from #t").rows == [["2", "1"]]
        client.language("commit")


@BOTH_FAIL
def test_no_catch_of_the_batch_handles_it(clients: Clients, section: str) -> None:
    catch = "begin catch print 'caught' end catch"
    text = f"begin try insert #t values (1) select no_such from #t end try {catch}"
    with clients.ct(clients.server.reader, section) as client:
        client.language("create table #t (a int)")
        assert [message.number for message in client.language(text).messages] == [207]
        inner = text.replace("'", "''")
        answer = client.language(f"begin try execute ('{inner}') end try {catch}")
        assert [message.text for message in answer.messages] == ["caught"]
        assert client.language("select count(*) from #t").rows == [["0"]]


@BOTH_FAIL
def test_objects_made_or_changed_by_a_batch_are_resolved_later(clients: Clients, section: str) -> None:
    with clients.ct(clients.server.reader, section) as client:
        client.language("create table #t (a int)")
        answer = client.language(
            "alter table #t add b int null insert #t (a, b) values (1, 2) select b from #t "
            "drop table #t create table #t (c int) insert #t values (3) select c from #t "
            "select c as d into #u from #t select d from #u"
        )
        assert (answer.rows, answer.errors) == ([["2"], ["3"], ["3"]], [])


@BOTH_FAIL
def test_a_change_of_the_table_between_two_batches_counts(clients: Clients, section: str) -> None:
    text = "print 'ran' insert #t values (1)"
    with clients.ct(clients.server.reader, section) as client:
        client.language("create table #t (a int)")
        assert [message.text for message in client.language(text).messages] == ["ran"]
        client.language("alter table #t add b int null")
        assert [message.number for message in client.language(text).messages] == [213]
        client.language("alter table #t drop column b" if section == "7.4" else "alter table #t drop b")
        assert [message.text for message in client.language(text).messages] == ["ran"]


@BOTH_FAIL
def test_no_lock_remains(clients: Clients, section: str) -> None:
    server = clients.server
    with clients.ct(server.reader, section) as client, psycopg.connect(server.dsn) as admin:
        client.language("create table #t (a int)")
        client.language("begin tran")
        client.language("insert #t values (1) if 1 = 2 select count(*) from online..sr_vac")
        locks = "select count(*) from pg_locks where relation = 'online.sr_vac'::regclass"
        assert admin.execute(f"{locks} and pid <> pg_backend_pid()").fetchone() == (0,)
        client.language("rollback")
