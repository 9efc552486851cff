"""The settings of the embedded PostgreSQL."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.settings import GiB, MiB, settings_text
from servers import RINGLOG, ringlog, serving
from waiting import PATIENCE, wait_until


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("data_checksums", "on"),
        ("password_encryption", "scram-sha-256"),
        ("server_encoding", "UTF8"),
        ("listen_addresses", "127.0.0.1"),
        ("log_min_error_statement", "panic"),
        ("shared_buffers", "128MB"),
    ],
)
def test_a_running_server_has_the_setting(scratch_postgres: Postgres, setting: str, value: str) -> None:
    # fsync, which is off for the tests, is in test_postgres.py
    with psycopg.connect(scratch_postgres.conninfo("postgres")) as connection:
        found = connection.execute("select current_setting(%s)", [setting]).fetchone()
    assert found == (value,)


def test_a_quarter_of_the_memory_is_the_buffer_cache() -> None:
    text = settings_text(memory=128 * GiB, disk=10_000 * GiB, port=5433, socket=Path("/x"))
    assert f"shared_buffers = '{32 * GiB // MiB}MB'\n" in text


def test_the_write_ahead_log_uses_at_most_a_twentieth_of_a_small_disk() -> None:
    text = settings_text(memory=128 * GiB, disk=20 * GiB, port=5433, socket=Path("/x"))
    assert "max_wal_size = '1024MB'\n" in text


def test_a_lock_for_each_object_of_thousands_of_new_tables() -> None:
    """PostgreSQL 18, 19.12: there is room for max_locks_per_transaction for each of max_connections."""
    for tables, least in ((0, 256 * 300), (600, 256 * 300), (5000, 5000 * 35)):
        text = settings_text(memory=128 * GiB, disk=20 * GiB, port=5433, socket=Path("/x"), tables=tables)
        found = re.search(r"^max_locks_per_transaction = (\d+)$", text, re.MULTILINE)
        assert found is not None
        assert int(found[1]) * 300 >= least


# --- the account that PostgreSQL runs under when root starts the server ---

STARTS = 8
_ETC_WITHOUT_THE_ACCOUNT = """
cp -a /etc "$1" 2>/dev/null || [ -e "$1/passwd" ]  # not every file of it may be read
mount --bind "$1" /etc
for file in passwd group shadow gshadow; do
  [ ! -e /etc/$file ] || sed -i '/^ringlog:/d' /etc/$file
done
shift
exec "$@"
"""
_FIRST_STARTS = f"""
import pwd, subprocess, sys
start = '''
from pathlib import Path
from ringlog.server.embedded.account import account_for
print(account_for(Path("/nonexistent/data")).uid)
'''
command = [sys.executable, "-c", start]
starts = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range({STARTS})]
print(*(each.communicate()[0].strip() for each in starts))
print(pwd.getpwnam("ringlog").pw_uid)
"""


def test_first_starts_at_one_moment_share_an_account(tmp_path: Path) -> None:
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", "--mount", *as_root, "sh", "-eu", "-c", _ETC_WITHOUT_THE_ACCOUNT]
    command += ["sh", str(tmp_path / "etc")]
    command += [sys.executable, "-c", _FIRST_STARTS]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    uids, known = answer.splitlines()
    assert uids.split() == [known] * STARTS


# --- the server raises its limit of open files: each client needs one ---

SHOWN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
from ringlog.server.processes.descriptors import raise_file_limit
raise_file_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard"), [(100, 512), (512, 512)])
def test_the_soft_limit_becomes_the_hard_one(soft: int, hard: int) -> None:
    command = [sys.executable, "-c", SHOWN, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split() == [str(hard), str(hard)], done.stderr


# --- files created by ringlog are accessible to their account only ---

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
