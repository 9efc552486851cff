"""What the parser makes of texts: statements, lines, errors."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringlog.gateway.tsql.errors import TsqlError
from ringlog.gateway.tsql.keywords import words
from ringlog.gateway.tsql.parser import DEEPEST, LONGEST, parse_batch
from ringlog.gateway.tsql.statements import (
    CreateProcedure,
    Execute,
    If,
    InsertExecute,
    Query,
    Raiserror,
    Statement,
)
from ringlog.gateway.tsql.tokens import Kind, read_tokens


def kinds(text: str) -> list[str]:
    return [type(statement).__name__ for statement in parse_batch(text)]


def error(text: str) -> tuple[int, int]:
    with pytest.raises(TsqlError) as raised:
        parse_batch(text)
    return raised.value.number, raised.value.line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1 select 2", ["Query", "Query"]),
        ("select 1 union select 2 update t set a = 1 where b = 2", ["Query", "Query"]),
        ("insert t select 1 select 2", ["Query", "Query"]),
        ("insert t (a) values (1) select 2", ["Query", "Query"]),
        ("insert t exec p 1 select 2", ["InsertExecute", "Query"]),
        ("with x as (select 1 a) select * from x delete t", ["Query", "Query"]),
        ("declare @a int set @a = 1 + 2 print 'x'", ["Declare", "Assign", "Print"]),
        ("if 1 = 1 select 1 else select 2 select 3", ["If", "Query"]),
        ("if 1 = 1 begin select 1 end; else select 2", ["If"]),
        ("while 1 = 1 break select 1", ["While", "Query"]),
        ("begin tran x select 1 commit tran x", ["BeginTransaction", "Query", "Commit"]),
        ("begin select 1 end", ["Block"]),
        ("begin try select 1 end try begin catch end catch select 2", ["TryCatch", "Query"]),
        ("exec p 1, @x = 'a', @y = @z output select 1", ["Execute", "Query"]),
        ("exec ('select 1') select 2", ["ExecuteText", "Query"]),
        ("p 1, 2", ["Execute"]),
        ("set nocount on set rowcount 5 select 1", ["SetOption", "SetOption", "Query"]),
        ("set transaction isolation level read committed select 1", ["SetOption", "Query"]),
        ("return select 1", ["Return", "Query"]),
        ("return 5 select 1", ["Return", "Query"]),
        ("raiserror 20001 'x' raiserror ('y', 16, 1) print 'z'", ["Raiserror", "Raiserror", "Print"]),
        ("select load, t.open from t where merge = 1 order by close", ["Query"]),
        ("select a from t where case when b = 1 then 2 else 3 end = 2 select 1", ["Query", "Query"]),
        ("create table #t (a int) drop table #t", ["CreateTable", "DropTable"]),
        ("grant execute on p to r revoke select on t from public", ["Grant", "Grant"]),
        ("use log select 1", ["Use", "Query"]),
        ("waitfor delay '00:00:01' select 1", ["Waitfor", "Query"]),
        ("print 'a' print @@version", ["Print", "Print"]),
    ],
)
def test_a_batch_is_split_into_statements(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "number", "line"),
    [
        ("select 1\nif", 102, 2),
        ("begin\nselect 1", 102, 2),
        ("select 'a\nb", 105, 1),
        ("/* a\n/* b */", 113, 1),
        ("select []", 1038, 1),
        ("select 1 end", 156, 1),
        ("while 1 = 1\nelse", 156, 2),
        ("goto x", 102, 1),
        ("declare @a", 102, 1),
        ("declare a int", 102, 1),
        ("exec p @x = 1 output", 179, 1),
        ("select 1 create procedure p as select 1", 111, 1),
        ("create procedure p as", 102, 1),
        ("select \0", 102, 1),
        ("begin tran @name", 102, 1),
        ("raiserror ('a')", 102, 1),
    ],
)
def test_errors_name_number_and_line(text: str, number: int, line: int) -> None:
    assert error(text) == (number, line)


def only(text: str) -> Statement:
    (statement,) = parse_batch(text)
    return statement


def test_calls() -> None:
    call = only("exec @r = log.dbo.p 1, -2.5, N'x', abc, @y = @z output, @w = default")
    assert isinstance(call, Execute)
    assert (call.status, str(call.procedure)) == ("@r", "log.dbo.p")
    assert [(a.name, a.value and a.value.tokens[-1].value, a.output) for a in call.arguments] == [
        (None, "1", False),
        (None, "2.5", False),
        (None, "x", False),
        (None, "abc", False),
        ("@y", "@z", True),
        ("@w", None, False),
    ]


def test_procedures() -> None:
    head = "/* first */ create procedure p (@a int = 3, @b varchar(10) output)"
    text = f"{head}\nwith recompile as\nselect @a\nreturn 5\n"
    procedure = only(text)
    assert isinstance(procedure, CreateProcedure)
    assert procedure.source == text.strip()
    assert [(p.name, p.type.sql, p.output) for p in procedure.parameters] == [
        ("@a", "integer", False),
        ("@b", "varchar(10)", True),
    ]
    assert [(type(s).__name__, s.line) for s in procedure.body] == [("Query", 3), ("Return", 4)]


def test_raiserror_in_both_dialects() -> None:
    sybase, microsoft = parse_batch(
        "raiserror 20001 'x %1!', @a raiserror ('y', 16, 1, @b) with nowait, seterror"
    )
    assert isinstance(sybase, Raiserror)
    assert isinstance(microsoft, Raiserror)
    assert (sybase.severity, len(sybase.arguments)) == (None, 1)
    assert (microsoft.sets_error, microsoft.nowait, len(microsoft.arguments)) == (True, True, 1)


def test_else_belongs_to_the_nearest_if() -> None:
    outer = only("if 1 = 1 if 2 = 2 select 1 else select 2")
    assert isinstance(outer, If)
    assert outer.otherwise == ()


def test_inserts_of_what_a_procedure_gives() -> None:
    insert = only("insert into #t (a, b) exec p 1")
    assert isinstance(insert, InsertExecute)
    assert (insert.table.name, insert.columns) == ("#t", ("a", "b"))
    assert isinstance(only("insert into #t (a) (select 1)"), Query)


def test_texts_in_double_quotes_follow_the_setting() -> None:
    assert [token.kind for token in read_tokens('"a"', quoted_identifiers=True)] == [Kind.NAME]
    assert [token.kind for token in read_tokens('"a"', quoted_identifiers=False)] == [Kind.TEXT]


def test_tokens() -> None:
    text = "select N'a''b', [x]]y], 0xFf, 1.5e-3, .5, $1234.5, @@A, #t..b -- c\n/* /* n */ */ <> !< *="
    assert [(token.kind.value, token.value) for token in read_tokens(text)] == [
        ("word", "select"),
        ("text", "a'b"),
        ("symbol", ","),
        ("name", "x]y"),
        ("symbol", ","),
        ("binary", "Ff"),
        ("symbol", ","),
        ("float", "1.5e-3"),
        ("symbol", ","),
        ("decimal", ".5"),
        ("symbol", ","),
        ("money", "1234.5"),
        ("symbol", ","),
        ("variable", "@@a"),
        ("symbol", ","),
        ("word", "#t"),
        ("symbol", "."),
        ("symbol", "."),
        ("word", "b"),
        ("symbol", "<>"),
        ("symbol", "!<"),
        ("symbol", "*="),
    ]


def test_placeholders_are_numbered() -> None:
    tokens = read_tokens("exec p ?, '?', ? -- ?", placeholders=True)
    assert [token.value for token in tokens if token.kind is Kind.VARIABLE] == ["?1", "?2"]


def test_nesting_is_bounded() -> None:
    assert error("begin " * (DEEPEST + 1) + "select 1" + " end" * (DEEPEST + 1))[0] == 191
    assert error("if 1 = 1 " * (DEEPEST + 1) + "select 1")[0] == 191
    assert kinds("begin " * 20 + "select 1" + " end" * 20) == ["Block"]


def test_a_long_text_takes_linear_time() -> None:
    def seconds(text: str) -> float:
        start = time.process_time()
        parse_batch(text)
        return time.process_time() - start

    line = "insert t values (1, 'abc', @x) -- comment\n"
    short = line * (LONGEST // len(line) // 64)
    assert seconds(short * 8) < 8 * 4 * max(seconds(short), 0.02)
    assert error("x" * (LONGEST + 1))[0] == 103


WORDS = st.sampled_from(
    sorted(
        words(
            """
            select from where insert into values update set delete if else begin end while break
            declare @a int = 1 'x' ( ) , ; . * exec p print return raiserror case when then as
            union all top create table procedure drop #t [b] "c" -- /* */ try catch throw with
            tran commit go 0x1 $2 ? + - / % and or not in like null
            """
        )
    )
)


@given(st.lists(WORDS, max_size=25).map(" ".join) | st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_every_text_is_read_or_refused(text: str) -> None:
    read: object
    try:
        read = parse_batch(text, quoted_identifiers=False, placeholders=True)
    except TsqlError as error:
        read = error
    if isinstance(read, TsqlError):
        assert read.text
        assert 1 <= read.line <= 1 + text.count("\n")
