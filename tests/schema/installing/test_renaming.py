"""Renamed and retired tables and columns: stored rows can be read by the old and the new names."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors, sql

from ringlog.schema.facility import Column, Facility, LogPolicy, Table
from ringlog.schema.installing.install import InstallRefused, difference, install
from ringlog.schema.relations.partitions import maintain

from ..conftest import Connect, at
from .snapshot import snapshot

T0 = at("2026-03-02 12:00:00")
PUMPS = Table(
    "pumps",
    4,
    1.0,
    (
        Column("flow", "pumps/flow", "real", "l/min"),
        Column("state", "pump house/state", "varchar(8)"),
        Column("old_probe", "pumps/old_probe", "real"),
    ),
    log=LogPolicy(),
)


def facility(*tables: Table) -> Facility:
    return Facility("test", "UTC", tables, clock_tolerance=None)


def rows(connection: psycopg.Connection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(sql.SQL(statement), values or None).fetchall()


@pytest.fixture
def pumps(engine: sa.Engine, connect: Connect) -> psycopg.Connection:
    """The table with three rows; its summaries have none of them."""
    install(engine, facility(PUMPS))
    connection = connect()
    for second in range(3):
        rows(
            connection,
            "select ringlog.put_pumps(row (null, %s, %s, 'on', 9)::online.pumps)",
            T0 + timedelta(seconds=second),
            second + 0.5,
        )
    return connection


RENAMED = replace(
    PUMPS,
    name="cooling",
    renamed_from="pumps",
    columns=(
        Column("water", "cooling/water", "real", "l/min", renamed_from="flow"),
        Column("state", "pump house/state", "varchar(8)"),
        Column("old_probe", "cooling/old_probe", "real"),
    ),
)


def flow(moments: int = 3) -> list[tuple[datetime, float]]:
    return [(T0 + timedelta(seconds=second), second + 0.5) for second in range(moments)]


def test_a_table_and_a_column_are_read_by_both_names(engine: sa.Engine, pumps: psycopg.Connection) -> None:
    found = difference(engine, facility(RENAMED))
    assert {"table cooling: it was pumps", "column cooling.water: it was flow"} <= {*found.changed}
    assert rows(pumps, "select count(*) from log.pumps") == [(3,)], "a difference changes nothing"
    install(engine, facility(RENAMED))
    for signal in ("pumps/flow", "cooling/water"):
        assert rows(pumps, "select * from ringlog.get_signal(%s)", signal) == flow()
        assert rows(pumps, "select value from ringlog.get_latest(%s)", signal) == [(2.5,)]
        trend = "select sum(n) from ringlog.get_trend(%s, %s, %s, 10)"
        assert rows(pumps, trend, signal, T0, T0 + timedelta(minutes=1)) == [(3,)]
    for name in ("pumps", "cooling"):
        assert rows(pumps, f"select time, water from log.{name} order by time") == flow()
        assert rows(pumps, f"select count(*) from online.{name} where time is not null") == [(3,)]
        assert rows(pumps, f"select count(*) from ringlog.get_{name}_range()") == [(3,)]
    # signals of today are those of the new names
    assert rows(pumps, "select signal from ringlog.find_signals()") == [
        ("cooling/old_probe",),
        ("cooling/water",),
        ("pump house/state",),
    ]
    # writers of both names continue, and write one table
    rows(
        pumps,
        "select ringlog.put_pumps(row (null, %s, 3.5, 'on', 9)::online.cooling)",
        T0 + timedelta(seconds=3),
    )
    rows(
        pumps,
        "select ringlog.put_cooling(row (null, %s, 4.5, 'on', 9)::online.cooling)",
        T0 + timedelta(seconds=4),
    )
    assert rows(pumps, "select * from ringlog.get_signal('pumps/flow')") == flow(5)
    partitions = rows(
        pumps,
        "select distinct regexp_replace(relname, '_[^_]*$', '') from pg_inherits"
        " join pg_class on pg_class.oid = inhrelid where inhparent = 'weeks.cooling'::regclass",
    )
    assert partitions == [("cooling",)]
    before = snapshot(pumps)
    assert not install(engine, facility(RENAMED))
    assert snapshot(pumps) == before
    # the file may forget what the database knows
    forgetful = replace(
        RENAMED,
        renamed_from=None,
        columns=tuple(replace(each, renamed_from=None) for each in RENAMED.columns),
    )
    assert not install(engine, facility(forgetful))


def test_names_change_repeatedly(engine: sa.Engine, pumps: psycopg.Connection) -> None:
    install(engine, facility(RENAMED))
    third = replace(
        RENAMED,
        name="chiller",
        renamed_from="cooling",
        columns=(
            Column("water", "chiller/water", "real", "m³/h"),
            *RENAMED.columns[1:2],
            Column("old_probe", "chiller/old_probe", "real"),
            Column("level", "chiller/level", "real"),
        ),
    )
    install(engine, facility(third))
    for number, name in enumerate(("pumps", "cooling", "chiller")):
        assert rows(pumps, f"select count(level) from log.{name}") == [(min(number, 1),)]
        rows(
            pumps,
            f"select ringlog.put_{name}(row (1, %s, 1, '', 9, 9)::online.chiller)",
            T0 + timedelta(hours=1),
        )
    for signal in ("pumps/flow", "cooling/water", "chiller/water"):
        assert (
            rows(
                pumps,
                "select time, value from ringlog.get_signal(%s, null, %s)",
                signal,
                T0 + timedelta(minutes=1),
            )
            == flow()
        )
    # the operator's SQL drops the views of the former names too
    level = third.columns[-1]
    wider = replace(third, columns=(*third.columns[:-1], replace(level, type="double")))
    for wanted in (wider, replace(third, columns=third.columns[:-1]), third):
        if wanted is not third:
            with pytest.raises(InstallRefused, match="table chiller, column level: ") as refused:
                install(engine, facility(wanted))
            pumps.execute(refused.value.obstacles[0].sql)
        install(engine, facility(wanted))
        for name in ("pumps", "cooling", "chiller"):
            assert rows(pumps, f"select count(*) from online.{name}") == [(4,)]
            assert rows(pumps, f"select count(water) from log.{name}") == [(4,)]
    # another table has the first name now: its view is dropped by hand
    with pytest.raises(InstallRefused, match="table pumps: table chiller was called so before") as refused:
        install(engine, facility(third, PUMPS))
    (obstacle,) = refused.value.obstacles
    pumps.execute(obstacle.sql)
    install(engine, facility(third, PUMPS))
    rows(pumps, "select ringlog.put_pumps(row (1, %s, 7, '', 9)::online.pumps)", T0)
    assert rows(pumps, "select flow from log.pumps") == [(7.0,)]
    assert rows(pumps, "select count(*) from log.chiller") == rows(pumps, "select count(*) from log.cooling")


def test_a_file_with_the_old_name_gets_the_new_one_in_the_error(
    engine: sa.Engine, pumps: psycopg.Connection
) -> None:
    install(engine, facility(RENAMED))
    with pytest.raises(InstallRefused, match="is cooling in the database") as refused:
        install(engine, facility(PUMPS))
    assert "drop" not in str(refused.value)
    assert 'renamed_from = "cooling"' in str(refused.value)
    # according to the message
    back = replace(RENAMED, name="pumps", renamed_from="cooling")
    install(engine, facility(back))
    install(engine, facility(back))
    for name in ("pumps", "cooling"):
        rows(
            pumps, f"select ringlog.put_{name}(row (1, %s, 1, '', 9)::online.pumps)", T0 + timedelta(hours=1)
        )
        assert rows(pumps, f"select count(*) from log.{name}") == [(4,)]
    assert rows(pumps, "select table_name, former from ringlog.former_table") == [("pumps", "cooling")]


def test_another_name_without_renamed_from(engine: sa.Engine, pumps: psycopg.Connection) -> None:
    other = replace(PUMPS, name="cooling")
    with pytest.raises(InstallRefused, match='if it is cooling now, write renamed_from = "pumps" there'):
        install(engine, facility(other))
    column = replace(PUMPS, columns=(Column("water", "pumps/flow", "real", "l/min"), *PUMPS.columns[1:]))
    with pytest.raises(InstallRefused, match='if it is water now, write renamed_from = "flow" there'):
        install(engine, facility(column))


def test_conflicting_names_are_refused(engine: sa.Engine, pumps: psycopg.Connection) -> None:
    other = Table("other", 4, 1.0, (Column("a", "other/a", "real"),))
    install(engine, facility(PUMPS, other))
    with pytest.raises(InstallRefused, match="table other: the file says that it was pumps, and both are"):
        install(engine, facility(replace(other, renamed_from="pumps")))
    both = replace(PUMPS, columns=(*PUMPS.columns[:2], replace(PUMPS.columns[2], renamed_from="flow")))
    with pytest.raises(
        InstallRefused, match=r"column old_probe: the file says that it was flow, and both are"
    ):
        install(engine, facility(both, other))
    rows(
        pumps,
        "insert into ringlog.cold_week values ('pumps', '2020-01-06', '2020-01-13', 'x', 1, 1, '')"
        " returning 1",
    )
    with pytest.raises(InstallRefused, match="weeks of the table are in the archive, whose"):
        install(engine, facility(RENAMED, other))


def test_a_retired_column_is_read_and_not_listed(engine: sa.Engine, pumps: psycopg.Connection) -> None:
    retired = replace(PUMPS, columns=(*PUMPS.columns[:2], replace(PUMPS.columns[2], retired=True)))
    report = install(engine, facility(retired))
    assert report.changed == ("signal pumps/old_probe: ends; its rows can be read",)
    assert rows(pumps, "select count(value) from ringlog.get_signal('pumps/old_probe')") == [(3,)]
    assert ("pumps/old_probe",) not in rows(pumps, "select signal from ringlog.find_signals()")
    # a writer that still uses it is not refused
    rows(pumps, "select ringlog.put_pumps(row (4, %s, 1, 'on', 8)::online.pumps)", T0 + timedelta(seconds=9))
    assert rows(pumps, "select old_probe from online.pumps where seq_no = 4") == [(8.0,)]
    assert [column.name for column in retired.written.columns] == ["flow", "state"]
    assert not install(engine, facility(retired))
    assert install(engine, facility(PUMPS))
    assert ("pumps/old_probe",) in rows(pumps, "select signal from ringlog.find_signals()")


def test_a_retired_table_is_read_and_not_written(engine: sa.Engine, pumps: psycopg.Connection) -> None:
    retired = replace(PUMPS, retired=True)
    install(engine, facility(retired))
    assert rows(pumps, "select count(*) from ringlog.get_pumps_range()") == [(3,)]
    assert rows(pumps, "select * from ringlog.get_signal('pumps/flow')") == flow()
    assert rows(pumps, "select * from ringlog.find_signals()") == []
    assert rows(pumps, "select * from ringlog.table_states()") == [], "nobody waits for its rows"
    with pytest.raises(errors.UndefinedFunction):
        rows(pumps, "select ringlog.put_pumps(row (4, now(), 1, 'on', 8)::online.pumps)")
    made = maintain(engine, datetime.now().astimezone() + timedelta(weeks=30))
    assert made.made == (), "no week is made for it"
    assert not install(engine, facility(retired))
    install(engine, facility(PUMPS))
    rows(
        pumps, "select ringlog.put_pumps(row (4, %s, 3.5, 'on', 8)::online.pumps)", T0 + timedelta(seconds=3)
    )
    assert rows(pumps, "select * from ringlog.get_signal('pumps/flow')") == flow(4)


def test_a_renamed_table_missing_from_the_file(engine: sa.Engine, pumps: psycopg.Connection) -> None:
    install(engine, facility(RENAMED))
    other = Table("other", 4, 1.0, (Column("a", "other/a", "real"),))
    with pytest.raises(
        InstallRefused, match="table cooling: is not in the facility file any more"
    ) as refused:
        install(engine, facility(other))
    pumps.execute(refused.value.obstacles[0].sql)
    install(engine, facility(other))
    for name in ("pumps", "cooling"):
        assert rows(pumps, "select relname from pg_class where relname ^@ %s", name) == []
        assert rows(pumps, "select proname from pg_proc where strpos(proname, %s) > 0", f"_{name}") == []
    assert rows(pumps, "select * from ringlog.former_table") == []
    install(engine, facility(other, PUMPS))
