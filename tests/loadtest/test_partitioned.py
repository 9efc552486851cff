"""Partitioned queries: what a grammar draws, which answers agree; a wrong one is found and reduced."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from ringlog_lab.partitioned import logs, tsql
from ringlog_lab.partitioned.checks import Rows, greatest, is_combined, is_same, is_union, least, parts_of
from ringlog_lab.partitioned.running import Counts, Different, run
from ringlog_lab.partitioned.trees import grammar, reduced, tree
from ringlog_lab.tsql_database import server_without_tables

SMALL = grammar(
    """
p: 1 = 1; ({p} and
  {p})
p (i): # is null
(i s): coalesce(#, #)
i: a; len({s})
s: 't'
""",
    {"i": ["0"]},
)


def test_forms_of_a_grammar() -> None:
    assert SMALL == {
        "i": ["0", "coalesce({i}, {i})", "a", "len({s})"],
        "p": ["1 = 1", "({p} and {p})", "{i} is null"],
        "s": ["coalesce({s}, {s})", "'t'"],
    }


def test_a_failing_expression_is_reduced() -> None:
    draws = (tree(random.Random(seed), SMALL, "p", 5) for seed in range(1000))
    long = next(one for one in draws if "len(" in str(one) and len(str(one)) > 100)
    assert str(reduced(long, SMALL, lambda one: "len(" in str(one))) == "len('t') is null"


NAN = float("nan")


@pytest.mark.parametrize(
    ("answers", "equal"),
    [
        ([[(1,), (1,), (None,)], [(1,)], [(None,)], [(1,)]], True),
        ([[(1,), (1,), (None,)], [(1,)], [(None,)], []], False),
        ([[(1,)], [(1,)], [(1,)], []], False),
        ([[(NAN,)], [], [], [(NAN,)]], True),
    ],
)
def test_parts_of_rows(answers: list[Rows], equal: bool) -> None:
    assert is_union(answers) is equal


@pytest.mark.parametrize(
    ("answers", "equal"),
    [
        # count(*), sum, least and greatest of a group
        ([[("g", 3, 6, 1.0, NAN)], [("g", 1, 1, 1.0, 1.0)], [("g", 2, 5, 2.0, NAN)], []], True),
        ([[("g", 3, 6, 1.0, NAN)], [("g", 1, 1, 1.0, 1.0)], [("g", 2, 5, 2.0, 2.0)], []], False),
        ([[("g", 3, 6, 1.0, 2.0)], [("g", 1, 1, 1.0, 1.0)], [("h", 2, 5, 2.0, 2.0)], []], False),
        # sums of no values are NULL, and a part without rows may have a row of count 0
        ([[(2, 5, 1.0, 1.0)], [(2, 5, 1.0, 1.0)], [(0, None, None, None)], []], True),
        ([[(2, None, 1.0, 1.0)], [(2, 5, 1.0, 1.0)], [], []], False),
    ],
)
def test_parts_of_aggregates(answers: list[Rows], equal: bool) -> None:
    add = int.__add__
    assert is_combined(add, add, least, greatest)(answers) is equal


def test_a_query_and_its_parts() -> None:
    assert parts_of("select a from t", "where", "a = 1 or b = 1", " group by a") == [
        "select a from t group by a",
        "select a from t where a = 1 or b = 1 group by a",
        "select a from t where not (a = 1 or b = 1) group by a",
        "select a from t where case when a = 1 or b = 1 then 1 when not (a = 1 or b = 1) then 0 end is null"
        " group by a",
    ]


def test_same_rows() -> None:
    assert is_same([[(1, "a"), (2, "b")], [(2, "b"), (1, "a")]])
    assert not is_same([[(1, "a")], [(1, "b")]])


def own_folder(folder: Path, name: str) -> Path:
    own = folder / f"partitioned-{name}"
    own.mkdir(mode=0o755)
    return own


def test_tables_of_tsql(temporary_directory: Path) -> None:
    counts = Counts()
    with server_without_tables(own_folder(temporary_directory, "tables")) as server:
        for seed in (1, 2):
            draw = random.Random(seed)
            with tsql.subjects(server, draw) as (subject,):
                run(replace(subject, cases=25), draw, counts)
        # a predicate with another value at each evaluation is a wrong one, and the rest of its query goes
        draw = random.Random(3)
        with tsql.subjects(server, draw) as (subject,):
            wrong = {**subject.grammar, "p": ["1 = 1", "({p} and {p})", "cast(newid() as varchar(36)) < '8'"]}
            with pytest.raises(Different) as found:
                run(replace(subject, grammar=wrong), draw, counts)
    assert counts.queries.total() > 600
    assert set(counts.refused) <= {
        f"{subject}: 8115: Arithmetic overflow error converting numeric to data type numeric."
        for subject in counts.queries
    }
    query = str(found.value).splitlines()[1]
    assert len(query) < 100, found.value


def test_logs(temporary_directory: Path) -> None:
    counts = Counts()
    draw = random.Random(1)
    with logs.site(own_folder(temporary_directory, "logs")) as site, site.subjects(draw) as subjects:
        for subject in subjects:
            run(replace(subject, cases=1), draw, counts)
        waiting = "weeks.parts join ringlog.cold_week on time >= begins and time < ends"
        for kind in ("closed.parts", "archive.parts", waiting):
            found = site.server.administrator.execute(f"select count(*) from {kind}".encode()).fetchone()
            assert found != (0,), kind
    assert len(counts.queries) == 5
