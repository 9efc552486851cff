"""A separate PostgreSQL, of each installed version, with an administrator who is not a superuser."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pymssql
import pytest
from psycopg.conninfo import make_conninfo

from clusters import cluster_in, running_cluster
from ringlog.gateway import Gateway
from servers import FACILITY, READER, WRITER, ringlog, serving_external

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


# --- TLS between the gateway and a PostgreSQL that requires it: Debian's, which has OpenSSL ---

PASSWORD = "super-Ω-3"


@dataclass(frozen=True)
class Encrypted:
    """A running PostgreSQL and its certificate."""

    port: int
    certificate: Path

    def conninfo(self, **settings: str | Path) -> str:
        """The superuser's connection string; the settings are libpq's."""
        words = {"host": "localhost"} | {name: str(value) for name, value in settings.items()}
        return make_conninfo(port=self.port, dbname="postgres", user="postgres", password=PASSWORD, **words)


@pytest.fixture(scope="module")
def encrypted(temporary_directory: Path) -> Iterator[Encrypted]:
    home = temporary_directory / "encrypted"
    made = ringlog("cert", home, "--host", "localhost")
    assert made.returncode == 0, made.stderr
    (home / "password").write_text(PASSWORD)
    cluster = cluster_in(home)
    cluster.make("--pwfile", home / "password", "--locale=C")
    (cluster.data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    cluster.start(ssl="on", ssl_cert_file=home / "ringlog.crt", ssl_key_file=home / "ringlog.key")
    try:
        yield Encrypted(cluster.port, home / "ringlog.crt")
    finally:
        cluster.die()


def test_all_connections_use_tls(encrypted: Encrypted, tmp_path: Path) -> None:
    dsn = encrypted.conninfo(sslmode="verify-full", sslrootcert=encrypted.certificate)
    with serving_external(dsn, tmp_path / "log", "--facility", FACILITY) as (host, port):
        for login, right in ((WRITER, "--writer"), (READER, "--reader")):
            words = ("user", "add", login.user, right, "--password-stdin")
            added = ringlog(*words, stdin=login.password, RINGLOG_DSN=dsn)
            assert added.returncode == 0, added.stderr
        with (
            pymssql.connect(
                server=host, port=str(port), user=WRITER.user, password=WRITER.password, autocommit=True
            ) as tds,
            tds.cursor() as cursor,
            psycopg.connect(dsn) as admin,
        ):
            cursor.callproc("put_sr_rf", (4, datetime(2023, 3, 17, 8, 20), 3.5, None))
            cursor.execute("select seq_no, replicate('x', 8000) from online..sr_rf where seq_no = 4")
            [(seq_no, text)] = cursor.fetchall()
            assert (seq_no, len(text)) == (4, 8000)
            connections = admin.execute(
                "select application_name, ssl from pg_stat_activity join pg_stat_ssl using (pid)"
                " where usename in (%s, 'ringlog_gateway')",
                [WRITER.user],
            ).fetchall()
    # those of the catalogue, of group commit and of the session
    assert len(connections) >= 3, connections
    assert all(is_encrypted for _, is_encrypted in connections), connections


def gateway(dsn: str) -> None:
    Gateway(dsn, port=0).stop()


def test_require_and_prefer_accept_any_certificate(
    encrypted: Encrypted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    for mode in ("require", "prefer"):
        gateway(encrypted.conninfo(sslmode=mode))


def test_another_certificate_is_not_trusted(encrypted: Encrypted, tmp_path: Path) -> None:
    made = ringlog("cert", tmp_path / "other", "--host", "127.0.0.1")
    assert made.returncode == 0, made.stderr
    for mode in ("verify-full", "verify-ca", "require"):
        with pytest.raises(ConnectionError, match="TLS: invalid peer certificate"):
            gateway(encrypted.conninfo(sslmode=mode, sslrootcert=tmp_path / "other" / "ringlog.crt"))


def test_verify_full_checks_the_name(encrypted: Encrypted) -> None:
    root = encrypted.certificate
    gateway(encrypted.conninfo(sslmode="verify-full", sslrootcert=root))
    gateway(encrypted.conninfo(sslmode="verify-ca", sslrootcert=root, host="127.0.0.1"))
    with pytest.raises(ConnectionError, match="not valid for name"):
        gateway(encrypted.conninfo(sslmode="verify-full", sslrootcert=root, host="127.0.0.1"))


def test_limits_that_cannot_be_kept_are_refused(
    encrypted: Encrypted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    with pytest.raises(ConnectionError, match="no pg_hba"):
        gateway(encrypted.conninfo(sslmode="disable"))
    with pytest.raises(ValueError, match="sslmode=verify-full needs a certificate to trust"):
        gateway(encrypted.conninfo(sslmode="verify-full"))
    with pytest.raises(ValueError, match="sslrootcert=system is not understood"):
        gateway(encrypted.conninfo(sslmode="verify-full", sslrootcert="system"))
    with pytest.raises(ValueError, match="cannot keep to sslcrl=/etc/crl"):
        gateway(encrypted.conninfo(sslmode="require", sslcrl="/etc/crl.pem"))
