"""Values of every type there and back: generated ones through pymssql at 7.4 and ct-library at 5.0."""

import math
import string
import struct
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pymssql
import pyodbc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from authors import author_with_schema
from raw_client import RawClient
from raw_tds import LITTLE, VARCHAR, numeric
from raw_tds import Param as RawParam
from servers import Login, RunningServer
from tds_clients import PLAIN, SEVENS, Answer, Clients, CtClient, Param, rows_of

pytestmark = pytest.mark.usefixtures("functions")
generated = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def single(value: float) -> float:
    """The nearest 4-byte float."""
    (near,) = struct.unpack("<f", struct.pack("<f", value))
    return float(near)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
REALS = st.floats(allow_nan=False, allow_infinity=False, width=32)
SMALLINTS, INTS, BIGINTS = (st.integers(-(2**n), 2**n - 1) for n in (15, 31, 63))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=300)


# --- pymssql ---


@pytest.fixture(scope="module")
def cursor(clients: Clients) -> Iterator[pymssql.Cursor]:
    with clients.pymssql(PLAIN) as connection, connection.cursor() as cursor:
        yield cursor


def echoed(cursor: pymssql.Cursor, **values: Any) -> dict[str, object]:
    """The results of echo_rows for values by name; others are NULL."""
    names = (
        "bit smallint int bigint real float numeric varchar text bytea date time timestamp timestamptz uuid"
    )
    cursor.callproc("echo_rows", [values.get(name) for name in names.split()])
    (row,) = cursor.fetchall()
    assert row is not None
    return {name: value for name, value in zip(names.split(), row, strict=True) if name in values}


@generated
@given(bit=st.booleans(), smallint=SMALLINTS, int_=INTS, bigint=BIGINTS)
def test_integers(cursor: pymssql.Cursor, bit: bool, smallint: int, int_: int, bigint: int) -> None:
    values = {"bit": bit, "smallint": smallint, "int": int_, "bigint": bigint}
    assert echoed(cursor, **values) == values


@generated
@given(float_=FLOATS, real=REALS)
def test_floats(cursor: pymssql.Cursor, float_: float, real: float) -> None:
    got = echoed(cursor, float=float_, real=real)
    assert (got["float"], got["real"]) == (float_, real)
    assert math.copysign(1, float(str(got["float"]))) == math.copysign(1, float_)


@generated
@given(value=FLOATS)
def test_a_float_for_a_real_is_rounded_or_refused(cursor: pymssql.Cursor, value: float) -> None:
    try:
        near = single(value)
    except OverflowError:
        with pytest.raises(pymssql.Error):
            echoed(cursor, real=value)
        return
    if near == 0 and value != 0:
        with pytest.raises(pymssql.Error):
            echoed(cursor, real=value)
        return
    assert echoed(cursor, real=value) == {"real": near}


@generated
@given(text=TEXTS, varchar=TEXTS)
def test_texts(cursor: pymssql.Cursor, text: str, varchar: str) -> None:
    assert echoed(cursor, text=text, varchar=varchar) == {"text": text, "varchar": varchar}


@pytest.mark.parametrize("length", [1, 255, 256, 4000, 4001, 8000])
def test_long_texts_and_binaries(cursor: pymssql.Cursor, length: int) -> None:
    """pymssql itself cuts parameters at 8000."""
    text, data = ("ä€" * length)[:length], (bytes(range(256)) * length)[:length]
    assert echoed(cursor, text=text, bytea=data) == {"text": text, "bytea": data}


@pytest.mark.parametrize("version", SEVENS)
def test_texts_and_binaries_of_any_length(clients: Clients, version: str) -> None:
    text, data = "ä€🙂x" * 30_000, bytes(range(256)) * 500
    with clients.pymssql(PLAIN, version=version) as connection, connection.cursor() as cursor:
        assert rows_of(cursor, f"select '{text}' as text, 0x{data.hex()} as data") == [(text, data)]


@generated
@given(data=st.binary(min_size=1, max_size=300))
def test_binaries(cursor: pymssql.Cursor, data: bytes) -> None:
    assert echoed(cursor, bytea=data) == {"bytea": data}


@generated
@given(value=st.decimals(min_value=-(10**15), max_value=10**15, places=6, allow_nan=False))
def test_decimals(cursor: pymssql.Cursor, value: Decimal) -> None:
    assert echoed(cursor, numeric=value) == {"numeric": value}


def milliseconds(moment: datetime) -> datetime:
    """The value that pymssql sends for a datetime parameter."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@generated
@given(moment=st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)), day=st.dates())
def test_dates_and_times(cursor: pymssql.Cursor, moment: datetime, day: date) -> None:
    assert echoed(cursor, timestamp=moment) == {"timestamp": milliseconds(moment)}
    as_text = {"timestamp": moment.isoformat(" "), "date": day.isoformat(), "time": moment.time().isoformat()}
    values = {"timestamp": moment, "date": day, "time": moment.time()}
    assert echoed(cursor, **as_text) == values


@generated
@given(moment=st.datetimes(datetime(1951, 10, 1), datetime(2100, 1, 1)))
def test_datetimes_are_the_facilitys_local_time(cursor: pymssql.Cursor, moment: datetime) -> None:
    """Asia/Tokyo, which has had no summer time since 1951."""
    moment = milliseconds(moment)
    assert echoed(cursor, timestamptz=moment) == {"timestamptz": moment}
    cursor.callproc("shown", (None, None, None, None, moment))
    ((shown,),) = cursor.fetchall()
    assert datetime.fromisoformat(shown) == moment.replace(tzinfo=timezone(timedelta(hours=9)))


@pytest.mark.parametrize(
    "name", ["bit", "int", "real", "float", "numeric", "text", "bytea", "date", "timestamp"]
)
def test_null(cursor: pymssql.Cursor, name: str) -> None:
    assert echoed(cursor, **{name: None}) == {name: None}


# --- ct-library at 5.0 ---

EPOCH_1900 = datetime(1900, 1, 1)
EPOCH_0000_DAYS = 693_961
"""days from 0000-01-01 to 1900-01-01"""


@pytest.fixture(scope="module")
def ct(clients: Clients) -> Iterator[CtClient]:
    with clients.ct(PLAIN, "5.0 utf8") as client:
        yield client


def back(client: CtClient, type: str, parameter: str, value: str | None) -> str | None:
    """A value as an output parameter of the type in which it was sent."""
    answer = client.call("echo", [Param(type, value, parameter, out=True)])
    assert (answer.errors, answer.statuses) == ([], [0])
    return answer.outputs[parameter]


def as_result_column(client: CtClient, type: str, parameter: str, value: str) -> str | None:
    """A value as the column of a result set, in the type the gateway announces."""
    answer: Answer = client.call("echo_rows", [Param(type, value, parameter)])
    assert (answer.errors, answer.statuses) == ([], [0])
    column = "o_" + parameter.split("_", 1)[1]
    return answer.rows[0][answer.columns.index(column)]


@generated
@given(smallint=SMALLINTS, int_=INTS, bigint=BIGINTS, tiny=st.integers(0, 255), bit=st.integers(0, 1))
def test_integers_at_5(ct: CtClient, smallint: int, int_: int, bigint: int, tiny: int, bit: int) -> None:
    for type, parameter, value in [
        ("smallint", "@a_smallint", smallint),
        ("int", "@an_int", int_),
        ("bigint", "@a_bigint", bigint),
        ("tinyint", "@an_int", tiny),
        ("bit", "@a_bit", bit),
    ]:
        assert back(ct, type, parameter, str(value)) == str(value)
        assert as_result_column(ct, type, parameter, str(value)) == str(value)


@generated
@given(float_=FLOATS, real=REALS)
def test_floats_at_5(ct: CtClient, float_: float, real: float) -> None:
    for received in (
        back(ct, "float", "@a_float", repr(float_)),
        as_result_column(ct, "float", "@a_float", repr(float_)),
    ):
        assert float(str(received)) == float_
    for received in (
        back(ct, "real", "@a_real", repr(real)),
        as_result_column(ct, "real", "@a_real", repr(real)),
    ):
        assert single(float(str(received))) == real


@generated
@given(text=TEXTS)
def test_texts_at_5(ct: CtClient, text: str) -> None:
    text = text[:60]
    assert back(ct, "char:255", "@a_text", text) == text
    assert back(ct, "longchar:2000", "@a_text", text) == text
    assert as_result_column(ct, "char:255", "@a_text", text) == text
    assert as_result_column(ct, "longchar:2000", "@a_varchar", text) == text


@generated
@given(data=st.binary(min_size=1, max_size=255))
def test_binaries_at_5(ct: CtClient, data: bytes) -> None:
    assert back(ct, "binary:255", "@a_bytea", data.hex()) == data.hex()
    assert as_result_column(ct, "longbinary:2000", "@a_bytea", data.hex()) == data.hex()


@pytest.mark.parametrize("length", [255, 256, 16384, 70000])
def test_long_texts_and_binaries_at_5(ct: CtClient, length: int) -> None:
    text = (string.ascii_letters * (length // 52 + 1))[:length]
    for type in ("longchar", "text") if length > 255 else ("char", "longchar", "text"):
        assert as_result_column(ct, f"{type}:{length}", "@a_text", text) == text
    data = text.encode().hex()
    for type in ("longbinary", "image"):
        assert as_result_column(ct, f"{type}:{length}", "@a_bytea", data) == data


@generated
@given(value=st.integers(-(10**18) + 1, 10**18 - 1), scale=st.integers(0, 18))
def test_numerics_at_5(ct: CtClient, value: int, scale: int) -> None:
    number = Decimal(value).scaleb(-scale)
    received = back(ct, f"numeric:38:{scale}", "@a_numeric", f"{number:f}")
    assert Decimal(str(received)) == number
    received = as_result_column(ct, f"numeric:38:{scale}", "@a_text", f"{number:f}")
    assert Decimal(str(received)) == number


@generated
@given(value=st.integers(-(2**63), 2**63 - 1), small=INTS)
def test_money_at_5(ct: CtClient, value: int, small: int) -> None:
    """The client's integers are ten-thousandths of the unit."""
    assert back(ct, "money", "@a_numeric", str(value)) == str(value)
    assert Decimal(str(as_result_column(ct, "money", "@a_text", str(value)))) == Decimal(value) / 10000
    assert back(ct, "smallmoney", "@a_numeric", str(small)) == str(small)


@generated
@given(
    days=st.integers(-53690, 2958463),
    ticks=st.integers(0, 300 * 86400 - 1),
    days4=st.integers(0, 65535),
    minutes=st.integers(0, 1439),
)
def test_datetimes_at_5(ct: CtClient, days: int, ticks: int, days4: int, minutes: int) -> None:
    """From 1753 to 9999 to 1/300 s; smalldatetime to the minute."""
    value = f"{days} {ticks}"
    assert back(ct, "datetime", "@a_timestamp", value) == value
    value = f"{days4} {minutes}"
    assert back(ct, "smalldatetime", "@a_timestamp", value) == value
    assert back(ct, "smalldatetime", "@a_timestamptz", value) == value


@generated
@given(moment=st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)))
def test_bigdatetimes_at_5(ct: CtClient, moment: datetime) -> None:
    micros = (moment - EPOCH_1900) // timedelta(microseconds=1) + EPOCH_0000_DAYS * 86_400_000_000
    assert back(ct, "bigdatetime", "@a_timestamp", str(micros)) == str(micros)
    assert as_result_column(ct, "bigdatetime", "@a_timestamp", str(micros)) == str(micros)
    shown = ct.call("shown", [Param("bigdatetime", str(micros), "@a_timestamp")])
    assert shown.rows == [[_shown(moment)]]


def _shown(moment: datetime) -> str:
    text = f"{moment.year:04}" + moment.strftime("-%m-%d %H:%M:%S.%f")
    return text.rstrip("0").rstrip(".")


@generated
@given(day=st.dates(), clock=st.times(), ticks=st.integers(0, 300 * 86400 - 1))
def test_dates_and_times_at_5(ct: CtClient, day: date, clock: time, ticks: int) -> None:
    days = (day - EPOCH_1900.date()).days
    assert back(ct, "date", "@a_date", str(days)) == str(days)
    assert as_result_column(ct, "date", "@a_date", str(days)) == str(days)
    assert ct.call("shown", [Param("date", str(days), "@a_date")]).rows == [[day.isoformat()]]
    micros = ((clock.hour * 60 + clock.minute) * 60 + clock.second) * 1_000_000 + clock.microsecond
    assert back(ct, "bigtime", "@a_time", str(micros)) == str(micros)
    assert as_result_column(ct, "bigtime", "@a_time", str(micros)) == str(micros)
    assert back(ct, "time", "@a_time", str(ticks)) == str(ticks)


# of bigint, date and time FreeTDS 1.3 cannot send the NULL: test_byte_order.py does
NULLS = """int @an_int, smallint @a_smallint, real @a_real, float @a_float, numeric:10:2 @a_numeric,
money @a_numeric, char @a_text, longchar:300 @a_text, binary @a_bytea, datetime @a_timestamp,
smalldatetime @a_timestamp, bigdatetime @a_timestamp, bigtime @a_time"""


@pytest.mark.parametrize(("type", "parameter"), [one.split() for one in NULLS.split(",")])
def test_null_at_5(ct: CtClient, type: str, parameter: str) -> None:
    assert back(ct, type, parameter, None) is None


SEVENTH = [
    ("bit", "@a_bit", "1"),
    ("tinyint", "@an_int", "255"),
    ("smallint", "@a_smallint", "-32768"),
    ("int", "@an_int", "2147483647"),
    ("bigint", "@a_bigint", "-9223372036854775808"),
    ("real", "@a_real", "3.40282347e+38"),
    ("float", "@a_float", "4.9406564584124654e-324"),
    ("money", "@a_numeric", "-9223372036854775808"),
    ("smallmoney", "@a_numeric", "2147483647"),
    ("numeric:38:10", "@a_numeric", "-1234567890123456789012345678.0123456789"),
    ("decimal:5:0", "@a_numeric", "99999"),
    ("datetime", "@a_timestamp", "-53690 25919999"),
    ("datetime", "@a_timestamptz", "2958462 25919999"),
    ("smalldatetime", "@a_timestamp", "65535 1439"),
    ("char:255", "@a_varchar", "Größe €"),
    ("longchar:8000", "@a_text", "€" * 2000),
    ("binary:255", "@a_bytea", "00ff" * 100),
]


@pytest.mark.parametrize("version", ["7.1", "7.4"])
def test_types_of_ct_library_at_7(clients: Clients, version: str) -> None:
    with clients.ct(PLAIN, version) as client:
        for type, parameter, value in SEVENTH:
            assert back(client, type, parameter, value) == value
            assert back(client, type, parameter, None) is None


def test_a_ring_of_every_type_both_ways(clients: Clients) -> None:
    """The column types of facility files, by a facility's procedures."""
    params = [
        Param("int", "7", "@seq_no"),
        Param("bigdatetime", str(738_000 * 86_400_000_000 + 1), "@time"),
        Param("real", "1.17549435e-38", "@a_real"),
        Param("float", "-1.7976931348623157e+308", "@a_double"),
        Param("int", "-2147483648", "@an_int"),
        Param("smallint", "-32768", "@a_smallint"),
        Param("bigint", "-9223372036854775808", "@a_bigint"),
        Param("bit", "1", "@a_bit"),
        Param("char", "Größe €", "@a_varchar"),
    ]
    with clients.ct(clients.server.writer, "5.0 utf8") as client:
        assert client.call("put_every_type", params).statuses == [0]
    for section in ("5.0 utf8", "7.4"):
        with clients.ct(clients.server.reader, section) as client:
            answer = client.language("select * from every_type where seq_no = 7")
            assert [value for value in answer.rows[0] if value not in (params[1].value,)][-7:] == [
                param.value for param in params[2:]
            ]
            if section.startswith("5.0"):
                assert answer.rows[0][1] == params[1].value


def test_numbers_beyond_all_client_types_are_refused_by_name(server: RunningServer) -> None:
    """A numeric of more than 38 digits, infinities of time, NaN."""
    with RawClient(server.host, server.port, order=LITTLE) as client:
        assert client.log_in5(PLAIN).login == 5
        for function, words in [
            ("numeric_of", "1e38"),
            ("timestamp_of", "infinity"),
            ("date_of", "-infinity"),
            ("numeric_of", "NaN"),
        ]:
            reply = client.call(function, [RawParam(VARCHAR, words)])
            assert len(reply.errors) == 1, words
            assert "'value'" in reply.errors[0].text
            assert reply.rows == []
        odd = RawParam(numeric(38, 38), 10**38 - 1, "@a_numeric", out=True)
        assert client.call("echo", [odd]).outputs == {"@a_numeric": 10**38 - 1}


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_nan_and_infinities_are_not_decimals(clients: Clients, number: str) -> None:
    """PostgreSQL's numeric has NaN, and no client could read the table then."""
    given = [Param("float", number)]
    with clients.ct(PLAIN) as client:
        client.language("create table #n (d decimal(12,3) null, f float null)")
        client.prepare("d", "insert #n (d) values (?)")
        client.prepare("f", "insert #n (f) values (?)")
        assert client.execute("d", given).error.number == 8023
        assert client.execute("f", given).errors == []
        for text in (
            "insert #n (d) select f from #n",
            "update #n set d = f",
            "declare @d numeric(5, 1) select @d = f from #n",
            "select convert(decimal(9, 2), f) from #n",
        ):
            assert client.language(text).errors[0].number == 8023, text
        assert client.language("select count(*), count(d) from #n").rows == [["1", "0"]]
    with clients.odbc(PLAIN, "7.4") as connection, connection.cursor() as cursor:
        cursor.execute("create table #n (d decimal(12,3) null)")
        with pytest.raises(pyodbc.Error, match="8023"):
            cursor.execute("insert #n values (?)", float(number))


def test_times_that_psql_declared(clients: Clients, server: RunningServer) -> None:
    """A timestamp or timestamptz without a declaration of T-SQL is shown as a datetime and not rounded."""
    login = Login("psql_times", "psql_times")
    with author_with_schema(server, login, "psql_times") as admin, clients.pymssql(login).cursor() as cursor:
        admin.execute(
            "create table psql_times.t (i int, z timestamptz, p timestamp, h time);"
            " insert into psql_times.t values"
            " (1, '2026-03-01 10:00:00.123456+09', '2026-03-01 10:00:00.123456', '10:00');"
            " grant all on psql_times.t to psql_times"
        )
        cursor.execute("use psql_times set dateformat ymd")
        early = datetime(2026, 3, 1, 10, 0, 0, 123456)
        for text, expected in (
            ("select z, p from t", (early, early)),
            ("select convert(varchar(30), p, 121), convert(varchar(30), h) from t", None),
            ("select isnull(z, 0), coalesce(p, 0), isnull(z, '2020-01-01') from t", (early,) * 3),
            ("select case when i = 1 then z else cast('2020-01-01' as datetime) end from t", (early,)),
            ("select z + 1, p + 1 from t", (datetime(2026, 3, 2, 10, 0, 0, 123000),) * 2),
            ("select count(*) from t where z = p and z > '2026-03-01' and z < getdate()", (1,)),
            ("select datediff(second, z, p), datepart(hour, z), year(p) from t", (0, 10, 2026)),
            ("select max(z), min(p) from t", (early, early)),
        ):
            cursor.execute(text)
            (row,) = cursor.fetchall()
            assert row == (expected or ("2026-03-01 10:00:00.123", "10:00:00.0000000")), text
        cursor.execute("insert t (z, p) select p, z from t select count(distinct z) from t")
        assert cursor.fetchall() == [(1,)]
        # an offset names the instant
        offset = "cast('2026-03-01 03:00 +02:00' as datetimeoffset)"
        cursor.execute(
            f"insert t (i, z) values (2, {offset}), (2, null) update t set z = {offset} where z is null"
        )
        cursor.execute("select z from t where i = 2")
        assert cursor.fetchall() == [(datetime(2026, 3, 1, 10),)] * 2
