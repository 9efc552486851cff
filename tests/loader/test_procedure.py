"""Calls by RPC: exact values in both directions, values refused before they are sent, the meaning of
errors."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pymssql
import pytest

from relay import relay
from ringlog.clients import Address, LoginRefused, Refused, Unanswered, call, connect, output
from servers import Login, RunningServer
from waiting import PATIENCE, is_taken, wait_until

# Times that no other test uses.
BEGIN = datetime(2031, 5, 1, 12, 0, 0, 123457, UTC)


def logged_in(server: RunningServer, login: Login) -> pymssql.Connection:
    return connect(Address(login.user, server.host, server.port), login.password)


@pytest.fixture
def writer(quick_server: RunningServer) -> Iterator[pymssql.Connection]:
    with logged_in(quick_server, quick_server.writer) as connection:
        yield connection


@pytest.fixture
def reader(quick_server: RunningServer) -> Iterator[pymssql.Connection]:
    with logged_in(quick_server, quick_server.reader) as connection:
        yield connection


def stored(reader: pymssql.Connection, time: datetime) -> list[tuple[Any, ...]]:
    return call(reader, "get_every_type_range", time, time + timedelta(microseconds=1)).rows


def test_rows_are_sent_by_name_and_returned_exactly(
    writer: pymssql.Connection, reader: pymssql.Connection
) -> None:
    time = BEGIN
    answer = call(
        writer,
        "put_every_type",
        time=time,
        a_varchar=" 磁石 ",
        a_bit=False,
        a_bigint=-(2**63),
        a_smallint=-32768,
        an_int=2**31 - 1,
        a_double=1e-300,
        a_real=0.1,
        seq_no=3,
    )
    assert (answer.status, answer.outputs, answer.rows) == (0, (), [])
    (row,) = stored(reader, time)
    local = time.astimezone(timezone(timedelta(hours=9))).replace(tzinfo=None)
    assert row[:2] == (3, local)
    assert row[2] == pytest.approx(0.1, abs=1e-8)
    assert row[3:] == (1e-300, 2**31 - 1, -32768, -(2**63), False, " 磁石 ")
    columns = call(reader, "get_every_type", 1).columns
    assert columns == (
        "seq_no", "time", "a_real", "a_double", "an_int", "a_smallint", "a_bigint", "a_bit", "a_varchar",
    )  # fmt: skip


def test_omitted_values_are_null(writer: pymssql.Connection, reader: pymssql.Connection) -> None:
    time = BEGIN + timedelta(seconds=1)
    call(writer, "put_every_type", 4, time, None, 2.5)
    assert [row[2:] for row in stored(reader, time)] == [(None, 2.5, None, None, None, None, None)]


def test_a_time_without_a_zone_is_the_facilitys(
    writer: pymssql.Connection, reader: pymssql.Connection
) -> None:
    call(writer, "put_every_type", 5, datetime(2031, 5, 1, 21, 0, 2, 7))
    assert [row[0] for row in stored(reader, datetime(2031, 5, 1, 12, 0, 2, 7, UTC))] == [5]


def test_output_parameters(writer: pymssql.Connection) -> None:
    time = BEGIN + timedelta(seconds=3)
    call(writer, "put_every_type", 6, time)
    seq_no, text = call(writer, "last_every_type", output(int), output(str)).outputs
    assert seq_no == 6
    assert datetime.fromisoformat(f"{text}+09:00") == time


@pytest.mark.parametrize(
    ("value", "error", "complaint"),
    [
        ("", ValueError, "an empty string or one with a NUL cannot be sent"),
        ("a\0b", ValueError, "an empty string or one with a NUL cannot be sent"),
        ("\ud800", ValueError, "surrogates not allowed"),
        (2**63, ValueError, "9223372036854775808 does not fit in 64 bits"),
        (b"", ValueError, "empty binary data cannot be sent"),
        (timedelta(1), TypeError, "timedelta cannot be sent"),
        ([1], TypeError, "list cannot be sent"),
    ],
)
def test_values_that_the_driver_would_change_are_refused_before_anything_is_sent(
    writer: pymssql.Connection, reader: pymssql.Connection, value: Any, error: type[Exception], complaint: str
) -> None:
    time = BEGIN + timedelta(seconds=4)
    with pytest.raises(error, match=complaint):
        call(writer, "put_every_type", seq_no=7, time=time, a_varchar=value)
    assert stored(reader, time) == []
    # the connection remains usable
    call(writer, "last_every_type", output(int), output(str))


def test_a_long_text_is_not_cut(quick_server: RunningServer, reader: pymssql.Connection) -> None:
    with psycopg.connect(quick_server.dsn, autocommit=True) as administrator:
        administrator.execute(
            "create function ringlog.echo(what text) returns setof text language sql as 'select what'"
        )
        administrator.execute("notify ringlog_catalogue")
    wait_until(lambda: is_taken(lambda: call(reader, "echo", what="x"), Refused))
    for text in ("磁" * 1333, "é" * 2001, "x" * 8001, "€" * 300_000):
        (row,) = call(reader, "echo", what=text).rows
        assert row == (text,)
    with pytest.raises(ValueError, match="cannot send '磁' in a text of more than 4000 bytes"):
        call(reader, "echo", what="磁" * 1334)


def test_a_refused_login_and_a_missing_server(quick_server: RunningServer) -> None:
    with pytest.raises(Unanswered, match=r"^tds://writer@.*: the server refused the login"):
        connect(Address("writer", quick_server.host, quick_server.port), "wrong")
    # the driver keeps an earlier error's number: it must not be taken for this one's
    with pytest.raises(Unanswered, match="Unable to connect") as refusal:
        connect("tds://writer@127.0.0.1:1", "wrong")
    assert refusal.value.number == 20009


# [MS-TDS] 2.2.3.1.1: the type of a packet of SQL text
SQL_BATCH = 1


def is_no_text(part: bytes, from_client: bool) -> bool:
    return not (from_client and part[0] == SQL_BATCH)


def test_the_first_connection_of_a_process_respects_its_timeout(quick_server: RunningServer) -> None:
    login = quick_server.writer
    # the driver's timeout applies to the process: this one has another from other tests
    program = (
        "import sys; from ringlog.clients import Unanswered, connect\n"
        "try: connect(*sys.argv[1:], timeout=1)\n"
        "except Unanswered as error: print(error.number)"
    )
    with relay(quick_server, is_no_text) as port:
        url = f"tds://{login.user}@127.0.0.1:{port}/online"
        command = [sys.executable, "-c", program, url, login.password]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    # SYBETIME of sybdb.h
    assert (done.stdout, done.stderr) == ("20003\n", "")


def test_a_lost_connection_does_not_explain_the_next_refusal(quick_server: RunningServer) -> None:
    """The driver has one text for the errors of all connections that are not open."""
    login = quick_server.reader
    url = f"tds://{login.user}@{quick_server.host}:{quick_server.port}"
    with pytest.raises(LoginRefused):
        connect(url, "wrong")
    before = {*os.listdir("/proc/self/fd")}
    connection = connect(url, login.password)
    for number in {*os.listdir("/proc/self/fd")} - before:
        with suppress(OSError), socket.socket(fileno=os.dup(int(number))) as cut:
            if cut.getpeername()[1] == quick_server.port:
                cut.shutdown(socket.SHUT_RDWR)
    with suppress(pymssql.Error):
        connection.cursor().execute("select 1")
    connection.close()
    with pytest.raises(LoginRefused, match="refused the login"):
        connect(url, "wrong")


def test_the_database_of_the_url_is_in_use(quick_server: RunningServer) -> None:
    login = quick_server.reader
    url = f"tds://{login.user}@{quick_server.host}:{quick_server.port}"
    for autocommit in (True, False):
        with (
            connect(f"{url}/log", login.password, autocommit=autocommit) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("select db_name(), @@trancount")
            assert cursor.fetchall() == [("log", int(not autocommit))]
    with pytest.raises(Unanswered, match=r"the server refused the login: .*no such"):
        connect(f"{url}/no such", login.password)


def test_no_answer_in_time_is_unanswered_and_the_connection_is_done() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(Unanswered):
        connect(f"tds://writer@127.0.0.1:{silent.getsockname()[1]}", "x", login_timeout=1)
