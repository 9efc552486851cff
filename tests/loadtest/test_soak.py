"""The plan of the experiment `soak`, and its verdicts about figures that grow."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from ringlog.loadtest.calls import Call, Calls, Kind
from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.readings import SETS
from ringlog.schema.facility_files import spring8
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog_lab.soak.drift import Verdict
from ringlog_lab.soak.plan import DAY, Run, foreseen, mondays, planned, row_time, with_weeks
from ringlog_lab.soak.report import judged
from ringlog_lab.soak.watch import EACH, EXPECTED, MEMORY, SERIES, Look, each_row
from ringlog_lab.soak.writers import acknowledged

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
STEP = 4 * 3600.0


def looks_of(days: int, **growing: float) -> list[Look]:
    """Looks of a server where everything stays, or grows with its rows. `growing`: figures, and the part by
    which each is greater at the end than it should be."""
    dice, found = Random(1), []
    count = round(days * DAY / STEP)
    for number in range(count + 1):
        rows = 10_000 * number
        same = dict.fromkeys([*MEMORY, *SERIES], 10_000_000)
        grown = dict.fromkeys((*EACH, *EXPECTED), 500 * rows)
        figures = {
            name: value * (1 + growing.get(name, 0) * number / count) + dice.gauss(0, 1000)
            for name, value in {**same, **grown}.items()
        }
        figures |= {"archived_rows": 0, "rows": rows}
        found.append(
            Look(seconds=number * STEP, clock=number, start=1, **{k: round(v) for k, v in figures.items()})
        )
    return found


def verdicts(looks: list[Look]) -> dict[str, Verdict]:
    return {name: one.verdict for name, (_, one) in judged(looks, {}).items()}


def test_nothing_grows_where_nothing_grows() -> None:
    found = verdicts(looks_of(14))
    assert {*found} == {*MEMORY.values(), *SERIES.values(), *EACH.values()}
    assert {*found.values()} <= {Verdict.NONE, Verdict.SMALL}


@pytest.mark.parametrize("name", [*MEMORY, *SERIES, *EACH])
def test_a_figure_that_grows_is_named(name: str) -> None:
    found = verdicts(looks_of(14, **{name: 0.5}))
    title = (MEMORY | SERIES | EACH)[name]
    assert found.pop(title) is Verdict.WORSE
    assert Verdict.WORSE not in found.values()


def test_the_slope_is_in_the_figures_unit_a_day() -> None:
    (_, found) = judged(looks_of(14, rings=0.14), {})[SERIES["rings"]]
    assert found.slope is not None
    slope, low, high = found.slope
    assert slope == pytest.approx(100_000, rel=0.02)
    assert low <= slope <= high


def test_a_start_and_a_week_that_is_archived_are_no_growth() -> None:
    looks = looks_of(14)
    half = len(looks) // 2
    later = [
        replace(one, start=2, gateway=one.gateway * 2, archived_rows=9, logs=one.logs // 4)
        for one in looks[half:]
    ]
    found = verdicts(looks[:half] + later)
    assert found[MEMORY["gateway"]] is Verdict.NONE
    assert found[EACH["logs"]] is Verdict.NONE
    assert all(value > 0 for _, value in each_row(looks[:half] + later, "logs"))


def test_fourteen_days_pass_two_weeks_and_every_row_has_its_own_time() -> None:
    facility = load_facility(spring8.file())
    plan = planned(14, 3, 2.0, "", NOW)
    assert mondays(plan, 0, plan.seconds) == 2
    # 4 days of the first week: Thursday
    assert plan.moment(0).strftime("%a %H:%M") == "Thu 00:00"
    assert plan.moment(plan.seconds) < NOW - timedelta(weeks=5)
    assert plan.passes_midnight(DAY - STEP, DAY)
    assert not plan.passes_midnight(DAY, DAY + STEP)
    # papers/004's rate, 12.6 rows/s; of every third table 4.5, of which every second row
    assert foreseen(plan, facility) == (15_220_800, 5_463_360 // 2)
    table = facility.tables[0]
    times = [row_time(plan, table, 0.3, number) for number in range(16)]
    assert [time % SETS for time in times] == [*range(SETS)] * 2
    assert all(1_999_990 <= after - before <= 2_000_010 for before, after in pairwise(times))


def test_weeks_leave_the_log_and_some_the_archive(tmp_path: Path) -> None:
    text, file = spring8.file().read_text(), tmp_path / "facility.toml"
    file.write_text(with_weeks(text, tmp_path))
    facility = load_facility(file)
    assert facility.history is not None
    kept = [str(table.retention) for table in facility.tables]
    assert [place for place, each in enumerate(kept) if each == "3 days"] == [*range(0, 60, 10)]
    assert [table.columns for table in facility.tables] == [
        table.columns for table in load_facility(spring8.file()).tables
    ]
    with pytest.raises(LoadTestUsageError, match="has \\[history\\]"):
        with_weeks(file.read_text(), tmp_path)


def test_a_run_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    plan = planned(1, 3, 2, "a", NOW)
    run = Run.begun(tmp_path, plan)
    run.start("a")
    run.state.password = "secret"
    run.start("a")
    calls = Calls()
    for answered, table in ((True, 0), (False, 1), (True, 1), (True, 0)):
        calls.add(Call(Kind.WRITE, answered, table, 1, 1_000_000, 5))
    whole = calls.take()
    run.calls(0).write_bytes(whole + whole[:7])
    assert acknowledged(run.calls(0)) == {0: 2, 1: 1}
    assert run.calls(0).read_bytes() == whole
    run.add(looks_of(1)[3])
    with (tmp_path / "looks").open("ab") as file:
        file.write(b'{"seconds": 4')
    later = Run.begun(tmp_path, planned(1, 3, 2, "a", NOW + timedelta(days=30)))
    later.start("a")
    later.add(looks_of(1)[4])
    assert later.plan == run.plan
    assert (later.state.starts, later.state.password) == (3, "secret")
    assert later.looks() == looks_of(1)[3:5]
    assert later.rows() == 4
    for other in ((2, 3, 2, "a"), (1, 2, 2, "a"), (1, 3, 3, "a"), (1, 3, 2, "b")):
        with pytest.raises(LoadTestUsageError, match="a run of --days 1 --tables 3 --thin 2"):
            Run.begun(tmp_path, planned(*other, NOW))
    later.remove()
    assert not [*tmp_path.iterdir()]
    (tmp_path / "archive").mkdir()
    with pytest.raises(LoadTestUsageError, match="has other files"):
        Run.begun(tmp_path, plan)
