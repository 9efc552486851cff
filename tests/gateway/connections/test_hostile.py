"""Broken, endless, half-open and hostile connections: the server drops them, keeps its memory small and
continues."""

import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import raw_tds
from raw_client import RawClient, logged_in7
from raw_replies import read_reply
from raw_tds import BATCH7, BIG, LITTLE, LOGIN5, LOGIN7, NORMAL, PRELOGIN, RPC7, Param
from servers import Login, RunningServer
from tds_clients import PLAIN

pytestmark = pytest.mark.usefixtures("functions")
MiB = 1 << 20
generated = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

TRANSACTION = 0x0E
CALL = [
    Param(raw_tds.INT4, 5, "@an_int", out=True),
    Param(raw_tds.VARCHAR, "words", "@a_text"),
    Param(raw_tds.numeric(10, 2), 12345, "@a_numeric", out=True),
    Param(raw_tds.LONGCHAR, "x" * 600, "@a_varchar"),
    Param(raw_tds.DATETIME, 45000 << 32 | 1, "@a_timestamp"),
]
NVARCHAR = b"\xe7" + struct.pack("<H", 40) + bytes([9, 4, 0xD0, 0, 0x34])
CALL7 = raw_tds.rpc7(
    "echo",
    [
        ("@an_int", b"\x26\x04\x04" + struct.pack("<i", 5)),
        ("@a_text", NVARCHAR + struct.pack("<H", 10) + "words".encode("utf-16-le")),
        ("@a_numeric", b"\x6c\x05\x09\x02\x05\x01" + struct.pack("<i", 12345)),
        ("@a_varchar", b"\xe7\xff\xff" + NVARCHAR[3:] + struct.pack("<QI", 6, 6) + b"a\0b\0c\0" + bytes(4)),
        ("@a_timestamp", b"\x2a\x06\x08" + bytes([1, 2, 3, 4, 5]) + bytes([0, 0, 10])),
    ],
)
# transaction manager requests: begin, commit with begin again, save with a name
MANAGED = [
    raw_tds.HEADERS + struct.pack("<HB", 5, 2) + b"\0",
    raw_tds.HEADERS + struct.pack("<HBB", 7, 0, 1) + bytes([2, 0]),
    raw_tds.HEADERS + struct.pack("<HB", 9, 6) + "abc".encode("utf-16-le"),
]

Change = tuple[int, int, bytes]
CHANGES = st.lists(
    st.tuples(
        st.integers(0, 5000),
        st.integers(0, 3),
        st.one_of(
            st.binary(max_size=4),
            st.sampled_from([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff", b"\0", b"\x7f\xff\xff\xff"]),
        ),
    ),
    min_size=1,
    max_size=4,
)


def damaged(message: bytes, changes: list[Change]) -> bytes:
    """`message` with replaced bytes: at a position, the number of removed bytes, and the inserted ones."""
    for offset, out, into in changes:
        at = offset % (len(message) + 1)
        message = message[:at] + into + message[at + out :]
    return message


@pytest.fixture(scope="module", autouse=True)
def bounded_memory(server: RunningServer) -> Iterator[None]:
    """The server's own memory is about the same after all of this."""
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    yield
    assert process.memory_info().rss < before + 150 * MiB
    assert "panicked" not in server.data.with_name("served.stderr").read_text()


@pytest.fixture(autouse=True)
def serves_on(server: RunningServer) -> Iterator[None]:
    """After each test another client is served normally."""
    yield
    assert server.process.poll() is None
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        assert client.call("echo", CALL).outputs == {"@an_int": 5, "@a_numeric": 12345}


def drain(client: RawClient) -> bytes:
    """Shuts down its sending side, and reads to the end."""
    got = b""
    try:
        client.socket.shutdown(socket.SHUT_WR)
        while part := client.socket.recv(65536):
            got += part
    except OSError:
        pass  # it has closed already
    return got


# --- before login ---


@generated
@given(changes=CHANGES, order=st.sampled_from([LITTLE, BIG]), keep=st.booleans())
def test_damaged_login_records_of_5(
    server: RunningServer, changes: list[Change], order: raw_tds.Order, keep: bool
) -> None:
    record = raw_tds.login5(PLAIN, order)
    with RawClient(server.host, server.port, order=order) as client:
        # damage in the record, or in the packets around it
        raw = (
            client.packets(LOGIN5, damaged(record, changes))
            if keep
            else damaged(client.packets(LOGIN5, record), changes)
        )
        client.socket.sendall(raw)


@generated
@given(changes=CHANGES, keep=st.booleans())
def test_damaged_login_records_of_7(server: RunningServer, changes: list[Change], keep: bool) -> None:
    record = raw_tds.login7(PLAIN)
    with RawClient(server.host, server.port) as client:
        raw = (
            client.packets(LOGIN7, damaged(record, changes))
            if keep
            else damaged(client.packets(LOGIN7, record), changes)
        )
        client.socket.sendall(client.packets(PRELOGIN, raw_tds.prelogin()) + raw)


@generated
@given(changes=CHANGES)
def test_damaged_preludes(server: RunningServer, changes: list[Change]) -> None:
    with RawClient(server.host, server.port) as client:
        client.socket.sendall(client.packets(PRELOGIN, damaged(raw_tds.prelogin(), changes)))
        drain(client)


@generated
@given(garbage=st.binary(min_size=1, max_size=2000))
def test_garbage(server: RunningServer, garbage: bytes) -> None:
    with RawClient(server.host, server.port) as client:
        client.socket.sendall(garbage)
        drain(client)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        bytes([NORMAL, 1, 0, 8, 0, 0, 0, 0]),
        bytes([RPC7, 1, 0, 8, 0, 0, 0, 0]),
        bytes([LOGIN5, 1, 0, 7, 0, 0, 0, 0]),
        bytes([LOGIN5, 1, 0, 8, 0, 0, 0, 0]),
        bytes([LOGIN7, 1, 0, 8, 0, 0, 0, 0]),
    ],
    ids=["http", "tls", "ssl request", "tokens", "call", "short packet", "empty login", "empty login 7"],
)
def test_other_protocols_and_orders_are_dropped_at_once(server: RunningServer, raw: bytes) -> None:
    # a client that does not log in is dropped after 30 s
    with RawClient(server.host, server.port, timeout=20) as client:
        client.socket.sendall(raw)
        try:
            while client.socket.recv(65536):
                pass
        except ConnectionError:
            pass


@pytest.mark.parametrize("kind", [LOGIN5, LOGIN7, PRELOGIN])
def test_a_login_without_end_is_dropped(server: RunningServer, kind: int) -> None:
    with RawClient(server.host, server.port, timeout=20) as client:
        packet = struct.pack(">BBHHBB", kind, 0, 32008, 0, 1, 0) + bytes(32000)
        with pytest.raises(ConnectionError):
            client.socket.sendall(packet * 2000)


@pytest.mark.parametrize(("version", "words"), [(0x70000000, "7.1 to 7.4"), (0x80000000, "not served")])
def test_unsupported_versions_are_named(server: RunningServer, version: int, words: str) -> None:
    with RawClient(server.host, server.port) as client:
        client.send(LOGIN7, raw_tds.login7(PLAIN, version=version))
        assert words.encode("utf-16-le") in client.receive()
        assert drain(client) == b""


@pytest.mark.parametrize(
    "login", [Login("re\0ader", "x"), Login("reader", "x\0y"), Login("", ""), Login("x" * 128, "x")]
)
def test_odd_names_and_passwords_are_failed_logins(server: RunningServer, login: Login) -> None:
    with RawClient(server.host, server.port) as client:
        assert "Login failed".encode("utf-16-le") in client.log_in7(login)
    if len(login.user) <= 30:
        with RawClient(server.host, server.port) as client:
            reply = client.log_in5(login)
            assert (reply.login, [error.number for error in reply.errors]) == (6, [4002])


def test_a_database_with_a_nul_does_not_exist(server: RunningServer) -> None:
    with RawClient(server.host, server.port) as client:
        client.send(LOGIN7, raw_tds.login7(PLAIN, database="lo\0g"))
        assert "Cannot open database".encode("utf-16-le") in client.receive()


def test_silent_clients_are_dropped(half_open: list[socket.socket], half_open_since: float) -> None:
    """Connections opened before the first of these tests, which never logged in."""
    for connection in half_open:
        connection.settimeout(max(0.1, half_open_since + 100 - time.monotonic()))
        try:
            while connection.recv(65536):
                pass
        except ConnectionError:
            pass


def test_many_at_once(server: RunningServer) -> None:
    """While hundreds of connections are open without a login, others log in."""
    idle = [socket.create_connection((server.host, server.port)) for _ in range(400)]
    for connection in idle[::2]:
        connection.sendall(bytes([LOGIN5, 0, 2, 0]))

    def served(_: int) -> int | None:
        with RawClient(server.host, server.port) as client:
            return client.log_in5(PLAIN).login

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(served, range(8))) == [5] * 8
    for connection in idle:
        connection.close()


# --- after login ---


@generated
@given(changes=CHANGES, order=st.sampled_from([LITTLE, BIG]), keep=st.booleans())
def test_damaged_calls_of_5(
    server: RunningServer, changes: list[Change], order: raw_tds.Order, keep: bool
) -> None:
    call = raw_tds.dbrpc("echo", CALL, order)
    with RawClient(server.host, server.port, order=order) as client:
        assert client.log_in5(PLAIN).login == 5
        if keep:
            client.send(NORMAL, call)
            client.receive()
        client.socket.sendall(
            client.packets(NORMAL, damaged(call, changes))
            if keep
            else damaged(client.packets(NORMAL, call), changes)
        )
        drain(client)


@generated
@given(
    changes=CHANGES, body=st.sampled_from([CALL7, raw_tds.batch7("select 1 as one exec status 1"), *MANAGED])
)
def test_damaged_requests_of_7(server: RunningServer, changes: list[Change], body: bytes) -> None:
    kind = RPC7 if body == CALL7 else TRANSACTION if body in MANAGED else BATCH7
    with RawClient(server.host, server.port) as client:
        assert b"\xad" in client.log_in7(PLAIN)
        client.send(kind, body)
        assert client.receive()
        client.send(kind, damaged(body, changes))
        drain(client)


def test_the_undamaged_requests_are_answered(server: RunningServer) -> None:
    with logged_in7(server, PLAIN) as client:
        client.send(RPC7, CALL7)
        assert client.receive()[0] == 0x79, "no error, a return status"
        for body in MANAGED:
            client.send(TRANSACTION, body)
            assert client.receive()[0] in (0xE3, 0xFD)


@generated
@given(changes=CHANGES)
def test_damaged_text(server: RunningServer, changes: list[Change]) -> None:
    raw = b"exec status @value = 5 select 'it''s', [a] from \"b\" /* c */ where x like 'y%' -- z"
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        text = b"\0" + damaged(raw, changes)
        client.send(NORMAL, b"\x21" + struct.pack("<I", len(text)) + text)
        read_reply(client.receive())
        assert client.language("select 1 as one").rows == [[1]]


def test_a_request_that_is_too_long(server: RunningServer) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        packet = struct.pack(">BBHHBB", NORMAL, 0, 32008, 0, 1, 0) + b"\x21" + bytes(31999)
        with pytest.raises(ConnectionError):
            client.socket.sendall(packet * (100 * MiB // 32000))


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (b"\x99" + bytes(10), "token 0x99 is not served"),
        (b"\xe6\x00", "message ends inside DBRPC length"),
        (b"\xe6\x04\x00\x05echo\x00\x00", "message ends inside"),
        (raw_tds.dbrpc("echo", CALL)[:-3], "message ends inside"),
        (raw_tds.dbrpc("echo", CALL).replace(b"\x26\x04", b"\x27\x04", 1), ""),
        (b"\x21\xff\xff\xff\xff\x00", "message ends inside command"),
    ],
)
def test_an_incorrect_stream_gets_an_error_and_is_ended(
    server: RunningServer, tokens: bytes, words: str
) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        client.send(NORMAL, tokens)
        reply = read_reply(client.receive())
        if words:
            assert [(error.number, error.severity) for error in reply.errors] == [(4002, 20)]
            assert words in reply.errors[0].text
            assert drain(client) == b""


def test_an_unsupported_form_fails_only_the_call(server: RunningServer) -> None:
    """A table-valued parameter with TVP_COLUMN_ORDERING (MS-TDS 2.2.5.5.5.2)."""
    with logged_in7(server, PLAIN) as client:
        table = b"\0\0\xf3\0\0\1t\0\1\0" + bytes(6) + b"\x26\4\0" + b"\x11\1\0\1\0\0\0"
        client.send(RPC7, raw_tds.rpc7("echo") + table)
        words = "a table-valued parameter with its columns in another order than its type is not supported"
        assert words.encode("utf-16-le") in client.receive()
        assert struct.pack("<BBi", 0xD1, 4, 7) in client.batch("select 7")


def test_more_parameters_than_any_procedure_has(server: RunningServer) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        client.send(NORMAL, raw_tds.dbrpc("status", [Param(raw_tds.INT1, 1)] * 2101))
        assert "more than 2100 parameters" in read_reply(client.receive()).errors[0].text
