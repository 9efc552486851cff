"""Rows of an old server into the archive: `python -m ringlog_lab.old_server DSN FOLDER [SOURCE …]`.

Rows of 200 reals, four weeks of 30,000, come from each SOURCE: `tds`, where a process replays a made answer
of a server that speaks TDS 7.4, so that the old server's own cost is not measured; `pymssql`, which reads it
as ringlog did before; bcp's files, `native` and `character`; `csv`. They are read alone, then go into the
archive FOLDER/archive of an empty database, with summaries if the source's name ends with `+summaries`, and
every value of its files is compared with what was sent.
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
import pyarrow.compute as pc
import pymssql

from ringlog.adoption.rings import Ring
from ringlog.adoption.rows.copying import Source as Login
from ringlog.adoption.rows.old_rows import OldRows
from ringlog.adoption.server.objects import OldColumn, OldTable
from ringlog.clients import Address
from ringlog.history.archive.files import read
from ringlog.history.archive.folder import Folder
from ringlog.history.archive.manifest import manifest
from ringlog.history.incoming import Description, Source
from ringlog.history.migration.migrating import Migration
from ringlog.history.sources.bcp_files import BcpFiles
from ringlog.history.sources.csv_files import CsvFiles
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
_SUMMARIES = "+summaries"
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


def native(folder: Path) -> None:
    """The rows as bcp writes them natively: a length of a byte before each value that may be null."""
    moment = [("time", "u1"), ("day", "<i4"), ("tick", "<i4")]
    row = np.dtype([("seq_no", "<i4"), *moment, ("values", _VALUE, len(REALS))])
    rows = np.zeros(len(times()), row)
    days, milliseconds = np.divmod(times(), 86_400_000)
    rows["seq_no"] = np.arange(len(rows)) % 10 + 1
    rows["time"], rows["day"], rows["tick"] = 8, days + (BEGIN - _1900).days, milliseconds * 3 // 10
    rows["values"]["length"], rows["values"]["value"] = 4, values()
    rows.tofile(folder / "rows.bcp")
    _format(folder, ["SQLINT 0 4", "SQLDATETIME 1 8", *["SQLFLT4 1 4"] * len(REALS)], [""] * (len(REALS) + 2))


_VALUE = np.dtype([("length", "u1"), ("value", "<f4")])


def character(folder: Path) -> None:
    """The rows as bcp writes them in characters."""
    _texts(folder / "rows.dat", "\t", "\r\n", [])
    ends = ["\\t"] * (len(REALS) + 1) + ["\\r\\n"]
    _format(folder, ["SQLCHAR 0 40"] * len(ends), ends)


def _format(folder: Path, kinds: list[str], ends: list[str]) -> None:
    names = ["seq_no", "time", *REALS]
    fields = [
        f'{number} {kind} "{end}" {number} {name} ""'
        for number, (kind, end, name) in enumerate(zip(kinds, ends, names, strict=True), 1)
    ]
    (folder / "rows.fmt").write_text("\n".join(["14.0", str(len(fields)), *fields]) + "\n")


def _texts(file: Path, between: str, end: str, head: list[str]) -> None:
    """Lines with the shortest decimal of each value."""
    arrays = [
        pa.array(np.arange(len(times())) % 10 + 1),
        pa.array(times() * 1000).cast(pa.timestamp("us")),
        *(pa.array(column) for column in values().T),
    ]
    arrays[1] = pc.add(arrays[1], pa.scalar(BEGIN - datetime(1970, 1, 1)))
    texts = [array.cast(pa.string()) for array in arrays]
    with file.open("w", newline="") as stream:
        stream.writelines(each + end for each in [between.join(head)] if head)
        for begin in range(0, len(times()), 1000):
            lines = pc.binary_join_element_wise(*(text.slice(begin, 1000) for text in texts), between)
            stream.write(end.join([*lines.to_pylist(), ""]))


def comma_separated(folder: Path) -> None:
    _texts(folder / "rows.csv", ",", "\n", ["seq_no", "time", *REALS])


def source_of(name: str, folder: Path, port: int) -> Source:
    """Writes the files of a source."""
    form = name.removesuffix(_SUMMARIES)
    made = folder / form
    made.mkdir(parents=True, exist_ok=True)
    match form:
        case "tds":
            return old_rows(port, 2)
        case "csv":
            comma_separated(made)
            return CsvFiles(made, Description())
        case "native" | "character":
            (native if form == "native" else character)(made)
            return BcpFiles(made, Description())
    raise SystemExit(f"{name}: tds, pymssql, native, character or csv")


def move(name: str, source: Source, described: Description, conninfo: str, folder: Path) -> None:
    """Into the archive, by ringlog's own way. Every value is compared."""
    administrator = engine(conninfo)
    maintain(administrator, NOW)
    begun, cpu = time.monotonic(), time.process_time()
    moved = [*Migration(administrator, conninfo, _table(name), source, described, now=NOW).run()]
    _tell(f"{name} into the archive", sum(each.values for each in moved), begun, cpu)
    with administrator.connect() as connection:
        files = [week.file for week in manifest(connection, _table(name))]
    administrator.dispose()
    batches = [batch for file in files for batch in read(Folder(str(folder)), file, ["time", *REALS])]
    found = pa.Table.from_batches(batches)
    for column, sent in zip(REALS, values().T, strict=True):
        if found[column].to_numpy().tobytes() != sent.tobytes():
            raise SystemExit(f"{column} differs")
    print("every value is as it was sent")


def install_tables(conninfo: str, archive: Path, names: list[str]) -> None:
    """A table for each source."""
    tables = [
        Table(
            _table(name),
            10,
            1.0,
            tuple(Column(real, f"{_table(name)}/{real}", ColumnType.of("real")) for real in REALS),
            summaries=(60, 3600) if name.endswith(_SUMMARIES) else (),
        )
        for name in names
    ]
    facility = Facility("bench", "UTC", tuple(tables), history=History(Retention(2, "week"), str(archive)))
    administrator = engine(conninfo)
    install(administrator, facility)
    administrator.dispose()


def _table(name: str) -> str:
    return name.replace("+", "_")


def main() -> None:
    conninfo, folder, *names = sys.argv[1], Path(sys.argv[2]).absolute(), *sys.argv[3:]
    names = names or ["tds", "pymssql", "native", "character", "csv"]
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_replay, args=(ports,), daemon=True)
    server.start()
    port = ports.get()
    archive = folder / "archive"
    archive.mkdir(parents=True, exist_ok=True)
    install_tables(conninfo, archive, [name for name in names if name != "pymssql"])
    kinds = [("seq_no", pa.int32()), ("time", pa.timestamp("us", "UTC"))]
    schema = pa.schema([*kinds, *((name, pa.float32()) for name in REALS)])
    for name in names:
        if name == "pymssql":
            measured("read by pymssql", by_pymssql(port))
            continue
        source = source_of(name, folder, port)
        measured(f"{name} read", source.batches(schema, None, NOW))
        described = source.described if isinstance(source, OldRows) else Description()
        move(name, source, described, conninfo, archive)
    server.terminate()


if __name__ == "__main__":
    main()
