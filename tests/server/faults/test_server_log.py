"""The server's log is bounded, whatever logins and strangers do."""

import logging
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pymssql
import pytest

from ringlog import logs
from ringlog.server.embedded.settings import MiB
from ringlog.server.guards.server_log import MOST, File, files_of, surplus
from servers import RunningServer
from waiting import wait_until

LINES = 20
"""of one place in the source, in 20 s"""
DAY = 86_400.0
NOW = 400 * DAY
# PostgreSQL's documentation, 19.8: messages of level LOG are in the log whatever log_min_messages is, but for
# fatal and panic
FLOOD = "do $$ begin loop raise log '%', repeat('x', 100000); end loop; end $$"


def file(name: str, mebibytes: int, ago: float) -> File:
    return File(Path(name), mebibytes * MiB, NOW - ago)


def names(files: list[File]) -> set[str]:
    return {each.path.name for each in files}


def test_a_flood_removes_its_own_lines() -> None:
    days = [file(f"day {n}", 1, (30 - n) * DAY) for n in range(20)]
    flood = [file(f"flood {n}", 16, 100 - n) for n in range(20)]
    newest = file("newest", 16, 0)
    removed = surplus([*days, *flood, newest], 100 * MiB, NOW)
    assert names(removed) < names(flood)
    assert (
        sum(each.size for each in (*days, *flood, newest)) - sum(each.size for each in removed) <= 100 * MiB
    )


def test_files_of_the_month_before_are_removed() -> None:
    assert names(surplus([file("old", 1, 32 * DAY), file("new", 1, 30 * DAY)], 100 * MiB, NOW)) == {"old"}


def test_the_newest_file_stays() -> None:
    assert surplus([file("newest", 500, 0)], 100 * MiB, NOW) == []


def test_a_login_cannot_fill_the_disk_by_the_log(own: RunningServer) -> None:
    """Neither by a flood, whose connections end, nor slowly."""
    logs = own.data / "postgresql-18" / "log"
    with (
        psycopg.connect(own.dsn_of(own.reader), autocommit=True) as reader,
        pytest.raises(psycopg.errors.AdminShutdown),
    ):
        reader.execute(FLOOD)
    wait_until(lambda: "reader were ended: they flooded PostgreSQL's log" in stderr(own))
    day = logs / "postgresql-2026-01-01_000000.log"
    day.write_text("a line of another day")
    # without blocks on the disk
    for number in range(8):
        lines = logs / f"postgresql-2026-01-02_00000{number}.log"
        lines.touch()
        os.truncate(lines, MOST // 4)
        os.utime(lines, (time.time() - 100 + number,) * 2)
    os.utime(day, (time.time() - DAY,) * 2)
    wait_until(lambda: sum(each.size for each in files_of(logs)) <= MOST)
    assert day.exists()


def stderr(server: RunningServer) -> str:
    return server.data.with_name(server.data.name + ".stderr").read_text()


def test_refused_messages_are_not_in_the_log_of_ringlog(own: RunningServer) -> None:
    before = stderr(own)
    with own.connect(own.reader.user, own.reader.password) as session:
        for statement in (
            "exec put_sr_rf 1",
            "select 1/0",
            "exec none",
            "syntax (",
            "raiserror ('x', 16, 1)",
        ):
            for _ in range(20):
                with suppress(pymssql.Error):
                    session.cursor().execute(statement)
    assert stderr(own) == before


def test_connections_of_strangers_write_few_lines(own: RunningServer) -> None:
    """Bytes that are no TDS, and wrong passwords."""
    for _ in range(100):
        with socket.create_connection((own.host, own.port), timeout=60) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionError):
                while stranger.recv(4096):
                    pass
    with pytest.raises(pymssql.Error):
        own.connect(own.reader.user, "wrong")
    lines = [line for line in stderr(own).splitlines() if "session{" in line]
    assert len(lines) == LINES


def test_the_next_line_has_the_number_of_those_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limited = logs.Limited()

    def record() -> logging.LogRecord:
        return logging.LogRecord("ringlog", logging.WARNING, "file.py", 1, "%s was refused", ("x",), None)

    assert [limited.filter(record()) for _ in range(LINES + 7)] == [True] * LINES + [False] * 7
    now = 60.0
    later = record()
    assert limited.filter(later)
    assert later.getMessage() == "x was refused left_out=7"
