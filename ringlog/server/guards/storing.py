"""Rights of everybody with which any login could fill the disk.

They are revoked at each start: a cluster that was restored, upgraded or made by an earlier ringlog has them.
PostgreSQL has no right on a role's own settings (ALTER ROLE … SET), which are bounded here instead.
"""

import logging

from psycopg import sql

from ringlog.schema import session
from ringlog.schema.access.roles import forbid_large_objects
from ringlog.schema.catalogue import databases_of_all
from ringlog.server.guards import own_settings

log = logging.getLogger(__name__)


def forbid_storing(conninfo: str) -> None:
    """Revokes, as the superuser, the right of all to write large objects and to make tables in schema public
    of any database, and to connect to PostgreSQL's own databases. Resets large settings of logins. Raises
    psycopg.Error."""
    for connection in session.databases(conninfo):
        forbid_large_objects(connection)
        if connection.execute("select to_regnamespace('public') is not null").fetchone() == (True,):
            connection.execute("revoke create on schema public from public")
    with session.connect(conninfo, autocommit=True) as connection:
        for name in databases_of_all(connection):
            revoke = sql.SQL("revoke connect on database {} from public")
            connection.execute(revoke.format(sql.Identifier(name)))
        for role, database, size, names in own_settings.large(connection):
            own_settings.reset(connection, role, database, names)
            log.warning("settings of login %s were reset, because they had %d bytes", role, size)
