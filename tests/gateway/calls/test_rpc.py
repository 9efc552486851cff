"""Calls by RPC, through pymssql and ct-library."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import ctds
import pymssql
import pytest

from tds_clients import Admin, Clients, Param, errors_of
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("functions")
BOTH = pytest.mark.parametrize("version", ["5.0", "7.4"])
Unchanged = Callable[[], AbstractContextManager[None]]

# 2023-03-17 08:20:00 as a Sybase datetime: days since 1900, 1/300 s since midnight
TIME = "45000 9000000"
CURRENTS = [f"current_{n}" for n in range(1, 201)]


def row_of(admin: Admin, table: str, seq_no: int) -> tuple[object, ...]:
    row = admin.execute(f"select * from online.{table} where seq_no = {seq_no}").fetchone()
    assert row is not None
    return row


# --- a row is written ---


@BOTH
def test_a_row_by_names_in_any_order(clients: Clients, admin: Admin, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        answer = client.call(
            "put_sr_rf",
            [
                Param("int", "42", "@arcs"),
                Param("real", "1.5", "@Power"),
                Param("datetime", TIME, "@time"),
                Param("int", "1", "@seq_no"),
            ],
        )
    assert (answer.statuses, answer.messages, answer.end) == ([0], [], "results")
    assert row_of(admin, "sr_rf", 1)[2:] == (1.5, 42)
    assert str(row_of(admin, "sr_rf", 1)[1]) == "2023-03-17 08:20:00+09:00"


@BOTH
def test_a_row_by_position(clients: Clients, admin: Admin, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        answer = client.call(
            "put_sr_rf",
            [Param("int", "2"), Param("datetime", TIME), Param("real", "-2.25"), Param("int", "7")],
        )
    assert answer.statuses == [0]
    assert row_of(admin, "sr_rf", 2)[2:] == (-2.25, 7)


@BOTH
def test_null_and_omitted_columns(clients: Clients, admin: Admin, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        params = [
            Param("int", "3", "@seq_no"),
            Param("datetime", TIME, "@time"),
            Param("real", None, "@power"),
        ]
        assert client.call("put_sr_rf", params).statuses == [0]
    assert row_of(admin, "sr_rf", 3)[2:] == (None, None)


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
@pytest.mark.parametrize("status", [0, 1, -2147483648, 2147483647])
def test_the_return_status(clients: Clients, version: str, status: int) -> None:
    with clients.ct(clients.server.reader, version) as client:
        assert client.call("status", [Param("int", str(status))]).statuses == [status]
        assert client.call("status", [Param("int", None)]).statuses == [0]


@BOTH
def test_other_kinds_of_results(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        assert client.call("small_status").statuses == [7]
        assert client.call("no_status").statuses == [0]
        one = client.call("one_value")
        assert (one.rows, one.columns, one.statuses) == ([["a value"]], ["one_value"], [0])


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


@BOTH
def test_outputs_of_a_function_the_facility_has(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        params = [Param("int", "9", "@seq_no"), Param("datetime", "45100 30", "@time")]
        assert client.call("put_sr_vac", params).statuses == [0]
        answer = client.call(
            "last_sr_vac",
            [Param("int", None, "@seq_no", out=True), Param("datetime", None, "@time", out=True)],
        )
    assert (answer.outputs, answer.statuses) == ({"@seq_no": "9", "@time": "45100 30"}, [0])


def test_outputs_through_pymssql(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        got = cursor.callproc("defaults", (1, 2, "x", pymssql.output(str)))
        assert got[-1] == "1 2 x"
        assert cursor.returnvalue == 0


@BOTH
def test_outputs_are_sent_in_the_types_the_client_declares(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        asked = [
            Param("int", "7", "@an_int", out=True),
            Param("char:20", None, "@a_float", out=True),
            Param("float", "2.5", "@a_real", out=True),
            Param("char:30", "8.5", "@a_numeric", out=True),
        ]
        assert client.call("echo", asked).outputs == {
            "@an_int": "7",
            "@a_float": None,
            "@a_real": "2.5",
            "@a_numeric": "8.5",
        }


@BOTH
def test_only_requested_outputs_are_returned(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("echo", [Param("int", "7", "@an_int"), Param("real", "2", "@a_real", out=True)])
        assert answer.outputs == {"@a_real": "2"}
        assert client.call("echo", [Param("int", "7", "@an_int")]).outputs == {}


@BOTH
def test_outputs_of_a_group(clients: Clients, version: str) -> None:
    """definer_echo may share a transaction with calls of other clients."""
    with clients.ct(clients.server.writer, version) as client:
        for i in range(3):
            answer = client.call(
                "definer_echo",
                [
                    Param("int", str(i), out=True),
                    Param("char:30", "täxt", out=True),
                    Param("real", None, out=True),
                ],
            )
            assert list(answer.outputs.values()) == [str(i + 1), "täxt", None]


@BOTH
def test_an_output_longer_than_the_clients_declaration(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call(
            "echo", [Param("bigint", "300", "@a_bigint"), Param("tinyint", None, "@an_int", out=True)]
        )
        assert answer.outputs == {"@an_int": None}
        answer = client.call("echo", [Param("char:40", "a longer one", "@a_varchar", out=True)])
        assert answer.outputs == {"@a_varchar": "a longer one"}
        answer = client.call("defaults", [Param("int", "1234567"), Param("tinyint", None, "@said", out=True)])
        assert answer.error.number == 8114
        assert "@said" in answer.error.text
        assert answer.failed


@BOTH
def test_an_output_longer_than_the_client_declared(clients: Clients, version: str) -> None:
    """zillow/ctds, test_cursor_callproc.py, test_binary_output: "When the output parameter size is less than
    the actual data, SQL Server truncates the data." At 5.0 clients declare the value they send
    (DBD::Sybase).
    """
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("defaults", [Param("int", "1", "@a"), Param("char:3", None, "@said", out=True)])
        assert answer.statuses == [0]
        assert answer.outputs == {"@said": "1 2" if version == "7.4" else "1 20 see"}


def test_outputs_of_texts_and_bytes_are_cut(clients: Clients) -> None:
    server = clients.server
    text = "set @a = N'12345' set @b = 0x0102030405"
    with (
        ctds.connect(
            server.host,
            port=server.port,
            user=server.reader.user,
            password=server.reader.password,
            autocommit=True,
            login_timeout=100,
        ) as connection,
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
def test_defaults(clients: Clients, version: str) -> None:
    said = Param("char:40", None, "@said", out=True)
    with clients.ct(clients.server.reader, version) as client:
        for params, words in [
            ([Param("int", "1", "@a")], "1 20 see"),
            ([Param("int", "1", "@a"), Param("char", "you", "@c")], "1 20 you"),
            ([Param("int", "1"), Param("int", "2")], "1 2 see"),
            ([Param("int", "1"), Param("int", None)], "1 see"),
        ]:
            assert client.call("defaults", [*params, said]).outputs == {"@said": words}


@BOTH
def test_parameters_without_names(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        params = [Param("int", "5"), Param("char", "words"), Param("char:40", None, out=True)]
        assert list(client.call("no_names", params).outputs.values()) == ["5 words"]


@BOTH
def test_two_composites(clients: Clients, version: str) -> None:
    said = Param("char:60", None, "@said", out=True)
    with clients.ct(clients.server.reader, version) as client:
        by_name = [
            Param("real", "2", "@y"),
            Param("char", "here", "@label"),
            Param("real", "9", "@radius"),
            said,
        ]
        assert client.call("two_composites", by_name).outputs == {"@said": "2 here 9"}
        places = [Param("real", str(i)) for i in (1, 2)]
        places += [Param("char", "there"), Param("real", "3"), Param("real", "4")]
        assert client.call("two_composites", [*places, said]).outputs == {"@said": "1 2 there 3 4"}
        shared = client.call("two_composites", [Param("real", "2", "@x"), said])
        assert shared.error[:] == (
            8145,
            16,
            "@x names several parameters of procedure two_composites: pass them by position.",
        )


@BOTH
def test_types_sent_as_text(clients: Clients, version: str) -> None:
    said = Param("char:60", None, "@said", out=True)
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("interval_text", [Param("char", "0 days 01:02:03"), said])
        assert answer.outputs == {"@said": "01:02:03"}
        answer = client.call("interval_text", [Param("char", "1 day 02:03:04.5"), said])
        assert answer.outputs == {"@said": "1 day 02:03:04.5"}
        total = client.call("sum_of", [Param("char", "{1,2,39}"), Param("int", None, "@total", out=True)])
        assert total.outputs == {"@total": "42"}
        refused = client.call("sum_of", [Param("char", "{1,two}"), Param("int", None, "@total", out=True)])
        assert refused.error.number == 8114


@BOTH
def test_domains(clients: Clients, version: str) -> None:
    twice = Param("int", None, "@twice", out=True)
    with clients.ct(clients.server.reader, version) as client:
        assert client.call("of_domain", [Param("int", "21"), twice]).outputs == {"@twice": "42"}
        assert client.call("of_domain", [Param("int", "-1"), twice]).error.number == 547


@BOTH
def test_an_unknown_procedure(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        params = [Param("int", "1"), Param("int", None, out=True), Param("char:10", "so", out=True)]
        assert list(client.call("a_procedure", params).outputs.values()) == ["2", "so!"]


@BOTH
def test_a_row_as_the_only_output_is_a_result_set(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("whole_row")
        assert len(answer.rows) == 1
        assert answer.rows[0][1:3] == ["-32768", "-2147483648"]


@BOTH
def test_messages_come_before_the_error_that_follows_them(
    clients: Clients, nothing_written: Unchanged, version: str
) -> None:
    with clients.ct(clients.server.writer, version) as client, nothing_written():
        for answer in (
            client.call("say_and_fail", [Param("char", "x")]),
            client.language("say_and_fail 'x'"),
        ):
            assert [message.text for message in answer.messages] == [
                "about to enter x",
                "entered",
                "refused (SQLSTATE RL001)",
            ]
            assert [message.severity > 10 for message in answer.messages] == [False, False, True]
            assert answer.statuses == []


@BOTH
def test_notices_are_messages(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("say", [Param("char", "grüße")])
        assert (answer.messages, answer.statuses) == ([(0, 0, "grüße")], [3])


@pytest.mark.parametrize(
    "name",
    [
        "echo",
        "ECHO",
        "gateway_test.echo",
        "gateway_test..echo",
        "gateway_test.dbo.echo",
        "dbo.echo",
        "[echo]",
        "echo;1",
    ],
)
def test_names_of_procedures(clients: Clients, name: str) -> None:
    with clients.ct(clients.server.reader) as client:
        assert client.call(name, [Param("int", "1", "@an_int", out=True)]).outputs == {"@an_int": "1"}


def test_an_overloaded_function(clients: Clients) -> None:
    """The names of parameters distinguish them; a call that fits two is refused."""
    with clients.ct(clients.server.reader) as client:
        answer = client.call("overloaded", [Param("int", "1", "@a")])
        assert answer.error[:2] == (2812, 16)
        assert "not one procedure but several" in answer.error.text


@BOTH
def test_several_calls_on_one_connection_are_answered_separately(clients: Clients, version: str) -> None:
    """A call that failed leaves nothing behind for the next."""
    with clients.ct(clients.server.reader, version) as client:
        for i in range(20):
            assert client.call("nothing_like_it").error.number == 2812
            assert client.call("status", [Param("int", str(i))]).statuses == [i]
            assert client.call("rows_then_error").rows == [["2"], ["3"], ["6"]]


@BOTH
def test_an_error_after_rows(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("rows_then_error")
        assert (answer.rows, answer.error[:2], answer.failed) == ([["2"], ["3"], ["6"]], (8134, 16), True)
        assert answer.statuses == []


def test_a_function_made_after_login_is_found(clients: Clients, admin: Admin) -> None:
    with clients.ct(clients.server.reader) as client:
        assert client.call("made_later").error.number == 2812
        admin.execute("create function gateway_test.made_later() returns int language sql as 'select 5'")
        # names that are unknown are looked up twice a second at most
        wait_until(lambda: client.call("made_later").statuses == [5])
        admin.execute("drop function gateway_test.made_later(); notify ringlog_catalogue")
        assert client.call("made_later").error.number == 2812


# --- refusals ---


def put(*params: Param) -> tuple[str, list[Param]]:
    return "put_sr_rf", list(params)


SEQ_NO, AT = Param("int", "5", "@seq_no"), Param("datetime", "45001 0", "@time")

REFUSED = {
    "no such procedure": (("put_nothing", []), 2812, 16, "Could not find stored procedure 'put_nothing'."),
    "nothing given": (put(), 201, 16, "Procedure or function 'put_sr_rf' expects parameter '@seq_no'"),
    "a parameter missing": (("status", []), 201, 16, "expects parameter '@value', which was not supplied"),
    "too many": (put(*[Param("int", "1")] * 5), 8144, 16, "put_sr_rf has too many arguments specified"),
    "no such parameter": (
        put(SEQ_NO, AT, Param("int", "1", "@x")),
        8145,
        16,
        "@x is not a parameter for procedure",
    ),
    "twice": (put(SEQ_NO, AT, SEQ_NO), 8143, 16, "Parameter '@seq_no' was supplied multiple times"),
    "position after name": (put(SEQ_NO, Param("datetime", TIME)), 119, 15, "Must pass parameter number 2"),
    "no output": (put(Param("int", "5", "@seq_no", out=True), AT), 8162, 16, "not declared as an OUTPUT"),
    "outside the ring": (put(Param("int", "11", "@seq_no"), AT), 547, 16, "seq_no 11 is outside 1 to 10"),
    "seq_no 0": (put(Param("int", "0", "@seq_no"), AT), 547, 16, "seq_no 0 is outside 1 to 10"),
    "no time": (put(SEQ_NO), 515, 16, "time must not be null"),
    "not a number": (put(SEQ_NO, AT, Param("char", "1,5", "@power")), 8114, 16, "'@power' of put_sr_rf"),
    "not a time": (put(SEQ_NO, Param("char", "yesterday", "@time")), 8114, 16, "'@time' of put_sr_rf"),
    "out of range": (
        put(SEQ_NO, AT, Param("bigint", "2147483648", "@arcs")),
        8115,
        16,
        "'@arcs' of put_sr_rf",
    ),
    "real overflow": (put(SEQ_NO, AT, Param("float", "1e39", "@power")), 8115, 16, "'@power' of put_sr_rf"),
    "no integer": (put(SEQ_NO, AT, Param("float", "1.5", "@arcs")), 8114, 16, "'@arcs' of put_sr_rf"),
    "too long": (
        ("put_every_type", [SEQ_NO, AT, Param("char", "x" * 41, "@a_varchar")]),
        8152,
        16,
        "'@a_varchar' of put_every_type: value too long for type character varying(40)",
    ),
    "another row of the same time": (
        ("put_every_type", [SEQ_NO, AT, Param("real", "99", "@a_real")]),
        2601,
        14,
        "its values of a_real differ. Give each reading a time or a seq_no of its own",
    ),
}


@BOTH
@pytest.mark.parametrize("case", REFUSED)
def test_refusals(clients: Clients, nothing_written: Unchanged, version: str, case: str) -> None:
    (name, params), number, severity, words = REFUSED[case]
    with clients.ct(clients.server.writer, version) as client:
        if number == 2601:
            assert client.call(name, params[:2]).statuses == [0]
        with nothing_written():
            answer = client.call(name, params)
        assert answer.error[:2] == (number, severity), answer
        assert words in answer.error.text
        assert (answer.failed, answer.statuses, answer.outputs) == (True, [], {})
        terminated = [message.number for message in answer.messages if message.severity <= 10]
        assert terminated == ([3621] if number in (515, 547, 2601, 8152) else [])
        assert client.call("last_sr_rf").statuses == [0], "the connection goes on"


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


@BOTH
def test_a_reader_may_not_put(clients: Clients, nothing_written: Unchanged, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client, nothing_written():
        answer = client.call("put_sr_rf", [SEQ_NO, AT])
    assert answer.error[:] == (
        229,
        14,
        "permission denied for function put_sr_rf (login reader, SQLSTATE 42501)",
    )
    assert (answer.failed, answer.statuses) == (True, [])


@BOTH
def test_a_writer_may_not_get(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        answer = client.call("get_sr_rf")
    assert (answer.error[:2], answer.rows) == ((229, 14), [])


@BOTH
def test_procedures_forbidden_to_all(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        assert client.call("forbidden").error[:2] == (229, 14)


@BOTH
@pytest.mark.parametrize(
    ("sqlstate", "number", "severity"),
    [
        ("23505", 2601, 14),
        ("23503", 547, 16),
        ("23502", 515, 16),
        ("40P01", 1205, 13),
        ("42501", 229, 14),
        ("42P01", 208, 16),
        ("22001", 8152, 16),
        ("22003", 8115, 16),
        ("22012", 8134, 16),
        ("P0001", 50000, 16),
        # a function that fails like one with an outdated catalogue entry
        ("42883", 2812, 16),
        ("42804", 257, 16),
        ("0A000", 50000, 16),
    ],
)
def test_numbers_of_errors(clients: Clients, version: str, sqlstate: str, number: int, severity: int) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.call("complain", [Param("char", sqlstate), Param("char", "so it is")])
        login = "login reader, " if sqlstate == "42501" else ""
        assert answer.error == (number, severity, f"so it is ({login}SQLSTATE {sqlstate})")


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
