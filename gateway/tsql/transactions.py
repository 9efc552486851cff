"""Where the transactions of a procedure end.

PL/pgSQL has transactions inside a procedure as blocks only: what stands between BEGIN TRANSACTION and the
statement by which every path has committed or rolled back becomes one block, a region. This module finds the
region's end and refuses what has none.
"""

from collections.abc import Iterator
from enum import Enum

from ringlog.gateway.tsql.errors import TsqlError, refused
from ringlog.gateway.tsql.statements import (
    BeginTransaction,
    Block,
    Body,
    Break,
    Commit,
    Continue,
    Expression,
    If,
    Return,
    Rollback,
    Save,
    Statement,
    Throw,
    TryCatch,
    While,
)
from ringlog.gateway.tsql.tokens import Kind


class State(Enum):
    """What has become of a transaction at the end of a path."""

    OPEN = "open"
    ENDED = "ended"
    LEFT = "left"
    """ended, and the procedure or the loop around the region with it"""


States = frozenset[State]

_OPEN = frozenset({State.OPEN})
_ENDED = frozenset({State.ENDED})
_LEFT = frozenset({State.LEFT})


def end_of_region(statements: Body, line: int) -> int:
    """The index of the statement by which every path through `statements`, which follow a BEGIN TRANSACTION,
    has ended it. Raises TsqlError where a path has not."""
    for at, statement in enumerate(statements):
        states = _after(statement)
        if State.OPEN not in states:
            return at
        if State.ENDED in states:
            raise _on_some_paths(statement)
    raise refused(
        "begin transaction",
        "its COMMIT or ROLLBACK must stand in the same block, or in every branch of an IF there",
        line,
    )


def ends_everywhere(statements: Body) -> bool:
    """Whether every path through `statements`, which begin inside a transaction, ends it or fails."""
    return State.OPEN not in _through(statements)


def holds(statements: Body, *kinds: type) -> Statement | None:
    """The first statement of one of these kinds in `statements`, at any depth."""
    return next((statement for statement in every(statements) if isinstance(statement, kinds)), None)


def every(statements: Body) -> Iterator[Statement]:
    """`statements` and those inside them."""
    for statement in statements:
        yield statement
        for body in bodies(statement):
            yield from every(body)


def bodies(statement: Statement) -> tuple[Body, ...]:
    """The lists of statements that a statement is made of."""
    match statement:
        case If():
            return (statement.then, statement.otherwise)
        case While() | Block():
            return (statement.body,)
        case TryCatch():
            return (statement.body, statement.catch)
    return ()


def always(condition: Expression) -> bool | None:
    """Inside a region: what a condition is that asks only whether a transaction is open, else None."""
    tokens = condition.tokens
    while len(tokens) > 2 and tokens[0].is_symbol("(") and tokens[-1].is_symbol(")"):
        tokens = tokens[1:-1]
    if len(tokens) == 3 and tokens[0].value == "@@trancount":
        operator, number = tokens[1].value, tokens[2]
    elif (
        len(tokens) == 5
        and tokens[0].is_word("xact_state")
        and tokens[1].is_symbol("(")
        and tokens[2].is_symbol(")")
    ):
        operator, number = tokens[3].value, tokens[4]
    else:
        return None
    if number.kind is not Kind.INTEGER or number.value not in ("0", "1"):
        return None
    if number.value == "0":
        return {">": True, "<>": True, "!=": True, "=": False}.get(operator)
    return {">=": True, "<": False}.get(operator)


def _through(statements: Body, looped: bool = False) -> States:
    """The states at the end of `statements` that begin inside the transaction. `looped`: a loop that began
    inside it is around them."""
    left: States = frozenset()
    for at, statement in enumerate(statements):
        states = _after(statement, looped)
        if State.ENDED in states and State.OPEN in states:
            raise _on_some_paths(statement)
        left |= states & _LEFT
        if State.ENDED in states:
            return left | (_LEFT if _leaves(statements[at + 1 :], looped) else _ENDED)
        if states == _LEFT:
            return left
    return left | _OPEN


def _on_some_paths(statement: Statement) -> TsqlError:
    return refused(
        "begin transaction", "this statement ends the transaction on some of its paths only", statement.line
    )


def _after(statement: Statement, looped: bool = False) -> States:
    match statement:
        case Commit() | Rollback():
            return _ENDED
        case Save():
            raise refused(
                "save transaction", "a part of a transaction cannot be taken back alone", statement.line
            )
        case BeginTransaction():
            raise refused("begin transaction", "one inside another", statement.line)
        case Return():
            raise TsqlError(
                266,
                "A RETURN inside a transaction leaves it open: COMMIT or ROLLBACK it before.",
                statement.line,
            )
        case Throw():
            return _LEFT
        case If():
            known = always(statement.condition)
            if known is not None:
                return _through(statement.then if known else statement.otherwise, looped)
            return _through(statement.then, looped) | _through(statement.otherwise, looped)
        case While():
            inside = _through(statement.body, looped=True)
            if State.ENDED in inside:
                raise refused(
                    "while", "the transaction ends inside the loop and begins outside", statement.line
                )
            return inside | _OPEN
        case Block():
            return _through(statement.body, looped)
        case TryCatch():
            return _through(statement.body, looped) | _through(statement.catch, looped)
    return _OPEN


def _leaves(statements: Body, looped: bool) -> bool:
    """Whether every path through `statements` ends with the procedure, or with a pass of the loop around the
    transaction."""
    for statement in statements:
        match statement:
            case Return() | Throw():
                return True
            case Break() | Continue():
                return not looped
            case If() if _leaves(statement.then, looped) and _leaves(statement.otherwise, looped):
                return True
            case Block() if _leaves(statement.body, looped):
                return True
    return False
