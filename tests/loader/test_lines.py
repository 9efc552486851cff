"""Lines on a socket become rows."""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ringlog.loader.sources.lines import LineReader
from ringlog.schema.facility_files.facility_file import load_facility
from servers import free_port
from waiting import wait_until

FACILITY = Path(__file__).with_name("facility.toml")


def test_lines_are_read_exactly_or_refused_with_the_reason() -> None:
    (table,) = (table for table in load_facility(FACILITY).tables if table.name == "every_type")
    reader = LineReader(table)
    assert reader.read(b"every_type/real 1.5 1780000000.000001\n") == (0, 1.5, 1_780_000_000_000_001)
    assert reader.read(b"an_int -7 2026-05-28T20:26:40+00:00\n") == (2, -7, 1_780_000_000_000_000)
    before = time.time_ns() // 1000
    place, reading, stamp = reader.read(b"a_bit -\n")
    assert (place, reading) == (5, None)
    assert before <= stamp <= time.time_ns() // 1000
    for line, complaint in (
        (b"nothing 1\n", "table every_type has no column or signal 'nothing'"),
        (b"an_int 1.5\n", "an_int: '1.5' is not a int"),
        (b"an_int\n", "a line must have the form: name value time"),
        (b"an_int 1", "a line must have the form: name value time"),
        (b"an_int 1 yesterday\n", "'yesterday' is neither seconds since 1970 nor an ISO 8601 time"),
        (b"an_int 1 2026-05-28T20:26:40\n", "time 2026-05-28T20:26:40 has no offset"),
        (b"an_int 1 -5\n", "time -5 is out of range"),
        (b"\xff\xfe 1\n", "the line is not UTF-8 text"),
    ):
        with pytest.raises(ValueError, match="^" + complaint.replace("+", "\\+")):
            reader.read(line)


@pytest.mark.long
def test_lines_are_logged(
    load: Callable[..., Any], stored: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    monitored = tmp_path / "monitored.toml"
    monitored.write_text(FACILITY.read_text().replace("cycle = 0.1\n", 'cycle = 0.1\nsample = "monitor"\n'))
    before = len(stored("beam"))
    port = free_port()
    options = ("--facility", monitored, "--tables", "beam", "--source", f"lines:127.0.0.1:{port}")
    one = load(*options)

    def connection_to_it() -> socket.socket | None:
        with suppress(OSError):
            return socket.create_connection(("127.0.0.1", port))
        return None

    connection = wait_until(connection_to_it)
    assert connection is not None
    begin = int(time.time())
    with connection:
        for number in range(20):
            connection.sendall(f"sr_beam/current {number}.5 {begin + number / 10}\n".encode())
        connection.sendall(b"current much\n")
        assert connection.recv(100) == b"current: 'much' is not a number (no reading is an empty cell)\n"

        def are_stored() -> bool:
            assert one.process.poll() is None
            return len(stored("beam")) >= before + 20

        wait_until(are_stored)
    assert one.stop()[0] == 0
    rows = [(row[1], row[2]) for row in stored("beam")[before:]]
    assert rows == [(datetime.fromtimestamp(begin + number / 10, UTC), number + 0.5) for number in range(20)]
