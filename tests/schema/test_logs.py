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
