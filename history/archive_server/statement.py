"""Translation of postgres_fdw's queries for DuckDB.

postgres_fdw sends expressions in PostgreSQL's syntax, with any of PostgreSQL's built-in functions and
operators. DuckDB has many of the same names with another meaning, so only functions that are known to agree
are accepted; the others are refused by name. The foreign tables (`schema/relations/archive_tables.py`) name
each column `name:type`; postgres_fdw never sends an expression with a column of a user-defined type.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ringlog.history.archive.parquet.forms import ROWS, SAMPLES, Rows
from ringlog.history.archive_server.lists import OF_SAMPLES
from ringlog.schema.layout import ARCHIVE
from ringlog.schema.moments import MICROSECOND

ADVICE = (
    "Take the rows first, and calculate with them in PostgreSQL:"
    " with taken as materialized (select … from archive.… where …) select … from taken"
)


class Refused(Exception):
    """The query has a part for which DuckDB may differ from PostgreSQL."""


_TOKEN = re.compile(
    r"""\s+
    | (?P<text>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*")
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    | (?P<parameter>\$\d+)
    | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
    | (?P<mark>::|[(),.\[\]])
    | (?P<operator>[-+*/<>=~!@\#%^&|`?]+)""",
    re.X,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _words(
    "select from where and or not is null distinct group by having order asc desc nulls first last limit"
    " offset on inner left right full join case when then else end true false any all filter exists"
)

_AGGREGATES = _words(
    "count sum min max avg bool_and bool_or every corr covar_pop covar_samp"
    " stddev stddev_samp stddev_pop variance var_samp var_pop"
    " regr_slope regr_intercept regr_r2 regr_count regr_avgx regr_avgy"
)

_FUNCTIONS = _AGGREGATES | _words(
    "abs floor ceil ceiling sqrt cbrt exp ln log10 power sign trunc"
    " sin cos tan asin acos atan atan2 degrees radians"
)
"""Functions with the same meaning in both."""

_ELSEWHERE = {"every": "bool_and", "ceiling": "ceil"}
"""DuckDB's names of functions with another name."""

_LATER = (("group", "by"), ("having",), ("order", "by"), ("limit",), ("offset",))
"""clauses after WHERE"""

_OPERATORS = frozenset(["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "&", "|"])
_DIVISIONS = frozenset(["/", "%"])
"""operators that are accepted before a number other than 0, for which PostgreSQL raises an error"""

_TYPES = {
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp with time zone": "TIMESTAMPTZ",
}
"""PostgreSQL's names of types, and DuckDB's."""

_OF_TYPES = {word for name in _TYPES for word in name.split()}

_BOUNDED = {"time:timestamp with time zone": "timestamp with time zone", "number:integer": "integer"}
"""columns with statistics in the files, and their types"""

_LAST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)

_BOUND = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
"""Comparisons, and the same ones with swapped operands."""


class _Token(NamedTuple):
    kind: str
    text: str


@dataclass
class Relation:
    """A foreign table of a query."""

    files: str
    """names the list of the files to read; PostgreSQL has it as the table's name (`ringlog.list_archived`)"""
    name: str
    """its name in the query for DuckDB"""
    alias: str | None
    columns: dict[str, None] = field(default_factory=dict)
    """`name:type` of the columns that the query uses"""
    start: datetime | None = None
    """the query needs rows from this time on, and before `end`; None: no bound"""
    end: datetime | None = None
    number: int | None = None
    """of the only signal that the query needs, in a table of samples; None: of all"""

    @property
    def form(self) -> Rows:
        return SAMPLES if self.files.rpartition(" ")[2].startswith(OF_SAMPLES) else ROWS


@dataclass
class Statement:
    """A query for DuckDB; `{name}` of each relation stands for its rows."""

    text: str
    values: list[str | None]
    relations: list[Relation]
    descending: bool | None
    """whether the rows are read newest first (False: oldest first); None: in any order"""
    columns: list[str] | None
    """`name:type` of its columns if it selects only these, within the bounds of its relation: without
    DuckDB"""


def read(text: str, parameters: Sequence[str | None] = ()) -> Statement:
    """Translates a query of postgres_fdw. Raises Refused."""
    return _Reader([*_tokens(text)], parameters).statement()


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise Refused(f"the archive server cannot read this: {text[at : at + 40]}")
        at = found.end()
        if found.lastgroup:
            yield _Token(found.lastgroup, found[0])


def _plain(name: str) -> str:
    """An identifier without quotes."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Reader:
    def __init__(self, tokens: list[_Token], parameters: Sequence[str | None]) -> None:
        self._tokens = tokens
        self._parameters = parameters
        self._relations = [*self._found()]

    def statement(self) -> Statement:
        if any(self._clause("for", strength) is not None for strength in ("update", "share")):
            raise Refused("rows of the archive cannot be locked")
        are_bounds = [self._bounds(condition) for condition in self._conditions()]
        descending = self._order()
        columns = self._columns() if all(are_bounds) else None
        values: list[str | None] = []
        text = " ".join(self._translated(values))
        return Statement(text, values, self._relations, descending, columns)

    def _at(self, index: int) -> _Token:
        return self._tokens[index] if 0 <= index < len(self._tokens) else _Token("end", "")

    def _is(self, index: int, *texts: str) -> bool:
        return all(self._at(index + number).text.lower() == text for number, text in enumerate(texts))

    def _found(self) -> Iterator[Relation]:
        """The foreign tables: `archive."TABLE DIGEST"` with an optional alias."""
        for index, token in enumerate(self._tokens):
            if token.text == ARCHIVE and self._is(index + 1, ".") and not self._is(index - 1, "."):
                after = self._at(index + 3)
                is_alias = after.kind == "word" and after.text.lower() not in _KEYWORDS
                number = sum(each.text == ARCHIVE for each in self._tokens[:index])
                files = _plain(self._at(index + 2).text)
                yield Relation(files, f"rows_{number}", after.text if is_alias else None)

    def _of(self, index: int) -> list[Relation]:
        """The relations that the column at an index may belong to."""
        if self._is(index - 1, "."):
            alias = self._at(index - 2).text
            return [each for each in self._relations if each.alias == alias]
        return [each for each in self._relations if each.alias is None]

    def _value(self, token: _Token) -> str | None:
        if token.kind == "parameter":
            return self._parameters[int(token.text[1:]) - 1]
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        raise Refused(f"{token.text} is no value")

    def _clause(self, *words: str) -> int | None:
        """The index of a clause of the outermost query."""
        depth = 0
        for index, token in enumerate(self._tokens):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and token.kind == "word" and self._is(index, *words):
                return index
        return None

    def _conditions(self) -> list[list[_Token]]:
        """The conditions that every row fulfils, without outer parentheses."""
        where = self._clause("where")
        if where is None:
            return []
        ends = [self._clause(*words) for words in _LATER]
        end = min((each for each in ends if each is not None), default=len(self._tokens))
        found: list[list[_Token]] = [[]]
        depth = 0
        for token in self._tokens[where + 1 : end]:
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and token.text.lower() == "and":
                found.append([])
            else:
                found[-1].append(token)
        return [_bare(each) for each in found]

    def _bounds(self, condition: list[_Token]) -> bool:
        """Whether a condition is nothing but a bound of time, or the number of a signal of samples, which the
        relation then has."""
        texts = [token.text for token in condition]
        column = next((n for n, text in enumerate(texts) if _plain(text) in _BOUNDED), None)
        if column is None:
            return False
        first = column - 2 if column >= 2 and texts[column - 1] == "." else column
        alias = texts[first] if first < column else None
        if first == 0 and len(texts) > column + 2:
            comparison, value, rest = texts[column + 1], condition[column + 2], texts[column + 3 :]
        elif column == len(texts) - 1 and first > 1:
            comparison, value, rest = texts[first - 1], condition[0], texts[1 : first - 1]
            comparison = _BOUND.get(comparison, comparison)
        else:
            return False
        kind = _BOUNDED[_plain(texts[column])]
        if comparison not in _BOUND or rest not in ([], ["::", *kind.split()]):
            return False
        bounded = [relation for relation in self._relations if relation.alias == alias]
        if kind != "integer":
            narrowed = [_narrow(relation, comparison, self._value(value)) for relation in bounded]
            return all(narrowed)
        if comparison != "=" or value.kind not in ("number", "parameter"):
            return False
        given = value.text if value.kind == "number" else self._value(value)
        if given is None:
            return False
        chosen = [_choose(relation, int(given)) for relation in bounded]
        return all(chosen)

    def _order(self) -> bool | None:
        """Whether the query orders its rows by time, oldest or newest first; then removes the clause."""
        order = self._clause("order", "by")
        if order is None or len(self._relations) != 1 or self._clause("group", "by") is not None:
            return None
        if any(
            token.text.lower() in _AGGREGATES and self._is(n + 1, "(") for n, token in enumerate(self._tokens)
        ):
            return None
        limit = self._clause("limit")
        end = len(self._tokens) if limit is None else limit
        keys: list[list[str]] = [[]]
        for token in self._tokens[order + 2 : end]:
            if token.text == ",":
                keys.append([])
            else:
                keys[-1].append(_plain(token.text).lower())
        # an alias before the column
        names = [(key[2] if len(key) > 2 and key[1] == "." else key[0]).partition(":")[0] for key in keys]
        directions = {"desc" in key for key in keys[:2]}
        nulls = all(key[-2:] == ["nulls", "first" if "desc" in key else "last"] for key in keys)
        is_known = names[0] == "time" and names[1:2] in ([], ["seq_no"], ["nanoseconds"])
        if not is_known or len(directions) != 1 or not nulls:
            return None
        (relation,) = self._relations
        if relation.form is SAMPLES and relation.number is None:
            return None  # only those of one signal are in the order of time
        del self._tokens[order:end]
        return directions.pop()

    def _columns(self) -> list[str] | None:
        """The columns of `SELECT column, … FROM table [WHERE …]`; None for another query."""
        end = self._clause("from")
        where = self._clause("where")
        if end is None or end + 4 != (len(self._tokens) if where is None else where):
            return None
        if any(self._clause(*words) is not None for words in _LATER):
            return None
        names, commas = self._tokens[1:end:2], self._tokens[2:end:2]
        if any(token.kind != "name" for token in names) or any(token.text != "," for token in commas):
            return None
        return [_plain(token.text) for token in names]

    def _translated(self, values: list[str | None]) -> Iterator[str]:
        index = 0
        number = 0
        while index < len(self._tokens):
            token = self._at(index)
            low = token.text.lower()
            if token.text == ARCHIVE and self._is(index + 1, "."):
                yield _quoted(self._relations[number].name)
                number, index = number + 1, index + 3
                continue
            if token.kind in ("text", "parameter") or low == "null":
                what, index = self._typed(index, values)
                yield what
                continue
            if token.kind == "name":
                name = _plain(token.text)
                if ":" not in name:
                    raise Refused(f"the archive server does not know {token.text}")
                for relation in self._of(index):
                    relation.columns[name] = None
                yield token.text
            elif token.kind == "word":
                yield self._word(index, low)
            elif token.kind == "operator":
                yield self._operator(index)
            elif token.text == "::":
                kind, index = self._type(index + 1)
                yield f"::{kind}"
                continue
            elif token.text in "[]":
                raise Refused(f"the archive server does not support elements of arrays. {ADVICE}")
            else:
                yield token.text
            index += 1

    def _operator(self, index: int) -> str:
        text = self._at(index).text
        divisor = self._at(index + 1)
        divides = text in _DIVISIONS and divisor.kind == "number" and float(divisor.text) != 0
        if text not in _OPERATORS and not divides:
            raise Refused(f"the archive server does not calculate with {text} here. {ADVICE}")
        return text

    def _word(self, index: int, low: str) -> str:
        if low in _FUNCTIONS and self._is(index + 1, "("):
            return _ELSEWHERE.get(low, low)
        if low not in _KEYWORDS and not self._is_alias(low):
            raise Refused(f"the archive server does not know {self._at(index).text}. {ADVICE}")
        return low

    @staticmethod
    def _is_alias(word: str) -> bool:
        return re.fullmatch(r"[rsc]\d+", word) is not None

    def _typed(self, index: int, values: list[str | None]) -> tuple[str, int]:
        """A value with its type, and the index after it."""
        token = self._at(index)
        if token.text.lower() == "null":
            if not self._is(index + 1, "::"):
                return "NULL", index + 1
            kind, index = self._type(index + 2)
            return f"NULL::{kind}", index
        value = self._value(token)
        if self._is(index + 1, "::"):
            kind, index = self._type(index + 2)
        else:
            kind, index = self._type_beside(index), index + 1
        if kind.endswith("[]"):
            return self._list(value, kind), index
        values.append(value)
        return f"CAST(${len(values)} AS {kind})", index

    def _type_beside(self, index: int) -> str:
        """The type of the column with which a value without a type is compared."""
        if self._at(index - 1).kind == "operator":
            column = self._at(index - 2)
        else:
            column = self._at(index + (4 if self._is(index + 3, ".") else 2))
        kind = _TYPES.get(_plain(column.text).rpartition(":")[2]) if column.kind == "name" else None
        if kind is None:
            raise Refused(f"the archive server does not know the type of {self._at(index).text}. {ADVICE}")
        return kind

    @staticmethod
    def _list(value: str | None, kind: str) -> str:
        """PostgreSQL's text of an array of numbers or times for ANY or ALL."""
        if value is None or not re.fullmatch(r'\{[-+.:,"\w ]*\}', value):
            raise Refused(f"the archive server does not know the list {value}")
        items = [item.strip('"') for item in value[1:-1].split(",") if item]
        if any(item.upper() == "NULL" for item in items):
            raise Refused(f"the archive server does not compare with a list that has NULL. {ADVICE}")
        return f"CAST([{', '.join(repr(item) for item in items)}] AS {kind})"

    def _type(self, index: int) -> tuple[str, int]:
        """DuckDB's name of the type at an index, and the index after it."""
        words = []
        while self._at(index).text.lower() in _OF_TYPES:
            words.append(self._at(index).text.lower())
            index += 1
        kind = _TYPES.get(" ".join(words))
        if kind is None:
            raise Refused(
                f"the archive server does not calculate with the type {self._at(index).text}. {ADVICE}"
            )
        if self._is(index, "[", "]"):
            return f"{kind}[]", index + 2
        return kind, index


def _bare(tokens: list[_Token]) -> list[_Token]:
    """The tokens without outer parentheses."""
    while len(tokens) > 1 and tokens[0].text == "(" and tokens[-1].text == ")":
        depth = 0
        for index, token in enumerate(tokens):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and index < len(tokens) - 1:
                return tokens
        tokens = tokens[1:-1]
    return tokens


def _narrow(relation: Relation, comparison: str, value: str | None) -> bool:
    """Whether a relation now has this bound of time."""
    moment = _moment(value)
    if moment is None:
        return False
    after = moment + MICROSECOND
    if comparison in (">", ">=", "="):
        start = after if comparison == ">" else moment
        relation.start = start if relation.start is None else max(start, relation.start)
    if comparison in ("<", "<=", "="):
        end = moment if comparison == "<" else after
        relation.end = end if relation.end is None else min(end, relation.end)
    return True


def _choose(relation: Relation, number: int) -> bool:
    """Whether a relation has only samples of this signal."""
    if relation.form is SAMPLES and relation.number is None:
        relation.number = number
    return relation.number == number


def _moment(text: str | None) -> datetime | None:
    """A time as PostgreSQL writes it; None at the end of Python's range or outside, which is no bound."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment if moment < _LAST else None
