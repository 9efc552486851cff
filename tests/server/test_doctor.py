"""The findings of the doctor, from the kernel, a mount, a disk and PostgreSQL."""

import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from ringlog.commands.machines import doctor, this_machine
from ringlog.server import certificates
from servers import RunningServer, ringlog


def levels(found: object) -> list[tuple[str, str]]:
    return [(finding.level, finding.what) for finding in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "options", "dangers"),
    [
        ("ext4", "rw,noatime", 0),
        ("ext4", "rw,noatime,nobarrier", 1),
        ("ext4", "rw,relatime,barrier=0", 1),
        ("tmpfs", "rw,relatime", 1),
        ("nfs4", "rw,relatime", 1),
    ],
)
def test_mounts(kind: str, options: str, dangers: int) -> None:
    found = levels(this_machine.mounted("/data", kind, options))
    assert [level for level, _ in found] == ["danger"] * dangers
    assert levels(this_machine.mounted("/data", "btrfs", "rw,noatime,nodatacow")) == []
    assert levels(this_machine.mounted("/data", "btrfs", "rw,noatime"))[0][0] == "note"


def test_a_disk_that_acknowledges_writes_too_early() -> None:
    assert levels(this_machine.plausible(5_000, turns=True)) == [
        ("danger", "5,000 syncs a second are more than a rotating disk can do")
    ]
    assert levels(this_machine.plausible(5_000, turns=False)) == []
    assert levels(this_machine.plausible(90_000, turns=False)) == [
        ("danger", "90,000 syncs a second are more than any disk can do")
    ]
    assert levels(this_machine.plausible(12, turns=True)) == [("warning", "only 12 syncs a second")]


def test_the_kernel_and_the_disks_settings(tmp_path: Path) -> None:
    (tmp_path / "sys/vm").mkdir(parents=True)
    (tmp_path / "sys/vm/swappiness").write_text("60\n")
    (tmp_path / "sys/vm/overcommit_memory").write_text("2\n")
    (tmp_path / "cpuinfo").write_text("flags : fpu hypervisor sse\n")
    pages = tmp_path / "kernel/mm/transparent_hugepage"
    pages.mkdir(parents=True)
    (pages / "enabled").write_text("always [madvise] never\n")
    assert levels(this_machine.kernel(tmp_path, tmp_path)) == [
        ("note", "vm.swappiness is 60"),
        ("note", "this is a virtual machine"),
    ]
    (pages / "enabled").write_text("[always] madvise never\n")
    assert levels(this_machine.kernel(tmp_path, tmp_path))[0] == (
        "note",
        "the kernel uses huge pages for any memory (transparent_hugepage is always)",
    )
    queue = tmp_path / "queue"
    queue.mkdir()
    for name, value in (
        ("write_cache", "write back"),
        ("rotational", "1"),
        ("read_ahead_kb", "128"),
        ("scheduler", "[bfq] none"),
    ):
        (queue / name).write_text(value + "\n")
    assert [what for _, what in levels(this_machine.block_device(tmp_path))] == [
        "the disk has a write cache",
        "the read-ahead of this rotating disk is 128 kB",
    ]
    (queue / "rotational").write_text("0\n")
    assert levels(this_machine.block_device(tmp_path))[1] == ("note", "the disk's scheduler is bfq")
    assert levels(this_machine.clock(lambda: 5)) == [("warning", "nothing synchronizes the clock")]
    assert levels(this_machine.clock(lambda: 0)) == []


def test_postgresqls_settings_and_roles(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # test_programs.py tests whether this one is old
    monkeypatch.setattr("ringlog.server.embedded.releases.NEWEST", {})
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        # as the tests' servers are (tests/harness/servers.py)
        writers = ("note", "writer may write every table")
        assert levels(doctor.postgres(server.dsn)) == [("danger", "fsync is off"), writers]
        admin.execute("create role meddler login; grant ringlog_owner to meddler")
        try:
            found = levels(doctor.postgres(server.dsn + " options='-c synchronous_commit=off'"))
        finally:
            admin.execute("drop role meddler")
    assert found == [
        ("danger", "fsync is off"),
        ("danger", "synchronous_commit is off"),
        ("warning", "the login meddler has more rights than writing and reading"),
        writers,
    ]
    ran = ringlog("doctor", "--json", "--data", server.data)
    findings = json.loads(ran.stdout)
    assert ran.returncode == int(any(finding["level"] == "danger" for finding in findings))
    assert "the write-ahead log is on the same disk as the data" in [finding["what"] for finding in findings]
    assert all(finding["why"] and finding["do"] for finding in findings)


def test_a_certificate_near_its_end(tmp_path: Path) -> None:
    made = ringlog("cert", tmp_path / "tls", "--days", "400", "--host", "here")
    assert made.returncode == 0, made.stderr
    file = tmp_path / "tls" / "ringlog.crt"
    ends = certificates.expiry(file)
    assert abs(ends - datetime.now(UTC) - timedelta(days=400)) < timedelta(days=1)
    # the standard library can read it too, by a private function
    assert ends.timestamp() == ssl.cert_time_to_seconds(ssl._ssl._test_decode_cert(str(file))["notAfter"])  # type: ignore[attr-defined]
    assert levels(doctor.certificate(file)) == []
    soon = levels(doctor.certificate(file, ends - timedelta(days=20)))
    assert soon == [("warning", f"the certificate {file} ends on {ends:%Y-%m-%d}")]
    assert levels(doctor.certificate(file, ends + timedelta(days=1)))[0][0] == "danger"
    (tmp_path / "no.crt").write_text("no certificate")
    assert levels(doctor.certificate(tmp_path / "no.crt"))[0][1].endswith("(it has no PEM block)")


def test_memory_and_backups(server: RunningServer) -> None:
    # the server of the tests plans with 512 MB, of which a quarter is 128
    mib = 2**20
    assert levels(doctor.memory(server.dsn, 512 * mib)) == []
    assert [level for level, _ in levels(doctor.memory(server.dsn, 200 * mib))] == ["warning"]
    assert levels(doctor.memory(server.dsn, 8192 * mib)) == [
        ("note", "PostgreSQL's buffer cache is 128 MiB of 8.0 GiB of memory")
    ]
    assert levels(doctor.backups(server.dsn)) == [("warning", "there is no backup")]
