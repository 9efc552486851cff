"""The parts of tables (columns, checks, references), grouped by table from the rows of either catalogue."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ringlog.adoption.server.objects import Check, OldColumn, Reference

Rows: TypeAlias = list[tuple[Any, ...]]
Query: TypeAlias = Callable[[str], Rows]
"""Executes a query of sql/ase or sql/sql_server on the old server, by the name of its file."""
TableName: TypeAlias = tuple[str, str]
"""owner and name of a table"""


@dataclass(frozen=True)
class Parts:
    """The columns of each table, and its constraints."""

    columns: dict[TableName, list[OldColumn]] = field(default_factory=lambda: defaultdict(list))
    checks: dict[TableName, list[Check]] = field(default_factory=lambda: defaultdict(list))
    references: dict[TableName, list[Reference]] = field(default_factory=lambda: defaultdict(list))
    left: list[str] = field(default_factory=list)
    """parts that are not migrated, with the reason"""


def joined(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[str, ...], str]:
    """Joins pieces of texts, the last field of each row, by the fields before it."""
    texts: dict[tuple[str, ...], str] = {}
    for *fields, piece in rows:
        key = tuple(map(str, fields))
        texts[key] = texts.get(key, "") + ("" if piece is None else str(piece))
    return texts


def default_of(text: str) -> str:
    """`default 'x'` of a column, `create default d as 'x'` bound to it, or the value itself."""
    return re.sub(r"(?is)^\s*(?:create\s+default\s+\S+\s+as|default)\s+", "", text).strip()


def condition_of_rule(text: str, column: str) -> str:
    """`create rule r as @x like 'a%'`: a condition of any variable, which is the column."""
    condition = re.sub(r"(?is)^\s*create\s+rule\s+\S+\s+as\s+", "", text).strip()
    return re.sub(r"@\w+|'(?:[^']|'')*'", lambda found: column if found[0][0] == "@" else found[0], condition)
