"""TLS between the gateway and a PostgreSQL that requires it: Debian's, which has OpenSSL."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg
import pymssql
import pytest
from psycopg.conninfo import make_conninfo

from clusters import cluster_in
from ringlog.gateway import Gateway
from servers import FACILITY, READER, WRITER, ringlog, serving_external

pytestmark = pytest.mark.long

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
