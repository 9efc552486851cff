"""The tables of lab/ringlog_lab/measured/README.md are those of the kept results."""

import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import psutil
import pytest

from ringlog.loadtest.calls import Call, Calls, Kind
from ringlog.loadtest.experiment.errors import LoadTestError, LoadTestUsageError
from ringlog.loadtest.experiment.outcome import read_outcome
from ringlog.loadtest.readings import SETS
from ringlog.loadtest.spring8.results import EXPERIMENTS as SPRING8
from ringlog.loadtest.spring8.results import read_results
from ringlog.schema.facility_files import spring8
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog_lab import measurements
from ringlog_lab.bench.reports.results import Results
from ringlog_lab.budget import Group, Hierarchy
from ringlog_lab.ess.row_plan import answer, cpu_of, row_cost, wal_of
from ringlog_lab.measurements import KEPT
from ringlog_lab.native_load import CONTENDERS, Measurement
from ringlog_lab.published import page
from ringlog_lab.soak.drift import Verdict
from ringlog_lab.soak.inside import Inside, Statement, tables_of
from ringlog_lab.soak.plan import DAY, Run, foreseen, mondays, planned, row_time, with_weeks
from ringlog_lab.soak.report import judged
from ringlog_lab.soak.turns import Turn, _figures
from ringlog_lab.soak.watch import EACH, EXPECTED, MEMORY, SERIES, Look, each_row
from ringlog_lab.soak.writers import acknowledged
from servers import ringlog

DOCUMENT = KEPT / "README.md"
SCALING = Path(__file__).parents[2] / "docs" / "how-to" / "scale.md"
EXPERIMENTS = {"normal", "max", "ess", "saturation", "sdalinac", "half", "soak"}


def test_the_document_is_made_of_the_kept_results() -> None:
    assert {file.stem for file in KEPT.glob("*.json")} >= EXPERIMENTS
    assert DOCUMENT.read_text() == measurements.text()


def test_the_kept_results_are_what_an_experiment_writes(tmp_path: Path) -> None:
    for results in read_results(KEPT, SPRING8):
        results.write(tmp_path)
    for file in {*KEPT.glob("*.json")} - {KEPT / measurements.RUNS}:
        if file.stem not in SPRING8:
            read_outcome(file).write(tmp_path)
        assert file.read_text() == (tmp_path / file.name).read_text()
    # summaries: all calls and samples of a run are in its CSV files
    assert sum(len(file.read_text().splitlines()) for file in KEPT.glob("*.json")) <= 3000


def test_the_kept_results_are_dated_and_whole() -> None:
    document = DOCUMENT.read_text()
    for part in re.split(r"^## ", document, flags=re.MULTILINE)[1:]:
        assert re.search(r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, ringlog [\d.]+, commit ", part, re.MULTILINE)
        assert re.search(r"^ringlog loadtest ", part, re.MULTILINE)
    assert document.count("Nothing was lost: ") >= len(EXPERIMENTS) - 1


@pytest.mark.long
def test_a_plan_comes_from_the_kept_results() -> None:
    options = ("--waveforms", "1000", "--points", "10000", "--rate", "14", "--readers", "50")
    done = ringlog("plan", *options, "--results", KEPT)
    assert done.returncode == 0, done.stderr
    assert "14,000 frames/s, 1,120.0 MB/s" in done.stdout


@pytest.mark.long
def test_a_plan_of_nodes_is_held_against_a_load_that_it_was_not_made_of() -> None:
    cost = row_cost(KEPT)
    # the highest rate of SPring-8's tables, whose widths differ: another load, on another day
    (found,) = read_results(KEPT, ("max",))
    (run,) = (run for run in found.runs if run.clients == "native")
    assert cost.cpu.at(run.columns) == pytest.approx(cpu_of(run), rel=0.25)
    assert cost.wal.at(run.columns) == pytest.approx(wal_of(run), rel=0.4)


def test_the_sites_on_paper_are_those_of_the_plan() -> None:
    text = SCALING.read_text()
    rows = {
        words[0]: [word.partition(";")[0] for word in words[1:]]
        for words in (
            [word.strip() for word in line.strip("|").split("|")]
            for line in text.partition("## Three sites, on paper")[2].splitlines()
            if line.startswith("| ")
        )
        if len(words) == 5
    }
    wal = "write-ahead log, and to each standby"
    servers = "servers of 16 cores, with disks of 100 MB/s"
    cost = row_cost(KEPT)
    for number, (signals, rate) in enumerate(zip(rows["signals"], rows["rate, Hz"], strict=True)):
        plan = answer(cost, int(signals.replace(",", "")), float(rate), 200, 16, 100.0)
        assert f"{rows['rows of 200 per second'][number]} rows/s" in plan[0]
        planned = [float(re.findall(r"[\d.]+", line.replace(",", ""))[0]) for line in plan[1:4]]
        for name, value in zip(("cores for writing", wal, servers), planned, strict=True):
            assert float(rows[name][number].removesuffix(" MB/s")) == pytest.approx(value, rel=0.03)


@pytest.mark.long
def test_a_plan_of_nodes_comes_from_the_kept_results() -> None:
    options = ("--nodes", "--signals", "1600000", "--rate", "14", "--cores", "16", "--results", KEPT)
    done = ringlog("plan", *options)
    assert done.returncode == 0, done.stderr
    assert "112,000 rows/s, 22.40 million values/s" in done.stdout
    servers = re.search(r"^servers +(\d+) of 16 cores", done.stdout, re.MULTILINE)
    assert servers is not None
    assert int(servers[1]) >= 3
    assert "the figures are extrapolated" in done.stdout
    small = ringlog("plan", "--nodes", "--signals", "25000", "--rate", "10", "--results", KEPT)
    assert re.search(r"^servers +1 of 8 cores", small.stdout, re.MULTILINE)
    refused = ringlog("plan", "--nodes", "--rate", "1")
    assert (refused.returncode, refused.stderr) == (
        2,
        "ringlog: --nodes needs --signals, and is without --waveforms and --points\n",
    )


# --- docs/reference/figures.md: medians with their spread ---


def run(part: str, contender: str, number: int, calls: int) -> Measurement:
    """A run of ten seconds whose calls took a millisecond each, of which 100 µs in PostgreSQL."""
    times = {"p50": 0.001, "p99": 0.002, "p999": 0.003, "max": 0.004, "silence": 0.004}
    cpu = {
        "clients": 1.0,
        "gateway": calls * 20e-6,
        "postgres": 1.0,
        "backends": calls * 100e-6,
        "others": 0.1,
    }
    return Measurement(
        part,
        contender,
        number,
        200,
        60,
        calls,
        calls,
        10.0,
        **times,
        **cpu,
        cores=2,
        wal=0,
        memory=0,
        by_second=[],
    )


def test_a_cell_is_the_median_and_its_range() -> None:
    machine: dict[str, str | int | float] = {"processor": "a processor", "cores": 2, "file_system": "ext4"}
    results = Results("abc", "2034-01-01 00:00:00 UTC", machine, {})
    for number, calls in enumerate((1000, 3000, 2000)):
        for contender in CONTENDERS:
            faster = 2 if contender == "tds74" else 1
            results.measurements += [
                run(part, contender, number, calls * faster) for part in ("write", "lone")
            ]
    text = page(results)
    assert "| calls/s | 200 (100 to 300) | 200 (100 to 300) | 200 (100 to 300) | 400 (200 to 600) |" in text
    assert "| calls/s ÷ direct, one by one | 1.00 (1.00 to 1.00) |" in text
    assert "| 2.00 (2.00 to 2.00) |" in text
    assert "| CPU of PostgreSQL, µs a call | 100.0 (100.0 to 100.0) |" in text
    assert "used 0.01 cores" in text


# --- control groups, which represent the machines where readers of standbys are measured ---


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # Documentation/scheduler/sched-bwc.rst of Linux: quota and period in microseconds, each in a file
        (
            {"cpu/cpu.cfs_quota_us": "-1"},
            {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "30000", "cpu.shares": "262144"},
        ),
        # Documentation/admin-guide/cgroup-v2.rst: cpu.max is "$MAX $PERIOD", cpu.weight at most 10000
        (
            {"cgroup.controllers": "cpuset cpu io\n", "cgroup.subtree_control": "cpu\n"},
            {"cpu.max": "30000 100000", "cpu.weight": "10000"},
        ),
    ],
)
def test_rights_given_to_a_group(tmp_path: Path, files: dict[str, str], expected: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    hierarchy = Hierarchy.of_this_machine(tmp_path)
    with hierarchy.group("small", 0.3) as group:
        assert {file.name: file.read_text() for file in group.folder.iterdir()} == expected
        with subprocess.Popen(["sleep", "1000"]) as process:
            group.take(psutil.Process(process.pid))
            process.kill()
        assert (group.folder / "cgroup.procs").read_text() == str(process.pid)
        # a folder of files is not removed as a group is
        for file in group.folder.iterdir():
            file.unlink()
    assert not group.folder.exists()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "has no control groups for the processor"),
        ({"cgroup.controllers": "memory pids"}, "have no controller of the processor"),
    ],
)
def test_machines_without_control_groups(tmp_path: Path, files: dict[str, str], why: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(LoadTestError, match=why):
        Hierarchy.of_this_machine(tmp_path)


def test_control_groups_that_cannot_be_changed(tmp_path: Path) -> None:
    hierarchy = Hierarchy(tmp_path / "nowhere", 2)
    with pytest.raises(LoadTestError, match="cannot be changed"), hierarchy.group("small", 0.3):
        pass
    with pytest.raises(LoadTestError, match="cannot be changed"):
        Group(tmp_path / "nowhere").take(psutil.Process())


# --- the plan of the experiment `soak`, and its verdicts about figures that grow ---

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
    assert [index for index, each in enumerate(kept) if each == "3 days"] == [*range(0, 60, 10)]
    assert [table.columns for table in facility.tables] == [
        table.columns for table in load_facility(spring8.file()).tables
    ]
    with pytest.raises(LoadTestUsageError, match="has \\[history\\]"):
        with_weeks(file.read_text(), tmp_path)


# half a day of 1,000 rows: of a put's 100 µs half are in a statement of it, and a round took a fourth of all
INSIDE = Inside(
    seconds=DAY / 2,
    start=1,
    rows=1000,
    statements=[
        Statement("select put_… ($1)", True, 1000, 0.09, 9000, 100, 80_000, 10),
        Statement("update online.… set", False, 1000, 0.05, 4000, 100, 40_000, 5),
    ],
    put=0.09,
    other=0.03,
    hit=9000,
    read=100,
    wal=80_000,
    images=10,
    heights={"1": 58, "2": 2},
    dead={"online": 1200, "log": 0},
    vacuums=7,
    analyzes=9,
    relations=5000,
    catalogue=150_000_000,
    backends=[("ringlog group commit", 3_000_000), ("checkpointer", 1_000_000)],
    plans=2_500_000,
    contexts=40_000_000,
    cpu=1.0,
    cpu_of_parts={"PostgreSQL: walwriter 7": 0.1, "gateway: ringlog-calls 12": 0.2},
)


def test_postgresqls_own_figures_are_those_of_a_row_and_a_half_day() -> None:
    slower = [replace(one, seconds=one.seconds * 1.5) for one in INSIDE.statements]
    parts = {
        "PostgreSQL: walwriter 7": 0.2,
        "PostgreSQL: ringlog serve 20261201T035211Z 9": 0.3,
        "gateway: ringlog-calls 12": 0.6,
        "gateway: ringlog-calls 13": 0.2,
    }
    later = replace(INSIDE, seconds=DAY, rows=3000, put=0.3, statements=slower, wal=240_000)
    later = replace(later, cpu=3.0, cpu_of_parts=parts)
    own, cpu, statements = tables_of([INSIDE, later], DAY)
    assert own.rows[0] == [
        *("0.50", "90.0", "25.0", "9", "0.1", "80", "0.01", "1,200", "7 / 9", "58 of 1, 2 of 2", "5,000"),
        *("150.0", "2.50", "40.0", "4.0 / 3.0"),
    ]
    # of the 2,000 rows of the second half day
    assert own.rows[1][:6] == ["1.00", "150.0", "9.1", "4.5", "0.05", "120"]
    kinds = ["gateway: ringlog-calls", "PostgreSQL: ringlog serve", "PostgreSQL: walwriter"]
    assert [*cpu.headings] == ["until day", "all", *kinds, "others"]
    assert cpu.rows == [["1.00", "1000.0", "300.0", "150.0", "50.0", "500.0"]]
    assert statements.rows[0][:4] == ["select put_… ($1)", "1,000", "90.0", "135.0"]
    assert statements.rows[1][:4] == ["inside: update online.… set", "1,000", "50.0", "75.0"]
    # a new start counts its rows from the beginning of the record
    assert tables_of([INSIDE, replace(later, start=2)], DAY)[0].rows[1][1] == "100.0"


def test_turns_are_compared_in_pairs() -> None:
    new = [Turn(100, 0.001 * number, 0.01, 0.0005) for number in (1, 2, 3)]
    old = [replace(one, p50=one.p50 * ratio) for one, ratio in zip(new, (1.1, 1.3, 1.2), strict=True)]
    median, p99, cpu = _figures({"old": old, "new": new})
    assert median.ours == pytest.approx(120)
    assert median.different == "110 to 130 % in 3 pairs of turns"
    assert (p99.ours, cpu.ours) == (100, 100)


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
    run.add(INSIDE)
    with (tmp_path / "insides").open("ab") as file:
        file.write(b'{"seconds": 4')
    with (tmp_path / "looks").open("ab") as file:
        file.write(b'{"seconds": 4')
    later = Run.begun(tmp_path, planned(1, 3, 2, "a", NOW + timedelta(days=30)))
    later.start("a")
    later.add(looks_of(1)[4])
    assert later.plan == run.plan
    assert (later.state.starts, later.state.password) == (3, "secret")
    assert later.looks() == looks_of(1)[3:5]
    assert later.insides() == [INSIDE]
    assert later.rows() == 4
    for other in ((2, 3, 2, "a"), (1, 2, 2, "a"), (1, 3, 3, "a"), (1, 3, 2, "b")):
        with pytest.raises(LoadTestUsageError, match="a run of --days 1 --tables 3 --thin 2"):
            Run.begun(tmp_path, planned(*other, NOW))
    later.remove()
    assert not [*tmp_path.iterdir()]
    (tmp_path / "archive").mkdir()
    with pytest.raises(LoadTestUsageError, match="has other files"):
        Run.begun(tmp_path, plan)
