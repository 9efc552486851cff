"""Bulk copy.

freebcp as operators use it: the ring into a file, and a file into a table.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from servers import Login, RunningServer
from tds_clients import Admin
from zoo import Zoo, freetds, stored


@dataclass(frozen=True)
class Freebcp:
    protocol: str
    name: str = "freebcp"
    lacks: dict[str, str] = field(default_factory=dict)
    not_yet: dict[str, str] = field(default_factory=dict)
    version: Callable[[], str] = freetds

    @property
    def id(self) -> str:
        return f"{self.name} {self.protocol}"

    def run(self, zoo: Zoo, login: Login, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["freebcp", *words, "-S", self.protocol, "-U", login.user, "-P", login.password],
            env={"FREETDSCONF": str(zoo.freetds_conf), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )


CLIENTS = [Freebcp("5.0"), Freebcp("7.4")]

PUT = (
    "select ringlog.put_every_type(row (3, '2026-01-02 03:04:05.5+09', 1.5, -0.25, -7, 300, "
    "9007199254740993, true, 'häuser Ω')::online.every_type)"
)
LINE = "3|2026-01-02 03:04:05.500|1.5|-0.25|-7|300|9007199254740993|1|häuser Ω"


def test_out_characters(
    client: Freebcp, zoo: Zoo, server: RunningServer, admin: Admin, tmp_path: Path
) -> None:
    admin.execute(PUT)
    done = client.run(zoo, server.reader, "online..every_type", "out", tmp_path / "out", "-c", "-t|")
    assert "10 rows copied" in done.stdout, done
    lines = (tmp_path / "out").read_text().splitlines()
    assert len(lines) == 10
    assert LINE in lines
    assert "4||||||||" in lines


def test_out_of_a_query(
    client: Freebcp, zoo: Zoo, server: RunningServer, admin: Admin, tmp_path: Path
) -> None:
    admin.execute(PUT)
    query = "select seq_no, a_varchar from every_type where time is not null"
    client.run(zoo, server.reader, query, "queryout", tmp_path / "out", "-c", "-t|")
    assert (tmp_path / "out").read_text() == "3|häuser Ω\n"


def test_out_native(
    client: Freebcp, zoo: Zoo, server: RunningServer, tmp_path: Path, not_served: Callable[[str, str], None]
) -> None:
    done = client.run(zoo, server.reader, "online..every_type", "out", tmp_path / "out", "-n")
    refusal = "Error in bcp_colfmt col 1"
    assert refusal in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()
    not_served("it forgets the columns it has asked for at the DONE of its own SET FMTONLY OFF", refusal)


def test_in_characters(
    client: Freebcp,
    zoo: Zoo,
    server: RunningServer,
    admin: Admin,
    tmp_path: Path,
    not_served: Callable[[str, str], None],
) -> None:
    (tmp_path / "in").write_text(LINE + "\n")
    done = client.run(zoo, server.writer, "online..every_type", "in", tmp_path / "in", "-c", "-t|")
    refusal = "'bulk' is not understood: ringlog runs procedure calls, queries and session settings."
    assert refusal in done.stdout + done.stderr
    assert stored(admin) == []
    not_served("INSERT BULK is not served", refusal)
