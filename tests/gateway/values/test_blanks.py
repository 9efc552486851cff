"""The table decides about trailing blanks: tables made by ASE's clients store none in columns of variable
length.

"Only columns with variable-length datatypes can store null values" (Transact-SQL Users Guide, "Nulls require
variable-length datatypes"); "Data in variable-length columns is stripped of trailing blanks" (Reference
Manual: Building Blocks, "Length and storage size").
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tds_clients import Admin, Clients, Param, rows_of

LENGTHS = "select c + '|', datalength(c), v + '|', datalength(v) from blanks..t order by n"
INSERTS = "insert blanks..t values ({0}, 'a', 'b  ')"
TABLE = "create table blanks..t (n int not null, c char(3) null, v varchar(4) null)"


@contextmanager
def database(clients: Clients, admin: Admin) -> Iterator[None]:
    admin.execute(f"create schema blanks authorization {clients.server.reader.user}")
    yield
    admin.execute("drop schema blanks cascade")


def test_a_table_of_ase(clients: Clients, admin: Admin) -> None:
    reader = clients.server.reader
    with database(clients, admin), clients.ct(reader) as ase, clients.pymssql(reader) as connection:
        ase.language(TABLE)
        ase.language(INSERTS.format(1))
        with connection.cursor() as cursor:
            cursor.execute(INSERTS.format(2))
            cursor.execute(LENGTHS)
            assert cursor.fetchall() == [("a|", 1, "b|", 1)] * 2
            assert rows_of(cursor, "select c, v from blanks..t") == [("a", "b")] * 2
            cursor.execute(
                "select data_type, character_maximum_length from blanks.information_schema.columns"
                " where table_name = 't' and column_name = 'c'"
            )
            assert cursor.fetchall() == [("char", 3)]
        assert ase.language(LENGTHS).rows == [["a|", "1", "b|", "1"]] * 2
        assert ase.language("select c, v from blanks..t").rows == [["a", "b"]] * 2


def test_a_table_of_sql_server(clients: Clients, admin: Admin) -> None:
    reader = clients.server.reader
    with database(clients, admin), clients.ct(reader) as ase, clients.pymssql(reader) as connection:
        with connection.cursor() as cursor:
            cursor.execute(TABLE)
        ase.language(INSERTS.format(1))
        assert ase.language(LENGTHS).rows == [["a  |", "3", "b  |", "3"]]


@pytest.mark.parametrize(("version", "stored"), [("5.0", ["ab", "b", " "]), ("7.4", ["ab ", "b", "   "])])
def test_texts_of_a_ring(clients: Clients, admin: Admin, version: str, stored: list[str]) -> None:
    """By calls of known shape, by first calls and by text."""
    with clients.ct(clients.server.writer, version) as client:
        for place, text in enumerate(["ab ", "b", "   "], 1):
            given = [Param("int", str(place), "@seq_no"), Param("char", f"2026-01-0{place}", "@time")]
            answer = client.call("put_every_type", [*given, Param("char", text, "@a_varchar")])
            assert answer.errors == []
        said = client.language("exec put_every_type @seq_no = 4, @time = '2026-01-04', @a_varchar = 'ab '")
        assert said.errors == []
    rows = admin.execute(
        "select a_varchar from online.every_type where seq_no < 5 order by seq_no"
    ).fetchall()
    assert [text for (text,) in rows] == [*stored, stored[0]]
