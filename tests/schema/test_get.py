"""get_<table>, get_<table>_at, get_<table>_range and last_<table>."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from case_tables import cases
from psycopg import errors

from ringlog.schema.facility import Column, LogPolicy
from ringlog.schema.installing.install import InstallRefused, InstallReport, install
from ringlog.schema.relations.partitions import Week, maintain

from .conftest import Connect, Magnets, MagnetsWith, at, magnets_facility

NOW = datetime.now().astimezone().replace(microsecond=0)


def second(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


def filled(magnets: Magnets) -> Magnets:
    """Rows 0 to 6, one second apart; the ring has 2 to 6."""
    for number in range(7):
        magnets.put(None, second(number), number)
    return magnets


@pytest.fixture
def seven(magnets: Magnets) -> Magnets:
    return filled(magnets)


def currents(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [row[2] for row in rows]


def plan(magnets: Magnets, statement: str, *values: object) -> str:
    with psycopg.ClientCursor(magnets.connection) as cursor:
        return "\n".join(line for (line,) in cursor.execute(f"explain (costs off) {statement}", values))


@pytest.mark.parametrize("waveform", [False, True], ids=["numbers", "waveforms"])
def test_reads(magnets_with: MagnetsWith, waveform: bool) -> None:
    magnets = filled(magnets_with(waveform=waveform))
    for call, wanted in cases(__file__, "reads"):
        text = re.sub(r"\{(.*?)\}", lambda found: f"'{second(float(found[1])).isoformat()}'", call)
        found = magnets.rows(f"select {magnets.current} from ringlog.{text}")
        assert found == [(current,) for current in wanted], call
    for call, number in (("get_magnets()", 6), (f"get_magnets_at('{second(3).isoformat()}')", 3)):
        ((seq_no, time, _, *others),) = magnets.rows(f"select * from ringlog.{call}")
        assert (seq_no, time, *others) == (number % 5 + 1, second(number), True, "ready")


def test_get_omits_rows_never_written(magnets: Magnets) -> None:
    assert magnets.rows("select * from ringlog.get_magnets(5)") == []
    magnets.put(4, NOW)
    assert len(magnets.rows("select * from ringlog.get_magnets(5)")) == 1


def test_get_refuses_less_than_no_rows(seven: Magnets) -> None:
    with pytest.raises(errors.InvalidRowCountInLimitClause):
        seven.rows("select * from ringlog.get_magnets(-1)")


def test_get_is_inlined_and_reads_the_index(magnets_with: MagnetsWith) -> None:
    magnets = magnets_with(rows=3000)
    options = magnets.rows("select reloptions from pg_class where oid = 'online.magnets'::regclass")
    assert options == [(["autovacuum_analyze_threshold=2147483647"],)], "nobody analyzes a ring"
    magnets.connection.execute("vacuum online.magnets")
    lines = plan(magnets, "select * from ringlog.get_magnets(1)")
    assert "Function Scan" not in lines
    assert "Index Scan Backward using magnets_time_idx" in lines


def test_get_at_knows_rows_of_the_ring_that_are_not_logged(magnets_with: MagnetsWith) -> None:
    magnets = magnets_with(log=LogPolicy(nth=5))
    for number in range(7):
        magnets.put(None, second(number), number)
    get_at = "select * from ringlog.get_magnets_at(%s)"
    assert [currents(magnets.rows(get_at, second(number))) for number in range(7)] == [
        [0], [0], [2], [3], [4], [5], [6],
    ]  # fmt: skip


def test_get_range_is_inlined_and_reads_only_its_weeks(magnets: Magnets) -> None:
    lines = plan(magnets, "select * from ringlog.get_magnets_range(%s, %s, 10)", second(0), second(1))
    assert "Function Scan" not in lines
    assert re.findall(r" on (magnets_\w+) ", lines) == [f"magnets_{NOW.astimezone(UTC):%Gw%V}"]


def test_get_range_has_rows_of_any_time(seven: Magnets) -> None:
    seven.put(1, at("1999-12-31 23:59:00"), -1)
    assert currents(seven.rows("select * from ringlog.get_magnets_range()")) == [-1, 0, 1, 2, 3, 4, 5, 6]


def test_last_is_the_row_to_continue_after(seven: Magnets) -> None:
    assert seven.rows("select * from ringlog.last_magnets()") == [(2, second(6))]
    seven.put(5, second(7))
    assert seven.rows("select * from ringlog.last_magnets()") == [(5, second(7))]


def test_last_of_a_ring_never_written(magnets: Magnets) -> None:
    assert magnets.rows("select * from ringlog.last_magnets()") == [(None, None)]


def test_reading_procedures_run_as_their_caller(magnets: Magnets) -> None:
    found = magnets.rows(
        "select proname, prosecdef, provolatile from pg_proc where pronamespace = 'ringlog'::regnamespace"
        " and proname !~ '^(put|claim|release|report|record|tell|refuse|begin|import)_'"
        " and proname !~ 'parameter|snapshot|demand_(version|log)|partial_logs|make_week|mark_summaries'"
        " and proname !~ 'note_damage|mend_ring|list_archived|view_(archive|samples)'"
        " and proname !~ '^(capture_event|notice_alarms|(forget|copy|delete|store)_captur)'"
        " and proname !~ '^((add|correct|withdraw)_mark|(save|remove)_view)$'"
        # they change signals of samples, and list those that a login may change or write
        " and proname !~ '^(add|pause|resume|set|change|rename|retire|demand|note)_signal'"
        " and proname !~ 'list_signals|settle_signals|merge_samples'"
        " and proname !~ '^(written_signals|signal_states|differences|node_of_table)$'"
        " and prorettype <> 'trigger'::regtype"
    )
    names = {name for name, _, _ in found}
    assert names >= {"find_signals", "get_signal", "get_trends", "get_waveform", "get_magnets", "losses"}
    # it prepares its statements, and waits for a lock only once
    assert ("table_states", False, "v") in found
    assert [each for each in found if each[1:] != (False, "s") and each[0] != "table_states"] == []


def test_every_procedure_has_a_description(magnets: Magnets) -> None:
    comments = magnets.rows(
        "select proname, obj_description(oid) from pg_proc where pronamespace = 'ringlog'::regnamespace"
    )
    assert len(comments) > 18
    assert all(comment for _, comment in comments)


# --- the views of the latest weeks ---

WEEK = timedelta(weeks=1)


def put(connection: psycopg.Connection, time: datetime) -> None:
    connection.execute("select ringlog.put_magnets(row (1, %s, 1, true, '')::online.magnets)", [time])


def planned(connection: psycopg.Connection, relation: str) -> int:
    """The number of partitions in the plan of a query of the last hour. EXPLAIN says, of those that it has
    not kept for the execution, their number ("Subplans Removed")."""
    query = f"select * from {relation} where time > now() - interval '1 hour'"
    ((plan,),) = connection.execute(f"explain (format json) {query}").fetchall()
    top = plan[0]["Plan"]
    return int(top.get("Subplans Removed", 0)) + len(top.get("Plans", [top]))


def test_the_last_hour_is_planned_over_few_partitions(engine: sa.Engine, connect: Connect) -> None:
    install(engine, magnets_facility())
    connection = connect()
    this = Week.of(NOW)
    # weeks that ended long ago are made for many rows only
    for weeks in range(20):
        put(connection, this.start - weeks * WEEK)
    maintain(engine)
    partitions = "select count(*) from pg_inherits where inhparent = 'weeks.magnets'::regclass"
    assert connection.execute(partitions).fetchall() == [(5 + 19 + 1,)]
    assert planned(connection, "log.magnets") == 25
    # this week, the four before it and those to come, and the default one
    assert planned(connection, "recent.magnets") == 10
    query = "select time from recent.magnets order by time"
    expected = [(this.start - weeks * WEEK,) for weeks in (4, 3, 2, 1, 0)]
    assert connection.execute(query).fetchall() == expected


def test_housekeeping_advances_them(engine: sa.Engine, connect: Connect) -> None:
    install(engine, magnets_facility())
    connection = connect()
    this = Week.of(NOW)
    for weeks in range(5):
        put(connection, this.start - weeks * WEEK)
    count = "select count(*) from recent.magnets"
    assert connection.execute(count).fetchone() == (5,)
    maintain(engine, datetime.now(UTC) + 3 * WEEK)
    assert connection.execute(count).fetchone() == (2,)
    assert not install(engine, magnets_facility())


def test_they_have_the_columns_of_their_logs(engine: sa.Engine, connect: Connect) -> None:
    facility = magnets_facility()
    install(engine, facility)
    (table,) = facility.tables
    connection = connect()
    # a user's view depends on it
    connection.execute("create view public.mine as select time, current from recent.magnets")
    wider = replace(facility, tables=(replace(table, columns=(*table.columns, Column("k", "k", "real"))),))
    assert not [line for line in install(engine, wider).changed if line.startswith("view")]
    named = replace(wider.tables[0].columns[-1], name="kelvin", renamed_from="k")
    renamed = replace(facility, tables=(replace(table, columns=(*table.columns, named)),))
    install(engine, renamed)
    put_wide = "select ringlog.put_magnets(row (1, now(), 1, true, '', 4)::online.magnets)"
    connection.execute(put_wide)
    assert connection.execute("select kelvin from recent.magnets").fetchall() == [(4.0,)]
    assert connection.execute("select current from public.mine").fetchall() == [(1.0,)]


def test_a_table_can_be_dropped_by_the_advised_sql(engine: sa.Engine, connect: Connect) -> None:
    facility = magnets_facility()
    install(engine, facility)
    (table,) = facility.tables
    narrow = replace(facility, tables=(replace(table, columns=table.columns[:-1]),))
    with pytest.raises(InstallRefused) as refused:
        install(engine, narrow)
    (obstacle,) = refused.value.obstacles
    connection = connect()
    connection.execute(obstacle.sql.encode())
    assert "view recent.magnets" in install(engine, narrow).changed
    connection.execute("select time, current from recent.magnets")
    with pytest.raises(InstallRefused) as refused:
        install(engine, replace(facility, tables=()))
    connection.execute(refused.value.obstacles[0].sql.encode())
    with pytest.raises(errors.UndefinedTable):
        connection.execute("select from recent.magnets")


def test_they_are_read_with_the_rights_of_the_reader(engine: sa.Engine, connect: Connect) -> None:
    install(engine, magnets_facility())
    connection = connect()
    connection.execute("set role daq_reader")
    connection.execute("select * from recent.magnets")
    connection.execute("reset role")
    connection.execute("set role daq_writer")
    with pytest.raises(errors.InsufficientPrivilege):
        connection.execute("select * from recent.magnets")


def test_an_older_database_gets_them(engine: sa.Engine, connect: Connect) -> None:
    install(engine, magnets_facility())
    connect().execute("drop view recent.magnets")
    assert install(engine, magnets_facility()) == InstallReport((), ("view recent.magnets",))
