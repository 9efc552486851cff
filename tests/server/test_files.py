"""Files created by ringlog are accessible to their account only."""

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from servers import RINGLOG, ringlog, serving
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.long

FACILITY = """
[history]
online = "2 weeks"
archive = "{archive}"

[[table]]
name = "vacuum"
rows = 10
cycle = 0.1
column = [{{ name = "pressure", type = "real" }}]
"""


def open_to_others(*folders: Path) -> Iterator[str]:
    """The files, folders and sockets there that accounts other than their owner may use."""
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            found = path.lstat()
            if not stat.S_ISLNK(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
                yield f"{stat.filemode(found.st_mode)} {path}"


@pytest.mark.timeout(600)
def test_files_of_ringlog_are_for_their_account_only(data: Path) -> None:
    folder = data.parent
    archive, spool, copies, restored = (folder / name for name in ("cold", "spool", "copies", "restored"))
    facility = folder / "facility.toml"
    facility.write_text(FACILITY.format(archive=archive))
    with serving(data, facility=facility) as server:
        added = ringlog("user", "add", "daq", "--writer", "--password-stdin", "--data", data, stdin="p w\n")
        assert added.returncode == 0, added.stderr
        server.sql(
            "insert into log.vacuum (seq_no, time, pressure)"
            " select n, now() - interval '5 weeks' + n * interval '1 second', n"
            " from generate_series(1, 9) as n"
        )
        for command in (("maintain",), ("archive", "now"), ("backup", copies)):
            done = ringlog(*command, "--data", data)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert [*archive.rglob("*.parquet")]
        password = folder / "password"
        password.touch(0o600)
        password.write_text("p w\n")
        command = [RINGLOG, "load", "--facility", facility, "--url", f"tds://daq@{server.host}:{server.port}"]
        command += ["--spool", spool, "--password-file", password]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            try:
                with psycopg.connect(server.dsn, autocommit=True) as admin:
                    query = "select acknowledged > 0 from ringlog.writer"
                    wait_until(lambda: admin.execute(query).fetchone() == (True,))
                assert [*spool.glob("*.socket")]
                assert [*open_to_others(data, archive, spool, copies)] == []
                # HTTP reads the archive under the account of the data directory
                assert {path.stat().st_uid for path in archive.rglob("*")} == {data.stat().st_uid}
            finally:
                load.terminate()
                load.wait(PATIENCE)
    again = ringlog("restore", copies, "--data", restored)
    assert again.returncode == 0, again.stderr
    assert [*open_to_others(restored)] == []
