"""Weeks become months and months years, with every row, beside writers."""

from datetime import datetime, timedelta
from functools import partial

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.schema import merging
from ringlog.schema.install import install
from ringlog.schema.merging import Block, merge
from ringlog.schema.partitions import Week, maintain

from .conftest import Connect, at, magnets_facility

NOW = at("2027-01-10")
DAYS = [
    *(at("2024-11-04") + timedelta(days=3 * n) for n in range(19)),
    *(at("2025-03-03") + timedelta(days=3 * n) for n in range(20)),
    *(at("2026-09-07") + timedelta(days=3 * n) for n in range(20)),
]


def partitions(connection: psycopg.Connection) -> list[str]:
    found = connection.execute(
        "select relname from pg_inherits join pg_class on oid = inhrelid"
        " where inhparent = 'log.magnets'::regclass order by relname"
    )
    return [name.removeprefix("magnets_") for (name,) in found]


def rows(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    return connection.execute('select * from log.magnets order by "time", seq_no').fetchall()


def put(connection: psycopg.Connection, time: datetime, current: float = 1.0) -> None:
    connection.execute(
        "select ringlog.put_magnets(row (1, %s, %s, true, 'x')::online.magnets)", [time, current]
    )


@pytest.fixture
def magnets(engine: sa.Engine, connect: Connect) -> psycopg.Connection:
    """The log has rows of three times two months, in weeks."""
    install(engine, magnets_facility())
    connection = connect()
    for number, day in enumerate(DAYS):
        put(connection, day, number / 8)
    maintain(engine, NOW)
    return connection


@pytest.mark.parametrize(
    ("moment", "month", "bounds"),
    [
        # ISO 8601: a week is of the year that its Thursday is in; 2026 begins on Thursday 1 January
        ("2026-01-01", "2026m01", ("2025-12-29", "2026-02-02")),
        ("2026-03-02", "2026m03", ("2026-03-02", "2026-03-30")),
        ("2026-03-30", "2026m04", ("2026-03-30", "2026-05-04")),
        ("2027-01-01", "2026m12", ("2026-11-30", "2027-01-04")),
    ],
)
def test_months_have_whole_weeks(moment: str, month: str, bounds: tuple[str, str]) -> None:
    block = Block.month(Week.of(at(moment)))
    assert (block.name, block.start, block.end) == (month, at(bounds[0]), at(bounds[1]))


def test_years_have_the_weeks_of_iso_8601() -> None:
    block = Block.year(Week.of(at("2026-06-01")))
    assert (block.name, block.start, block.end) == ("2026y", at("2025-12-29"), at("2027-01-04"))


def test_old_weeks_become_months_and_years(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    before = rows(magnets)
    lines = merge(engine, NOW)
    assert all(line.startswith("merged log.magnets_") for line in lines)
    assert rows(magnets) == before
    weeks = [name for name in partitions(magnets) if "w" in name]
    others = [name for name in partitions(magnets) if "w" not in name]
    # September 2026 ended with the 27th, more than a quarter before; October has not
    assert others == ["2024y", "2025m03", "2025m04", "2026m09", "default"]
    # the only week of May 2025 is one partition already
    assert weeks[:2] == ["2025w18", "2026w40"]
    assert merge(engine, NOW) == ()


def test_months_become_years(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    merge(engine, NOW)
    before = rows(magnets)
    merge(engine, NOW + timedelta(days=365))
    assert [name for name in partitions(magnets) if name.startswith(("2024", "2025"))] == ["2024y", "2025y"]
    assert rows(magnets) == before


def test_rows_that_come_while_it_copies(
    engine: sa.Engine, magnets: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = merging._copy
    late = iter(range(1000))

    def copy(connection: sa.Connection, merge: merging.Merge, part: merging.Partition) -> None:
        put(magnets, part.start + timedelta(seconds=1 + next(late)))
        copied(connection, merge, part)
        put(magnets, part.start + timedelta(seconds=2000 + next(late)))
        put(magnets, merge.parts[0].start + timedelta(seconds=4000 + next(late)))

    before = rows(magnets)
    monkeypatch.setattr(merging, "_copy", copy)
    lines = merge(engine, NOW)
    number = next(late)
    assert number > 30
    assert all("rows came meanwhile" in line for line in lines)
    after = rows(magnets)
    assert len(after) == len(before) + number
    assert set(before) < set(after)
    assert magnets.execute("select count(*) from ringlog.late_row").fetchone() == (0,)


def test_what_was_stopped_goes_on(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    before = rows(magnets)
    for stop_after in (1, 2, 3, 4, 5, 6, 7, 8):
        asked = iter(range(100_000))
        merge(engine, NOW, stopped=partial(lambda asked, last: next(asked) >= last, asked, stop_after))
        assert rows(magnets) == before
    parts = magnets.execute("select count(*) from ringlog.copied_part").fetchone()
    assert parts is not None
    merge(engine, NOW)
    assert rows(magnets) == before
    assert "2024y" in partitions(magnets)
    assert magnets.execute("select count(*) from ringlog.copied_part").fetchone() == (0,)


def test_a_column_that_came_meanwhile(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    asked = iter(range(100))
    merge(engine, NOW, stopped=lambda: next(asked) >= 2)
    magnets.execute("alter table log.magnets add column more real")
    before = rows(magnets)
    merge(engine, NOW)
    assert rows(magnets) == before
    assert "2024y" in partitions(magnets)
