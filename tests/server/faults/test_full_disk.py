"""A full disk: the commands name it, and what to free. Mounting a small one takes root."""

import json
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pymssql
import pytest

from servers import RunningServer, ringlog, serving
from small_disk import filled, small_disk
from waiting import wait_until

_NUMBERS = count()
# each call needs new pages of the log soon
FACILITY = """
timezone = "UTC"

[[table]]
name = "vacuum"
rows = 100
cycle = 1.0

[[table.column]]
name = "pressure_{n}"
type = "double"
count = 100
"""


def put(session: pymssql.Connection) -> int | None:
    """Writes a row. Returns the number of the error."""
    now = datetime.now(UTC).replace(tzinfo=None) + timedelta(milliseconds=next(_NUMBERS))
    try:
        with session.cursor() as cursor:
            cursor.callproc("put_vacuum", (None, now, *[1.0] * 100))
    except pymssql.Error as error:
        return int(error.args[0])
    return None


def status(data: Path) -> subprocess.CompletedProcess[str]:
    return ringlog("status", "--data", data)


@pytest.mark.long
def test_a_full_disk_and_what_to_free_are_named(temporary_directory: Path) -> None:
    folder = temporary_directory / "small"
    data = folder / "data"
    advice = f"GB are free for {data}, on the disk mounted at {folder}"
    facility = temporary_directory / "small.toml"
    facility.write_text(FACILITY)
    with small_disk(folder, "600m"):
        with serving(data, facility=facility) as server:
            wait_until(lambda: "vacuum" in status(data).stdout)
            # of 600 MB at least a tenth is free
            assert advice not in status(data).stdout
            _fill(server, folder, advice)
        with filled(folder):
            for command in (("serve", "--listen", "127.0.0.1:0"), ("maintain",)):
                refused = ringlog(*command, "--data", data)
                assert refused.returncode == 1
                assert refused.stderr.count("\n") == 1, refused.stderr
                assert "ringlog: the disk is full: " in refused.stderr
                assert f"{advice}; free space on {folder}: files of other programs" in refused.stderr
            assert advice in status(data).stdout
            findings = json.loads(ringlog("doctor", "--json", "--data", data).stdout)
            dangers = [finding for finding in findings if finding["level"] == "danger"]
            assert advice in next(
                each["do"] for each in dangers if each["what"] == "PostgreSQL does not answer"
            )
            assert advice in " ".join(finding["what"] for finding in findings)
        with (
            serving(data, facility=None) as server,
            closing(server.connect("writer", server.writer.password)) as session,
        ):
            assert put(session) is None


def _fill(server: RunningServer, folder: Path, advice: str) -> None:
    """A writer's error 1105, which status shows."""
    with closing(server.connect(server.writer.user, server.writer.password)) as session:
        assert put(session) is None
        with filled(folder):
            wait_until(lambda: put(session) == 1105)

            def failing() -> str | None:
                put(session)
                text = status(server.data).stdout
                return text if "calls fail by error 1105" in text else None

            shown = wait_until(failing, lambda: status(server.data))
            assert advice in shown
            log = server.data.with_name(f"{server.data.name}.stderr")
            wait_until(lambda: advice in log.read_text())
        # once for as long as it is full
        assert log.read_text().count(advice) == 1
        assert log.read_text().count("sessions that fill the disk could not be ended") <= 1
        wait_until(lambda: put(session) is None)
