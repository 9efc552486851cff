"""Batches that are programs, beside the cases of programs.toml: sessions, cancelling, nesting, transactions.

The expected answers follow SQL Server's documentation of each statement (Transact-SQL reference; for errors
"TRY...CATCH", "@@ERROR", "SET XACT_ABORT"), and for TDS 5.0 the same if ASE's reference manual agrees."""

import time
from typing import Any

import pytest
from talks import hold, talks

from tds_clients import Admin, Answer, Clients, Message, Param
from waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("functions")
BOTH = pytest.mark.parametrize("version", ["5.0", "7.4"])

ROW, MESSAGE, COUNT = "row", "message", "count"


@talks(__file__)
def test_talks(clients: Clients, admin: Admin, version: str, talk: dict[str, Any]) -> None:
    hold(talk, version, clients, admin)


def said(answer: Answer) -> list[tuple[str, object]]:
    return [
        (kind, value.text if isinstance(value, Message) else value)
        for kind, value in answer.events
        if kind != "columns" and (kind, value) != (COUNT, -1)
    ]


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


# --- a table that psql makes and drops, which the gateway is not told ---


@pytest.mark.parametrize(
    "text",
    [
        "select a + 1 from gateway_test.made_later",
        "if (select a * 2 from gateway_test.made_later) > 1 select 2",
    ],
)
@BOTH
def test_a_table_is_found_when_it_exists(clients: Clients, admin: Admin, version: str, text: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        for _ in range(2):
            assert [error.number for error in client.language(text).errors] == [208]
            admin.execute(
                "create table gateway_test.made_later (a integer);"
                "insert into gateway_test.made_later values (1);"
                "grant select on gateway_test.made_later to public"
            )
            for _ in range(2):
                answer = client.language(text)
                assert (answer.rows, answer.errors) == ([["2"]], [])
            admin.execute("drop table gateway_test.made_later")


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


def test_a_dynamic_statement_is_compiled_first_too(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        client.language("create table #t (a int)")
        client.prepare("both", "insert #t values (1) select * from no_such")
        assert [error.number for error in client.execute("both").errors] == [208]
        assert client.language("select count(*) from #t").rows == [["0"]]


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


@BOTH
@pytest.mark.parametrize(("statement", "number"), UNFIT)
def test_nothing_runs_of_a_batch_with_a_statement_that_does_not_fit(
    clients: Clients, version: str, statement: str, number: int
) -> None:
    with clients.ct(clients.server.reader, version) as client:
        client.language("create table #t (a int, b varchar(10))")
        for _ in range(3):
            answer = client.language(f"insert #t values (1, 'x') select 1 {statement}")
            assert ([error.number for error in answer.errors], answer.rows) == ([number], [])
        client.language("begin tran insert #t values (2, 'y')")
        answer = client.language(f"insert #t values (1, 'x') commit {statement}")
        assert [error.number for error in answer.errors] == [number]
        assert client.language("select a, @@trancount from #t").rows == [["2", "1"]]
        client.language("commit")
