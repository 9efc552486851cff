"""Logins: PostgreSQL roles that may write or read, and the gateway's own."""

import secrets
from enum import Enum

import psycopg
from psycopg import errors, sql

from ringlog.errors import ServerError, UsageError

GATEWAY = "ringlog_gateway"
_NAME_LIMIT = 63  # bytes of a PostgreSQL name; it cuts longer ones silently
TDS5_LIMIT = 30  # bytes of the user and password fields of a TDS 5.0 login record


class Right(Enum):
    """What a login may do. The value is the group role that carries the right."""

    WRITER = "daq_writer"
    READER = "daq_reader"


def add_login(conninfo: str, name: str, right: Right, password: str) -> None:
    """Makes a login that may write or read, and that the gateway may act for.

    Only the password's SCRAM form leaves this process. Raises UsageError for a name or password that
    PostgreSQL or TDS cannot carry, ServerError when the login exists already.
    """
    if not name or "\0" in name or len(name.encode()) > _NAME_LIMIT:
        raise UsageError(f"the login name {name!r} must have 1 to {_NAME_LIMIT} bytes")
    if not password or "\0" in password:
        raise UsageError(f"the password of {name!r} must not be empty or hold a NUL")
    login, group, gateway = (sql.Identifier(role) for role in (name, right.value, GATEWAY))
    with psycopg.connect(conninfo) as connection:
        # PostgreSQL 15 cannot say it a membership, but the gateway's role itself inherits nothing
        modern = connection.info.server_version >= 160000
        options = sql.SQL(" with inherit false, set true" if modern else "")
        try:
            connection.execute(
                sql.SQL("create role {} login password {}").format(login, _scram(connection, name, password))
            )
        except errors.DuplicateObject:
            raise ServerError(
                f"the login {name!r} exists already and was left as it is. "
                "A new password: \\password in psql; another right: drop role, then add it again"
            ) from None
        connection.execute(sql.SQL("grant {} to {}").format(group, login))
        connection.execute(sql.SQL("grant {} to {}{}").format(login, gateway, options))


def renew_gateway_password(conninfo: str) -> str:
    """Gives the gateway's role a fresh random password, which is kept nowhere, and returns it."""
    password = secrets.token_urlsafe(32)
    with psycopg.connect(conninfo) as connection:
        connection.execute(
            sql.SQL("alter role {} password {}").format(
                sql.Identifier(GATEWAY), _scram(connection, GATEWAY, password)
            )
        )
    return password


def _scram(connection: psycopg.Connection, name: str, password: str) -> sql.Literal:
    secret = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")
    return sql.Literal(secret.decode())
