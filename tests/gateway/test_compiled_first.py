"""A batch of TDS 5.0 is compiled before it runs: a table that is not there ends it, and nothing has happened.

"SAP ASE compiles a batch before executing it" (Transact-SQL Users Guide, "Rules Associated with Batches").
"""

import pytest

from tds_clients import Clients

MISSING = "insert #t values (1) begin tran insert #t values (2) select * from no_such commit"


def test_nothing_has_happened(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        client.language("create table #t (a int)")
        answer = client.language(MISSING)
        assert [error.number for error in answer.errors] == [208]
        assert (answer.counts, answer.rows) == ([-1], [])
        assert client.language("select @@error, @@trancount, @@rowcount").rows == [["208", "0", "0"]]
        assert client.language("select count(*) from #t").rows == [["0"]]


def test_a_transaction_goes_on(clients: Clients) -> None:
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
def test_a_text_in_a_batch_is_one_too(clients: Clients, text: str) -> None:
    with clients.ct(clients.server.reader) as client:
        answer = client.language(text.format("print ''ran'' select * from no_such"))
        assert [message.number for message in answer.messages] == [208]


def test_a_dynamic_statement_is_one_too(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        client.language("create table #t (a int)")
        client.prepare("both", "insert #t values (1) select * from no_such")
        assert [error.number for error in client.execute("both").errors] == [208]
        assert client.language("select count(*) from #t").rows == [["0"]]


def test_sql_server_runs_what_stands_before(clients: Clients) -> None:
    with clients.ct(clients.server.reader, "7.4") as client:
        client.language("create table #t (a int)")
        assert [error.number for error in client.language(MISSING).errors] == [208]
        assert client.language("select count(*), @@trancount from #t").rows == [["2", "1"]]
