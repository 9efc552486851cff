"""`ringlog status` and the metrics about the server itself."""

import json
import re
import urllib.request
from pathlib import Path

import psutil
import psycopg
import pytest

from ringlog.server.embedded.postgres import Postgres
from ringlog.server.logins import Right, add_login
from servers import Login, free_port, ringlog, serving
from waiting import PATIENCE, wait_until

TIME = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d"


def test_status_first_shows_whether_the_server_runs(data: Path) -> None:
    with serving(data) as server:
        running = wait_until(
            lambda: (shown := ringlog("status", "--data", data).stdout).startswith("ringlog serve") and shown
        )
        assert re.match(rf"ringlog serve runs since {TIME}\n", running)
        (state,) = json.loads(ringlog("status", "--json", "--data", data).stdout)["servers"]
        assert (state["host"], state["note"]) == (None, "")
    stopped = ringlog("status", "--data", data)
    assert stopped.returncode == 1
    assert re.fullmatch(rf"ringlog serve does not run: it stopped at {TIME} UTC\n", stopped.stdout)
    # nothing was started for that
    assert "starting PostgreSQL" not in stopped.stderr
    found = json.loads(ringlog("status", "--json", "--data", data).stdout)
    assert (found["servers"], found["tables"]) == ([], [])
    assert found["latest"]["until"] is not None
    with serving(data, facility=None) as server:
        add_login(server.dsn, "pretender", [Right.READER], "secret")
        pretender = server.dsn_of(Login("pretender", "secret"))
        with (
            psycopg.connect(pretender, application_name="ringlog serve 20200101T000000Z HTTP is down"),
            psycopg.connect(pretender, application_name="ringlog catalogue, writers not first"),
        ):
            shown = ringlog("status", "--data", data).stdout
        assert shown.count("ringlog serve runs") == 1
        assert "HTTP is down" not in shown
        assert "writers not first" not in shown
        postgres = Postgres(data).postmaster()
        server.process.kill()
        server.process.wait()
        assert postgres is not None
        psutil.wait_procs([postgres], PATIENCE)
    ended = ringlog("status", "--data", data)
    assert ended.returncode == 1
    words = rf"ringlog serve does not run: it ran since {TIME} UTC and ended without a stop\n"
    assert re.fullmatch(words, ended.stdout)


@pytest.mark.long
def test_a_log_that_is_not_archived_and_the_age_of_the_backup_are_metrics(data: Path) -> None:
    counts = free_port()

    def metrics() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{counts}/metrics", timeout=PATIENCE) as answer:
            return str(answer.read(), "utf-8")

    with serving(data, "--metrics", f"127.0.0.1:{counts}") as server:
        before = metrics()
        assert "ringlog_wal_archive_failing 0.0\n" in before
        assert "\nringlog_backup_age_seconds " not in before
        made = ringlog("backup", data.with_name("copies"), "--data", data)
        assert made.returncode == 0, made.stderr
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute("update ringlog.backup set made = made - interval '9 days'")
            admin.execute("alter system set archive_command = 'false'")
            admin.execute("select pg_reload_conf()")
            wait_until(
                lambda: (
                    admin.execute("select pg_switch_wal(), pg_logical_emit_message(true, '', '')")
                    and admin.execute("select failed_count > 0 from pg_stat_archiver").fetchone() == (True,)
                )
            )
        text = wait_until(lambda: "ringlog_wal_archive_failing 1.0\n" in (now := metrics()) and now)
        (age,) = re.findall(r"^ringlog_backup_age_seconds (\S+)$", text, re.MULTILINE)
        assert 9 * 86_400 <= float(age) < 9 * 86_400 + PATIENCE
        doctor = json.loads(ringlog("doctor", "--json", "--data", data).stdout)
        what = [finding["what"] for finding in doctor]
        assert "the latest backup is 9 days old" in what
        assert any(words.startswith("archiving the write-ahead log failed at 20") for words in what)


def test_a_writers_trouble_is_shown_with_its_time(data: Path) -> None:
    with serving(data) as server, psycopg.connect(server.dsn, autocommit=True) as admin:

        def reported(trouble: str | None) -> object:
            admin.execute("select ringlog.report_writer('sr_rf', 'spool', 'writing', %s)", [trouble])
            return admin.execute("select troubled from ringlog.writer").fetchall()[0][0]

        admin.execute(
            "insert into ringlog.writer (table_name, epoch, spool, name, since)"
            " values ('sr_rf', 1, 'spool', 'here', now())"
        )
        assert reported(None) is None
        first = reported("disk full")
        assert first is not None
        assert reported("disk full") == first
        assert reported("disk gone") > first  # type: ignore[operator]
        shown = ringlog("status", "--data", data).stdout
        assert re.search(rf"sr_rf: writer here since {TIME} \(\d+ s ago\): disk gone", shown)
        (writer,) = json.loads(ringlog("status", "--json", "--data", data).stdout)["writers"]
        assert (writer["table_name"], writer["trouble"]) == ("sr_rf", "disk gone")
        assert reported(None) is None
