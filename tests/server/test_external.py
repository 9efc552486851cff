"""A PostgreSQL of one's own, of each version that is here, under an administrator who is no superuser."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pymssql
import pytest
from psycopg.conninfo import make_conninfo

from ringlog.account import account_for
from ringlog.programs import programs_for
from servers import FACILITY, RINGLOG, free_port, ringlog

# Debian 12 has PostgreSQL 15, and with it amcheck, which only a superuser may install.
DEBIAN = Path("/usr/lib/postgresql/15/bin")

SETUP = """
create role keeper login createrole password 'k';
create database plant owner keeper;
"""
"""As docs/operator.md says."""


@contextmanager
def cluster(folder: Path, version: int) -> Iterator[str]:
    """A cluster of this version as initdb makes it; yields its superuser's connection string, over TCP."""
    folder.mkdir()
    account = account_for(folder / "data")
    account.own(folder)
    programs = DEBIAN if version == 15 else programs_for(account, version)
    data, port = folder / "data", free_port()
    account.run(
        [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "postgres",
            "--encoding=UTF8",
            "--data-checksums",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
        ],
        cwd=folder,
    )
    control = [str(programs / "pg_ctl"), "-D", str(data), "-w"]
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
    options += " -c max_connections=60"
    account.run([*control, "-l", str(folder / "log"), "-o", options, "start"], cwd=folder)
    try:
        yield make_conninfo(host=str(folder), port=port, user="postgres", dbname="postgres")
    finally:
        account.run([*control, "-m", "fast", "stop"], cwd=folder)


@pytest.mark.parametrize("version", [15, 16, 18])
def test_an_external_postgresql(data: Path, version: int) -> None:
    with cluster(data, version) as superuser:
        with psycopg.connect(superuser, autocommit=True) as admin:
            for statement in SETUP.split(";")[:-1]:
                admin.execute(statement.encode())
        dsn = make_conninfo(superuser, host="127.0.0.1", user="keeper", password="k", dbname="plant")
        made = ringlog("init", "--facility", FACILITY, RINGLOG_DSN=dsn)
        assert made.returncode == 0, made.stderr
        for name, right in (("writer", "--writer"), ("reader", "--reader")):
            words = ("user", "add", name, right, "--password-stdin")
            added = ringlog(*words, stdin="secret", RINGLOG_DSN=dsn)
            assert added.returncode == 0, added.stderr
        with serving_external(data.parent / "external", dsn) as (host, port):

            def client(user: str) -> pymssql.Connection:
                return pymssql.connect(
                    server=host, port=str(port), user=user, password="secret", autocommit=True
                )

            with client("writer") as connection, connection.cursor() as cursor:
                for number in range(1, 11):
                    cursor.callproc(
                        "put_sr_rf", (number, datetime.now(UTC).isoformat(), number + 0.5, number)
                    )
            with client("reader") as connection, connection.cursor() as cursor:
                cursor.execute("select count(time), max(power) from online..sr_rf")
                assert cursor.fetchall() == [(10, 10.5)]
                # one in ten goes to its log
                cursor.execute("exec get_trend 'sr_rf/power'")
                assert sum(row[1] for row in cursor.fetchall()) == 1
            again = ringlog("init", "--facility", FACILITY, RINGLOG_DSN=dsn)
            assert (again.returncode, again.stdout) == (0, "nothing to do\n")
            for words in (("maintain",), ("verify",), ("facility", "diff", FACILITY)):
                done = ringlog(*words, RINGLOG_DSN=dsn)
                assert done.returncode == 0, (words, done.stdout, done.stderr)


@contextmanager
def serving_external(log: Path, dsn: str) -> Iterator[tuple[str, int]]:
    """`ringlog serve` before such a PostgreSQL; yields the gateway's host and port."""
    command = [str(RINGLOG), "serve", "--listen", "127.0.0.1:0"]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | {"RINGLOG_DSN": dsn}
        ) as process,
    ):
        try:
            assert process.stdout is not None
            address = next((line for line in process.stdout if line.startswith("TDS on ")), None)
            assert address is not None, log.read_text()
            host, port = address.removeprefix("TDS on ").strip().rsplit(":", 1)
            yield host, int(port)
        finally:
            process.terminate()
