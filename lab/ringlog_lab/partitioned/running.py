"""Cases of a subject, one after another, and the report of the first that fails."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ringlog_lab.partitioned.checks import Ask, Check, Refused
from ringlog_lab.partitioned.trees import Grammar, Tree, reduced, tree


class Different(Exception):
    """Queries with wrong answers; the text has them."""


@dataclass(frozen=True)
class Subject:
    """Queries of one kind, and the client that asks them."""

    name: str
    grammar: Grammar
    checks: Mapping[str, Check]
    ask: Ask
    cases: int = 100
    """in a round"""
    rows: Callable[[Callable[[], bool]], str] = lambda fails: ""
    """what the report says of the rows, which may be reduced while the queries fail"""


@dataclass
class Counts:
    queries: Counter[str] = field(default_factory=Counter)
    """answered, by subject"""
    refused: Counter[str] = field(default_factory=Counter)
    """by subject and error"""
    examples: dict[str, str] = field(default_factory=dict)
    """the first queries with each error"""

    def print(self) -> None:
        for name, count in self.queries.items():
            print(f"{name}: {count} queries")
        for error, count in self.refused.most_common():
            print(f"refused {count}: {error}; first in:\n  {self.examples[error]}")


def run(subject: Subject, draw: random.Random, counts: Counts) -> None:
    """Raises Different with the smallest queries found that differ."""
    for _ in range(subject.cases):
        case = tree(draw, subject.grammar, "case", draw.randint(1, 4))
        for name, check in subject.checks.items():
            queries = check.queries(case)
            try:
                agree = check.are_equal(subject.ask(queries))
            except Refused as error:
                text = f"{subject.name}: {error}"
                counts.refused[text] += 1
                counts.examples.setdefault(text, "\n  ".join(queries[:2]))
                continue
            counts.queries[subject.name] += len(queries)
            if not agree:
                raise Different(_report(subject, name, check, case))


def _report(subject: Subject, name: str, check: Check, case: Tree) -> str:
    smallest = reduced(case, subject.grammar, lambda one: check.differs(one, subject.ask))
    rows = subject.rows(lambda: check.differs(smallest, subject.ask))
    queries = check.queries(smallest)
    try:
        answers = subject.ask(queries)
    except Refused as error:
        return f"{subject.name}, {name}: {queries} differed, and is now refused: {error}"
    lines = [f"{subject.name}, {name}:"]
    for query, answer in zip(queries, answers, strict=True):
        lines += [query, *(f"  {row}" for row in answer[:10]), f"  {len(answer)} rows"]
    return "\n".join([*lines, rows])
