"""Waveforms through real clients: as packed binary and as text, in and out, bit for bit."""

import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import ctds
import psycopg
import pymssql
import pytest

import raw_tds
from raw_client import RawClient
from ringlog.clients import call, connect
from servers import RunningServer, ringlog, serving
from tds_clients import ctds_of, odbc, pytds_of

BEGIN = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
POINTS = 100_000
# IEEE 754 doubles that differ in every byte, a NaN with a payload and an infinity among them
TRACE = b"".join(struct.pack("<d", (-1.1) ** n / 3) for n in range(2000)) + bytes.fromhex(
    "bc0a00000000f87f" + "000000000000f0ff"
)
LONG = TRACE[:8000] * (POINTS * 8 // 8000)

Put = Callable[[RunningServer, datetime, bytes], None]
Get = Callable[[RunningServer], bytes]


@pytest.fixture(scope="module")
def scope_server(
    temporary_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server with one table, `scope`, of a waveform of doubles, one of words and one of bits."""
    facility = tmp_path_factory.mktemp("waveforms") / "facility.toml"
    facility.write_text(
        f"""
        [[table]]
        name = "scope"
        rows = 50
        cycle = 1.0
        column = [
            {{ name = "trace", type = "double[]", points = {POINTS} }},
            {{ name = "words", type = "smallint[]", points = 5 }},
            {{ name = "bits", type = "bit[]", points = 5 }},
            {{ name = "states", type = "varchar(8)[]", points = 3 }},
        ]
        """
    )
    with serving(temporary_directory / "waveforms", facility=facility) as running:
        yield running


@pytest.fixture
def stored(scope_server: RunningServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(scope_server.dsn_of(scope_server.reader), autocommit=True) as connection:
        yield connection


def trace_at(connection: psycopg.Connection, moment: datetime) -> bytes:
    """The contents in PostgreSQL, as packed doubles: array_send's elements, each preceded by its length."""
    ((sent,),) = connection.execute(
        'select array_send(trace) from log.scope where "time" = %s', (moment,)
    ).fetchall()
    elements = bytes(sent)[20:]
    return b"".join(elements[at + 4 : at + 12][::-1] for at in range(0, len(elements), 12))


def text_of(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


# --- in ---


def by_pymssql(server: RunningServer, moment: datetime, trace: bytes) -> None:
    with pymssql_of(server, server.writer) as connection, connection.cursor() as cursor:
        cursor.callproc("put_scope", (1, text_of(moment), trace))


def by_ctds(server: RunningServer, moment: datetime, trace: bytes) -> None:
    with ctds_of(server, server.writer) as connection, connection.cursor() as cursor:
        cursor.callproc("put_scope", {"@seq_no": 2, "@time": text_of(moment), "@trace": trace})


def by_pyodbc(server: RunningServer, moment: datetime, trace: bytes) -> None:
    with odbc(server, server.writer) as connection:
        # FreeTDS's {call} has no binary longer than 8000 bytes
        connection.execute("exec put_scope ?, ?, ?", (3, text_of(moment), trace))


def by_tds5(server: RunningServer, moment: datetime, trace: bytes) -> None:
    with RawClient(server.host, server.port) as client:
        client.log_in5(server.writer)
        reply = client.call(
            "put_scope",
            [
                raw_tds.Param(raw_tds.INT4, 5),
                raw_tds.Param(raw_tds.LONGCHAR, text_of(moment)),
                raw_tds.Param(raw_tds.LONGBINARY, trace),
            ],
        )
        assert (reply.errors, reply.statuses) == ([], [0])


def by_blob(server: RunningServer, moment: datetime, trace: bytes) -> None:
    with RawClient(server.host, server.port) as client:
        client.log_in5(server.writer)
        # twice: the second call uses the plan of the first
        for _ in range(2):
            reply = client.call(
                "put_scope",
                [
                    raw_tds.Param(raw_tds.INT4, 9),
                    raw_tds.Param(raw_tds.BLOB_TEXT, text_of(moment)),
                    raw_tds.Param(raw_tds.BLOB, trace),
                ],
            )
            assert (reply.errors, reply.statuses) == ([], [0])


def by_text(server: RunningServer, moment: datetime, trace: bytes) -> None:
    with pymssql_of(server, server.writer) as connection, connection.cursor() as cursor:
        cursor.execute(f"exec put_scope 6, '{text_of(moment)}', 0x{trace.hex()}")


WAYS: list[Put] = [by_pymssql, by_ctds, by_pyodbc, by_tds5, by_text, by_blob]


@pytest.mark.parametrize("put", WAYS)
def test_packed_doubles_arrive_bit_for_bit(
    scope_server: RunningServer, stored: psycopg.Connection, put: Put
) -> None:
    moment = BEGIN + timedelta(minutes=WAYS.index(put))
    # DB-Library's RPC has no binary longer than 8000 bytes
    trace = TRACE[-8000:] if put is by_pymssql else TRACE if put is by_text else LONG
    put(scope_server, moment, trace)
    assert trace_at(stored, moment) == trace


@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_calls_of_known_shape_arrive_bit_for_bit(
    scope_server: RunningServer, stored: psycopg.Connection, version: str
) -> None:
    """Long waveforms of several lengths by one connection, after the first by its plan."""
    # 64 KiB are written at a time; a value that is a byte too short is refused, and the next call is not
    traces = [
        LONG,
        LONG[: 8 << 13],
        LONG[: (8 << 13) + 8],
        LONG[:-8],
        TRACE,
        LONG[8:],
        LONG[:-1],
        TRACE + LONG[:-80000],
    ]
    begin = BEGIN + timedelta(minutes=60 if version == "5.0" else 90)
    moments = [begin + timedelta(minutes=n) for n in range(len(traces))]
    words = b"\1\0\2\0"
    refused: list[str] = []
    if version == "5.0":
        with RawClient(scope_server.host, scope_server.port) as client:
            client.log_in5(scope_server.writer)
            for moment, trace in zip(moments, traces, strict=True):
                given = [
                    raw_tds.Param(raw_tds.INT4, 10),
                    raw_tds.Param(raw_tds.LONGCHAR, text_of(moment)),
                    raw_tds.Param(raw_tds.LONGBINARY, trace),
                    raw_tds.Param(raw_tds.LONGBINARY, words),
                ]
                reply = client.call("put_scope", given)
                refused += [error.text for error in reply.errors]
    else:
        with ctds_of(scope_server, scope_server.writer) as connection, connection.cursor() as cursor:
            for moment, trace in zip(moments, traces, strict=True):
                given = {"@seq_no": 11, "@time": text_of(moment), "@trace": trace, "@words": words}
                try:
                    cursor.callproc("put_scope", given)
                except ctds.Error as error:
                    refused.append(str(error))
    assert len(refused) == 1
    assert "Parameter '@trace' of put_scope: 799999 bytes are not a whole number of" in refused[0]
    for moment, trace in zip(moments, traces, strict=True):
        rows = stored.execute('select words from log.scope where "time" = %s', (moment,)).fetchall()
        if len(trace) % 8:
            assert rows == []
        else:
            assert rows == [([1, 2],)]
            assert trace_at(stored, moment) == trace


def test_texts_are_waveforms_too(scope_server: RunningServer, stored: psycopg.Connection) -> None:
    moment = BEGIN + timedelta(hours=2)
    with pymssql_of(scope_server, scope_server.writer) as connection, connection.cursor() as cursor:
        cursor.callproc(
            "put_scope",
            (7, text_of(moment), "1.5, -2e3,3", "{4,-5}", "1,0,true", '{"in use", ready,"a \\"b\\", c"}'),
        )
    ((found),) = stored.execute(
        'select trace, words, bits, states from log.scope where "time" = %s', (moment,)
    )
    assert found == ([1.5, -2000.0, 3.0], [4, -5], [True, False, True], ["in use", "ready", 'a "b", c'])
    with pymssql_of(scope_server, scope_server.reader) as connection, connection.cursor() as cursor:
        cursor.execute(f"select states from log..scope where time = '{text_of(moment)}'")
        assert cursor.fetchall() == [('{"in use",ready,"a \\"b\\", c"}',)]


# --- out ---


@pytest.fixture(scope="module")
def long_row(scope_server: RunningServer) -> datetime:
    """The newest row, whose trace is LONG."""
    moment = BEGIN + timedelta(hours=5)
    by_tds5(scope_server, moment, LONG)
    return moment


def from_pymssql(server: RunningServer) -> bytes:
    with pymssql_of(server, server.reader) as connection, connection.cursor() as cursor:
        cursor.execute("set textsize 2147483647 exec get_scope")
        ((_, _, trace, *_),) = cursor.fetchall()
    assert isinstance(trace, bytes)
    return trace


def from_ctds(server: RunningServer) -> bytes:
    with ctds_of(server, server.reader) as connection, connection.cursor() as cursor:
        cursor.execute("set textsize 2147483647")
        cursor.execute("select top 1 trace from online..scope order by time desc")
        ((trace,),) = cursor.fetchall()
    return bytes(trace)


def from_pyodbc(server: RunningServer) -> bytes:
    with odbc(server, server.reader) as connection:
        ((trace,),) = connection.execute("select top 1 trace from log..scope order by time desc").fetchall()
    return bytes(trace)


def from_pytds(server: RunningServer) -> bytes:
    with pytds_of(server, server.reader) as connection:
        cursor = connection.cursor()
        cursor.execute("exec get_scope")
        ((_, _, trace, *_),) = cursor.fetchall()
    return bytes(trace)


def from_psycopg(server: RunningServer) -> bytes:
    ((value,),) = server.sql("select value from ringlog.get_waveform('scope/trace')", login=server.reader)
    return struct.pack(f"<{len(value)}d", *value)


@pytest.mark.usefixtures("long_row")
@pytest.mark.parametrize("get", [from_pymssql, from_ctds, from_pyodbc, from_pytds, from_psycopg])
def test_packed_doubles_are_read_bit_for_bit(scope_server: RunningServer, get: Get) -> None:
    assert get(scope_server) == LONG


@pytest.mark.usefixtures("long_row")
def test_points_are_rows_for_consoles(scope_server: RunningServer) -> None:
    with pymssql_of(scope_server, scope_server.reader) as connection, connection.cursor() as cursor:
        cursor.execute("exec get_waveform_points 'scope/trace', @first_point = 2, @max_points = 2")
        assert cursor.fetchall() == [(n, struct.unpack_from("<d", LONG, 8 * n)[0]) for n in (2, 3)]


# --- refused ---

REFUSED: list[tuple[tuple[bytes | str | None, ...], str]] = [
    ((b"\1\2\3",), "Parameter '@trace' of put_scope: 3 bytes are not a whole number of the 8-byte elements"),
    (("1,two",), "Parameter '@trace' of put_scope: element 2 of double precision"),
    (("{1,NULL}",), "Parameter '@trace' of put_scope: element 2 of double precision"),
    ((None, b"\0\0" * 6), "put_scope: words has 6 points, and the facility file allows at most 5"),
    ((None, "70000"), "Parameter '@words' of put_scope: element 1 of smallint"),
    ((None, None, b"\2"), "Parameter '@bits' of put_scope: the byte 2 is not an element"),
    ((None, None, None, "{a,null}"), "Parameter '@states' of put_scope: element 2 of character varying"),
    ((None, None, None, "a,b,c,d"), "put_scope: states has 4 points, and the facility file allows at most 3"),
    ((None, None, None, "123456789"), "String or binary data would be truncated."),
    ((None, None, None, b"ab"), "Parameter '@states' of put_scope"),
]


@pytest.mark.parametrize(("values", "why"), REFUSED)
@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_refused_by_name(
    scope_server: RunningServer,
    stored: psycopg.Connection,
    version: str,
    values: tuple[bytes | str | None, ...],
    why: str,
) -> None:
    moment = BEGIN + timedelta(hours=3)
    if version == "7.4":
        with (
            pymssql_of(scope_server, scope_server.writer) as connection,
            connection.cursor() as cursor,
            pytest.raises(pymssql.Error) as refused,
        ):
            cursor.callproc("put_scope", (8, text_of(moment), *values))
        message = str(refused.value).replace("\\'", "'")
    else:
        with RawClient(scope_server.host, scope_server.port) as client:
            client.log_in5(scope_server.writer)
            types = (raw_tds.LONGCHAR if isinstance(value, str) else raw_tds.LONGBINARY for value in values)
            given = [raw_tds.Param(kind, value) for kind, value in zip(types, values, strict=True)]
            at = raw_tds.Param(raw_tds.LONGCHAR, text_of(moment))
            reply = client.call("put_scope", [raw_tds.Param(raw_tds.INT4, 8), at, *given])
            # the connection remains usable
            assert client.call("last_scope").errors == []
        (error, *_) = reply.errors
        message = error.text
    assert why in message
    assert stored.execute('select from log.scope where "time" = %s', (moment,)).fetchall() == []


def test_a_facility_may_use_big_endian_packed_points(temporary_directory: Path, tmp_path: Path) -> None:
    """In and out, by RPC and by ringlog's own clients; then back to the usual order without a restart."""
    facility = tmp_path / "facility.toml"
    content = """
        byte_order = "big"
        [[table]]
        name = "scope"
        rows = 5
        cycle = 1.0
        column = [{ name = "trace", type = "double[]", points = 100 }]
        """
    facility.write_text(content)
    points = [1.5, -2.0, 1e300]
    big = struct.pack(">3d", *points)
    with serving(temporary_directory / "big", facility=facility) as running:
        by_ctds(running, BEGIN, big)
        assert from_pytds(running) == big
        assert running.sql("select trace from log.scope", login=running.reader) == [(points,)]
        for scheme in ("tds", "tds+ctds"):
            url = f"{scheme}://{running.reader.user}@{running.host}:{running.port}"
            with connect(url, running.reader.password) as client:
                ((_, trace),) = call(client, "get_waveform", "scope/trace").rows
                ((_, _, of_table),) = call(client, "get_scope").rows
            assert trace.tolist() == of_table.tolist() == points
        facility.write_text(content.replace('"big"', '"little"'))
        assert ringlog("init", "--facility", facility, "--data", running.data).returncode == 0
        by_ctds(running, BEGIN + timedelta(seconds=1), struct.pack("<3d", *points))
        assert from_pytds(running) == struct.pack("<3d", *points)


def pymssql_of(server: RunningServer, login: raw_tds.Login) -> pymssql.Connection:
    return server.connect(login.user, login.password)
