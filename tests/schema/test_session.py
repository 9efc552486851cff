"""Sessions of ringlog's own."""

import psycopg
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo

from ringlog.schema import session


def test_an_engine_continues_after_its_connections_were_ended(database_url: sa.URL) -> None:
    conninfo = make_conninfo(
        user=database_url.username, dbname=database_url.database, **dict(database_url.query)
    )
    engine = session.engine(conninfo)
    with engine.begin() as connection:
        process = connection.scalar(sa.text("select pg_backend_pid()"))
    with psycopg.connect(conninfo) as administrator:
        administrator.execute("select pg_terminate_backend(%s, 10000)", [process])
    with engine.begin() as connection:
        assert connection.scalar(sa.text("select pg_backend_pid()")) != process
    engine.dispose()
