"""A database with a facility and everything T-SQL needs, and sessions in it."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg import sql

from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.postgres import Postgres
from ringlog.schema.facility_file import load_facility
from ringlog.schema.install import install
from servers import FACILITY, sqlalchemy_url

_NAME = "tsql"


@pytest.fixture(scope="session")
def tsql_conninfo(scratch_postgres: Postgres) -> Iterator[str]:
    """The superuser's connection string of a database where a facility is installed."""
    with psycopg.connect(scratch_postgres.conninfo("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(_NAME)))
        conninfo = scratch_postgres.conninfo(_NAME)
        engine = sqlalchemy.create_engine(sqlalchemy_url(conninfo))
        install(engine, load_facility(FACILITY), [install_tsql])
        engine.dispose()
        yield conninfo
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(_NAME)))


@pytest.fixture(scope="session")
def tsql_connection(tsql_conninfo: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose temporary tables are dropped after each test (see `connection`)."""
    # a prepared statement would outlive the temporary tables it names
    with psycopg.connect(tsql_conninfo, autocommit=True, prepare_threshold=None) as connection:
        yield connection


@pytest.fixture
def connection(tsql_connection: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    yield tsql_connection
    tsql_connection.execute("discard temp; reset all")
