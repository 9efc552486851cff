"""Texts and images that clients write by pointers from result sets: ct_send_data, dbwritetext.

Open Client: Client-Library, ct_send_data; FreeTDS src/tds/bulk.c, tds_writetext_start.
"""

import struct
import subprocess
from pathlib import Path

import pytest

from raw_client import RawClient
from raw_replies import Reply, read_reply
from raw_tds import ATTENTION, BIG, BULK, IGNORE, LAST, LITTLE, NORMAL, Order, language
from servers import RunningServer
from tds_clients import Admin, Clients

pytestmark = pytest.mark.usefixtures("functions")
ORDERS = pytest.mark.parametrize("order", [LITTLE, BIG])
PROGRAMS = Path(__file__).parents[1] / "programs"


def logged_in(server: RunningServer, order: Order = LITTLE) -> RawClient:
    client = RawClient(server.host, server.port, order=order)
    assert client.log_in5(server.reader).login == 5
    return client


def with_table(server: RunningServer, order: Order = LITTLE) -> RawClient:
    client = logged_in(server, order)
    text = "create table #t (k int, a text null, b image null) insert #t values (1, 'first', 0x01)"
    assert client.language(text).errors == []
    return client


def begin(client: RawClient, column: str, pointer: bytes, timestamp: bytes | None = None) -> Reply:
    text = f"writetext bulk {column} 0x{pointer.hex()}"
    if timestamp is not None:
        text += f" timestamp = 0x{timestamp.hex()} with log"
    return client.language(text)


def framed(client: RawClient, data: bytes) -> bytes:
    return struct.pack(client.order + "I", len(data)) + data


def send(client: RawClient, data: bytes) -> Reply:
    client.send(BULK, framed(client, data))
    return read_reply(client.receive(), client.order)


@ORDERS
def test_a_text_and_an_image(server: RunningServer, order: Order) -> None:
    with with_table(server, order) as client:
        found = client.language("select a, b from #t where k = 1")
        assert (found.rows, found.tables) == ([["first", b"\1"]], ["#t", "#t"])
        (text, first), (image, again) = found.pointers
        assert first == again
        # several packets, and characters of several bytes
        assert begin(client, "#t.a", text, first).errors == []
        written = send(client, "häuser €".encode() * 200)
        assert (written.errors, list(written.outputs)) == ([], ["txts"])
        second = written.outputs["txts"]
        assert isinstance(second, bytes)
        assert second != first
        # the column of another pointer to the row
        assert begin(client, "#t.b", image, second).errors == []
        assert send(client, bytes(range(256)) * 10).errors == []
        assert client.language("select a, b from #t").rows == [["häuser €" * 200, bytes(range(256)) * 10]]
        # ASE: the timestamp shows whether another session has written since
        assert [error.number for error in begin(client, "#t.a", text, first).errors] == [7127]
        assert [error.number for error in send(client, b"x").errors] == [4002]


def test_a_row_that_another_has_changed(server: RunningServer) -> None:
    with with_table(server) as client:
        ((pointer, timestamp),) = client.language("select a from #t").pointers
        client.language("update #t set k = 2")
        assert [error.number for error in begin(client, "#t.a", pointer, timestamp).errors] == [7123]
        assert client.language("select a from #t").rows == [["first"]]


def test_it_is_part_of_the_transaction(server: RunningServer) -> None:
    with with_table(server) as client:
        ((pointer, timestamp),) = client.language("select a from #t").pointers
        client.language("begin tran")
        assert begin(client, "#t.a", pointer, timestamp).errors == []
        assert send(client, b"second").errors == []
        assert client.language("select a from #t").rows == [["second"]]
        client.language("rollback")
        assert client.language("select a from #t").rows == [["first"]]
        assert begin(client, "#t.a", pointer, timestamp).errors == []
        assert send(client, b"third").errors == []
        assert client.language("select a from #t").rows == [["third"]]


def test_an_abandoned_request_writes_nothing(server: RunningServer) -> None:
    with with_table(server) as client:
        ((pointer, timestamp),) = client.language("select a from #t").pointers
        # less than announced
        assert begin(client, "#t.a", pointer, timestamp).errors == []
        client.send(BULK, struct.pack("<I", 10) + b"short")
        assert [error.number for error in read_reply(client.receive()).errors] == [4002]
        # the client aborts while it sends
        assert begin(client, "#t.a", pointer, timestamp).errors == []
        body = framed(client, b"ignored")
        client.socket.sendall(struct.pack(">BBHHBB", BULK, LAST | IGNORE, len(body) + 8, 0, 1, 0) + body)
        assert read_reply(client.receive()).done[-1][0] & 0x02
        # a cancel in place of the text
        assert begin(client, "#t.a", pointer, timestamp).errors == []
        client.send(ATTENTION, b"")
        assert read_reply(client.receive()).done[-1][0] & 0x20
        # another request in its place
        assert begin(client, "#t.a", pointer, timestamp).errors == []
        client.send(NORMAL, language("select a from #t"))
        assert read_reply(client.receive()).rows == [["first"]]
        assert [error.number for error in send(client, b"too late").errors] == [4002]
        assert client.language("select a from #t").rows == [["first"]]


def test_the_client_disconnects_inside_the_text(server: RunningServer, admin: Admin) -> None:
    admin.execute("create table gateway_test.texts_left (a text)")
    admin.execute("comment on column gateway_test.texts_left.a is 'T-SQL \"a\" text'")
    admin.execute("insert into gateway_test.texts_left values ('first')")
    admin.execute(f"grant select, update on gateway_test.texts_left to {server.reader.user}")
    try:
        with logged_in(server) as client:
            found = client.language("select a from gateway_test..texts_left")
            ((pointer, timestamp),) = found.pointers
            assert found.tables == ["gateway_test..texts_left"]
            assert begin(client, "gateway_test..texts_left.a", pointer, timestamp).errors == []
            body = struct.pack("<I", 1000) + b"x" * 496
            client.socket.sendall(struct.pack(">BBHHBB", BULK, 0, len(body) + 8, 0, 1, 0) + body)
        admin.execute(f"revoke update on gateway_test.texts_left from {server.reader.user}")
        assert admin.execute("select a from gateway_test.texts_left").fetchall() == [("first",)]
        # without the right to update
        with logged_in(server) as client:
            assert begin(client, "gateway_test..texts_left.a", pointer, timestamp).errors == []
            assert [error.number for error in send(client, b"second").errors] == [229]
        assert admin.execute("select a from gateway_test.texts_left").fetchall() == [("first",)]
    finally:
        admin.execute("drop table gateway_test.texts_left")


@pytest.mark.parametrize(
    "text",
    [
        "select substring(a, 1, 5) from #t",
        "select distinct a from #t",
        "select a from #t group by a",
        "select x.a from #t x, #t y",
        "select a from (select a from #t) d",
        "select a from #t union select a from #t",
    ],
)
def test_results_without_pointers(server: RunningServer, text: str) -> None:
    with with_table(server) as client:
        found = client.language(text)
        assert (found.errors, found.rows) == ([], [["first"]])
        ((pointer, timestamp), *_) = found.pointers
        assert [error.number for error in begin(client, "#t.a", pointer, timestamp).errors] == [7125]


@pytest.mark.parametrize(
    "text",
    [
        "select * from #t",
        "with n as (select 1 n) select a from #t, #n",
        "select top 1 a from #t where k > 0",
        "select t.a, n.n from #t t left join #n n on n.n = t.k where t.k = 1 order by 2",
        "select upper('x'), k + 1, a from #t",
    ],
)
def test_results_with_pointers(server: RunningServer, text: str) -> None:
    with with_table(server) as client:
        client.language("create table #n (n int) insert #n values (1)")
        # the query is prepared at its second execution
        for new in (b"second", b"third"):
            (pointer, timestamp), *_ = client.language(text).pointers
            assert begin(client, "#t.a", pointer, timestamp).errors == []
            assert send(client, new).errors == []
            assert client.language("select a from #t").rows == [[new.decode()]]


def test_a_null_has_no_pointer(server: RunningServer) -> None:
    with with_table(server) as client:
        client.language("update #t set a = null")
        found = client.language("select a from #t")
        assert (found.rows, found.pointers) == ([[None]], [])


@pytest.mark.parametrize("version", ["5.0", "7.1", "7.4"])
def test_dbwritetext(clients: Clients, tmp_path: Path, version: str) -> None:
    program = tmp_path / "db_writetext"
    source = PROGRAMS / "db_writetext.c"
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Werror", "-o", program, source, "-lsybdb"], check=True)
    login = clients.server.reader
    ran = subprocess.run(
        [program, version, login.user, login.password],
        env={"FREETDSCONF": str(clients.configuration), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = ran.stdout.splitlines()
    assert lines[:5] == ["15000", "xxx", "4", "0", "same"]
    assert lines[5].startswith("error 7123")
