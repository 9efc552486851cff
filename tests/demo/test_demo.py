"""`ringlog demo`, from the user's side."""

import re
import signal
import subprocess
from pathlib import Path

import psutil
import psycopg
import pytest

from servers import RINGLOG, ringlog, run
from waiting import PATIENCE, is_alive, wait_until

QUICK = Path(__file__).parent.parent / "loader" / "facility.toml"
PNG = b"\x89PNG\r\n\x1a\n"


def test_the_demo_reports_its_results_and_gives_the_address_of_the_page(tmp_path: Path) -> None:
    # the beam is lost for a sixth of this: a busy machine writes a row then, too
    command = [RINGLOG, "demo", "--seconds", "8", "--facility", QUICK, "--output", tmp_path / "out", "--keep"]
    with subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        assert demo.stdout is not None
        output = ""
        try:
            for line in demo.stdout:
                output += line
                if output.count("ringlog.clients") == 2:
                    break
            processes = psutil.Process(demo.pid).children(recursive=True)
            demo_said_all_went_well(output)
            assert (tmp_path / "out" / "trends.png").read_bytes().startswith(PNG)
            three_lines_work(output)
        finally:
            demo.send_signal(signal.SIGINT)
            rest = demo.stdout.read()
        assert demo.wait(PATIENCE) == 0, output + rest
    assert [process for process in processes if is_alive(process.pid)] == []
    folder = re.search(r"on (/\S+)/data", output)
    assert folder
    assert not Path(folder[1]).exists()


def demo_said_all_went_well(output: str) -> None:
    sent = re.search(r"(\d+) sent, (\d+) acknowledged", output)
    assert sent, output
    # 8 s of three tables, at 10, 5 and 1 rows/s; a busy machine misses some
    assert sent[1] == sent[2]
    assert 0 < int(sent[1]) < 200
    assert f"{sent[1]} found in the rings" in output
    assert f"{sent[1]} found in the logs, 0 left out by log policies" in output
    assert "0 with other values than were sent" in output
    assert re.search(r"^ +0 lost *$", output, re.MULTILINE), output
    assert re.search(r"^Data +[01]\.\d\d kB/s in 3 tables", output, re.MULTILINE), output
    assert re.search(r"^Trip +of the beam at \d\d:\d\d:\d\d: ", output, re.MULTILINE), output
    for name in ("writes", "reads"):
        assert re.search(rf"^{name} +\d+ +[\d.]+ ms +[\d.]+ ms +[\d.]+ ms$", output, re.MULTILINE), output
    for name in ("PostgreSQL", "gateway and server", "6 clients"):
        assert re.search(rf"^{name} +[\d.]+ +[\d.]+ %$", output, re.MULTILINE), output


def three_lines_work(output: str) -> None:
    lines = [line.strip() for line in output.splitlines()]
    tsql, psql, python = lines[-3:]
    # the same lines stand above, for use while the demo runs
    assert lines.count(tsql) == lines.count(psql) == lines.count(python) == 2
    assert tsql.startswith("printf \"exec get_latest 'sr_beam/current'")
    answer = run("sh", "-c", tsql)
    value = re.search(r"(99\.\d+|100\.\d+)\n", answer.stdout)
    assert value, answer.stdout + answer.stderr
    answer = run("sh", "-c", python, PYTHONSAFEPATH="1")
    assert re.search(rf"^\[\(datetime\.datetime\(.*\), {value[1][:10]}", answer.stdout), answer.stderr
    # psql itself need not be on this machine
    parts = re.fullmatch(r'psql "([^"]+)" -c "([^"]+)"', psql)
    assert parts
    with psycopg.connect(parts[1]) as connection:
        assert connection.execute("select name from ringlog.capture").fetchall() == [("beam trip",)]
        assert connection.execute("select text from ringlog.mark").fetchall() == [("the beam is lost",)]
        # the server copies rows into it each second
        lost = "select true from capture.beam where current = 0"
        wait_until(lambda: connection.execute(lost).fetchone())
        row = connection.execute(parts[2].encode()).fetchone()
        assert row is not None
        assert row[1] == pytest.approx(float(value[1]), abs=1e-5)


def test_the_demo_refuses_a_folder_with_files(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    done = ringlog("demo", "--data", tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"ringlog: {tmp_path} is not empty: the demo makes a data directory of its own\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["precious"]


def test_a_facility_file_that_is_wrong_is_refused(tmp_path: Path) -> None:
    done = ringlog("demo", "--facility", tmp_path / "none.toml")
    assert done.returncode == 2
    assert done.stderr == f"ringlog: {tmp_path}/none.toml: cannot be read: No such file or directory\n"
