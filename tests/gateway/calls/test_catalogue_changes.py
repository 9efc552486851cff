"""The gateway reads only changed entries of its catalogue again, and misses no kind of change."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import NamedTuple

import psycopg
import pymssql
import pytest
from case_tables import cases

import raw_tds
from authors import author_with_schema
from raw_client import RawClient
from raw_replies import read_reply
from raw_tds import INT4, NORMAL, REAL, dbrpc
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
    # nothing else is said of the parameters: a writer would give up the row
    assert {*map(str, answers[:-1])} <= {"50000"}, answers


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


# --- columns that change places during calls: the gateway sends the fields of a row by their places ---

pytestmark = pytest.mark.usefixtures("functions")


class Pair:
    """A table of two columns of one type, and a procedure that joins group commit and has a row argument of
    it: a function, or a procedure of PostgreSQL.
    """

    def __init__(self, admin: Admin, is_function: bool = True) -> None:
        self._admin = admin
        number = next(NUMBERS)
        self.table, self.procedure = f"gateway_test.pair_{number}", f"keep_{number}"
        self.signature = f"ringlog.{self.procedure}({self.table})"
        kind, returns, ends = "procedure", "", ""
        if is_function:
            kind, returns, ends = "function", " returns integer", " return 0;"
        self.execute(
            f"create table {self.table} (id integer, a real, b real); "
            f"alter table {self.table} owner to ringlog_owner; "
            f"create {kind} ringlog.{self.procedure}(r {self.table}){returns} language plpgsql "
            "security definer set search_path = pg_catalog, pg_temp "
            f"as $$ begin insert into {self.table} select r.*;{ends} end $$; "
            f"alter {kind} {self.signature} owner to ringlog_owner; notify ringlog_catalogue"
        )

    def execute(self, text: str) -> None:
        self._admin.execute(text.encode())

    def swap(self) -> str:
        """A change without a notification to the gateway."""
        return (
            f"alter table {self.table} rename a to other; alter table {self.table} rename b to a; "
            f"alter table {self.table} rename other to b"
        )

    def replace(self) -> str:
        """The same."""
        return f"alter table {self.table} drop a; alter table {self.table} add a real"

    def keep(self, client: RawClient, number: int) -> None:
        reply = client.call(f"ringlog..{self.procedure}", row(number))
        assert (reply.errors, reply.statuses) == ([], [0])

    def prepare(self, client: RawClient) -> None:
        """Makes PostgreSQL keep a plan: the first calls are planned individually (choose_custom_plan in its
        src/backend/utils/cache/plancache.c)."""
        for number in range(8):
            self.keep(client, number)
        self.execute(f"truncate {self.table}")

    def stored(self) -> list[tuple[object, ...]]:
        return self._admin.execute(f"select id, a, b from {self.table} order by id".encode()).fetchall()


@pytest.fixture(params=[True, False], ids=["function", "procedure"])
def pair(admin: Admin, request: pytest.FixtureRequest) -> Iterator[Pair]:
    pair = Pair(admin, is_function=request.param)
    yield pair
    pair.execute(f"drop table {pair.table} cascade; notify ringlog_catalogue")


def row(number: int) -> list[raw_tds.Param]:
    return [
        raw_tds.Param(INT4, number, "@id"),
        raw_tds.Param(REAL, 1.0, "@a"),
        raw_tds.Param(REAL, 2.0, "@b"),
    ]


def test_values_reach_the_columns_of_their_names(server: RunningServer, pair: Pair) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(server.writer).login == 5
        pair.prepare(client)
        for number in range(3):
            pair.execute(pair.swap())
            pair.keep(client, number)
    # the earlier rows were dropped with their columns
    assert pair.stored() == [(0, 1.0, 2.0), (1, 2.0, 1.0), (2, 1.0, 2.0)]


def test_a_column_dropped_and_created_again(server: RunningServer, pair: Pair) -> None:
    """The column then has another position."""
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(server.writer).login == 5
        pair.prepare(client)
        for number in range(3):
            pair.execute(pair.replace())
            pair.keep(client, number)
    assert pair.stored() == [(0, None, 2.0), (1, None, 2.0), (2, 1.0, 2.0)]


def test_on_a_connection_of_its_own(server: RunningServer, pair: Pair) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(server.writer).login == 5
        assert client.language("begin tran").errors == []
        for number in range(8):
            pair.keep(client, number)
        assert client.language("commit begin tran").errors == []
        pair.execute(f"truncate {pair.table}; {pair.swap()}")
        pair.keep(client, 1)
        assert client.language("commit").errors == []
    assert pair.stored() == [(1, 1.0, 2.0)]


def test_a_call_that_waits_for_the_change(server: RunningServer, admin: Admin, pair: Pair) -> None:
    def waits() -> bool:
        query = "select from pg_stat_activity where wait_event_type = 'Lock' and query like %s"
        return bool(admin.execute(query, [f"%{pair.procedure}%"]).fetchall())

    with psycopg.connect(server.dsn) as changing, RawClient(server.host, server.port) as client:
        assert client.log_in5(server.writer).login == 5
        pair.prepare(client)
        changing.execute(pair.swap().encode())
        client.send(NORMAL, dbrpc(f"ringlog..{pair.procedure}", row(9)))
        wait_until(waits)
        changing.commit()
        reply = read_reply(client.receive())
        assert (reply.errors, reply.statuses) == ([], [0])
    assert pair.stored() == [(9, 1.0, 2.0)]


# the columns, the body, the change while a call waits in it, and the body afterwards
BODIES = cases(__file__, "bodies")


@pytest.mark.parametrize("change", BODIES)
def test_a_call_that_waits_while_its_procedure_changes(
    server: RunningServer, admin: Admin, change: str
) -> None:
    """Its body is older than the table: PostgreSQL has an error for each kind of change."""
    before, alter, after = BODIES[change]
    name = f"waits_{next(NUMBERS)}"
    table = f"gateway_test.{name}"
    make = (
        f"create table {table} (id integer, a real, b real);"
        f" alter table {table} owner to ringlog_owner; insert into {table} values (0);"
    )

    def function(body: str) -> str:
        return (
            f"create or replace function ringlog.{name}(r {table}) returns integer language plpgsql"
            " security definer set search_path = pg_catalog, pg_temp as $$ begin "
            f"perform from {table} limit 1; {body.format(table=table, name=name)} return 0; end $$;"
            f" alter function ringlog.{name} owner to ringlog_owner; notify ringlog_catalogue;"
        )

    def waits() -> bool:
        query = "select from pg_stat_activity where wait_event_type = 'Lock' and query like %s"
        return bool(admin.execute(query, [f"%{name}%"]).fetchall())

    def call(number: int) -> bytes:
        return dbrpc(f"ringlog..{name}", [raw_tds.Param(INT4, number, "@id"), raw_tds.Param(REAL, 1.0, "@a")])

    admin.execute(
        f"{make} create function ringlog.helps_{name}(real) returns real language plpgsql"
        f" as 'begin return $1; end'; {function(before)}".encode()
    )
    with psycopg.connect(server.dsn) as changing, RawClient(server.host, server.port) as client:
        assert client.log_in5(server.writer).login == 5
        for number in range(1, 8):
            client.send(NORMAL, call(number))
            reply = read_reply(client.receive())
            assert (reply.errors, reply.statuses) == ([], [0])
        changing.execute(f"lock table {table} in access exclusive mode".encode())
        client.send(NORMAL, call(9))
        wait_until(waits)
        changing.execute((alter.format(table=table, name=name, make=make) + function(after)).encode())
        changing.commit()
        reply = read_reply(client.receive())
        assert (reply.errors, reply.statuses) == ([], [0])
    assert admin.execute(f"select a from {table} where id = 9".encode()).fetchall() == [(1.0,)]
    admin.execute(f"drop table {table} cascade; drop function if exists ringlog.helps_{name}".encode())
