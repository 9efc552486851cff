"""A value assigned to a column is stored as CAST converts it to that type, or refused.

A conversion is implicit when data is moved to a column; its result equals that of CAST ("CAST and CONVERT",
"Data type conversion", SQL Server documentation).
"""

from typing import Any

import psycopg
import pytest
from translated import run

from ringlog.gateway._core import TsqlError

Connection = psycopg.Connection[Any]

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


def outcome(connection: Connection, text: str) -> Any:
    """The value that a text selects last, None for nothing, or its error."""
    try:
        results = run(connection, text)
        return results[-1][0][0] if results else None
    except (psycopg.Error, TsqlError) as error:
        return error


@pytest.mark.parametrize("source", SOURCES)
def test_a_column_stores_the_result_of_cast(connection: Connection, source: str) -> None:
    wrong = []
    run(connection, f"create table #s (v {source} null)")
    for target in TARGETS:
        run(connection, f"create table #t (c {target} null)")
        for value in SOURCES[source]:
            typed = f"cast({value} as {source})"
            wanted = outcome(connection, f"select cast({typed} as {target})")
            run(connection, f"delete #s insert #s values ({typed})")
            for way, text in WAYS.items():
                run(connection, "delete #t")
                stored = outcome(connection, f"{text.format(typed)} select c from #t")
                if not isinstance(stored, Exception) and repr(stored) != repr(wanted):
                    wrong.append((value, target, way, stored, wanted))
        run(connection, "drop table #t")
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
NOT_KNOWN_HERE = [
    *((number, "varbinary(9)") for number in NUMBERS),
    *(("varbinary(9)", target) for target in ("decimal(9, 2)", "datetime", "xml")),
]
"""assignments that SQL Server converts, or refuses with another number: 257 here"""


def number_of(outcome: Any) -> int | None:
    """206 or 257 if that is the error; another error is about the value."""
    match outcome:
        case TsqlError():
            number: int = outcome.args[0]
        case psycopg.Error():
            # PostgreSQL's own, of types without a cast, is 257 to clients
            number = {"S0206": 206, "S0257": 257, "42804": 257}.get(outcome.sqlstate or "", 0)
        case _:
            return None
    return number if number in (206, 257) else None


@pytest.mark.parametrize("source", REFUSED)
def test_a_column_refuses_values_that_need_cast(connection: Connection, source: str) -> None:
    clashes, wants_convert = REFUSED[source]
    wrong = []
    run(connection, f"create table #s (v {source} null) insert #s values (null)")
    for target in REFUSED:
        wanted = 206 if target in clashes else 257 if target in wants_convert else None
        wanted = 257 if (source, target) in NOT_KNOWN_HERE else wanted
        run(connection, f"create table #t (c {target} null)")
        for way, text in WAYS.items():
            run(connection, "delete #t")
            number = number_of(outcome(connection, text.format(f"cast(null as {source})")))
            # a column may be a datetime or a datetime2: PostgreSQL does not distinguish them
            if number != wanted and (source, way, number) not in (
                ("datetime2", "column", 257),
                ("datetime2", "merge", 257),
            ):
                wrong.append((target, way, number, wanted))
        run(connection, "drop table #t")
    assert not wrong, "\n".join(map(str, wrong))
