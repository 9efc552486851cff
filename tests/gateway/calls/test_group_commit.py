"""Calls that share a transaction: each has the same result and rights as alone."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

import pymssql
import pytest

from servers import Login, RunningServer, ringlog
from tds_clients import Admin, Clients, errors_of
from waiting import one_sleeps, wait_until

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
    clients: Clients, admin: Admin, writers: tuple[Login, Login], pool: ThreadPoolExecutor
) -> None:
    """While one call sleeps, the others wait and then run together."""
    with ExitStack() as stack:

        def connect(login: Login) -> pymssql.Connection:
            return stack.enter_context(clients.pymssql(login))

        first, *rest = [connect(writers[i % 2]) for i in range(21)]
        reader = connect(clients.server.reader)

        def together(entries: list[str], *others: tuple[pymssql.Connection, str]) -> list[Future[int]]:
            entry = f"first of {entries[0]}"
            sleeping = pool.submit(number_of, first, "enter_slowly", entry, 0.5)
            wait_until(lambda: sleeping.done() or one_sleeps(admin))
            calls = [(rest[i], entry) for i, entry in enumerate(entries)] + list(others)
            answers = [pool.submit(number_of, who, "enter_slowly", entry, 0.0) for who, entry in calls]
            assert sleeping.result() == OK
            return answers

        good = [f"good {i}" for i in range(20)]
        assert [answer.result() for answer in together(good)] == [OK] * 20
        transactions = admin.execute(
            "select count(distinct xmin::text) from gateway_test.journal where entry like 'good%'"
        ).fetchone()
        assert transactions is not None
        # on a busy machine not all arrive while the first one sleeps
        assert 1 <= transactions[0] < len(good) / 2
        callers = admin.execute(
            "select entry, caller from gateway_test.journal where entry like 'good%'"
        ).fetchall()
        # rest[0] is the second connection
        assert set(callers) == {
            (entry, f"ringlog_gateway {writers[(i + 1) % 2].user}") for i, entry in enumerate(good)
        }

        mixed = [f"mixed {i}" if i % 4 else "bad" for i in range(20)]
        answers = together(mixed, (reader, "forbidden"))
        expected = [547 if entry == "bad" else OK for entry in mixed]
        assert [answer.result() for answer in answers] == [*expected, 229]
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
    def call(login: Login, place: int) -> Counter[int]:
        with clients.pymssql(login) as connection:
            return Counter(number_of(connection, "enter", f"{login.user} {place} {i}") for i in range(30))

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
