"""Logins that make procedures by T-SQL, in a schema of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from servers import Login, RunningServer
from tds_clients import Admin


def create_login(admin: Admin, login: Login, *groups: str) -> None:
    """Makes a login of these groups that the gateway may act for."""
    admin.execute(
        f"create role {login.user} login password '{login.password}' in role {', '.join(groups)};"
        f" grant {login.user} to ringlog_gateway with inherit false, set true".encode()
    )


@contextmanager
def author_with_schema(
    server: RunningServer, login: Login, schema: str, *, writes: bool = False
) -> Iterator[Admin]:
    """Makes a reader (and writer) with a schema, and drops both. Yields the administrator's connection."""
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        create_login(admin, login, "daq_reader", *(["daq_writer"] if writes else []))
        admin.execute(f"create schema {schema} authorization {login.user}".encode())
        yield admin
        admin.execute(
            f"drop schema {schema} cascade; drop owned by {login.user}; drop role {login.user};"
            " notify ringlog_catalogue".encode()
        )
