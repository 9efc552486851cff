"""A database for each test, its administrator's engine and connections, and facilities of one small table."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, LogPolicy, SampleSignal, SampleTable, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import Week
from ringlog.schema.relations.tables import ring_schema

Connect = Callable[[], psycopg.Connection]
"""Opens a connection of the administrator, in autocommit."""

WITH_STATISTICS = """
select distinct attname from pg_attribute join pg_class on pg_class.oid = attrelid
where relnamespace in ('log'::regnamespace, 'weeks'::regnamespace) and relkind in ('r', 'p') and attnum > 0
  and attstattarget is distinct from 0 and relname = any(%s)
order by 1
"""
"""The columns of these logs and partitions that ANALYZE takes statistics of."""


Databases = Callable[[], AbstractContextManager[sa.URL]]
FacilityDatabases = Callable[..., AbstractContextManager[sa.URL]]


@pytest.fixture
def database_url(
    request: pytest.FixtureRequest, prepared_databases: Databases, facility_databases: FacilityDatabases
) -> Iterator[sa.URL]:
    """A database of one test, with the tables of its fixture `vac` or `traces`, or without tables."""
    facility = next((TABLES[name] for name in request.fixturenames if name in TABLES), None)
    with prepared_databases() if facility is None else facility_databases(facility) as url:
        yield url


@pytest.fixture(autouse=True)
def present(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """NOW of a file is that of a test if a week has begun since the file was read."""
    read, now = getattr(request.module, "NOW", None), datetime.now(UTC)
    if read is not None and Week.of(read) != Week.of(now):
        monkeypatch.setattr(request.module, "NOW", now.astimezone(read.tzinfo).replace(microsecond=0))


@pytest.fixture
def connect(database_url: sa.URL) -> Iterator[Connect]:
    with ExitStack() as connections:
        yield lambda: connections.enter_context(connected(database_url))


def connected(url: sa.URL) -> psycopg.Connection:
    conninfo = make_conninfo(user=url.username, dbname=url.database, **dict(url.query))
    return psycopg.connect(conninfo, autocommit=True)


class Magnets:
    """A database whose facility has one table, `magnets`, and a connection to it. `waveform`: its current has
    one point."""

    def __init__(self, connect: Connect, *, waveform: bool = False) -> None:
        self.connect = connect
        self.current = "current[1]" if waveform else "current"
        self._given = "nullif(array[%s::real], array[null::real])" if waveform else "%s"
        self.connection = connect()

    def put(self, seq_no: int | None, time: datetime | str | None, current: float | None = 1.0) -> Any:
        """Calls put_magnets and returns its status."""
        return self.value(
            f"select ringlog.put_magnets(row (%s, %s, {self._given}, true, 'ready')::online.magnets)",
            seq_no,
            time,
            current,
        )

    def ring(self) -> list[tuple[Any, ...]]:
        """seq_no, time and current of the rows written."""
        return self.rows(
            f'select seq_no, "time", {self.current} from online.magnets'
            ' where "time" is not null order by seq_no'
        )

    def log(self) -> list[tuple[Any, ...]]:
        """seq_no, time and current."""
        return self.rows(f'select seq_no, "time", {self.current} from log.magnets order by "time", seq_no')

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql.SQL(statement), values or None).fetchall()

    def value(self, statement: str, *values: object) -> Any:
        ((value,),) = self.rows(statement, *values)
        return value


MagnetsWith = Callable[..., Magnets]
"""Makes an empty table `magnets` with a ring of so many rows and this log policy."""


def magnets_facility(
    rows: int = 5,
    log: LogPolicy = LogPolicy(),  # noqa: B008
    nan: str = "keep",
    clock_tolerance: timedelta | None = None,
    *,
    waveform: bool = False,
) -> Facility:
    """The times of most tests are independent of the clock: the tolerance is unlimited."""
    current = Column("current", "magnets/current_adc", "real", "A", "all magnets", (-500.0, 500.0))
    if waveform:
        current = replace(current, type="real[]", limits=None, points=4)
    columns = (
        current,
        Column("on", "magnets/on", "bit"),
        Column("state", "magnets/state", "varchar(8)"),
    )
    return Facility(
        "test", "Asia/Tokyo", (Table("magnets", rows, 1.0, columns, log=log, nan=nan),), clock_tolerance
    )


@pytest.fixture(scope="session")
def magnets_databases(kept_databases: Callable[[], sa.URL]) -> Callable[[Facility], sa.URL]:
    """A database for each of these facilities, kept from test to test."""

    @cache
    def database(facility: Facility) -> sa.URL:
        url = kept_databases()
        engine = sa.create_engine(url)
        install(engine, facility)
        engine.dispose()
        return url

    return database


@pytest.fixture
def magnets_with(magnets_databases: Callable[[Facility], sa.URL]) -> Iterator[MagnetsWith]:
    with ExitStack() as connections:

        def empty(**table: Any) -> Magnets:
            facility = magnets_facility(**table)
            url = magnets_databases(facility)
            connect = lambda: connections.enter_context(connected(url))  # noqa: E731
            magnets = Magnets(connect, waveform=table.get("waveform", False))
            magnets.connection.execute("truncate weeks.magnets, ringlog.arrival, ringlog.event")
            ring = sql.Identifier(ring_schema(facility.tables[0]), "magnets")
            columns = {"time", "current"} if ring_schema(facility.tables[0]) == "online" else {"time"}
            values = sql.SQL(", ").join(sql.SQL("{} = null").format(sql.Identifier(each)) for each in columns)
            magnets.connection.execute(sql.SQL("update {} set {}").format(ring, values))
            return magnets

        yield empty


@pytest.fixture
def magnets(magnets_with: MagnetsWith) -> Magnets:
    return magnets_with()


def rows(connection: psycopg.Connection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(sql.SQL(statement), values or None).fetchall()


def at(text: str) -> datetime:
    """The time of an ISO text in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


T0 = at("2026-03-02 12:00:00")
NS0 = 1_772_452_800_000_000_000
"""T0 in nanoseconds since 1970, as `date +%s%N` has it"""
SIGNALS = (SampleSignal("gauge:1", "mbar", "first gauge", (0.0, 1.0)), SampleSignal("gauge:2"))


def vacuum(kind: str = "double", signals: tuple[SampleSignal, ...] = SIGNALS, **table: Any) -> Facility:
    if ColumnType.of(kind).is_array:
        table.setdefault("points", 4)
    tables = (SampleTable("vac", ColumnType.of(kind), signals=signals, **table),)
    return Facility("test", "UTC", (), sample_tables=tables)


class Vacuum:
    """A database with a table of samples, `vac`, and a connection to it."""

    def __init__(self, engine: sa.Engine, connect: Connect) -> None:
        self.engine = engine
        self.connect = connect
        self.connection = connect()

    def install(self, facility: Facility) -> None:
        install(self.engine, facility)

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return rows(self.connection, statement, *values)

    def value(self, statement: str, *values: object) -> Any:
        ((value,),) = self.rows(statement, *values)
        return value

    def put(self, signal: str, time: object, value: object, *alarm: int) -> Any:
        of_alarm = "".join(f", {each}::smallint" for each in alarm)
        return self.value(f"select ringlog.put_vac(%s, %s::timestamptz, %s{of_alarm})", signal, time, value)

    def batch(
        self,
        signals: list[int],
        times: list[int],
        samples: list[Any],
        severities: list[int] | None = None,
        epoch: int | None = None,
    ) -> Any:
        return self.value(
            "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s, %s::smallint[], null, %s)",
            signals,
            times,
            samples,
            severities,
            epoch,
        )

    def number(self, signal: str) -> int:
        return int(self.value("select number from ringlog.sample_signal where signal = %s", signal))

    def samples(self, signal: str = "gauge:1") -> list[tuple[int, Any]]:
        """Nanoseconds after T0, and value."""
        found = self.rows(
            'select "time", nanoseconds, value from ringlog.get_vac(%s)',
            signal,
        )
        return [
            ((time - T0) // timedelta(microseconds=1) * 1000 + nanos, value) for time, nanos, value in found
        ]

    def merge(self) -> list[int]:
        """Merges all; the signals merged in each hour."""
        merged = []
        while (n := self.value("select ringlog.merge_samples('vac')")) is not None:
            merged.append(n)
        return merged


TABLES = {"vac": vacuum(), "traces": vacuum("double[]", ring=2)}
"""the facilities of these fixtures"""


@pytest.fixture
def vac(engine: sa.Engine, connect: Connect) -> Vacuum:
    return Vacuum(engine, connect)


class Traces(Vacuum):
    """A database with a table of samples that are waveforms of at most four points."""

    def waves(
        self,
        signals: list[int],
        times: list[int],
        waves: list[list[float] | None],
        severities: list[int] | None = None,
    ) -> None:
        points = [point for wave in waves for point in wave or ()]
        lengths = [None if wave is None else len(wave) for wave in waves]
        self.rows(
            "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s::double precision[],"
            " %s::smallint[], lengths => %s::integer[])",
            *(signals, times, points, severities, lengths),
        )


@pytest.fixture
def traces(engine: sa.Engine, connect: Connect) -> Traces:
    return Traces(engine, connect)
