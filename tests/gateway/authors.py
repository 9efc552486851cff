"""Logins that create procedures by T-SQL, in their own schema."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from servers import Login, RunningServer
from tds_clients import Admin


def create_login(admin: Admin, login: Login, *groups: str) -> None:
    """Creates a login of these groups for which the gateway may act."""
    admin.execute(
        f"create role {login.user} login password '{login.password}' in role {', '.join(groups)};"
        f" grant {login.user} to ringlog_gateway with inherit false, set true".encode()
    )


@contextmanager
def author_and_caller(server: RunningServer, author: Login, caller: Login, schema: str) -> Iterator[Admin]:
    """The same, and a reader who may use the schema."""
    with author_with_schema(server, author, schema) as admin:
        create_login(admin, caller, "daq_reader")
        admin.execute(f"grant usage on schema {schema} to {caller.user}".encode())
        yield admin
        admin.execute(f"drop owned by {caller.user}; drop role {caller.user}".encode())


@contextmanager
def author_with_schema(
    server: RunningServer, login: Login, schema: str, *, writes: bool = False
) -> Iterator[Admin]:
    """Creates a reader (and writer) with a schema, and drops both. Yields the administrator's connection."""
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        create_login(admin, login, "daq_reader", *(["daq_writer"] if writes else []))
        admin.execute(f"create schema {schema} authorization {login.user}".encode())
        yield admin
        admin.execute(
            f"drop schema {schema} cascade; drop owned by {login.user}; drop role {login.user};"
            " notify ringlog_catalogue".encode()
        )
