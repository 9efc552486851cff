"""Requests that `ringlog loadtest` refuses, and its messages."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ringlog.loadtest.experiment.duration import in_words, seconds_of
from ringlog.loadtest.experiment.errors import LoadTestUsageError
from servers import RunningServer

pytestmark = pytest.mark.long

LoadTest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5 min", 90), ("120min", 7200), ("2h", 7200), ("14d", 1_209_600)],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "2 weeks", "1h30", "nan", "s"])
def test_invalid_durations(text: str) -> None:
    with pytest.raises(LoadTestUsageError, match="is not a duration: write 90s, 120min, 2h or 14d"):
        seconds_of(text)


def test_durations_in_words() -> None:
    assert [in_words(one) for one in (4.0, 90.0, 3761.0, 7200.0, 1209600.0)] == [
        *("4 s", "90 s", "3,761 s", "120 min", "14 d")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("normal", "--time", "soon"), "'soon' is not a duration: write 90s, 120min, 2h or 14d"),
        (("max", "--clients", "fast"), "--clients 'fast' is not one of python, ctlib, native"),
        (("normal", "--reader", "x"), "--reader and --dsn go with --url"),
        (("normal", "--url", "tds://w@h:1"), "--url needs --reader: the login that readers use there"),
        (
            ("max", "--url", "tds://w@h:1"),
            "--url needs --dsn: the connection string of its PostgreSQL, to look for acknowledged rows",
        ),
        (("max", "--url", "http://w@h:1", "--dsn", "host=h"), "the URL begins with 'http:'"),
        (("max", "--url", "tds://w@h:1", "--dsn", "a b"), "--dsn: missing"),
        (("max", "--url", "tds://w@h:1", "--dsn", "host=h password=x"), "--dsn holds a password"),
        (("locust", "--worker"), "--worker needs --url: the server that its master loads"),
        (
            ("columns", "--columns", "10,wide"),
            "--columns '10,wide' is not a list of whole numbers such as 10,100",
        ),
        (("columns", "--columns", "2000"), "--columns: a table has at most 1598 data columns, not 2000"),
    ],
)
def test_wrong_requests(loadtest: LoadTest, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = loadtest(*arguments, *(() if arguments[0] == "locust" else ("--output", tmp_path / "out")))
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_folder_without_results(loadtest: LoadTest, tmp_path: Path) -> None:
    done = loadtest("report", "--output", tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"ringlog: {tmp_path} has no results of ringlog loadtest\n"


def test_a_damaged_result(loadtest: LoadTest, tmp_path: Path) -> None:
    (tmp_path / "max.json").write_text('{"experiment": "max"}')
    done = loadtest("report", "--output", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path}/max.json is of another version or damaged" in done.stderr


def test_writers_in_c_need_their_own_tables(loadtest: LoadTest, there: tuple[str, ...]) -> None:
    done = loadtest("max", *there, "--clients", "native")
    assert done.returncode == 2
    assert "writers in C need tables of their own: leave out --url" in done.stderr


def test_a_login_that_is_refused(
    loadtest: LoadTest, there: tuple[str, ...], home: Path, site: RunningServer
) -> None:
    (home / ".ringlogpass").write_text("*:*:*:*:wrong\n")
    done = loadtest("max", *there)
    assert done.returncode == 1
    assert "login failed" in done.stderr.lower()
    assert "wrong" not in done.stderr


def test_an_unreachable_postgresql(loadtest: LoadTest, site: RunningServer) -> None:
    url = f"tds://{site.writer.user}@{site.host}:{site.port}"
    done = loadtest("max", "--url", url, "--dsn", "host=127.0.0.1 port=1")
    assert done.returncode == 1
    assert done.stderr.startswith("ringlog: --dsn: ")
