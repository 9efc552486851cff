"""A batch is compiled before it runs: if one of its statements does not fit its tables, nothing is executed.

"SAP ASE compiles a batch before executing it" (Transact-SQL Users Guide, "Rules Associated with Batches").
SQL Server has "compile errors … that prevent a batch from running" (TRY...CATCH). A table that is not there
is such an error at TDS 5.0; SQL Server looks for it when the statement runs: "when you reference an
existing table … you can't list nonexistent columns for that table" (Deferred name resolution and
compilation).
"""

import psycopg
import pytest

from tds_clients import Clients

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
BOTH = pytest.mark.parametrize("section", ["5.0", "7.4"])


@BOTH
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


@BOTH
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


@BOTH
def test_objects_made_or_changed_by_a_batch_are_resolved_later(clients: Clients, section: str) -> None:
    with clients.ct(clients.server.reader, section) as client:
        client.language("create table #t (a int)")
        answer = client.language(
            "alter table #t add b int null insert #t (a, b) values (1, 2) select b from #t "
            "drop table #t create table #t (c int) insert #t values (3) select c from #t "
            "select c as d into #u from #t select d from #u"
        )
        assert (answer.rows, answer.errors) == ([["2"], ["3"], ["3"]], [])


@BOTH
def test_a_change_of_the_table_between_two_batches_counts(clients: Clients, section: str) -> None:
    text = "print 'ran' insert #t values (1)"
    with clients.ct(clients.server.reader, section) as client:
        client.language("create table #t (a int)")
        assert [message.text for message in client.language(text).messages] == ["ran"]
        client.language("alter table #t add b int null")
        assert [message.number for message in client.language(text).messages] == [213]
        client.language("alter table #t drop column b" if section == "7.4" else "alter table #t drop b")
        assert [message.text for message in client.language(text).messages] == ["ran"]


@BOTH
def test_no_lock_remains(clients: Clients, section: str) -> None:
    server = clients.server
    with clients.ct(server.reader, section) as client, psycopg.connect(server.dsn) as admin:
        client.language("create table #t (a int)")
        client.language("begin tran")
        client.language("insert #t values (1) if 1 = 2 select count(*) from online..sr_vac")
        locks = "select count(*) from pg_locks where relation = 'online.sr_vac'::regclass"
        assert admin.execute(f"{locks} and pid <> pg_backend_pid()").fetchone() == (0,)
        client.language("rollback")
