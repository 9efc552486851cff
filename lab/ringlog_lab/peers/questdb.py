"""QuestDB, from its jar: ILP over HTTP to write, PostgreSQL's protocol to read."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import make_conninfo

from ringlog.clients.listening import free_port
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.peers.process import Account, new_folder, running

# Options from the start script of QuestDB's own package, which is not in its jar.
_JAVA = (
    *("-XX:+UseParallelGC", "-XX:+UnlockExperimentalVMOptions"),
    *("--add-exports", "java.base/jdk.internal.math=io.questdb"),
    *("--add-opens", "java.base/java.lang=io.questdb"),
)


@dataclass(frozen=True)
class Questdb:
    """A running server."""

    process: psutil.Process
    address: str
    """of HTTP: host and port"""
    user: str
    password: str
    conninfo: str
    """for PostgreSQL's protocol"""
    data: Path
    version: str

    @property
    def sender(self) -> str:
        """The configuration of its client, which sends only when asked to."""
        return (
            f"http::addr={self.address};username={self.user};password={self.password};auto_flush=off;"
            "max_buf_size=1073741824;request_timeout=600000;"
        )


@contextmanager
def serving(jar: Path, server: Server, folder: Path) -> Iterator[Questdb]:
    """A new QuestDB below a folder; removed at the end. Acknowledged rows are on the disk."""
    account = Account.of(server.postmaster)
    with new_folder(folder / "questdb", account) as own:
        http, postgres, password = free_port(), free_port(), secrets.token_urlsafe(12)
        settings = {
            "http.net.bind.to": f"127.0.0.1:{http}",
            "http.user": "admin",
            "http.password": password,
            "http.min.enabled": "false",
            "line.tcp.enabled": "false",
            "pg.net.bind.to": f"127.0.0.1:{postgres}",
            "pg.user": "admin",
            "pg.password": password,
            "telemetry.enabled": "false",
            "cairo.commit.mode": "sync",
        }
        (own / "conf").mkdir(mode=0o700)
        file = own / "conf" / "server.conf"
        file.touch(0o600)
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        account.own(own / "conf")
        account.own(file)
        conninfo = make_conninfo(
            host="127.0.0.1", port=postgres, user="admin", password=password, dbname="qdb"
        )
        command: list[str | Path] = [
            "java",
            *_JAVA,
            "-p",
            jar,
            "-m",
            "io.questdb/io.questdb.ServerMain",
            "-d",
            own,
        ]
        with running("QuestDB", command, account, own, lambda: bool(_version(conninfo))) as process:
            yield Questdb(
                process, f"127.0.0.1:{http}", "admin", password, conninfo, own / "db", _version(conninfo)
            )


def _version(conninfo: str) -> str:
    """Its version string; empty if it does not answer."""
    try:
        with psycopg.connect(conninfo, connect_timeout=5, autocommit=True) as connection:
            row = connection.execute("select build()").fetchone()
    except psycopg.Error:
        return ""
    # Build Information: QuestDB 9.3.4, JDK 17.0.15, Commit Hash …
    return str(row[0]).removeprefix("Build Information: ").removeprefix("QuestDB ") if row else ""
