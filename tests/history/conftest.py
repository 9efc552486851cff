"""A database with a facility of small tables, its administrator's engine and connection strings."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from object_stores import ObjectStore, object_store
from psycopg.conninfo import make_conninfo

from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.processes.archive_server import ArchiveServers, archive_server
from waiting import wait_until

Databases = Callable[..., AbstractContextManager[sa.URL]]

COLUMNS = (
    Column("a_real", "t/real", "real", "A"),
    Column("a_double", "t/double", "double"),
    Column("an_int", "t/int", "int"),
    Column("a_smallint", "t/smallint", "smallint"),
    Column("a_bigint", "t/bigint", "bigint"),
    Column("a_bit", "t/bit", "bit"),
    Column("a_varchar", "t/varchar", "varchar(40)"),
)


def conninfo_of(url: sa.URL) -> str:
    return make_conninfo(user=url.username, dbname=url.database, **dict(url.query))


@pytest.fixture
def database_url(
    request: pytest.FixtureRequest, prepared_databases: Databases, copied_databases: Databases
) -> Iterator[sa.URL]:
    """A database of one test: a copy of that of `filled`, which a file fills once, or an empty one."""
    if "filled" in request.fixturenames:
        made = copied_databases(request.getfixturevalue("filled"))
    else:
        made = prepared_databases()
    with made as url:
        yield url


@pytest.fixture
def reading(scratch_postgres: Postgres, filled: str) -> Iterator[psycopg.Connection]:
    """A session that only reads the database of `filled` itself: a copy takes a third of a second of CPU."""
    with psycopg.connect(scratch_postgres.conninfo(filled), autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        connection.execute("set default_transaction_read_only to on")
        yield connection


@contextmanager
def template(
    databases: Databases, facility: Facility, fill: Callable[[sa.Engine, psycopg.Connection], object]
) -> Iterator[str]:
    """The name of a database with rows, for `filled`."""
    with databases() as url:
        engine = sa.create_engine(url)
        install(engine, facility)
        with psycopg.connect(conninfo_of(url), autocommit=True) as connection:
            fill(engine, connection)
        engine.dispose()
        yield str(url.database)


@pytest.fixture
def conninfo(database_url: sa.URL) -> str:
    """The administrator's connection string of an empty database."""
    return conninfo_of(database_url)


@pytest.fixture
def every_type(engine: sa.Engine, conninfo: str) -> Iterator[psycopg.Connection]:
    """The table `every_type`, with a column of each type."""
    install(engine, Facility("test", "UTC", (Table("every_type", 10, 1.0, COLUMNS),)))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield store


@pytest.fixture
def bucket(store: ObjectStore) -> str:
    """A folder in an object store."""
    return store.archive


@pytest.fixture(params=["disk", pytest.param("S3", marks=pytest.mark.long)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The folder of an archive."""
    return str(tmp_path / "archive") if request.param == "disk" else request.getfixturevalue("bucket")


@contextmanager
def running(url: sa.URL) -> Iterator[ArchiveServers]:
    engine = sa.create_engine(url)
    try:
        with pytest.MonkeyPatch.context() as patch, archive_server(engine, None) as servers:
            # other accounts cannot read root's folders of tests
            patch.setattr("ringlog.server.processes.archive_server.unprivileged", lambda *_: None)
            wait_until(lambda: servers.running is not None and servers.running.state.up)
            yield servers
    finally:
        engine.dispose()
