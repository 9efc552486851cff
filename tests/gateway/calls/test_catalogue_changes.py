"""The gateway reads only changed entries of its catalogue again, and misses no kind of change."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import NamedTuple

import pymssql
import pytest

from authors import author_with_schema
from servers import Login, RunningServer
from tds_clients import Admin, Clients, CtClient, Param
from waiting import wait_until

AUTHOR = Login("catalogue_author", "author")
SCHEMA = "catalogue_test"
NUMBERS = count()

SHARED = f"language sql volatile security definer set search_path = {SCHEMA}, pg_temp"


@pytest.fixture(scope="module")
def site(server: RunningServer) -> Iterator[Admin]:
    with author_with_schema(server, AUTHOR, SCHEMA) as admin:
        admin.execute(
            "create role catalogue_owner; create schema catalogue_other; create schema catalogue_old;"
            "grant usage on schema catalogue_test, catalogue_other, catalogue_old to public"
        )
        yield admin
        admin.execute(
            "drop owned by catalogue_owner cascade; drop role catalogue_owner;"
            "drop schema catalogue_other, catalogue_new cascade"
        )


@pytest.fixture(scope="module")
def client(site: Admin, clients: Clients) -> Iterator[CtClient]:
    with clients.ct(AUTHOR) as client:
        assert client.language(f"use {SCHEMA}").errors == []
        yield client


class Call(NamedTuple):
    name: str
    params: tuple[Param, ...] = ()
    before: str = ""
    """a text of T-SQL"""

    def answer(self, client: CtClient) -> object:
        """The return status, or the number of the error."""
        if self.before:
            client.language(self.before)
        answer = client.call(self.name, self.params)
        if self.before:
            client.language("set rowcount 0")
        return answer.error.number if answer.errors else (answer.rows or answer.statuses)


FUNCTION = "create function {name}() returns integer language sql as 'select 1'; "
OF_ROW = (
    "create table {name}_row (a integer, b integer); "
    "create function {name}(r {name}_row) returns integer language sql as 'select 1'; "
)
A, B, C = (Param("int", "1", f"@{name}") for name in "abc")

# the state, the call's answer, the change, the answer of the same call afterwards, and that of another one
CHANGES = {
    "a new name": (
        FUNCTION,
        Call("{name}"),
        [1],
        "alter function {name} rename to {name}_new",
        2812,
        Call("{name}_new"),
    ),
    "another schema": (
        FUNCTION,
        Call("{name}"),
        [1],
        "alter function {name} set schema catalogue_other",
        2812,
        Call("catalogue_other..{name}"),
    ),
    "a new name of the schema": (
        FUNCTION.replace("{name}", "catalogue_old.{name}"),
        Call("catalogue_old..{name}"),
        [1],
        "alter schema catalogue_old rename to catalogue_new",
        2812,
        Call("catalogue_new..{name}"),
    ),
    "dropped": (FUNCTION, Call("{name}"), [1], "drop function {name}()", 2812, None),
    "made anew": (
        FUNCTION,
        Call("{name}"),
        [1],
        "drop function {name}(); "
        "create function {name}(a integer = 2) returns integer language sql as 'select $1'",
        [2],
        None,
    ),
    "a default": (
        "create function {name}(a integer) returns integer language sql as 'select $1'; ",
        Call("{name}"),
        201,
        "create or replace function {name}(a integer default 7) returns integer language sql as 'select $1'",
        [7],
        None,
    ),
    "it only reads": (
        FUNCTION,
        Call("{name}", before="set rowcount 1"),
        195,
        "alter function {name}() stable",
        [1],
        None,
    ),
    "a new column of a row": (
        OF_ROW,
        Call("{name}", (A, B, C)),
        8145,
        "alter table {name}_row add c integer",
        [1],
        None,
    ),
    "a new name of a column": (
        OF_ROW,
        Call("{name}", (A, C)),
        8145,
        "alter table {name}_row rename b to c",
        [1],
        None,
    ),
    "a column's type": (
        OF_ROW,
        Call("{name}", (A, Param("char", "x", "@b"))),
        8114,
        "alter table {name}_row alter b type text",
        [1],
        None,
    ),
    "a column that is gone": (
        OF_ROW,
        Call("{name}", (A, B)),
        [1],
        "alter table {name}_row drop b",
        8145,
        None,
    ),
    "an owner that is not ringlog's": (
        "create function ringlog.{name}() returns integer {shared} "
        "as 'select (session_user = ''ringlog_gateway'')::integer'; "
        "alter function ringlog.{name} owner to ringlog_owner;"
        "grant execute on function ringlog.{name} to public; ",
        Call("ringlog..{name}"),
        [1],
        "alter function ringlog.{name} owner to catalogue_owner",
        [0],
        None,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(site: Admin, client: CtClient, change: str) -> None:
    make, call, before, alter, after, other = CHANGES[change]
    name = f"changing_{next(NUMBERS)}"

    def execute(text: str) -> None:
        text = text.replace("{name}", name).replace("{shared}", SHARED)
        site.execute(f"set search_path = {SCHEMA}; {text}; notify ringlog_catalogue".encode())

    def answer(call: Call) -> object:
        return call._replace(name=call.name.replace("{name}", name)).answer(client)

    execute(make)
    found: list[object] = []

    def is_answered(call: Call, wanted: object) -> bool:
        found[:] = [answer(call)]
        return found == [wanted]

    wait_until(lambda: is_answered(call, before), lambda: found)
    execute(f"begin; {alter}; rollback")
    assert answer(call) == before
    execute(alter)
    wait_until(lambda: is_answered(call, after), lambda: found)
    if other:
        assert answer(other) == before


def rows(connection: pymssql.Connection, text: str) -> list[object]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall() or ())


def test_a_caller_follows_what_it_calls(site: Admin, clients: Clients) -> None:
    """PL/pgSQL cannot call a procedure that the gateway runs, such as one with GOTO."""
    with clients.pymssql(AUTHOR, database=SCHEMA) as author, author.cursor() as cursor:
        cursor.execute("create procedure called as select 1 as a")
        cursor.execute("create procedure calls_it as exec called")
        cursor.execute("create procedure calls_that as exec calls_it")
        assert rows(author, "exec calls_that") == [(1,)]
        for number, text in [(2, "goto there there: "), (3, ""), (4, "goto there there: ")]:
            cursor.execute(f"alter procedure called as {text} select {number} as a")
            assert rows(author, "exec calls_it") == rows(author, "exec calls_that") == [(number,)]


def test_a_transaction_that_is_rolled_back(site: Admin, clients: Clients) -> None:
    with (
        clients.pymssql(AUTHOR, database=SCHEMA) as author,
        clients.pymssql(AUTHOR, database=SCHEMA) as other,
        author.cursor() as cursor,
    ):
        cursor.execute("create procedure undone @a int as select @a as a")
        for number in range(3):
            cursor.execute("begin tran")
            cursor.execute("alter procedure undone @b int as select @b + 10 as a")
            assert rows(author, f"exec undone @b = {number}") == [(number + 10,)]
            cursor.execute("rollback")
            assert rows(author, f"exec undone @a = {number}") == [(number,)]
            assert rows(other, f"exec undone @a = {number}") == [(number,)]
        cursor.execute("begin tran")
        cursor.execute("alter procedure undone @b int as select @b + 10 as a")
        cursor.execute("commit")
        assert rows(author, "exec undone @b = 1") == rows(other, "exec undone @b = 1") == [(11,)]


def test_a_change_that_nobody_has_notified_of(site: Admin, client: CtClient, server: RunningServer) -> None:
    """It becomes known when the gateway connects again."""
    make = f"create function {SCHEMA}.quiet({{}}) returns integer language sql as 'select $1'"
    site.execute(f"{make.format('a integer')}; notify ringlog_catalogue".encode())
    call = Call("quiet", (Param("int", "7"), Param("int", "8")))
    wait_until(lambda: call.answer(client) == 8144)
    site.execute(f"drop function {SCHEMA}.quiet; {make.format('a integer, b integer')}".encode())
    site.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where application_name like 'ringlog catalogue%'"
    )
    answers: list[object] = []

    def is_known() -> bool:
        answers.append(call.answer(client))
        return answers[-1] == [7]

    wait_until(is_known)
    # until then nothing is said of the parameters: a writer would give up the row
    assert {*map(str, answers[:-1])} == {"50000"}, answers


def test_two_sessions_that_create_one_table(site: Admin, clients: Clients) -> None:
    """SQL Server's 2714. PostgreSQL finds the duplicate in its catalogue, when the first has committed."""
    name = f"at_once_{next(NUMBERS)}"
    create = f"create table {name} (i int)"
    with (
        clients.ct(AUTHOR, "7.4") as first,
        clients.ct(AUTHOR, "7.4") as second,
        ThreadPoolExecutor() as threads,
    ):
        for session in (first, second):
            assert session.language(f"use {SCHEMA}").errors == []
        assert first.language(f"begin tran {create}").errors == []
        waiting = threads.submit(second.language, create)
        waits = "select from pg_stat_activity where wait_event_type = 'Lock' and usename = %s"
        wait_until(lambda: bool(site.execute(waits, [AUTHOR.user]).fetchall()))
        assert first.language("commit").errors == []
        error = waiting.result().error
        assert (error.number, error.text) == (
            2714,
            f"There is already an object named '{name}' in the database.",
        )
