"""Imported rows have the same result as single puts, and are imported once."""

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import errors

from ringlog.schema.facility import LogPolicy

from .conftest import Magnets, MagnetsWith, at

OLD = at("2021-03-01 00:00:00")
Row = tuple[int, datetime, float | None]


def series(count: int, begin: datetime = OLD, step: float = 1.0, first: int = 1) -> list[Row]:
    """So many rows on the places of a ring of five."""
    return [
        ((first + number - 1) % 5 + 1, begin + timedelta(seconds=step * number), float(number))
        for number in range(count)
    ]


def begin(magnets: Magnets, file: str = "host:/old.csv", digest: str = "one") -> tuple[Any, ...]:
    (answer,) = magnets.rows("select * from ringlog.begin_import('magnets', %s, %s)", file, digest)
    return answer


def take(
    magnets: Magnets,
    rows: Sequence[Row],
    before: int = 0,
    file: str = "host:/old.csv",
    *,
    numbered: bool = True,
    last: bool = False,
) -> tuple[Any, ...]:
    """Copies rows into the session's table and has them taken over: stored, repeated, refused."""
    with magnets.connection.transaction():
        with (
            magnets.connection.cursor() as cursor,
            cursor.copy('copy pg_temp.magnets (seq_no, "time", current, "on", state) from stdin') as copy,
        ):
            for seq_no, time, current in rows:
                copy.write_row((seq_no, time, current, True, "ready"))
        call = "select * from ringlog.import_magnets(%s, %s, %s, %s)"
        (answer,) = magnets.rows(call, file, before, numbered, last)
        return answer


def contents(magnets: Magnets) -> str:
    """Ring and log, in which NaN equals itself."""
    return json.dumps([magnets.ring(), magnets.log()], default=str)


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"log": LogPolicy(nth=2)},
        {"log": LogPolicy(period=3.0)},
        {"nan": "null"},
        {"clock_tolerance": timedelta(days=1)},
    ],
    ids=["every", "nth", "period", "nan", "clock tolerance"],
)
def test_imported_rows_equal_put_rows(magnets_with: MagnetsWith, table: dict[str, Any]) -> None:
    rows = [*series(12), *series(4, OLD + timedelta(days=9), first=3)]
    rows[3] = (*rows[3][:2], math.nan)
    rows[5] = (*rows[5][:2], None)
    if "clock_tolerance" in table:
        rows.append((5, datetime.now(UTC) + timedelta(days=400), 1.0))
    magnets = magnets_with(**table)
    for row in rows:
        magnets.put(*row)
    by_put = contents(magnets)
    magnets = magnets_with(**table)
    magnets.connection.execute("truncate ringlog.imported_file, ringlog.ledger")
    begin(magnets)
    assert take(magnets, rows[:7]) == (7, 0, 0)
    assert take(magnets, rows[7:], 7, last=True) == (len(rows) - 7, 0, 0)
    assert contents(magnets) == by_put
    events = magnets.rows("select kind, rows from ringlog.event")
    assert events == ([("clock", 1)] if "clock_tolerance" in table else [])


@pytest.fixture
def empty(magnets: Magnets) -> Magnets:
    magnets.connection.execute("truncate ringlog.imported_file, ringlog.ledger, ringlog.summary_mark")
    return magnets


def test_the_ring_keeps_its_newer_rows(empty: Magnets) -> None:
    newest = at("2026-01-01 00:00:00")
    empty.put(2, newest, 7.0)
    begin(empty)
    take(empty, series(10))
    assert empty.ring() == [
        (1, OLD + timedelta(seconds=5), 5.0),
        (2, newest, 7.0),
        *((seq_no, OLD + timedelta(seconds=seq_no + 4), float(seq_no + 4)) for seq_no in (3, 4, 5)),
    ]


def test_existing_rows_are_skipped_and_differing_ones_refused(empty: Magnets) -> None:
    rows = series(4)
    empty.put(*rows[0])
    empty.put(2, rows[1][1], 99.0)
    begin(empty)
    assert take(empty, rows, last=True) == (2, 1, 1)
    assert [current for *_, current in empty.log()] == [0.0, 99.0, 2.0, 3.0]
    ((message,),) = empty.rows("select message from ringlog.event where kind = 'refused'")
    assert message.startswith("the log has another row of this time and seq_no: ")
    assert json.loads(message.split(": ", 1)[1])["current"] == 1
    books = (
        "select produced, acknowledged, refused, repeated from ringlog.ledger where spool = 'host:/old.csv'"
    )
    assert empty.rows(books) == [(3, 2, 1, 1)]
    ((missing,),) = empty.rows("select missing from ringlog.losses() where hour = %s", OLD)
    assert missing == 0


def test_without_seq_no_a_row_is_identified_by_its_time(empty: Magnets) -> None:
    rows = series(3)
    empty.put(4, rows[0][1], 0.0)  # the same row, elsewhere in the ring
    empty.put(5, rows[1][1], 99.0)
    begin(empty)
    assert take(empty, rows, numbered=False) == (1, 1, 1)
    assert [(seq_no, current) for seq_no, _, current in empty.log()] == [(4, 0.0), (5, 99.0), (3, 2.0)]


def test_a_part_is_imported_once(empty: Magnets) -> None:
    assert begin(empty) == (0, 0, None)
    take(empty, series(3))
    with pytest.raises(psycopg.Error, match="the row after 3 is next, not that after 0") as refused:
        take(empty, series(3))
    assert refused.value.sqlstate == "RL005"
    assert begin(empty) == (3, 0, None)
    assert take(empty, [], 3, last=True) == (0, 0, 0)
    taken, _, ended = begin(empty)
    assert (taken, ended is not None) == (3, True)
    # another file under this name: all of it is read, and existing rows are skipped
    assert begin(empty, digest="two") == (0, 0, None)
    assert take(empty, series(4)) == (1, 3, 0)
    assert len(empty.log()) == 4


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ((6, OLD, 1.0), errors.CheckViolation),
        ((0, OLD, 1.0), errors.CheckViolation),
        ((None, OLD, 1.0), errors.NotNullViolation),
        ((1, None, 1.0), errors.NotNullViolation),
        ((1, "infinity", 1.0), errors.DatetimeFieldOverflow),
        ((1, OLD + timedelta(seconds=1), 1.0), errors.UniqueViolation),
    ],
)
def test_a_part_with_a_wrong_row_stores_nothing(empty: Magnets, row: Any, error: type[Exception]) -> None:
    begin(empty)
    with pytest.raises(error):
        take(empty, [(1, OLD + timedelta(seconds=1), 1.0), row])
    assert empty.log() == empty.ring() == []
    assert begin(empty)[0] == 0


def test_rows_before_the_end_of_summaries_are_marked(empty: Magnets) -> None:
    until = OLD + timedelta(minutes=5)
    empty.value("select setval('summary.magnets_until', %s)", int(until.timestamp() * 1e6))
    empty.connection.execute("update ringlog.summarised set levels = '{60}'")
    begin(empty)
    take(empty, series(40, OLD + timedelta(minutes=3, seconds=0.5), 10.0))
    marks = empty.rows('select "time" from ringlog.summary_mark order by 1')
    assert marks == [(OLD + timedelta(minutes=minute),) for minute in (3, 4)]
    empty.connection.execute("update ringlog.summarised set levels = '{}'")
    empty.value("select setval('summary.magnets_until', 1)")


def as_writer(magnets: Magnets, statement: str) -> None:
    with magnets.connection.transaction():
        magnets.connection.execute("set local role import_writer")
        magnets.connection.execute(statement.encode())


def test_a_table_of_the_callers_own_is_not_taken_over(empty: Magnets) -> None:
    empty.connection.execute("create role import_writer in role daq_writer")
    as_writer(empty, "select ringlog.begin_import('magnets', 'host:/old.csv', 'one')")
    as_writer(empty, "insert into pg_temp.magnets (seq_no) values (1)")
    for forbidden in ("select from pg_temp.magnets", "alter table pg_temp.magnets add extra integer"):
        with pytest.raises(errors.InsufficientPrivilege):
            as_writer(empty, forbidden)
    empty.connection.execute("drop table pg_temp.magnets")
    as_writer(empty, "create temporary table magnets (seq_no integer)")
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="begin_import comes first"):
        as_writer(empty, "select * from ringlog.import_magnets('host:/old.csv', 0, true, false)")
    empty.connection.execute("drop owned by import_writer; drop role import_writer")


def test_a_week_is_created_once_and_only_if_permitted(empty: Magnets) -> None:
    monday = at("2019-07-01 00:00:00")
    empty.put(1, monday + timedelta(days=1), 1.0)
    assert empty.value("select ringlog.make_week('magnets', %s)", monday) == 1
    assert empty.value("select ringlog.make_week('magnets', %s)", monday) is None
    assert empty.rows(
        "select relname, current from weeks.magnets as log join pg_class on pg_class.oid = log.tableoid"
    ) == [("magnets_2019w27", 1)]
    for wrong in (monday + timedelta(days=1), at("1969-12-29 00:00:00"), at("2999-12-30 00:00:00")):
        with pytest.raises(errors.CheckViolation):
            empty.value("select ringlog.make_week('magnets', %s)", wrong)
    empty.connection.execute("drop table log.magnets_2019w27")
