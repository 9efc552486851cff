"""Microsoft's ODBC Driver 18: handles of calls, outputs, arrays, and the documented example."""

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyodbc
import pytest
from odbc_call import statement

from authors import author_with_schema
from client_compat import microsoft_driver
from servers import Login, RunningServer
from tds_clients import Admin

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "write-java-odbc.md"
AT = datetime(2026, 11, 20, 13, 45, 0, 123456)
CALL = "{call put_every_type(?, ?, ?)}"


def words(server: RunningServer, login: Login) -> str:
    address = f"Server={server.host},{server.port};Encrypt=no"
    return f"Driver={microsoft_driver()};{address};UID={login.user};PWD={login.password}"


@pytest.fixture
def connection(server: RunningServer) -> pyodbc.Connection:
    return pyodbc.connect(words(server, server.writer), autocommit=True)


def stored(admin: Admin) -> list[tuple[object, ...]]:
    found = admin.execute("select seq_no, time::timestamp, a_real from log.every_type order by time, seq_no")
    return found.fetchall()


def test_the_documented_example(server: RunningServer, admin: Admin) -> None:
    """docs/how-to/write-java-odbc.md, with this server's address and login."""
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    (example,) = (text for text in examples if "ODBC Driver 18" in text)
    for written, here in (
        ("ODBC Driver 18 for SQL Server", str(microsoft_driver())),
        ("dbserver,5000", f"{server.host},{server.port}"),
        ("vacuum_daq", server.writer.user),
    ):
        assert written in example
        example = example.replace(written, here)
    names = {"pyodbc": pyodbc, "password": server.writer.password, "datetime": datetime, "UTC": UTC}
    exec(example, names)
    row = admin.execute("select * from online.sr_vac where seq_no = 7").fetchone()
    assert row is not None
    sent = datetime.fromisoformat(str(names["time"]))
    assert (row[1], row[2:]) == (sent, (2.5e-8, None, 1e-7, True))
    columns = ("time", "pressure_1", "pressure_2", "pressure_3", "valve_open")
    admin.execute("delete from log.sr_vac")
    admin.execute(f"update online.sr_vac set {', '.join(f'{column} = null' for column in columns)}")


def test_calls_by_one_cursor_and_by_many(connection: pyodbc.Connection, admin: Admin) -> None:
    """One cursor sends the handle of its last call, a new one sends none, and its end is sp_unprepare."""
    with closing(connection):
        cursor = connection.cursor()
        for number in range(5):
            cursor.execute(CALL, 1, str(AT + timedelta(seconds=number)), number)
        for number in range(5, 10):
            connection.execute(CALL, 1, str(AT + timedelta(seconds=number)), number)
        # another procedure by the handle of the first
        cursor.execute("{call last_every_type}")
        cursor.execute(CALL, 1, str(AT + timedelta(seconds=10)), 10)
    assert stored(admin) == [(1, AT + timedelta(seconds=number), number) for number in range(11)]


def test_an_error_ends_only_its_call(connection: pyodbc.Connection, admin: Admin) -> None:
    with closing(connection):
        cursor = connection.cursor()
        for seconds, seq_no in enumerate((11, 1, 11, 2, 3)):
            row = (seq_no, str(AT + timedelta(seconds=seconds)), 1.5)
            if seq_no <= 10:
                cursor.execute(CALL, *row)
                continue
            with pytest.raises(pyodbc.IntegrityError, match="seq_no 11 is outside 1 to 10"):
                cursor.execute(CALL, *row)
        with pytest.raises(pyodbc.Error, match="Could not find stored procedure 'put_nothing'"):
            cursor.execute("{call put_nothing(?)}", 1)
    assert [row[0] for row in stored(admin)] == [1, 2, 3]


def test_arrays_of_parameters(connection: pyodbc.Connection, admin: Admin) -> None:
    rows = [(number % 10 + 1, str(AT + timedelta(seconds=number)), float(number)) for number in range(300)]
    for is_fast in (False, True):
        admin.execute("delete from log.every_type")
        cursor = connection.cursor()
        cursor.fast_executemany = is_fast
        cursor.executemany(CALL, rows)
        found = [(seq_no, str(time), a_real) for seq_no, time, a_real in stored(admin)]
        assert found == rows, is_fast
    connection.close()


def test_more_texts_than_a_session_keeps(connection: pyodbc.Connection) -> None:
    """Each replaces the one before, whose handle comes with it."""
    with closing(connection):
        cursor = connection.cursor()
        for number in range(10_001):
            cursor.execute(f"select {number} + ?", 1)
        assert cursor.fetchval() == 10_001


def test_status_and_outputs(server: RunningServer, admin: Admin) -> None:
    text = "create procedure #next @a int, @b int output as begin set @b = @a + 1 return @a * 2 end"
    with statement(words(server, server.writer), [0, 0]) as call:
        call.run(text)
        call.bind(outputs=1).prepare("{? = call #next(?, ?)}")
        assert [call.execute(number) for number in (5, 6, 7)] == [[10, 6], [12, 7], [14, 8]]


def test_table_parameters(server: RunningServer) -> None:
    """{call} finds the type by the procedure; in other texts the program names it."""
    author = Login("odbc_author", "author")
    with (
        author_with_schema(server, author, "odbc_tables"),
        closing(pyodbc.connect(words(server, author), autocommit=True)) as connection,
    ):
        connection.execute("use odbc_tables")
        connection.execute("create type Pairs as table (i int, name varchar(10))")
        connection.execute(
            "create procedure sums @t Pairs readonly as select sum(i), max(name) from @t where i < 4"
        )
        rows = [(1, "a"), (2, "b"), (4, None)]
        for text, table in (
            ("{call sums(?)}", rows),
            ("{call sums(?)}", ["Pairs", *rows]),
            ("exec sums ?", ["Pairs", "dbo", *rows]),
        ):
            (found,) = connection.execute(text, (table,)).fetchall()
            assert tuple(found) == (3, "b"), text
