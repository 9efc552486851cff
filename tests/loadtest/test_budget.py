"""Control groups, which represent the machines where readers of standbys are measured."""

import subprocess
from pathlib import Path

import psutil
import pytest

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog_lab.budget import Group, Hierarchy


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
