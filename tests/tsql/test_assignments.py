"""A value assigned to a column is stored as CAST converts it to that type, or refused.

A conversion is implicit when data is moved to a column; its result equals that of CAST ("CAST and CONVERT",
"Data type conversion", SQL Server documentation).
"""

from collections.abc import Iterator
from typing import Any

import pymssql
import pytest

from servers import RunningServer

SOURCES = {
    "int": ["0", "-1", "255", "40000"],
    "smallint": ["-7"],
    "tinyint": ["200"],
    "bigint": ["5000000000", "3"],
    "bit": ["1"],
    "decimal(10, 4)": ["1.5", "-2.5", "1234.5678"],
    "money": ["1.5", "-2.5", "12.3456"],
    "float": ["2.5", "0.1", "1e10"],
    "real": ["2.5", "0.1"],
    "varchar(40)": ["'12'", "' 1.5 '", "''", "'1999-12-31 23:59:58.5'", "'23:59:59.9999999'", "'abc'"],
    "char(10)": ["'12'", "'abc'"],
    "nvarchar(40)": ["N'12'", "N'2020-02-03'", "N'ä€'"],
    "datetime": ["'1999-12-31 23:59:58.497'", "'2020-02-03 04:05:29.997'"],
    "smalldatetime": ["'2020-02-03 04:05'"],
    "datetime2": ["'1999-12-31 23:59:58.5'", "'1960-06-06 12:00:30.0005'", "'1700-01-01'"],
    "datetime2(3)": ["'1999-12-31 23:59:58.5'"],
    "datetimeoffset": ["'1999-12-31 23:59:58.5 +02:00'"],
    "date": ["'2020-02-03'", "'1700-01-01'"],
    "time": ["'23:59:59.9999'", "'12:30:29.9995'"],
    "time(3)": ["'12:30:29.999'"],
    "varbinary(8)": ["0x4142", "0x3CD884DF", "0x00000041"],
    "uniqueidentifier": ["'6F9619FF-8B86-D011-B42D-00C04FC964FF'"],
}
TARGETS = [
    *("bit", "tinyint", "int", "bigint", "decimal(6, 2)", "money", "smallmoney"),
    *(
        "real",
        "float",
        "varchar(4)",
        "varchar(40)",
        "char(30)",
        "varchar(max)",
        "nvarchar(4)",
        "nvarchar(40)",
    ),
    *("nchar(30)", "nvarchar(max)", "datetime", "smalldatetime", "datetime2", "datetime2(0)", "datetime2(3)"),
    *("datetimeoffset", "date", "time", "time(0)", "time(3)", "binary(4)", "varbinary(4)", "varbinary(max)"),
    "uniqueidentifier",
]
WAYS = {
    "values": "insert #t values ({})",
    "column": "insert #t (c) select v from #s",
    "update": "insert #t values (null) update #t set c = {}",
    "merge": "merge #t as t using #s as s on 1 = 0 when not matched then insert values (s.v);",
}


@pytest.fixture(scope="module")
def session(server: RunningServer) -> Iterator[pymssql.Cursor]:
    with server.connect(server.reader.user, server.reader.password, tds_version="7.4") as connection:
        yield connection.cursor()


def outcome(session: pymssql.Cursor, text: str) -> Any:
    """The value that a text selects last, None for nothing, or its error."""
    found = None
    try:
        session.execute(text)
        while True:
            if session.description is not None:
                found = session.fetchall()[0][0]
            if not session.nextset():
                return found
    except pymssql.Error as error:
        return error


@pytest.mark.parametrize("source", SOURCES)
def test_a_column_stores_the_result_of_cast(session: pymssql.Cursor, source: str) -> None:
    wrong = []
    session.execute(f"create table #s (v {source} null)")
    for target in TARGETS:
        session.execute(f"create table #t (c {target} null)")
        for value in SOURCES[source]:
            typed = f"cast({value} as {source})"
            wanted = outcome(session, f"select cast({typed} as {target})")
            session.execute(f"delete #s insert #s values ({typed})")
            for way, text in WAYS.items():
                stored = outcome(session, f"delete #t {text.format(typed)} select c from #t")
                if not isinstance(stored, Exception) and repr(stored) != repr(wanted):
                    wrong.append((value, target, way, stored, wanted))
        session.execute("drop table #t")
    session.execute("drop table #s")
    assert not wrong, "\n".join(map(str, wrong))


# The chart of "CAST and CONVERT" (SQL Server documentation), as in gateway/tsql/tests/conversions.rs: the
# columns to which a value cannot be assigned, with error 206 and 257.
NUMBERS_CLASH = ["uniqueidentifier", "date", "time", "datetime2", "xml"]
NUMBERS = ["bit", "int", "decimal(9, 2)", "float"]
TEXTS = ["varchar(9)", "char(9)", "nvarchar(9)"]
REFUSED: dict[str, tuple[list[str], list[str]]] = {
    **dict.fromkeys(NUMBERS, (NUMBERS_CLASH, [])),
    **dict.fromkeys(TEXTS, ([], ["varbinary(9)"])),
    "varbinary(9)": (["float"], ["date", "time", "datetime2"]),
    "uniqueidentifier": ([*NUMBERS, "datetime", "date", "time", "datetime2", "xml"], []),
    "datetime": (["uniqueidentifier", "xml"], [*NUMBERS, "varbinary(9)"]),
    "date": ([*NUMBERS, "uniqueidentifier", "time", "xml"], ["varbinary(9)"]),
    "time": ([*NUMBERS, "uniqueidentifier", "date", "xml"], ["varbinary(9)"]),
    "datetime2": ([*NUMBERS, "uniqueidentifier", "xml"], ["varbinary(9)"]),
    "xml": (
        [*NUMBERS, *NUMBERS_CLASH[:-1], "datetime"],
        ["varchar(9)", "char(9)", "nvarchar(9)", "varbinary(9)"],
    ),
}


def number_of(outcome: Any) -> int | None:
    """206 or 257 if that is the error; another error is about the value."""
    number = outcome.args[0] if isinstance(outcome, pymssql.Error) else None
    return number if number in (206, 257) else None


@pytest.mark.parametrize("source", REFUSED)
def test_a_column_refuses_values_that_need_cast(session: pymssql.Cursor, source: str) -> None:
    clashes, wants_convert = REFUSED[source]
    wrong = []
    session.execute(f"create table #s (v {source} null) insert #s values (null)")
    for target in REFUSED:
        wanted = 206 if target in clashes else 257 if target in wants_convert else None
        session.execute(f"create table #t (c {target} null)")
        for way, text in WAYS.items():
            number = number_of(outcome(session, "delete #t " + text.format(f"cast(null as {source})")))
            if number != wanted:
                wrong.append((target, way, number, wanted))
        session.execute("drop table #t")
    session.execute("drop table #s")
    assert not wrong, "\n".join(map(str, wrong))
