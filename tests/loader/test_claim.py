"""One writer per table: a second one is refused, unless it takes over; then the first can no longer write."""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from ringlog.clients import Address, Refused, call, connect, output
from ringlog.clients.spool.sender import Sender
from ringlog.clients.writer import Writer
from ringlog.schema.facility import Facility
from servers import RunningServer, ringlog
from waiting import PATIENCE, wait_until

Stored = Callable[[str], list[tuple[Any, ...]]]
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def writing(
    facility: Facility, address: Address, server: RunningServer, spool: Path, **options: Any
) -> Iterator[Writer]:
    (table,) = (table for table in facility.tables if table.name == "magnet")
    zone = ZoneInfo(facility.timezone)
    with Writer(table, zone, address, server.writer.password, spool, **options) as writer:
        yield writer


@pytest.mark.long
def test_a_signal_to_the_whole_group_ends_writers_cleanly(
    load: Callable[..., Any], quick_server: RunningServer, tmp_path: Path
) -> None:
    """As sent by systemd to every process of a service: claims are released, the ledger is complete."""
    first = load("--tables", "beam")

    def claim(since: datetime = BEGIN) -> tuple[Any, ...] | None:
        rows = quick_server.sql(
            "select released is null, state, produced = acknowledged, reported >= %s,"
            " (select sum(produced - acknowledged)::integer from ringlog.ledger"
            " where table_name = 'beam' and hour > now() - interval '2 hours')"
            " from ringlog.writer where table_name = 'beam'",
            [since],
        )
        return rows[0] if rows else None

    wait_until(lambda: (held := claim()) and held[0])
    told = datetime.now(UTC)
    os.killpg(first.process.pid, signal.SIGTERM)
    code, printed = first.end()
    assert (code, claim(told)) == (0, (False, "ended", True, True, 0)), printed
    other = load("--tables", "beam", "--spool", tmp_path / "other")
    wait_until(lambda: (held := claim()) and held[0])
    assert other.stop()[0] == 0


def test_a_second_writer_is_refused_unless_it_takes_over(
    facility: Facility, address: Address, quick_server: RunningServer, stored: Stored, tmp_path: Path
) -> None:
    before = len(stored("magnet"))
    with writing(facility, address, quick_server, tmp_path / "a") as first:
        first.put(datetime.now(UTC), current_1=1.0)
        assert first.drain(PATIENCE)
        with writing(facility, address, quick_server, tmp_path / "b") as second:
            second.put(datetime.now(UTC), current_1=2.0)
            wait_until(lambda: second.error)
            assert re.match(
                r"table magnet is written by \S+ process \d+ since .* --take-over", str(second.error)
            )
            assert second.waiting == 1, "its rows are kept"
        first.put(datetime.now(UTC), current_1=3.0)
        assert first.drain(PATIENCE)
        with writing(facility, address, quick_server, tmp_path / "c", take_over=True) as third:
            third.put(datetime.now(UTC), current_1=4.0)
            assert third.drain(PATIENCE)
            first.put(datetime.now(UTC), current_1=5.0)
            wait_until(lambda: first.error)
            assert "another writer has taken the table over" in str(first.error)
            assert first.waiting == 1
    assert [row[2] for row in stored("magnet")[before:]] == [1.0, 3.0, 4.0]
    # a writer that ends releases the table: the next one need not take it over, and sends the kept rows
    with writing(facility, address, quick_server, tmp_path / "b") as second:
        assert second.drain(PATIENCE)
    with writing(facility, address, quick_server, tmp_path / "a") as first:
        assert first.drain(PATIENCE)
    assert [row[2] for row in stored("magnet")[before:]] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_writer_closed_during_a_report_releases_its_table(
    facility: Facility,
    address: Address,
    quick_server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Like `ringlog load` when it is stopped at any moment: no wake-up is lost between its checks."""

    def report_until_closed(sender: Sender) -> bool:
        return not sender._wake.wait(PATIENCE)

    monkeypatch.setattr(Sender, "report", report_until_closed)
    # a wake-up that is lost would come with the next report
    monkeypatch.setattr("ringlog.clients.writer._REPORT_EVERY", 1e6)
    with writing(facility, address, quick_server, tmp_path / "closed") as writer:
        wait_until(lambda: writer.began)
    with psycopg.connect(quick_server.dsn, autocommit=True) as connection:
        wait_until(
            lambda: (
                connection.execute(
                    "select from ringlog.writer where table_name = 'magnet' and released is not null"
                ).fetchone()
                is not None
            )
        )


def test_a_writer_whose_report_is_refused_releases_its_table(
    facility: Facility, address: Address, quick_server: RunningServer, tmp_path: Path
) -> None:
    """And one whose connection breaks as it releases it."""
    with psycopg.connect(quick_server.dsn, autocommit=True) as admin:
        admin.execute(
            "create function ringlog.refuse() returns trigger language plpgsql"
            " as $$ begin raise exception 'no report' using errcode = '22023'; end $$"
        )
        admin.execute(
            "create trigger refuse before update of produced on ringlog.writer"
            " for each row execute function ringlog.refuse()"
        )
        try:
            with writing(facility, address, quick_server, tmp_path / "refused") as writer:
                wait_until(lambda: writer.error)
                assert "no report" in str(writer.error)
        finally:
            admin.execute("drop function ringlog.refuse cascade")
        with writing(facility, address, quick_server, tmp_path / "next") as other:
            wait_until(lambda: other.began or other.error)
            assert other.error is None
            # the reply to the report of its end will be missing
            cut = "select pg_terminate_backend(pid) from pg_stat_activity where usename = %s"
            wait_until(lambda: admin.execute(cut, [quick_server.writer.user]).fetchall())
        with writing(facility, address, quick_server, tmp_path / "last") as last:
            wait_until(lambda: last.began or last.error)
            assert last.error is None


@pytest.fixture
def slow_events(quick_server: RunningServer) -> Iterator[psycopg.Connection]:
    """The server needs 10 ms for each event, like one with a slow disk."""
    with psycopg.connect(quick_server.dsn, autocommit=True) as connection:
        connection.execute(
            "create function ringlog.slow() returns trigger language plpgsql"
            " as 'begin perform pg_sleep(0.01); return new; end'"
        )
        connection.execute(
            "create trigger slow before insert on ringlog.event for each row execute function ringlog.slow()"
        )
        yield connection
        connection.execute("drop function if exists ringlog.slow cascade")


@pytest.mark.long
def test_a_writer_with_many_events_releases_its_table_first(
    facility: Facility,
    address: Address,
    quick_server: RunningServer,
    slow_events: psycopg.Connection,
    stored: Stored,
    tmp_path: Path,
) -> None:
    before = len(stored("magnet"))
    with writing(facility, address, quick_server, tmp_path / "busy") as first:
        first.put(datetime.now(UTC), current_1=1.0)
        wait_until(lambda: first.began and not first.waiting)
        for number in range(600):
            first.note("alarm", 1_700_000_000_000_000 + number, f"event {number}")
    with writing(facility, address, quick_server, tmp_path / "next") as second:
        second.put(datetime.now(UTC), current_1=2.0)
        wait_until(lambda: not second.waiting or second.error)
        assert second.error is None
    assert [row[2] for row in stored("magnet")[before:]] == [1.0, 2.0]
    query = "select message from ringlog.event where message ~ '^event ' order by number"
    found = wait_until(lambda: (rows := slow_events.execute(query).fetchall())[599:] and rows)
    assert [words for (words,) in found] == [f"event {number}" for number in range(600)]


def wait_for(stored: Stored, table: str, rows: int) -> None:
    before = len(stored(table))
    wait_until(lambda: len(stored(table)) >= before + rows)


def test_ringlog_load_names_the_other_writer(
    load: Callable[..., Any], stored: Stored, tmp_path: Path
) -> None:
    first = load("--tables", "magnet", "--spool", tmp_path / "a")
    wait_for(stored, "magnet", 3)
    code, printed = load("--tables", "magnet", "--spool", tmp_path / "b").end()
    assert code == 1
    assert "ringlog: magnet: table magnet is written by" in printed
    second = load("--tables", "magnet", "--spool", tmp_path / "b", "--take-over")
    code, printed = first.end()
    assert code == 1
    assert "another writer has taken the table over" in printed
    assert second.stop()[0] == 0


def test_a_take_over_waits_for_running_calls_and_none_is_stored_after_it(
    address: Address, quick_server: RunningServer, stored: Stored
) -> None:
    before = len(stored("beam"))
    password = quick_server.writer.password
    connection = connect(address, password)
    (epoch,) = call(connection, "claim_writer", "beam", "one", "test", True, output(int)).outputs
    stop, answered = threading.Event(), 0

    def write() -> None:
        nonlocal answered
        number = 0
        with suppress(Refused):
            while not stop.is_set():
                number += 1
                moment = datetime.now(UTC)
                call(
                    connection,
                    "put_beam_claimed",
                    seq_no=number % 40 + 1,
                    time=moment,
                    current=1.0,
                    _epoch=epoch,
                )
                answered += 1

    thread = threading.Thread(target=write)
    thread.start()
    wait_until(lambda: answered >= 5)
    other = connect(address, password)
    epoch_of_two = call(other, "claim_writer", "beam", "two", "test", True, output(int)).outputs[0]
    after = len(stored("beam"))
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it was refused"
    assert len(stored("beam")) == after == before + answered
    # writers without a claim continue
    call(connection, "put_beam", time=datetime.now(UTC), current=2.0)
    assert len(stored("beam")) == after + 1
    with pytest.raises(Refused, match="RL001"):
        call(connection, "put_beam_claimed", time=datetime.now(UTC), current=1.0, _epoch=None)
    assert len(stored("beam")) == after + 1
    call(other, "release_claim", "beam", "two", int(str(epoch_of_two)))
    with pytest.raises(Refused, match="there is no table 'beem'"):
        call(other, "claim_writer", "beem", "two", "test", False, output(int))


def test_a_late_release_leaves_the_next_claim(address: Address, quick_server: RunningServer) -> None:
    """With the same spool, of a writer that has been restarted meanwhile."""
    connection = connect(address, quick_server.writer.password)
    first, second = (
        int(str(call(connection, "claim_writer", "beam", "again", "test", True, output(int)).outputs[0]))
        for _ in range(2)
    )
    row = {"time": datetime.now(UTC), "current": 1.0}
    call(connection, "release_claim", "beam", "again", first)
    call(connection, "put_beam_claimed", **row, _epoch=second)
    call(connection, "release_claim", "beam", "again", second)
    with pytest.raises(Refused, match="RL001"):
        call(connection, "put_beam_claimed", **row, _epoch=second)


def test_a_writer_that_ran_during_a_rename_releases_its_table(
    address: Address, quick_server: RunningServer
) -> None:
    connection = connect(address, quick_server.writer.password)
    with psycopg.connect(quick_server.dsn, autocommit=True) as admin:
        admin.execute("insert into ringlog.former_table values ('ray', 'beam')")
        try:
            (epoch,) = call(connection, "claim_writer", "ray", "renamed", "test", True, output(int)).outputs
            call(connection, "report_writer", "ray", "renamed", "running")
            query = "select spool, state from ringlog.writer where table_name = 'beam' and released is null"
            assert admin.execute(query).fetchall() == [("renamed", "running")]
            call(connection, "release_claim", "ray", "renamed", int(str(epoch)))
            assert admin.execute(query).fetchall() == []
        finally:
            admin.execute("delete from ringlog.former_table where former = 'ray'")


def test_a_refused_writer_gets_the_table_when_the_other_one_has_ended(
    facility: Facility,
    address: Address,
    quick_server: RunningServer,
    load: Callable[..., Any],
    stored: Stored,
    tmp_path: Path,
) -> None:
    with writing(facility, address, quick_server, tmp_path / "first", take_over=True) as first:
        wait_until(lambda: first.began)
        second = load("--tables", "beam,magnet", "--spool", tmp_path / "second")
        wait_for(stored, "beam", 1)
        before = len(stored("magnet"))
    wait_for(stored, "magnet", before + 3 - len(stored("magnet")))
    code, printed = second.stop()
    assert code == 0, printed


def test_readers_may_not_claim_and_no_login_writes_the_claims(quick_server: RunningServer) -> None:
    connection = connect(
        Address(quick_server.reader.user, quick_server.host, quick_server.port), quick_server.reader.password
    )
    for procedure in ("claim_writer", "release_claim", "report_writer", "report_ledger", "report_events"):
        with pytest.raises(Refused) as refused:
            call(connection, procedure, table_name="beam", spool="x")
        assert refused.value.number in (201, 229), procedure
    for table in ("writer", "ledger", "event"):
        with (
            psycopg.connect(quick_server.dsn_of(quick_server.writer)) as direct,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            direct.execute(f"delete from ringlog.{table}".encode())


@pytest.mark.long
def test_status_shows_the_writers(
    load: Callable[..., Any], quick_server: RunningServer, stored: Stored
) -> None:
    one = load("--tables", "magnet")
    wait_for(stored, "magnet", 3)
    shown = ringlog("status", "--all", "--data", quick_server.data)
    # 1 when it shows a table, of those that are not written here, as silent
    assert shown.returncode == int(re.search(r"\bsilent\b", shown.stdout) is not None), shown.stderr
    assert re.search(r"^ *magnet +running +\S+ process \d+ +\d+ ", shown.stdout, re.MULTILINE), shown.stdout
    assert one.stop()[0] == 0
    shown = ringlog("status", "--all", "--data", quick_server.data)
    assert re.search(r"^ *magnet +ended ", shown.stdout, re.MULTILINE), shown.stdout
