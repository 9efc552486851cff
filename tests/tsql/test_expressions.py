"""Translated expressions: PostgreSQL accepts them and computes T-SQL's results."""

from contextlib import suppress
from typing import Any

import psycopg
from hypothesis import given, settings
from hypothesis import strategies as st
from translated import cell, shown

from ringlog.gateway._core import TsqlError, translate

EXPRESSIONS = st.recursive(
    st.sampled_from(
        [
            *("1", "2", "-3", "1.5", "'a'", "'7'", "null", "cast(4 as int)", "cast('5' as varchar(10))"),
            *("0x01", "2e0", "getdate()"),
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "&"]), inner).map(" ".join),
        inner.map(lambda value: f"({value})"),
        st.tuples(st.sampled_from(["len", "abs", "upper", "isnull", "round", "convert"]), inner, inner).map(
            lambda call: f"{call[0]}({call[1]}, {call[2]})"
        ),
        st.tuples(inner, inner, inner).map(
            lambda v: f"case when {v[0]} = {v[1]} then {v[2]} else {v[0]} end"
        ),
    ),
    max_leaves=6,
)


@given(expression=EXPRESSIONS, sybase=st.booleans())
@settings(max_examples=150)
def test_every_expression_has_a_value_or_an_error_of_t_sql(
    tsql_connection: psycopg.Connection[Any], expression: str, sybase: bool
) -> None:
    try:
        assert shown(cell(tsql_connection, expression, sybase=sybase))
    except TsqlError:
        pass
    except psycopg.errors.SyntaxError as wrong:
        # PostgreSQL could always parse the translated text
        raise AssertionError(translate(f"select {expression}", sybase=sybase)) from wrong
    except psycopg.Error:
        pass


@given(
    numbers=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=4),
    operators=st.lists(st.sampled_from("+-*"), min_size=4, max_size=4),
)
@settings(max_examples=60)
def test_arithmetic_is_that_of_whole_numbers(
    tsql_connection: psycopg.Connection[Any], numbers: list[int], operators: list[str]
) -> None:
    """The reference is Python's arithmetic, which has the same precedence."""
    text = str(numbers[0])
    for operator, number in zip(operators, numbers[1:], strict=False):
        text += f" {operator} {number}"
    expected = eval(text)
    # a part of it may be too large
    with suppress(psycopg.errors.NumericValueOutOfRange):
        assert cell(tsql_connection, text) == expected


def like(value: str, pattern: str) -> bool:
    """LIKE by its definition, one character after another."""
    if not pattern:
        return not value.strip(" ") if value else True
    if pattern[0] == "%":
        return any(like(value[at:], pattern[1:]) for at in range(len(value) + 1))
    if pattern[0] == "[":
        end = pattern.find("]", 1)
        if end < 0:
            return False
        members = pattern[1:end]
        negated = members.startswith("^")
        members = members.removeprefix("^")
        return bool(value) and ((value[0] in members) != negated) and like(value[1:], pattern[end + 1 :])
    return bool(value) and pattern[0] in ("_", value[0]) and like(value[1:], pattern[1:])


@given(value=st.text("ab1 .%[", max_size=6), pattern=st.text("ab1_%.[]^ ", max_size=6))
@settings(max_examples=300)
def test_like_follows_its_definition(
    tsql_connection: psycopg.Connection[Any], value: str, pattern: str
) -> None:
    row = tsql_connection.execute(
        "select tsql.is_like(%s::text, %s::text, null)", (value, pattern)
    ).fetchone()
    assert row is not None
    assert row[0] == like(value, pattern)
