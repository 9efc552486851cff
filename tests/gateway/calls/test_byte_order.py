"""TDS 5.0 clients of either byte order: the same calls have the same results."""

import struct
from collections.abc import Iterator
from decimal import Decimal

import pytest

import raw_tds
from raw_client import RawClient
from raw_replies import read_reply
from raw_tds import BIG, LITTLE, LOGIN5, Order, Param, Type
from servers import Login, RunningServer
from tds_clients import PLAIN, Admin, Clients

pytestmark = pytest.mark.usefixtures("functions")
ORDERS = pytest.mark.parametrize("order", [LITTLE, BIG])

EVERY_TYPE = [
    Param(raw_tds.BIT, 1, "@a_bit", out=True),
    Param(raw_tds.INT2, -2, "@a_smallint", out=True),
    Param(raw_tds.INT4, -70000, "@an_int", out=True),
    Param(raw_tds.INT8, -(2**40), "@a_bigint", out=True),
    Param(raw_tds.REAL, 1.5, "@a_real", out=True),
    Param(raw_tds.FLOAT, -0.1, "@a_float", out=True),
    Param(raw_tds.numeric(20, 3), -12345678901234567890, "@a_numeric", out=True),
    Param(raw_tds.VARCHAR, "häuser", "@a_varchar", out=True),
    Param(raw_tds.LONGCHAR, "€" * 300, "@a_text", out=True),
    Param(raw_tds.VARBINARY, bytes(range(200)), "@a_bytea", out=True),
    Param(raw_tds.DATE, -1, "@a_date", out=True),
    Param(raw_tds.TIME, 300 * 60, "@a_time", out=True),
    Param(raw_tds.BIGDATETIME, 63_000_000_000_123_456, "@a_timestamp", out=True),
    Param(raw_tds.DATETIME, 45000 << 32 | 9_000_000, "@a_timestamptz", out=True),
    Param(raw_tds.CHAR, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "@a_uuid", out=True),
]


def logged_in(server: RunningServer, order: Order, login: Login) -> RawClient:
    client = RawClient(server.host, server.port, order=order)
    reply = client.log_in5(login)
    assert (reply.login, reply.errors) == (5, [])
    return client


@ORDERS
def test_every_type_is_returned_unchanged(server: RunningServer, order: Order) -> None:
    with logged_in(server, order, server.reader) as client:
        reply = client.call("echo", EVERY_TYPE)
    assert (reply.errors, reply.statuses) == ([], [0])
    assert reply.outputs == {param.name: param.value for param in EVERY_TYPE}


@ORDERS
def test_every_type_as_null(server: RunningServer, order: Order) -> None:
    params = [param._replace(value=None) for param in EVERY_TYPE[1:]]
    with logged_in(server, order, server.reader) as client:
        assert client.call("echo", params).outputs == dict.fromkeys(param.name for param in params)


def test_money_and_small_types(server: RunningServer) -> None:
    """Values without a type of their own in PostgreSQL, sent in the type that the client declares."""
    params = [
        Param(raw_tds.MONEY, -123456789012345, "@a_numeric", out=True),
        Param(raw_tds.SMALLMONEY, -12345, "@a_float", out=True),
        Param(raw_tds.SMALLDATETIME, 45000 << 16 | 601, "@a_timestamp", out=True),
        Param(raw_tds.BIGTIME, 86_399_999_999, "@a_time", out=True),
        Param(raw_tds.INT1, 255, "@an_int", out=True),
    ]
    for order in (LITTLE, BIG):
        with logged_in(server, order, server.reader) as client:
            assert client.call("echo", params).outputs == {param.name: param.value for param in params}


def test_result_sets_are_equal(server: RunningServer) -> None:
    replies = []
    for order in (LITTLE, BIG):
        with logged_in(server, order, server.reader) as client:
            replies.append(client.language("select * from gateway_test.types"))
    little, big = replies
    assert len(little.rows) == 2
    assert little == big
    by_name = dict(zip([name for name, _ in little.columns], little.rows[0], strict=True))
    assert by_name["an_int"] == -(2**31)
    assert by_name["a_bigint"] == 2**63 - 1
    assert by_name["a_real"] == struct.unpack("<f", struct.pack("<f", 1.17549435e-38))[0]
    assert by_name["a_float"] == 0.1
    assert by_name["a_numeric"] == -123456789012345678
    assert by_name["a_bytea"] == b"\x00\x01\xff"
    assert little.rows[1] == [None] * len(little.columns)


def test_a_wide_result_set_is_equal(server: RunningServer) -> None:
    """Descriptions over 64 KiB are sent as ROWFMT2."""
    columns = ", ".join(
        f"convert(real, {n}) as a_column_with_a_name_as_long_as_names_may_be_{n:04}" for n in range(1200)
    )
    replies = []
    for order in (LITTLE, BIG):
        with logged_in(server, order, server.reader) as client:
            replies.append(client.language(f"select {columns}"))
    assert replies[0] == replies[1]
    assert replies[0].rows == [[float(n) for n in range(1200)]]


def test_errors_and_counts_are_equal(server: RunningServer) -> None:
    replies = []
    for order in (LITTLE, BIG):
        with logged_in(server, order, server.reader) as client:
            replies.append(
                [
                    client.call("nothing_like_it"),
                    client.call("status", [Param(raw_tds.INT4, -(2**31) + 1)]),
                    client.call("complain", [Param(raw_tds.CHAR, "23505"), Param(raw_tds.CHAR, "twice")]),
                    client.language("select 1 select generate_series(1, 70000)"),
                ]
            )
    assert replies[0] == replies[1]
    missing, status, complaint, counts = replies[0]
    assert missing.errors[0].number == 2812
    assert status.statuses == [-(2**31) + 1]
    assert complaint.errors == [(2601, 14, "twice (SQLSTATE 23505)")]
    assert [count for _, count in counts.done] == [1, 70000]


@ORDERS
def test_a_row_is_put(server: RunningServer, admin: Admin, order: Order) -> None:
    seq_no = 20 if order == LITTLE else 21
    currents = [n / 4 for n in range(200)]
    params = [Param(raw_tds.INT4, seq_no, "@seq_no"), Param(raw_tds.DATETIME, 45200 << 32 | 300, "@time")]
    params += [Param(raw_tds.REAL, value, f"@current_{n}") for n, value in enumerate(currents, 1)]
    with logged_in(server, order, server.writer) as client:
        for _ in range(2):
            reply = client.call("put_sr_mag_ps", params)
            assert (reply.statuses, reply.errors) == ([0], [])
    row = admin.execute(f"select * from online.sr_mag_ps where seq_no = {seq_no}").fetchone()
    assert row is not None
    assert (str(row[1]), list(row[2:])) == ("2023-10-03 00:00:01+09:00", currents)


@ORDERS
def test_a_wrong_password(server: RunningServer, order: Order) -> None:
    with RawClient(server.host, server.port, order=order) as client:
        reply = client.log_in5(Login("reader", "wrong"))
        assert (reply.login, reply.errors) == (6, [(4002, 14, "Login failed.")])
        with pytest.raises((EOFError, ConnectionError)):
            client.receive()


@ORDERS
def test_a_login_cut_at_every_byte(server: RunningServer, order: Order) -> None:
    """The record arrives byte by byte, in two packets."""
    with RawClient(server.host, server.port, order=order) as client:
        for byte in client.packets(LOGIN5, raw_tds.login5(server.reader, order)):
            client.socket.sendall(bytes([byte]))
        assert read_reply(client.receive(), order).login == 5


@ORDERS
@pytest.mark.parametrize("size", [512, 513, 1000, 2048, 16384, 32768])
def test_packets_keep_the_size_agreed(server: RunningServer, order: Order, size: int) -> None:
    with RawClient(server.host, server.port, order=order) as client:
        assert client.log_in5(server.reader, packet_size=size).login == 5
        words = "w" * 70000
        assert client.language(f"select '{words}' as words").rows == [[words]]


@pytest.mark.parametrize("size", [512, 600, 4096, 32768])
def test_packets_keep_the_size_agreed_at_7(server: RunningServer, size: int) -> None:
    with RawClient(server.host, server.port) as client:
        client.log_in7(server.reader, packet_size=size)
        assert ("w" * 9000).encode("utf-16-le") in client.batch(f"select N'{'w' * 9000}' as words")


@pytest.mark.parametrize(
    ("charset", "encoding", "words", "invalid"),
    [
        ("iso_1", "iso8859-1", "Größe \x80", None),
        ("cp1252", "cp1252", "Größe €", None),
        ("iso15", "iso8859-15", "Größe €", None),
        ("cp437", "cp437", "Größe ░π", None),
        ("cp850", "cp850", "Größe þ", None),
        ("roman8", "hp_roman8", "Größe ¤", b"\xff"),
        ("mac", "mac_roman", "Größe π", None),
        ("koi8", "koi8_r", "ускоритель", None),
        ("deckanji", "euc_jp", "加速器", b"\xff"),
        ("eucksc", "euc_kr", "가속기", b"\xff"),
        ("utf8", "utf-8", "加速器 €", b"\xff"),
        ("sjis", "cp932", "加速器ｱ", b"\x81"),
        ("eucjis", "euc_jp", "加速器", b"\xff"),
        ("", "utf-8", "加速器 €", b"\xff"),
    ],
)
def test_character_sets(
    server: RunningServer, charset: str, encoding: str, words: str, invalid: bytes | None
) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN, charset=charset).login == 5
        call = raw_tds.dbrpc("echo", [Param(Type(0x27, 255), words.encode(encoding), "@a_text", out=True)])
        client.send(raw_tds.NORMAL, call)
        assert words.encode(encoding) in client.receive()
        if invalid is not None:
            call = raw_tds.dbrpc("echo", [Param(Type(0x27, 255), invalid, "@a_text", out=True)])
            client.send(raw_tds.NORMAL, call)
            assert [error.number for error in read_reply(client.receive()).errors] == [2402]
            client.send(raw_tds.NORMAL, raw_tds.language("select 'x'").replace(b"x", invalid))
            assert [error.number for error in read_reply(client.receive()).errors] == [2402]


def test_a_character_that_the_client_cannot_show_is_an_error(server: RunningServer) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN, charset="iso_1").login == 5
        reply = client.language("select 1 as one, chr(21152) as word")
        assert [error.number for error in reply.errors] == [2402]
        assert "'word'" in reply.errors[0].text
        assert "(U+52A0) does not exist in iso_1" in reply.errors[0].text
        assert reply.rows == []
        assert client.language("select 1 as one").rows == [[1]]


@ORDERS
def test_an_unknown_character_set(server: RunningServer, order: Order) -> None:
    with RawClient(server.host, server.port, order=order) as client:
        reply = client.log_in5(PLAIN, charset="klingon")
        assert reply.login is None
        assert [error.number for error in reply.errors] == [4002]
        assert "character set 'klingon' is not served" in reply.errors[0].text


# --- the described types of parameters of dynamic statements (TDS 5.0, PARAMFMT) ---

INT, FLOAT, DATETIME, MONEY, TEXT, BYTES = 0x26, 0x6D, 0x6F, 0x6E, 0x27, 0x25
NUMERIC = raw_tds.numeric(12, 3)


@pytest.fixture(params=[LITTLE, BIG], ids=["little", "big"])
def client(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    order: Order = request.param
    with RawClient(server.host, server.port, order=order) as client:
        assert client.log_in5(server.reader).login == 5
        types = "i int,b bigint,f float,d datetime,m money,n numeric(12.3),c char(3),y varbinary(9)"
        columns = ", ".join(f"{column} null" for column in types.split(",")).replace("12.3", "12, 3")
        assert client.language(f"create table #given (id numeric(5,0) identity, {columns})").errors == []
        yield client


def described(client: RawClient, text: str) -> list[tuple[int, int]]:
    reply = client.ask(raw_tds.prepare("d", f"create proc d as {text}", client.order))
    assert reply.errors == []
    return [(type.token, type.size) for _, type in reply.parameters]


ALL = [(INT, 4), (INT, 8), (FLOAT, 8), (DATETIME, 8), (MONEY, 8), (0x6C, 6), (TEXT, 255), (BYTES, 9)]


def test_a_placeholder_has_the_type_of_its_column(client: RawClient) -> None:
    """As in ASE: go-ase sends values in the described type, an int64 described as a varchar as raw bytes."""
    assert described(client, "insert #given values (?, ?, ?, ?, ?, ?, ?, ?)") == ALL
    # by the named columns, whatever else the text has
    assert described(client, "insert into #given (f, m, i) values (?, 1, ?)") == [(FLOAT, 8), (INT, 4)]
    update = "update #given set d = ?, i = i + 1, n = ? where b = ?"
    assert described(client, update) == [(DATETIME, 8), (0x6C, 6), (INT, 8)]
    assert described(client, "insert #given (c) select ?") == [(TEXT, 255)]


def test_values_of_the_described_types(client: RawClient) -> None:
    assert described(client, "insert #given (i, b, f, n) values (?, ?, ?, ?)")[1] == (INT, 8)
    params = [
        Param(raw_tds.INT4, -7),
        Param(raw_tds.INT8, 1 << 40),
        Param(raw_tds.FLOAT, 0.1),
        Param(NUMERIC, -1_234_567),
    ]
    assert client.ask(raw_tds.execute("d", params, client.order)).errors == []
    row = client.language("select i, b, f, convert(varchar(20), n) from #given").rows
    assert row == [[-7, 1 << 40, 0.1, str(Decimal("-1234.567"))]]


def test_ct_library_converts_texts_itself_and_gets_no_types(clients: Clients) -> None:
    """DBD::Sybase makes numbers of its texts by atoi and atof (dbdimp.c, _dbd_rebind_ph): abc would be 0."""
    with clients.ct(clients.server.reader) as client:
        assert client.language("create table #given (i int, f float, n numeric(12,3))").errors == []
        assert client.prepare("one", "insert #given values (?, ?, ?)").errors == []
        char_type = 0
        assert client.describe("in", "one").description == [("", char_type)] * 3


@pytest.mark.parametrize("size", [4, 8])
def test_an_int_that_is_shorter_than_its_type_may_be_unsigned(client: RawClient, size: int) -> None:
    """go-ase writes the four bytes of a uint32 into an INTN of eight (SAP/go-dblib asetypes/bytes.go)."""
    assert described(client, "insert #given (b) values (?)") == [(INT, 8)]
    request = bytearray(raw_tds.execute("d", [Param(raw_tds.INT4, -1)], client.order))
    at = request.rindex(bytes([INT, 4, 0]))
    request[at + 1] = size
    errors = [error.number for error in client.ask(bytes(request)).errors]
    stored = client.language("select b from #given").rows
    assert (errors, stored) == (([], [[-1]]) if size == 4 else ([8114], []))


def test_temporary_tables_end_with_the_statement(clients: Clients) -> None:
    """Client-Library/C Programmer's Guide: "destroyed when the prepared statement is deallocated"."""
    with clients.ct(clients.server.reader) as client:
        assert client.language("create table #before (a int)").errors == []
        assert client.prepare("making", "create table #made (a int)").errors == []
        assert client.execute("making").errors == []
        assert client.language("select count(*) from #made").rows == [["0"]]
        client.close_dynamic("making")
        assert [error.number for error in client.language("select count(*) from #made").errors] == [208]
        assert client.language("select count(*) from #before").rows == [["0"]]
