"""A restore to a moment under load: every row acknowledged until then is present, and no later one."""

import json
import os
import re
import shutil
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from ringlog.server.embedded.postgres import Postgres
from servers import ringlog, serving
from waiting import PATIENCE, wait_until

FIRST = datetime(2026, 3, 2, tzinfo=UTC)


# by somebody who can write to the folder of a backup, and not to the machine that restores it
CHANGES = {
    "link": "conf.d is neither a file nor a folder: this copy was changed",
    "link-of-file": "postgresql.auto.conf is neither a file nor a folder",
    "pipe": "PG_VERSION.pipe is neither a file nor a folder",
    "further-file": "60-further.conf is not a file of this copy",
    "elsewhere": "is incomplete: it lacks ../../../outside",
}


def change_copy(copy: Path, change: str) -> None:
    outside = copy.parents[2] / "outside"
    outside.write_text("kept")
    if change == "link":
        shutil.rmtree(copy / "conf.d")
        (copy / "conf.d").symlink_to(outside.parent)
    elif change == "link-of-file":
        (copy / "postgresql.auto.conf").unlink()
        (copy / "postgresql.auto.conf").symlink_to(outside)
    elif change == "pipe":
        os.mkfifo(copy / "PG_VERSION.pipe")
    elif change == "further-file":
        (copy / "conf.d" / "60-further.conf").write_text("archive_command = 'touch /tmp/further'\n")
    else:
        manifest = json.loads((copy / "backup_manifest").read_text())
        manifest["Files"].append({"Path": "../../../outside", "Checksum": ""})
        (copy / "backup_manifest").write_text(json.dumps(manifest))


@pytest.mark.long
def test_a_restore_to_a_moment_under_load(temporary_directory: Path) -> None:
    data, copies = temporary_directory / "original", temporary_directory / "backup"
    acknowledged: list[tuple[int, datetime]] = []
    stop = threading.Event()
    with serving(data) as server:
        server.sql("insert into ringlog.archive_owner values ('a', 'token', 'before', '1', 1)")

        def write() -> None:
            with server.connect(server.writer.user, server.writer.password) as session:
                number = 0
                while not stop.is_set():
                    row = (None, (FIRST + timedelta(seconds=number)).isoformat(), 1.0, float(number))
                    session.cursor().callproc("put_every_type", row)
                    acknowledged.append((number, datetime.now(UTC)))
                    number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            made = ringlog("backup", copies, "--data", data, timeout=200)
            assert made.returncode == 0, made.stderr
            after_copy = len(acknowledged)
            wait_until(lambda: len(acknowledged) >= after_copy + 200)
            moment = datetime.now(UTC)
            wait_until(lambda: len(acknowledged) >= after_copy + 400)
        finally:
            stop.set()
            writer.join()
        segment = server.sql("select pg_walfile_name(pg_switch_wal())")[0]
        assert segment is not None
        name = str(segment[0])
        wait_until(lambda: (copies / "wal" / name).exists())
    new = temporary_directory / "restored"
    early = ringlog("restore", copies, "--to", "2020-01-01", "--data", new)
    assert early.returncode == 2
    assert "has no backup of that time: its oldest copy is of 20" in early.stderr
    ahead = ringlog("restore", copies, "--to", "2999-12-31", "--data", new)
    assert ahead.returncode == 2
    assert "2999-12-31 is in the future: omit --to" in ahead.stderr
    late = ringlog("restore", copies, "--to", datetime.now(UTC).isoformat(), "--data", new, timeout=200)
    assert late.returncode == 1
    assert re.search("does not reach .*: the last transaction in it is of 20.*wait a minute", late.stderr)
    assert not new.exists()
    (copy,) = (copies / "base").iterdir()
    for change, words in CHANGES.items():
        changed = temporary_directory / change
        subprocess.run(["cp", "-a", copies, changed], check=True)
        change_copy(changed / "base" / copy.name, change)
        refused = ringlog("restore", changed, "--data", new)
        assert refused.returncode == 1, change
        assert words in refused.stderr, refused.stderr
        assert not new.exists()
        shutil.rmtree(changed)
    restored = ringlog("restore", copies, "--to", moment.isoformat(), "--data", new, timeout=200)
    assert restored.returncode == 0, restored.stderr
    assert "run ringlog archive adopt if it takes the old server's place" in restored.stdout
    # a commit between our clock and PostgreSQL's is on either side of the moment
    sure = [number for number, at in acknowledged if at < moment]
    begun = next(number for number, at in acknowledged if at >= moment)
    with serving(new, facility=None) as server, psycopg.connect(server.dsn) as admin:
        rows = [int(number) for (number,) in admin.execute("select a_double from log.every_type order by 1")]
        assert rows in (sure, [*sure, begun])
        tokens = admin.execute("select token, previous from ringlog.archive_owner")
        assert tokens.fetchall() == [(None, None)]
        assert admin.execute("show archive_command").fetchone() == ("/bin/true",)
        checked = ringlog("verify", "--data", new)
        assert checked.returncode == 0, checked.stdout
        assert "no errors were found" in checked.stdout
        admin.execute("delete from online.sr_rf where seq_no = 3")
        admin.execute("delete from log.every_type where a_double = %s", [rows[-1]])
        admin.commit()
        checked = ringlog("verify", "--data", new)
        assert checked.returncode == 1
        assert "online.sr_rf: 1 of its 10 rows are missing, 0 are too many" in checked.stdout
        assert "online.every_type: 1 rows are missing in log.every_type" in checked.stdout
    again = ringlog("restore", copies, "--data", new)
    assert again.returncode == 2
    assert "exists already: restore makes a new data directory" in again.stderr


@pytest.mark.long
def test_the_log_is_archived_in_time_after_a_crash_too(temporary_directory: Path) -> None:
    data, copies = temporary_directory / "crashed", temporary_directory / "copies"
    with serving(data) as server:
        made = ringlog("backup", copies, "--data", data, timeout=200)
        assert made.returncode == 0, made.stderr
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute("alter system set archive_timeout = 1")
            admin.execute("create table before_the_crash ()")
        postmaster = Postgres(data).postmaster()
        assert postmaster is not None
        postmaster.kill()
        server.process.wait(PATIENCE)
    with serving(data) as server, psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute("create table after_the_crash ()")
        found = admin.execute("select pg_walfile_name(pg_current_wal_lsn())").fetchone()
        assert found is not None
        segment = copies / "wal" / str(found[0])
        # the next checkpoint is due in 15 minutes
        wait_until(segment.exists)
