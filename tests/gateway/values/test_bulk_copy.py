"""Bulk copy in: rows are streamed into PostgreSQL's COPY, all of a message or none."""

import struct
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal

import ctds
import psutil
import psycopg
import pytest
from pymssql import _mssql

from raw_client import RawClient
from raw_tds import ATTENTION, BATCH7, IGNORE, LAST, batch7
from servers import Login, RunningServer
from tds_clients import Admin, Clients, ctds_of
from waiting import one_sleeps, wait_until

pytestmark = pytest.mark.usefixtures("functions")

BULK7 = 0x07
MiB = 1 << 20
INT4, NVARCHAR, FLOAT8, NUMERIC = "int", "nvarchar", "float", "numeric"
COLUMNS = [("id", INT4), ("name", NVARCHAR), ("size", FLOAT8), ("price", NUMERIC)]
Cell = int | float | str | Decimal | None
INSERT = (
    "insert bulk gateway_test..copied ([id] int, [name] nvarchar(20), [size] float, [price] numeric(20,4))"
)


@pytest.fixture(autouse=True)
def copied(admin: Admin) -> Iterator[None]:
    """A table of this test that the writer may fill."""
    admin.execute(
        "create table gateway_test.copied (id integer primary key, name varchar(8), size double precision, "
        "price numeric(10, 2), note text default 'none'); "
        "grant select, insert on gateway_test.copied to writer; grant select on gateway_test.copied to reader"
    )
    yield
    admin.execute("drop table gateway_test.copied")


def stored(admin: Admin) -> list[tuple[object, ...]]:
    return admin.execute("select id, name, size, price from gateway_test.copied order by id").fetchall()


def colmetadata(columns: Sequence[tuple[str, str]] = COLUMNS) -> bytes:
    types = {
        INT4: b"\x26\x04",
        NVARCHAR: b"\xe7\x28\0\x09\x04\xd0\0\x34",
        FLOAT8: b"\x6d\x08",
        NUMERIC: b"\x6c\x11\x14\x04",
    }
    raw = b"\x81" + struct.pack("<H", len(columns))
    for name, kind in columns:
        raw += struct.pack("<IH", 0, 9) + types[kind] + bytes([len(name)]) + name.encode("utf-16-le")
    return raw


def cell(value: Cell) -> bytes:
    match value:
        case int():
            return b"\x04" + struct.pack("<i", value)
        case float():
            return b"\x08" + struct.pack("<d", value)
        case str():
            raw = value.encode("utf-16-le")
            return struct.pack("<H", len(raw)) + raw
        case Decimal():
            scaled = int(value * 10_000)
            return b"\x11" + bytes([scaled >= 0]) + abs(scaled).to_bytes(16, "little")
    raise AssertionError(value)


def row(id: Cell, name: Cell = None, size: Cell = None, price: Cell = None) -> bytes:
    """A row of COLUMNS, NULLs marked by the bitmap of NBCROW if there are any."""
    cells = [id, name, size, price]
    nulls = sum(1 << index for index, value in enumerate(cells) if value is None)
    head = b"\xd2" + bytes([nulls]) if nulls else b"\xd1"
    return head + b"".join(cell(value) for value in cells if value is not None)


class Copying:
    """A client of 7.4 that copies rows."""

    def __init__(self, server: RunningServer, login: Login) -> None:
        self.client = RawClient(server.host, server.port)
        self.client.log_in7(login)

    def __enter__(self) -> "Copying":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.socket.close()

    def batch(self, text: str) -> bytes:
        self.client.send(BATCH7, batch7(text))
        return self.client.receive()

    def copy(self, *rows: bytes, insert: str = INSERT, done: int | None = 12) -> tuple[int | None, str]:
        """The number of stored rows, or None and the error. `done`: bytes after DONE."""
        opened = self.batch(insert)
        if error := words(opened):
            return None, error
        end = b"" if done is None else b"\xfd" + bytes(done)
        self.client.send(BULK7, colmetadata() + b"".join(rows) + end)
        return answer(self.client.receive())


def words(reply: bytes) -> str:
    """The text of the first error of a 7.4 reply."""
    at = 0
    while at < len(reply) and reply[at] in (0xAA, 0xAB):
        (length,) = struct.unpack_from("<H", reply, at + 1)
        if reply[at] == 0xAA:
            number, _, _, units = struct.unpack_from("<iBBH", reply, at + 3)
            return f"{number}: {reply[at + 11 : at + 11 + 2 * units].decode('utf-16-le')}"
        at += 3 + length
    return ""


def answer(reply: bytes) -> tuple[int | None, str]:
    if error := words(reply):
        return None, error
    token, status, _, count = struct.unpack("<BHHQ", reply[-13:])
    assert (token, status & 0x10) == (0xFD, 0x10), reply
    return count, ""


ROWS = [row(1, "häuser", 0.5, Decimal("-12.34")), row(2), row(3, "", -1e300, Decimal(0))]
FOUND = [(1, "häuser", 0.5, Decimal("-12.34")), (2, None, None, None), (3, "", -1e300, Decimal("0.00"))]


@pytest.mark.parametrize("size", [512, 4096])
@pytest.mark.parametrize("done", [12, 8, None], ids=["done", "SqlClient's done", "no done"])
def test_rows_and_nulls(server: RunningServer, admin: Admin, size: int, done: int | None) -> None:
    with Copying(server, server.writer) as copying:
        copying.client.packet_size = size
        assert copying.copy(*ROWS, done=done) == (3, "")
        assert copying.copy(insert=INSERT) == (0, "")
        many = [row(n, "x" * (n % 9)) for n in range(10, 2000)]
        assert copying.copy(*many) == (1990, "")
        assert b"\xd1" in copying.batch("select @@rowcount")
    assert stored(admin)[:3] == FOUND
    assert len(stored(admin)) == 1993


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (row(3, "too long by far"), "8152: Row 3, column 'name': String or binary data would be truncated"),
        # at most eight characters are at most eight UTF-16 units
        (row(3, "😀😀😀😀x"), "8152: Row 3, column 'name': a value of type text is too long for the column"),
        (row(3, "a\0b"), "2402: Row 3, column 'name': a text that holds a NUL"),
        (row(3, None, None, Decimal("0.001")), "8115: Row 3, column 'price': "),
        (row(3, None, None, Decimal("123456789")), "8115: Row 3, column 'price': Arithmetic overflow error"),
        (row(1), "2627: Row 3: duplicate key value"),
        (row(None), "515: Row 3: Cannot insert the value NULL into column"),
    ],
)
def test_an_error_names_its_row_and_column(
    server: RunningServer, admin: Admin, bad: bytes, error: str
) -> None:
    with Copying(server, server.writer) as copying:
        count, messages = copying.copy(row(1), row(2), bad, row(4))
        assert (count, messages[: len(error)]) == (None, error)
        assert stored(admin) == []
        assert copying.copy(row(1, "😀😀😀😀")) == (1, "")


def test_an_error_in_many_rows_is_sent_at_their_end(server: RunningServer, admin: Admin) -> None:
    rows = [row(n) for n in range(1, 20_000)]
    rows.insert(50, row(3))
    with Copying(server, server.writer) as copying:
        count, messages = copying.copy(*rows)
        assert (count, messages[:13]) == (None, "2627: Row 51:")
    assert stored(admin) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("insert bulk gateway_test..nowhere (a int)", 208),
        ("insert bulk gateway_test..copied (a int)", 207),
        ("insert bulk gateway_test..types (a_bit bit)", 229),
        ("insert bulk online..sr_mag_ps (seq_no int)", 229),
        ("insert bulk log..sr_mag_ps (seq_no int)", 229),
        ("insert bulk gateway_test..copied (id int) select 1", 102),
        ("insert bulk", 102),
    ],
)
def test_targets_without_bulk_copy(server: RunningServer, text: str, number: int) -> None:
    with Copying(server, server.writer) as copying:
        assert words(copying.batch(text)).startswith(f"{number}: ")
        assert copying.copy(row(1)) == (1, "")


def test_a_reader_may_not_copy(server: RunningServer) -> None:
    with Copying(server, server.reader) as copying:
        assert copying.copy(row(1))[1].startswith("229: ")


def test_a_null_for_a_column_with_a_default(server: RunningServer, admin: Admin) -> None:
    """SQL Server stores the default unless the client requests NULLs (bcp, "-k"). A COPY cannot compute one
    for each row.
    """
    columns = [("id", INT4), ("note", NVARCHAR)]
    insert = "insert bulk gateway_test..copied (id int, note nvarchar(20))"

    def copy(id: int, options: str = "") -> tuple[int | None, str]:
        copying.batch(insert + options)
        copying.client.send(BULK7, colmetadata(columns) + b"\xd2\x02" + cell(id))
        return answer(copying.client.receive())

    with Copying(server, server.writer) as copying:
        assert copy(1) == (1, "")
        assert copy(2, " with (KEEP_NULLS)") == (1, "")
        assert copying.copy(row(3)) == (1, "")
        admin.execute("alter table gateway_test.copied alter note set default gen_random_uuid()")
        assert "Row 1, column 'note'" in copy(4)[1]
        admin.execute("alter table gateway_test.copied alter note set default null")
        assert copy(5) == (1, "")
    notes = admin.execute("select note from gateway_test.copied order by id").fetchall()
    assert notes == [("none",), (None,), ("none",), (None,)]


def test_other_columns_than_were_named(server: RunningServer, admin: Admin) -> None:
    with Copying(server, server.writer) as copying:
        assert copying.copy(row(1), insert="insert bulk gateway_test..copied (id int)")[1].startswith("213: ")
        other = INSERT.replace("[size]", "[note]")
        assert "'size' where 'note'" in copying.copy(row(1), insert=other)[1]
    assert stored(admin) == []


def test_a_copy_in_a_transaction(server: RunningServer, admin: Admin) -> None:
    with Copying(server, server.writer) as copying:
        copying.batch("begin tran")
        assert copying.copy(row(1)) == (1, "")
        assert copying.copy(row(1))[0] is None
        assert copying.copy(row(2)) == (1, "")
        assert stored(admin) == []
        copying.batch("commit")
        assert [id for id, *_ in stored(admin)] == [1, 2]
        copying.batch("begin tran")
        assert copying.copy(row(3)) == (1, "")
        copying.batch("rollback")
    assert [id for id, *_ in stored(admin)] == [1, 2]


def test_a_cancel_between_the_rows(server: RunningServer, admin: Admin) -> None:
    with Copying(server, server.writer) as copying:
        copying.batch(INSERT)
        whole = copying.client.packets(BULK7, colmetadata() + b"".join(row(n) for n in range(5000)))
        copying.client.socket.sendall(whole[: 4 * copying.client.packet_size])
        copying.client.send(ATTENTION, b"")
        reply = copying.client.receive()
        assert (reply[0], reply[1] & 0x20) == (0xFD, 0x20)
        assert copying.copy(row(1)) == (1, "")
    assert stored(admin) == [(1, None, None, None)]


@pytest.mark.parametrize("goes", [False, True])
@pytest.mark.parametrize("mode", ["access exclusive", "share"])
def test_a_cancel_while_the_table_is_locked(
    server: RunningServer, admin: Admin, mode: str, goes: bool
) -> None:
    """PostgreSQL waits for the lock when it describes the columns, or when it begins with the COPY."""

    def waits() -> bool:
        query = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%copied%'"
        return bool(admin.execute(query).fetchall())

    with psycopg.connect(server.dsn) as blocking, Copying(server, server.writer) as copying:
        blocking.execute(f"lock table gateway_test.copied in {mode} mode")
        copying.client.send(BATCH7, batch7(INSERT))
        wait_until(waits)
        if goes:
            copying.client.socket.close()
        else:
            copying.client.send(ATTENTION, b"")
            assert copying.client.receive()[-13:-10] == b"\xfd\x02\0"
            assert copying.client.receive()[:3] == b"\xfd\x20\0"
        wait_until(lambda: not waits(), lambda: "it waits still")
        blocking.rollback()
        if not goes:
            assert copying.copy(row(1)) == (1, "")
    assert len(stored(admin)) == int(not goes)


def test_messages_of_triggers_take_little_memory(server: RunningServer, admin: Admin) -> None:
    admin.execute(
        "create function gateway_test.say_much() returns trigger language plpgsql "
        "as $$ begin raise notice '%', repeat('x', 100000); return new; end $$; "
        "create trigger talks before insert on gateway_test.copied "
        "for each row execute function gateway_test.say_much()"
    )
    try:
        with Copying(server, server.writer) as copying:
            copying.batch(INSERT)
            copying.client.send(BULK7, colmetadata() + b"".join(row(n) for n in range(500)))
            reply = copying.client.receive()
    finally:
        admin.execute("drop function gateway_test.say_much() cascade")
    assert "more messages came".encode("utf-16-le") in reply
    assert len(reply) < 16 * MiB
    assert len(stored(admin)) == 500


def test_rows_with_the_ignore_bit(server: RunningServer, admin: Admin) -> None:
    """By the IGNORE bit of the last packet tedious cancels a bulk load, and waits for an answer."""
    with Copying(server, server.writer) as copying:
        copying.batch(INSERT)
        whole = copying.client.packets(BULK7, colmetadata() + b"".join(row(n) for n in range(5000)))
        copying.client.socket.sendall(whole[: 4 * copying.client.packet_size])
        copying.client.socket.sendall(struct.pack(">BBHHBB", BULK7, IGNORE | LAST, 8, 0, 5, 0))
        reply = copying.client.receive()
        assert (reply[0], struct.unpack_from("<H", reply, 1)) == (0xFD, (2,))
        assert copying.copy(row(1)) == (1, "")
    assert stored(admin) == [(1, None, None, None)]


def test_a_cancel_after_the_rows(server: RunningServer, admin: Admin) -> None:
    """PostgreSQL is still inserting: a trigger is slow."""
    admin.execute(
        "create function gateway_test.dawdle() returns trigger language plpgsql "
        "as $$ begin perform pg_sleep(300); return null; end $$; "
        "create trigger slow after insert on gateway_test.copied execute function gateway_test.dawdle()"
    )
    try:
        with Copying(server, server.writer) as copying:
            copying.batch(INSERT)
            copying.client.send(BULK7, colmetadata() + row(1))
            wait_until(lambda: one_sleeps(admin))
            start = time.monotonic()
            copying.client.send(ATTENTION, b"")
            assert copying.client.receive()[:3] == b"\xfd\x02\0"
            assert copying.client.receive()[:3] == b"\xfd\x20\0"
            assert time.monotonic() - start < 100
            assert words(copying.batch("select 1")) == ""
    finally:
        admin.execute("drop function gateway_test.dawdle() cascade")
    assert stored(admin) == []


def test_another_request_in_place_of_rows(server: RunningServer, admin: Admin) -> None:
    with Copying(server, server.writer) as copying:
        copying.batch(INSERT)
        assert words(copying.batch("select count(*) from gateway_test..copied")) == ""
        copying.client.send(BULK7, colmetadata() + row(1))
        assert words(copying.client.receive()).startswith("4002: ")
        assert copying.copy(row(1)) == (1, "")


def test_a_client_that_goes_away_stores_nothing(server: RunningServer, admin: Admin) -> None:
    with Copying(server, server.writer) as copying:
        copying.batch(INSERT)
        whole = copying.client.packets(BULK7, colmetadata() + b"".join(row(n) for n in range(5000)))
        copying.client.socket.sendall(whole[: 4 * copying.client.packet_size])
    admin.execute("set lock_timeout = '100s'; lock table gateway_test.copied; reset lock_timeout")
    assert stored(admin) == []


@pytest.mark.parametrize("damage", [b"\xd1\x05", b"\xaa", b"\xd1\x04\0\0"], ids=["length", "token", "end"])
def test_malformed_rows_end_the_connection(server: RunningServer, admin: Admin, damage: bytes) -> None:
    with Copying(server, server.writer) as copying:
        assert copying.copy(row(1), damage, done=None)[1].startswith("4002: ")
        with pytest.raises((EOFError, ConnectionError)):
            copying.batch("select 1")
    admin.execute("set lock_timeout = '100s'; lock table gateway_test.copied; reset lock_timeout")
    assert stored(admin) == []


def test_rows_of_any_number_take_little_memory(server: RunningServer, admin: Admin) -> None:
    process = psutil.Process(server.process.pid)
    # the server's other work also uses memory, for example its first summaries, but not each time
    for rows in (200_000, 400_000, 800_000):
        numbers = range(rows, 2 * rows)
        before = process.memory_info().rss
        with Copying(server, server.writer) as copying:
            copying.client.packet_size = 4096
            copying.batch(INSERT)
            whole = colmetadata() + b"".join(row(n, "12345678", 0.5, Decimal(1)) for n in numbers)
            copying.client.send(BULK7, whole)
            most = process.memory_info().rss
            assert answer(copying.client.receive()) == (rows, "")
        taken = max(most, process.memory_info().rss) - before
        assert len(whole) > 9 * MiB
        if taken < 6 * MiB:
            return
    pytest.fail(f"{taken} bytes more for a copy of {len(whole)}")


@pytest.mark.parametrize("version", ["7.1", "7.4"])
def test_pymssql(clients: Clients, admin: Admin, version: str) -> None:
    """It reads from sys.columns which columns require UTF-16."""
    with clients.pymssql(clients.server.writer, version=version, database="gateway_test") as connection:
        connection.bulk_copy("copied", [(1, "häuser", 0.5, "-12.34", "Ω")], check_constraints=True)
        connection.bulk_copy("copied", [(2, "b"), (3, "c")], column_ids=[1, 5], batch_size=1, tablock=True)
        with pytest.raises(_mssql.MSSQLDatabaseException, match="Row 2: duplicate key"):
            connection.bulk_copy("copied", [(4, "d"), (1, "a")], column_ids=[1, 5])
        connection.bulk_copy("copied", [(4,)], column_ids=[1])
    assert [id for id, *_ in stored(admin)] == [1, 2, 3, 4]
    assert stored(admin)[0] == (1, "häuser", 0.5, Decimal("-12.34"))
    notes = admin.execute("select note from gateway_test.copied order by id").fetchall()
    assert notes == [("Ω",), ("b",), ("c",), ("none",)]


def test_single_bytes_are_of_the_code_page_in_the_description(server: RunningServer) -> None:
    """From ctds's documentation: varchar in the code page of SQL_Latin1_General_CP1, nvarchar in UTF-16."""
    with (
        ctds_of(server, server.reader) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "create table #copied (Id int, Short varchar(20), Padded char(4), Long text, Wide nvarchar(20), "
            "Filled binary(4), Raw varbinary(4))"
        )
        latin, wide = "déjà vu €", "加速器"
        narrow = ctds.SqlVarChar(latin.encode("cp1252"))
        given = {
            "Id": 1,
            "Short": narrow,
            "Padded": ctds.SqlVarChar(b"x"),
            "Long": narrow,
            "Wide": ctds.SqlVarChar(wide.encode("utf-16-le")),
            "Filled": b"\x01",
            "Raw": b"\x01",
        }
        assert connection.bulk_insert("#copied", [given]) == 1
        cursor.execute("select * from #copied")
        assert [name for name, *_ in cursor.description] == list(given)
        rows = [tuple(row) for row in cursor.fetchall()]
        assert rows == [(1, latin, "x   ", latin, wide, b"\x01\0\0\0", b"\x01")]
        # what PostgreSQL keeps
        cursor.execute("select cast(Short as nvarchar(20)), len(cast(Long as varchar(20))) from #copied")
        assert [tuple(row) for row in cursor.fetchall()] == [(latin, len(latin))]


def test_columns_are_described_as_declared(server: RunningServer) -> None:
    with Copying(server, server.writer) as copying:
        copying.batch(
            "create table #copied (v varchar(8), c char(3), n nvarchar(5), b binary(4), m varchar(max))"
        )
        reply = copying.batch("set fmtonly on select * from #copied set fmtonly off")
        latin = b"\x09\x04\xd0\x00\x34"
        for token, size, collation in (
            (b"\xa7", 8, latin),
            (b"\xaf", 3, latin),
            (b"\xe7", 10, latin),
            (b"\xad", 4, b""),
            (b"\xa7", 0xFFFF, latin),
        ):
            assert token + struct.pack("<H", size) + collation in reply


def test_properties_of_columns_besides_their_types(server: RunningServer) -> None:
    """MS-TDS 2.2.7.4, flags: fNullable 1, usUpdateable 8 (unknown: a column of a table;
    mssql-jdbc copies no read-only column in bulk), fIdentity 16, fComputed 32."""
    with Copying(server, server.writer) as copying:
        copying.batch("create table #said (i int identity, n int not null, m int null, c as n + 1)")

        def messages(text: str) -> dict[str, int]:
            reply = copying.batch(text)
            found, offset = {}, reply.index(b"\x81") + 3
            while reply[offset + 6 : offset + 8] == b"\x26\x04":
                (flags,) = struct.unpack("<H", reply[offset + 4 : offset + 6])
                name = reply[offset + 9 : offset + 9 + 2 * reply[offset + 8]].decode("utf-16-le")
                found[name] = flags
                offset += 9 + 2 * reply[offset + 8]
            return found

        assert messages("set fmtonly on select * from #said set fmtonly off") == {
            "i": 16,
            "n": 8,
            "m": 9,
            "c": 33,
        }
        assert messages("select b.n, a.m from #said a left join #said b on a.n = b.m") == {"n": 9, "m": 9}
        assert messages("select n + 1 as e, 2 as f from #said") == {"e": 1, "f": 0}


def test_values_of_an_identity_column_are_the_servers(clients: Clients, admin: Admin) -> None:
    """FreeTDS omits columns described as identity columns from a bulk copy."""
    admin.execute(
        "alter table gateway_test.copied drop column note, "
        "alter id add generated always as identity (start 10 increment 10)"
    )
    with clients.pymssql(clients.server.writer) as connection:
        connection.bulk_copy("gateway_test..copied", [(0.5,), (1.5,)], column_ids=[3])
    assert stored(admin) == [(10, None, 0.5, None), (20, None, 1.5, None)]
