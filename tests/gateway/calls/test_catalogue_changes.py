"""The gateway reads only changed entries of its catalogue again, and misses no kind of change."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg
import pymssql
import pytest
from case_tables import cases
from talks import param

import raw_tds
from authors import author_with_schema
from raw_client import RawClient
from raw_replies import read_reply
from raw_tds import INT4, NORMAL, REAL, dbrpc
from servers import Login, RunningServer
from tds_clients import Admin, Clients, CtClient
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


def answer(client: CtClient, name: str, params: Sequence[str] = (), first: str = "") -> object:
    """The rows or the return status of a call, or the number of its error; `first` is a text before it."""
    if first:
        client.language(first)
    found = client.call(name, [*map(param, params)])
    if first:
        client.language("set rowcount 0")
    return found.error.number if found.errors else (found.rows or found.statuses)


# `make`, the `call` with its parameters, its answer `before` the `change` and `after` it, and `other`, the
# call that has the first answer then
CHANGES = cases(__file__, "changes")


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(site: Admin, client: CtClient, change: str) -> None:
    case = CHANGES[change]
    name = f"changing_{next(NUMBERS)}"

    def execute(text: str) -> None:
        text = text.replace("{name}", name).replace("{shared}", SHARED)
        site.execute(f"set search_path = {SCHEMA}; {text}; notify ringlog_catalogue".encode())

    def called(call: str) -> object:
        return answer(client, call.replace("{name}", name), case.get("with", ()), case.get("first", ""))

    found: list[object] = []

    def is_answered(wanted: object) -> bool:
        found[:] = [called(case["call"])]
        return found == [wanted]

    execute(case["make"])
    wait_until(lambda: is_answered(case["before"]), lambda: found)
    execute(f"begin; {case['change']}; rollback")
    assert called(case["call"]) == case["before"]
    execute(case["change"])
    wait_until(lambda: is_answered(case["after"]), lambda: found)
    if "other" in case:
        assert called(case["other"]) == case["before"]


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
    given = ["int = 7", "int = 8"]
    wait_until(lambda: answer(client, "quiet", given) == 8144)
    site.execute(f"drop function {SCHEMA}.quiet; {make.format('a integer, b integer')}".encode())
    site.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where application_name like 'ringlog catalogue%'"
    )
    answers: list[object] = []

    def is_known() -> bool:
        answers.append(answer(client, "quiet", given))
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


@pytest.mark.parametrize(
    ("change", "stored"),
    [
        (Pair.swap, [(0, 1.0, 2.0), (1, 2.0, 1.0), (2, 1.0, 2.0)]),
        # a column that is created again has another position; the earlier values were dropped with it
        (Pair.replace, [(0, None, 2.0), (1, None, 2.0), (2, 1.0, 2.0)]),
    ],
)
def test_values_reach_the_columns_of_their_names(
    server: RunningServer, pair: Pair, change: Callable[[Pair], str], stored: list[tuple[object, ...]]
) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(server.writer).login == 5
        pair.prepare(client)
        for number in range(3):
            pair.execute(change(pair))
            pair.keep(client, number)
    assert pair.stored() == stored


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
