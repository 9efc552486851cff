"""get_<table>, get_<table>_at, get_<table>_range and last_<table>."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import errors

from ringlog.schema.facility import LogPolicy

from .conftest import Magnets, MagnetsWith, at

NOW = datetime.now().astimezone().replace(microsecond=0)


def second(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


@pytest.fixture
def seven(magnets: Magnets) -> Magnets:
    """Rows 0 to 6, one second apart; the ring has 2 to 6."""
    for number in range(7):
        magnets.put(None, second(number), number)
    return magnets


def currents(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [row[2] for row in rows]


def plan(magnets: Magnets, statement: str, *values: object) -> str:
    with psycopg.ClientCursor(magnets.connection) as cursor:
        return "\n".join(line for (line,) in cursor.execute(f"explain (costs off) {statement}", values))


def test_get_returns_the_latest_rows_newest_first(seven: Magnets) -> None:
    assert seven.rows("select * from ringlog.get_magnets()") == [(2, second(6), 6, True, "ready")]
    assert currents(seven.rows("select * from ringlog.get_magnets(3)")) == [6, 5, 4]
    assert currents(seven.rows("select * from ringlog.get_magnets(n => 100)")) == [6, 5, 4, 3, 2]
    assert currents(seven.rows("select * from ringlog.get_magnets(null)")) == [6, 5, 4, 3, 2]
    assert seven.rows("select * from ringlog.get_magnets(0)") == []


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


def test_get_at_returns_the_row_valid_then(seven: Magnets) -> None:
    get_at = "select * from ringlog.get_magnets_at(%s)"
    assert seven.rows(get_at, second(3)) == [(4, second(3), 3, True, "ready")]
    assert currents(seven.rows(get_at, second(3.999))) == [3]
    assert currents(seven.rows(get_at, second(3600))) == [6]
    assert currents(seven.rows(get_at, second(0.5))) == [0], "only the log is that old"
    assert seven.rows(get_at, second(-1)) == []
    assert seven.rows(get_at, None) == []


def test_get_at_knows_rows_of_the_ring_that_are_not_logged(magnets_with: MagnetsWith) -> None:
    magnets = magnets_with(log=LogPolicy(nth=5))
    for number in range(7):
        magnets.put(None, second(number), number)
    get_at = "select * from ringlog.get_magnets_at(%s)"
    assert [currents(magnets.rows(get_at, second(number))) for number in range(7)] == [
        [0], [0], [2], [3], [4], [5], [6],
    ]  # fmt: skip


def test_get_range_is_closed_below_and_open_above(seven: Magnets) -> None:
    get_range = "select * from ringlog.get_magnets_range(%s, %s)"
    assert seven.rows(get_range, second(1), second(2)) == [(2, second(1), 1, True, "ready")]
    assert currents(seven.rows(get_range, second(0.5), second(4.5))) == [1, 2, 3, 4]
    assert seven.rows(get_range, second(3), second(3)) == []
    assert seven.rows(get_range, second(3), second(2)) == []


def test_get_range_without_bounds(seven: Magnets) -> None:
    seven.put(1, at("1999-12-31 23:59:00"), -1)
    assert currents(seven.rows("select * from ringlog.get_magnets_range()")) == [-1, 0, 1, 2, 3, 4, 5, 6]
    get_range = "select * from ringlog.get_magnets_range(%s, %s)"
    assert currents(seven.rows(get_range, None, second(2))) == [-1, 0, 1]
    assert currents(seven.rows(get_range, second(4), None)) == [4, 5, 6]


def test_get_range_returns_no_more_than_max_rows(seven: Magnets) -> None:
    get_range = "select * from ringlog.get_magnets_range(%s, %s, %s)"
    assert currents(seven.rows(get_range, second(1), second(6), 2)) == [1, 2]
    assert currents(seven.rows(get_range, second(1), second(6), 100)) == [1, 2, 3, 4, 5]
    assert currents(seven.rows(get_range, second(1), second(6), None)) == [1, 2, 3, 4, 5]


def test_get_range_is_inlined_and_reads_only_its_weeks(magnets: Magnets) -> None:
    lines = plan(magnets, "select * from ringlog.get_magnets_range(%s, %s, 10)", second(0), second(1))
    assert "Function Scan" not in lines
    assert re.findall(r" on (magnets_\w+) ", lines) == [f"magnets_{NOW.astimezone(UTC):%Gw%V}"]


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
        # they change signals of samples, and list those that a login may change or write
        " and proname !~ '^(add|pause|resume|change|rename|retire|demand|note)_signal'"
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
