"""PostgreSQL with TimescaleDB, with the settings of ringlog's own PostgreSQL."""

import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import make_conninfo

from ringlog.clients.listening import free_port
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.peers.process import Account, new_folder, run_program, running

_SETTINGS = (
    *("fsync", "synchronous_commit", "full_page_writes", "max_connections", "max_locks_per_transaction"),
    *("shared_buffers", "effective_cache_size", "maintenance_work_mem", "work_mem", "huge_pages"),
    *("checkpoint_timeout", "checkpoint_completion_target", "max_wal_size", "min_wal_size"),
    *("wal_compression", "autovacuum_naptime", "autovacuum_vacuum_cost_limit"),
)
"""Of ringlog's PostgreSQL: they are the same here."""


@dataclass(frozen=True)
class Timescaledb:
    """A running server."""

    postmaster: psutil.Process
    conninfo: str
    """of its superuser"""
    administrator: psycopg.Connection
    version: str
    """of TimescaleDB and of PostgreSQL"""


@contextmanager
def serving(programs: Path, server: Server, folder: Path) -> Iterator[Timescaledb]:
    """A new cluster below a folder, run by the account that runs ringlog's PostgreSQL; removed at the end."""
    account = Account.of(server.postmaster)
    with new_folder(folder / "timescaledb", account) as own:
        data, password, port = own / "data", secrets.token_urlsafe(12), free_port()
        secret = own / "password"
        secret.touch(0o600)
        secret.write_text(password)
        account.own(secret)
        options = ("--no-locale", "--encoding=UTF8", "--auth=scram-sha-256", "--username=postgres")
        run_program([programs / "initdb", "-D", data, f"--pwfile={secret}", *options], account, own)
        names = {name: _current(server, name) for name in _SETTINGS}
        settings = names | {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
            "timezone": "UTC",
            "shared_preload_libraries": "timescaledb",
            "timescaledb.telemetry_level": "off",
        }
        with (data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        conninfo = make_conninfo(
            host="127.0.0.1", port=port, user="postgres", dbname="postgres", password=password
        )
        with (
            running(
                "PostgreSQL with TimescaleDB",
                [programs / "postgres", "-D", data],
                account,
                own,
                lambda: _answers(conninfo),
                # its data are removed: nothing needs to be written down
                signal.SIGQUIT,
            ) as process,
            psycopg.connect(conninfo, autocommit=True) as administrator,
        ):
            administrator.execute("create extension timescaledb")
            query = "select extversion from pg_extension where extname = 'timescaledb'"
            row = administrator.execute(query).fetchone()
            assert row is not None
            postgres = administrator.info.parameter_status("server_version")
            yield Timescaledb(process, conninfo, administrator, f"{row[0]} on PostgreSQL {postgres}")


def _current(server: Server, name: str) -> str:
    row = server.administrator.execute("select current_setting(%s)", [name]).fetchone()
    assert row is not None
    return str(row[0])


def _answers(conninfo: str) -> bool:
    try:
        psycopg.connect(conninfo, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
