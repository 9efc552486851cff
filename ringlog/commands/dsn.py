"""The command `ringlog dsn`."""

import logging

from ringlog.commands.options import Data
from ringlog.errors import UsageError
from ringlog.server.database import Embedded, chosen_database

log = logging.getLogger(__name__)


def dsn(data: Data = None) -> None:
    """Print the administrator's connection string, for psql "$(ringlog dsn)" and every PostgreSQL tool."""
    database = chosen_database(data, None)
    if not isinstance(database, Embedded):
        raise UsageError("RINGLOG_DSN names a PostgreSQL of your own; its connection string is that variable")
    postgres = database.postgres
    postgres.demand()
    if postgres.postmaster() is None:
        log.warning("PostgreSQL in %s is not running: start it with ringlog serve", postgres.data)
    print(postgres.conninfo())
