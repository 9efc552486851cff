"""Every possible value of a log is archived, read there, and restored bit for bit."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.parquet import files
from ringlog.history.archive.recall import recall
from ringlog.history.connection import ReadError
from ringlog.history.reading import read
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install

NOW = datetime(2026, 6, 10, tzinfo=UTC)
BEGIN = datetime(2020, 12, 28, tzinfo=UTC)
"""of week 53 of 2020, which ends on 3 January: https://www.iso.org/iso-8601-date-and-time-format.html"""
LAST = datetime(2021, 1, 3, 23, 59, 59, 999_999, tzinfo=UTC)
TEXTS = ("", " ", "'", '"', "\\", "\\N", "a\nb\r\n", "\t\x01\x7f", "null", "{1,2}", "Ω ü 𝄞 👩‍🔬", "x" * 9000)
FLOATS = ("0", "-0", "NaN", "Infinity", "-Infinity")
DOUBLES = (*FLOATS, "5e-324", "-1.7976931348623157e308", "0.1")
REALS = (*FLOATS, "1e-45", "-3.4028235e38", "0.1")
# of timestamptz: https://www.postgresql.org/docs/18/datatype-datetime.html
# except for those after 294247-01-10, including infinity: test_times_outside_of_arrows_range
TIMES = (
    "-infinity",
    "4713-01-01 00:00:00+00 BC",
    "294247-01-10 04:00:54.775807+00",
    "0001-01-01 00:00:00+00",
    "1969-12-31 23:59:59.999999+00",
    "2026-03-29 01:00:00.000001+00",
)
VALUES: dict[str, tuple[str, tuple[str, ...]]] = {
    "a_real": ("real", REALS),
    "a_double": ("double", DOUBLES),
    "an_int": ("int", ("-2147483648", "2147483647", "0")),
    "a_smallint": ("smallint", ("-32768", "32767", "0")),
    "a_bigint": ("bigint", ("-9223372036854775808", "9223372036854775807", "0")),
    "a_bit": ("bit", ("true", "false")),
    "a_numeric": (
        "numeric(38,10)",
        ("9" * 28 + "." + "9" * 10, "-" + "9" * 28, "0", "-0.0000000001", "1.5"),
    ),
    "a_count": ("numeric(5,0)", ("99999", "-99999", "0", "10000")),
    "a_moment": ("datetime", TIMES),
    "a_varchar": ("varchar(20)", tuple(text[:20] for text in TEXTS)),
    "a_text": ("text", TEXTS),
    "reals": ("real[]", ("{}", "{" + ",".join(REALS) + "}")),
    "doubles": ("double[]", ("{}", "{" + ",".join(DOUBLES) + "}")),
    "ints": ("int[]", ("{}", "{-2147483648,2147483647}")),
    "smallints": ("smallint[]", ("{}", "{-32768,32767}")),
    "bigints": ("bigint[]", ("{}", "{-9223372036854775808,9223372036854775807}")),
    "bits": ("bit[]", ("{}", "{t,f,t}")),
    "words": ("varchar(9)[]", ("{}", '{"","null","a\\nb","\\"","\\\\","Ω👩","{1,2}"}')),
}
COLUMNS = tuple(
    Column(name, f"v/{name}", kind, points=10 if kind.endswith("[]") else None)
    for name, (kind, _) in VALUES.items()
)
TABLE = Table("every_value", 10, 1.0, COLUMNS)


@pytest.fixture
def table(engine: sa.Engine, conninfo: str, tmp_path: Path) -> Iterator[psycopg.Connection]:
    """A row for each value, with nulls in the other columns; two of nulls; one of a NaN with a payload."""
    facility = Facility(
        "test", "UTC", (TABLE,), history=History(Retention(2, "week"), str(tmp_path / "archive"))
    )
    install(engine, facility)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        rows = [(name, value) for name, (_, values) in VALUES.items() for value in values]
        for number, (name, value) in enumerate(rows):
            connection.execute(
                f"insert into weeks.every_value (seq_no, time, {name}) values (1, %s, %s)",
                [BEGIN + number * timedelta(minutes=7), value],
            )
        connection.execute("insert into weeks.every_value values (2, %s), (2, %s)", [BEGIN, LAST])
        odd = struct.pack("<Q", 0xFFF8_0000_0000_1234)
        connection.execute(
            "insert into weeks.every_value (seq_no, time, a_double, doubles) values (3, %s, %b, %b)",
            [BEGIN, struct.unpack("<d", odd)[0], [struct.unpack("<d", odd)[0]]],
        )
        connection.execute("select ringlog.make_week('every_value', '2020-12-28')")
        yield connection


def sent(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    """All rows in PostgreSQL's binary form, which has all of their bits."""
    query = (
        "select encode(record_send(logged), 'hex') from weeks.every_value as logged order by \"time\", seq_no"
    )
    return connection.execute(query).fetchall()


def test_every_value_is_restored(table: psycopg.Connection, engine: sa.Engine, conninfo: str) -> None:
    names = ["seq_no", *VALUES]
    before, online = sent(table), [*read(conninfo, "every_value", names)]
    (line,) = archive(engine, conninfo, NOW, pauses=0)
    assert line.startswith(f"archived log.every_value_2020w53: {len(before)} rows")
    assert sent(table) == []
    assert files.same(iter(online), read(conninfo, "every_value", names))
    assert len([*recall(engine, conninfo, "every_value", BEGIN, NOW, timedelta(days=7))]) == 1
    assert sent(table) == before


def test_repeats_of_every_value_are_absorbed(
    table: psycopg.Connection, engine: sa.Engine, conninfo: str
) -> None:
    table.execute("create table public.kept as select * from weeks.every_value")
    before = sent(table)
    [*archive(engine, conninfo, NOW, pauses=0)]
    table.execute("insert into weeks.every_value select * from public.kept")
    (line,) = archive(engine, conninfo, NOW, pauses=0)
    assert line.startswith("merged 0 late rows")
    assert line.endswith(f" {len(before)} were there already")
    assert table.execute("select count(*) from weeks.every_value").fetchone() == (0,)


@pytest.mark.parametrize(
    "value", ["infinity", "294247-01-10 04:00:54.775808+00", "294276-12-31 23:59:59.999999+00"]
)
def test_times_outside_of_arrows_range(
    table: psycopg.Connection, engine: sa.Engine, conninfo: str, value: str
) -> None:
    """Arrow's int64 of microseconds since 1970 ends there: https://arrow.apache.org/docs/format/Columnar.html"""
    insert = "insert into weeks.every_value (seq_no, time, a_moment) values (9, %s, %s)"
    table.execute(insert, [LAST, value])
    before = sent(table)
    (line,) = archive(engine, conninfo, NOW, pauses=0)
    assert line.startswith(
        "log.every_value_2020w53 stays in PostgreSQL: column a_moment has a time after 294247"
    )
    with pytest.raises(ReadError, match="column a_moment has a time after 294247"):
        [*read(conninfo, "every_value", ["a_moment"])]
    assert sent(table) == before
    # and as a row that arrives for an archived week
    table.execute("delete from weeks.every_value where seq_no = 9")
    [*archive(engine, conninfo, NOW, pauses=0)]
    table.execute(insert, [LAST, value])
    (line,) = archive(engine, conninfo, NOW, pauses=0)
    assert line.startswith(
        "rows that arrived for every_value/2020w53.parquet stay in the log: column a_moment has"
    )
    assert len(sent(table)) == 1


def test_a_numeric_that_is_not_a_decimal(table: psycopg.Connection, engine: sa.Engine, conninfo: str) -> None:
    """Parquet's decimals have no NaN: https://parquet.apache.org/docs/file-format/types/logicaltypes/"""
    insert = "insert into weeks.every_value (seq_no, time, a_count) values (9, %s, 'NaN')"
    table.execute(insert, [LAST])
    before = sent(table)
    (line,) = archive(engine, conninfo, NOW, pauses=0)
    assert line.startswith("log.every_value_2020w53 stays in PostgreSQL: column a_count has a numeric")
    assert sent(table) == before
    table.execute("delete from weeks.every_value where seq_no = 9")
    [*archive(engine, conninfo, NOW, pauses=0)]
    table.execute(insert, [LAST])
    (line,) = archive(engine, conninfo, NOW, pauses=0)
    assert line.startswith(
        "rows that arrived for every_value/2020w53.parquet stay in the log: column a_count"
    )
    assert len(sent(table)) == 1
