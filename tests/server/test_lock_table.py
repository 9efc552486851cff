"""No login fills PostgreSQL's table of locks for longer than a moment."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pymssql
import pytest

from servers import RunningServer, ringlog, serving
from waiting import is_closed, wait_until

ATTACKS = {
    "advisory locks": "select count(pg_advisory_lock(n)) from generate_series(1, 10000000) as n",
    "temporary tables": "do $$ begin for n in 1..10000000 loop"
    " execute format('create temporary table t%s (a text primary key)', n); end loop; end $$",
}


@pytest.fixture(scope="module")
def own(temporary_directory: Path) -> Iterator[RunningServer]:
    with serving(temporary_directory / "locks") as server:
        yield server


def is_put(server: RunningServer, second: int) -> bool:
    """A writer repeats a call that has failed."""
    with suppress(pymssql.Error):
        server.put(second)
        return True
    return False


@pytest.mark.parametrize("kind", ATTACKS)
def test_a_session_with_too_many_locks_ends(own: RunningServer, kind: str) -> None:
    with psycopg.connect(own.dsn_of(own.reader), autocommit=True) as reader:
        # one that was refused keeps its advisory locks
        with suppress(psycopg.errors.OutOfMemory, psycopg.OperationalError):
            reader.execute(ATTACKS[kind])
        wait_until(lambda: is_closed(reader))
    wait_until(lambda: is_put(own, 1))


def test_a_login_that_goes_on_is_locked(own: RunningServer) -> None:
    def is_locked() -> bool:
        try:
            with psycopg.connect(own.dsn_of(own.reader), autocommit=True) as reader:
                reader.execute(ATTACKS["advisory locks"])
                wait_until(lambda: is_closed(reader))
        except psycopg.errors.OutOfMemory:
            pass
        except psycopg.OperationalError as error:
            return "is not permitted to log in" in str(error)
        return False

    wait_until(is_locked)
    wait_until(lambda: is_put(own, 2))
    unlocked = ringlog("user", "unlock", own.reader.user, "--data", own.data)
    assert unlocked.returncode == 0, unlocked.stderr
