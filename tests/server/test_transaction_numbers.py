"""No login uses up PostgreSQL's transaction numbers, or keeps old rows from being removed."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from ringlog.server.guards.transaction_numbers import end_old
from servers import RunningServer, ringlog, serving
from waiting import is_closed, wait_until

USE_UP = "do $$ begin loop perform pg_current_xact_id(); commit; end loop; end $$"


@pytest.fixture(scope="module")
def own(temporary_directory: Path) -> Iterator[RunningServer]:
    with serving(temporary_directory / "numbers") as server:
        yield server


def test_a_login_that_uses_up_transaction_numbers_is_locked(own: RunningServer) -> None:
    """Its sessions end first; it connects again at once."""
    refused = threading.Event()

    def use_up() -> None:
        while not refused.is_set():
            try:
                own.sql(USE_UP, login=own.reader)
            except psycopg.OperationalError as error:
                if "is not permitted to log in" in str(error):
                    refused.set()

    threads = [threading.Thread(target=use_up) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = own.data.with_name("numbers.stderr")
    wait_until(lambda: "login reader was locked: its sessions used up transaction numbers" in log.read_text())
    own.put(1)
    unlocked = ringlog("user", "unlock", own.reader.user, "--data", own.data)
    assert unlocked.returncode == 0, unlocked.stderr
    psycopg.connect(own.dsn_of(own.reader)).close()


def test_an_old_transaction_ends(own: RunningServer) -> None:
    with (
        closing(psycopg.connect(own.dsn_of(own.writer))) as writer,
        psycopg.connect(own.dsn, autocommit=True) as admin,
    ):
        writer.execute("set idle_in_transaction_session_timeout = 0")
        writer.execute("select 1 from pg_class")
        end_old(admin, timedelta(days=1))
        writer.execute("select 1")
        wait_until(lambda: end_old(admin, timedelta(0)) or is_closed(writer))
