"""Rights of everybody with which any login could fill the disk.

They are revoked at each start: a cluster that was restored, upgraded or made by an earlier ringlog has them.
"""

from psycopg import sql

from ringlog.schema import session
from ringlog.schema.catalogue import databases_of_all
from ringlog.schema.roles import forbid_large_objects


def forbid_storing(conninfo: str) -> None:
    """Revokes, as the superuser, everybody's right to write large objects in any database, and to connect to
    PostgreSQL's own databases. Raises psycopg.Error."""
    for connection in session.databases(conninfo):
        forbid_large_objects(connection)
    with session.connect(conninfo, autocommit=True) as connection:
        for name in databases_of_all(connection):
            revoke = sql.SQL("revoke connect on database {} from public")
            connection.execute(revoke.format(sql.Identifier(name)))
