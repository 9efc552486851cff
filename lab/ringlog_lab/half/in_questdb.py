"""HALF's data in QuestDB: a narrow table, by QuestDB's own client (ILP over HTTP)."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from ringlog_lab.half.replay import PVS_OF_A_TABLE, midnight
from ringlog_lab.half.target import Reading, Target
from ringlog_lab.half.targets import binary
from ringlog_lab.peers.questdb import Questdb

_TOGETHER = 50_000
"""Rows of a request."""
_PAUSE = 0.01


class InQuestdb(Target):
    """A table of items, an hour a partition, PVs as indexed symbols."""

    name = "QuestDB"
    readings = ("QuestDB, SQL",)

    def __init__(self, server: Questdb, pvs: int) -> None:
        super().__init__(pvs)
        self._server = server
        self._execute(
            f"create table half (pv symbol capacity {max(256, pvs)} index, time timestamp, nanoseconds short,"
            " value double, severity short, status short) timestamp(time) partition by hour wal"
        )

    def _execute(self, query: str) -> Any:
        with psycopg.connect(self._server.conninfo, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            row = cursor.fetchone() if cursor.description else None
            return row and row[0]

    def prepare(self, table: int, rows: int) -> list[Any]:
        from questdb import Sender

        first = table * PVS_OF_A_TABLE
        made, several = [], 0
        with Sender.from_conf(self._server.sender) as sender:
            buffer = sender.new_buffer()
            for _, moment, nanoseconds, values, severities in self.recordings[table].rows(rows):
                for number, (value, severity) in enumerate(zip(values, severities, strict=True), start=1):
                    columns: dict[str, Any] = {
                        "nanoseconds": nanoseconds,
                        "value": value,
                        "severity": severity,
                        "status": 3 * severity,
                    }
                    buffer.row("half", symbols={"pv": str(first + number)}, columns=columns, at=moment)
                several += len(values)
                if several >= _TOGETHER:
                    made.append(buffer)
                    buffer, several = sender.new_buffer(), 0
        return [*made, buffer] if several else made

    def write(self, some: Sequence[tuple[int, list[Any]]]) -> None:
        from questdb import Sender

        with Sender.from_conf(self._server.sender) as sender:
            for _, parts in some:
                for part in parts:
                    sender.flush(part)

    def readable(self) -> None:
        # its write-ahead log is applied after the acknowledgement
        while self._execute("select count() from wal_tables() where sequencerTxn <> writerTxn"):
            time.sleep(_PAUSE)

    def found(self) -> int:
        return int(self._execute("select count() from half"))

    def size(self) -> int:
        return int(self._execute("select sum(diskSize) from table_partitions('half')"))

    def cpu(self) -> float:
        return sum(self._server.process.cpu_times()[:2])

    @contextmanager
    def reading(self, until: datetime, way: str) -> Iterator[Reading]:
        # its parser of dates takes Z for UTC
        begin, end = (f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}" for moment in (midnight(), until))
        query = sql.SQL(
            "select time, nanoseconds, value, severity, status from half where pv = '1' and "
            "time between {} and {} order by time"
        ).format(begin, end)
        with psycopg.connect(self._server.conninfo, autocommit=True) as connection:
            yield Reading(binary(connection, query), self.cpu)
