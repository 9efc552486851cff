"""`ringlog loadtest all`: the runs that repeat the papers, which are made when, and which are joined."""

import os
import shutil
import subprocess
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.main import get_command

from ringlog.loadtest.command import app
from ringlog.loadtest.experiment.outcome import read_outcome
from ringlog.loadtest.spring8.results import KINDS, read_results
from ringlog_lab import quiet
from ringlog_lab.ess.scenarios import SCENARIOS
from ringlog_lab.measurements import KEPT, kept_runs
from ringlog_lab.papers import command
from ringlog_lab.papers.command import Session
from ringlog_lab.papers.joining import join
from ringlog_lab.papers.results import Family
from ringlog_lab.papers.runs import RUNS

MAX = [replace(run, room=0.0) for run in RUNS if run.experiment == "max"]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_run_is_a_command_that_ends_within_150_minutes(run: command.Run) -> None:
    for seconds in (None, 1.0):
        name, *words = run.words(seconds)
        # a typer of one command would be that command
        get_command(app).commands[name].make_context(name, words)  # type: ignore[attr-defined]
    assert run.minutes() <= 150


def test_the_lengths_are_those_of_the_papers() -> None:
    whole = {run.name: run.words() for run in RUNS}
    assert whole["normal"] == ["normal", "--time", "7200s"]
    assert whole["max-ctlib"] == ["max", "--time", "7200s", "--clients", "ctlib"]
    assert [run.options for run in MAX] == [f"--clients {kind}" for kind in ("ctlib", "native", "python")]
    assert whole["soak"] == ["soak", "--days", "14.000"]
    assert all(run.length >= 1 for run in RUNS)
    stored = [run.words()[-1].split(",") for run in RUNS if "--scenarios AAPS" in run.options]
    assert sorted(name for names in stored for name in names) == sorted(SCENARIOS)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A repository with a file that is measured, and one that is not."""
    folder = tmp_path / "sources"
    for part in ("gateway", "docs"):
        (folder / part).mkdir(parents=True)
    git(folder, "init", "--quiet")
    change(folder, "gateway/a")
    return folder


def git(folder: Path, *words: str) -> str:
    known = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", "-C", folder, *known, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def change(folder: Path, name: str) -> str:
    (folder / name).open("a").write("x")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", name)
    return git(folder, "rev-parse", "--short=8", "HEAD")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The experiments that were started: each takes two hours and writes the kept result, or is stopped where
    the list ends with `stop`."""
    names: list[str] = []
    hours = count(step=7200.0)
    clock = SimpleNamespace(monotonic=lambda: now[0])
    now = [next(hours)]

    def ended(words: list[str]) -> int:
        if names[-1:] == ["stop"]:
            raise KeyboardInterrupt
        name, output = words[5], Path(words[words.index("--output") + 1])
        names.append(words[words.index("--clients") + 1] if "--clients" in words else name)
        output.mkdir(parents=True)
        shutil.copy(KEPT / f"{name}.json", output)
        now[0] = next(hours)
        return 0

    monkeypatch.setattr(command, "_ended", ended)
    monkeypatch.setattr(command, "clock", clock)
    monkeypatch.setattr(command, "disturbance", lambda _patience: "")
    return names


def session(tmp_path: Path, sources: Path, **others: object) -> tuple[Session, list[str]]:
    lines: list[str] = []
    family = Family(None, sources)
    return Session(MAX, tmp_path / "papers", family, say=lines.append, **others), lines  # type: ignore[arg-type]


def test_a_stopped_session_goes_on_and_is_joined(tmp_path: Path, sources: Path, started: list[str]) -> None:
    one, lines = session(tmp_path, sources)
    into = tmp_path / "joined"
    # the longest first, as many as fit
    assert one.perform(133)
    assert started == ["native"]
    assert lines[-2:] == ["max-ctlib: needs 125 min, 13 are left", "max-python: needs 125 min, 13 are left"]
    assert [*join(one.family, MAX, one.folder, into)] == ["max stays as it is: max-ctlib, max-python missing"]
    assert not (into / "max.json").exists()
    started.append("stop")
    with pytest.raises(KeyboardInterrupt):
        one.perform(1000)
    started.clear()
    change(sources, "docs/a")
    assert one.perform(1000)
    assert started == ["ctlib", "python"]
    assert one.perform(1000)
    assert started == ["ctlib", "python"]
    assert [*join(one.family, MAX, one.folder, into)] == ["max: max-ctlib, max-native, max-python"]
    (result,) = read_results(into, ("max",))
    # each folder has the kept result, of three kinds
    assert [run.clients for run in result.runs] == [kind for kind in KINDS for _ in range(3)]
    # a joined page has no picture of each second
    assert not any(run.by_second for run in result.runs)
    runs = {run.run: run for run in kept_runs(into)}
    assert {*runs} == {"max-ctlib", "max-native", "max-python"}
    assert runs["max-native"].commit != runs["max-python"].commit == one.family.commit()
    page = (into / "README.md").read_text()
    assert f"| max-python | 004, table 1 | {runs['max-python'].version}, {one.family.commit()} | 20" in page
    assert "| 120 min | 120 |" in page
    assert " before, " in page


def test_parts_of_ess_are_joined_and_saturation_is_computed(
    tmp_path: Path, sources: Path, started: list[str]
) -> None:
    parts = [replace(run, room=0.0) for run in RUNS if run.experiment == "ess"]
    one = Session(parts, tmp_path / "papers", Family(None, sources), say=lambda _text: None)
    assert one.perform(10_000)
    into = tmp_path / "joined"
    assert [*join(one.family, parts, one.folder, into)] == [
        "ess: ess-1000, ess-10000, ess-100000, ess-retrieval"
    ]
    kept, found = read_outcome(KEPT / "ess.json"), read_outcome(into / "ess.json")
    # each folder has the whole kept result
    assert (found.points, found.counted) == (4 * kept.points, 4 * kept.counted)
    assert (found.scale, found.method, found.versions) == (kept.scale, kept.method, kept.versions)
    assert found.command.splitlines() == [run.command() for run in parts]
    saturation = read_outcome(into / "saturation.json")
    assert {"storage cpu", "retrieval cpu"} <= {figure.key for figure in saturation.figures}
    assert "| ess-100000 | 003, table 2 |" in (into / "README.md").read_text()


def test_a_joined_load_of_hours_keeps_sixty_samples_and_the_last(
    tmp_path: Path, sources: Path, started: list[str]
) -> None:
    normal = [run for run in RUNS if run.name == "normal"]
    one = Session(normal, tmp_path / "papers", Family(None, sources), say=lambda _text: None)
    assert one.perform(1000)
    (kept,) = read_results(one.folder / "normal", ("normal",))
    (run,) = kept.runs
    samples = [replace(run.samples[0], seconds=float(second)) for second in range(1801)]
    replace(kept, runs=[replace(run, samples=samples)]).write(one.folder / "normal")
    assert [*join(one.family, normal, one.folder, tmp_path / "joined")] == ["normal: normal"]
    (result,) = read_results(tmp_path / "joined", ("normal",))
    assert [sample.seconds for sample in result.runs[0].samples] == [*range(0, 1801, 30)]


def test_a_change_of_what_is_measured_makes_another_family(
    tmp_path: Path, sources: Path, started: list[str]
) -> None:
    one, lines = session(tmp_path, sources)
    first = one.family.commit()
    assert one.perform(1000)
    assert not one.missing()
    (sources / "gateway" / "a").write_text("changed")
    assert len(one.missing()) == 3
    assert not one.perform(1000)
    assert lines[-1] == "max-python: not begun: files that no commit has are measured: gateway/a"
    change(sources, "gateway/a")
    assert len(one.missing()) == 3
    since = Session(MAX, one.folder, Family(first, sources))
    assert not since.missing()
    assert Session(MAX, one.folder, Family("HEAD", sources)).missing()
    assert len(started) == 3


def test_a_busy_machine_is_refused_with_figures(
    tmp_path: Path, sources: Path, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "disturbance", quiet.disturbance)
    monkeypatch.setattr(quiet, "_SAMPLE", 0.01)
    monkeypatch.setattr(os, "getloadavg", lambda: (3.25, 1.0, 1.0))
    one, lines = session(tmp_path, sources, patience=0.0)
    assert not one.perform(133)
    assert lines[0].startswith("max-native: not begun: the load average is 3.25 and other processes use ")
    assert lines[0].endswith("cores: figures are made below 0.2 and 0.1")
    assert not started
    tried, _ = session(tmp_path, sources, patience=0.0, busy=True)
    assert tried.perform(1000)
    assert not tried.missing()
    found = tried.family.result(tried.home, MAX[0], busy=True)
    assert found is not None
    assert "3.25" in found.remark
    # marked, in a folder of their own, and never joined
    assert not tried.family.results(tried.home, MAX)
    assert len(one.missing()) == 3


def test_the_processors_of_a_quiet_machine_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr(quiet, "_SAMPLE", 0.01)
    clock = iter([0.0, 0.0005, 0.0, 1.0])
    monkeypatch.setattr(quiet, "busy_seconds", lambda: next(clock))
    assert not quiet.disturbance()
    assert "the load average is 0.00 and other processes use " in quiet.disturbance()


def test_tried_runs_and_full_disks(tmp_path: Path, sources: Path, started: list[str]) -> None:
    tried, lines = session(tmp_path, sources, seconds=1.0)
    assert tried.perform(1000)
    assert len(started) == 3
    whole, lines = session(tmp_path, sources)
    assert len(whole.missing()) == 3
    full = [command.Run("max-native", "004", "max", 1, 1, 1, room=1e9)]
    assert not Session(full, tmp_path / "papers", whole.family, say=lines.append).perform(10)
    assert lines[-1].startswith("max-native: needs 1000000000 GB in ")


def test_an_experiment_that_fails_has_no_result(
    tmp_path: Path, sources: Path, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_ended", lambda _words: 1)
    one, lines = session(tmp_path, sources)
    assert not one.perform(1000)
    assert "max-native: ended with code 1" in lines
    assert len(one.missing()) == 3
