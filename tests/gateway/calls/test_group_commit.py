"""Calls that share a transaction: each has the same result and rights as alone."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pymssql
import pytest

from authors import author_with_schema
from raw_client import RawClient
from raw_replies import read_reply
from raw_tds import FLOAT, NORMAL, VARCHAR, Param, dbrpc
from servers import Login, RunningServer, ringlog
from tds_clients import Admin, Clients, errors_of
from waiting import stopped, wait_until

pytestmark = pytest.mark.usefixtures("functions")

OK = 0
OTHER_WRITER = Login("other_writer", "other")


@pytest.fixture(scope="module")
def writers(server: RunningServer, admin: Admin) -> Iterator[tuple[Login, Login]]:
    """Two logins that may write."""
    added = ringlog(
        *("user", "add", OTHER_WRITER.user, "--writer", "--password-stdin", "--data", server.data),
        stdin=OTHER_WRITER.password,
    )
    assert added.returncode == 0, added.stderr
    yield server.writer, OTHER_WRITER
    admin.execute("drop role other_writer")


@pytest.fixture(autouse=True)
def empty_journal(admin: Admin) -> None:
    admin.execute("truncate gateway_test.journal")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(40) as pool:
        yield pool


def number_of(connection: pymssql.Connection, procedure: str, *params: Any) -> int:
    """Calls and returns the number of the error, 0 for none."""
    try:
        connection.cursor().callproc(procedure, params)
    except pymssql.Error as error:
        return errors_of(error).number
    return OK


def test_a_group_is_one_transaction_and_a_bad_call_affects_only_its_sender(
    server: RunningServer, admin: Admin, writers: tuple[Login, Login]
) -> None:
    """While one call runs, the others wait and then run together."""
    with ExitStack() as stack:

        def connect(login: Login) -> RawClient:
            client = stack.enter_context(RawClient(server.host, server.port))
            assert client.log_in5(login).login == 5
            return client

        first, *rest = [connect(writers[i % 2]) for i in range(21)]
        reader = connect(server.reader)

        def slowly(entry: str, seconds: float) -> bytes:
            return dbrpc("enter_slowly", [Param(VARCHAR, entry), Param(FLOAT, seconds)])

        def answered(client: RawClient) -> int:
            """The number of the error, 0 for none."""
            reply = read_reply(client.receive())
            return reply.errors[0].number if reply.errors else OK

        def together(entries: list[str], *others: tuple[RawClient, str]) -> list[int]:
            first.send(NORMAL, slowly(f"first of {entries[0]}", 0.5))
            sleeping = "select pid from pg_stat_activity where wait_event = 'PgSleep'"
            [(pid,)] = wait_until(lambda: admin.execute(sleeping).fetchall())
            calls = [*zip(rest, entries, strict=True), *others]
            # it is not over before all have been sent
            with stopped(int(str(pid))):
                for client, entry in calls:
                    client.send(NORMAL, slowly(entry, 0.0))
            assert answered(first) == OK
            return [answered(client) for client, _ in calls]

        good = [f"good {i}" for i in range(20)]
        assert together(good) == [OK] * 20
        transactions = admin.execute(
            "select count(distinct xmin::text) from gateway_test.journal where entry like 'good%'"
        ).fetchone()
        assert transactions is not None
        # on a busy machine not all are read at once, and what has taken long runs alone
        assert 1 <= transactions[0] < len(good) / 2
        callers = admin.execute(
            "select entry, caller from gateway_test.journal where entry like 'good%'"
        ).fetchall()
        # rest[0] is the second connection
        assert set(callers) == {
            (entry, f"ringlog_gateway {writers[(i + 1) % 2].user}") for i, entry in enumerate(good)
        }

        mixed = [f"mixed {i}" if i % 4 else "bad" for i in range(20)]
        # ASE: a check constraint is 548
        expected = [548 if entry == "bad" else OK for entry in mixed]
        assert together(mixed, (reader, "forbidden")) == [*expected, 229]
        stored = admin.execute(
            "select entry from gateway_test.journal where entry like 'mixed%' or entry = 'forbidden'"
        ).fetchall()
        assert sorted(stored) == sorted((entry,) for entry in mixed if entry != "bad")


def test_many_writers_at_once(clients: Clients, admin: Admin, pool: ThreadPoolExecutor) -> None:
    """For rows within and outside the ring from 24 clients, each row within is stored exactly once."""
    start = datetime(2031, 1, 1)

    def write(writer: int) -> Counter[int]:
        numbers: Counter[int] = Counter()
        with clients.pymssql(clients.server.writer, version="7.1" if writer % 2 else "7.4") as connection:
            for i in range(40):
                seq_no = 11 if i % 8 == writer % 8 else 1 + i % 10
                at = start + timedelta(minutes=writer, milliseconds=10 * i)
                got = number_of(connection, "put_every_type", seq_no, at, i, i, i, i, i, 1, str(writer))
                assert got == (547 if seq_no == 11 else OK)
                numbers[got] += 1
        return numbers

    numbers = sum(pool.map(write, range(24)), Counter[int]())
    assert numbers == {OK: 24 * 35, 547: 24 * 5}
    logged = admin.execute(
        "select a_varchar, count(*), count(distinct (time, seq_no)), min(seq_no), max(seq_no) "
        "from log.every_type where time >= '2031-01-01' and time < '2031-01-02' group by 1"
    ).fetchall()
    assert sorted(logged) == sorted((str(writer), 35, 35, 1, 10) for writer in range(24))
    newest = admin.execute("select max(time) from online.every_type").fetchone()
    logged_newest = admin.execute("select max(time) from log.every_type").fetchone()
    assert newest == logged_newest


def test_a_login_without_rights_among_writers_is_always_refused(
    clients: Clients, admin: Admin, writers: tuple[Login, Login], pool: ThreadPoolExecutor
) -> None:
    def call(login: Login, index: int) -> Counter[int]:
        with clients.pymssql(login) as connection:
            return Counter(number_of(connection, "enter", f"{login.user} {index} {i}") for i in range(30))

    logins = [*writers * 5, *[clients.server.reader] * 5]
    answers = list(pool.map(call, logins, range(len(logins))))
    assert answers == [{OK: 30}] * 10 + [{229: 30}] * 5
    entries = admin.execute("select entry, caller from gateway_test.journal").fetchall()
    assert len(entries) == 300
    for entry, caller in entries:
        assert caller == f"ringlog_gateway {str(entry).split()[0]}"


def test_a_login_that_the_gateway_may_not_act_for_uses_its_own_connection(
    clients: Clients, admin: Admin
) -> None:
    """For example one that was created by hand: it has its rights nevertheless."""
    admin.execute("create role by_hand login password 'made' in role daq_writer")
    with clients.pymssql(Login("by_hand", "made")) as connection:
        assert number_of(connection, "enter", "alone") == OK
    entries = admin.execute("select entry, caller from gateway_test.journal").fetchall()
    assert entries == [("alone", "by_hand none")]
    admin.execute("drop role by_hand")


def test_revoked_rights_apply_from_the_next_call(clients: Clients, admin: Admin) -> None:
    admin.execute(
        "create role short_lived login password 'here' in role daq_writer; "
        "grant short_lived to ringlog_gateway with inherit false, set true"
    )
    with clients.pymssql(Login("short_lived", "here")) as connection:
        assert number_of(connection, "enter", "before") == OK
        admin.execute("revoke daq_writer from short_lived")
        assert number_of(connection, "enter", "after") == 229
        admin.execute("grant daq_writer to short_lived")
        assert number_of(connection, "enter", "again") == OK
    assert admin.execute("select count(*) from gateway_test.journal").fetchone() == (2,)
    admin.execute("drop role short_lived")


def test_a_login_dropped_and_created_again(clients: Clients, admin: Admin, server: RunningServer) -> None:
    """Calls use the role's oid: its name may belong to another role later."""
    login = Login("comes_back", "once")

    def add() -> None:
        words = ("user", "add", login.user, "--writer", "--password-stdin", "--data", server.data)
        added = ringlog(*words, stdin=login.password)
        assert added.returncode == 0, added.stderr

    add()
    with clients.pymssql(login) as before:
        assert number_of(before, "put_sr_rf", 1, datetime(2033, 1, 1), 1.0, 1) == OK
        admin.execute("drop role comes_back")
        add()
        with clients.pymssql(login) as after:
            assert number_of(after, "put_sr_rf", 2, datetime(2033, 1, 1, 1), 1.0, 1) == OK
        with pytest.raises(pymssql.Error) as error:
            before.cursor().callproc("put_sr_rf", (3, datetime(2033, 1, 1, 2), 1.0, 1))
        refusal = errors_of(error.value)
        assert refusal.number == 18456
        assert refusal.text.startswith("The login of this session is no longer there: connect again.")
        assert number_of(before, "put_sr_rf", 3, datetime(2033, 1, 1, 2), 1.0, 1) == 18456
    assert admin.execute("select count(*) from log.sr_rf where time >= '2033-01-01'").fetchone() == (2,)
    admin.execute("drop role comes_back")


# --- neither a procedure's changes of its connection nor its duration affect other sessions ---


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
    define(admin, "served_by", "return pg_backend_pid()")
    admin.execute("notify ringlog_catalogue")
    yield
    admin.execute(
        "drop table gateway_test.found; drop function ringlog.enter_beside, ringlog.careful,"
        " ringlog.served_by"
    )
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

        def enter(index: int) -> None:
            connections[index].cursor().callproc("enter", (f"locked {index}",))

        def enter_beside(index: int) -> None:
            for number in range(50):
                connections[index].cursor().callproc("enter_beside", (f"{index} {number}",))

        holder = stack.enter_context(psycopg.connect(clients.server.dsn))
        holder.execute("lock table gateway_test.journal in access exclusive mode")
        beside = [pool.submit(enter_beside, index) for index in range(4)]
        locked = [pool.submit(enter, index) for index in range(4, 8)]
        for others in beside:
            others.result(60)
        assert not any(call.done() for call in locked)
        holder.rollback()
        for call in locked:
            call.result(60)
        connections[0].cursor().callproc("enter", ("afterwards",))
    entries = admin.execute("select entry from gateway_test.journal").fetchall()
    assert sorted(entries) == [("afterwards",), *((f"locked {index}",) for index in range(4, 8))]
    assert sorted(found(admin)) == sorted(f"{index} {number}" for index in range(4) for number in range(50))


def test_calls_that_take_long_do_not_wait_for_one_another(clients: Clients, admin: Admin) -> None:
    """After one slow call of the procedure each call is acknowledged at its own end. All share a
    connection."""
    admin.execute("truncate gateway_test.journal")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(4))
        connections = [stack.enter_context(clients.pymssql(clients.server.writer)) for _ in range(4)]

        def enter(connection: pymssql.Connection, index: int) -> None:
            connection.cursor().callproc("enter_slowly", (f"slow {index}", 0.2))

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


def test_definitions_of_a_site_keep_the_connections(clients: Clients, admin: Admin) -> None:
    """Its procedures and functions are not called there, so no plan of a writer's call is older than them."""
    author = Login("group_author", "author")
    definitions = (
        "alter procedure defined as select 2 as a",
        "create procedure other as goto there there: select 3 as a",
        "create function own() returns int as begin return 1 end",
        "exec sp_rename 'other', 'another'",
        "drop function own",
        "drop procedure another",
    )
    with (
        author_with_schema(clients.server, author, "group_author", writes=True),
        clients.pymssql(author, database="group_author") as connection,
        connection.cursor() as cursor,
    ):

        def served_by() -> int:
            cursor.callproc("ringlog..served_by")
            return int(cursor.returnvalue)

        # notifications from before have been processed then
        cursor.execute("create procedure defined as select 1 as a")
        before = served_by()
        for definition in definitions:
            cursor.execute(definition)
            assert served_by() == before, definition
        admin.execute("notify ringlog_catalogue")
        wait_until(lambda: served_by() != before)
