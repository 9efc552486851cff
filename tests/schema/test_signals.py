"""The registry and the procedures over all tables: get_signal, get_latest, find_signals."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors, sql

from ringlog.schema.facility import Column, Facility, LogPolicy, Table
from ringlog.schema.installing.install import install

from .conftest import Connect, Magnets, at

NOW = datetime.now().astimezone().replace(microsecond=0)
T0 = at("2026-03-02 12:00:00")

EVERY_TYPE = Table(
    "every_type",
    rows=4,
    cycle=1.0,
    columns=(
        Column("a_real", "types/real", "real", "A", "a real", (-1.5, 1.5)),
        Column("a_double", "types/double", "double"),
        Column("an_int", "types/int", "int"),
        Column("a_smallint", "types/smallint", "smallint"),
        Column("a_bigint", "types/bigint", "bigint"),
        Column("a_bit", "types/bit", "bit"),
        Column("a_varchar", "types/varchar", "varchar(8)"),
    ),
)
FACILITY = Facility("test", "UTC", (EVERY_TYPE,))


def second(number: float) -> datetime:
    """A time before the test, so that rows it writes now are later than those of `types`."""
    return NOW + timedelta(seconds=number - 3)


def rows(connection: psycopg.Connection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(sql.SQL(statement), values or None).fetchall()


@pytest.fixture
def types(engine: sa.Engine, connect: Connect) -> psycopg.Connection:
    """A table of every type with three rows."""
    install(engine, FACILITY)
    connection = connect()
    put = "select ringlog.put_every_type(row (null, %s, %s, %s, %s, %s, %s, %s, %s)::online.every_type)"
    rows(connection, put, second(0), 0.5, 1e300, 7, -7, 2**40, True, "on")
    rows(connection, put, second(1), None, None, None, None, None, None, None)
    rows(connection, put, second(2), float("nan"), 2.5, 8, -8, 2**41, False, "off")
    return connection


def test_get_signal_and_get_latest(types: psycopg.Connection) -> None:
    for signal, first, third in (
        ("types/double", 1e300, 2.5),
        ("types/int", 7, 8),
        ("types/smallint", -7, -8),
        ("types/bigint", 2**40, 2**41),
        ("types/bit", 1, 0),
    ):
        history = rows(types, "select * from ringlog.get_signal(%s)", signal)
        assert history == [(second(0), first), (second(1), None), (second(2), third)]
        assert rows(types, "select * from ringlog.get_latest(%s)", signal) == [(second(2), third)]
    assert str(rows(types, "select value from ringlog.get_latest('types/real')")) == "[(nan,)]"


def test_get_signal_has_the_bounds_of_get_range(types: psycopg.Connection) -> None:
    get_signal = "select * from ringlog.get_signal('types/int', %s, %s, %s)"
    assert rows(types, get_signal, second(1), second(2), None) == [(second(1), None)]
    assert rows(types, get_signal, second(1), None, None) == [(second(1), None), (second(2), 8)]
    assert rows(types, get_signal, None, second(1), None) == [(second(0), 7)]
    assert rows(types, get_signal, None, None, 2) == [(second(0), 7), (second(1), None)]
    assert rows(types, get_signal, second(2), second(1), None) == []


def test_get_latest_of_a_ring_never_written(magnets: Magnets) -> None:
    assert magnets.rows("select * from ringlog.get_latest('magnets/on')") == []


def test_an_unknown_signal(types: psycopg.Connection) -> None:
    with pytest.raises(errors.UndefinedObject, match="get_signal: there is no signal 'types/x'"):
        rows(types, "select * from ringlog.get_signal('types/x')")
    with pytest.raises(errors.UndefinedObject, match="get_signal: there is no signal '<NULL>'"):
        rows(types, "select * from ringlog.get_signal(null)")
    with pytest.raises(errors.UndefinedObject, match="get_latest: there is no signal 'types/x' now"):
        rows(types, "select * from ringlog.get_latest('types/x')")


def test_a_text_is_not_a_number(types: psycopg.Connection) -> None:
    message = r"signal 'types/varchar' is text \(varchar\(8\)\), not a number"
    for procedure in ("get_signal", "get_latest"):
        with pytest.raises(errors.DatatypeMismatch, match=f"{procedure}: {message}"):
            rows(types, f"select * from ringlog.{procedure}('types/varchar')")


def test_find_signals(types: psycopg.Connection) -> None:
    assert rows(types, "select * from ringlog.find_signals('%%/re_l')") == [
        (
            "types/real",
            "every_type",
            "a_real",
            "real",
            "A",
            "a real",
            -1.5,
            1.5,
            None,
            None,
            None,
            False,
            None,
        )
    ]
    names = [row[0] for row in rows(types, "select * from ringlog.find_signals()")]
    assert names == sorted(column.signal for column in EVERY_TYPE.columns)
    assert rows(types, "select * from ringlog.find_signals('nothing')") == []


def test_the_registry_describes_tables(engine: sa.Engine, connect: Connect) -> None:
    table = replace(EVERY_TYPE, description="types", cycle=2.5, log=LogPolicy(period=60.0))
    install(engine, Facility("test", "UTC", (table,)))
    assert rows(connect(), "select * from ringlog.logged_table") == [
        ("every_type", "types", 4, 2.5, 1, 60.0, None, False)
    ]


# --- history ---


def with_column(**changes: Any) -> Facility:
    """The facility with another first column."""
    first, *others = EVERY_TYPE.columns
    return Facility("test", "UTC", (replace(EVERY_TYPE, columns=(replace(first, **changes), *others)),))


def test_changes_are_kept_with_their_time(types: psycopg.Connection, engine: sa.Engine) -> None:
    known = {"unit": "mA", "description": "better known"}
    changes: list[tuple[str, dict[str, Any]]] = [
        ('unit "A" → "mA"', {"unit": "mA"}),
        ('description "a real" → "better known"', known),
        ("limits -1.5 to 1.5 → -2 to 1.5", known | {"limits": (-2.0, 1.5)}),
        ("limits -2 to 1.5 → none", known | {"limits": None}),
        ("alarm_limits none → -3 to 3", known | {"limits": None, "alarm_limits": (-3.0, 3.0)}),
    ]
    for what, change in changes:
        report = install(engine, with_column(**change))
        assert (report.created, report.changed) == ((), (f"signal types/real: {what}",))
        assert not install(engine, with_column(**change))
    assert rows(
        types,
        "select unit, description, limit_low, limit_high from ringlog.signal"
        " where signal = 'types/real' order by valid_from",
    ) == [
        ("A", "a real", -1.5, 1.5),
        ("mA", "a real", -1.5, 1.5),
        ("mA", "better known", -1.5, 1.5),
        ("mA", "better known", -2.0, 1.5),
        ("mA", "better known", None, None),
        ("mA", "better known", None, None),
    ]
    # each period ends at the begin of the next, and the last is open
    assert (
        rows(
            types,
            "select valid_to is not distinct from lead(valid_from) over (order by valid_from)"
            " from ringlog.signal where signal = 'types/real'",
        )
        == [(True,)] * 6
    )
    assert rows(types, "select count(*) from ringlog.signal") == [(len(EVERY_TYPE.columns) + 5,)]
    assert rows(types, "select unit from ringlog.find_signals('types/real')") == [("mA",)]


def test_states_and_held_values(types: psycopg.Connection, engine: sa.Engine) -> None:
    report = install(engine, with_column(states=((0, "off"), (1, "on")), held=True))
    assert report.changed == ('signal types/real: states none → {"0": "off", "1": "on"}, held no → yes',)
    found = rows(types, "select states::json ->> '1', held from ringlog.find_signals('types/real')")
    assert found == [("on", True)]


def test_get_signal_continues_across_a_change(types: psycopg.Connection, engine: sa.Engine) -> None:
    before = rows(types, "select * from ringlog.get_signal('types/real')")
    install(engine, with_column(unit="mA"))
    assert [row[0] for row in rows(types, "select * from ringlog.get_signal('types/real')")] == [
        row[0] for row in before
    ]


def test_a_renamed_signal_ends_and_another_begins(types: psycopg.Connection, engine: sa.Engine) -> None:
    put = "select ringlog.put_every_type(row (null, %s, %s)::online.every_type)".replace(
        "%s)", "%s, 0, 0, 0, 0, true, '')"
    )
    # the clock of the database, as in valid_from
    ((begin,),) = rows(types, "select now()")
    rows(types, put, begin, 1)
    install(engine, with_column(signal="types/other"))
    ((end,),) = rows(types, "select now()")
    rows(types, put, end, 2)
    values = {
        name: [row[1] for row in rows(types, "select * from ringlog.get_signal(%s, %s, null)", name, begin)]
        for name in ("types/real", "types/other")
    }
    assert values == {"types/real": [1], "types/other": [2]}
    with pytest.raises(errors.UndefinedObject, match="there is no signal 'types/real' now"):
        rows(types, "select * from ringlog.get_latest('types/real')")
    assert rows(types, "select value from ringlog.get_latest('types/other')") == [(2,)]


def test_a_signal_that_moves_to_another_column_is_followed(
    types: psycopg.Connection, engine: sa.Engine
) -> None:
    ((begin,),) = rows(types, "select now()")
    put = "select ringlog.put_every_type(row (null, %s, %s, %s, 0, 0, 0, true, '')::online.every_type)"
    rows(types, put, begin, 1, 10)
    first, second_column, *others = EVERY_TYPE.columns
    swapped = (
        replace(first, signal=second_column.signal),
        replace(second_column, signal=first.signal),
        *others,
    )
    install(engine, Facility("test", "UTC", (replace(EVERY_TYPE, columns=swapped),)))
    ((end,),) = rows(types, "select now()")
    rows(types, put, end, 2, 20)
    get_signal = "select value from ringlog.get_signal(%s, %s, null, %s)"
    assert rows(types, get_signal, "types/real", begin, None) == [(1,), (20,)]
    assert rows(types, get_signal, "types/double", begin, None) == [(10,), (2,)]
    assert rows(types, get_signal, "types/double", begin, 1) == [(10,)]
