"""What HALF's data are written into and read from: ringlog, and PostgreSQL with a narrow table."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from psycopg import sql

from ringlog.clients import Address, call, connect, output
from ringlog.loadtest.bench.server import READER, WRITER, Server
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.half.published import HERTZ
from ringlog.loadtest.half.replay import PVS_OF_A_TABLE, Recording, midnight, tables

CONNECTIONS = 4
"""Writers at once."""
_TOGETHER = 250
"""Rows of a call of put_<table>_batch: a batch of more goes in several."""


@dataclass(frozen=True)
class Inserted:
    """Batches of so many minutes of all PVs."""

    target: str
    minutes: float
    items: int
    seconds: float

    @property
    def rate(self) -> float:
        """IDPS: items a second."""
        return self.items / self.seconds


@dataclass(frozen=True)
class Queried:
    """One PV over so many hours, again and again."""

    target: str
    hours: float
    items: int
    """of a query"""
    seconds: float
    """of a query, the median"""

    @property
    def rate(self) -> float:
        """QDPS: items a second."""
        return self.items / self.seconds


class Target(ABC):
    """Takes HALF's data and gives them back."""

    name: str
    readings: Sequence[str]
    """ways to read it"""

    def __init__(self, server: Server, pvs: int) -> None:
        self.server = server
        self.pvs = pvs
        self.recordings = [Recording(table, midnight()) for table in range(tables(pvs))]
        self.items = 0
        """acknowledged"""

    def insert(self, minutes: float, only: int | None = None) -> Inserted:
        """Writes a batch of all PVs, or of one table's, by CONNECTIONS writers; what is sent is made
        before."""
        rows = max(1, round(minutes * 60 * HERTZ))
        chosen = range(len(self.recordings)) if only is None else [only]
        made = [(table, self.prepare(table, rows)) for table in chosen]
        failures: list[Exception] = []

        def write(some: Sequence[tuple[int, list[bytes]]]) -> None:
            try:
                self.write(some)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(made[n::CONNECTIONS],)) for n in range(CONNECTIONS)]
        began = time.monotonic()
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        took = time.monotonic() - began
        if failures:
            raise LoadTestError(f"{self.name}: {failures[0]}")
        items = rows * PVS_OF_A_TABLE * len(made)
        self.items += items
        return Inserted(self.name, minutes, items, took)

    def query(self, hours: float, seconds: float, way: str) -> Queried:
        """Reads the first PV over the first so many hours, for so long, at least thrice."""
        items = max(1, round(hours * 3600 * HERTZ))
        until = midnight() + timedelta(seconds=(items - 0.5) / HERTZ)
        took: list[float] = []
        with psycopg.connect(self.server.conninfo(READER), autocommit=True) as connection:
            read = self.reader(connection, until, way)
            read()
            end = time.monotonic() + seconds
            while time.monotonic() < end or len(took) < 3:
                began = time.perf_counter()
                found = read()
                took.append(time.perf_counter() - began)
                if found != items:
                    raise LoadTestError(f"{way}: {found:,} items instead of {items:,}")
        return Queried(way, hours, items, sorted(took)[len(took) // 2])

    @abstractmethod
    def prepare(self, table: int, rows: int) -> list[bytes]:
        """The next rows of a table in the form that they are sent in."""

    @abstractmethod
    def write(self, some: Sequence[tuple[int, list[bytes]]]) -> None:
        """Writes what was prepared for tables, over a connection of its own."""

    @abstractmethod
    def found(self) -> int:
        """The items that are there."""

    @abstractmethod
    def reader(self, connection: psycopg.Connection, until: datetime, way: str) -> Callable[[], int]:
        """What reads the first PV until a moment, and says how many items there were."""


class Ringlog(Target):
    """ringlog's logs: a row has 100 PVs. Written as a recording is replayed, by put_<table>_batch."""

    name = "ringlog"
    readings = ("ringlog, SQL", "ringlog, get_signal")

    def __init__(self, server: Server, pvs: int) -> None:
        super().__init__(server, pvs)
        self._address = Address(WRITER, server.host, server.port)
        self._epochs: dict[int, int] = {}
        with closing(connect(self._address, server.password)) as connection:
            for table in range(len(self.recordings)):
                claim = ("claim_writer", f"half_{table}", "replay", "replay", True, output(int))
                (epoch,) = call(connection, *claim).outputs
                self._epochs[table] = int(str(epoch))

    def prepare(self, table: int, rows: int) -> list[bytes]:
        parts = [_TOGETHER] * (rows // _TOGETHER) + [rows % _TOGETHER] * bool(rows % _TOGETHER)
        return [self.recordings[table].batch(part).encode() for part in parts]

    def write(self, some: Sequence[tuple[int, list[bytes]]]) -> None:
        if not some:
            return
        with closing(connect(self._address, self.server.password, timeout=300)) as connection:
            for table, parts in some:
                for part in parts:
                    call(
                        connection,
                        f"put_half_{table}_batch",
                        rows=part.decode(),
                        _epoch=self._epochs[table],
                    )

    def found(self) -> int:
        return PVS_OF_A_TABLE * sum(
            _count(self.server, sql.Identifier("log", f"half_{table}"))
            for table in range(len(self.recordings))
        )

    def reader(self, connection: psycopg.Connection, until: datetime, way: str) -> Callable[[], int]:
        if way.endswith("get_signal"):
            query = sql.SQL("select * from ringlog.get_signal('HALF:1', {}, {})").format(midnight(), until)
        else:
            query = sql.SQL(
                "select time, nanoseconds, pv_1, severity_1, status_1 from log.half_0 where time between {} "
                "and {} order by time"
            ).format(midnight(), until)
        return _binary(connection, query)


class Narrow(Target):
    """PostgreSQL with a narrow table as HALF had it, a row an item; written by COPY."""

    name = "narrow PostgreSQL"
    readings = ("narrow PostgreSQL, SQL",)

    def __init__(self, server: Server, pvs: int) -> None:
        super().__init__(server, pvs)
        for statement in (
            "create table public.half_narrow (pv_id integer not null, time timestamptz not null, "
            "nanoseconds smallint not null, value double precision, severity smallint, status smallint, "
            "primary key (pv_id, time))",
            f"grant select, insert on public.half_narrow to {WRITER}",
            f"grant select on public.half_narrow to {READER}",
        ):
            server.administrator.execute(statement)

    def prepare(self, table: int, rows: int) -> list[bytes]:
        return [self.recordings[table].lines(rows)]

    def write(self, some: Sequence[tuple[int, list[bytes]]]) -> None:
        if not some:
            return
        with psycopg.connect(self.server.conninfo(WRITER)) as connection, connection.cursor() as cursor:
            for _, parts in some:
                with cursor.copy("copy public.half_narrow from stdin") as copy:
                    for part in parts:
                        copy.write(part)
            connection.commit()

    def found(self) -> int:
        return _count(self.server, sql.Identifier("public", "half_narrow"))

    def reader(self, connection: psycopg.Connection, until: datetime, way: str) -> Callable[[], int]:
        query = sql.SQL(
            "select time, nanoseconds, value, severity, status from public.half_narrow where pv_id = 1 and "
            "time between {} and {} order by time"
        ).format(midnight(), until)
        return _binary(connection, query)


def _binary(connection: psycopg.Connection, query: sql.Composed) -> Callable[[], int]:
    text = query.as_bytes(connection)

    def read() -> int:
        result = connection.pgconn.exec_params(text, [], result_format=1)
        if not result.ntuples:
            raise LoadTestError(result.error_message.decode(errors="replace").strip() or "no items")
        return result.ntuples

    return read


def _count(server: Server, where: sql.Identifier) -> int:
    row = server.administrator.execute(sql.SQL("select count(*) from {}").format(where)).fetchone()
    assert row is not None
    return int(row[0])
