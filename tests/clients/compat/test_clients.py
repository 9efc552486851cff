"""Clients that programs are written with.

Each test is one thing that DAQ programs do, in the client's usual way. Its name is a column of
docs/reference/clients-matrix.md.
"""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from client_compat import CLIENTS, Client, Clients, Conversation, stored
from servers import Login, RunningServer
from tds_clients import Admin, Param
from waiting import wait_until

__all__ = ["CLIENTS"]

AT = datetime(2026, 1, 2, 3, 4, 5, 500_000)
"""a time that is a multiple of 1/300 s"""
VALUES: tuple[Any, ...] = (1.5, 0.1, -7, 300, 2**53 + 1, True, "häuser")
"""values of the columns of every_type"""
COLUMNS = ("a_real", "a_double", "an_int", "a_smallint", "a_bigint", "a_bit", "a_varchar")
TYPES = ("real", "float", "int", "smallint", "bigint", "bit", "char")


def row(seq_no: int, at: datetime = AT, values: tuple[Any, ...] = VALUES) -> list[Param]:
    """The parameters of put_every_type, by name."""
    columns = zip(TYPES, COLUMNS, values, strict=True)
    return [
        Param("int", str(seq_no), "@seq_no"),
        Param("datetime", at.isoformat(" ", "milliseconds"), "@time"),
        *(Param(type, None if value is None else _text(value), f"@{name}") for type, name, value in columns),
    ]


def unnamed(params: list[Param]) -> list[Param]:
    return [param._replace(name="") for param in params]


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _shown(client: Client, at: datetime) -> str:
    """A time in the client's form."""
    return at.strftime("%b %e %Y %I:%M%p") if client.minutes else at.isoformat(" ", "microseconds")


def none_left_running(admin: Admin) -> bool:
    """PostgreSQL has ended the cancelled statement."""
    found = admin.execute(
        "select query from pg_stat_activity where state = 'active' and query like '%pg_sleep%' "
        "and pid <> pg_backend_pid()"
    )
    return not found.fetchall()


def test_login(client: Client, reader: Conversation) -> None:
    assert reader.query("select 1 as one").good().rows == [[1]]


def test_wrong_password(client: Client, clients: Clients, server: RunningServer) -> None:
    with clients.session(client, Login(server.writer.user, "wrong")) as session:
        refused = session.login.failure
    assert refused is not None
    assert (refused.type, refused.number) == (client.refused, client.login_number)
    assert "wrong" not in refused.text


def test_put_by_position(client: Client, writer: Conversation, admin: Admin) -> None:
    writer.call("put_every_type", *unnamed(row(3))).good()
    assert stored(admin) == [(3, AT, *VALUES)]


def test_put_by_name(client: Client, writer: Conversation, admin: Admin) -> None:
    writer.call("put_every_type", *reversed(row(4))).good()
    assert stored(admin) == [(4, AT, *VALUES)]


def test_rows(client: Client, writer: Conversation, reader: Conversation) -> None:
    for seq_no in (3, 4):
        writer.call("put_every_type", *unnamed(row(seq_no))).good()
    answer = reader.call("get_every_type", Param("int", "5")).good()
    assert answer.columns == ["seq_no", "time", *COLUMNS]
    assert answer.rows == [[seq_no, _shown(client, AT), *VALUES] for seq_no in (4, 3)]


def test_nulls(client: Client, writer: Conversation, reader: Conversation, admin: Admin) -> None:
    nothing = (None,) * len(VALUES)
    writer.call("put_every_type", *unnamed(row(5, values=nothing))).good()
    assert stored(admin) == [(5, AT, *nothing)]
    answer = reader.call("get_every_type", Param("int", "1")).good()
    assert answer.rows == [[5, _shown(client, AT), *nothing]]


def test_types(client: Client, reader: Conversation, functions: None) -> None:
    """Types that rings lack."""
    (some,) = reader.call("compat_values", Param("char", "some")).good().rows
    numeric, date, time_of_day, timestamp, binary, guid, text = some
    assert Decimal(str(numeric)) == Decimal("-12345678.9012")
    assert date.startswith("2026-01-02")
    assert ("03:04" if client.minutes else "03:04:05.68") in time_of_day
    assert timestamp == _shown(client, datetime(2026, 1, 2, 3, 4, 5, 680000))
    assert (binary.lower(), guid.lower()) == ("00ff41", "01234567-89ab-cdef-0123-456789abcdef")
    assert text == "Ω " + "lang " * 2000
    assert reader.call("compat_values", Param("char", "null")).good().rows == [[None] * 7]
    ((*_, binary, _, text),) = reader.call("compat_values", Param("char", "empty")).good().rows
    # ASE stores an empty text as a blank, which some clients remove
    assert binary == client.empty_binary
    assert text in ("", " ") if client.protocol == "5.0" else text == ""


def test_parameter_types(
    client: Client, reader: Conversation, functions: None, remark: Callable[[str], None]
) -> None:
    """Types that rings lack."""
    long = "lang " * 100 + "."
    values = (("numeric", "-12345678.9012"), ("date", "2026-01-02"), ("binary", "00ff41"), ("text", long))
    shown = reader.call("compat_shown", *(Param(*value) for value in values)).good().rows
    assert shown == [["|".join(value[: client.longest_text] for _, value in values)]]
    if client.longest_text is not None:
        remark(f"it cuts a text parameter at {client.longest_text} bytes and says nothing")
    shown = reader.call("compat_shown", *(Param(type, None) for type, _ in values)).good().rows
    assert shown == [["null|null|null|null"]]


def test_empty_text(
    client: Client, writer: Conversation, admin: Admin, remark: Callable[[str], None]
) -> None:
    if client.empty != "":
        remark(f"it sends {'NULL' if client.empty is None else 'a blank'}")
    values = (*VALUES[:-1], "")
    writer.call("put_every_type", *unnamed(row(5, values=values))).good()
    assert stored(admin) == [(5, AT, *VALUES[:-1], client.empty)]


def test_messages(client: Client, reader: Conversation, functions: None) -> None:
    answer = reader.call("compat_say", Param("char", "this")).good()
    (message,) = answer.messages
    assert message.severity <= 10
    assert "you say this" in message.text


def test_unicode(client: Client, writer: Conversation, reader: Conversation, admin: Admin) -> None:
    values = (*VALUES[:-1], "Ω 電流 𝄞")
    writer.call("put_every_type", *unnamed(row(5, values=values))).good()
    assert stored(admin) == [(5, AT, *values)]
    assert reader.call("get_every_type", Param("int", "1")).good().rows == [[5, _shown(client, AT), *values]]


def test_status(client: Client, writer: Conversation) -> None:
    assert writer.call("put_every_type", *unnamed(row(6))).good().status == 0


def test_output_parameters(client: Client, writer: Conversation) -> None:
    writer.call("put_every_type", *unnamed(row(7))).good()
    outputs = [Param("int", None, "@seq_no", out=True), Param("datetime", None, "@time", out=True)]
    answer = writer.call("last_every_type", *(outputs if client.outputs_by_name else unnamed(outputs))).good()
    seq_no, at = answer.outputs
    assert (seq_no, datetime.fromisoformat(at)) == (7, AT)


def test_procedure_error(client: Client, writer: Conversation, admin: Admin) -> None:
    answer = writer.call("put_every_type", *unnamed(row(11)))
    assert answer.failure is not None
    assert (answer.failure.type, answer.failure.number) == (client.failed, 547)
    assert "put_every_type: seq_no 11 is outside 1 to 10" in answer.failure.text
    assert stored(admin) == []
    writer.call("put_every_type", *unnamed(row(1))).good()


def test_wide_row(client: Client, writer: Conversation, admin: Admin) -> None:
    at = datetime(2001, 2, 3)
    values = [number / 4 for number in range(200)]
    params = [Param("int", "50"), Param("datetime", "2001-02-03 00:00:00.000")]
    writer.call("put_sr_mag_ps", *params, *(Param("real", str(value)) for value in values)).good()
    deleted = admin.execute("delete from log.sr_mag_ps where time = %s returning *", [at]).fetchall()
    admin.execute("update online.sr_mag_ps set time = null where time = %s", [at])
    assert [list(found[2:]) for found in deleted] == [values]


def test_query(client: Client, reader: Conversation) -> None:
    answer = reader.query("select i, 'row ' || i as name from generate_series(1, 3000) as i").good()
    assert answer.columns == ["i", "name"]
    assert answer.rows == [[i, f"row {i}"] for i in range(1, 3001)]
    assert reader.query("select * from nowhere").number == 208


def test_several_results(client: Client, reader: Conversation) -> None:
    answer = reader.query("select 1 as a select 2 as b select 3 as c").good()
    assert (answer.rows, answer.columns) == ([[1], [2], [3]], ["c"])


def test_long_text(client: Client, reader: Conversation) -> None:
    ((text,),) = reader.query("select repeat('0123456789', 20000) as t").good().rows
    assert text == "0123456789" * 20000


def test_parameters(client: Client, writer: Conversation, reader: Conversation) -> None:
    for seq_no in (3, 4):
        writer.call("put_every_type", *unnamed(row(seq_no))).good()
    text = "select seq_no, a_real from every_type where seq_no > ? and a_varchar = ? order by seq_no"
    for least, expected in ((3, [[4, 1.5]]), (2, [[3, 1.5], [4, 1.5]])):
        answer = reader.execute(text, Param("int", str(least)), Param("char", "häuser")).good()
        assert answer.rows == expected
    refused = reader.execute("select * from nowhere where a = ?", Param("int", "1"))
    assert refused.number == 208


def test_outputs_in_text(client: Client, writer: Conversation) -> None:
    writer.call("put_every_type", *unnamed(row(8))).good()
    answer = writer.query(
        "declare @s int, @t datetime, @r int "
        "exec @r = last_every_type @seq_no = @s output, @time = @t output "
        "select @s, @r"
    ).good()
    assert answer.rows[-1] == [8, 0]


def test_transaction(client: Client, writer: Conversation, admin: Admin) -> None:
    writer.begin().good()
    writer.call("put_every_type", *unnamed(row(3))).good()
    assert stored(admin) == [], "stored before the end of the transaction"
    writer.rollback().good()
    assert stored(admin) == [], "stored although it was rolled back"
    writer.begin().good()
    writer.call("put_every_type", *unnamed(row(4))).good()
    writer.commit().good()
    assert stored(admin) == [(4, AT, *VALUES)]


def test_pool(client: Client, reader: Conversation) -> None:
    before = reader.query("select @@spid").good().rows
    reader.query("use log begin tran").good()
    reader.again().good()
    assert reader.query("select @@spid").good().rows == before
    assert reader.query("select @@trancount").good().rows == [[0]]
    assert reader.query("select current_schema() as name").good().rows == [["online"]]


def test_half_read(client: Client, reader: Conversation, admin: Admin) -> None:
    answer = reader.abandon(
        "select i, cast('a text' as varchar(20)) as t from generate_series(1, 300000) as i"
    ).good()
    assert answer.rows == [[1, "a text"]]
    assert reader.query("select 2 as two").good().rows == [[2]]


def test_cancel(client: Client, reader: Conversation, admin: Admin) -> None:
    reader.cancel("select 1 as one from pg_sleep(300)", after=0.3)
    assert reader.query("select 2 as two").good().rows == [[2]]
    wait_until(lambda: none_left_running(admin))


def test_timeout(client: Client, reader: Conversation, admin: Admin) -> None:
    assert reader.timeout("select 1 as one from pg_sleep(300)", seconds=1).failure is not None
    assert reader.query("select 2 as two").good().rows == [[2]]
    wait_until(lambda: none_left_running(admin))
