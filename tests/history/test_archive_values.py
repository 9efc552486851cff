"""Every possible value of a log is archived, read there, and restored bit for bit."""

import random
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.parquet import files
from ringlog.history.archive.recall import recall
from ringlog.history.connection import ReadError, connect, rows
from ringlog.history.reading import read
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain

from .test_changed_columns import changed

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
    "a_numeric": ("numeric(38,10)", ("9" * 28 + "." + "9" * 10, "-" + "9" * 28, "0", "-0.0000000001", "1.5")),
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


def test_every_value_is_restored(table: psycopg.Connection, conninfo: str) -> None:
    names = ["seq_no", *VALUES]
    before, online = sent(table), [*read(conninfo, "every_value", names)]
    (line,) = archive(conninfo, NOW, pauses=0)
    assert line.startswith(f"archived log.every_value_2020w53: {len(before)} rows")
    assert sent(table) == []
    assert files.same(iter(online), read(conninfo, "every_value", names))
    assert len([*recall(conninfo, "every_value", BEGIN, NOW, timedelta(days=7))]) == 1
    assert sent(table) == before


def test_repeats_of_every_value_are_absorbed(table: psycopg.Connection, conninfo: str) -> None:
    table.execute("create table public.kept as select * from weeks.every_value")
    before = sent(table)
    [*archive(conninfo, NOW, pauses=0)]
    table.execute("insert into weeks.every_value select * from public.kept")
    (line,) = archive(conninfo, NOW, pauses=0)
    assert line.startswith("merged 0 late rows")
    assert line.endswith(f" {len(before)} were there already")
    assert table.execute("select count(*) from weeks.every_value").fetchone() == (0,)


@pytest.mark.parametrize(
    "value", ["infinity", "294247-01-10 04:00:54.775808+00", "294276-12-31 23:59:59.999999+00"]
)
def test_times_outside_of_arrows_range(table: psycopg.Connection, conninfo: str, value: str) -> None:
    """Arrow's int64 of microseconds since 1970 ends there: https://arrow.apache.org/docs/format/Columnar.html"""
    insert = "insert into weeks.every_value (seq_no, time, a_moment) values (9, %s, %s)"
    table.execute(insert, [LAST, value])
    before = sent(table)
    (line,) = archive(conninfo, NOW, pauses=0)
    assert line.startswith(
        "log.every_value_2020w53 stays in PostgreSQL: column a_moment has a time after 294247"
    )
    with pytest.raises(ReadError, match="column a_moment has a time after 294247"):
        [*read(conninfo, "every_value", ["a_moment"])]
    assert sent(table) == before
    # and as a row that arrives for an archived week
    table.execute("delete from weeks.every_value where seq_no = 9")
    [*archive(conninfo, NOW, pauses=0)]
    table.execute(insert, [LAST, value])
    (line,) = archive(conninfo, NOW, pauses=0)
    assert line.startswith(
        "rows that arrived for every_value/2020w53.parquet stay in the log: column a_moment has"
    )
    assert len(sent(table)) == 1


def test_a_numeric_that_is_not_a_decimal(table: psycopg.Connection, conninfo: str) -> None:
    """Parquet's decimals have no NaN: https://parquet.apache.org/docs/file-format/types/logicaltypes/"""
    insert = "insert into weeks.every_value (seq_no, time, a_count) values (9, %s, 'NaN')"
    table.execute(insert, [LAST])
    before = sent(table)
    (line,) = archive(conninfo, NOW, pauses=0)
    assert line.startswith("log.every_value_2020w53 stays in PostgreSQL: column a_count has a numeric")
    assert sent(table) == before
    table.execute("delete from weeks.every_value where seq_no = 9")
    [*archive(conninfo, NOW, pauses=0)]
    table.execute(insert, [LAST])
    (line,) = archive(conninfo, NOW, pauses=0)
    assert line.startswith(
        "rows that arrived for every_value/2020w53.parquet stay in the log: column a_count"
    )
    assert len(sent(table)) == 1


# --- log and archive together equal one plain table, wherever weeks are and however rows arrive ---

FIRST_WEEK = datetime(2026, 3, 2, tzinfo=UTC)
WEEKS = 6
AFTER_WEEKS = FIRST_WEEK + timedelta(weeks=WEEKS, days=3)
TWO_VALUES: dict[str, tuple[str, tuple[object, ...]]] = {
    "field": ("real", (0.1, -0.0, float("nan"), float("-inf"), 1e-45)),
    "current": ("double", (0.1, -0.0, float("nan"), float("inf"), 5e-324)),
    "steps": ("int", (-(2**31), 0, 2**31 - 1)),
    "is_on": ("bit", (True, False)),
    "charge": ("numeric(9,3)", ("0.001", "-999999.999", "NaN")),
    "state": ("varchar(9)", ("", "Ω ü", '"', "OK")),
    "trace": ("real[]", ([], [0.5, -0.0], [float("nan")] * 4)),
    "turns": ("bigint", (-(2**63), 0, 2**63 - 1)),
}
TWO_COLUMNS = {
    name: Column(name, f"m/{name}", kind, points=4 if kind.endswith("[]") else None)
    for name, (kind, _) in TWO_VALUES.items()
}


class Tiers:
    """A log with an archive, and the plain table."""

    def __init__(
        self, engine: sa.Engine, conninfo: str, folder: Path, chance: random.Random, first: list[str]
    ) -> None:
        self.engine, self.conninfo, self.chance = engine, conninfo, chance
        self.values = {name: TWO_VALUES[name] for name in first}
        self.table = Table("magnets", 50, 60.0, tuple(TWO_COLUMNS[name] for name in first))
        self.facility = Facility(
            "test", "UTC", (self.table,), history=History(Retention(2, "week"), str(folder))
        )
        install(engine, self.facility)
        self.connection = psycopg.connect(conninfo, autocommit=True)
        self.connection.execute("create table public.plain (like weeks.magnets including all)")

    def rows(self) -> None:
        """Some new rows, repeats of old ones, and others of the same time and seq_no, which do not count."""
        keys = self.connection.execute("select seq_no, time from public.plain order by time, seq_no")
        known = keys.fetchall()
        some = self.chance.sample(known, min(5, len(known)))
        for seq_no, moment in [*some, *self._keys()]:
            values = [seq_no, moment, *(self._one_of(kind) for kind in self.values.values())]
            self._insert("public", values)
            self._insert("weeks", values)
        for key in self.chance.sample(known, min(5, len(known))):
            self.connection.execute(
                "insert into weeks.magnets select * from public.plain where seq_no = %s and time = %s"
                " on conflict do nothing",
                key,
            )

    def _keys(self) -> Iterator[tuple[int, datetime]]:
        """Times of all weeks, their first and last moments among them."""
        for _ in range(25):
            week = FIRST_WEEK + timedelta(weeks=self.chance.randrange(WEEKS))
            within = [0, 1, 7 * 86_400_000_000 - 1, self.chance.randrange(7 * 86_400_000_000)]
            yield self.chance.randint(1, 3), week + timedelta(microseconds=self.chance.choice(within))

    def _one_of(self, kind: tuple[str, tuple[object, ...]]) -> object:
        return self.chance.choice((None, *kind[1]))

    def _insert(self, schema: str, values: list[Any]) -> None:
        relation = sql.Identifier(schema, "plain" if schema == "public" else "magnets")
        places = sql.SQL(", ").join(sql.Placeholder() * len(values))
        statement = sql.SQL("insert into {} values ({}) on conflict do nothing").format(relation, places)
        self.connection.execute(statement, values)

    def archive(self) -> None:
        [*archive(self.conninfo, AFTER_WEEKS, pauses=0)]

    def recall(self) -> None:
        first, last = sorted(self.chance.sample(range(WEEKS + 1), 2))
        span = (FIRST_WEEK + timedelta(weeks=first), FIRST_WEEK + timedelta(weeks=last))
        [*recall(self.conninfo, "magnets", *span, timedelta(days=1))]

    def end_of_recall(self) -> None:
        """Archives the recalled weeks again."""
        self.connection.execute(
            "update ringlog.cold_week set recalled_until = %s where recalled_until is not null", [FIRST_WEEK]
        )
        self.archive()

    def maintain(self) -> None:
        maintain(self.engine, AFTER_WEEKS)

    def another_column(self) -> None:
        self.connection.execute("alter table public.plain add column turns bigint")
        self.values["turns"] = TWO_VALUES["turns"]
        self._change((*self.table.columns, TWO_COLUMNS["turns"]))

    def another_type(self) -> None:
        self.connection.execute("alter table public.plain alter column steps type bigint")
        wide = {"steps": "bigint"}
        self._change(tuple(replace(each, type=wide.get(each.name, each.type)) for each in self.table.columns))

    def _change(self, columns: tuple[Column, ...]) -> None:
        self.table = replace(self.table, columns=columns)
        changed(self.engine, self.connection, replace(self.facility, tables=(self.table,)))

    def same(self) -> bool:
        """Whether reading across the tiers returns the rows of the plain table, bit for bit."""
        names = ["seq_no", *self.values]
        query = sql.SQL("select {} from public.plain order by time, seq_no").format(
            sql.SQL(", ").join(map(sql.Identifier, ["time", *names]))
        )
        with closing(connect(self.conninfo)) as plain:
            return files.same(read(self.conninfo, "magnets", names), rows(plain, query))

    def sent(self, relation: str) -> list[tuple[object, ...]]:
        """All rows in PostgreSQL's binary form, which has all of their bits."""
        query = f"select encode(record_send(r), 'hex') from {relation} as r order by time, seq_no"
        return self.connection.execute(query.encode()).fetchall()


# columns of a table with waveforms keep their types
@pytest.mark.long
@pytest.mark.parametrize(
    ("seed", "columns", "step"),
    [
        (1, ["field", "current", "steps", "is_on", "charge", "state"], Tiers.another_type),
        (2, ["field", "trace", "state"], Tiers.maintain),
    ],
)
def test_the_rows_are_the_same_in_all_tiers(
    engine: sa.Engine,
    conninfo: str,
    tmp_path: Path,
    seed: int,
    columns: list[str],
    step: Callable[[Tiers], None],
) -> None:
    """All operations in random order, with rows after each."""
    chance = random.Random(seed)
    tiers = Tiers(engine, conninfo, tmp_path / "archive", chance, columns)
    steps = [step, Tiers.archive, Tiers.recall, Tiers.end_of_recall, Tiers.another_column]
    chance.shuffle(steps)
    with tiers.connection:
        tiers.rows()
        for number, each in enumerate([Tiers.maintain, Tiers.archive, Tiers.recall, *steps, Tiers.archive]):
            each(tiers)
            tiers.rows()
            assert tiers.same(), (number, steps)
        [*recall(conninfo, "magnets", FIRST_WEEK, AFTER_WEEKS, timedelta(days=1))]
        assert tiers.sent("weeks.magnets") == tiers.sent("public.plain")
