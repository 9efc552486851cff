"""Separate PostgreSQL clusters of tests, created by `initdb`."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from psycopg.conninfo import make_conninfo

from ringlog.server.embedded.account import Account, account_for
from ringlog.server.embedded.programs import programs_for
from servers import free_port
from waiting import PATIENCE, is_alive, wait_until

# Debian 12 has PostgreSQL 15, and with it amcheck, which only a superuser may install, and OpenSSL.
DEBIAN = Path("/usr/lib/postgresql/15/bin")


@dataclass(frozen=True)
class Cluster:
    """A cluster in a folder; its superuser is `postgres`. It listens on 127.0.0.1 and on a socket there."""

    folder: Path
    account: Account
    programs: Path
    port: int

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def conninfo(self, database: str = "postgres") -> str:
        """The superuser's connection string, through the socket."""
        return make_conninfo(host=str(self.folder), port=self.port, user="postgres", dbname=database)

    def run(self, program: str, *arguments: str | Path) -> None:
        """Runs one of PostgreSQL's programs as the cluster's account."""
        self.account.run([str(self.programs / program), *map(str, arguments)], cwd=self.folder)

    def make(self, *options: str | Path) -> None:
        """`initdb`: no password on the socket, one over TCP."""
        # a test's cluster need not survive a crash of the machine: no waits for the disk
        words = ("-D", self.data, "-U", "postgres", "--encoding=UTF8", "--data-checksums", "--no-sync")
        self.run("initdb", *words, "--auth-local=trust", "--auth-host=scram-sha-256", *options)

    @property
    def postmaster(self) -> int | None:
        """The process named in its file, which remains after the process has died."""
        with suppress(FileNotFoundError):
            return int((self.data / "postmaster.pid").read_text().split()[0])
        return None

    def start(self, **settings: str | int | Path) -> None:
        # a new postmaster considers the old one alive until its parent has collected it
        wait_until(lambda: self.postmaster is None or not psutil.pid_exists(self.postmaster))
        own = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder}
        options = " ".join(f"-c {name}={value}" for name, value in (own | settings).items())
        self._control("start", "-l", self.folder / "log", "-o", options)

    def _control(self, what: str, *options: str | Path) -> None:
        """Waits until it is done: without an explicit limit pg_ctl gives up after a minute."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", f"{PATIENCE:.0f}", *options, what)

    def promote(self) -> None:
        self._control("promote")

    def stop(self) -> None:
        self._control("stop", "-m", "fast")

    def die(self) -> None:
        """Kills all processes at once, as in a crash of the machine."""
        if self.postmaster is None:
            return
        with suppress(psutil.NoSuchProcess):
            postmaster = psutil.Process(self.postmaster)
            postmaster.suspend()
            processes = [postmaster, *postmaster.children(recursive=True)]
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            wait_until(lambda: not any(is_alive(process.pid) for process in processes))


def cluster_in(folder: Path, version: int = 15) -> Cluster:
    """A cluster of this version (15 is Debian's) that does not exist yet. `folder` may contain files for
    it."""
    folder.mkdir(exist_ok=True)
    account = account_for(folder / "data")
    for path in (folder, *folder.iterdir()):
        account.own(path)
    programs = DEBIAN if version == 15 else programs_for(account, version)
    return Cluster(folder, account, programs, free_port())


@contextmanager
def running_cluster(folder: Path, version: int = 15) -> Iterator[Cluster]:
    """A new cluster with its server."""
    cluster = cluster_in(folder, version)
    cluster.make()
    cluster.start(max_connections=60)
    try:
        yield cluster
    finally:
        cluster.stop()
