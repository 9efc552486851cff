"""Login: every dialect, every client, right and wrong, whole and in pieces."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pymssql
import pytest

from raw_client import RawClient
from raw_tds import LOGIN7, PRELOGIN, login7, prelogin
from servers import Login, RunningServer
from tds_clients import PACKET_SIZES, PLAIN, SEVENS, VERSIONS, Admin, Clients, errors_of, rows_of
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("functions")


@pytest.mark.parametrize("version", SEVENS)
def test_pymssql_logs_in(clients: Clients, version: str) -> None:
    with clients.pymssql(clients.server.reader, version=version) as connection, connection.cursor() as cursor:
        cursor.execute("select 1 as one, current_user as me, current_schema() as here")
        assert cursor.fetchall() == [(1, "reader", "online")]


@pytest.mark.parametrize("version", VERSIONS)
def test_tsql_logs_in(clients: Clients, version: str) -> None:
    answer = clients.tsql(clients.server.reader, "select current_user, 1 + 1", section=version)
    assert answer.rows == [["", ""], ["reader", "2"]]
    assert answer.errors == []


@pytest.mark.parametrize("version", VERSIONS)
def test_ct_library_logs_in(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        assert client.language("select current_user as me").rows == [["writer"]]


@pytest.mark.parametrize(
    ("version", "size"),
    [("5.0", size) for size in PACKET_SIZES] + [(v, s) for v in ("7.1", "7.4") for s in (4096, 32768)],
)
def test_packet_sizes(clients: Clients, version: str, size: int) -> None:
    """A request and an answer of several packets pass at every size."""
    words = "0123456789" * 400
    with clients.ct(clients.server.reader, f"{version} {size}") as client:
        assert client.language(f"select '{words}' as words").rows == [[words]]
        assert client.language("select @@packet_size").rows == [[str(size)]]


@pytest.mark.parametrize("size", [512, 4096, 32767])
def test_the_packet_size_is_sent_even_if_it_is_the_requested_one(server: RunningServer, size: int) -> None:
    """As SQL Server does (MS-TDS, 4.2 "Login Response": ENVCHANGE of type 4): mssql-python requires it."""
    with RawClient(server.host, server.port) as client:
        reply = client.log_in7(server.reader, packet_size=size)
    announced = str(size).encode("utf-16-le")
    assert bytes([4, len(announced) // 2]) + announced in reply


FAILING = [
    ("reader", "wrong"),
    ("reader", ""),
    ("reader", "write-Ω-1"),
    ("nobody", "read-Ω-2"),
    ("reader\r' or 1=1", "x"),
    # roles that are not logins of users
    ("daq_writer", ""),
    ("ringlog_owner", "ringlog_owner"),
    ("ringlog_gateway", ""),
    ("postgres", "postgres"),
]


def test_failed_logins(clients: Clients) -> None:
    """All get the same message; each is answered after a pause, so they are tried simultaneously."""
    cases = [(version, *login) for version in VERSIONS for login in FAILING]
    with ThreadPoolExecutor(len(cases)) as pool:
        answers = list(pool.map(lambda case: clients.ct_login(Login(*case[1:]), case[0]), cases))
    for (version, user, _), answer in zip(cases, answers, strict=True):
        assert answer.end == "no login"
        if version == "5.0":
            assert answer.error == (4002, 14, "Login failed.")
        else:
            assert answer.error == (18456, 14, f"Login failed for user '{user}'.")


def test_a_failed_login_with_pymssql(clients: Clients) -> None:
    with pytest.raises(pymssql.OperationalError) as refused:
        clients.pymssql(Login("reader", "wrong"))
    assert errors_of(refused.value).severity == 14


@pytest.mark.parametrize(("user", "password"), [("reader", "wrong"), ("reader", ""), ("nobody", "read-Ω-2")])
def test_a_failed_login_at_5(clients: Clients, user: str, password: str) -> None:
    answer = clients.ct_login(Login(user, password))
    assert answer.end == "no login"
    assert answer.error[:] == (4002, 14, "Login failed.")


@pytest.mark.parametrize(("version", "number"), [("5.0", 4002), ("7.4", 18456)])
@pytest.mark.parametrize("role", ["daq_writer", "ringlog_owner", "ringlog_gateway", "postgres"])
def test_roles_that_are_not_logins_of_people(clients: Clients, version: str, number: int, role: str) -> None:
    answer = clients.ct_login(Login(role, "postgres"), version)
    assert answer.end == "no login"
    assert answer.error.number == number


def test_a_database_is_a_schema(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader, database="log") as connection, connection.cursor() as cursor:
        assert rows_of(cursor, "select current_schema()") == [("log",)]


@pytest.mark.parametrize(("database", "there"), [("master", "online"), ("ringlog", "ringlog")])
def test_master_is_the_default_database(clients: Clients, database: str, there: str) -> None:
    with clients.pymssql(clients.server.reader, database=database) as connection:
        cursor = connection.cursor()
        assert rows_of(cursor, "select current_schema(), db_name()") == [(there, there)]
        cursor.execute("use log")
        cursor.execute(f"use {database}")
        assert rows_of(cursor, "select current_schema()") == [(there,)]


def test_the_catalogue_of_master(clients: Clients) -> None:
    """`master..sysobjects` is what `use master select … from sysobjects` reads (FreeTDS odbc, norowset)."""
    with clients.pymssql(clients.server.reader, database="log") as connection, connection.cursor() as cursor:
        for named in ("master..sysobjects", "master.dbo.sysobjects", "master.sys.objects"):
            cursor.execute(f"select name from {named} where name = 'sr_rf' union all select db_name()")
            assert cursor.fetchall() == [("sr_rf",), ("log",)], named


@pytest.mark.parametrize("version", SEVENS)
def test_a_database_that_does_not_exist_at_7(clients: Clients, version: str) -> None:
    answer = clients.tsql(clients.server.reader, "select 1", section=version, database="nowhere")
    # both of SQL Server's errors (its list of errors, 4060 and 18456)
    assert [(error.number, error.severity) for error in answer.errors] == [(4060, 11), (18456, 14)]
    assert 'Cannot open database "nowhere"' in answer.errors[0].text
    assert answer.rows == []
    with pytest.raises(pymssql.OperationalError):
        clients.pymssql(clients.server.reader, version=version, database="nowhere")


def test_a_database_that_does_not_exist_at_5(clients: Clients) -> None:
    """At 5.0 the database is not in the login record: `use` follows the login."""
    answer = clients.tsql(clients.server.reader, "select 1", database="nowhere")
    assert [error.number for error in answer.errors] == [911]


def test_simultaneous_logins_from_one_address_are_all_answered(clients: Clients) -> None:
    """More than the gateway tries at the same time, and more than PostgreSQL's connections."""
    with ExitStack() as stack:
        host, port = clients.server.host, clients.server.port
        many = []
        for _ in range(400):
            # each one's time to log in begins here
            client = stack.enter_context(RawClient(host, port, timeout=PATIENCE))
            many.append(client)
            client.packet_size = 4096
            client.send(PRELOGIN, prelogin())
            client.receive()
            client.send(LOGIN7, login7(PLAIN))
        # [MS-TDS] 2.2.7.14: LOGINACK has the name of the product
        product = "Microsoft SQL Server".encode("utf-16-le")
        assert [product in client.receive() for client in many] == [True] * len(many)


def woken(server: RunningServer, name: str) -> tuple[int, int]:
    """The number of the gateway's threads with this name, and how often they have waited."""
    threads = waits = 0
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # one that ends
            if (thread / "comm").read_text().strip() == name:
                status = (thread / "status").read_text()
                threads += 1
                waits += int(re.findall(r"^voluntary_ctxt_switches:\s*(\d+)$", status, re.MULTILINE)[0])
    return threads, waits


def test_connections_that_are_not_logged_in_do_not_wake_the_threads_for_calls(clients: Clients) -> None:
    server = clients.server
    began, (threads, before) = time.monotonic(), woken(server, "ringlog-calls")
    count = 500
    for _ in range(count):
        with RawClient(server.host, server.port) as client:
            client.send(PRELOGIN, prelogin())
            client.receive()
    # each reads the clock twice a second, and a busy machine takes long
    ticks = 2 * threads * (time.monotonic() - began)
    assert woken(server, "ringlog-calls")[1] - before - ticks < count


def test_connections_to_postgresql_end_with_the_clients(
    clients: Clients, admin: Admin, own_login: Login
) -> None:
    """With and without a logout of the client."""
    count = "select count(*) from pg_stat_activity where usename = %s"
    for _ in range(10):
        with clients.ct(own_login):
            pass
        with RawClient(clients.server.host, clients.server.port) as client:
            assert client.log_in5(own_login).login == 5
    wait_until(lambda: admin.execute(count, [own_login.user]).fetchone() == (0,))


def test_no_password_is_in_files_or_logs_of_the_server(clients: Clients, server: RunningServer) -> None:
    clients.ct_login(Login("reader", "a-wrong-one-9371"))
    clients.ct_login(Login("reader", "a-wrong-one-9371"), "7.4")
    logs = (server.data / "postgresql-18" / "log").iterdir()
    for path in (server.data.with_name("served.stderr"), *logs):
        text = path.read_text()
        for secret in (server.reader.password, server.writer.password, "a-wrong-one-9371"):
            assert secret not in text
