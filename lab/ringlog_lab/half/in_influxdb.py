"""HALF's data in InfluxDB: one series for each PV, by InfluxDB's own client."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

from ringlog.schema.moments import microseconds
from ringlog_lab.half.replay import midnight
from ringlog_lab.half.target import Reading, Target
from ringlog_lab.peers.influxdb import Influxdb
from ringlog_lab.peers.process import room

_DATABASE = "half"
_TOGETHER = 5_000
"""Items of a request, as its documentation advises (optimize writes)."""


class InInfluxdb(Target):
    """Measurement `half` with the PV as its tag, times in nanoseconds."""

    name = "InfluxDB"
    readings = ("InfluxDB, InfluxQL",)

    def __init__(self, server: Influxdb, pvs: int) -> None:
        super().__init__(pvs)
        self._server = server
        with closing(self._client()) as client:
            client.create_database(_DATABASE)

    def _client(self) -> Any:
        from influxdb import InfluxDBClient

        return InfluxDBClient("127.0.0.1", self._server.port, database=_DATABASE, timeout=600)

    def prepare(self, table: int, rows: int) -> list[str]:
        lines = self.recordings[table].protocol(rows)
        return ["\n".join(lines[n : n + _TOGETHER]) for n in range(0, len(lines), _TOGETHER)]

    def write(self, some: Sequence[tuple[int, list[str]]]) -> None:
        with closing(self._client()) as client:
            for _, parts in some:
                for part in parts:
                    client.write(part, {"db": _DATABASE, "precision": "n"}, protocol="line")

    def found(self) -> int:
        with closing(self._client()) as client:
            (row,) = client.query('select count("value") from "half"').get_points()
        return int(row["count"])

    def size(self) -> int:
        """With its write-ahead log, which has the values until they are in its files."""
        return room(self._server.data)

    def cpu(self) -> float:
        return sum(self._server.process.cpu_times()[:2])

    @contextmanager
    def reading(self, until: datetime, way: str) -> Iterator[Reading]:
        begin, end = (1000 * microseconds(moment) for moment in (midnight(), until))
        query = (
            'select "value", "severity", "status" from "half" where "pv" = \'1\' '
            f"and time >= {begin} and time <= {end}"
        )
        with closing(self._client()) as client:

            def read() -> int:
                series = client.query(query, epoch="ns").raw["series"]
                return sum(len(one["values"]) for one in series)

            yield Reading(read, self.cpu)
