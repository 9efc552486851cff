"""Accepted statements have T-SQL's results: generated statements against references written here.

The references follow the text of the documentation, not the compiler: precedence of operators, logic of three
values, boundaries between two dates, ends of months.
"""

import calendar
import operator
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from translated import cell, run, shown

Connection = psycopg.Connection[Any]
FEW = settings(max_examples=120)


# --- precedence: * / % before + - & ^ |, each from the left (Operator Precedence) ---


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


OPERATORS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "*": (2, operator.mul),
    "/": (2, truncated),
    "%": (2, lambda a, b: a - b * truncated(a, b)),
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "&": (1, operator.and_),
    "|": (1, operator.or_),
    "^": (1, operator.xor),
}


def evaluated(operands: list[int], operators: list[str]) -> int:
    """By the rules: first the operators of higher precedence, then the others, from the left."""
    for level in (2, 1):
        values, rest = [operands[0]], []
        for sign, value in zip(operators, operands[1:], strict=True):
            binds, function = OPERATORS[sign]
            if binds == level:
                values[-1] = function(values[-1], value)
            else:
                values.append(value)
                rest.append(sign)
        operands, operators = values, rest
    return operands[0]


@given(
    operands=st.lists(st.integers(1, 50), min_size=5, max_size=5),
    operators=st.lists(st.sampled_from(sorted(OPERATORS)), min_size=4, max_size=4),
)
@FEW
def test_operators_bind_as_in_t_sql(
    tsql_connection: Connection, operands: list[int], operators: list[str]
) -> None:
    text = str(operands[0]) + "".join(f" {o} {n}" for o, n in zip(operators, operands[1:], strict=True))
    try:
        expected = evaluated(operands, operators)
    except ZeroDivisionError:
        with pytest.raises((psycopg.errors.DivisionByZero, psycopg.errors.NumericValueOutOfRange)):
            cell(tsql_connection, text)
        return
    if abs(expected) < 2**31:
        # a part of it may be too large
        with suppress(psycopg.errors.NumericValueOutOfRange):
            assert cell(tsql_connection, text) == expected, text


# --- logic of three values ---

Logic = tuple[str, bool | None]


def negated(a: Logic) -> Logic:
    return f"not {a[0]}", None if a[1] is None else not a[1]


def both(a: Logic, b: Logic) -> Logic:
    value = False if False in (a[1], b[1]) else None if None in (a[1], b[1]) else True
    return f"({a[0]} and {b[0]})", value


def one_of(a: Logic, b: Logic) -> Logic:
    value = True if True in (a[1], b[1]) else None if None in (a[1], b[1]) else False
    return f"({a[0]} or {b[0]})", value


CONDITIONS = st.recursive(
    st.sampled_from(
        [
            ("1 = 1", True),
            ("1 > 2", False),
            ("@n = 1", None),
            ("@n is null", True),
            ("'a' like 'b'", False),
            ("1 in (1, @n)", True),
            ("2 in (1, @n)", None),
            ("2 not in (1, @n)", None),
            ("2 between 1 and @n", None),
            ("3 not between 1 and 2", True),
            ("exists (select 1 where @n = 1)", False),
            ("@n like '%'", None),
        ]
    ),
    lambda inner: st.one_of(
        inner.map(negated),
        st.tuples(inner, inner).map(lambda pair: both(*pair)),
        st.tuples(inner, inner).map(lambda pair: one_of(*pair)),
    ),
    max_leaves=8,
)


@given(CONDITIONS)
@FEW
def test_logic_has_three_values(tsql_connection: Connection, condition: Logic) -> None:
    text, expected = condition
    text = text.replace("@n", "cast(null as int)")
    got = cell(
        tsql_connection, f"case when {text} then 'true' when not ({text}) then 'false' else 'none' end"
    )
    assert got == {True: "true", False: "false", None: "none"}[expected], text


@given(
    a=st.sampled_from(["1 = 1", "1 = 2"]),
    b=st.sampled_from(["1 = 1", "1 = 2"]),
    c=st.sampled_from(["1 = 1", "1 = 2"]),
    signs=st.tuples(st.sampled_from(["and", "or"]), st.sampled_from(["and", "or"])),
    nots=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
@FEW
def test_not_binds_before_and_and_and_before_or(
    tsql_connection: Connection, a: str, b: str, c: str, signs: tuple[str, str], nots: tuple[bool, bool, bool]
) -> None:
    parts = [f"{'not ' if no else ''}{text}" for no, text in zip(nots, (a, b, c), strict=True)]
    text = f"{parts[0]} {signs[0]} {parts[1]} {signs[1]} {parts[2]}"
    # Python's own precedence is the same
    expected = eval(text.replace(" = ", " == "))
    (rows,) = run(tsql_connection, f"select 1 where {text}")
    assert bool(rows) == expected, text


# --- dates ---

MOMENTS = st.datetimes(datetime(1800, 1, 1), datetime(2200, 12, 31)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 10000 * 10000)
)


def weeks(moment: datetime) -> int:
    """The number of Sundays since 0001-01-07, which was one."""
    return (moment.date().toordinal() - 7) // 7


BOUNDARIES: dict[str, Callable[[datetime], int]] = {
    "year": lambda m: m.year,
    "quarter": lambda m: m.year * 4 + (m.month - 1) // 3,
    "month": lambda m: m.year * 12 + m.month,
    "week": weeks,
    "day": lambda m: m.date().toordinal(),
    "dayofyear": lambda m: m.date().toordinal(),
    "hour": lambda m: m.date().toordinal() * 24 + m.hour,
    "minute": lambda m: (m.date().toordinal() * 24 + m.hour) * 60 + m.minute,
}


@given(part=st.sampled_from(sorted(BOUNDARIES)), start=MOMENTS, end=MOMENTS)
@FEW
def test_datediff_counts_boundaries(
    tsql_connection: Connection, part: str, start: datetime, end: datetime
) -> None:
    def text(moment: datetime) -> str:
        return f"convert(datetime, '{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}')"

    got = cell(tsql_connection, f"datediff({part}, {text(start)}, {text(end)})")
    assert got == BOUNDARIES[part](end) - BOUNDARIES[part](start)


@given(moment=MOMENTS, months=st.integers(-560, 600), part=st.sampled_from(["month", "quarter", "year"]))
@FEW
def test_dateadd_keeps_the_last_day_of_a_month(
    tsql_connection: Connection, moment: datetime, months: int, part: str
) -> None:
    number = months // {"month": 1, "quarter": 3, "year": 12}[part]
    months = number * {"month": 1, "quarter": 3, "year": 12}[part]
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    expected = datetime(year, month + 1, day, moment.hour, moment.minute)
    given_ = f"'{moment:%Y%m%d %H:%M}'"
    assert cell(tsql_connection, f"dateadd({part}, {number}, {given_})") == expected


@given(moment=MOMENTS, ticks=st.integers(0, 299))
@FEW
def test_datetimes_are_rounded_to_ticks(tsql_connection: Connection, moment: datetime, ticks: int) -> None:
    """1/300 s: a tick is shown with the millisecond next to it, and read back as itself."""
    milliseconds = round(ticks * 10 / 3)
    exact = moment.replace(microsecond=0) + timedelta(milliseconds=milliseconds)
    for near in (exact, exact + timedelta(milliseconds=1)):
        text = f"{near:%Y%m%d %H:%M:%S}.{near.microsecond // 1000:03}"
        got = cell(tsql_connection, f"convert(datetime, '{text}')")
        assert got - near <= timedelta(milliseconds=1)
        assert got.microsecond // 1000 % 10 in (0, 3, 7)
        assert abs(got - near) <= timedelta(microseconds=1667)


@given(
    moment=MOMENTS, part=st.sampled_from(["yy", "qq", "mm", "dd", "dy", "dw", "wk", "hh", "mi", "ss", "ms"])
)
@FEW
def test_parts_of_a_datetime(tsql_connection: Connection, moment: datetime, part: str) -> None:
    text = f"{moment:%Y%m%d %H:%M:%S}.{moment.microsecond // 1000:03}"
    first_weekday = datetime(moment.year, 1, 1).isoweekday() % 7
    day_of_year = moment.timetuple().tm_yday
    expected = {
        "yy": moment.year,
        "qq": (moment.month + 2) // 3,
        "mm": moment.month,
        "dd": moment.day,
        "dy": day_of_year,
        "dw": moment.isoweekday() % 7 + 1,
        "wk": (day_of_year - 1 + first_weekday) // 7 + 1,
        "hh": moment.hour,
        "mi": moment.minute,
        "ss": moment.second,
        "ms": moment.microsecond // 1000,
    }[part]
    assert cell(tsql_connection, f"datepart({part}, '{text}')") == expected


# --- texts ---

TEXTS = st.text("ab X", max_size=6)
NUMBERS = st.integers(-3, 8)


@given(value=TEXTS, start=NUMBERS, length=NUMBERS)
@FEW
def test_substring_counts_places_before_the_first(
    tsql_connection: Connection, value: str, start: int, length: int
) -> None:
    text = f"substring('{value}', {start}, {length})"
    if length < 0:
        with pytest.raises(psycopg.Error) as refused:
            cell(tsql_connection, text)
        assert refused.value.sqlstate == "S0537"
    else:
        places = range(start, start + length)
        expected = "".join(value[at - 1] for at in places if 1 <= at <= len(value))
        assert cell(tsql_connection, text) == expected


@given(value=TEXTS, start=NUMBERS, length=NUMBERS, put=TEXTS)
@FEW
def test_stuff_is_null_outside_of_the_text(
    tsql_connection: Connection, value: str, start: int, length: int, put: str
) -> None:
    got = cell(tsql_connection, f"stuff('{value}', {start}, {length}, '{put}')")
    if 1 <= start <= len(value) and length >= 0:
        assert got == value[: start - 1] + put + value[start - 1 + length :]
    else:
        assert got is None


@given(a=TEXTS, b=TEXTS, sign=st.sampled_from(["=", "<>"]))
@FEW
def test_trailing_blanks_are_ignored(tsql_connection: Connection, a: str, b: str, sign: str) -> None:
    (rows,) = run(tsql_connection, f"select 1 where '{a}' {sign} '{b}'")
    assert bool(rows) == ((a.rstrip(" ") == b.rstrip(" ")) == (sign == "="))


@given(wanted=TEXTS, value=TEXTS, start=NUMBERS)
@FEW
def test_charindex(tsql_connection: Connection, wanted: str, value: str, start: int) -> None:
    got = cell(tsql_connection, f"charindex('{wanted}', '{value}', {start})")
    assert got == (value.find(wanted, max(start, 1) - 1) + 1 if wanted else 0)


@given(
    number=st.decimals(-999, 999, places=3), style=st.sampled_from(["int", "decimal(6, 1)", "varchar(10)"])
)
@FEW
def test_decimals_are_cut_rounded_and_shown(tsql_connection: Connection, number: Any, style: str) -> None:
    got = cell(tsql_connection, f"convert({style}, {number})")
    if style == "int":
        assert got == int(number)
    elif style == "varchar(10)":
        assert got == f"{number:.3f}"
    else:
        half_up = int(abs(number) * 10 + type(number)("0.5")) * (1 if number >= 0 else -1)
        assert shown(got * 10) in (f"{half_up}.0", f"{half_up}", f"-{abs(half_up)}.0") or half_up == 0
