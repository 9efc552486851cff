"""Machines as `ringlog ha init` makes them: etcd, Patroni, PostgreSQL and gateways, in namespaces."""

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from ringlog.machines.site import Machine, Site, SiteError
from ringlog_lab.machines.host import enclosed
from ringlog_lab.machines.writers import Writers
from servers import ringlog, run
from waiting import wait_until

# servers of their own, on a machine that others may use too
pytestmark = pytest.mark.timeout(900)

MACHINES = ("db1=192.0.2.1", "db2=192.0.2.2", "--witness", "w=192.0.2.3")


def test_rows_survive_a_switchover_and_the_death_of_a_machine() -> None:
    """The program waits before each fault until `ringlog ha status` reports no problem."""
    words = ("--switchovers", "1", "--kills", "1", "--writers", "4", "--json")
    ran = run(sys.executable, "-P", "-m", "ringlog_lab.machines", *words, timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    count = report["count"]
    assert count["acknowledged"] == count["produced"] > 100
    assert (count["lost"], count["repeated"]) == (0, 0)
    assert {kind: one["faults"] for kind, one in report["pauses"].items()} == {"switchover": 1, "kill": 1}


def test_a_failure_shows_what_happened_to_the_writers(tmp_path: Path) -> None:
    facility = tmp_path / "facility.toml"
    facility.write_text(
        '[[table]]\nname = "magnet"\nrows = 10\ncycle = 0.1\ncolumn = [{ name = "count", type = "int" }]\n'
    )
    # nothing listens at port 1
    writers = Writers(["tds://daq@127.0.0.1:1"], "password", facility, tmp_path / "spool", rate=10.0)
    try:
        wait_until(lambda: "127.0.0.1" in writers.log() and writers.rows["magnet"].produced)
        assert re.match(
            r"== writer of magnet: \d+ rows produced, 0 acknowledged, \d+ waiting\n"
            r"\d\d:\d\d:\d\d\.\d{3} RECONNECTING\n\d\d:\d\d:\d\d\.\d{3} .*127\.0\.0\.1",
            writers.log(),
        )
    finally:
        writers.stop()


@pytest.mark.parametrize("strict", [False, True])
def test_patroni_accepts_its_file(tmp_path: Path, strict: bool) -> None:
    folder = tmp_path / "site"
    made = ringlog("ha", "init", folder, *MACHINES, *(["--strict"] if strict else []))
    assert made.returncode == 0, made.stderr
    for machine in ("db1", "db2"):
        file = folder / machine / "etc/ringlog/patroni.yml"
        # in its own network, where it reports that it cannot reach etcd
        words = [str(Path(sys.executable).with_name("patroni")), "--validate-config", "-i", str(file)]
        complaints = run(*enclosed(words)).stderr.splitlines()
        assert len(complaints) == 3, complaints
        assert all(
            line.startswith("etcd3.hosts.") and line.endswith(" is not reachable") for line in complaints
        )
        assert f"synchronous_mode_strict: {str(strict).lower()}\n" in file.read_text()
        # run before PostgreSQL is stopped (Patroni: YAML Configuration Settings, before_stop)
        stop = yaml.safe_load(file.read_text())["postgresql"]["before_stop"]
        assert stop.endswith("/pg_ctl stop -D /var/lib/ringlog/postgresql -m fast -t 5")
        assert file.stat().st_mode & 0o077 == 0, "it holds passwords"
    assert sorted(path.name for path in (folder / "w").rglob("*") if path.is_file()) == [
        "etcd.yml",
        "ringlog-etcd.service",
    ]
    again = ringlog("ha", "init", folder, *MACHINES)
    assert again.returncode == 2
    assert "exists already" in again.stderr


@pytest.mark.parametrize(
    ("machines", "witnesses", "why"),
    [
        (["db1=192.0.2.1", "db2=192.0.2.2"], [], "2 machines have a vote"),
        (["db1=192.0.2.1"], ["w=192.0.2.3", "v=192.0.2.4"], "at least two machines have the data"),
        (["db1=192.0.2.1", "db1=192.0.2.2"], ["w=192.0.2.3"], "two machines have the name db1"),
        (["db1=192.0.2.1", "db2=192.0.2.1"], ["w=192.0.2.3"], "two machines have the address 192.0.2.1"),
        (["db1=db1.example", "db2=192.0.2.1"], ["w=192.0.2.3"], "db1 has no IPv4 address"),
        (["192.0.2.1", "db2=192.0.2.2"], ["w=192.0.2.3"], "is not a machine"),
    ],
)
def test_invalid_sites(machines: list[str], witnesses: list[str], why: str) -> None:
    with pytest.raises(SiteError, match=why):
        Site.of(
            [Machine.parse(text) for text in machines]
            + [Machine.parse(text, witness=True) for text in witnesses]
        )


def test_questions_are_asked_only_if_needed(tmp_path: Path) -> None:
    missing = ringlog("ha", "status", "--config", tmp_path / "patroni.yml")
    assert missing.returncode == 1
    assert "No such file" in missing.stderr
    (tmp_path / "other.yml").write_text("scope: ringlog\n")
    other = ringlog("ha", "status", "--config", tmp_path / "other.yml")
    assert other.returncode == 2
    assert "is not a patroni.yml" in other.stderr
