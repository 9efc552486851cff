"""A log of 14 weeks, and the same with its old weeks in the archive; tests get copies."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Self

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.history.archive import archiving
from ringlog.history.archive.ownership import adopt
from ringlog.history.reading import read
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.facility import Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain

from ..conftest import COLUMNS, conninfo_of

NOW = datetime(2026, 6, 10, tzinfo=UTC)


BEGIN = datetime(2026, 3, 2, tzinfo=UTC)


NAMES = [column.name for column in COLUMNS]


Databases = Callable[[str], AbstractContextManager[sa.URL]]


Rows = list[dict[str, object]]


# without its pauses, which test_the_archive_gives_way_to_writers tests
archive = partial(archiving.archive, pauses=0)


@dataclass(frozen=True)
class Prepared:
    """A database, which the tests copy, and the folder of its archive."""

    name: str
    folder: Path
    rows: Rows
    """all, of log and archive"""

    @classmethod
    def of(cls, url: sa.URL, folder: Path) -> Self:
        assert url.database is not None
        return cls(url.database, folder, all_rows(conninfo_of(url)))


@pytest.fixture(scope="package")
def online(
    prepared_databases: Callable[[], AbstractContextManager[sa.URL]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prepared]:
    """Rows every 20 minutes for 14 weeks, of which two remain online."""
    folder = tmp_path_factory.mktemp("online") / "archive"
    facility = Facility("test", "UTC", (Table("every_type", 10, 1.0, COLUMNS, summaries=(3600, 86_400)),))
    with prepared_databases() as url:
        engine = sa.create_engine(url)
        install(engine, replace(facility, history=History(Retention(2, "week"), str(folder))))
        with psycopg.connect(conninfo_of(url)) as connection:
            connection.execute(
                """
                insert into weeks.every_type
                select
                  1, %s + n * interval '20 minutes',
                  case when n %% 7 = 0 then 'NaN' when n %% 11 = 0 then null else sin(n) end,
                  case when n %% 5 = 0 then '-0' when n %% 3 = 0 then 'infinity' else cos(n) end,
                  n, n %% 100, n * 1000000000::bigint, n %% 2 = 0, 'text ' || n
                from generate_series(0, 7000) as n
                """,
                [BEGIN],
            )
        maintain(engine, NOW)
        summarise(conninfo_of(url), NOW, enough=1)
        engine.dispose()
        yield Prepared.of(url, folder)


@pytest.fixture(scope="package")
def cold(
    online: Prepared, copied_databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prepared]:
    """The same with its old weeks in the archive."""
    folder = tmp_path_factory.mktemp("cold") / "archive"
    with copied_databases(online.name) as url:
        set_folder(url, folder)
        engine = sa.create_engine(url)
        [*archive(conninfo_of(url), NOW)]
        engine.dispose()
        yield Prepared.of(url, folder)


def set_folder(url: sa.URL, folder: Path) -> None:
    with psycopg.connect(conninfo_of(url)) as connection:
        connection.execute("update ringlog.history set archive = %s", [str(folder)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def database_url(
    request: pytest.FixtureRequest, online: Prepared, copied_databases: Databases, folder: Path
) -> Iterator[sa.URL]:
    """A copy of `online`, or of `cold` for a test with `archived`."""
    source = request.getfixturevalue("cold") if "archived" in request.fixturenames else online
    with copied_databases(source.name) as url:
        set_folder(url, folder)
        yield url


@pytest.fixture
def table(conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


@pytest.fixture
def archived(cold: Prepared, online: Prepared, folder: Path, conninfo: str) -> Rows:
    """The old weeks are in the archive: all rows remain unchanged."""
    shutil.copytree(cold.folder, folder)
    [*adopt(conninfo)]
    return online.rows


def put(connection: psycopg.Connection, moment: datetime, value: float, seq_no: int = 2) -> None:
    connection.execute(
        "select ringlog.put_every_type(row (%s, %s, %s, 1, 1, 1, 1, true, 'x')::online.every_type)",
        [seq_no, moment, value],
    )


def all_rows(conninfo: str, table: str = "every_type") -> Rows:
    found = [row for batch in read(conninfo, table, ["seq_no", *NAMES]) for row in batch.to_pylist()]
    return [{key: "NaN" if value != value else value for key, value in row.items()} for row in found]


def in_log(connection: psycopg.Connection) -> int:
    row = connection.execute("select count(*) from weeks.every_type").fetchone()
    assert row is not None
    return int(row[0])


def stored(connection: psycopg.Connection) -> int:
    """The number of rows in PostgreSQL and in the files, as log.<table> shows them."""
    row = connection.execute("select coalesce(sum(rows), 0) from ringlog.cold_week").fetchone()
    assert row is not None
    return in_log(connection) + int(row[0])
