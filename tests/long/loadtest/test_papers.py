"""The experiments of papers/000 to 003, run short on servers of their own, and their report."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from random import Random

import pytest
from places import new_folder

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.outcome import Outcome, read_outcome
from ringlog.loadtest.spring8.results import read_results
from ringlog_lab.ess.model import regression
from ringlog_lab.ess.published import MEAN_WAVEFORM, TABLE_2, TABLE_3
from ringlog_lab.ess.scenarios import SCENARIOS
from ringlog_lab.papers.results import Family
from ringlog_lab.soak.drift import Verdict, drift
from servers import RINGLOG, ringlog
from waiting import wait_until

QUESTDB = Path(__file__).parents[3] / "build" / "peers" / "questdb.jar"
QUICK = Path(__file__).parents[2] / "loader" / "facility.toml"
# servers of their own, on a machine that others may use too
pytestmark = pytest.mark.timeout(900)


def played(folder: Path, experiment: str, *options: str) -> Outcome:
    """Runs an experiment to its end and checks the common parts."""
    done = ringlog("loadtest", experiment, "--output", folder, *options, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = read_outcome(folder / f"{experiment}.json")
    assert outcome.experiment == experiment
    assert f"ringlog loadtest {experiment}" in outcome.command
    assert outcome.machine.cores
    assert {"fsync", "max_wal_size"} <= outcome.settings.keys()
    assert all(one.acknowledged == one.found and not one.altered for one in outcome.counted)
    text = (folder / "report.md").read_text()
    assert outcome.paper in text
    assert outcome.command in text
    return outcome


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


@pytest.fixture(scope="module")
def ess(folder: Path) -> Outcome:
    return played(
        folder,
        "ess",
        *("--time", "1s", "--scenarios", "AAPS-0010,AAPS-0020,AAPS-0220"),
        *("--retrieved", "AAPS-0020", "--threads", "1,2,3"),
    )


def test_table_1_of_papers_003() -> None:
    assert len(SCENARIOS) == 48
    found = {
        name: (one.waveforms, one.points, one.type, one.rate)
        for name, one in SCENARIOS.items()
        if name in ("AAPS-0010", "AAPS-0120", "AAPS-0280", "AAPS-0490", "AAPS-0720")
    }
    assert found == {
        "AAPS-0010": (1, 1_000, "int", 1),
        "AAPS-0120": (1, 100_000, "double", 14),
        "AAPS-0280": (100, 10_000, "double", 14),
        "AAPS-0490": (1_000, 100_000, "int", 1),
        "AAPS-0720": (10_000, 100_000, "double", 14),
    }
    # every waveform of a scenario is a column of one of its tables
    assert all(len(one.tables) * one.columns == one.waveforms for one in SCENARIOS.values())


def test_tables_2_and_3_of_papers_003() -> None:
    assert {*SCENARIOS} - {*TABLE_2} == {"AAPS-0710", "AAPS-0720"}
    assert (TABLE_2["AAPS-0280"].network, TABLE_2["AAPS-0280"].dropped) == (873, 1)
    assert (TABLE_2["AAPS-0500"].disk, TABLE_2["AAPS-0500"].dropped) == (722, 98)
    assert TABLE_3["AAPS-0120"] == {1: (18.8, 1122), 10: (187.8, 1698), 100: (1877.7, 16304)}
    # 37,000 points of 6 bytes at 7.5 Hz
    assert pytest.approx(1.665) == MEAN_WAVEFORM


def test_every_frame_that_was_made_is_in_the_log(ess: Outcome) -> None:
    # from an IOC, on a machine that has nothing else to do; else it is said why not
    scenarios = {row[0] for row in ess.sections[0].tables[0].rows}
    (remark,) = (one.different for one in ess.figures if one.key == "AAPS-0010 stored")
    assert "AAPS-0010, IOC" in scenarios or "an IOC" in remark
    names = [one.what for one in ess.counted]
    assert names == ["frames of AAPS-0010", "frames of AAPS-0020", "frames of AAPS-0220"]
    assert all(one.found > 0 for one in ess.counted)
    stored = [one for one in ess.points if one.kind == "storage"]
    assert all(one.disk > 0 and one.memory > 1e6 for one in stored)


def test_frames_of_the_program_in_c(tmp_path: Path) -> None:
    # one table; one of two, both types of points; ten, whose names have more letters
    names = "AAPS-0020,AAPS-0220,AAPS-0240,AAPS-0410"
    options = ("--time", "1s", "--scenarios", names, "--retrieved", "none", "--source", "c")
    outcome = played(tmp_path, "ess", *options)
    rows = [row[0] for row in outcome.sections[0].tables[0].rows]
    assert rows == [f"{name}, source in C" for name in names.split(",")]
    # whole rows of 100 waveforms
    for one in outcome.counted[1:]:
        assert one.found >= 100
        assert one.found % 100 == 0
    dropped = {one.key: one.ours for one in outcome.figures if one.key.endswith("dropped")}
    assert dropped.keys() == {f"{name} dropped" for name in names.split(",")}
    assert all(share is not None and 0 <= share <= 100 for share in dropped.values())


def test_frames_are_retrieved_in_each_form(ess: Outcome) -> None:
    read = {(one.name, one.readers) for one in ess.points if one.kind == "retrieval"}
    assert read == {
        (f"AAPS-0020 {form}", number) for form in ("csv", "json", "raw", "txt") for number in (1, 2, 3)
    }
    assert all(one.megabytes > 0 for one in ess.points if one.kind == "retrieval")


def test_a_plan_of_a_machine_follows_from_measurements(ess: Outcome, folder: Path) -> None:
    saturation = played(folder, "saturation")
    assert {one.heading for one in saturation.sections} == {"Storage", "Retrieval"}
    assert {"storage cpu", "storage memory", "storage disk", "retrieval cpu"} <= {
        one.key for one in saturation.figures
    }
    options = ("--waveforms", "1000", "--points", "10000", "--rate", "14", "--readers", "50")
    done = ringlog("plan", *options, "--results", folder)
    assert done.returncode == 0, done.stderr
    # a line fitted by numpy
    assert "14,000 frames/s, 1,120.0 MB/s" in done.stdout
    assert re.search(r"a year +[\d,.]+ TB", done.stdout)
    assert "the figures are extrapolated" in done.stdout


def test_a_fitted_line_equals_numpys() -> None:
    # Anscombe's first data set (The American Statistician 27, 1973): y = 3.00 + 0.500 x, r² = 0.67,
    # standard error of the slope 0.118; t of 9 degrees of freedom at 95 % is 2.262
    across = (10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5)
    up = (8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68)
    line = regression([(float(x), y) for x, y in zip(across, up, strict=True)])
    assert (line.slope, line.intercept) == pytest.approx((0.500, 3.00), abs=0.005)
    assert (line.r2, line.slope_error) == pytest.approx((0.67, 2.262 * 0.118), abs=0.005)
    assert line.certain
    assert line.reaches(13.0) == pytest.approx(20.0, abs=0.1)
    with pytest.raises(LoadTestError, match="needs 3 measured points"):
        regression([(1.0, 1.0), (2.0, 2.0)])


def test_runs_are_compared(ess: Outcome, folder: Path, tmp_path: Path) -> None:
    earlier = json.loads((folder / "ess.json").read_text())
    for one in earlier["figures"]:
        if one["key"] == "AAPS-0020 stored":
            one["ours"] *= 2
    (tmp_path / "ess.json").write_text(json.dumps(earlier))
    done = ringlog("loadtest", "report", "--output", folder, "--compare", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line for line in (folder / "report.md").read_text().splitlines() if "AAPS-0020: stored" in line]
    assert any(line.endswith("| -50.0 % |") for line in rows)


def test_all_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    data = new_folder("papers")
    options = "loadtest all --only normal,max-ctlib --time 1s --allow-busy --minutes 30"
    # in a tree with files that no commit has, too
    words = [*options.split(), "--since", Family().commit(), "--output", str(tmp_path), "--data", str(data)]
    file = tmp_path / "tried" / "normal.json"
    with subprocess.Popen([RINGLOG, *words], stdout=subprocess.PIPE, text=True) as process:
        # the longest first
        wait_until(lambda: [*data.glob("max-ctlib/server1/*")] or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
    assert process.returncode == 130
    assert not file.exists()
    for _ in range(2):
        done = ringlog(*words, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "0 missing" in done.stdout
    assert "normal: done" not in done.stdout
    result = json.loads(file.read_text())
    assert (result["seconds"], result["run"]) == (1, "normal")
    assert result["command"] == "ringlog loadtest normal --time 1s"
    assert read_results(tmp_path / "tried" / "normal", ("normal",))[0].runs[0].check.acknowledged
    joined = ringlog("loadtest", "all", "--output", tmp_path, "--join", tmp_path / "joined")
    assert "normal stays as it is: normal missing" in joined.stdout


def test_narrow_tables_and_their_readers(folder: Path) -> None:
    outcome = played(folder, "sdalinac", "--time", "0.3s", "--batches", "1,50", "--every", "1800")
    keys = {one.key: one for one in outcome.figures}
    assert (keys["table plain"].paper, keys["table keys"].paper) == (18_289, 6_075)
    assert keys["table keys_inherited"].paper == 3_865
    assert {"table declared", "table keys_declared", "scheme COPY 50", "scheme TDS: bulk copy 50"} <= {*keys}
    assert {"read plain", "read declared", "read ringlog"} <= {*keys}
    assert all(one.acknowledged for one in outcome.counted)


def test_an_archive_of_pvs(folder: Path) -> None:
    options = ("--time", "1s", "--pvs", "100", "--minutes", "0.05", "--hours", "0.002", "--replay", "0.02")
    beside = ("--beside", "questdb,influxdb", "--questdb", str(QUESTDB))
    outcome = played(folder, "half", *options, *beside)
    figures = {one.key: one for one in outcome.figures}
    # from a real soft IOC
    assert figures["updates"].ours
    # 0.05 minutes or 0.002 hours, whichever is longer, of 100 PVs at 10 Hz; and a minute that is replayed
    assert figures["replayed"].ours
    assert {one.what: one.acknowledged for one in outcome.counted} == {
        "items in ringlog": 7200 + 60_000,
        "items in ringlog, samples": 7200,
        "items in narrow PostgreSQL": 7200,
        "items in QuestDB": 7200,
        "items in InfluxDB": 7200,
    }
    assert {"qdps ringlog, samples, SQL", "qdps ringlog, samples, get_signal"} <= {*figures}
    assert {"idps ringlog", "idps ringlog, samples", "idps QuestDB", "idps InfluxDB"} <= {*figures}
    assert {"qdps ringlog, SQL", "qdps narrow PostgreSQL, SQL"} <= {*figures}
    assert {"qdps QuestDB, SQL", "qdps InfluxDB, InfluxQL"} <= {*figures}
    assert outcome.versions["QuestDB"].startswith("9.")
    assert outcome.versions["InfluxDB"].startswith("v1.")
    assert "Not in this run: TimescaleDB: not asked for." in outcome.scale
    (room,) = (one.tables[0] for one in outcome.sections if one.heading == "Room")
    # value, severity, status and time
    assert all(float(row[3]) > 0.1 for row in room.rows)


def test_days_of_load_go_on_after_kills(tmp_path: Path) -> None:
    """Seven simulated hours over a midnight of Monday; the experiment is killed, then its server."""
    run = new_folder("soak") / "run"
    scale = ("--days", "0.3", "--tables", "2", "--thin", "30")
    words = ("soak", *scale, "--facility", str(QUICK), "--data", str(run))

    def looks() -> int:
        file = run / "looks"
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def running() -> bool:
        """Its server is there, which a new run makes first."""
        file = run / "soak.json"
        return file.exists() and bool(json.loads(file.read_text())["processes"])

    def killed(seen: int, victim: str, code: int) -> None:
        command = [RINGLOG, "loadtest", *words, "--output", tmp_path]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            for reached in ((run / "server").exists, running, looks, lambda: looks() >= seen):
                wait_until(lambda one=reached: one() or process.poll() is not None)  # type: ignore[misc]
            if process.poll() is None:
                server = json.loads((run / "soak.json").read_text())["processes"][0][0]
                os.kill(server if victim == "server" else process.pid, signal.SIGKILL)
            output, _ = process.communicate(timeout=300)
        assert process.returncode == code, output
        assert "Traceback" not in output

    killed(5, "experiment", -signal.SIGKILL)
    killed(15, "server", 1)
    outcome = played(tmp_path, *words)
    figures = {one.key: one for one in outcome.figures}
    assert figures["resumed"].ours == 2
    # of 3 tables those of 10 and 1 rows/s
    assert [one.acknowledged for one in outcome.counted] == [0.3 * 86_400 * 11 / 30]
    assert "2 of 3 tables were written, each in one of 30 cycles" in outcome.scale
    assert "0.3 of 0.3 days of the rows' time" in outcome.scale
    assert "was resumed 2 times" in outcome.scale
    (weeks,) = (one for one in outcome.sections if one.heading == "Growth that is expected")
    found = re.search(r"^1 weeks began .* (\d+) partitions are expected, (\d+) are there", weeks.text[0])
    assert found is not None
    assert found[1] == found[2]
    # of half days of this run, which has 28, and once more after the kills
    own, cpu, statements = next(one.tables for one in outcome.sections if one.heading == "Inside PostgreSQL")
    assert len(own.rows) >= 28
    # a server that was killed has forgotten its figures, and writers run ahead of a record
    assert sum(float(row[1]) > 0 for row in own.rows) >= 14
    assert "gateway: ringlog-calls" in cpu.headings
    assert all(float(row[1]) == pytest.approx(sum(map(float, row[2:])), abs=1) for row in cpu.rows)
    assert any(row[0].startswith("inside: ") for row in statements.rows)
    verdicts = {row[0]: row[-2] for row in outcome.sections[0].tables[0].rows}
    assert verdicts["memory of the gateway"] != "gets worse"
    assert not [*run.iterdir()]
    shutil.rmtree(run.parent)


def test_last_days_beside_first_ones_in_turns(tmp_path: Path) -> None:
    scale = ("--days", "0.035", "--tables", "2", "--thin", "30")
    outcome = played(tmp_path, "turns", *scale, "--facility", str(QUICK))
    # 11 rows/s of the two tables, one in 30, of all days and of two sevenths of them
    rows = 0.035 * 86_400 * 11 / 30
    assert [one.acknowledged for one in outcome.counted] == pytest.approx([rows, rows * 2 / 7], abs=2)
    turns = outcome.sections[0].tables[0]
    assert [row[0] for row in turns.rows] == [str(number) for number in range(1, 9)]
    assert sum(int(row[-1].replace(",", "")) for row in turns.rows) == outcome.counted[1].acknowledged
    assert {one.key for one in outcome.figures} == {"ratio p50", "ratio p99", "ratio cpu"}
    assert all(one.ours for one in outcome.figures)
    assert [one.heading for one in outcome.sections[1:]] == [
        "Inside PostgreSQL, old",
        "Inside PostgreSQL, new",
    ]


def test_deterioration_is_reported_only_if_the_data_show_it() -> None:
    dice = Random(1)
    quiet = [(float(x), 100 + dice.gauss(0, 1)) for x in range(40)]
    rising = [(x, y + 2 * x) for x, y in quiet]
    noisy = [(x, 100 + dice.gauss(0, 80)) for x, _ in quiet]
    falling = [(x, y - x) for x, y in quiet]
    assert drift(quiet).verdict is Verdict.NONE
    assert drift(falling).verdict is Verdict.NONE
    assert drift(rising).verdict is Verdict.WORSE
    assert drift(noisy).verdict is Verdict.UNDECIDED
    assert drift(quiet[:9]).verdict is Verdict.UNDECIDED
    assert drift([(float(x), 5.0) for x in range(10)]).verdict is Verdict.NONE
    # a rise that is there, and below a tenth
    small = drift([(x, y + 0.15 * x) for x, y in quiet])
    assert small.verdict is Verdict.SMALL
    assert small.earliest is not None
    assert 39 < small.earliest < 200
    # the slope of a straight line over its run, as a part of its median
    straight = drift([(float(x), 100.0 + x) for x in range(41)])
    assert straight.change == pytest.approx(40 / 120)
    assert straight.earliest == pytest.approx(0.1 * 120)


def test_dependent_samples_have_wider_intervals() -> None:
    """Of figures without a slope, each like the one before, 95 % of the intervals should contain 0. Those for
    independent samples contain it in little more than half of the cases."""
    dice = Random(1)
    contain = 0
    for _ in range(100):
        value, samples = 0.0, []
        for x in range(-50, 30):
            value = 0.8 * value + dice.gauss(0, 1)
            samples.append((float(x), 100 + value))
        found = drift(samples[50:])
        assert found.least is not None
        assert found.most is not None
        contain += found.least <= 0 <= found.most
    assert contain > 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ess", "--scenarios", "AAPS-0001"), "--scenarios 'AAPS-0001' is not one of AAPS-0010, AAPS-0020"),
        (("ess", "--forms", "xml"), "--forms 'xml' is not one of csv, json, raw, txt"),
        (("sdalinac", "--batches", "none"), "--batches 'none' is not a list of whole numbers"),
        (("all", "--only", "best"), "--only 'best' is not one of normal, max-ctlib, max-native, max-python"),
        (("half", "--pvs", "150"), "--pvs 150 is no multiple of 100"),
        (("half", "--ioc-pvs", "2100"), "--ioc-pvs 2100 is more than --pvs 2000"),
        (("half", "--minutes", "-1"), "--minutes '-1' is no list of minutes as 0.1,0.5"),
        (("half", "--beside", "duckdb"), "--beside 'duckdb' is not one of timescaledb, questdb, influxdb"),
        (
            ("half", "--timescaledb", "/nowhere"),
            "TimescaleDB cannot be in the run: no PostgreSQL in /nowhere has TimescaleDB installed",
        ),
        (("half", "--questdb", "no.jar"), "QuestDB cannot be in the run: there is no file no.jar"),
        (
            ("half", "--influxdb", "/bin/true"),
            "InfluxDB cannot be in the run: /bin/true says '': only version 1 is known",
        ),
        (("saturation",), "has no results of `ringlog loadtest ess`, which come first"),
        (("report", "--compare", "nowhere"), "has no results of ringlog loadtest"),
    ],
)
def test_wrong_requests(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = ringlog("loadtest", *arguments, "--output", tmp_path / "out")
    assert done.returncode == 2
    assert message in done.stderr
