"""Reads a TOML table, with the checks that all tables of a facility file have in common."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from ringlog.schema.column_type import NUMBERS, NUMERIC_PRECISION, VARCHAR_LENGTH, ColumnType, Kind
from ringlog.schema.facility_files.toml_lines import Known, Problem

# PostgreSQL's own bounds, from its sources: NAMEDATALEN - 1, MaxHeapAttributeNumber, MaxHeapTupleSize, and
# the system columns of every table.
NAME_BYTES = 63
TABLE_COLUMNS = 1600
ROW_BYTES = 8160
SYSTEM_COLUMNS = ("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid")
INTEGER_MAX = 2**31 - 1

UNIT_LENGTH = 64  # characters

IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")
_NUMERIC = re.compile(r"numeric\([1-9]\d?,\d{1,2}\)")
_MEANT = {
    "float": "double (8 bytes) or real (4 bytes)",
    "double precision": "double",
    "integer": "int",
    "long": "bigint",
    "tinyint": "smallint",
    "boolean": "bit",
    "bool": "bit",
    "decimal": "numeric(p,s)",
    "numeric": "numeric(p,s)",
    "varchar": "varchar(n) or text",
    "char": "varchar(n)",
    "string": "varchar(n) or text",
    "timestamp": "datetime",
    "date": "datetime",
}
"""Names of types of other systems, and the types to use instead."""


class Entry:
    """A TOML table that is being read: it returns the values of keys and collects errors.

    A wrong value is reported and replaced by a valid one, so that reading continues to the next error.
    """

    def __init__(self, content: dict[str, Any], where: str, problems: list[str], known: Known) -> None:
        self._content = dict(content)
        self._whole = content
        self._where = where
        self._problems = problems
        self._known = known
        self._asked: set[str] = set()

    def refuse(self, rule: str) -> None:
        message = f"{self._where}: {rule}" if self._where else rule
        self._problems.append(Problem(message, self._known.line(rule, self._whole)))

    def take(self, key: str) -> Any:
        """The value; None when the key is missing."""
        self._asked.add(key)
        return self._content.pop(key, None)

    def demand(self, key: str) -> Any:
        if key not in self._content:
            self.refuse(f"{key} is missing")
        return self.take(key)

    def text(self, key: str, default: str | None = "") -> str:
        """One line or more of text. Without a default the key is demanded."""
        value = self.demand(key) if default is None else self.take(key)
        if value is None:
            return default or ""
        if not isinstance(value, str):
            self.refuse(f"{key} must be text")
        elif not value.replace("\n", " ").isprintable():
            self.refuse(f"{key} must not hold control characters")
        else:
            return value
        return default or ""

    def unit(self) -> str:
        """The unit of a column, which heads axes and columns of other programs."""
        value = self.text("unit")
        if len(value) > UNIT_LENGTH or "\n" in value:
            self.refuse(f"unit must be one line of at most {UNIT_LENGTH} characters")
            return ""
        return value

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if value not in (None, True, False):
            self.refuse(f"{key} must be true or false")
        return value is True

    def entries(self, kind: str, of: str = "", *, needed: bool = True) -> Iterator["Entry"]:
        """The elements of an array of TOML tables, which must not be empty, or left out where not `needed`.

        `of` is the array around it.
        """
        value = self.take(kind)
        if value is None and not needed:
            return
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            self.refuse(f"there must be at least one [[{f'{of}.{kind}' if of else kind}]]")
            return
        for number, item in enumerate(value, 1):
            name = item.get("name")
            where = f"{kind} {name}" if name and isinstance(name, str) else f"{kind} number {number}"
            inner = f"{self._where}, {where}" if self._where else where
            yield Entry(item, inner, self._problems, self._known.inner(kind, number))

    def end(self, kind: str) -> None:
        """Refuses unknown keys."""
        for key in self._content:
            near = get_close_matches(key, self._asked, 1, 0.7)
            self.refuse(f"'{key}' is no key of a {kind}" + (f": did you mean '{near[0]}'?" if near else ""))


def check_identifier(entry: Entry, name: str, longest: int, what: str) -> None:
    if name and not IDENTIFIER.fullmatch(name):
        entry.refuse(f"name '{name}' must be a lower-case letter, then letters, digits and _")
    elif len(name) > longest:
        entry.refuse(f"name '{name}' has {len(name)} characters; {what} leaves {longest}")


def column_type(entry: Entry) -> ColumnType | None:
    """None after an error."""
    value = entry.demand("type")
    if value is None:
        return None
    if isinstance(value, str):
        text = value.replace(" ", "") if value.startswith(Kind.NUMERIC) else value
        try:
            return ColumnType.of(text)
        except ValueError:
            if _NUMERIC.fullmatch(text):
                entry.refuse(
                    f"type '{value}': numeric(p,s) has p digits, 1 to {NUMERIC_PRECISION}, of which s, 0 to"
                    " p, are behind the point"
                )
                return None
    # char(10), say; a varchar(n) is refused for its n
    meant = _MEANT.get(re.sub(r"^(?!varchar)(\w+)\(.*\)$", r"\1", str(value)).lower())
    entry.refuse(
        f"type '{value}' is none of {', '.join(NUMBERS)}, numeric(p,s), datetime, varchar(n) with n to"
        f" {VARCHAR_LENGTH}, text, nor a waveform of these, as double[]"
        + (f": write {meant}" if meant else "")
    )
    return None


def limits_of(entry: Entry, kind: ColumnType | None, key: str = "limits") -> tuple[float, float] | None:
    value = entry.take(key)
    if value is None:
        return None
    if kind is not None and (kind.is_text or kind in (ColumnType(Kind.BIT), ColumnType(Kind.DATETIME))):
        entry.refuse(f"{key} are for numbers, and this column is {kind}")
    elif not isinstance(value, list) or len(value) != 2 or not all(is_number(limit) for limit in value):
        entry.refuse(f"{key} must be two numbers, [low, high]")
    elif not value[0] < value[1]:
        entry.refuse(f"{key} must be low before high, not {value[0]} and {value[1]}")
    else:
        return float(value[0]), float(value[1])
    return None


def count_of(entry: Entry, key: str, value: Any) -> int:
    if value is None:
        return 1
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= INTEGER_MAX:
        return value
    entry.refuse(f"{key} must be a whole number from 1 to {INTEGER_MAX}")
    return 1


def is_number(value: Any) -> bool:
    """A number that a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def repeated(names: Iterator[str]) -> list[str]:
    return [name for name, number in Counter(names).items() if number > 1 and name]
