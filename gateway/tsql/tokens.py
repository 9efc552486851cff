"""The tokens of T-SQL."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count

from ringlog.gateway.tsql.errors import TsqlError, refused


class Kind(Enum):
    WORD = "word"
    """keyword or identifier"""
    NAME = "name"
    """[name], or "name" with quoted identifiers on"""
    TEXT = "text"
    """'text', or "text" with quoted identifiers off"""
    VARIABLE = "variable"
    """@name or @@name, with its @, in lower case; ?1, ?2, … for placeholders"""
    INTEGER = "integer"
    DECIMAL = "decimal"
    """digits with a point"""
    FLOAT = "float"
    """digits with an exponent"""
    MONEY = "money"
    """$ or another sign of a currency and an amount; `value` is the amount alone"""
    BINARY = "binary"
    """`value` has the hexadecimal digits of 0x…"""
    SYMBOL = "symbol"
    """an operator or a punctuation mark"""


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    value: str
    """what it means: without quotes and brackets"""
    line: int
    """of its first character, from 1"""
    start: int
    """its characters in the text are start … end - 1"""
    end: int
    national: bool = False
    """N'text'"""

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, given in lower case, and not in brackets or quotes."""
        return self.kind is Kind.WORD and self.value.lower() in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is Kind.SYMBOL and self.value in symbols

    @property
    def is_name(self) -> bool:
        """Whether it can be an identifier (a keyword can not, which the reader of a statement knows)."""
        return self.kind in (Kind.WORD, Kind.NAME)

    @property
    def shown(self) -> str:
        """As an error message names it."""
        if self.kind is Kind.BINARY:
            return f"0x{self.value}"
        return self.value if len(self.value) <= 128 else f"{self.value[:125]}..."


Tokens = Sequence[Token]

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+ | --[^\n]*)
  | (?P<comment>/\*)
  | (?P<text>[Nn]?'(?:[^']|'')*')
  | (?P<open_text>[Nn]?')
  | (?P<quoted>"(?:[^"]|"")*")
  | (?P<open_quoted>")
  | (?P<bracketed>\[(?:[^\]]|\]\])*\])
  | (?P<open_bracketed>\[)
  | (?P<binary>0[xX][0-9a-fA-F]*)
  | (?P<float>(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE](?:[-+]?[0-9]+)?)
  | (?P<decimal>[0-9]+\.[0-9]*|\.[0-9]+)
  | (?P<integer>[0-9]+)
  | (?P<money>[$£¥€]\s*[-+]?\s*(?:[0-9]+(?:,[0-9]+)*\.?[0-9]*|\.[0-9]+)|[$£¥€](?![\w$\#@]))
  | (?P<variable>@@?[\w$\#@]+|@)
  | (?P<word>[^\W\d][\w$\#@]*|\#\#?[\w$\#@]*)
  | (?P<symbol><>|<=|>=|!=|!<|!>|\+=|-=|\*=|/=|%=|&=|\|=|\^=|=\*|\|\||::|[^\s])
    """,
    re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_LINE_END = re.compile(r"\n")


def read_tokens(text: str, quoted_identifiers: bool = True, placeholders: bool = False) -> list[Token]:
    """Splits a text; blanks and comments, which nest, vanish.

    `quoted_identifiers`: "x" is a name and not a text. `placeholders`: `?` is a variable, ?1 the first.
    Raises TsqlError: 105 for a text or name without its end, 113 for a comment without its end, 1038 for an
    empty name.
    """
    ends = [found.start() for found in _LINE_END.finditer(text)]
    numbers = count(1)
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None
        group, whole, end = str(found.lastgroup), found.group(), found.end()
        start, at = at, end
        if group == "blank":
            continue
        line = bisect_right(ends, start - 1) + 1 if start else 1
        if group == "comment":
            at = _comment_end(text, start, line)
            continue
        if group.startswith("open_"):
            shown = text[end : end + 60].strip()
            raise TsqlError(105, f"Unclosed quotation mark after the character string '{shown}'.", line)
        kind, value, national = _meaning(group, whole, quoted_identifiers, line)
        if kind is Kind.SYMBOL and value == "?" and placeholders:
            kind, value = Kind.VARIABLE, f"?{next(numbers)}"
        tokens.append(Token(kind, value, line, start, end, national))
    return tokens


_SIMPLE = {
    "binary": Kind.BINARY,
    "decimal": Kind.DECIMAL,
    "float": Kind.FLOAT,
    "integer": Kind.INTEGER,
    "money": Kind.MONEY,
    "symbol": Kind.SYMBOL,
    "variable": Kind.VARIABLE,
    "word": Kind.WORD,
}


def _meaning(group: str, whole: str, quoted_identifiers: bool, line: int) -> tuple[Kind, str, bool]:
    if group == "text":
        national = whole[0] != "'"
        return Kind.TEXT, whole[1 + national : -1].replace("''", "'"), national
    if group == "quoted":
        value = whole[1:-1].replace('""', '"')
        return (_name(value, line) if quoted_identifiers else Kind.TEXT), value, False
    if group == "bracketed":
        value = whole[1:-1].replace("]]", "]")
        return _name(value, line), value, False
    kind = _SIMPLE[group]
    if kind is Kind.VARIABLE:
        return kind, whole.lower(), False
    if kind is Kind.BINARY:
        return kind, whole[2:], False
    if kind is Kind.MONEY:
        if "," in whole:
            # SQL Server passes over the comma, others see two values
            raise refused(whole, "write an amount without commas, or a blank between two values", line)
        amount = re.sub(r"[\s$£¥€+]", "", whole)
        return kind, amount or "0", False
    return kind, whole, False


def _name(value: str, line: int) -> Kind:
    if not value:
        raise TsqlError(1038, "An object or column name is missing or empty.", line)
    return Kind.NAME


def _comment_end(text: str, start: int, line: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if not depth:
            return edge.end()
    raise TsqlError(113, "Missing end comment mark '*/'.", line)


def source(text: str, tokens: Tokens) -> str:
    """The part of `text` that `tokens` were read from."""
    return text[tokens[0].start : tokens[-1].end] if tokens else ""


def variables_of(tokens: Iterable[Token]) -> list[str]:
    """The variables among `tokens`, each once, in the order of their first use."""
    return [*dict.fromkeys(token.value for token in tokens if token.kind is Kind.VARIABLE)]
