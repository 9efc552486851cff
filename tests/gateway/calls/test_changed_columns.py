"""Columns that change places during calls: the gateway sends the fields of a row by their places."""

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest

from raw_tds import INT4, NORMAL, REAL, Param, RawClient, dbrpc, read_reply
from servers import RunningServer
from tds_clients import Admin
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("functions")

NUMBERS = count()


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


def row(number: int) -> list[Param]:
    return [Param(INT4, number, "@id"), Param(REAL, 1.0, "@a"), Param(REAL, 2.0, "@b")]


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
BODIES = {
    "a column more": (
        "r := row (r.id, r.a, r.b)::{table}; insert into {table} select r.*;",
        "alter table {table} add c real;",
        "r := row (r.id, r.a, r.b, r.c)::{table}; insert into {table} select r.*;",
    ),
    "a column that is dropped": (
        "insert into {table} (id, a, b) values (r.id, r.a, r.b);",
        "alter table {table} drop b;",
        "insert into {table} (id, a) values (r.id, r.a);",
    ),
    "a column with another name": (
        "insert into {table} (id, a, b) values (r.id, r.a, r.b);",
        "alter table {table} rename b to other;",
        "insert into {table} (id, a, other) values (r.id, r.a, r.other);",
    ),
    "fewer columns than values": (
        "insert into {table} select r.id, r.a, r.b;",
        "alter table {table} drop b;",
        "insert into {table} select r.id, r.a;",
    ),
    "another type": (
        "insert into {table} values (r.id, case when r.b is null then r.a else r.b end, r.b);",
        "alter table {table} alter b type text;",
        "insert into {table} values (r.id, r.a, r.b);",
    ),
    "a helper that is gone": (
        "insert into {table} values (r.id, ringlog.helps_{name}(r.a), r.b);",
        "drop function ringlog.helps_{name};",
        "insert into {table} values (r.id, r.a, r.b);",
    ),
    "a table that is made anew": (
        "insert into {table} values (r.id, r.a, r.b);",
        "drop table {table} cascade; {make}",
        "insert into {table} values (r.id, r.a, r.b);",
    ),
}


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
        return dbrpc(f"ringlog..{name}", [Param(INT4, number, "@id"), Param(REAL, 1.0, "@a")])

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
