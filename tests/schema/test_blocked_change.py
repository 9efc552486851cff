"""A change of tables in constant use: it is given up, and its error names the sessions."""

import re
from contextlib import closing

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.schema import change as changes
from ringlog.schema.change import change, run


def test_a_blocked_change_names_the_blocking_sessions(
    engine: sa.Engine, database_url: sa.URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "PATIENCE", 0.0)

    def add_column(connection: sa.Connection) -> None:
        run(connection, "alter table public.wanted add column b int")

    dsn = database_url.set(drivername="postgresql").render_as_string(hide_password=False)
    with closing(psycopg.connect(dsn, application_name="17 isql (console-3)")) as reader:
        reader.execute("create table public.wanted (a int)")
        reader.commit()
        reader.execute("select from public.wanted")
        with pytest.raises(sa.exc.DBAPIError) as refused:
            change(engine, add_column)
        words = str(refused.value.orig)
        pid = reader.info.backend_pid
        assert f"public.wanted is used by process {pid}: login {reader.info.user}" in words
        assert "program '17 isql (console-3)', idle in transaction, in a transaction since 2" in words
        advice = re.search(r"select pg_terminate_backend[(][0-9]+[)]", words)
        assert advice is not None
        with engine.begin() as administrator:
            run(administrator, advice.group())
        change(engine, add_column)
