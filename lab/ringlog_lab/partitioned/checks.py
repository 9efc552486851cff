"""Queries of one case whose answers together show whether any of them is wrong."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ringlog_lab.partitioned.trees import Tree

Rows = Sequence[tuple[Any, ...]]
Ask = Callable[[Sequence[str]], list[Rows]]
"""The rows of each query. Raises Refused."""
Combine = Callable[[Any, Any], Any]


class Refused(Exception):
    """A query ended with an error. The text is its cause, without names and numbers."""


@dataclass(frozen=True)
class Check:
    """The queries of a case, and whether their answers agree."""

    queries: Callable[[Tree], list[str]]
    are_equal: Callable[[list[Rows]], bool]

    def differs(self, case: Tree, ask: Ask) -> bool:
        try:
            return not self.are_equal(ask(self.queries(case)))
        except Refused:
            return False


def parts_of(select: str, word: str, predicate: object, rest: str = "") -> list[str]:
    """The query without a condition, and its three parts. `word`: where or having."""
    conditions = (
        f"{predicate}",
        f"not ({predicate})",
        f"case when {predicate} then 1 when not ({predicate}) then 0 end is null",
    )
    return [f"{select}{rest}", *(f"{select} {word} {condition}{rest}" for condition in conditions)]


def is_union(answers: list[Rows]) -> bool:
    """Whether the rows of the first are together those of the others, each as often."""
    whole, *parts = map(_counted, answers)
    return whole == sum(parts, Counter())


def is_same(answers: list[Rows]) -> bool:
    first, *others = map(_counted, answers)
    return all(first == other for other in others)


def is_combined(*combine: Combine) -> Callable[[list[Rows]], bool]:
    """Whether aggregates of the parts, combined, are those of the whole. The last columns of a row are the
    aggregates, one for each of `combine`, of which the first is count(*); those before are the group."""

    def are_equal(answers: list[Rows]) -> bool:
        whole, parts = (
            [row for rows in some for row in rows if row[-len(combine)]]
            for some in (answers[:1], answers[1:])
        )
        return _totals(whole, combine) == _totals(parts, combine)

    return are_equal


def _totals(rows: Rows, combine: Sequence[Combine]) -> dict[str, list[str]]:
    groups: dict[str, list[Any]] = {}
    for row in rows:
        group = groups.setdefault(_shown(row[: -len(combine)]), [None] * len(combine))
        for number, value in enumerate(row[-len(combine) :]):
            known = group[number]
            both = known is not None and value is not None
            group[number] = combine[number](known, value) if both else value if known is None else known
    return {key: [_shown(value) for value in values] for key, values in groups.items()}


def _counted(rows: Rows) -> Counter[str]:
    return Counter(map(_shown, rows))


def _shown(value: Any) -> str:
    """Equal for equal values of different clients' types; NaN is equal to NaN."""
    match value:
        case tuple():
            return str([*map(_shown, value)])
        case bool():
            return str(value)
        case int() | Decimal():
            return str(Fraction(value))
        case float():
            return repr(value + 0.0)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat()
    return repr(value)


def least(one: Any, other: Any) -> Any:
    """As in PostgreSQL, in which NaN is the greatest."""
    return min(one, other, key=_place)


def greatest(one: Any, other: Any) -> Any:
    return max(one, other, key=_place)


def _place(value: Any) -> tuple[bool, Any]:
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)
