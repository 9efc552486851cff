"""Programs: what the compiler promises whatever it is given."""

import json
import time
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringlog.gateway.tsql import compile_batch
from tsql_interpreter import Session, shown


def compiled(text: str, **changed: object) -> Any:
    return json.loads(compile_batch(text, json.dumps({"quoted_identifiers": False} | changed)))


def error(text: str, **changed: object) -> tuple[int, int]:
    told = compiled(text, **changed)["error"]
    return told["number"], told["line"]


def test_steps_of_a_batch() -> None:
    program = compiled(
        "declare @a int = 1\nif @a > 0 select @a as x else print 'none'\nexec p @a, 'b', @c = @a output"
    )
    declare, assign, if_, execute = program["statements"]
    assert declare == {"do": "declare", "line": 1, "name": "@a", "oid": 23, "typmod": -1}
    assert assign == {"do": "assign", "line": 1, "name": "@a", "value": 1, "type": "int"}
    assert (if_["do"], if_["line"], if_["variables"]) == ("if", 2, ["@a"])
    (query,) = if_["then"]
    assert (query["kind"], query["columns"], query["variables"]) == ("select", ["x"], ["@a"])
    assert if_["else"] == [{"do": "print", "line": 2, "value": "none", "type": "text"}]
    assert execute["procedure"] == "p"
    assert [argument.get("sql", argument.get("value")) for argument in execute["arguments"]] == [
        "select $1",
        "b",
        "select $1",
    ]
    assert execute["arguments"][2] | {"name": "@c", "output": "@a"} == execute["arguments"][2]


def test_variables_of_the_session_and_of_the_client() -> None:
    program = compiled("select @p1, @@rowcount, db_name(), @p1", variables={"@p1": [23, -1]})
    (query,) = program["statements"]
    assert query["variables"] == ["@p1", "@@rowcount", "@@db_name"]
    assert error("select @p2", variables={"@p1": [23, -1]}) == (137, 1)


def test_placeholders_are_counted() -> None:
    program = compiled("select ? where 1 = ? -- ?", placeholders=True)
    assert program["placeholders"] == 2
    assert sorted(program["statements"][0]["variables"]) == ["?1", "?2"]
    assert error("select ?")[0] == 102


def test_inserts_name_their_table() -> None:
    texts = {"insert #t (a) values (1)": 'pg_temp."#t"', "insert log..t select 1": '"log"."t"'}
    for text, into in texts.items():
        assert compiled(text)["statements"][0]["into"] == into


def test_names_of_the_catalogue() -> None:
    def sql(text: str) -> str:
        return str(compiled(text, quoted_identifiers=True)["statements"][0]["sql"])

    assert 'from sys."sysobjects"' in sql("select name from sysobjects")
    assert 'from sys."sysobjects"' in sql("select name from dbo.sysobjects")
    assert 'tsql_information_schema."tables"' in sql("select TABLE_NAME from INFORMATION_SCHEMA.TABLES")
    assert 'sys."schemas"."name"' in sql("select sys.schemas.name from [sys].[schemas]")
    assert 'sys."sysdatabases"' in sql("select name from master..sysdatabases")
    assert "from sys.\"sysobjects\"('log')" in sql("select name from log..sysobjects")
    assert "from sys.\"tables\"('log')" in sql("select name from [log].sys.tables")
    assert error("select name from tempdb..sysobjects")[0] == 102
    assert '"sys"."object_id"(\'t\')' in sql("select object_id('t')")


@pytest.mark.parametrize(
    "text",
    [
        "select " + "(" * 2000 + "1" + ")" * 2000,
        "select " + "- " * 5000 + "1",
        "select " + "case when 1 = 1 then " * 500 + "1" + " end" * 500,
        "select 1 where " + "not " * 5000 + "1 = 1",
        "select " + "len(" * 1000 + "'x'" + ")" * 1000,
        "select * from " + "(select * from " * 300 + "t" + ") x" * 300,
        "select " + "case (" * 60 + "1" + ") when 1 then 1 when 2 then 2 end" * 60,
    ],
    ids=["parentheses", "minus", "case", "not", "calls", "subqueries", "doubling"],
)
def test_what_nests_too_deeply_is_refused(text: str) -> None:
    start = time.process_time()
    assert error(text)[0] == 191
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "text",
    [
        "select " + "+".join(["1"] * 5_000),
        "select 1 where " + " or ".join(["1 = 2"] * 3_000),
        "select 1 where 1 in (" + ",".join(map(str, range(3_000))) + ")",
        "select 1\n" * 1_500,
        "insert t values " + ",".join(["(1, 'x')"] * 600),
        " union all ".join(["select 1"] * 800),
    ],
    ids=["sum", "or", "in", "statements", "rows", "union"],
)
def test_what_is_long_is_compiled_in_linear_time(text: str) -> None:
    start = time.process_time()
    program = compiled(text)
    assert time.process_time() - start < 20
    assert "statements" in program or program["error"]["number"] == 191


EXPRESSIONS = st.recursive(
    st.sampled_from(
        ["1", "2", "-3", "1.5", "'a'", "'7'", "null", "@i", "@s", "0x01", "2e0", "getdate()", "@@rowcount"]
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
@settings(max_examples=150, deadline=None)
def test_every_expression_gives_a_value_or_an_error_of_t_sql(
    tsql_connection: psycopg.Connection[Any], expression: str, sybase: bool
) -> None:
    session = Session(tsql_connection, sybase=sybase)
    text = f"declare @i int, @s varchar(10) select @i = 4, @s = '5' select {expression}"
    outcomes = session.run(text)
    last = outcomes[-1]
    if "rows" in last:
        assert shown(last["rows"][0][0])
    else:
        # PostgreSQL could always read what was written for it
        assert "syntax error" not in last["text"], outcomes


@given(
    numbers=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=4),
    operators=st.lists(st.sampled_from("+-*"), min_size=4, max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_arithmetic_is_that_of_whole_numbers(
    tsql_connection: psycopg.Connection[Any], numbers: list[int], operators: list[str]
) -> None:
    """The reference is Python's arithmetic, whose precedence is the same."""
    text = str(numbers[0])
    for operator, number in zip(operators, numbers[1:], strict=False):
        text += f" {operator} {number}"
    expected = eval(text)
    (outcome,) = Session(tsql_connection).run(f"select {text}")
    partial_overflow = outcome.get("error") == 8115
    assert partial_overflow or outcome["rows"] == [[expected]]


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
@settings(max_examples=300, deadline=None)
def test_like_is_as_defined(tsql_connection: psycopg.Connection[Any], value: str, pattern: str) -> None:
    row = tsql_connection.execute(
        "select tsql.is_like(%s::text, %s::text, null)", (value, pattern)
    ).fetchone()
    assert row is not None
    assert row[0] == like(value, pattern)


@given(st.text(max_size=80) | st.text("select from where @a='()\"[]#*,.;+-/%<>0123x \n", max_size=60))
@settings(max_examples=300, deadline=None)
def test_every_text_is_compiled_or_refused(text: str) -> None:
    program = compiled(text, placeholders=True)
    assert ("statements" in program) != ("error" in program)
    if "error" in program:
        told = program["error"]
        assert told["text"]
        assert told["number"] != 50000, told
        assert 1 <= told["line"] <= 1 + text.count("\n")
