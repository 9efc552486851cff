"""URLs and passwords: valid and refused ones; passwords are never shown."""

from pathlib import Path

import pytest

from ringlog.clients import Address, AddressError, PasswordError, find_password


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


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("daq@db1", "the URL has no scheme: write tds://user@host:port[,host:port …][/database]"),
        ("http://daq@db1", "the URL begins with 'http:', which is not one of tds, tds+pymssql, tds+ctds"),
        ("postgresql://daq@db1", "the URL names no database: write postgresql://user@host:port/database"),
        ("tds://db1", "the URL names no user: write tds://user@host:port[,host:port …][/database]"),
        ("tds://daq@", "the URL names no host: write tds://user@host:port[,host:port …][/database]"),
        ("tds://daq@db1,,db2", "the URL names no host: write tds://user@host:port"),
        ("tds://daq@db1:port", "the URL's port is not a number up to 65535"),
        ("tds://daq@db1:70000", "the URL's port is not a number up to 65535"),
        ("tds://daq:sec/ret@db1", "the URL's port is not a number up to 65535"),
        ("tds://daq:ret@[::1]:5000", "the URL's host ::1 is an IPv6 address: give a name"),
        ("tds://daq:ret@db1/a/b", "the URL names the database 'a/b': a database has no '/' in its name"),
        ("tds://daq:ret@db1?timeout=3", "the URL takes no options after '?' or '#'"),
    ],
)
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
