"""HALF's own table: a hypertable of TimescaleDB, uncompressed and compressed."""

from psycopg import sql

from ringlog_lab.half.targets import Narrow, PostgresAccess, size
from ringlog_lab.peers.timescaledb import Timescaledb


class Hypertable(Narrow):
    """A narrow hypertable with chunks of an hour and a key of PV and time."""

    name = "TimescaleDB"
    table = "half_hypertable"

    def create(self) -> None:
        super().create()
        self.execute(
            sql.SQL("select create_hypertable({}, 'time', chunk_time_interval => interval '1 hour')").format(
                f"public.{self.table}"
            )
        )

    def size(self) -> int:
        return size(self.access.administrator, "select hypertable_size(%s)", f"public.{self.table}")


class Compressed(Hypertable):
    """Its twin, whose chunks are compressed before they are read: a segment a PV, in the order of time."""

    name = "TimescaleDB, compressed"
    table = "half_compressed"
    compresses = True

    def create(self) -> None:
        super().create()
        self.execute(
            sql.SQL(
                "alter table {} set (timescaledb.compress, timescaledb.compress_segmentby = 'pv_id', "
                "timescaledb.compress_orderby = 'time')"
            ).format(self.identifier)
        )

    def compress(self) -> None:
        chunks = sql.SQL("select show_chunks({})::text").format(f"public.{self.table}")
        for (chunk,) in self.access.administrator.execute(chunks).fetchall():
            self.access.administrator.execute("select compress_chunk(%s)", [chunk])


def targets(server: Timescaledb, pvs: int) -> list[Narrow]:
    """Both, in a running server."""
    access = PostgresAccess(server.postmaster, server.administrator, server.conninfo, server.conninfo)
    return [Hypertable(access, pvs), Compressed(access, pvs)]
