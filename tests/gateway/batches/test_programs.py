"""Batches that are programs, beside the cases of programs.toml: sessions, cancelling, nesting, transactions.

The expected answers follow SQL Server's documentation of each statement (Transact-SQL reference; for errors
"TRY...CATCH", "@@ERROR", "SET XACT_ABORT"), and for TDS 5.0 the same if ASE's reference manual agrees."""

import time
from typing import Any

import pytest
from case_tables import cases
from talks import hold, talks

from tds_clients import Admin, Answer, Clients, Message, Param
from waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("functions")
BOTH = pytest.mark.parametrize("version", ["5.0", "7.4"])

ROW, MESSAGE, COUNT = "row", "message", "count"


@talks(__file__)
def test_talks(clients: Clients, admin: Admin, version: str, talk: dict[str, Any]) -> None:
    hold(talk, version, clients, admin)


def events_of(answer: Answer) -> list[tuple[str, object]]:
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
                shown = [event for event in events_of(answer) if event[0] in (ROW, MESSAGE)]
                assert shown[:6] == expected
            assert by_text.rows[-1] == ["3"]
    admin.execute("drop procedure gateway_test.several")


# --- a batch is compiled before it runs ---


def test_a_dynamic_statement_is_compiled_first_too(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        client.language("create table #t (a int)")
        client.prepare("both", "insert #t values (1) select * from no_such")
        assert [error.number for error in client.execute("both").errors] == [208]
        assert client.language("select count(*) from #t").rows == [["0"]]


@BOTH
@pytest.mark.parametrize(("statement", "number"), cases(__file__, "unfit"))
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
