"""Calls by RPC, through pymssql and ct-library."""

from datetime import datetime
from typing import Any

import ctds
import pymssql
import pytest
from case_tables import cases
from talks import Unchanged, compare, hold, param, talks

from tds_clients import Admin, Clients, Param, ctds_of, errors_of
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("functions")
BOTH = pytest.mark.parametrize("version", ["5.0", "7.4"])

# 2023-03-17 08:20:00 as a Sybase datetime: days since 1900, 1/300 s since midnight
TIME = "45000 9000000"
CURRENTS = [f"current_{n}" for n in range(1, 201)]


def row_of(admin: Admin, table: str, seq_no: int) -> tuple[object, ...]:
    row = admin.execute(f"select * from online.{table} where seq_no = {seq_no}").fetchone()
    assert row is not None
    return row


@talks(__file__)
def test_calls(
    clients: Clients, admin: Admin, nothing_written: Unchanged, version: str, talk: dict[str, Any]
) -> None:
    hold(talk, version, clients, admin, nothing_written=nothing_written)


@BOTH
@pytest.mark.parametrize("case", cases(__file__, "refused"))
def test_refusals(clients: Clients, nothing_written: Unchanged, version: str, case: str) -> None:
    refused = cases(__file__, "refused")[case]
    name, params, number = refused["call"], [*map(param, refused.get("with", []))], refused["error"][0]
    with clients.ct(clients.server.writer, version) as client:
        if number == 2601:
            assert client.call(name, params[:2]).statuses == [0]
        with nothing_written():
            answer = client.call(name, params)
        compare(answer, refused | {"failed": True, "statuses": [], "outputs": {}})
        terminated = [message.number for message in answer.messages if message.severity <= 10]
        assert terminated == ([3621] if number in (515, 547, 2601, 8152) else [])
        assert client.call("last_sr_rf").statuses == [0], "the connection goes on"


# --- rows ---


def test_a_row_through_pymssql(clients: Clients, admin: Admin) -> None:
    with clients.pymssql(clients.server.writer) as connection, connection.cursor() as cursor:
        cursor.callproc("put_sr_rf", (4, datetime(2023, 3, 17, 8, 20, 0, 250_000), 3.5, None))
        assert cursor.returnvalue == 0
    assert row_of(admin, "sr_rf", 4)[2:] == (3.5, None)


@pytest.mark.parametrize("version", ["5.0 512", "5.0 32768", "7.4 4096"])
def test_a_row_of_202_parameters_across_packets(clients: Clients, admin: Admin, version: str) -> None:
    values = [f"{n / 8}" for n in range(200)]
    for seq_no, named in ((10, True), (11, False)):
        with clients.ct(clients.server.writer, version) as client:
            params = [
                Param("int", str(seq_no), "@seq_no" if named else ""),
                Param("datetime", TIME, "@time" if named else ""),
            ]
            for name, value in zip(CURRENTS, values, strict=True):
                params.append(Param("real", value, f"@{name}" if named else ""))
            for _ in range(2):  # the second by the plan of the first
                assert client.call("put_sr_mag_ps", params).statuses == [0]
        assert row_of(admin, "sr_mag_ps", seq_no)[2:] == tuple(n / 8 for n in range(200))
    logged = "select count(*) from log.sr_mag_ps where seq_no in (10, 11) and time = '2023-03-17 08:20+09'"
    assert admin.execute(logged).fetchone() == (2,)


def test_252_parameters(clients: Clients, admin: Admin) -> None:
    """As many as the widest table of SPring-8 has, in packets of 512 bytes."""
    columns = ", ".join(f"c{n} real" for n in range(250))
    admin.execute(f"create table gateway_test.widest (seq_no int, time timestamptz, {columns})")
    admin.execute(
        "create function gateway_test.sum_of_row(r gateway_test.widest, out total text) language sql "
        f"as $$ select concat_ws(' ', r.seq_no, r.time, {'+'.join(f'r.c{n}' for n in range(250))}) $$;"
        "grant execute on function gateway_test.sum_of_row to daq_writer; notify ringlog_catalogue"
    )
    for section in ("5.0 512", "7.4"):
        with clients.ct(clients.server.writer, section) as client:
            params = [Param("int", "1", "@seq_no"), Param("datetime", TIME, "@time")]
            params += [Param("real", str(n), f"@c{n}") for n in range(250)]
            params.append(Param("char:60", None, "@total", out=True))
            total = client.call("sum_of_row", params).outputs["@total"]
        assert total == f"1 2023-03-17 08:20:00+09 {sum(range(250))}"
    admin.execute("drop function gateway_test.sum_of_row; drop table gateway_test.widest")


# --- results ---


@BOTH
def test_a_result_set(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("many_rows", [Param("int", "3")])
        assert answer.rows == [[str(i), "x" * 100] for i in (1, 2, 3)]
        assert (answer.columns, answer.statuses) == (["i", "filler"], [0])
        none = client.call("many_rows", [Param("int", "0")])
        assert (none.rows, none.columns, none.statuses) == ([], ["i", "filler"], [0])


@pytest.mark.parametrize("version", ["5.0 512", "5.0", "7.1", "7.4"])
def test_a_long_result_set(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("many_rows", [Param("int", "20000")])
        assert [row[0] for row in answer.rows] == [str(i) for i in range(1, 20001)]


def test_outputs_through_pymssql(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        got = cursor.callproc("defaults", (1, 2, "x", pymssql.output(str)))
        assert got[-1] == "1 2 x"
        assert cursor.returnvalue == 0


def test_outputs_of_texts_and_bytes_are_cut(clients: Clients) -> None:
    server = clients.server
    text = "set @a = N'12345' set @b = 0x0102030405"
    with (
        ctds_of(server, server.reader) as connection,
        connection.cursor() as cursor,
    ):
        outputs = cursor.callproc(
            "sp_executesql",
            {
                "@stmt": ctds.SqlNVarChar(text),
                "@params": ctds.SqlNVarChar("@a nvarchar(20) output, @b varbinary(20) output"),
                "@a": ctds.Parameter(ctds.SqlNVarChar(None, size=3), output=True),
                "@b": ctds.Parameter(ctds.SqlVarBinary(None, size=2), output=True),
            },
        )
        assert (outputs["@a"], outputs["@b"]) == ("123", b"\1\2")


@BOTH
def test_a_row_as_the_only_output_is_a_result_set(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("whole_row")
        assert len(answer.rows) == 1
        assert answer.rows[0][1:3] == ["-32768", "-2147483648"]


def test_a_function_made_after_login_is_found(clients: Clients, admin: Admin) -> None:
    with clients.ct(clients.server.reader) as client:
        assert client.call("made_later").error.number == 2812
        admin.execute("create function gateway_test.made_later() returns int language sql as 'select 5'")
        # names that are unknown are looked up twice a second at most
        wait_until(lambda: client.call("made_later").statuses == [5])
        admin.execute("drop function gateway_test.made_later(); notify ringlog_catalogue")
        assert client.call("made_later").error.number == 2812


def test_refusals_raise_in_pymssql(clients: Clients, nothing_written: Unchanged) -> None:
    at = datetime(2024, 1, 1)
    cases: list[tuple[str, tuple[Any, ...], int, int]] = [
        ("put_nothing", (), 2812, 16),
        ("put_sr_rf", (), 201, 16),
        ("put_sr_rf", (1, at, 1.0, 1, 1), 8144, 16),
        ("put_sr_rf", (11, at, 1.0, 1), 547, 16),
        ("put_sr_rf", (1, None, 1.0, 1), 515, 16),
        ("put_sr_rf", (1, at, "x", 1), 8114, 16),
        ("put_sr_rf", (1, at, 1.0, 2**31), 8115, 16),
        ("put_every_type", (1, at, 1.0, 1.0, 1, 1, 1, True, "x" * 41), 8152, 16),
        # two units of UTF-16 each ("nchar and nvarchar")
        ("put_every_type", (1, at, 1.0, 1.0, 1, 1, 1, True, "x" + "😀" * 20), 8152, 16),
    ]
    with clients.pymssql(clients.server.writer) as connection, connection.cursor() as cursor:
        for name, params, number, severity in cases:
            with nothing_written(), pytest.raises(pymssql.Error) as refused:
                cursor.callproc(name, params)
            assert errors_of(refused.value)[:2] == (number, severity), refused.value


def test_a_procedure_that_fails_like_an_outdated_one_runs_once(clients: Clients, admin: Admin) -> None:
    """It commits the first half of its work and then fails; a second run would repeat that half."""
    admin.execute(
        "create procedure gateway_test.half() language plpgsql as $$ begin "
        "insert into gateway_test.journal (entry) values ('half ' || clock_timestamp()); commit; "
        "raise exception 'gone' using errcode = '42883'; end $$; "
        "grant execute on procedure gateway_test.half to daq_writer; notify ringlog_catalogue"
    )
    with clients.ct(clients.server.writer) as client:
        assert client.call("half").error.text == "gone (SQLSTATE 42883)"
    count = admin.execute("select count(*) from gateway_test.journal where entry like 'half %'").fetchone()
    assert count == (1,)
    admin.execute("drop procedure gateway_test.half")
