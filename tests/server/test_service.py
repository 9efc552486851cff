"""ringlog as a service of systemd: its unit, and options that are refused before anything is written."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import new_folder

from ringlog.commands.machines import service
from ringlog.errors import ServerError, UsageError
from ringlog.server.processes import systemd
from servers import FACILITY, RINGLOG, ringlog


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without a running systemd; the units are written to a folder of the test."""
    folder = new_folder("units")
    monkeypatch.setattr(systemd, "UNITS", folder)
    monkeypatch.setattr(systemd, "_RUNNING", folder / "none")
    monkeypatch.setattr(sys, "argv", [str(RINGLOG)])
    yield folder
    shutil.rmtree(folder)


def printed(*words: str) -> dict[str, str]:
    shown = ringlog("service", "install", "--print", "--", *words)
    assert shown.returncode == 0, shown.stderr
    return dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)


def test_the_unit_of_a_server() -> None:
    unit = printed("serve", "--facility", "/etc/ringlog/facility.toml", "--listen", "0.0.0.0:5000")
    words = shlex.split(unit["ExecStart"])
    assert words[1:] == [
        *("serve", "--facility", "/etc/ringlog/facility.toml", "--listen", "0.0.0.0:5000"),
        *("--data", "/var/lib/ringlog"),
    ]
    assert Path(words[0]) == RINGLOG.resolve()
    assert (unit["User"], unit["Type"], unit["Restart"]) == ("ringlog", "exec", "on-failure")


def test_the_unit_of_writers() -> None:
    unit = printed("load", "--facility", "/etc/f.toml", "--url", "tds://daq@db:5000", "--source", "ca")
    assert unit["ExecStart"].endswith(" --spool /var/lib/ringlog-spool")
    assert unit["ExecReload"].endswith("ringlog reload --spool /var/lib/ringlog-spool")
    # ringlog load answers the watchdog: tests/loader/test_notify.py
    assert (unit["Type"], unit["WatchdogSec"]) == ("notify", "60")


def test_words_are_quoted_as_systemd_reads_them() -> None:
    """systemd.service(5): quotes and backslashes as in C, `$$` and `%%` for themselves."""
    unit = printed("serve", "--facility", '/etc/100 %/$HOME "x".toml')
    assert '--facility "/etc/100 %%/$$HOME \\"x\\".toml" --data' in unit["ExecStart"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["serve", "--facility", "plant.toml"], "plant.toml: a service needs an absolute path"),
        (["status"], "a service runs ringlog serve or load, not 'status'"),
        (["serve", "--facilty", "/x"], "No such option: --facilty"),
    ],
)
def test_options_that_cannot_be_a_service_are_refused(words: list[str], message: str) -> None:
    refused = ringlog("service", "install", "--print", "--", *words)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_a_foreign_unit_is_left_alone(units: Path, tmp_path: Path) -> None:
    theirs = units / "ringlog.service"
    theirs.write_text("[Unit]\n")
    with pytest.raises(ServerError, match=r"was not written by ringlog"):
        systemd.install("ringlog", "text")
    with pytest.raises(ServerError, match=r"was not written by ringlog: it stays"):
        systemd.remove("ringlog")
    assert theirs.read_text() == "[Unit]\n"


def test_it_is_installed_changed_and_removed(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facility = units / "facility.toml"
    facility.write_bytes(FACILITY.read_bytes())
    data = units / "data"
    words = ["serve", "--facility", str(facility), "--data", str(data)]
    if os.geteuid() != 0:
        with pytest.raises(UsageError, match="installed by root"):
            service.service_install(words)
        return
    service.service_install(words)
    text = (units / "ringlog.service").read_text()
    assert (data.stat().st_mode & 0o777, data.owner()) == (0o700, "ringlog")
    assert "systemctl enable --now ringlog" in capsys.readouterr().out
    service.service_install([*words, "--listen", "0.0.0.0:5001"])
    changed = (units / "ringlog.service").read_text()
    assert changed == text.replace(f"--data {data}", f"--data {data} --listen 0.0.0.0:5001")
    service.service_remove()
    assert not (units / "ringlog.service").exists()
    assert data.exists()


def test_a_file_that_the_account_may_not_read_is_named(units: Path) -> None:
    hidden = units / "facility.toml"
    hidden.write_text("")
    hidden.chmod(0o600)
    message = f"the account ringlog may not read {hidden}" if os.geteuid() == 0 else "only root can install"
    with pytest.raises(ServerError, match=message):
        service.service_install(["serve", "--facility", str(hidden)])
    assert not (units / "ringlog.service").exists()
