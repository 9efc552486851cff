"""Tables distributed over three servers of a test."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import psycopg
import pymssql
from psycopg.conninfo import make_conninfo

from clusters import Cluster, cluster_in
from servers import ringlog

WHERE = {"magnets": None, "cavities": "b", "vacuum": "c"}
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Site:
    """A first server and the nodes b and c, each with a database `plant` whose owner is no superuser."""

    folder: Path
    servers: dict[str | None, Cluster]
    stack: ExitStack

    def add(self, name: str | None) -> None:
        """Adds another server, without objects of ringlog."""
        cluster = self.servers[name] = cluster_in(self.folder / (name or "first"))
        self.stack.callback(cluster.die)
        # short files of the log: they are copied
        cluster.make("--wal-segsize=1")
        start(cluster)
        with psycopg.connect(cluster.conninfo(), autocommit=True) as connection:
            if name is not None:
                # oids here differ from those there
                connection.execute("create role somebody")
            connection.execute("create role keeper login createrole password 'k'")
            # locking a login ends its sessions
            connection.execute("grant pg_signal_backend to keeper")
            connection.execute("create database plant owner keeper")

    @property
    def facility(self) -> Path:
        return self.folder / "plant.toml"

    @property
    def dsn(self) -> str:
        return self.dsn_of(None)

    def dsn_of(self, name: str | None) -> str:
        return make_conninfo(
            host="127.0.0.1",
            port=self.servers[name].port,
            user="keeper",
            dbname="plant",
            passfile=str(self.folder / "passwords"),
        )

    def write_facility(self, where: dict[str, str | None], columns: str = "", cycle: float = 0.1) -> None:
        text = 'timezone = "UTC"\n'
        for name in filter(None, self.servers):
            text += f'[[node]]\nname = "{name}"\ndsn = "{self.dsn_of(name)}"\n'
        for table, node in where.items():
            text += f'[[table]]\nname = "{table}"\nrows = 1000\ncycle = {cycle}\n'
            text += f'node = "{node}"\n' if node else ""
            text += f'[[table.column]]\nname = "count"\nsignal = "{table}"\ntype = "int"\n{columns}'
        self.facility.write_text(text)

    def rows(self, table: str, node: str | None) -> Counter[int]:
        """The counts in the log of a table, read on the server itself."""
        with psycopg.connect(self.servers[node].conninfo("plant")) as connection:
            query = f'select count::int from log."{table}"'.encode()
            return Counter(number for (number,) in connection.execute(query).fetchall())

    def admin(self, name: str | None) -> psycopg.Connection:
        return psycopg.connect(self.servers[name].conninfo("plant"), autocommit=True)


def start(cluster: Cluster) -> None:
    # written data survive killed processes: no waits for the disk
    cluster.start(max_connections=60, fsync="off")


def install(site: Site) -> str:
    made = ringlog("init", "--facility", site.facility, RINGLOG_DSN=site.dsn)
    assert made.returncode == 0, made.stderr
    return made.stdout


@contextmanager
def client(address: tuple[str, int], login: str = "writer") -> Iterator[pymssql.Cursor]:
    with (
        pymssql.connect(
            server=address[0],
            port=str(address[1]),
            user=login,
            password="secret",
            autocommit=True,
            login_timeout=100,
        ) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor


def put(cursor: pymssql.Cursor, table: str, number: int) -> None:
    cursor.callproc(f"put_{table}", (number, NOON + timedelta(seconds=number), number))


@cache
def _prepared(folder: Path) -> tuple[dict[str | None, Cluster], Path]:
    """Creates a site in this folder and stops it: its servers, and the folders of their files."""
    folder.mkdir()
    with ExitStack() as stack:
        made = Site(folder, {}, stack)
        (folder / "passwords").touch(0o600)
        (folder / "passwords").write_text("*:*:*:keeper:k\n")
        for name in (None, "b", "c"):
            made.add(name)
        made.write_facility(WHERE)
        install(made)
        for login, rights in (("writer", ["--writer", "--reader"]), ("reader", ["--reader"])):
            words = ("user", "add", login, *rights, "--password-stdin")
            added = ringlog(*words, stdin="secret", RINGLOG_DSN=made.dsn)
            assert added.returncode == 0, added.stderr
        for cluster in made.servers.values():
            cluster.stop()
    return made.servers, folder.rename(folder.with_name(folder.name + ".prepared"))


@contextmanager
def running_site(folder: Path) -> Iterator[Site]:
    """A site in this folder, which is removed at the end.

    It is made once per run and copied. Its data contain the folder and the ports, so only one exists at a
    time.
    """
    servers, prepared = _prepared(folder)
    assert not folder.exists(), "another site is there"
    subprocess.run(["cp", "-a", prepared, folder], check=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        made = Site(folder, dict(servers), stack)
        for cluster in servers.values():
            stack.callback(cluster.die)
            start(cluster)
        yield made
