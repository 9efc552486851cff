"""TLS: the negotiation of real clients with the server, in every combination."""

import signal
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pymssql
import pytds
import pytest

import raw_tds
from raw_client import RawClient
from raw_replies import read_reply
from relay import relay
from ringlog.clients import Address
from ringlog.history.sources import tds
from servers import Login, RunningServer, free_port, ringlog, serving
from tds_clients import rows_of
from waiting import PATIENCE, wait_until

PLAIN_QUERY = "select 42 as answer"


@pytest.fixture(scope="module")
def certificate(temporary_directory: Path) -> Path:
    """A certificate of `ringlog cert`, with its key in the same folder."""
    made = ringlog("cert", temporary_directory / "tls", "--host", "localhost", "--host", "127.0.0.1")
    assert made.returncode == 0, made.stderr
    return temporary_directory / "tls" / "ringlog.crt"


@contextmanager
def encrypting(directory: Path, certificate: Path, use: str) -> Iterator[RunningServer]:
    key = certificate.with_suffix(".key")
    options = ["--tls-cert", str(certificate), "--tls-key", str(key), "--tls", use]
    with serving(directory / f"tls-{use}", *options) as server:
        yield server


@pytest.fixture(scope="module")
def offering(temporary_directory: Path, certificate: Path) -> Iterator[RunningServer]:
    with encrypting(temporary_directory, certificate, "offered") as server:
        yield server


@pytest.fixture(scope="module")
def requiring(temporary_directory: Path, certificate: Path) -> Iterator[RunningServer]:
    with encrypting(temporary_directory, certificate, "required") as server:
        yield server


@pytest.fixture(params=["none", "offered", "required"])
def pairing(request: pytest.FixtureRequest) -> tuple[str, RunningServer]:
    """A server, and its TLS setting."""
    name = {"none": "server", "offered": "offering", "required": "requiring"}[request.param]
    return request.param, request.getfixturevalue(name)


def tsql(server: RunningServer, directory: Path, version: str, *settings: str) -> list[str] | None:
    """The rows that tsql receives; None if it cannot log in."""
    lines = [f"host = {server.host}", f"port = {server.port}", f"tds version = {version}", *settings]
    configuration = directory / "freetds.conf"
    configuration.write_text("[tls]\n" + "\n".join(lines) + "\n")
    done = subprocess.run(
        ["tsql", "-S", "tls", "-U", server.reader.user, "-P", server.reader.password, "-o", "q"],
        input=f"{PLAIN_QUERY}\ngo\n",
        env={"FREETDSCONF": str(configuration), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    return done.stdout.split() if done.returncode == 0 else None


@pytest.mark.parametrize("version", ["7.1", "7.4"])
@pytest.mark.parametrize(
    ("wish", "works_with"),
    [
        ("off", {"none", "offered"}),
        ("request", {"none", "offered", "required"}),
        ("require", {"offered", "required"}),
    ],
)
def test_freetds(
    pairing: tuple[str, RunningServer], tmp_path: Path, version: str, wish: str, works_with: set[str]
) -> None:
    use, server = pairing
    answer = tsql(server, tmp_path, version, f"encryption = {wish}")
    assert answer == (["answer", "42"] if use in works_with else None)


def test_a_client_set_not_to_encrypt_is_named_in_the_log(requiring: RunningServer, tmp_path: Path) -> None:
    log = requiring.data.with_name(requiring.data.name + ".stderr")
    before = len(log.read_text())
    assert tsql(requiring, tmp_path, "7.4", "encryption = off") is None
    words = "this server demands TLS, and the client's settings rule it out (FreeTDS: encryption = off)"
    wait_until(lambda: words in log.read_text()[before:], lambda: log.read_text()[before:])


def test_freetds_that_checks_the_certificate(
    requiring: RunningServer, certificate: Path, tmp_path: Path
) -> None:
    for name, expected in (
        (certificate, ["answer", "42"]),
        (Path("/etc/ssl/certs/ca-certificates.crt"), None),
    ):
        settings = ["encryption = require", f"ca file = {name}", "check certificate hostname = no"]
        assert tsql(requiring, tmp_path, "7.4", *settings) == expected


@pytest.mark.parametrize("wish", ["off", "request", "require"])
def test_pymssql(pairing: tuple[str, RunningServer], wish: str) -> None:
    use, server = pairing
    arguments = {
        "server": server.host,
        "port": str(server.port),
        "user": server.reader.user,
        "password": server.reader.password,
        "encryption": wish,
        "login_timeout": 100,
    }
    if (use, wish) in (("none", "require"), ("required", "off")):
        # InterfaceError, if the client gives the message of an earlier connection
        with pytest.raises((pymssql.OperationalError, pymssql.InterfaceError)):
            pymssql.connect(**arguments)
        return
    with pymssql.connect(**arguments) as connection, connection.cursor() as cursor:
        for _ in range(5):  # the socket moves from the threads for calls to those for statements
            cursor.execute(PLAIN_QUERY)
            assert cursor.fetchall() == [(42,)]


def test_the_client_of_old_servers(pairing: tuple[str, RunningServer]) -> None:
    _, server = pairing
    address = Address(server.reader.user, server.host, server.port)
    with closing(tds.session(address, server.reader.password, "7.4")) as old:
        for _ in range(2):
            (batch,) = tds.rows(old, PLAIN_QUERY)
            assert batch["answer"].to_pylist() == [42]


@pytest.mark.parametrize("login_only", [False, True])
def test_python_tds(offering: RunningServer, certificate: Path, login_only: bool) -> None:
    with (
        pytds.connect(
            dsn=offering.host,
            port=offering.port,
            user=offering.reader.user,
            password=offering.reader.password,
            cafile=str(certificate),
            validate_host=False,
            enc_login_only=login_only,
            login_timeout=100,
        ) as connection,
        connection.cursor() as cursor,
    ):
        assert rows_of(cursor, "select repeat('x', 100000)") == [("x" * 100_000,)]


@contextmanager
def overheard(server: RunningServer) -> Iterator[tuple[int, bytearray]]:
    """A proxy to the server, and all bytes sent through it."""
    heard = bytearray()

    def hear(part: bytes, from_client: bool) -> bool:
        heard.extend(part)
        return True

    with relay(server, hear) as port:
        yield port, heard


@pytest.mark.parametrize(("wish", "hides_rows"), [("request", False), ("require", True)])
def test_bytes_that_can_be_overheard(offering: RunningServer, wish: str, hides_rows: bool) -> None:
    """A client that does not require encryption gets only its login encrypted."""
    password = offering.reader.password.encode("utf-16-le")
    scrambled = bytes(((byte << 4 | byte >> 4) & 0xFF) ^ 0xA5 for byte in password)
    with overheard(offering) as (port, heard):
        with (
            pymssql.connect(
                server="127.0.0.1",
                port=str(port),
                user=offering.reader.user,
                password=offering.reader.password,
                encryption=wish,
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("select 'a row to be seen' as a")
            cursor.fetchall()
        assert scrambled not in heard
        assert password not in heard
        assert ("a row to be seen".encode("utf-16-le") in heard) != hides_rows


class TlsClient(RawClient):
    """A client whose connection is TLS from the first byte."""

    def __init__(self, server: RunningServer, certificate: Path, alpn: str | None = None) -> None:
        super().__init__(server.host, server.port)
        context = ssl.create_default_context(cafile=certificate)
        if alpn:
            context.set_alpn_protocols([alpn])
        self.tls = context.wrap_socket(self.socket, server_hostname="localhost")
        self.socket = self.tls


@pytest.mark.parametrize("alpn", ["tds/8.0", None])
def test_tds_8(requiring: RunningServer, certificate: Path, alpn: str | None) -> None:
    with TlsClient(requiring, certificate, alpn) as client:
        assert client.tls.selected_alpn_protocol() == alpn
        reply = client.log_in7(requiring.reader)
        assert b"\xad" in reply
        assert b"\xd1\x04\x2a\0\0\0" in client.batch(PLAIN_QUERY)


def test_another_protocol_inside_tls_is_refused(requiring: RunningServer, certificate: Path) -> None:
    with pytest.raises((ssl.SSLError, OSError)):
        TlsClient(requiring, certificate, "http/1.1")


def test_tds_5_inside_tls(requiring: RunningServer, certificate: Path) -> None:
    """As in ASE: TLS first, then the login of TDS 5.0."""
    with TlsClient(requiring, certificate) as client:
        assert client.log_in5(requiring.reader).login == 5
        assert client.language(PLAIN_QUERY).rows == [[42]]


def test_a_clear_login_where_tls_is_required(requiring: RunningServer) -> None:
    with RawClient(requiring.host, requiring.port) as client:
        reply = client.log_in5(requiring.reader)
        assert reply.login != 5
        assert "demands TLS" in reply.errors[0].text
    with RawClient(requiring.host, requiring.port) as client:
        assert "demands TLS".encode("utf-16-le") in client.log_in7(requiring.reader)


def test_tls_on_a_server_without_it(server: RunningServer, certificate: Path) -> None:
    with pytest.raises((ssl.SSLError, OSError)):
        TlsClient(server, certificate)


@pytest.mark.parametrize("first", [b"\x16", b"\x16\x03\x01\x40\x00" + b"x" * 400, b"\x16" * 5000])
def test_invalid_handshakes(offering: RunningServer, first: bytes) -> None:
    # the server may disconnect before everything is sent
    with socket.create_connection((offering.host, offering.port), 20) as client, suppress(OSError):
        client.sendall(first)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass


# --- encrypted passwords of TDS 5.0 ---


def test_an_encrypted_password_at_5(server: RunningServer, tmp_path: Path) -> None:
    """FreeTDS encrypts its password after a nonce with the server's RSA key; the rest is not encrypted."""
    with overheard(server) as (port, heard):
        through = replace(server, host="127.0.0.1", port=port)
        assert tsql(through, tmp_path, "5.0", "encryption = require") == ["answer", "42"]
        assert b"RSA PUBLIC KEY" in heard
        assert server.reader.password.encode() not in heard
        assert b"select 42" in heard


def test_a_wrong_encrypted_password_at_5(server: RunningServer, tmp_path: Path) -> None:
    wrong = replace(server, reader=Login(server.reader.user, "wrong"))
    assert tsql(wrong, tmp_path, "5.0", "encryption = require") is None


def encrypted_login(server: RunningServer, flags: int) -> bytes:
    """A login record without a password, with these security flags."""
    record = raw_tds.login5(Login(server.reader.user, ""))
    # the language and its flag precede: 31 * 6 + 8 + … in the layout of raw_tds.login5
    at = record.index(b"us_english") + 31 + 1 + 2
    assert record[at] == 0
    return record[:at] + bytes([flags]) + record[at + 1 :]


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"\x65\x03\x01\x1f\x00",
        b"\x65\x03\x00\x1f\x00",
        b"\xe6" + bytes(20),
        raw_tds.language("select 1"),
        b"\x65\x03\x01\x1f\x00\xec\x0e\x00\x01" + bytes(7) + b"\xe1\xff\xff\xff\x7f\x00\xd7" + b"\xff" * 200,
    ],
)
def test_invalid_responses(server: RunningServer, response: bytes) -> None:
    with RawClient(server.host, server.port) as client:
        client.send(raw_tds.LOGIN5, encrypted_login(server, 0xA0))
        challenge = client.receive()
        assert challenge[3] == 7, "the server negotiates"
        client.send(raw_tds.NORMAL, response)
        with pytest.raises((EOFError, OSError)):
            client.receive()


def test_a_password_encrypted_for_another_nonce_is_wrong(server: RunningServer) -> None:
    """The answer to one challenge is invalid for the next."""
    with RawClient(server.host, server.port) as client:
        client.send(raw_tds.LOGIN5, encrypted_login(server, 0xA0))
        client.receive()
        value = bytes(256)
        response = b"\x65\x03\x01\x1f\x00\xec\x0e\x00\x01" + bytes(7) + b"\xe1\xff\xff\xff\x7f\x00\xd7"
        client.send(raw_tds.NORMAL, response + len(value).to_bytes(4, "little") + value)
        reply = read_reply(client.receive())
        assert (reply.login, [error.number for error in reply.errors]) == (6, [4002])


def test_older_ways_to_encrypt_are_refused(server: RunningServer) -> None:
    with RawClient(server.host, server.port) as client:
        client.send(raw_tds.LOGIN5, encrypted_login(server, 0x01))
        assert "without a nonce" in read_reply(client.receive()).errors[0].text


# --- the command line ---


def certificate_shown(server: RunningServer) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((server.host, server.port), PATIENCE) as plain,
        context.wrap_socket(plain) as encrypted,
    ):
        shown = encrypted.getpeercert(binary_form=True)
        assert shown is not None
        return shown


@pytest.mark.parametrize(
    "asked",
    [pytest.param(False, id="by the file"), pytest.param(True, id="by SIGHUP", marks=pytest.mark.long)],
)
def test_a_renewed_certificate_is_taken_without_a_restart(
    temporary_directory: Path, tmp_path: Path, asked: bool
) -> None:
    """One that cannot be used changes nothing; an expiry is in the log and among the metrics."""
    for folder, days in (("old", "1"), ("new", "400")):
        made = ringlog("cert", tmp_path / folder, "--days", days, "--host", "localhost")
        assert made.returncode == 0, made.stderr
    crt, key = tmp_path / "old" / "ringlog.crt", tmp_path / "old" / "ringlog.key"
    metrics = free_port()
    options = ["--tls-cert", str(crt), "--tls-key", str(key), "--metrics", f"127.0.0.1:{metrics}"]
    data = temporary_directory / f"renewed-{asked}"

    def left() -> float:
        with urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=PATIENCE) as answer:
            lines = answer.read().decode().splitlines()
        name = "ringlog_certificate_expiry_seconds "
        return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    with serving(data, *options) as server:
        log = data.with_name(data.name + ".stderr")
        assert f"the certificate {crt} expires on" in log.read_text()
        assert 0 < left() < 86_400
        before = certificate_shown(server)
        with RawClient(server.host, server.port) as client:
            client.log_in5(server.reader)
            crt.write_text("no certificate")
            if asked:
                server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "the certificate from before stays in use" in log.read_text(), log.read_text)
            assert certificate_shown(server) == before
            for file in (crt, key):
                (tmp_path / "new" / file.name).replace(file)
            if asked:
                server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: certificate_shown(server) != before)
            assert left() > 300 * 86_400
            assert client.language("select 1 as one").rows == [[1]]
        assert server.process.poll() is None


def test_a_key_is_for_its_owner_and_never_overwritten(certificate: Path) -> None:
    key = certificate.with_suffix(".key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_text()
    again = ringlog("cert", certificate.parent)
    assert again.returncode == 2
    assert "not overwritten" in again.stderr
    assert key.read_text() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tls", "required"], "--tls-cert"),
        (["--tls-cert", "{certificate}"], "must be given together"),
        (["--tls-cert", "{certificate}", "--tls-key", "/nowhere.key"], "/nowhere.key"),
    ],
)
def test_half_of_the_options_of_tls(
    tmp_path: Path, certificate: Path, options: list[str], words: str
) -> None:
    filled = [option.format(certificate=certificate) for option in options]
    refused = ringlog("serve", "--data", tmp_path / "data", *filled)
    assert refused.returncode == 2
    assert words in refused.stderr
    assert not (tmp_path / "data").exists()
