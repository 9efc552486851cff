"""The tables of lab/ringlog_lab/measured/README.md are those of the kept results."""

import re
from pathlib import Path

import pytest

from ringlog.loadtest.experiment.outcome import read_outcome
from ringlog.loadtest.spring8.results import EXPERIMENTS as SPRING8
from ringlog.loadtest.spring8.results import read_results
from ringlog_lab.ess.row_plan import answer, cpu_of, row_cost, wal_of
from ringlog_lab.measurements import KEPT, text
from servers import ringlog

DOCUMENT = KEPT / "README.md"
SCALING = Path(__file__).parents[2] / "docs" / "how-to" / "scale.md"
EXPERIMENTS = {"normal", "max", "ess", "saturation", "sdalinac", "half", "soak"}


def test_the_document_is_made_of_the_kept_results() -> None:
    assert {file.stem for file in KEPT.glob("*.json")} >= EXPERIMENTS
    assert DOCUMENT.read_text() == text()


def test_the_kept_results_are_what_an_experiment_writes(tmp_path: Path) -> None:
    for spring8 in read_results(KEPT, SPRING8):
        spring8.write(tmp_path)
    for file in KEPT.glob("*.json"):
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
