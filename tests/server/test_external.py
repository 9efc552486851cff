"""A separate PostgreSQL, of each installed version, with an administrator who is not a superuser."""

import json
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pymssql
import pytest
from psycopg.conninfo import make_conninfo

from clusters import running_cluster
from servers import FACILITY, ringlog, serving_external

pytestmark = pytest.mark.long

SETUP = """
create role keeper login createrole password 'k';
create database plant owner keeper;
"""
"""As docs/how-to/own-postgresql.md says."""
DISK = {
    "every login may write large objects, or messages to the WAL, in database plant",
    "every login may connect to database postgres, and write large objects there",
    "every login may connect to database template1, and write large objects there",
}


@pytest.mark.parametrize(
    "version", [pytest.param(15, marks=pytest.mark.long), pytest.param(16, marks=pytest.mark.long), 18]
)
def test_an_external_postgresql(data: Path, version: int) -> None:
    with running_cluster(data, version) as cluster:
        with psycopg.connect(cluster.conninfo(), autocommit=True) as admin:
            for statement in SETUP.split(";")[:-1]:
                admin.execute(statement.encode())
        dsn = make_conninfo(cluster.conninfo(), host="127.0.0.1", user="keeper", password="k", dbname="plant")
        made = ringlog("init", "--facility", FACILITY, RINGLOG_DSN=dsn)
        assert made.returncode == 0, made.stderr
        for name, right in (("writer", "--writer"), ("reader", "--reader")):
            words = ("user", "add", name, right, "--password-stdin")
            added = ringlog(*words, stdin="secret", RINGLOG_DSN=dsn)
            assert added.returncode == 0, added.stderr
        with serving_external(dsn, data.parent / "external") as (host, port):

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
        # the test's own pg_hba.conf permits everyone on the socket
        looked = ringlog("doctor", "--json", RINGLOG_DSN=dsn)
        assert looked.returncode == 0, looked.stderr
        [found] = [finding for finding in json.loads(looked.stdout) if "pg_hba.conf" in finding["what"]]
        assert "keeper may not read which logins need no password" in found["what"]
        assert "the login postgres" not in looked.stdout
        found = {finding["what"] for finding in json.loads(looked.stdout)}
        assert "authentication_timeout is 60 s" in found
        if "PostgreSQL 15 cannot reserve connections for writers" not in found:
            assert "no connections are reserved for writers" in found
            roles = "daq_writer, daq_table_writer, parameter_writer, ringlog_gateway"
            assert f"{roles} may not use reserved connections" in found
        assert found >= DISK
        assert "any login can write PostgreSQL's log and temporary tables without limit" in found
        assert "any login can use up transaction numbers and locks, and keep transactions open" in found
        with (
            psycopg.connect(cluster.conninfo("plant"), autocommit=True) as admin,
            psycopg.connect(make_conninfo(cluster.conninfo("plant"), user="reader")) as reader,
        ):
            for finding in json.loads(looked.stdout):
                if finding["what"] in DISK:
                    admin.execute(finding["do"].partition(": ")[2].encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute("select lo_from_bytea(0, 'a')")
        looked = ringlog("doctor", "--json", RINGLOG_DSN=dsn)
        assert not DISK & {finding["what"] for finding in json.loads(looked.stdout)}
        looked = ringlog("doctor", RINGLOG_DSN=cluster.conninfo("plant"))
        assert looked.returncode == 1
        assert "all can connect from local to all without a password (pg_hba.conf: trust)" in looked.stdout
