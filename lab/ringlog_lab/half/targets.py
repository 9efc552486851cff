"""ringlog's logs, and PostgreSQL with a narrow table."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

import psutil
import psycopg
from psycopg import sql

from ringlog.clients import Address, Connection, call, connect, output
from ringlog.clients.procedure import Argument
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.server import READER, WRITER, Server, postgres_cpu, process_cpu
from ringlog.schema import session
from ringlog.schema.column_type import ColumnType
from ringlog_lab.half.replay import PVS_OF_A_TABLE, SAMPLED, midnight
from ringlog_lab.half.target import Reading, Target

_TOGETHER = 250
"""Rows of a call of put_<table>_batch: a larger batch is sent in several calls."""
_PARTITIONS: LiteralString = (
    "select sum(pg_total_relation_size(relid)) from unnest(%s::regclass[]) as of "
    "cross join lateral pg_partition_tree(of)"
)


class Ringlog(Target):
    """ringlog's logs: a row has 100 PVs. Written like a replayed recording, by put_<table>_batch."""

    name = "ringlog"
    readings = ("ringlog, SQL", "ringlog, get_signal")

    def __init__(self, server: Server, pvs: int) -> None:
        super().__init__(pvs)
        self._server = server
        self._address = Address(WRITER, server.host, server.port)
        self._epochs: dict[int, int] = {}
        with closing(connect(self._address, server.password)) as connection:
            for table in range(len(self.recordings)):
                self._epochs[table] = _claimed(connection, server, f"half_{table}")

    def prepare(self, table: int, rows: int) -> list[bytes]:
        return [self.recordings[table].batch(part).encode() for part in _calls(rows)]

    def write(self, some: Sequence[tuple[int, list[bytes]]]) -> None:
        with closing(connect(self._address, self._server.password, timeout=300)) as connection:
            for table, parts in some:
                for part in parts:
                    call(
                        connection, f"put_half_{table}_batch", rows=part.decode(), _epoch=self._epochs[table]
                    )

    def found(self) -> int:
        return PVS_OF_A_TABLE * sum(
            count(self._server.administrator, sql.Identifier("log", f"half_{table}"))
            for table in range(len(self.recordings))
        )

    def size(self) -> int:
        names = [f"weeks.half_{table}" for table in range(len(self.recordings))]
        return size(self._server.administrator, _PARTITIONS, names)

    def cpu(self) -> float:
        """Of gateway and PostgreSQL."""
        mark = self._server.mark()
        return mark.gateway + mark.postgres

    @contextmanager
    def reading(self, until: datetime, way: str) -> Iterator[Reading]:
        if way.endswith("get_signal"):
            query = sql.SQL("select * from ringlog.get_signal('HALF:1', {}, {})").format(midnight(), until)
        else:
            query = sql.SQL(
                "select time, nanoseconds, pv_1, severity_1, status_1 from log.half_0 where time between {} "
                "and {} order by time"
            ).format(midnight(), until)
        with session.connect(self._server.conninfo(READER), autocommit=True) as connection:
            yield Reading(binary(connection, query), backend_cpu(connection))


class Sampled(Target):
    """One table of samples of all PVs, written by its put_<table>_batch, as `ringlog load` does."""

    name = "ringlog, samples"
    readings = ("ringlog, samples, SQL", "ringlog, samples, get_signal")
    compresses = True

    def __init__(self, server: Server, pvs: int) -> None:
        super().__init__(pvs)
        self._server = server
        self._address = Address(WRITER, server.host, server.port)
        with closing(connect(self._address, server.password)) as connection:
            self._epoch = _claimed(connection, server, SAMPLED)
        known = server.administrator.execute(
            "select number from ringlog.sample_signal where table_name = %s"
            " order by split_part(signal, ':', 2)::integer",
            [SAMPLED],
        )
        self._numbers = [number for (number,) in known]

    def prepare(self, table: int, rows: int) -> list[dict[str, Argument]]:
        numbers = self._numbers[table * PVS_OF_A_TABLE : (table + 1) * PVS_OF_A_TABLE]
        made = (self.recordings[table].samples(part, numbers) for part in _calls(rows))
        return [each.sent(ColumnType.of("double"), swaps=False) for each in made]

    def write(self, some: Sequence[tuple[int, list[dict[str, Argument]]]]) -> None:
        with closing(connect(self._address, self._server.password, timeout=300)) as connection:
            for _, parts in some:
                for part in parts:
                    call(connection, f"put_{SAMPLED}_batch", **part, _epoch=self._epoch)

    def compress(self) -> None:
        """Merges the blocks of the calls, as housekeeping does, which may be at it: it is waited for."""
        administrator, merged = self._server.administrator, True
        while merged:
            with administrator.transaction():
                turn = "select from ringlog.sample_table where table_name = %s for update"
                administrator.execute(turn, [SAMPLED])
                row = administrator.execute("select ringlog.merge_samples(%s)", [SAMPLED]).fetchone()
                merged = row is not None and row[0] is not None

    def found(self) -> int:
        return count(self._server.administrator, sql.Identifier("log", SAMPLED))

    def size(self) -> int:
        return size(self._server.administrator, _PARTITIONS, [f"weeks.{SAMPLED}"])

    def cpu(self) -> float:
        """Of gateway and PostgreSQL."""
        mark = self._server.mark()
        return mark.gateway + mark.postgres

    @contextmanager
    def reading(self, until: datetime, way: str) -> Iterator[Reading]:
        if way.endswith("get_signal"):
            query = sql.SQL("select * from ringlog.get_signal('SAMPLED:1', {}, {})")
        else:
            query = sql.SQL(
                "select time, nanoseconds, value, severity, status from log.half_samples "
                "where signal = 'SAMPLED:1' and time between {} and {} order by time"
            )
        with session.connect(self._server.conninfo(READER), autocommit=True) as connection:
            yield Reading(binary(connection, query.format(midnight(), until)), backend_cpu(connection))


@dataclass(frozen=True)
class PostgresAccess:
    """A PostgreSQL, and its logins for writing and reading."""

    postmaster: psutil.Process
    administrator: psycopg.Connection
    writer: str
    reader: str
    """connection strings"""


class Narrow(Target):
    """PostgreSQL with a narrow table like HALF's, a row per item; written by COPY."""

    name = "narrow PostgreSQL"
    table = "half_narrow"

    def __init__(self, access: PostgresAccess, pvs: int) -> None:
        super().__init__(pvs)
        self.access = access
        self.readings = (f"{self.name}, SQL",)
        self.create()

    @classmethod
    def beside(cls, server: Server, pvs: int) -> "Narrow":
        """The table in the PostgreSQL of a ringlog server."""
        access = PostgresAccess(
            server.postmaster, server.administrator, server.conninfo(WRITER), server.conninfo(READER)
        )
        made = cls(access, pvs)
        for right, who in (("select, insert", WRITER), ("select", READER)):
            grant = sql.SQL("grant {} on {} to {}")
            made.execute(grant.format(sql.SQL(right), made.identifier, sql.Identifier(who)))
        return made

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier("public", self.table)

    def execute(self, statement: sql.SQL | sql.Composed) -> None:
        self.access.administrator.execute(statement)

    def create(self) -> None:
        """Makes the table."""
        self.execute(
            sql.SQL(
                "create table {} (pv_id integer not null, time timestamptz not null, nanoseconds smallint "
                "not null, value double precision, severity smallint, status smallint, "
                "primary key (pv_id, time))"
            ).format(self.identifier)
        )

    def prepare(self, table: int, rows: int) -> list[bytes]:
        return [self.recordings[table].lines(rows)]

    def write(self, some: Sequence[tuple[int, list[bytes]]]) -> None:
        with session.connect(self.access.writer) as connection, connection.cursor() as cursor:
            for _, parts in some:
                with cursor.copy(sql.SQL("copy {} from stdin").format(self.identifier)) as copy:
                    for part in parts:
                        copy.write(part)
            connection.commit()

    def found(self) -> int:
        return count(self.access.administrator, self.identifier)

    def size(self) -> int:
        return size(self.access.administrator, "select pg_total_relation_size(%s)", f"public.{self.table}")

    def cpu(self) -> float:
        return postgres_cpu(self.access.postmaster)[0]

    @contextmanager
    def reading(self, until: datetime, way: str) -> Iterator[Reading]:
        query = sql.SQL(
            "select time, nanoseconds, value, severity, status from {} where pv_id = 1 and "
            "time between {} and {} order by time"
        ).format(self.identifier, midnight(), until)
        with session.connect(self.access.reader, autocommit=True) as connection:
            yield Reading(binary(connection, query), backend_cpu(connection))


def _claimed(connection: Connection, server: Server, table: str) -> int:
    """The epoch of a writer of a table, which is emptied: an IOC's rows are not counted."""
    (epoch,) = call(connection, "claim_writer", table, "replay", "replay", True, output(int)).outputs
    server.administrator.execute(sql.SQL("truncate {}").format(sql.Identifier("weeks", table)))
    return int(str(epoch))


def _calls(rows: int) -> list[int]:
    return [_TOGETHER] * (rows // _TOGETHER) + [rows % _TOGETHER] * bool(rows % _TOGETHER)


def binary(connection: psycopg.Connection, query: sql.Composed) -> Callable[[], int]:
    """A function that runs a query; the answer is in PostgreSQL's binary form and is not decoded."""
    text = query.as_bytes(connection)

    def read() -> int:
        result = connection.pgconn.exec_params(text, [], result_format=1)
        if not result.ntuples:
            raise LoadTestError(result.error_message.decode(errors="replace").strip() or "no items")
        return result.ntuples

    return read


def backend_cpu(connection: psycopg.Connection) -> Callable[[], float]:
    """A function that returns the CPU seconds of a connection's PostgreSQL process on this machine."""
    process = psutil.Process(connection.info.backend_pid)
    return lambda: process_cpu(process)


def count(administrator: psycopg.Connection, where: sql.Identifier) -> int:
    """The rows of a table."""
    row = administrator.execute(sql.SQL("select count(*) from {}").format(where)).fetchone()
    assert row is not None
    return int(row[0])


def size(administrator: psycopg.Connection, query: LiteralString, of: str | Sequence[str]) -> int:
    """Bytes of a table or of several, by a query."""
    row = administrator.execute(query, [of]).fetchone()
    assert row is not None
    return int(row[0])
