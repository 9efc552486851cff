"""The records of a test file, and the comparison of a result with the expected one.

The format is described in sqlite.org/sqllogictest, "About", and by its program sqllogictest.c.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_US = "mssql"
"""the name of T-SQL in the conditions of records"""
_NUMBER = re.compile(r"\s*[+-]?\d+")
_HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})$")


@dataclass(frozen=True)
class Record:
    """A statement, or a query with its result."""

    line: int
    sql: str
    fails: bool = False
    """a statement that has an error"""
    types: str = ""
    """of a query's columns: I, R or T each; empty for a statement"""
    sort: str = "nosort"
    expected: tuple[str, ...] = ()


def records_of(file: Path) -> Iterator[Record]:
    """The records for T-SQL, up to a `halt`."""
    lines: list[str] = []
    first = 1
    with file.open(encoding="utf-8") as text:
        for number, line in enumerate((*text, "\n"), 1):
            line = line.rstrip("\n")
            if line.strip():
                lines.append(line)
                continue
            if lines:
                record = _record(first, [one for one in lines if not one.startswith("#")])
                if record == "halt":
                    return
                if isinstance(record, Record):
                    yield record
            lines, first = [], number + 1


def _record(line: int, lines: list[str]) -> Record | str | None:
    while lines:
        match lines[0].split():
            case ["skipif", name, *_]:
                if name == _US:
                    return None
            case ["onlyif", name, *_]:
                if name != _US:
                    return None
            case ["halt", *_]:
                return "halt"
            case ["hash-threshold", *_]:
                return None
            case ["statement", outcome, *_]:
                return Record(line, "\n".join(lines[1:]), fails=outcome == "error")
            case ["query", types, *more]:
                split = lines.index("----") if "----" in lines else len(lines)
                sort = more[0] if more else "nosort"
                expected = tuple(lines[split + 1 :])
                return Record(line, "\n".join(lines[1:split]), types=types, sort=sort, expected=expected)
            case other:
                raise ValueError(f"line {line}: no record begins with {' '.join(other)!r}")
        lines = lines[1:]
    return None


def is_expected(record: Record, rows: Sequence[Sequence[Any]]) -> bool:
    """Whether the rows of a query are those of the record."""
    values = _values(record, rows)
    if record.expected:
        hashed = _HASHED.match(record.expected[0])
        if hashed:
            digest = hashlib.md5("".join(f"{value}\n" for value in values).encode(), usedforsecurity=False)
            return len(values) == int(hashed[1]) and digest.hexdigest() == hashed[2]
    return tuple(values) == record.expected


def _values(record: Record, rows: Sequence[Sequence[Any]]) -> list[str]:
    """All values as texts, row after row, in the order of the record."""
    shown = [[_shown(kind, value) for kind, value in zip(record.types, row, strict=True)] for row in rows]
    if record.sort == "rowsort":
        shown.sort()
    values = [value for row in shown for value in row]
    return sorted(values) if record.sort == "valuesort" else values


def _shown(kind: str, value: Any) -> str:
    if value is None:
        return "NULL"
    if kind == "I" and isinstance(value, str):
        # the number at its begin, as in SQLite
        number = _NUMBER.match(value)
        return str(int(number[0])) if number else "0"
    if kind == "I":
        return str(int(value))
    if kind == "R":
        return f"{float(value):.3f}"
    text = str(value)
    return "".join(one if " " <= one <= "~" else "@" for one in text) or "(empty)"
