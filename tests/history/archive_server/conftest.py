"""A log of six weeks, four of which are archived, and its archive server."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeAlias

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.history.archive import archiving
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from ringlog.server.processes.archive_server import ArchiveServers

from ..conftest import COLUMNS, conninfo_of, running

NOW = datetime(2026, 6, 10, tzinfo=UTC)


BEGIN = datetime(2026, 4, 27, tzinfo=UTC)


OTHERS = (
    Column("a_numeric", "t/numeric", "numeric(10,2)"),
    Column("a_time", "t/time", "datetime"),
    Column("a_text", "t/text", "text"),
    Column("reals", "t/reals", "real[]", points=8),
    Column("texts", "t/texts", "varchar(20)[]", points=8),
    Column("bits", "t/bits", "bit[]", points=8),
)


archive = partial(archiving.archive, pauses=0)


Databases: TypeAlias = Callable[[], AbstractContextManager[sa.URL]]


@pytest.fixture(scope="package")
def archived(prepared_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.URL]:
    with made(prepared_databases, tmp_path_factory.mktemp("archive_server") / "archive") as url:
        yield url


@contextmanager
def made(prepared_databases: Databases, folder: Path) -> Iterator[sa.URL]:
    """Rows every 20 minutes for six weeks, of which two remain online; they are in schema `copied` too."""
    tables = (Table("every_type", 10, 1.0, (*COLUMNS, *OTHERS)),)
    facility = Facility("test", "UTC", tables, history=History(Retention(2, "week"), str(folder)))
    with prepared_databases() as url:
        engine = sa.create_engine(url)
        install(engine, facility)
        with psycopg.connect(conninfo_of(url)) as connection:
            connection.execute(
                """
                insert into log.every_type
                select
                  1 + n % 3, %(begin)s + n * interval '20 minutes',
                  case when n %% 7 = 0 then 'NaN' when n %% 11 = 0 then null else sin(n) end,
                  case when n %% 5 = 0 then '-0' when n %% 3 = 0 then 'infinity' else cos(n) end,
                  n, n %% 100, n * 1000000000::bigint, n %% 2 = 0, 'text "' || n,
                  n / 100.0,
                  timestamptz '1066-10-14 12:00Z' - n * interval '290 days 1 hour 0.000001 second',
                  E'a\\\\b' || n,
                  case when n %% 4 <> 0 then array[n, 1e-20, 'NaN', -0.5]::real[] end,
                  array['a"b', null, 'c\\d', '', 'null', '{x,y}'], array[true, false]
                from generate_series(0, 3000) as n;
                create schema copied;
                create table copied.every_type as select * from log.every_type;
                """.replace("%(begin)s", f"timestamptz '{BEGIN.isoformat()}'").replace("%%", "%")
            )
        maintain(engine, NOW)
        [*archive(conninfo_of(url), NOW)]
        engine.dispose()
        yield url


@pytest.fixture(scope="package")
def server(archived: sa.URL) -> Iterator[ArchiveServers]:
    with running(archived) as servers:
        yield servers


@pytest.fixture(scope="package")
def sql(archived: sa.URL, server: ArchiveServers) -> Iterator[psycopg.Connection]:
    """A connection with a running archive server."""
    with psycopg.connect(conninfo_of(archived), autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        yield connection


def one(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    found = connection.execute(query.encode()).fetchone()
    assert found is not None
    return found
