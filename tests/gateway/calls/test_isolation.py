"""Neither a procedure's changes of its connection nor its duration affect other sessions."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pymssql
import pytest

from servers import RunningServer
from tds_clients import Admin, Clients
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("functions")

# The state that a connection keeps after a transaction, in one row.
STATE = """
select jsonb_build_object(
  'settings', (select jsonb_object_agg(name, setting) from pg_settings
                where name in ('synchronous_commit', 'DateStyle', 'TimeZone', 'default_transaction_read_only',
                               'work_mem', 'search_path')),
  'leaked timeout', current_setting('statement_timeout') = '1ms',
  'advisory locks', (select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'),
  'channels', (select count(*) from pg_listening_channels()),
  'cursors', (select count(*) from pg_cursors where is_holdable),
  'prepared', (select count(*) from pg_prepared_statements where from_sql),
  'temporary tables', (select count(*) from pg_class where relnamespace = pg_my_temp_schema()),
  'user', current_user)
"""

LEAKS = {
    "synchronous_commit": "perform set_config('synchronous_commit', 'off', false)",
    "DateStyle": "perform set_config('DateStyle', 'SQL, DMY', false)",
    "TimeZone": "perform set_config('TimeZone', 'Asia/Tokyo', false)",
    "statement_timeout": "perform set_config('statement_timeout', '1', false)",
    "read only": "perform set_config('default_transaction_read_only', 'on', false)",
    "work_mem": "perform set_config('work_mem', '64kB', false)",
    "advisory lock": "perform pg_advisory_lock(4711)",
    "channel": "execute 'listen somewhere'",
    "cursor": "execute 'declare kept cursor with hold for select 1'",
    "prepared statement": "execute 'prepare kept as select 1'",
    "temporary table": "execute 'create temporary table journal as select 1 as id'",
    "everything discarded": "execute 'deallocate all'",
}


def define(admin: Admin, name: str, body: str, arguments: str = "", schema: str = "ringlog") -> None:
    """A function that joins group commit if it is in schema ringlog, as the installer's are."""
    admin.execute(
        f"""
        create or replace function {schema}.{name}({arguments}) returns integer language plpgsql
        security definer set search_path = pg_catalog, pg_temp as $$ begin {body}; return 0; end $$;
        alter function {schema}.{name} owner to ringlog_owner;
        revoke execute on function {schema}.{name} from public;
        grant execute on function {schema}.{name} to daq_writer
        """.encode()
    )


@pytest.fixture(scope="module", autouse=True)
def procedures(admin: Admin, functions: None) -> Iterator[None]:
    admin.execute("create table gateway_test.found (place serial, state jsonb, wal pg_lsn)")
    admin.execute("alter table gateway_test.found owner to ringlog_owner")
    define(admin, "look", f"insert into gateway_test.found (state) {STATE}", schema="gateway_test")
    for number, leak in enumerate(LEAKS.values()):
        define(admin, f"leak_{number}", leak, schema="gateway_test")
    define(
        admin, "enter_beside", "insert into gateway_test.found (state) values (to_jsonb(entry))", "entry text"
    )
    define(admin, "careful", "insert into gateway_test.found (wal) values (pg_current_wal_insert_lsn())")
    admin.execute("notify ringlog_catalogue")
    yield
    admin.execute("drop table gateway_test.found; drop function ringlog.enter_beside, ringlog.careful")
    for name in ("look", *(f"leak_{number}" for number, _ in enumerate(LEAKS))):
        admin.execute(f"drop function gateway_test.{name}".encode())


def found(admin: Admin) -> list[Any]:
    return [
        state for (state,) in admin.execute("select state from gateway_test.found order by place").fetchall()
    ]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_procedure_leaves_nothing_behind_for_other_sessions(
    clients: Clients, admin: Admin, leak: str
) -> None:
    """Also sessions of the same login."""
    number = list(LEAKS).index(leak)
    admin.execute("truncate gateway_test.found")
    with clients.pymssql(clients.server.writer) as one, clients.pymssql(clients.server.writer) as other:
        other.cursor().callproc("look")
        one.cursor().callproc(f"leak_{number}")
        other.cursor().callproc("look")
    before, after = found(admin)
    assert before == after


def test_an_acknowledged_call_is_on_the_disk(clients: Clients, admin: Admin) -> None:
    """Although the gateway's role requests commits that do not wait for it."""
    admin.execute("alter role ringlog_gateway set synchronous_commit = off; notify ringlog_catalogue")
    try:
        with clients.pymssql(clients.server.writer) as connection:
            for _ in range(30):
                admin.execute("truncate gateway_test.found")
                connection.cursor().callproc("careful")
                (is_flushed,) = admin.execute(
                    "select pg_current_wal_flush_lsn() > wal from gateway_test.found"
                ).fetchone() or (None,)
                assert is_flushed is True
    finally:
        admin.execute("alter role ringlog_gateway reset synchronous_commit; notify ringlog_catalogue")


def test_a_locked_table_delays_only_its_own_callers(clients: Clients, admin: Admin) -> None:
    """Although their procedures share transactions."""
    admin.execute("truncate gateway_test.journal, gateway_test.found")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(8))
        connections = [stack.enter_context(clients.pymssql(clients.server.writer)) for _ in range(8)]

        def enter(place: int) -> None:
            connections[place].cursor().callproc("enter", (f"locked {place}",))

        def enter_beside(place: int) -> None:
            for number in range(50):
                connections[place].cursor().callproc("enter_beside", (f"{place} {number}",))

        holder = stack.enter_context(psycopg.connect(clients.server.dsn))
        holder.execute("lock table gateway_test.journal in access exclusive mode")
        beside = [pool.submit(enter_beside, place) for place in range(4)]
        locked = [pool.submit(enter, place) for place in range(4, 8)]
        for others in beside:
            others.result(60)
        assert not any(call.done() for call in locked)
        holder.rollback()
        for call in locked:
            call.result(60)
        connections[0].cursor().callproc("enter", ("afterwards",))
    entries = admin.execute("select entry from gateway_test.journal").fetchall()
    assert sorted(entries) == [("afterwards",), *((f"locked {place}",) for place in range(4, 8))]
    assert sorted(found(admin)) == sorted(f"{place} {number}" for place in range(4) for number in range(50))


def test_calls_that_take_long_do_not_wait_for_one_another(clients: Clients, admin: Admin) -> None:
    """After one slow call of the procedure each call is acknowledged at its own end. All share a
    connection."""
    admin.execute("truncate gateway_test.journal")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(4))
        connections = [stack.enter_context(clients.pymssql(clients.server.writer)) for _ in range(4)]

        def enter(connection: pymssql.Connection, place: int) -> None:
            connection.cursor().callproc("enter_slowly", (f"slow {place}", 0.2))

        enter(connections[0], 4)
        for call in [pool.submit(enter, *pair) for pair in zip(connections, range(4), strict=True)]:
            call.result(60)
    transactions = admin.execute(
        "select count(*), count(distinct xmin::text) from gateway_test.journal where entry like 'slow%'"
    ).fetchone()
    assert transactions == (5, 5)


def test_a_new_connection_takes_the_time_it_needs(
    clients: Clients, admin: Admin, server: RunningServer
) -> None:
    """Its first queries may take longer than the limit of a call, as on a busy machine."""
    admin.execute("truncate gateway_test.journal")
    own = "application_name = 'ringlog group commit'"
    # while PostgreSQL rebuilds its catalogue's caches a login waits too, and has no application name yet
    waiting = (
        "select count(*) from pg_locks where relation = 'pg_proc'::regclass and not granted"
        " and clock_timestamp() - waitstart > interval '0.3 s'"
    )

    def count(blocking: psycopg.Connection[Any], query: str) -> int:
        blocking.execute("select pg_stat_clear_snapshot()")
        [(number,)] = blocking.execute(query).fetchall()
        return int(number)

    with (
        clients.pymssql(clients.server.writer) as connection,
        psycopg.connect(server.dsn) as blocking,
        ThreadPoolExecutor(1) as pool,
    ):
        connection.cursor().callproc("enter", ("on the connection before",))
        wait_until(lambda: count(blocking, f"select count(*) from pg_stat_activity where {own}") > 0)
        blocking.execute("lock table pg_catalog.pg_proc in access exclusive mode")
        query = f"select pid, pg_terminate_backend(pid)::text from pg_stat_activity where {own}"
        ended = ", ".join(str(pid) for pid, _ in blocking.execute(query).fetchall())
        # the gateway opens others at once
        left = f"select count(*) from pg_stat_activity where pid in ({ended})"
        wait_until(lambda: count(blocking, left) == 0)
        calling = pool.submit(connection.cursor().callproc, "enter", ("on a new one",))
        wait_until(lambda: calling.done() or count(blocking, waiting) > 0)
        blocking.rollback()
        calling.result()
    found = admin.execute("select entry from gateway_test.journal order by id").fetchall()
    assert found == [("on the connection before",), ("on a new one",)]
