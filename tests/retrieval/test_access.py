"""Rights over HTTP: PostgreSQL decides, under the login of the request."""

import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from ringlog.clients import ReadRefused, read
from ringlog.history.connection import ReadError, connect
from ringlog.retrieval.serving.access import Access
from ringlog.retrieval.serving.refused import Refused, refused
from ringlog.retrieval.serving.settings import LoginServer
from ringlog.server.embedded.postgres import Postgres
from servers import Login, free_port, ringlog, serving
from waiting import wait_until

ME = "/api/v1/me"


def test_requests_without_a_login_read_as_the_open_role(anyone: httpx.Client) -> None:
    assert anyone.get(ME).json()["login"] == "display"


def test_a_login_reads_as_itself(web) -> None:
    with web.client(web.server.reader) as client:
        assert client.get(ME).json()["login"] == "reader"


def test_postgresql_refuses_logins_without_the_right(web) -> None:
    """A writer may call put and nothing else."""
    with web.client(web.server.writer) as client:
        answer = client.get("/api/v1/data", params={"signal": "sr_rf/power"})
    assert answer.status_code == 403


@pytest.mark.parametrize("login", [Login("reader", "wrong"), Login("nobody", "x"), Login("postgres", "")])
def test_a_wrong_password_is_401(web, login: Login) -> None:
    with web.client(login) as client:
        answer = client.get(ME)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert login.password not in answer.text or not login.password


@pytest.mark.parametrize(
    "header", ["Basic", "Basic !!", "Basic Og==", "Bearer none", "Digest x", "Basic " + "A" * 9000]
)
def test_credentials_that_cannot_be_read_are_401(anyone: httpx.Client, header: str) -> None:
    assert anyone.get(ME, headers={"Authorization": header}).status_code == 401


def test_a_token_represents_its_login(web, anyone: httpx.Client) -> None:
    with web.client(web.server.reader) as client:
        token = client.post("/api/v1/token").json()["token"]
    answer = anyone.get(ME, headers={"Authorization": f"Bearer {token}"})
    assert answer.json()["login"] == "reader"


def test_only_a_login_gets_a_token(web, anyone: httpx.Client) -> None:
    for path in ("/api/v1/token", "/iceberg/v1/oauth/tokens"):
        assert anyone.post(path).status_code == 401
    with web.client(Login("reader", "wrong")) as client:
        assert client.post("/api/v1/token").status_code == 401


def test_nothing_can_be_written(anyone: httpx.Client) -> None:
    """Every connection is read-only, whatever its login may do elsewhere."""
    for method in ("PUT", "DELETE", "PATCH", "POST"):
        assert anyone.request(method, "/api/v1/data", params={"signal": "sr_rf/power"}).status_code == 405


def test_browsers_get_headers_that_forbid_other_origins(anyone: httpx.Client) -> None:
    answer = anyone.get("/", headers={"Origin": "https://elsewhere.example"})
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_without_an_open_role_a_login_is_required() -> None:
    access = Access(LoginServer("host=127.0.0.1 dbname=ringlog"), 60.0)
    with pytest.raises(Refused) as refusal:
        access.login(None)
    assert refusal.value.status == 401


def test_a_password_is_not_in_the_representation_of_a_login() -> None:
    access = Access(LoginServer("host=127.0.0.1 dbname=ringlog", "user=display password=secret-word"), 60.0)
    assert "secret-word" not in repr(access.login(None))


@pytest.mark.long
def test_https(temporary_directory: Path) -> None:
    made = ringlog("cert", temporary_directory / "web-tls", "--host", "localhost")
    assert made.returncode == 0, made.stderr
    certificate, key = (temporary_directory / "web-tls" / f"ringlog.{kind}" for kind in ("crt", "key"))
    port = free_port()
    options = ("--http", f"127.0.0.1:{port}", "--tls-cert", certificate, "--tls-key", key)
    with serving(temporary_directory / "https", *map(str, options)):
        trusted = ssl.create_default_context(cafile=str(certificate))
        with httpx.Client(verify=trusted, timeout=60, trust_env=False) as client:
            answer = client.get(f"https://localhost:{port}{ME}")
        with pytest.raises(ReadRefused, match=r"not trusted here \(self-signed certificate\).*SSL_CERT_FILE"):
            read("x", "now-1h", server=f"https://localhost:{port}")
        words = rf"answers nobody without a login: give https://NAME@localhost:{port}.*RINGLOG_PASSWORD"
        with pytest.raises(ReadRefused, match=words) as refusal:
            read("x", "now-1h", server=f"https://localhost:{port}", certificate=certificate)
        assert refusal.value.status == 401
        # and without a named role nothing can be read without a login
        assert answer.status_code == 401


def test_a_role_without_http_is_refused(temporary_directory: Path) -> None:
    answer = ringlog("serve", "--http-role", "display", "--data", temporary_directory / "never")
    assert answer.returncode == 2
    assert "--http HOST:PORT" in answer.stderr


def test_a_locked_login_is_401_with_the_reason(web) -> None:
    login = Login("locked_reader", "pass-word")
    words = ("--password-stdin", "--data", web.server.data)
    assert ringlog("user", "add", login.user, "--reader", *words, stdin=login.password).returncode == 0
    assert ringlog("user", "lock", login.user, "--data", web.server.data).returncode == 0
    with web.client(login) as client:
        answer = client.get(ME)
    assert answer.status_code == 401
    assert "locked" in answer.text
    assert answer.headers["www-authenticate"].startswith("Basic")


@pytest.fixture
def admin_of_web(web) -> Iterator[psycopg.Connection]:
    with psycopg.connect(web.server.dsn, autocommit=True) as connection:
        yield connection


def test_a_login_with_as_many_connections_as_it_may_is_503_with_the_reason(web, admin_of_web) -> None:
    login = Login("narrow_reader", "pass-word")
    words = ("--password-stdin", "--data", web.server.data)
    assert ringlog("user", "add", login.user, "--reader", *words, stdin=login.password).returncode == 0
    admin_of_web.execute("alter role narrow_reader connection limit 0")
    with web.client(login) as client:
        answer = client.get(ME)
    assert answer.status_code == 503
    assert "as many connections as it may" in answer.text


def test_a_login_without_the_right_to_connect_is_403(web, admin_of_web) -> None:
    admin_of_web.execute("create database closed_to_readers")
    admin_of_web.execute("revoke connect on database closed_to_readers from public")
    with pytest.raises(ReadError) as closed:
        connect(make_conninfo(web.server.dsn_of(web.server.reader), dbname="closed_to_readers"))
    admin_of_web.execute("drop database closed_to_readers")
    answer = refused(closed.value)
    assert (answer.status, str(answer)) == (403, "this login has no right to connect to the database")


def test_an_open_role_for_which_the_gateway_may_not_act_is_named(web) -> None:
    """The gateway must not act for a locked role, or for one without login."""
    with pytest.raises(ReadError) as forbidden:
        connect(make_conninfo(web.server.dsn_of(web.server.reader), options="-c role=daq_writer"))
    answer = refused(forbidden.value)
    assert answer.status == 503
    assert str(answer).startswith('role "daq_writer" is locked, or it is no login: ')
    assert "--http-role" in str(answer)


def test_a_missing_open_role_is_named(scratch_postgres: Postgres) -> None:
    conninfo = make_conninfo(scratch_postgres.conninfo("postgres"), options="-c role=nobody_yet")
    with pytest.raises(ReadError) as missing:
        connect(conninfo)
    answer = refused(missing.value)
    assert answer.status == 503
    assert str(answer).startswith('role "nobody_yet" does not exist: ')
    assert "ringlog user add NAME --reader" in str(answer)


@pytest.mark.parametrize("end", ["password 'another'", "valid until '2020-01-01'"])
def test_a_password_that_has_ended_is_refused_while_it_is_used(web, admin_of_web, end: str) -> None:
    """Tokens and live streams end too."""
    login = Login("changing_reader", "pass-word")
    words = ("--password-stdin", "--data", web.server.data)
    assert ringlog("user", "add", login.user, "--reader", *words, stdin=login.password).returncode == 0
    with web.client(login) as client, web.client() as other:
        token = client.post("/api/v1/token").json()["token"]
        by_token = {"Authorization": f"Bearer {token}"}
        assert other.get(ME, headers=by_token).status_code == 200
        with client.stream("GET", "/api/v1/live", params={"signal": "sr_rf/power"}) as live:
            lines = live.iter_lines()
            assert next(lines)
            admin_of_web.execute(f"alter role {login.user} {end}".encode())
            # the server asks PostgreSQL again after two seconds, for each of them
            wait_until(lambda: client.get(ME).status_code == 401)
            wait_until(lambda: other.get(ME, headers=by_token).status_code == 401)
            assert any("the login was refused" in line for line in lines)
    assert ringlog("user", "remove", login.user, "--data", web.server.data).returncode == 0


def test_tokens_of_one_login_do_not_end_those_of_others(web) -> None:
    access = Access(LoginServer("host=127.0.0.1 dbname=ringlog"), 60.0)
    one, other = (access.login(f"Basic {shown}") for shown in ("b25lOng=", "b3RoZXI6eA=="))
    assert (one.name, other.name) == ("one", "other")
    kept, _ = access.token(other)
    for _ in range(2000):
        last, _ = access.token(one)
    assert access.login(f"Bearer {kept}") == other
    assert access.login(f"Bearer {last}") == one


def test_wrong_passwords_are_slowed_and_delay_nobody_else(web) -> None:
    login = Login("guessed_reader", "pass-word")
    words = ("--password-stdin", "--data", web.server.data)
    assert ringlog("user", "add", login.user, "--reader", *words, stdin=login.password).returncode == 0
    with web.client(login) as right, ThreadPoolExecutor(50) as threads:
        assert right.get(ME).status_code == 200

        def guess(number: int) -> int:
            with web.client(Login(login.user, f"guess {number}")) as client:
                return client.get(ME).status_code

        assert [*threads.map(guess, range(10))] == [401] * 10
        began = time.monotonic()
        answers = threads.map(guess, range(10, 60))
        assert right.get(ME).status_code == 200
        tried = [*answers].count(401)
        # one in a second, further ones are refused
        assert 0 < tried <= time.monotonic() - began + 2
    assert ringlog("user", "remove", login.user, "--data", web.server.data).returncode == 0
