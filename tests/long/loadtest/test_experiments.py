"""The short runs of the main experiments, on servers of their own, and their report: CI keeps it."""

import csv
import gzip
import re
from pathlib import Path
from statistics import fmean

import pytest

from ringlog.loadtest.spring8.results import KINDS, PYTHON, WIDE, Result, read_results
from ringlog.schema.facility_files import spring8
from ringlog.schema.facility_files.facility_file import load_facility
from servers import ringlog

# servers of their own, on a machine that others may use too
pytestmark = pytest.mark.timeout(1800)

SPRING8 = spring8.file()
REPORTS = Path(__file__).parents[3] / "build" / "reports" / "loadtest"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SPring-8's 60 tables for `max`, those of 200 columns unchanged and the others with a sixth of theirs:
    the time in which PostgreSQL creates a table grows with the square of its columns. Parameter tables are
    omitted, since there are no readers at the highest rate.
    """
    tables, parameter, _ = SPRING8.read_text().partition("[[parameter]]")
    assert parameter

    def narrowed(count: re.Match[str]) -> str:
        return f"count = {count[1] if int(count[1]) == WIDE else -(-int(count[1]) // 6)}"

    file = tmp_path_factory.mktemp("max") / SPRING8.name
    file.write_text(re.sub(r"count = (\d+)", narrowed, tables))
    return file


@pytest.fixture(scope="module")
def results(narrow: Path) -> dict[str, Result]:
    """The results of `normal` and `max`, by name."""
    for experiment, time, *more in (("normal", "4s"), ("max", "2s", "--facility", narrow)):
        words = ("loadtest", experiment, "--time", time, "--output", REPORTS, *more)
        done = ringlog(*words, timeout=850)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Nothing was lost: " in done.stdout
    print(f"report: {REPORTS / 'report.html'}")
    return {result.experiment: result for result in read_results(REPORTS, ("normal", "max"))}


def test_normal_operation_writes_at_the_papers_rate(results: dict[str, Result]) -> None:
    (run,) = results["normal"].runs
    assert run.logged_in == run.users == 120
    assert run.asked is not None
    # 6.4 KB/s if the machine has time for all rows; in a few seconds the tables that are written every 30 s
    # are there by chance
    assert 3.0 < run.kilobytes * run.asked / run.rows < 10.0
    assert run.reads is not None
    assert run.reads.answered > 20
    assert run.writes.failed == run.reads.failed == 0
    assert run.server_share is not None
    assert 0.0 < run.server_share < 1.0
    first, last = run.samples[0], run.samples[-1]
    # on a busy machine taking a sample takes a while
    assert run.seconds / 2 < last.seconds - first.seconds < run.seconds + 0.1
    assert run.closing is not None
    assert run.closing.wal_bytes
    assert run.closing.table_bytes


def test_the_highest_rate_is_measured_with_each_kind_of_clients(
    results: dict[str, Result], narrow: Path
) -> None:
    runs = results["max"].runs
    assert tuple(run.clients for run in runs) == KINDS
    for run in runs:
        assert run.users == run.logged_in == 60
        # every writer has written, however slow the machine is
        assert run.check.acknowledged >= len(run.tables) == 60
        assert run.rows > 0
        assert run.wide.answered
        assert run.wide.mean is not None
        assert run.writes.longest is not None
        assert run.writes.longest >= run.wide.mean
        assert sum(rows for rows, _ in run.by_second) == pytest.approx(run.rows * run.seconds, rel=0.05)
    # as many columns: the twins are as wide as the facility
    columns = fmean(len(table.columns) for table in load_facility(narrow).tables)
    assert [run.columns for run in runs] == pytest.approx([columns] * len(runs), abs=0.01)


def test_every_acknowledged_row_is_found(results: dict[str, Result]) -> None:
    for result in results.values():
        for run in result.runs:
            check = run.check
            assert check.acknowledged == check.in_rings == check.in_logs + check.left_out
            assert check.acknowledged >= run.rows * run.seconds * 0.99
            assert check.lost == check.altered == 0


def test_the_raw_calls_are_those_that_were_checked(results: dict[str, Result]) -> None:
    for result in results.values():
        for run in result.runs:
            if run.clients == PYTHON:
                with gzip.open(REPORTS / run.files[0], "rt") as text:
                    calls = list(csv.DictReader(text))
                written = [one for one in calls if one["kind"] == "write" and one["answered"] == "1"]
                assert len(written) == run.check.acknowledged
                assert sum(one["kind"] == "login" for one in calls) == run.users
                assert all(int(one["latency_us"]) > 0 for one in written)
            with (REPORTS / run.files[-1]).open() as text:
                samples = [float(one["seconds"]) for one in csv.DictReader(text)]
            # of `max` the result has the first and the last
            shown = samples if result.experiment == "normal" else [samples[0], samples[-1]]
            assert [sample.seconds for sample in run.samples] == pytest.approx(shown, abs=0.001)


def test_the_report_has_the_tables_and_figures_of_the_paper(results: dict[str, Result]) -> None:
    page = (REPORTS / "report.html").read_text()
    text = (REPORTS / "report.md").read_text()
    checks = [run.check for result in results.values() for run in result.runs]
    acknowledged = sum(check.acknowledged for check in checks)
    verdict = (
        f"Nothing was lost: {acknowledged:,} rows acknowledged, {acknowledged:,} found where they must be"
    )
    for form in (page, text):
        assert verdict in form
        assert form.index(verdict) < form.index("In short")
        for row in (
            "Average insertion time (s) to 200 column table",
            "Max delay time (s)",
            "Total rate (KB/s)",
        ):
            assert row in form
        for figure in ("Figure 3", "Figure 4", "sp_sysmon"):
            assert figure in form
        assert "ringlog loadtest max --time 2s --output" in form
        for result in results.values():
            assert all(version in form for version in result.versions.values())
            assert result.machine.processor in form
    # self-contained: pictures inside, no external references
    assert page.count("data:image/png;base64,") == text.count("](") == 5
    assert set(re.findall(r"(?:src|href)=(.{6})", page)) == {'"data:'}
    # the paper's figures are next to ours
    assert "| Average insertion time (s) to 200 column table | 0.2 | 0.2 | 1.21 |" in text


def test_the_report_is_made_again_from_the_results(results: dict[str, Result], tmp_path: Path) -> None:
    for file in REPORTS.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    done = ringlog("loadtest", "report", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.md").read_text() == (REPORTS / "report.md").read_text()
