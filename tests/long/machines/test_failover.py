"""Two machines: the primary dies, its standby takes over, a gateway dies. Writers and idle clients
continue."""

import os
import shutil
import signal
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import psycopg
import pymssql
import pytest
from psycopg.conninfo import make_conninfo

from clusters import Cluster, cluster_in
from servers import RINGLOG, free_port, ringlog
from spools import waiting
from waiting import PATIENCE, wait_until

TABLES = ("magnets", "cavities", "vacuum", "beam")
FACILITY = 'timezone = "UTC"\n' + "".join(
    f'[[table]]\nname = "{name}"\nrows = 1000\ncycle = 0.1\n'
    f'column = [{{ name = "count", signal = "{name}", type = "int" }}]\n'
    for name in TABLES
)
COUNTING = Path(__file__).parents[2] / "harness" / "counting.py"


@pytest.fixture
def machines(temporary_directory: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Cluster]]:
    """A primary with database `plant`, and its synchronous standby."""
    folder = temporary_directory / request.node.name[:30]
    folder.mkdir()
    primary, standby = cluster_in(folder / "a"), cluster_in(folder / "b")
    try:
        primary.make()
        primary.start()
        with psycopg.connect(primary.conninfo(), autocommit=True) as connection:
            connection.execute("create role keeper login createrole password 'k'")
            connection.execute("create database plant owner keeper")
        standby.run(
            *("pg_basebackup", "-h", primary.folder, "-p", str(primary.port), "-U", "postgres"),
            *("-D", standby.data, "-R", "-c", "fast"),
        )
        standby.start()
        with psycopg.connect(primary.conninfo(), autocommit=True) as connection:
            connection.execute("alter system set synchronous_standby_names = '*'")
            connection.execute("select pg_reload_conf()")
            state = "select sync_state from pg_stat_replication"
            wait_until(lambda: connection.execute(state).fetchall() == [("sync",)], lambda: standby.log)
        yield primary, standby
    finally:
        primary.die()
        standby.die()


@contextmanager
def gateway(folder: Path, port: int, dsn: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`ringlog serve` before both machines."""
    password = folder.parent / "gateway.password"
    log = folder.with_suffix(".log")
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *(RINGLOG, "serve", "--listen", f"127.0.0.1:{port}"),
                *("--gateway-password-file", password, *options),
            ],
            stdout=output,
            stderr=output,
            text=True,
            env=os.environ | {"RINGLOG_DSN": dsn},
        )
    try:

        def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            return "TDS on " in log.read_text()

        wait_until(is_ready, log.read_text)
        yield process
    finally:
        process.terminate()
        process.wait()


def installed(machines: tuple[Cluster, Cluster], folder: Path) -> str:
    """Installs a facility, a writer and a reader there; returns the connection string for a gateway."""
    primary, standby = machines
    facility = folder / "two.toml"
    facility.write_text(FACILITY)
    password = folder / "gateway.password"
    password.touch(0o600)
    password.write_text("of all gateways\n")
    dsn = make_conninfo(
        host="127.0.0.1,127.0.0.1",
        port=f"{primary.port},{standby.port}",
        user="keeper",
        password="k",
        dbname="plant",
    )
    made = ringlog("init", "--facility", facility, RINGLOG_DSN=dsn)
    assert made.returncode == 0, made.stderr
    for name, rights in (("writer", ["--writer", "--reader"]), ("reader", ["--reader"])):
        added = ringlog("user", "add", name, *rights, "--password-stdin", stdin="secret", RINGLOG_DSN=dsn)
        assert added.returncode == 0, added.stderr
    return dsn


def test_readers_use_the_standby(machines: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    primary, standby = machines
    dsn = installed(machines, tmp_path)
    with psycopg.connect(primary.conninfo(), autocommit=True) as connection:
        # the lag is in the gateway's metrics
        connection.execute("grant pg_monitor to keeper")
    port, metrics = free_port(), free_port()

    def connected(login: str, *, reads_only: bool = False) -> AbstractContextManager[pymssql.Connection]:
        return pymssql.connect(
            server="127.0.0.1",
            port=str(port),
            user=login,
            password="secret",
            autocommit=True,
            read_only=reads_only,
        )

    def reads_at(cursor: pymssql.Cursor) -> Cluster:
        cursor.execute("select inet_server_port()")
        ((found,),) = cursor.fetchall()
        return {primary.port: primary, standby.port: standby}[found]

    def put(cursor: pymssql.Cursor, number: int) -> None:
        cursor.execute(f"declare @now datetime = getdate() exec put_beam @time = @now, @count = {number}")

    def counts(cursor: pymssql.Cursor) -> list[tuple[int]]:
        cursor.execute("select count from log..beam order by count")
        return cursor.fetchall()

    with gateway(tmp_path / "only", port, dsn, "--metrics", f"127.0.0.1:{metrics}"):
        with connected("reader") as connection, connection.cursor() as cursor:
            assert reads_at(cursor) is primary
        with connected("writer") as connection, connection.cursor() as cursor:
            put(cursor, 1)
        with connected("reader", reads_only=True) as connection, connection.cursor() as cursor:
            assert reads_at(cursor) is standby
            wait_until(lambda: counts(cursor) == [(1,)], lambda: standby.log)
            with pytest.raises(pymssql.Error, match=r"3906|read-only"):
                cursor.execute("select 1 as a into #t")
        # a session reads its own rows from the primary, although replay on the standby is paused
        with psycopg.connect(standby.conninfo(), autocommit=True) as at_standby:
            at_standby.execute("select pg_wal_replay_pause()")
            with connected("writer", reads_only=True) as connection, connection.cursor() as cursor:
                assert reads_at(cursor) is standby
                put(cursor, 2)
                assert reads_at(cursor) is primary
                assert counts(cursor) == [(1,), (2,)]
            with connected("writer", reads_only=True) as connection, connection.cursor() as cursor:
                assert counts(cursor) == [(1,)]
                cursor.execute("select pg_try_advisory_lock(7)")
                with pytest.raises(pymssql.Error, match="holds settings, cursors or locks there"):
                    put(cursor, 3)
            at_standby.execute("select pg_wal_replay_resume()")
        # programs without this option read from standbys by their login
        ran = ringlog("user", "reads", "reader", "standby", RINGLOG_DSN=primary.conninfo("plant"))
        assert (ran.returncode, ran.stdout) == (
            0,
            "login reader reads from the standby from its next session on\n",
        )
        with connected("reader") as connection, connection.cursor() as cursor:
            assert reads_at(cursor) is standby
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as answer:
            assert 'ringlog_standby_replay_lag_bytes{host="' in answer.read().decode()
        # without a standby the primary has them all
        standby.die()
        with psycopg.connect(primary.conninfo(), autocommit=True) as connection:
            connection.execute("alter system reset synchronous_standby_names")
            connection.execute("select pg_reload_conf()")
        with connected("reader", reads_only=True) as connection, connection.cursor() as cursor:
            assert reads_at(cursor) is primary


def test_writers_continue_when_machines_die(machines: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    primary, standby = machines
    dsn = installed(machines, tmp_path)
    facility = tmp_path / "two.toml"
    shutil.copy(COUNTING, tmp_path)
    ports = free_port(), free_port()
    url = f"tds://writer@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"

    def numbers(machine: Cluster, table: str) -> Counter[int]:
        with psycopg.connect(machine.conninfo("plant")) as connection:
            query = f'select count::int from log."{table}"'.encode()
            return Counter(number for (number,) in connection.execute(query).fetchall())

    def given(table: str) -> int:
        file = tmp_path / f"given.{table}"
        return len(file.read_text().split()) if file.exists() else 0

    def rows_go_on(machine: Cluster) -> None:
        """Waits until rows taken from now on are in the log of each table."""
        before = {table: given(table) for table in TABLES}
        wait_until(
            lambda: all(max(numbers(machine, table), default=0) > before[table] for table in TABLES),
            (tmp_path / "load.log").read_text,
        )

    with (
        (tmp_path / "load.log").open("w") as log,
        gateway(tmp_path / "first", ports[0], dsn) as first,
        gateway(tmp_path / "second", ports[1], dsn),
        pymssql.connect(
            server="127.0.0.1", port=str(ports[1]), user="reader", password="secret", autocommit=True
        ) as idle,
        subprocess.Popen(
            [*(RINGLOG, "load", "--facility", facility, "--url", url), "--source", "python:counting:read"],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            env=os.environ | {"RINGLOG_PASSWORD": "secret", "RINGLOG_SPOOL": str(tmp_path / "spool")},
        ) as load,
        ExitStack() as ending,
    ):
        ending.callback(load.kill)
        rows_go_on(primary)
        with idle.cursor() as cursor:
            cursor.execute("select count(*) from online..beam")
            assert cursor.fetchone() == (1000,)
        primary.die()
        standby.promote()
        rows_go_on(standby)
        with idle.cursor() as cursor:
            cursor.execute("select max(count) from log..beam")
            assert cursor.fetchone()[0] > 0, "a client that was idle does not notice"
        first.send_signal(signal.SIGKILL)
        rows_go_on(standby)
        load.send_signal(signal.SIGTERM)
        assert load.wait(PATIENCE) == 0, (tmp_path / "load.log").read_text()
    for table in TABLES:
        found = numbers(standby, table)
        count = given(table)
        # the row in transit at the request to end may not have left the source
        assert set(range(1, count)) <= {*found, *waiting(tmp_path / "spool", table)}
        assert all(times == 1 for times in found.values())
