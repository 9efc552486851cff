"""The client of old servers: every type as pymssql returns it, and answers damaged in every way."""

import os
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest
from case_tables import cases

from ringlog.adoption.rings import moment
from ringlog.adoption.server.session import connected
from ringlog.clients import Address
from ringlog.gateway import OldServer, OldServerError
from ringlog.history.sources import tds
from servers import Login, RunningServer
from tds_clients import PLAIN

VERSIONS = ("5.0", "7.1", "7.4")
_VALUES = cases(__file__, "_values")
_OF_7 = cases(__file__, "_of_7")
_OF_7_3 = {
    "datetime2(7)": "'2026-03-29 02:30:15.1234567'",
    "datetime2(3)": "'0001-01-01 00:00:00.001'",
    "time(6)": "'23:59:59.999999'",
    "datetimeoffset(6)": "'2026-03-29 02:30:15.123456 +09:00'",
}
_OF_5 = cases(__file__, "_of_5")


def address(server: RunningServer, login: Login, database: str = "") -> Address:
    return Address(login.user, server.host, server.port, database)


def values_of(version: str) -> dict[str, str]:
    if version == "5.0":
        return _VALUES | _OF_5
    return _VALUES | _OF_7 | (_OF_7_3 if version == "7.4" else {})


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_is_as_in_pymssql(
    server: RunningServer, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_server = address(server, PLAIN)
    # the environment's version is neither used nor replaced
    monkeypatch.setenv("TDSVER", "4.2")
    with (
        connected(old_server, PLAIN.password, version) as other,
        other.cursor() as cursor,
        closing(tds.session(old_server, PLAIN.password, version)) as old,
    ):
        for kind, value in values_of(version).items():
            query = f"select convert({kind}, {value}) as a, convert({kind}, null) as b"
            (batch,) = tds.rows(old, query)
            cursor.execute(query)
            (row,) = cursor.fetchall()
            assert row is not None
            mine = [column[0].as_py() for column in batch.columns]
            assert mine[1] is None, kind
            assert row[1] is None, kind
            assert mine[0] == _alike(row[0], batch.schema.types[0]), (kind, version, batch.schema)
    assert os.environ["TDSVER"] == "4.2"


def _alike(value: object, kind: pa.DataType) -> object:
    """A value of pymssql in Arrow's form: for some times its driver returns the bytes."""
    if pa.types.is_date(kind) and isinstance(value, bytes) and len(value) == 4:
        return date(1900, 1, 1) + timedelta(days=int.from_bytes(value, "little", signed=True))
    if pa.types.is_time(kind) and isinstance(value, bytes):
        number = int.from_bytes(value[:8], "little")
        # 1/300 s, microseconds, or for other types 100 ns
        micros = {4: (number * 10 + 1) // 3 * 1000, 8: number, 16: number // 10}[len(value)]
        return (datetime.min + timedelta(microseconds=micros)).time()
    if pa.types.is_timestamp(kind):
        value = moment(value)
        if isinstance(value, bytes) and len(value) == 16:
            ticks, days, _ = struct.unpack("<qih", value[:14])
            value = datetime(1900, 1, 1) + timedelta(days=days, microseconds=ticks // 10)
            return value.replace(tzinfo=UTC) if kind.tz else value
        assert isinstance(value, datetime), value
        return value.astimezone(UTC) if value.tzinfo else value
    if isinstance(value, datetime):
        return value.time() if pa.types.is_time(kind) else value.date()
    if isinstance(value, float) and pa.types.is_float32(kind):
        return pa.scalar(value, pa.float32()).as_py()
    if isinstance(value, UUID):
        return str(value)
    assert isinstance(value, (bool, int, float, Decimal, str, bytes, date, time)), (value, kind)
    return value


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_come_in_batches(server: RunningServer, version: str) -> None:
    login = server.reader
    numbers = (
        "select top 5000 row_number() over (order by a.oid) n, 'text' t"
        " from pg_class a, pg_class b order by 1"
    )
    with closing(tds.session(address(server, login, "log"), login.password, version)) as old:
        assert old.packet_size in (32_256, 32_767)
        assert [batch.num_rows for batch in tds.rows(old, numbers, 2000)] == [2000, 2000, 1000]
        (batch,) = tds.rows(old, numbers)
        assert batch["n"].to_pylist() == [*range(1, 5001)]
        # the rest of an answer is read before the next query
        next(iter(tds.rows(old, numbers, 1)))
        assert old.query("set textsize 1000") == []
        assert [*tds.rows(old, "select 1 as a where 1 = 0")] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_refusals_are_named(server: RunningServer, version: str) -> None:
    login = server.reader
    old_server = address(server, login)
    with closing(tds.session(old_server, login.password, version)) as old:
        with pytest.raises(OldServerError, match=r"message 208: .*nowhere"):
            old.query("select * from nowhere")
        with pytest.raises(OldServerError, match="the connection is closed"):
            old.query("select 1")
    with pytest.raises(OldServerError, match=r"message (4002|18456): "):
        tds.session(old_server, "wrong", version)
    with (
        closing(tds.session(old_server, login.password, version)) as old,
        pytest.raises(OldServerError, match="one"),
    ):
        [*tds.rows(old, "select 1 select 2")]
    with pytest.raises(OldServerError, match="refused"):
        tds.session(Address("me", "127.0.0.1", 1), "", version)


# --- damaged answers ---


def packets(body: bytes, size: int = 4096) -> bytes:
    """A message of a server."""
    parts = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    return b"".join(
        bytes([4, number == len(parts) - 1]) + struct.pack(">HHBB", len(part) + 8, 0, 1, 0) + part
        for number, part in enumerate(parts)
    )


def done(version: str) -> bytes:
    return b"\xfd\0\0\0\0" + bytes(8 if version >= "7.2" else 4)


def welcome(version: str) -> bytes:
    """The answer to a login."""
    number = {"5.0": b"\5\0\0\0", "7.1": b"\x71\0\0\1", "7.4": b"\x74\0\0\4"}[version]
    name = b"\1x" if version == "5.0" else b"\1x\0"
    ack = (b"\5" if version == "5.0" else b"\1") + number + name + bytes(4)
    return packets(b"\xad" + struct.pack("<H", len(ack)) + ack + done(version))


def hear(connection: socket.socket) -> bytes:
    """Reads a message of the client."""
    message, is_last = b"", False
    while not is_last:
        head = connection.recv(8, socket.MSG_WAITALL)
        if len(head) < 8:
            return b""
        is_last = bool(head[1] & 1)
        message += connection.recv(int.from_bytes(head[2:4], "big") - 8, socket.MSG_WAITALL)
    return message


@contextmanager
def answering(version: str, answers: Iterator[bytes]) -> Iterator[int]:
    """A server that sends each session the next answer, for any request, and closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                if version != "5.0":
                    hear(connection)
                    options = bytes([1, 0, 6, 0, 1, 0xFF, 2])
                    connection.sendall(packets(options))
                hear(connection)
                connection.sendall(welcome(version))
                hear(connection)
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        thread.join()


def ask(port: int, version: str) -> pa.Table:
    old = OldServer(
        host="127.0.0.1",
        port=port,
        user="me",
        password="secret",
        database="",
        version=version,
        client="here",
        application="test",
        timeout=20,
    )
    with closing(old):
        batches = [*tds.rows(old, "select")]
        return pa.Table.from_batches(batches) if batches else pa.table({})


def answer_of(server: RunningServer, version: str) -> bytes:
    """The bytes of a real answer with several types, recorded."""
    login = server.reader
    kinds = ("int", "real", "varchar(20)", "numeric(38, 10)", "datetime", "varbinary(300)", "text")
    columns = ", ".join(f"convert({kind}, {_VALUES[kind]}) c{n}" for n, kind in enumerate(kinds))
    nulls = ", ".join(f"convert({kind}, null)" for kind in kinds)
    recorded = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pass_on(source: socket.socket, target: socket.socket, kept: bytearray | None) -> None:
            while data := source.recv(65536):
                if kept is not None:
                    kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

        def serve() -> None:
            client, _ = listener.accept()
            with client, socket.create_connection((server.host, server.port)) as there:
                asking = threading.Thread(target=pass_on, args=(client, there, None))
                asking.start()
                pass_on(there, client, recorded)
                asking.join()

        thread = threading.Thread(target=serve)
        thread.start()
        old_server = Address(login.user, "127.0.0.1", listener.getsockname()[1])
        with closing(tds.session(old_server, login.password, version)) as old:
            recorded.clear()
            (batch,) = tds.rows(old, f"select {columns} union all select {nulls}")
        thread.join()
    assert batch.num_rows == 2
    return bytes(recorded)


@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_answers_are_errors(server: RunningServer, version: str) -> None:
    whole = answer_of(server, version)
    body = whole[8:]
    chance = random.Random(version)
    cut = [packets(body[:length], 100) for length in range(len(body))]
    closed = [whole[:length] for length in range(len(whole))]
    noise = [packets(chance.randbytes(chance.randrange(200)), 50) for _ in range(300)]
    changed = []
    for _ in range(600):
        bytes_ = bytearray(body)
        for _ in range(chance.randrange(1, 4)):
            bytes_[chance.randrange(len(body))] = chance.choice([0, 1, 0x7F, 0xFF, chance.randrange(256)])
        changed.append(packets(bytes(bytes_)))
    answers = [whole, *cut, *closed, *noise, *changed]
    with answering(version, iter(answers)) as port:
        expected = ask(port, version)
        assert expected.num_rows == 2
        for number in range(1, len(answers)):
            try:
                found = ask(port, version)
            except (OldServerError, pa.ArrowInvalid):
                continue
            # a change that results in other values
            assert number > len(cut) + len(closed), answers[number]
            found.validate(full=True)
