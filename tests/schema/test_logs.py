"""log.<table> as a view of the table in which a log is stored."""

from dataclasses import replace

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install

from .conftest import Connect

TABLE = Table("magnets", 5, 1.0, (Column("current", "m/current", "real"),))
FACILITY = Facility("test", "UTC", (TABLE,))


def test_rows_are_inserted_and_deleted_as_in_a_table(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    insert = "insert into log.magnets values (1, '2026-01-01', 1) on conflict (time, seq_no) do nothing"
    assert [connection.execute(insert).rowcount for _ in range(2)] == [1, 0]
    assert connection.execute("select * from weeks.magnets for update").rowcount == 1
    assert connection.execute("update log.magnets set current = 2").rowcount == 1
    assert connection.execute("delete from log.magnets where current = 2").rowcount == 1


def test_a_log_of_an_earlier_version(engine: sa.Engine, connect: Connect) -> None:
    """Its table was in schema log: rows, rights and users' views remain."""
    install(engine, FACILITY)
    connection = connect()
    connection.execute(
        """
        drop view log.magnets cascade;
        alter table weeks.magnets set schema log;
        insert into log.magnets values (1, '2026-01-01', 1);
        create view public.strong with (security_invoker = true) as
          select time from log.magnets where current > 0.5;
        create view public.stronger as select time from public.strong;
        create role of_an_earlier_version;
        grant select on log.magnets to of_an_earlier_version, daq_reader;
        """
    )
    try:
        assert (
            "table weeks.magnets: it was log.magnets, which is a view now"
            in install(engine, FACILITY).changed
        )
        assert not install(engine, FACILITY)
        assert connection.execute("select count(*) from public.stronger").fetchone() == (1,)
        (definition,) = (
            connection.execute("select pg_get_viewdef('public.strong'::regclass)").fetchone() or ()
        )
        assert "FROM log.magnets" in definition
        options = "select reloptions from pg_class where oid = 'public.strong'::regclass"
        assert connection.execute(options).fetchone() == (["security_invoker=true"],)
        for role in ("of_an_earlier_version", "daq_reader"):
            with connection.transaction(force_rollback=True):
                connection.execute(f"grant usage on schema log to {role}; set local role {role}".encode())
                assert connection.execute("select count(*) from log.magnets").fetchone() == (1,)
    finally:
        connection.execute("drop owned by of_an_earlier_version; drop role of_an_earlier_version")


@pytest.mark.parametrize("name", ["magnets", "renamed"])
def test_an_additional_column(engine: sa.Engine, connect: Connect, name: str) -> None:
    """Users' views remain."""
    install(engine, FACILITY)
    connection = connect()
    connection.execute("create view public.on_it as select seq_no from log.magnets")
    columns = (*TABLE.columns, Column("field", "m/field", "double"))
    grown = replace(TABLE, name=name, columns=columns, renamed_from=None if name == "magnets" else "magnets")
    install(engine, replace(FACILITY, tables=(grown,)))
    connection.execute(f"insert into log.{name} values (1, '2026-01-01', 1, 2)".encode())
    assert connection.execute("select count(*) from public.on_it").fetchone() == (1,)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("select current, field, more from log.magnets")
