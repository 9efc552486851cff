"""Refusals of `ringlog load`, in one line each, before it writes anything."""

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from case_tables import cases
from scraping import read

from ringlog.clients import Address, AddressError, PasswordError, find_password
from ringlog.clients.spool.spool import Spool
from servers import RunningServer, free_port, ringlog
from waiting import wait_until

FACILITY = Path(__file__).with_name("facility.toml")
NOWHERE = "tds://writer@127.0.0.1:1"


def refusal(*options: str | Path, password: str | None = "secret") -> tuple[int, str]:
    """Exit code and standard error of `ringlog load`."""
    given = {} if password is None else {"RINGLOG_PASSWORD": password}
    ended = ringlog("load", "--facility", FACILITY, "--url", NOWHERE, *options, **given)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(("options", "complaint"), cases(__file__, "a_wrong_request_is_refused_in_one_line"))
def test_a_wrong_request_is_refused_in_one_line(options: list[str], complaint: str) -> None:
    code, output = refusal(*options)
    assert code == 2
    assert output.startswith(f"ringlog: {complaint}")
    assert output.count("\n") == 1


def test_a_table_without_its_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "beam.csv").write_text("time,current\n2026-03-01,1\n2026-03-02,x\n")
    code, output = refusal("--source", f"csv:{tmp_path}", "--tables", "magnet")
    assert (code, output) == (2, f"ringlog: --tables: {tmp_path} has no file magnet.csv\n")
    code, output = refusal("--source", f"csv:{tmp_path}")
    assert code == 2
    assert output.startswith(f"ringlog: {tmp_path}/beam.csv, line 3: column current: 'x' is not a number")


def test_a_missing_password_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RINGLOG_PASSWORD", raising=False)
    code, output = refusal(password=None)
    assert code == 2
    assert output.startswith(f"ringlog: no password for {NOWHERE}: give --password-file")


def test_an_unreachable_server_is_reported_and_waited_for(load: Callable[..., Any], spool: Path) -> None:
    port = free_port()
    one = load("--url", NOWHERE, "--tables", "beam", "--metrics", f"127.0.0.1:{port}")

    def keeps_rows() -> bool:
        assert one.process.poll() is None, one.end()
        with suppress(OSError):  # the process does not listen yet
            return read(port)["ringlog_writer_spooled_rows"]["beam"] >= 5
        return False

    wait_until(keeps_rows)
    code, output = one.stop()
    assert code == 0
    assert output.startswith(f"ringlog: {NOWHERE}: Unable to connect")
    assert "Rows are kept in the spool until the server answers" in output.splitlines()[0]
    with closing(Spool(spool / "127.0.0.1-1" / "beam.spool", "beam", ["current"], 40)) as kept:
        assert kept.depth >= 5
        assert kept.seq_no is None, "the ring's place is chosen by the server"


def test_a_wrong_password_is_refused_and_never_shown(address: Address) -> None:
    code, output = refusal("--url", str(address), password="not-the-password")
    assert code == 1
    assert output.startswith(f"ringlog: {address}: the server refused the login")
    assert "not-the-password" not in output


def test_a_password_in_the_url_is_used_and_never_shown(
    quick_server: RunningServer, load: Callable[..., Any]
) -> None:
    url = f"tds://writer:not%2Dthe%2Dpassword@{quick_server.host}:{quick_server.port}"
    code, output = load("--url", url).end()
    assert code == 1
    assert output.endswith("the server refused the login: Login failed for user 'writer'.\n")
    assert "password" not in output


def test_a_table_the_server_does_not_have_is_refused(
    address: Address, quick_server: RunningServer, tmp_path: Path
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(FACILITY.read_text().replace('"beam"', '"beem"'))
    code, output = refusal("--url", str(address), "--facility", other, password=quick_server.writer.password)
    assert code == 1
    assert output == "ringlog: error 2812: Could not find stored procedure 'last_beem'.\n"


def test_a_reader_may_not_write(
    quick_server: RunningServer, load: Callable[..., Any], stored: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    before = stored("beam"), stored("magnet")
    secret = tmp_path / "password"
    secret.touch(0o600)
    secret.write_text(quick_server.reader.password + "\n")
    url = f"tds://reader@{quick_server.host}:{quick_server.port}"
    code, output = load("--url", url, "--password-file", secret, "--tables", "beam,magnet").end()
    assert code == 1
    for table in ("beam", "magnet"):
        assert f"ringlog: {table}: error 229: permission denied for function claim_writer" in output
    assert (stored("beam"), stored("magnet")) == before


def test_a_facility_file_with_other_columns_is_refused(
    load: Callable[..., Any], stored: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    before = stored("magnet")
    wider = tmp_path / "wider.toml"
    wider.write_text(FACILITY.read_text().replace("count = 60", "count = 61"))
    code, output = load("--facility", wider, "--tables", "magnet").end()
    assert code == 1
    assert (
        "ringlog: magnet: error 8145: @current_61 is not a parameter for procedure put_magnet_claimed."
        in output
    )
    assert stored("magnet") == before


# --- URLs and passwords: valid and refused ones; passwords are never shown ---


@pytest.mark.parametrize(
    ("url", "address", "text"),
    [
        ("tds://daq@db1:5001/log", Address("daq", "db1", 5001, "log"), "tds://daq@db1:5001/log"),
        ("tds://daq@db1", Address("daq", "db1", 5000, ""), "tds://daq@db1:5000"),
        (
            "postgresql://daq@db1/ringlog",
            Address("daq", "db1", 5432, "ringlog", driver="psycopg"),
            "postgresql://daq@db1:5432/ringlog",
        ),
        ("tds+ctds://daq@db1", Address("daq", "db1", driver="ctds"), "tds+ctds://daq@db1:5000"),
        (
            "tds://daq@db1,db2:5001/log",
            Address("daq", "db1", 5000, "log", others=(("db2", 5001),)),
            "tds://daq@db1:5000,db2:5001/log",
        ),
        ("tds://d%40q:s%3A%2F@db1/", Address("d@q", "db1", 5000, "", "s:/"), "tds://d%40q@db1:5000"),
    ],
)
def test_urls_are_understood_and_shown_without_their_password(url: str, address: Address, text: str) -> None:
    parsed = Address.parse(url)
    assert parsed == address
    assert str(parsed) == text
    assert "s:/" not in repr(parsed)


@pytest.mark.parametrize(("url", "complaint"), cases(__file__, "other_urls_are_refused_by_the_part_at_fault"))
def test_other_urls_are_refused_by_the_part_at_fault(url: str, complaint: str) -> None:
    with pytest.raises(AddressError) as refusal:
        Address.parse(url)
    assert str(refusal.value).startswith(complaint)
    assert "ret" not in str(refusal.value)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory without a password in it or in the environment."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RINGLOG_PASSWORD", raising=False)
    return tmp_path


def secret(path: Path, text: str, mode: int = 0o600) -> Path:
    path.touch(mode)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_nearest_source_of_a_password_takes_precedence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address("daq", "db1", 5000)
    secret(home / ".ringlogpass", "db1:5000::daq:from home\n")
    assert find_password(address) == "from home"
    monkeypatch.setenv("RINGLOG_PASSWORD", "from environment")
    assert find_password(address) == "from environment"
    assert find_password(Address("daq", "db1", 5000, password="from URL")) == "from URL"
    file = secret(home / "file", "from file\nand more\n")
    assert find_password(Address("daq", "db1", 5000, password="from URL"), file) == "from file"


def test_the_first_matching_line_applies(home: Path) -> None:
    secret(
        home / ".ringlogpass",
        "# comment\n\ndb1:5000:log:daq:in log\n*:*:*:other:theirs\ndb1:*:*:daq:with\\:colon\\\\:and more\n",
    )
    assert find_password(Address("daq", "db1", 5000, "log")) == "in log"
    assert find_password(Address("daq", "db1", 5001)) == "with:colon\\:and more"
    assert find_password(Address("other", "anywhere")) == "theirs"
    with pytest.raises(PasswordError, match=r"no password for tds://daq@db2:5000: give --password-file"):
        find_password(Address("daq", "db2"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused(home: Path, mode: int) -> None:
    file = secret(home / "file", "the secret\n", mode)
    with pytest.raises(PasswordError) as refusal:
        find_password(Address("daq", "db1"), file)
    assert str(refusal.value) == f"password file {file} may be read by others: run chmod 600 {file}"


def test_files_of_another_form_are_refused(home: Path) -> None:
    with pytest.raises(PasswordError, match="its first line is empty"):
        find_password(Address("daq", "db1"), secret(home / "empty", ""))
    secret(home / ".ringlogpass", "db1:5000:*:daq:good\ndb1:daq:the secret\n")
    with pytest.raises(PasswordError) as refusal:
        find_password(Address("daq", "db1", 5000))
    assert str(refusal.value).endswith(".ringlogpass, line 2: not host:port:database:user:password")
