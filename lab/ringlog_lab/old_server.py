"""Rows of an old server into the archive: `python -m ringlog_lab.old_server DSN FOLDER`.

A process replays a made answer of a server that speaks TDS 7.4, so that the old server's own cost is not
measured: rows of 200 reals, four weeks of 30,000. They are read alone, by the gateway's client with one and
two connections and by pymssql as ringlog did before; then they go into the archive FOLDER of an empty
database, and every value of its files is compared with what was sent.
"""

import multiprocessing
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pymssql

from ringlog.adoption.copying import Source as Login
from ringlog.adoption.objects import OldColumn, OldTable
from ringlog.adoption.old_rows import OldRows
from ringlog.adoption.rings import Ring
from ringlog.clients import Address
from ringlog.history.files import read
from ringlog.history.folder import Folder
from ringlog.history.manifest import manifest
from ringlog.history.migration import Migration
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.install import install
from ringlog.schema.partitions import maintain
from ringlog.schema.session import engine

REALS = [f"c{number:03}" for number in range(200)]
ROWS = 30_000
"""of a week"""
WEEKS = 4
BEGIN = datetime(2026, 3, 2)
NOW = datetime(2026, 6, 10, tzinfo=UTC)
_PACKET = 32_767
_1900 = datetime(1900, 1, 1)
_DONE = b"\xfd\0\0\0\0" + bytes(8)


def values() -> npt.NDArray[np.float32]:
    """Readings that wander: a row for each moment."""
    steps = np.random.default_rng(1).normal(0, 0.01, (ROWS * WEEKS, len(REALS)))
    return np.cumsum(steps, axis=0).astype(np.float32)


def times() -> npt.NDArray[np.int64]:
    """Milliseconds since BEGIN."""
    return np.arange(ROWS * WEEKS) * (7 * 86_400_000 // ROWS)


class Replay:
    """The made server."""

    def __init__(self) -> None:
        row = np.dtype([("token", "u1"), ("seq_no", "V5"), ("time", "V9"), ("values", "V5", len(REALS))])
        rows = np.zeros(len(times()), row)
        rows["token"] = 0xD1
        self._rows = rows.view("u1").reshape(len(rows), row.itemsize)
        self._rows[:, 1] = 4
        self._rows[:, 2:6] = (np.arange(len(rows)) % 10 + 1).astype("<i4").reshape(-1, 1).view("u1")
        self._rows[:, 6] = 8
        days, milliseconds = np.divmod(times(), 86_400_000)
        days += (BEGIN - _1900).days
        self._rows[:, 7:11] = days.astype("<i4").reshape(-1, 1).view("u1")
        self._rows[:, 11:15] = (milliseconds * 3 // 10).astype("<i4").reshape(-1, 1).view("u1")
        self._rows[:, 15:].reshape(len(rows), len(REALS), 5)[:, :, 0] = 4
        self._rows[:, 15:].reshape(len(rows), len(REALS), 5)[:, :, 1:] = (
            values().view("u1").reshape(len(rows), len(REALS), 4)
        )

    def answer(self, query: str) -> list[memoryview | bytes]:
        """The bytes of an answer."""
        bounds = re.findall(r"time [><]=? '([\d :.]+)'", query)
        if "min(" in query:
            ends = self._rows[[0, -1], 6:15].tobytes()
            return [_columns([("", _DATETIME), ("", _DATETIME)]), b"\xd1", ends, _DONE]
        if not bounds:
            return [_DONE]
        begin, end = (
            int(times().searchsorted((_moment(text) - BEGIN) // timedelta(milliseconds=1))) for text in bounds
        )
        described = [("seq_no", _INT), ("time", _DATETIME), *((name, _REAL) for name in REALS)]
        return [_columns(described), self._rows[begin:end].reshape(-1).data, _DONE]

    def serve(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._session, args=(connection,), daemon=True).start()

    def _session(self, connection: socket.socket) -> None:
        with connection:
            while (heard := _hear(connection)) is not None:
                kind, message = heard
                match kind:
                    case 0x12:
                        _send(connection, [bytes([1, 0, 6, 0, 1, 0xFF, 2])])
                    case 0x10:
                        ack = b"\1\x74\0\0\4\1x\0" + bytes(4)
                        size = str(_PACKET).encode("utf-16-le")
                        change = b"\4\5" + size + b"\4" + "4096".encode("utf-16-le")
                        tokens = b"\xad" + struct.pack("<H", len(ack)) + ack
                        tokens += b"\xe3" + struct.pack("<H", len(change)) + change
                        _send(connection, [tokens + _DONE])
                    case _:
                        _send(connection, self.answer(message[22:].decode("utf-16-le")))


_INT, _DATETIME, _REAL = b"\x26\4", b"\x6f\x08", b"\x6d\4"


def _columns(columns: list[tuple[str, bytes]]) -> bytes:
    described = b"\x81" + struct.pack("<H", len(columns))
    for name, kind in columns:
        described += bytes(4) + b"\1\0" + kind + bytes([len(name)]) + name.encode("utf-16-le")
    return described


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%d %H:%M:%S.%f" if " " in text else "%Y%m%d")


def _hear(connection: socket.socket) -> tuple[int, bytes] | None:
    message, is_last, kind = b"", False, 0
    while not is_last:
        head = connection.recv(8, socket.MSG_WAITALL)
        if len(head) < 8:
            return None
        kind, is_last = head[0], bool(head[1] & 1)
        if length := int.from_bytes(head[2:4], "big") - 8:
            message += connection.recv(length, socket.MSG_WAITALL)
    return kind, message


def _send(connection: socket.socket, parts: list[memoryview | bytes]) -> None:
    """Sends a message in packets, with short ones between the parts."""
    room = _PACKET - 8
    cut = [memoryview(part)[at : at + room] for part in parts for at in range(0, len(part), room)]
    for number, body in enumerate(cut):
        head = bytes([4, number == len(cut) - 1]) + struct.pack(">HHBB", len(body) + 8, 1, number % 256, 0)
        sent = connection.sendmsg([head, body])
        rest = memoryview(head + bytes(body)) if sent < len(body) + 8 else memoryview(b"")
        connection.sendall(rest[sent:])


def _replay(ports: "multiprocessing.Queue[int]") -> None:
    replay = Replay()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ports.put(listener.getsockname()[1])
        replay.serve(listener)


def by_pymssql(port: int) -> Iterator[pa.RecordBatch]:
    """As ringlog read old servers before."""
    names = ["seq_no", "time", *REALS]
    with (
        closing(
            pymssql.connect(
                "127.0.0.1", "me", "secret", port=str(port), tds_version="7.4", conn_properties=""
            )
        ) as old,
        old.cursor() as cursor,
    ):
        cursor.execute("select 1 where time >= '20260302' and time < '20260309'")
        while batch := cursor.fetchmany(100):
            seq_nos, moments, *columns = zip(*batch, strict=True)
            arrays = [pa.array(seq_nos, pa.int64()), pa.array(moments, pa.timestamp("us"))]
            arrays += [pa.array(column, pa.float32()) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, names)


def old_rows(port: int, connections: int) -> OldRows:
    kinds = {"seq_no": "int", "time": "datetime"}
    columns = tuple(
        OldColumn(name, kinds.get(name, "real"), 4, 0, 0, nullable=True)
        for name in ("seq_no", "time", *REALS)
    )
    log = OldTable("magnets", columns, (), 0)
    login = Login(Address("me", "127.0.0.1", port), "secret", "7.4", "UTC")
    return OldRows(login, Ring(log, "seq_no", "time", log, 1.0), connections)


def measured(what: str, batches: Iterator[pa.RecordBatch]) -> None:
    begun, cpu, count = time.monotonic(), time.process_time(), 0
    for batch in batches:
        count += batch.num_rows * len(REALS)
    _tell(what, count, begun, cpu)


def _tell(what: str, count: int, begun: float, cpu: float) -> None:
    seconds, used = time.monotonic() - begun, time.process_time() - cpu
    print(
        f"{what}: {count / seconds:,.0f} values/s ({count:,} in {seconds:.2f} s, {used:.2f} s of CPU)",
        flush=True,
    )


def move(port: int, conninfo: str, folder: Path, connections: int) -> None:
    """Into the archive, by ringlog's own way. Every value is compared."""
    reals = tuple(Column(name, f"bench/{name}", ColumnType.of("real")) for name in REALS)
    table = Table("magnets", 10, 1.0, reals)
    facility = Facility("bench", "UTC", (table,), history=History(Retention(2, "week"), str(folder)))
    administrator = engine(conninfo)
    install(administrator, facility)
    maintain(administrator, NOW)
    source = old_rows(port, connections)
    begun, cpu = time.monotonic(), time.process_time()
    moved = [*Migration(administrator, conninfo, "magnets", source, source.described, now=NOW).run()]
    _tell(f"into the archive, {connections} connections", sum(each.values for each in moved), begun, cpu)
    with administrator.connect() as connection:
        files = [week.file for week in manifest(connection)]
    administrator.dispose()
    batches = [batch for file in files for batch in read(Folder(str(folder)), file, ["time", *REALS])]
    found = pa.Table.from_batches(batches)
    for name, sent in zip(REALS, values().T, strict=True):
        if found[name].to_numpy().tobytes() != sent.tobytes():
            raise SystemExit(f"{name} differs")
    print("every value is as it was sent")


def main() -> None:
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_replay, args=(ports,), daemon=True)
    server.start()
    port = ports.get()
    schema = pa.schema([(name, pa.float32()) for name in ("seq_no", "time", *REALS)])
    for connections in (1, 2):
        rows = old_rows(port, connections).batches(schema, None, NOW)
        measured(f"read, {connections} connections", rows)
    measured("read by pymssql", by_pymssql(port))
    move(port, sys.argv[1], Path(sys.argv[2]).absolute(), 2)
    server.terminate()


if __name__ == "__main__":
    main()
