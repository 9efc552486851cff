"""Loads of a server that runs already, named by its URL."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from ringlog.loadtest.load import LocustLoad
from ringlog.loadtest.spring8.results import read_results
from servers import RINGLOG, RunningServer, free_port, run
from waiting import wait_until

LoadTest = Callable[..., subprocess.CompletedProcess[str]]


def test_normal_operation_of_a_server_elsewhere(
    loadtest: LoadTest, there: tuple[str, ...], site: RunningServer, tmp_path: Path
) -> None:
    done = loadtest("normal", "--time", "3s", *there, "--reader", "reader", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = read_results(tmp_path / "out", ("normal",))
    (run,) = result.runs
    assert run.users == run.logged_in == 6
    # rows every 0.1, 0.2 and 1 s; fewer where the machine has no time for them
    assert run.asked == pytest.approx(16)
    assert 0 < run.rows < 1.3 * run.asked
    assert run.check.acknowledged == run.check.in_logs > 0
    # processes of a foreign server are not searched for
    assert run.server_share is None
    assert run.share("clients")
    whole = (
        done.stdout + done.stderr + "".join(file.read_text() for file in (tmp_path / "out").glob("*.json"))
    )
    assert site.writer.password not in whole
    assert site.reader.password not in whole


def test_columns_of_its_own_tables(
    loadtest: LoadTest, there: tuple[str, ...], site: RunningServer, tmp_path: Path
) -> None:
    # a login that only reads is enough to search for rows
    words = [*there]
    del words[words.index("--dsn") : words.index("--dsn") + 2]
    dsn = site.dsn_of(site.reader)
    done = loadtest("columns", "--time", "1s", *words, "--output", tmp_path, RINGLOG_DSN=dsn)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = read_results(tmp_path, ("columns",))
    assert [run.columns for run in result.runs] == [1, 7, 60]
    assert all(run.users == 1 and run.rows > 0 for run in result.runs)
    text = (tmp_path / "report.md").read_text()
    assert "Figure 4" in text
    assert re.search(r"^\| 60 \| [\d,]+ \| [\d,]+ \| [\d.]+ ms \|", text, re.MULTILINE)


def test_ever_more_users(loadtest: LoadTest, there: tuple[str, ...], tmp_path: Path) -> None:
    words = ("users", "--users", "6,24", "--time", "3s", "--reader", "reader")
    done = loadtest(*words, *there, "--output", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = read_results(tmp_path, ("users",))
    few, many = result.runs
    assert (few.logged_in, many.logged_in) == (6, 24)
    # on a machine that has time for all
    assert (few.asked, many.asked) == pytest.approx((16, 64))
    assert all(0 < run.rows < 1.3 * run.asked for run in result.runs)
    assert "At the normal rate it " in (tmp_path / "report.md").read_text()


def test_a_lost_row_is_found_and_reported(
    loadtest: LoadTest, there: tuple[str, ...], site: RunningServer, tmp_path: Path
) -> None:
    with losing(site):
        done = loadtest("max", "--time", "1s", *there, "--output", tmp_path)
    assert done.returncode == 1, done.stdout
    assert "ROWS WERE LOST" in done.stdout
    (result,) = read_results(tmp_path, ("max",))
    check = result.runs[0].check
    assert 0 < check.lost == check.acknowledged - check.in_logs < check.acknowledged
    assert "ROWS WERE LOST" in (tmp_path / "report.html").read_text()


def test_an_altered_value_is_found_and_reported(
    loadtest: LoadTest, there: tuple[str, ...], site: RunningServer, tmp_path: Path
) -> None:
    with altering(site):
        done = loadtest("max", "--time", "1s", *there, "--output", tmp_path)
    assert done.returncode == 1, done.stdout
    assert "ROWS WERE ALTERED" in done.stdout
    (result,) = read_results(tmp_path, ("max",))
    check = result.runs[0].check
    assert check.altered
    assert not check.lost


@contextmanager
def losing(site: RunningServer) -> Iterator[None]:
    """The server forgets every log row of table `beam` whose seq_no is 3."""
    with trouble(site, "delete from log.beam where"):
        yield


@contextmanager
def altering(site: RunningServer) -> Iterator[None]:
    """The server changes a value of every log row of table `beam` whose seq_no is 3."""
    with trouble(site, "update log.beam set current = current + 0.001 where"):
        yield


@contextmanager
def trouble(site: RunningServer, statement: str) -> Iterator[None]:
    """Runs the statement for each such row as soon as it exists."""
    statements = (
        "create function public.trouble() returns trigger language plpgsql security definer as "
        f"$$ begin {statement} seq_no = new.seq_no and time = new.time; return null; end $$",
        "create trigger trouble after insert on weeks.beam for each row when (new.seq_no = 3)"
        " execute function public.trouble()",
    )
    with psycopg.connect(site.dsn, autocommit=True) as connection:
        for one in statements:
            connection.execute(one.encode())
        try:
            yield
        finally:
            connection.execute("drop function public.trouble() cascade")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_load_that_is_ended_early_has_its_report(
    there: tuple[str, ...], site: RunningServer, home: Path, tmp_path: Path, ending: signal.Signals
) -> None:
    words = ("normal", "--time", "14d", *there, "--reader", "reader", "--output", str(tmp_path))
    count = "select count(*) from log.beam"
    with started(home, *words) as process, psycopg.connect(site.dsn, autocommit=True) as connection:
        assert process.stdout is not None
        # they have logged in before
        assert any("6 Python users ..." in line for line in process.stdout)
        before = connection.execute(count).fetchone()
        wait_until(lambda: connection.execute(count).fetchone() != before)
        process.send_signal(ending)
        output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    assert "Nothing was lost: " in output
    (result,) = read_results(tmp_path, ("normal",))
    assert 0 < result.runs[0].seconds < 3600
    assert result.runs[0].check.acknowledged


def test_an_experiment_with_workers_from_elsewhere(
    there: tuple[str, ...], home: Path, tmp_path: Path
) -> None:
    port = str(free_port())
    options = (*there, "--reader", "reader")
    words = ("normal", "--time", "2s", "--expect-workers", "1", "--output", str(tmp_path))
    elsewhere = (*options, "--worker", "--master-port", port)
    with (
        started(home, *words, *options, LOCUST_MASTER_BIND_PORT=port) as master,
        locust(home, *elsewhere) as worker,
    ):
        output, _ = master.communicate(timeout=200)
        worker.communicate(timeout=200)
    assert master.returncode == 0, output
    (result,) = read_results(tmp_path, ("normal",))
    assert result.runs[0].logged_in == 6
    assert "1 foreign worker" in result.runs[0].description


LOG_IN = """
import sys

import gevent
from locust.env import Environment

from ringlog.loadtest.locustfile import OnlineWriter_beam

gevent.get_hub().threadpool
before = {*sys.modules}
user = OnlineWriter_beam(Environment())
user.on_start()
user.on_stop()
print(*({*sys.modules} - before))
"""


def test_threads_that_log_in_import_nothing(there: tuple[str, ...], home: Path) -> None:
    """Users log in at the same time, each in a thread: of several that import the same, one could wait
    forever.
    """
    options = dict(zip(there[::2], there[1::2], strict=True))
    load = LocustLoad(Path(options["--facility"]), options["--url"], None)
    done = run(sys.executable, "-P", "-c", LOG_IN, HOME=str(home), **load.environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_locust_distributed(there: tuple[str, ...], home: Path) -> None:
    port = str(free_port())
    options = (*there, "--reader", "reader")
    master = ("--headless", "--master", "--master-bind-port", port, "--expect-workers", "2")
    worker = ("--worker", "--master-port", port)
    with (
        locust(home, *options, *master) as first,
        locust(home, *options, *worker) as second,
        locust(home, *options, *worker) as third,
    ):
        assert first.stdout is not None
        # for each procedure, the number of its users' calls
        called = dict.fromkeys(
            ("put_beam", "put_magnet", "put_every_type", "get_beam", "get_magnet", "get_every_type"), 0
        )
        for line in first.stdout:
            if (counted := re.match(r"(?:write|read) +(\w+) +(\d+)", line)) and counted[1] in called:
                called[counted[1]] = int(counted[2])
            if min(called.values()) > 0 and called["put_beam"] > 30:
                break
        first.terminate()
        output, _ = first.communicate(timeout=200)
        for process in (second, third):
            process.communicate(timeout=200)
    assert first.returncode == 0, output
    found = re.search(
        r"^(\d+) rows acknowledged, (\d+) found in rings, (\d+) in logs, .* 0 lost$", output, re.MULTILINE
    )
    assert found, output
    assert int(found[1]) > 30
    assert found[1] == found[2] == found[3]


def test_locust_with_its_web_page(there: tuple[str, ...], home: Path) -> None:
    port = free_port()
    page = f"http://127.0.0.1:{port}"
    words = (*there, "--reader", "reader", "--web-host", "127.0.0.1", "--web-port", str(port))
    with locust(home, *words, "--autostart") as process:

        def is_shown() -> bool:
            with suppress(OSError), urllib.request.urlopen(f"{page}/stats/requests", timeout=2) as answer:
                return b"put_beam" in answer.read()
            return False

        wait_until(is_shown)
        process.terminate()
        output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    assert ", 0 lost" in output


def locust(home: Path, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A `ringlog loadtest locust` process."""
    return started(home, "locust", *arguments)


@contextmanager
def started(home: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A `ringlog loadtest` process."""
    with subprocess.Popen(
        [str(RINGLOG), "loadtest", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"HOME": str(home)} | environment,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
