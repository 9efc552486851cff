"""The table of statements, run straight on PostgreSQL."""

from typing import Any

import psycopg
import pytest

from statement_table import Case, cases
from tsql_interpreter import Session, shown

CASES = [(case, sybase) for case in cases() for sybase in (False, True) if case.runs_in(sybase)]


def told(outcome: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Of what came, as much as the table looks at."""
    seen: dict[str, Any] = {}
    for key in expected:
        if key == "rows":
            seen[key] = [[shown(cell) for cell in row] for row in outcome.get("rows", [["no rows"]])]
        elif key == "says":
            seen[key] = expected[key] if expected[key] in str(outcome.get("text")) else outcome.get("text")
        else:
            seen[key] = outcome.get(key)
    return seen


def written(expected: dict[str, Any]) -> dict[str, Any]:
    if "rows" not in expected:
        return expected
    return expected | {"rows": [[str(cell) for cell in row] for row in expected["rows"]]}


@pytest.mark.parametrize(
    ("case", "sybase"),
    CASES,
    ids=[f"{case.name}-{'sybase' if sybase else 'microsoft'}" for case, sybase in CASES],
)
def test_statement(case: Case, sybase: bool, connection: psycopg.Connection[Any]) -> None:
    session = Session(connection, sybase=sybase)
    for text in case.setup:
        session.run(text)
    outcomes = session.run(case.text)
    assert len(outcomes) == len(case.expect), outcomes
    for outcome, expected in zip(outcomes, case.expect, strict=True):
        assert told(outcome, expected) == written(expected), outcome


def test_the_table_is_as_long_as_was_asked_for() -> None:
    assert len(cases()) >= 300
