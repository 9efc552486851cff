"""Table-valued parameters of calls (MS-TDS 2.2.5.5.5), sent by python-tds."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytds
import pytest
from pytds import tds_base, tds_types

from authors import author_with_schema
from servers import Login, RunningServer
from tds_clients import pytds_of

AUTHOR = Login("tables_author", "author")
PLACES = (
    "create type Places as table (id int not null primary key, name varchar(5) null default 'none', "
    "height decimal(6, 2), seen date)"
)
KEYED = "create type Keyed as table (n int identity, v int, twice as v * 2)"


@pytest.fixture(scope="module")
def cursor(server: RunningServer) -> Iterator[pytds.Cursor]:
    """A cursor of the owner of the types Places and Keyed, and of procedures with them."""
    with (
        author_with_schema(server, AUTHOR, "table_parameters"),
        pytds_of(server, AUTHOR, database="table_parameters") as connection,
        connection.cursor() as cursor,
    ):
        for text in (
            PLACES,
            KEYED,
            "create procedure list_places @p Places readonly, @least int = 0 as "
            "select id, name, height, seen from @p where id >= @least order by id",
            "create procedure list_keyed @k Keyed readonly as select n, v, twice from @k order by n",
            "create procedure size @n int as select @n",
        ):
            cursor.execute(text)
        yield cursor


def table(type_name: str, rows: list[tuple[Any, ...]] | None, columns: list[Any] | None = None) -> Any:
    return tds_types.TableValuedParam(type_name=type_name, columns=columns, rows=rows)


def called(cursor: pytds.Cursor, procedure: str, *parameters: Any) -> list[tuple[Any, ...]]:
    cursor.callproc(procedure, parameters)
    return [tuple(row) for row in cursor.fetchall()]


ROWS = [(2, "two", Decimal("1.5"), date(2026, 5, 6)), (1, None, None, None)]


@pytest.mark.parametrize("type_name", ["dbo.Places", "places", ""])
def test_a_procedure_takes_the_rows(cursor: pytds.Cursor, type_name: str) -> None:
    """An empty name leaves the type to the procedure, as SqlClient does (SqlParameter.TypeName)."""
    expected = [(1, None, None, None), (2, "two", Decimal("1.50"), date(2026, 5, 6))]
    assert called(cursor, "list_places", table(type_name, ROWS)) == expected
    assert called(cursor, "list_places", table(type_name, ROWS), 2) == expected[1:]


def test_values_are_converted_to_the_columns_types(cursor: pytds.Cursor) -> None:
    (row,) = called(cursor, "list_places", table("Places", [(True, "1", 7, datetime(2026, 5, 6, 7, 8))]))
    assert row == (1, "1", Decimal("7.00"), date(2026, 5, 6))
    with pytest.raises(pytds.Error, match="truncated"):
        called(cursor, "list_places", table("Places", [(1, "too long", None, None)]))
    with pytest.raises(pytds.Error, match="PRIMARY KEY"):
        called(cursor, "list_places", table("Places", [ROWS[0], ROWS[0]]))
    assert called(cursor, "size", 5) == [(5,)]


def test_many_rows(cursor: pytds.Cursor) -> None:
    rows = [(n, f"p{n % 10}", Decimal(n % 10), None) for n in range(1000)]
    assert called(cursor, "list_places", table("Places", rows)) == rows


def test_null_and_omitted_tables_are_empty(cursor: pytds.Cursor) -> None:
    assert called(cursor, "list_places", table("Places", None)) == []
    assert called(cursor, "list_places") == []


def test_columns_with_defaults_have_no_values(cursor: pytds.Cursor) -> None:
    def column(flags: int) -> Any:
        return tds_base.Column(type=tds_types.IntType(), flags=flags)

    default, given = column(tds_base.TVP_COLUMN_DEFAULT_FLAG), column(0)
    rows = [(0, 5, 0), (0, 6, 0)]
    assert called(cursor, "list_keyed", table("Keyed", rows, [default, given, default])) == [
        (1, 5, 10),
        (2, 6, 12),
    ]
    for columns, number in [([given, given, default], 1077), ([default, given, given], 271)]:
        with pytest.raises(pytds.Error) as caught:
            called(cursor, "list_keyed", table("Keyed", rows, columns))
        assert caught.value.msg_no == number


@pytest.mark.parametrize(
    ("procedure", "given", "number"),
    [
        ("list_places", table("Keyed", ROWS), 206),
        ("list_places", table("elsewhere.Places", ROWS), 206),
        ("list_places", table("Places", [(1, "a")]), 500),
        ("list_places", 5, 206),
        ("size", table("Places", ROWS), 206),
        ("put_sr_vac", table("Places", ROWS), 206),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    cursor: pytds.Cursor, procedure: str, given: Any, number: int
) -> None:
    with pytest.raises(pytds.Error) as caught:
        called(cursor, procedure, given)
    assert caught.value.msg_no == number
    assert called(cursor, "size", 5) == [(5,)]


def test_a_text_takes_a_table(cursor: pytds.Cursor) -> None:
    """sp_executesql, as drivers send statements with parameters."""

    def rows(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
        cursor.execute(text, parameters)
        return [tuple(row) for row in cursor.fetchall()]

    assert rows("select id from %s as p where name = %s", table("dbo.Places", ROWS), "two") == [(2,)]
    cursor.execute("create table #seen (id int, name varchar(9))")
    cursor.execute("insert #seen select id, name from %s as p", (table("dbo.Places", ROWS),))
    assert rows("select count(*) from #seen") == [(2,)]
    with pytest.raises(pytds.Error, match="nowhere"):
        cursor.execute("select * from %s as p", (table("dbo.Nowhere", ROWS),))


def test_a_transaction_continues_after_a_table_that_does_not_fit(cursor: pytds.Cursor) -> None:
    cursor.execute("begin tran create table #kept (id int) insert #kept values (1)")
    with pytest.raises(pytds.Error):
        called(cursor, "list_places", table("Places", [ROWS[0], ROWS[0]]))
    cursor.execute("commit select id from #kept")
    while cursor.description is None:
        cursor.nextset()
    assert cursor.fetchall() == [(1,)]
