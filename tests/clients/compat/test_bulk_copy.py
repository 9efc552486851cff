"""Bulk copy.

freebcp as operators use it: the ring into a file, and a file into a table.
"""

import struct
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from client_compat import Clients, FreetdsProgram, stored
from servers import Login, RunningServer
from tds_clients import Admin


class Freebcp(FreetdsProgram):
    def run(self, clients: Clients, login: Login, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run_as(clients, login, *words)


CLIENTS = [Freebcp("freebcp", "5.0"), Freebcp("freebcp", "7.4")]

LINES = ["1|häuser|1.5|2026-01-02 03:04:05.500", "70000|||"]
ROWS = [(1, "häuser", 1.5, datetime(2026, 1, 2, 3, 4, 5, 500_000)), (70_000, None, None, None)]


@pytest.fixture
def samples(functions: None, admin: Admin) -> None:
    admin.execute("delete from client_compat.samples; delete from client_compat.readings")


def fill(admin: Admin) -> None:
    for row in ROWS:
        admin.execute("insert into client_compat.samples values (%s, %s, %s, %s)", row)


def found(admin: Admin) -> list[tuple[object, ...]]:
    return admin.execute("select id, name, size, since from client_compat.samples order by id").fetchall()


PUT = (
    "select ringlog.put_every_type(row (3, '2026-01-02 03:04:05.5+09', 1.5, -0.25, -7, 300, "
    "9007199254740993, true, 'häuser Ω')::online.every_type)"
)
LINE = "3|2026-01-02 03:04:05.500|1.5|-0.25|-7|300|9007199254740993|1|häuser Ω"


def test_out_characters(
    client: Freebcp, clients: Clients, server: RunningServer, admin: Admin, tmp_path: Path
) -> None:
    admin.execute(PUT)
    done = client.run(clients, server.reader, "online..every_type", "out", tmp_path / "out", "-c", "-t|")
    assert "10 rows copied" in done.stdout, done
    lines = (tmp_path / "out").read_text().splitlines()
    assert len(lines) == 10
    assert LINE in lines
    assert "4||||||||" in lines


def test_out_of_a_query(
    client: Freebcp, clients: Clients, server: RunningServer, admin: Admin, tmp_path: Path
) -> None:
    admin.execute(PUT)
    query = "select seq_no, a_varchar from every_type where time is not null"
    client.run(clients, server.reader, query, "queryout", tmp_path / "out", "-c", "-t|")
    assert (tmp_path / "out").read_text() == "3|häuser Ω\n"


def test_out_native(
    client: Freebcp, clients: Clients, server: RunningServer, admin: Admin, samples: None, tmp_path: Path
) -> None:
    fill(admin)
    done = client.run(clients, server.writer, "client_compat..samples", "out", tmp_path / "out", "-n")
    assert "2 rows copied" in done.stdout, done
    assert struct.pack("<i", 70_000) in (tmp_path / "out").read_bytes()


def test_in_characters(
    client: Freebcp, clients: Clients, server: RunningServer, admin: Admin, samples: None, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("".join(line + "\n" for line in LINES))
    done = client.run(clients, server.writer, "client_compat..samples", "in", tmp_path / "in", "-c", "-t|")
    assert "2 rows copied" in done.stdout, done
    assert found(admin) == ROWS


def test_in_native(
    client: Freebcp,
    clients: Clients,
    server: RunningServer,
    admin: Admin,
    samples: None,
    tmp_path: Path,
    remark: Callable[[str], None],
) -> None:
    """Exported files can be imported again."""
    rows = [(1, 1.5, ROWS[0][-1]), (70_000, -0.25, datetime(1999, 12, 31))]
    for row in rows:
        admin.execute("insert into client_compat.readings values (%s, %s, %s)", row)
    client.run(clients, server.writer, "client_compat..readings", "out", tmp_path / "out", "-n")
    admin.execute("delete from client_compat.readings")
    done = client.run(clients, server.writer, "client_compat..readings", "in", tmp_path / "out", "-n")
    assert "2 rows copied" in done.stdout, done
    assert admin.execute("select * from client_compat.readings order by id").fetchall() == rows
    why = "numbers and times; freebcp does not read back a NULL that it has written"
    if client.protocol != "5.0":
        why += ", and sends the bytes of texts as if they were UTF-16: use -c"
    remark(why)


def test_in_where_it_may_not(
    client: Freebcp, clients: Clients, server: RunningServer, admin: Admin, tmp_path: Path
) -> None:
    """Rings are written by their procedures only."""
    (tmp_path / "in").write_text(LINE + "\n")
    done = client.run(clients, server.writer, "online..every_type", "in", tmp_path / "in", "-c", "-t|")
    assert "Msg 229" in done.stdout + done.stderr
    assert stored(admin) == []
