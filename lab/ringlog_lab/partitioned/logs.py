"""Random queries over a log whose rows are hot, closed, archived, or late and waiting, by every client.

All rows are in a plain table too, from which they were put: the same query over it has the same answer.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import psycopg
import pyarrow as pa

from ringlog.history.archive.archiving import archive
from ringlog.history.closing import close
from ringlog.history.reading import read
from ringlog.history.summaries.summarising import summarise
from ringlog.loadtest.experiment.server import READER, Server, serving
from ringlog.schema import session
from ringlog.schema.relations.partitions import Week
from ringlog_lab.partitioned import log_queries
from ringlog_lab.partitioned.asking import by_duckdb, by_postgres, by_tds
from ringlog_lab.partitioned.log_queries import ARCHIVED, NEW
from ringlog_lab.partitioned.running import Subject

_ZONE = ZoneInfo("Europe/Berlin")
_COLUMNS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "i": ("int", (0, 1, -1, 2, 3, 7, -8, 100)),
    "k": ("bigint", (0, 1, -(10**12), 10**15)),
    "m": ("smallint", (0, 1, -300, 7)),
    "d": ("numeric(9,3)", ("0", "1", "-1.5", "2.125", "99.999")),
    "s": ("varchar(12)", ("", " ", "a", "A", "a ", "ab", "b%", "_a", "Ä", "ß")),
    "n": ("varchar(12)", ("", "a", "A", "AB", "z")),
    "f": ("double", (0.0, 1.0, -2.5, 1e10, 3.0)),
    "r": ("real", (0.0, 0.5, -2.25, float("nan"), float("inf"), float("-inf"))),
    "b": ("bit", (True, False)),
}
"""types and values of the columns"""
_IN_POSTGRES = {"double": "double precision", "bit": "boolean"}
_PLACES = 1000
_FACILITY = """
timezone = "{zone}"
[history]
online = "2 weeks"
archive = "{archive}"
[[table]]
name = "parts"
rows = {places}
cycle = 1.0
log = "every"
"""
_COLUMN = """
[[table.column]]
name = "{}"
type = "{}"
"""


@contextmanager
def site(folder: Path) -> Iterator["Site"]:
    """A server whose log has rows of every kind."""
    where, facility = folder / "archive", folder / "facility.toml"
    where.mkdir(mode=0o755)
    columns = [_COLUMN.format(name, kind) for name, (kind, _) in _COLUMNS.items()]
    facility.write_text("".join([_FACILITY.format(zone=_ZONE, places=_PLACES, archive=where), *columns]))
    with serving(facility, folder / "data", keep=False) as server:
        made = Site(server, where)
        made.fill(random.Random(1))
        yield made


def _nights(now: datetime) -> list[datetime]:
    """The moments of the last change of the clock forward and of that back."""
    hours = (now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=n) for n in range(366 * 24))
    changes = (
        hour
        for hour in hours
        if hour.astimezone(_ZONE).utcoffset() != (hour - timedelta(hours=1)).astimezone(_ZONE).utcoffset()
    )
    return [next(changes), next(changes)]


@dataclass
class Site:
    server: Server
    archive: Path
    nights: list[datetime] = field(default_factory=lambda: _nights(datetime.now(UTC)))
    late: int = NEW
    """seq_no of the late rows that wait"""

    def fill(self, draw: random.Random) -> None:
        """Rows of both nights, of some weeks and of the last days, on time."""
        now = datetime.now(UTC).replace(microsecond=0)
        times = [night + timedelta(minutes=15 * n) for night in self.nights for n in range(-12, 13)]
        times += [now - timedelta(hours=n) for n in range(1, 30)]
        times += [now - timedelta(hours=n) for n in range(30, 6 * 7 * 24, 12)]
        administrator = self.server.administrator
        columns = ", ".join(f"{name} {_IN_POSTGRES.get(kind, kind)}" for name, (kind, _) in _COLUMNS.items())
        administrator.execute(
            f"""
            create schema plain;
            create table plain.parts (seq_no integer, time timestamptz, {columns});
            create table plain.u (id integer, i integer, d numeric(9, 3), s varchar(12));
            insert into plain.u values
              (1, 1, 0.5, 'a'), (2, null, 2.125, ''), (3, 7, null, 'ab'), (4, 1, -1.5, null), (5, 0, 1, 'A ');
            grant usage on schema plain to {READER};
            grant select on all tables in schema plain to {READER}
            """.encode()
        )
        old = now - timedelta(weeks=4)
        self.put(draw, ARCHIVED, [time for time in times if time < old])
        self.put(draw, NEW, [time for time in times if time >= old])
        for week in sorted({Week.of(time).start for time in times}):
            administrator.execute("select ringlog.make_week('parts', %s)", [week])

    def put(self, draw: random.Random, seq_no: int, times: list[datetime]) -> None:
        """Puts rows of these times, with random values, by the procedure, and into the plain table."""
        rows = [
            (seq_no, time, *(draw.choice((None, *each, *each)) for _, each in _COLUMNS.values()))
            for time in sorted({*times})
        ]
        values = ", ".join(["%s"] * (2 + len(_COLUMNS)))
        with self.server.administrator.cursor() as cursor:
            cursor.executemany(f"insert into plain.parts values ({values})".encode(), rows)
            cursor.executemany(f"select ringlog.put_parts(row({values})::online.parts)".encode(), rows)

    def settle(self) -> None:
        """Summarises, closes and archives what is due, and merges the late rows."""
        dsn = self.server.administrator_conninfo
        summarise(dsn, enough=1)
        close(dsn, pauses=0)
        [*archive(dsn, pauses=0)]

    @contextmanager
    def subjects(self, draw: random.Random) -> Iterator[list[Subject]]:
        """The queries by each client, after more late rows."""
        self.settle()
        # in another place of the ring than the rows that were late before
        self.late = self.late + 1 if self.late < _PLACES else NEW + 1
        now = datetime.now(UTC).replace(microsecond=0)
        late = [
            night + timedelta(seconds=draw.randrange(-20_000, 20_000))
            for night in self.nights
            for _ in range(4)
        ]
        # the weeks between keep their closed rows, which a late row would open
        late += [now - timedelta(seconds=draw.randrange(4 * 7 * 86_400, 7 * 7 * 86_400)) for _ in range(6)]
        late += [now - timedelta(seconds=draw.randrange(86_400)) for _ in range(2)]
        self.put(draw, self.late, late)
        dsn = self.server.conninfo(READER)
        with (
            session.connect(dsn, autocommit=True) as connection,
            closing(self.server.by_pymssql()) as tds,
            closing(duckdb.connect()) as duck,
        ):
            plain = by_postgres(connection)
            self._show(duck, connection)
            yield [
                Subject("logs, TDS", log_queries.TSQL, log_queries.TSQL_CHECKS, by_tds(tds), 4),
                Subject("logs, PostgreSQL", log_queries.POSTGRES, log_queries.OF_LOG, plain, 4),
                Subject("archive, PostgreSQL", log_queries.POSTGRES, log_queries.OF_ARCHIVE, plain, 16),
                *(
                    Subject(f"{name}, DuckDB", log_queries.COMMON, checks, by_duckdb(duck, [name], plain), 12)
                    for name, checks in log_queries.OF_DUCKDB.items()
                ),
            ]

    def _show(self, duck: duckdb.DuckDBPyConnection, connection: psycopg.Connection) -> None:
        """The archive's files, and the log's rows as Arrow, as relations of DuckDB."""
        duck.execute(f"set timezone = '{_ZONE}'")
        # closed rows have no decimals: with them every column would be read as rows
        for name, columns in {"arrow": [name for name in _COLUMNS if name != "d"], "decimals": ["d"]}.items():
            batches = read(self.server.administrator_conninfo, "parts", ["seq_no", *columns])
            duck.register(name, pa.Table.from_batches([*batches]))
        files = connection.execute("select file from ringlog.cold_week where rows > 0").fetchall()
        paths = [str(self.archive / file) for (file,) in files]
        for name, rows in {
            "arrow_rows": "arrow join decimals using (time, seq_no)",
            "archive_files": f"read_parquet({paths})",
        }.items():
            # Arrow and the files have decimals as texts
            duck.execute(f"create view {name} as select * replace (d::decimal(9, 3) as d) from {rows}")
