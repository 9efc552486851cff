"""The login that fills a site's tables.

Checks, domains and generated columns are the site's own code, which runs for each row with the session's
rights: in the administrator's session it could make its author a superuser.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from psycopg import sql
from psycopg.conninfo import make_conninfo

from ringlog.schema import session
from ringlog.schema.sql_files import sql_file

_LASTS = timedelta(days=7)
"""lifetime of its password, which is stored nowhere: a login that was left behind is then unusable"""

_OWNERS = sql_file(__file__, "copier_owners")


@contextmanager
def copier(conninfo: str, schema: str) -> Iterator[str]:
    """The connection string of a login that may do what the owners of this schema and its tables may, and
    leave triggers out; it is dropped at the end. `conninfo` is a superuser's. Raises psycopg.Error."""
    name, password = f"ringlog_copier_{secrets.token_hex(4)}", secrets.token_urlsafe(32)
    login, of = sql.Identifier(name), sql.Identifier(schema)
    with session.connect(conninfo, autocommit=True) as administrator:
        secret = administrator.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")
        administrator.execute(
            sql.SQL("create role {} login password {} valid until {}").format(
                login, secret.decode(), (datetime.now(UTC) + _LASTS).isoformat()
            )
        )
        try:
            database = sql.Identifier(administrator.info.dbname)
            grants = [
                sql.SQL("set on parameter session_replication_role"),
                sql.SQL("connect, temporary on database {}").format(database),
            ]
            if administrator.execute("select true from pg_namespace where nspname = %s", [schema]).fetchone():
                grants += [
                    sql.SQL("usage on schema {}").format(of),
                    sql.SQL("select, insert, delete on all tables in schema {}").format(of),
                    sql.SQL("usage, select, update on all sequences in schema {}").format(of),
                ]
            grants += [
                sql.Identifier(owner)
                for (owner,) in administrator.execute(_OWNERS, {"schema": schema}).fetchall()
            ]
            for grant in grants:
                administrator.execute(sql.SQL("grant {} to {}").format(grant, login))
            yield make_conninfo(conninfo, user=name, password=password)
        finally:
            administrator.execute(sql.SQL("drop owned by {} cascade").format(login))
            administrator.execute(sql.SQL("drop role {}").format(login))
