"""Encryption.

Against a server that requires TLS. Clients that check the certificate get the server's own.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from client_compat import CLIENTS as IN_THE_CLEAR
from client_compat import (
    Client,
    Clients,
    Conversation,
    Programs,
    ct_library,
    db_library,
    go,
    jdbc,
    node,
    odbc_18,
    python,
    tdsodbc,
)
from servers import Login, ringlog, serving
from tds_clients import Param

KNOWN = {client.id: client for client in IN_THE_CLEAR}
JTDS = "jdbc:jtds:sqlserver://{host}:{port};ssl=require"
MSSQL = "jdbc:sqlserver://{host}:{port};"


def tls(client: str, name: str, start: Callable[[Clients, Login], Conversation]) -> Client:
    return replace(KNOWN[client], name=name, start=start, missing={}, not_yet={})


def encrypting_node(encrypt: str) -> Callable[[Clients, Login], Conversation]:
    return lambda clients, login: node(clients, login, encrypt, str(clients.certificate))


CLIENTS = [
    tls("ct-library 7.4", "ct-library, encryption = require", ct_library("7.4")),
    tls("db-library 7.4", "db-library, encryption = require", db_library("7.4")),
    tls("pymssql 7.4", "pymssql, encryption=require", python("pymssql_client.py", "7.4", "require")),
    tls("python-tds 7.4", "python-tds, cafile", python("pytds_client.py", "{certificate}")),
    tls("pyodbc + tdsodbc 7.4", "pyodbc + tdsodbc, Encryption=require", tdsodbc("7.4", "require")),
    tls(
        "pyodbc + ODBC Driver 18 7.4",
        "pyodbc + ODBC Driver 18, Encrypt=yes",
        odbc_18("Encrypt=yes;TrustServerCertificate=yes"),
    ),
    tls(
        "pyodbc + ODBC Driver 18 7.4",
        "pyodbc + ODBC Driver 18, Encrypt=strict",
        odbc_18("Encrypt=strict;ServerCertificate={certificate}"),
    ),
    tls("jTDS, sqlserver 7.1", "jTDS, ssl=require", jdbc(JTDS)),
    tls(
        "mssql-jdbc, encrypt=false 7.4",
        "mssql-jdbc, encrypt=true",
        jdbc(MSSQL + "encrypt=true;trustServerCertificate=true"),
    ),
    tls(
        "mssql-jdbc, encrypt=false 7.4",
        "mssql-jdbc, encrypt=strict",
        jdbc(MSSQL + "encrypt=strict;serverCertificate={certificate}"),
    ),
    tls("go-mssqldb 7.4", "go-mssqldb, encrypt=true", go("encrypt=true&certificate={certificate}")),
    tls("go-mssqldb 7.4", "go-mssqldb, encrypt=strict", go("encrypt=strict&certificate={certificate}")),
    tls("tedious 7.4", "tedious, encrypt: true", encrypting_node("true")),
    tls("tedious 7.4", "tedious, encrypt: 'strict'", encrypting_node("strict")),
]


@pytest.fixture(scope="module")
def encrypted(programs: Programs, temporary_directory: Path) -> Iterator[Clients]:
    """The clients of a server that demands TLS."""
    directory = temporary_directory / "client-compat-certificate"
    made = ringlog("cert", directory, "--host", "localhost", "--host", "127.0.0.1")
    assert made.returncode == 0, made.stderr
    certificate = directory / "ringlog.crt"
    options = (
        "--tls-cert",
        str(certificate),
        "--tls-key",
        str(directory / "ringlog.key"),
        "--tls",
        "required",
    )
    with serving(temporary_directory / "client-compat-served", *options) as server:
        # go-mssqldb needs this suffix
        named = shutil.copy(certificate, directory / "ringlog.pem")
        yield Clients(server, programs, temporary_directory / "client-compat-encrypted", Path(named))


def test_put_and_get(client: Client, encrypted: Clients) -> None:
    seq_no, at = Param("int", "3"), Param("datetime", "2026-01-02 03:04:05.500")
    with encrypted.session(client, encrypted.server.writer) as writer:
        writer.login.good()
        writer.call("put_every_type", seq_no, at).good()
    with encrypted.session(client, encrypted.server.reader) as reader:
        ((found, *_),) = reader.call("get_every_type", Param("int", "1")).good().rows
        assert found == 3
        # more than one TLS record
        assert len(reader.query("select i from generate_series(1, 20000) as i").good().rows) == 20000


def test_wrong_password(client: Client, encrypted: Clients) -> None:
    with encrypted.session(client, Login(encrypted.server.writer.user, "wrong")) as session:
        assert session.login.number == 18456
