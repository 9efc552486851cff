"""Logins over the years: another password, locked for a while, removed, each during open sessions."""

import threading
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Any

import psycopg
import pymssql
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from ringlog.errors import UsageError
from ringlog.server import logins
from servers import RunningServer, ringlog
from waiting import PATIENCE, wait_until


@pytest.fixture
def user(own: RunningServer) -> Callable[..., str]:
    """Runs `ringlog user` and returns its output."""

    def run(*words: str, stdin: str = "", code: int = 0) -> str:
        done = ringlog("user", *words, "--data", own.data, stdin=stdin)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


def connected(server: RunningServer, name: str, password: str) -> pymssql.Connection:
    return server.connect(name, password, timeout=100)


def put(session: pymssql.Connection, second: int) -> None:
    session.cursor().callproc("put_sr_rf", (1, datetime(2026, 1, 1, 0, 0, second), 1.0, 1))


@pytest.fixture(autouse=True)
def no_rows(own: RunningServer) -> None:
    """The ring and the log that the tests write to are empty at first."""
    with psycopg.connect(own.dsn) as admin:
        admin.execute("truncate weeks.sr_rf")
        admin.execute('update online.sr_rf set "time" = null')


def latest(admin: psycopg.Connection) -> int:
    """The second of the latest row."""
    row = admin.execute("select extract(second from time)::int from online.sr_rf where seq_no = 1").fetchone()
    assert row is not None
    return row[0]


def read(session: pymssql.Connection) -> object:
    with session.cursor() as cursor:
        cursor.execute("select count(*) from log..sr_rf")
        return cursor.fetchone()


def test_a_login_with_both_rights_is_locked_and_unlocked(
    own: RunningServer, user: Callable[..., str]
) -> None:
    user("add", "both", "--writer", "--reader", "--password-stdin", stdin="one")
    with connected(own, "both", "one") as session, connected(own, "both", "one") as other:
        put(session, 1)
        assert read(other) == (1,)
        assert user("list").splitlines()[0].startswith("both: reader and writer, open, ")
        user("lock", "both")
        with pytest.raises(pymssql.Error, match=r"The login of this session is no longer there"):
            put(session, 2)
        with pytest.raises(pymssql.Error):
            read(other)
        with pytest.raises(pymssql.Error):
            connected(own, "both", "one")
        assert "both: reader and writer, locked, 0 connections" in user("list")
    user("passwd", "both", "--password-stdin", stdin="two")
    user("unlock", "both")
    with pytest.raises(pymssql.Error):
        connected(own, "both", "one")
    with connected(own, "both", "two") as session:
        put(session, 3)
    with psycopg.connect(own.dsn) as admin:
        assert latest(admin) == 3


def test_postgresql_refuses_the_call_of_a_login_that_was_locked_before_its_commit(
    own: RunningServer, user: Callable[..., str]
) -> None:
    """The gateway learns of a lock later: calls on its kept connections are refused even before."""
    user("add", "late", "--writer", "--password-stdin", stdin="one")
    with connected(own, "late", "one") as session, psycopg.connect(own.dsn, autocommit=True) as admin:
        put(session, 11)
        admin.execute("revoke late from ringlog_gateway")
        for _ in range(3):
            with pytest.raises(pymssql.Error, match=r"The login of this session is no longer there"):
                put(session, 12)
        assert latest(admin) == 11
        logins.grant_to_gateway(admin, sql.Identifier("late"))
        put(session, 13)
        assert latest(admin) == 13


@pytest.mark.long
def test_a_login_is_removed_unless_it_owns_something(own: RunningServer, user: Callable[..., str]) -> None:
    for name in ("leaving", "granting"):
        user("add", name, "--reader", "--password-stdin", stdin="secret")
    with psycopg.connect(own.dsn, autocommit=True) as admin:
        admin.execute("create table notes (); alter table notes owner to leaving")
        refused = user("remove", "leaving", code=1)
        assert "owns objects: owner of table notes" in refused
        with connected(own, "leaving", "secret") as session:
            assert session is not None
        admin.execute("drop table notes")
        # those that any login can have
        admin.execute("select lo_from_bytea(4711, 'a'); alter large object 4711 owner to leaving")
        with closing(own_session(own, "leaving", autocommit=True)) as session:
            session.execute("alter default privileges grant select on tables to daq_reader")
            session.execute("create temporary view kept as select 1")
            # and those that any login can give to it
            with closing(own_session(own, "granting", autocommit=True)) as other:
                other.execute("alter default privileges grant select on tables to leaving")
                other.execute("create temporary table given (); grant select on given to leaving")
                user("remove", "leaving")
        assert admin.execute("select from pg_roles where rolname = 'leaving'").fetchone() is None
        assert admin.execute("select from pg_largeobject_metadata where oid = 4711").fetchone() is None


def own_session(server: RunningServer, name: str, **options: Any) -> psycopg.Connection:
    """A login's connection to PostgreSQL itself."""
    parts = conninfo_to_dict(server.dsn)
    return psycopg.connect(
        host="127.0.0.1", port=parts["port"], dbname=parts["dbname"], user=name, password="secret", **options
    )


@pytest.mark.long
def test_a_login_that_is_locked_while_a_client_logs_in(own: RunningServer, user: Callable[..., str]) -> None:
    """PostgreSQL has accepted it, but does not show its login yet."""
    user("add", "coming", "--reader", "--password-stdin", stdin="secret")
    locked = threading.Event()
    ends: list[type[Exception]] = []

    def come() -> None:
        try:
            with own_session(own, "coming", options="-c post_auth_delay=3") as session:
                locked.wait(PATIENCE)
                session.execute("select 1")
        except psycopg.OperationalError as error:
            ends.append(type(error))

    client = threading.Thread(target=come)
    # a connection has its database locked between the two
    let_in = "select from pg_locks where classid = 'pg_database'::regclass and mode = 'RowExclusiveLock'"
    with psycopg.connect(own.dsn, autocommit=True) as admin:
        client.start()
        wait_until(lambda: admin.execute(let_in).fetchone() is not None)
        logins.lock(own.dsn, "coming")
    locked.set()
    client.join(PATIENCE)
    assert len(ends) == 1
    user("remove", "coming")


@pytest.mark.long
def test_a_login_that_connects_again_at_once_is_removed(
    own: RunningServer, user: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    user("add", "returning", "--reader", "--password-stdin", stdin="secret")
    end_connections = logins._end_connections
    refused = []

    def end_and_return(connection: psycopg.Connection, name: str) -> None:
        end_connections(connection, name)
        with pytest.raises(psycopg.OperationalError, match="not permitted to log in") as found:
            own_session(own, name)
        refused.append(found)

    monkeypatch.setattr(logins, "_end_connections", end_and_return)
    logins.remove_login(own.dsn, "returning")
    assert refused
    assert "returning" not in user("list")


@pytest.mark.parametrize("change", [logins.lock, logins.unlock, logins.remove_login])
def test_only_logins_for_rows_are_changed(own: RunningServer, change: Callable[[str, str], None]) -> None:
    for name in ("nobody", "postgres", "ringlog_owner", "ringlog_gateway", "daq_writer"):
        with pytest.raises(UsageError, match=f"there is no login '{name}' with the right to write or read"):
            change(own.dsn, name)
        with pytest.raises(UsageError):
            logins.change_password(own.dsn, name, "secret")


@pytest.mark.long
def test_a_login_has_limits(own: RunningServer, user: Callable[..., str]) -> None:
    user("add", "limited", "--reader", "--row-limit", "3", "--password-stdin", stdin="secret")
    shown = "limited: reader, open, 0 connections; at most: 3 rows, idle in a transaction 15min"
    assert shown in user("list")
    with connected(own, "limited", "secret") as session, session.cursor() as cursor:
        cursor.execute("select n from generate_series(1, 3) as g (n)")
        assert len(cursor.fetchall()) == 3
        cursor.execute("select n from generate_series(1, 4) as g (n)")
        with pytest.raises(pymssql.Error, match="This login may read 3 rows by one statement"):
            cursor.fetchall()
    user("limit", "limited", "--row-limit", "none", "--statement-timeout", "3s")
    assert "at most: statements 3s, idle in a transaction 15min" in user("list")
    with connected(own, "limited", "secret") as session, session.cursor() as cursor:
        cursor.execute("select n from generate_series(1, 4) as g (n)")
        assert len(cursor.fetchall()) == 4
        with pytest.raises(pymssql.Error, match="statement timeout"):
            cursor.execute("select pg_sleep(1000)")
    user("limit", "limited", "--statement-timeout", "none", "--idle-transaction", "none")
    # connections of ended sessions may still be closing
    wait_until(lambda: "limited: reader, open, 0 connections\n" in user("list"), lambda: user("list"))
    for words in (["--row-limit", "0"], ["--statement-timeout", "soon"], ["--idle-transaction", "-1s"], []):
        assert "ringlog: " in user("limit", "limited", *words, code=2)
    assert "there is no login 'postgres'" in user("limit", "postgres", "--row-limit", "3", code=2)
    user("remove", "limited")


@pytest.mark.long
def test_an_idle_transaction_of_a_console_ends(own: RunningServer, user: Callable[..., str]) -> None:
    """Its locks are released; the console gets the error at its next statement, and continues."""
    user("add", "away", "--writer", "--idle-transaction", "3s", "--password-stdin", stdin="secret")
    with psycopg.connect(own.dsn, autocommit=True) as admin, connected(own, "away", "secret") as console:
        with console.cursor() as cursor:
            # at once: the console is not idle in between
            cursor.execute("begin transaction exec put_sr_rf 1, '2026-02-01', 1.0, 1")
            held = "select from pg_stat_activity where usename = 'away'"
            wait_until(lambda: admin.execute(held).fetchall() == [])
            admin.execute("set lock_timeout = '60s'")
            admin.execute("begin; lock table online.sr_rf in access exclusive mode; rollback")
            with pytest.raises(pymssql.Error, match="idle-in-transaction timeout"):
                cursor.callproc("put_sr_rf", (1, datetime(2026, 2, 1, 1), 1.0, 1))
            cursor.execute("select @@trancount")
            assert cursor.fetchall() == [(0,)]
            cursor.callproc("put_sr_rf", (1, datetime(2026, 2, 1, 2), 1.0, 1))
        found = admin.execute(
            "select time at time zone 'Asia/Tokyo' from log.sr_rf where time >= '2026-01-31'"
        )
        assert found.fetchall() == [(datetime(2026, 2, 1, 2),)]
    user("remove", "away")
