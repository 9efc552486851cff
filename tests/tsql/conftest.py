"""A database with a facility and all objects for T-SQL, and sessions in it."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy
from procedure_site import Site
from psycopg.rows import tuple_row

from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing.install import install
from ringlog.server.embedded.postgres import Postgres
from servers import FACILITY, RunningServer


@pytest.fixture(scope="session")
def tsql_conninfo(scratch_postgres: Postgres, kept_databases: Callable[[], sqlalchemy.URL]) -> str:
    """The superuser's connection string of a database where a facility is installed."""
    url = kept_databases()
    engine = sqlalchemy.create_engine(url)
    install(engine, load_facility(FACILITY), [install_tsql])
    engine.dispose()
    assert url.database is not None
    return scratch_postgres.conninfo(url.database)


@pytest.fixture(scope="session")
def tsql_connection(tsql_conninfo: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose temporary tables are dropped after each test (see `connection`)."""
    # a prepared statement would outlive the temporary tables that it names
    with psycopg.connect(tsql_conninfo, autocommit=True, prepare_threshold=None) as connection:
        yield connection


@pytest.fixture
def connection(tsql_connection: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    yield tsql_connection
    tsql_connection.execute("discard temp; reset all")


@pytest.fixture(scope="module")
def site(server: RunningServer) -> Iterator[Site]:
    with psycopg.connect(server.dsn, autocommit=True, row_factory=tuple_row) as connection:
        connection.execute(
            "create role site_owner nologin; create schema site authorization site_owner;"
            " grant usage on schema site, tsql, online, log, ringlog to site_owner;"
            " grant daq_writer, daq_reader to site_owner"
        )
        yield Site(connection)
        connection.execute("drop schema site cascade; drop owned by site_owner; drop role site_owner")


@pytest.fixture
def points(site: Site) -> Iterator[None]:
    """A table to write to."""
    site.run("create table site.points (id integer primary key, name varchar(10), value double precision)")
    yield
    site.run("drop table site.points")
