"""Fast and slow readers delay neither writers nor other readers."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pymssql
import pytest

import raw_tds
from raw_tds import NORMAL, RawClient, language
from servers import RunningServer, ringlog
from tds_clients import PLAIN, Admin, Clients, errors_of, rows_of
from waiting import wait_until
from writing import Writers

pytestmark = pytest.mark.usefixtures("functions")

ENDLESS = "select generate_series(1, 2000000000) as endless_row, cast('twelve bytes' as char(200)) as words"


@pytest.fixture
def writers(clients: Clients) -> Iterator[Writers]:
    """Two writers that write continuously."""
    found = Writers(clients, "put_sr_rf", datetime(2031, 1, 1), rows=10)
    with found.running(2):
        found.wait_for_more(5)
        yield found
    assert found.errors == []


@pytest.fixture
def slow_readers(server: RunningServer) -> Iterator[list[RawClient]]:
    """More readers than may stream at the same time. Each has read a packet of an endless result set."""
    with ExitStack() as stack:
        readers = []
        for _ in range(2 * (os.cpu_count() or 1) + 2):
            reader = RawClient(server.host, server.port, timeout=100)
            stack.callback(reader.socket.close)
            # a small window, so that the server soon cannot send
            reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.log_in5(PLAIN, packet_size=512)
            reader.send(NORMAL, language(ENDLESS))
            reader.socket.recv(512)
            readers.append(reader)
        yield readers


def backends(admin: Admin, words: str) -> list[int]:
    """The processes of PostgreSQL that run a query, or ran it last."""
    found = admin.execute(
        "select pid from pg_stat_activity where query like %s and pid <> pg_backend_pid()", [f"%{words}%"]
    )
    return [int(str(pid)) for (pid,) in found.fetchall()]


def nice_of(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


def test_committing_threads_have_priority_and_readers_have_not(
    server: RunningServer, clients: Clients, admin: Admin
) -> None:
    shown = ringlog("status", "--data", server.data).stdout
    priority = re.search(r"^writers first, (at nice (-\d+)|by short slices alone)$", shown, re.M)
    assert priority is not None, shown
    usual = nice_of(os.getpid())
    first = min(usual, int(priority[2])) if priority[2] else usual
    with clients.pymssql(server.reader) as reader, clients.pymssql(server.writer) as writer:
        with reader.cursor() as cursor:
            cursor.execute("select count(*) as a_reader from log..sr_rf")
            cursor.fetchall()
        (reading,) = wait_until(lambda: backends(admin, "a_reader"))
        assert nice_of(reading) == usual
        writer.cursor().callproc("put_sr_rf", (1, datetime(2030, 1, 1), 1.0, 1))
        committing = [
            int(str(pid))
            for (pid,) in admin.execute(
                "select pid from pg_stat_activity where application_name = 'ringlog group commit'"
            ).fetchall()
        ]
        assert {nice_of(pid) for pid in committing} == {first}
        if priority[2] and Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() == "1":
            for pid in committing:
                group = Path(f"/proc/{pid}/autogroup")
                wait_until(
                    lambda group=group: group.read_text().endswith(f" nice {priority[2]}\n"), group.read_text
                )


@pytest.mark.parametrize("own_session", [True, False])
def test_a_gateway_with_its_own_session_gives_it_priority(own_session: bool) -> None:
    group = Path("/proc/self/autogroup")
    usual = group.read_text() if group.exists() else ""
    program = (
        "from pathlib import Path; from ringlog.gateway import Gateway\n"
        "try: Gateway('host=/nowhere dbname=none user=nobody password=none')\n"
        "except (ValueError, OSError): pass\n"
        "group = Path('/proc/self/autogroup'); print(group.read_text() if group.exists() else '', end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        start_new_session=own_session,
        check=True,
    )
    may = os.geteuid() == 0 and usual
    nice = -10 if own_session and may else re.sub(r".* nice ", "", usual).strip()
    assert done.stdout.strip().endswith(f" nice {nice}" if usual else "")


def test_writers_and_other_readers_continue_despite_stalled_readers(
    clients: Clients, admin: Admin, writers: Writers, slow_readers: list[RawClient]
) -> None:
    wait_until(lambda: len(backends(admin, "endless_row")) == len(slow_readers))
    with clients.pymssql(clients.server.reader) as reader, reader.cursor() as cursor:
        # a byte at a time, from all of them
        for _ in range(20):
            for slow in slow_readers:
                assert slow.socket.recv(1)
            writers.wait_for_more(1)
        cursor.execute("select generate_series(1, 20000), cast('twelve bytes' as char(200))")
        assert len(cursor.fetchall()) == 20000
        writers.wait_for_more(10)
    assert len(backends(admin, "endless_row")) == len(slow_readers)


def test_writers_continue_during_a_storm_of_logins(
    server: RunningServer, clients: Clients, admin: Admin, writers: Writers
) -> None:
    with ExitStack() as stack:
        storm = [RawClient(server.host, server.port, timeout=100) for _ in range(200)]
        for client in storm:
            stack.callback(client.socket.close)
            client.send(raw_tds.LOGIN5, raw_tds.login5(PLAIN))
        writers.wait_for_more(50)
        answers = [client.receive() for client in storm]
        assert [raw_tds.read_reply(answer).login for answer in answers] == [5] * len(storm)
        writers.wait_for_more(5)


def test_writers_continue_during_catalogue_queries_and_reports(clients: Clients, writers: Writers) -> None:
    def ask(text: str) -> int:
        with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
            return len(rows_of(cursor, text))

    texts = [
        "exec sp_sysmon '00:00:01'",
        "exec sp_columns '%'",
        "select * from information_schema.columns",
        "exec sp_who",
    ]
    with ThreadPoolExecutor(len(texts)) as pool:
        asked = [pool.submit(ask, text) for text in texts]
        writers.wait_for_more(50)
        assert all(answer.result(100) > 0 for answer in asked)


def test_a_login_reads_no_more_rows_than_it_may(clients: Clients, admin: Admin) -> None:
    admin.execute("alter role plain set \"tsql.row_limit\" = '1000'")
    try:
        with clients.pymssql(PLAIN) as connection, connection.cursor() as cursor:
            cursor.execute("select generate_series(1, 1000)")
            assert len(cursor.fetchall()) == 1000
            cursor.execute("select generate_series(1, 1001)")
            with pytest.raises(pymssql.Error) as refused:
                cursor.fetchall()
            error = errors_of(refused.value)
            assert "This login may read 1000 rows by one statement" in error.text
            assert rows_of(cursor, "select count(*) from generate_series(1, 1001) as g (n)") == [(1001,)]
    finally:
        admin.execute('alter role plain reset "tsql.row_limit"')
    with clients.pymssql(PLAIN) as connection, connection.cursor() as cursor:
        cursor.execute("select generate_series(1, 1001)")
        assert len(cursor.fetchall()) == 1001
