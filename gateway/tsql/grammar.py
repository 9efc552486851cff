"""The grammar of one select, read by sqlglot without its words.

sqlglot knows how a query is built, but it rewrites functions, types and literals on the way, drops what it
does not know and binds some operators otherwise than T-SQL does. So it sees only keywords, operators and
marks: n5 stands for the name at token 5, f5 for a function, v5 for a value. What a mark means is looked up by
its number, and every mark must come back from the tree: nothing is lost on the way.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from sqlglot import ErrorLevel, TokenType, exp
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import ParseError
from sqlglot.parsers.tsql import TSQLParser

from ringlog.gateway.tsql.cursor import Cursor
from ringlog.gateway.tsql.errors import TsqlError, keyword_syntax, refused, syntax
from ringlog.gateway.tsql.keywords import RESERVED, words
from ringlog.gateway.tsql.session import NILADIC
from ringlog.gateway.tsql.statements import ObjectName
from ringlog.gateway.tsql.tokens import Kind, Token, Tokens
from ringlog.gateway.tsql.types import Type


class _Skeletons(TSQL):
    """T-SQL's precedence: * / % before + - & | ^."""

    class Parser(TSQLParser):
        FACTOR = {TokenType.STAR: exp.Mul, TokenType.SLASH: exp.Div, TokenType.MOD: exp.Mod}  # noqa: RUF012
        TERM = {  # noqa: RUF012
            TokenType.DASH: exp.Sub,
            TokenType.PLUS: exp.Add,
            TokenType.AMP: exp.BitwiseAnd,
            TokenType.PIPE: exp.BitwiseOr,
            TokenType.CARET: exp.BitwiseXor,
            TokenType.DPIPE: exp.DPipe,
        }
        BITWISE: ClassVar[dict[TokenType, type[exp.Binary]]] = {}


@dataclass(frozen=True)
class Name:
    """A name of several parts, some of which may be empty as in a..b; `star`: `a.*`."""

    parts: tuple[str, ...]
    line: int
    star: bool = False


@dataclass(frozen=True)
class Function:
    name: Name


@dataclass(frozen=True)
class Top:
    tokens: tuple[Token, ...]
    percent: bool
    with_ties: bool
    line: int


Leaf: TypeAlias = Token | Name | Function | Type | Top


@dataclass
class Skeleton:
    """A select: its tree, what its marks stand for, and the table it selects into."""

    tree: exp.Expr
    leaves: dict[str, Leaf]
    into: ObjectName | None
    tokens: Tokens
    met: set[str] = field(default_factory=set)

    @property
    def line(self) -> int:
        return self.tokens[0].line

    def leaf(self, mark: str) -> Leaf:
        if mark not in self.leaves:
            # sqlglot lets keywords be names
            raise keyword_syntax(mark.lower(), self.line)
        self.met.add(mark)
        return self.leaves[mark]

    def check_complete(self) -> None:
        """Raises TsqlError when something of the text has not been translated."""
        lost = self.leaves.keys() - self.met
        if lost:
            leaf = self.leaves[min(lost, key=lambda mark: int(mark[1:]))]
            shown, line = _shown(leaf)
            raise refused(shown, "it is not understood where it stands", line or self.line)


def _shown(leaf: Leaf) -> tuple[str, int]:
    match leaf:
        case Token():
            return leaf.shown, leaf.line
        case Name():
            return ".".join(leaf.parts), leaf.line
        case Function():
            return ".".join(leaf.name.parts), leaf.name.line
        case Top():
            return "top", leaf.line
        case Type():
            return leaf.name, 0


_STRUCTURE = words(
    """
    all and any as asc between by case cross desc distinct else end except exists from full group having in
    inner intersect is join left like not null on or order outer over partition right select some then union
    when where with
    """
)
_CLAUSES = {"from": 1, "where": 2, "group": 3, "having": 4, "order": 5}
_ITEMS_BEGIN = frozenset(("ALL", "CASE", "DISTINCT", "EXISTS", "NOT", "NULL"))
_WHY_REFUSED = {
    "collate": "texts are compared as the database has it",
    "compute": "use group by, or two queries",
    "for": "a result is rows and columns",
    "option": "PostgreSQL plans by itself",
    "pivot": "write the columns with case",
    "unpivot": "write the rows with union all",
    "holdlock": "begin a transaction",
}
_NO_OPERANDS = (RESERVED - {"end", "null", *NILADIC}) | {"top"}
_HARMLESS_HINTS = words("nolock readuncommitted readcommitted rowlock paglock noexpand")
_SYMBOLS = {"!=": "<>", "!<": ">=", "!>": "<=", "*=": "IS DISTINCT FROM", "=*": "IS NOT DISTINCT FROM"}
_PLAIN_SYMBOLS = words("+ - * / % & | ^ ~ ( ) , = < > <= >= <> ||")


def read_select(tokens: Tokens) -> Skeleton:
    """Reads a select. Raises TsqlError with the token that cannot stand where it does."""
    return _Reader(tokens).read()


class _Reader:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.leaves: dict[str, Leaf] = {}
        self.lines: list[str] = []
        self.origins: list[int] = []
        self.into: ObjectName | None = None
        self.closes, self.last_as = _parentheses(tokens)
        self.clauses = [0]
        """how far the select on each level has got, by _CLAUSES"""
        self.replaced: dict[int, tuple[int, str]] = {}
        """where something is written otherwise: the index to go on at, and what is written"""

    def read(self) -> Skeleton:
        at = 0
        while at < len(self.tokens):
            if at in self.replaced:
                following, text = self.replaced[at]
            else:
                following, text = self._token(at)
            if text:
                self._refuse_gap(at, text)
                self.lines.append(text)
                self.origins.append(at)
            at = following
        return Skeleton(self._parse(), self.leaves, self.into, self.tokens)

    def _mark(self, kind: str, at: int, leaf: Leaf) -> str:
        mark = f"{kind}{at}"
        self.leaves[mark] = leaf
        return mark

    def _peek(self, at: int) -> Token | None:
        return self.tokens[at] if 0 <= at < len(self.tokens) else None

    def _is(self, at: int, *symbols: str) -> bool:
        token = self._peek(at)
        return token is not None and token.is_symbol(*symbols)

    def _is_word(self, at: int, *words: str) -> bool:
        token = self._peek(at)
        return token is not None and token.is_word(*words)

    def _token(self, at: int) -> tuple[int, str]:
        token = self.tokens[at]
        if token.kind is Kind.SYMBOL:
            return self._symbol(at, token)
        if token.kind is Kind.TEXT and self._names_column(at):
            return at + 1, self._mark("n", at, Name((token.value,), token.line))
        if not token.is_name:
            if token.kind is Kind.VARIABLE and token.value == "@":
                raise syntax("@", token.line)
            return at + 1, f"{self._mark('v', at, token)}()"
        word = token.value.lower() if token.kind is Kind.WORD else ""
        if word in ("cast", "try_cast", "convert", "try_convert") and self._is(at + 1, "("):
            return self._conversion(at, word)
        if word in ("left", "right", "nullif", "user", "identity") and self._is(at + 1, "("):
            return self._name(at)
        if word in _STRUCTURE and (word != "partition" or self._is_word(at - 2, "over")):
            return self._keyword(at, word)
        if word in RESERVED:
            return self._reserved(at, word)
        if (
            word in ("noholdlock", "shared")
            and self._ends_operand(at - 1)
            and not self._is_word(at - 1, "as")
        ):
            return at + 1, ""
        return self._name(at)

    def _symbol(self, at: int, token: Token) -> tuple[int, str]:
        if token.value in _SYMBOLS:
            return at + 1, _SYMBOLS[token.value]
        if token.value not in _PLAIN_SYMBOLS:
            raise syntax(token.value, token.line)
        if token.value == "(" and (hints := self._hints(at)) is not None:
            return hints, ""
        if token.value == "(":
            self.clauses.append(0)
        elif token.value == ")":
            self.clauses.pop()
        return at + 1, token.value

    def _hints(self, at: int) -> int | None:
        """Behind table hints without WITH: `t (nolock)`, `t (index i)`."""
        if not self._ends_operand(at - 1) or at + 1 >= len(self.tokens):
            return None
        inner = self.tokens[at + 1]
        if inner.is_word(
            "holdlock", "updlock", "tablock", "tablockx", "xlock", "readpast", "serializable"
        ) and (self._is(at + 2, ")")):
            raise refused(inner.value, "it changes what is locked", inner.line)
        harmless = inner.is_word(*_HARMLESS_HINTS) and self._is(at + 2, ")")
        if harmless or (inner.is_word("index") and self.closes.get(at) is not None):
            return self.closes[at] + 1
        return None

    def _keyword(self, at: int, word: str) -> tuple[int, str]:
        token = self.tokens[at]
        if word == "with" and self._is(at + 1, "("):
            return self._table_hints(at), ""
        self._check_order(token, word)
        if word == "is" and (self._is_word(at + 1, "distinct") or self._is_word(at + 2, "distinct")):
            raise refused("is distinct from", "compare, and ask for is null", token.line)
        if word == "group" and self._is_word(at + 2, "all"):
            raise refused("group by all", "it gives groups without rows", token.line)
        if word in ("distinct", "all") and not (
            self._is_word(at - 1, "select", "union") or self._is(at - 1, "(") or self._is(at + 1, "(")
        ):
            raise keyword_syntax(token.value, token.line)
        if word == "select":
            following = at + 1
            distinct = self._is_word(following, "distinct", "all")
            if self._is_word(following + distinct, "top"):
                self._top(following + distinct)
        return at + 1, word.upper()

    def _check_order(self, token: Token, word: str) -> None:
        """sqlglot takes the clauses of a select in any order."""
        if word in ("select", "union", "except", "intersect"):
            self.clauses[-1] = 0
        elif word in _CLAUSES:
            if self.clauses[-1] >= _CLAUSES[word]:
                raise keyword_syntax(token.value, token.line)
            self.clauses[-1] = _CLAUSES[word]

    def _reserved(self, at: int, word: str) -> tuple[int, str]:
        token = self.tokens[at]
        if word in NILADIC or word == "current_timestamp":
            name = NILADIC.get(word, "getdate")
            return at + 1, f"{self._mark('f', at, Function(Name((name,), token.line)))}()"
        if word == "escape":
            return self._escape(at)
        if word == "into" and self.into is None:
            return self._into(at), ""
        if word == "collate" and self._is_word(at + 1, "database_default"):
            # which it has in any case
            return at + 2, ""
        if word in _WHY_REFUSED:
            raise refused(word, _WHY_REFUSED[word], token.line)
        if word == "values":
            raise refused("values", "select … union all does the same", token.line)
        raise keyword_syntax(token.value, token.line)

    def _escape(self, at: int) -> tuple[int, str]:
        """sqlglot wants a text behind ESCAPE: it has the number of the token."""
        character = self._peek(at + 1)
        if character is None or character.kind not in (Kind.TEXT, Kind.VARIABLE):
            raise keyword_syntax("escape", self.tokens[at].line)
        self.leaves[f"e{at + 1}"] = character
        return at + 2, f"ESCAPE '{at + 1}'"

    def _into(self, at: int) -> int:
        if any(
            token.is_symbol("(") and self.closes.get(i, 0) > at for i, token in enumerate(self.tokens[:at])
        ):
            raise keyword_syntax("into", self.tokens[at].line)
        cursor = Cursor(self.tokens)
        cursor.at = at + 1
        self.into = cursor.object_name()
        return cursor.at

    def _table_hints(self, at: int) -> int:
        end = self.closes.get(at + 1)
        if end is None:
            raise keyword_syntax("with", self.tokens[at].line)
        # nobody locks the catalogue
        of_system = any(
            token.value.lower() in ("sys", "information_schema") for token in self.tokens[at - 5 : at]
        )
        for token in self.tokens[at + 2 : end]:
            if of_system and token.is_word("readpast"):
                continue
            if not token.is_symbol(",") and not token.is_word(*_HARMLESS_HINTS):
                raise refused(f"with ({token.shown})", "it changes what is locked or read", token.line)
        return end + 1

    def _top(self, at: int) -> None:
        """`top n`, `top (n)`, with PERCENT and WITH TIES."""
        token = self.tokens[at]
        if self._is(at + 1, "("):
            end = self.closes.get(at + 1)
            if end is None:
                raise syntax("(", token.line)
            inner = tuple(self.tokens[at + 2 : end])
            following = end + 1
        else:
            inner = tuple(self.tokens[at + 1 : at + 2])
            following = at + 2
            if not inner or inner[0].kind not in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.VARIABLE):
                raise keyword_syntax("top", token.line)
        if not inner:
            raise keyword_syntax("top", token.line)
        percent = self._is_word(following, "percent")
        following += percent
        ties = self._is_word(following, "with") and self._is_word(following + 1, "ties")
        following += 2 * ties
        mark = self._mark("v", at, Top(inner, percent, ties, token.line))
        self.replaced[at] = (following, f"TOP ({mark}())")

    def _conversion(self, at: int, word: str) -> tuple[int, str]:
        """`cast (x as type)` and `convert (type, x, style)` as functions whose type is a value."""
        token = self.tokens[at]
        end = self.closes.get(at + 1)
        if end is None:
            raise syntax("(", token.line)
        mark = self._mark("f", at, Function(Name((word,), token.line)))
        cursor = Cursor(self.tokens[:end])
        if word.endswith("cast"):
            place = self.last_as.get(at + 1)
            if place is None:
                raise syntax(token.value, token.line)
            cursor.at = place + 1
            type_ = cursor.type(default_length=30)
            if not cursor.at_end:
                raise cursor.wrong()
            self.replaced[place] = (place + 1, ",")
            self.replaced[place + 1] = (end, f"{self._mark('v', place + 1, type_)}()")
        else:
            cursor.at = at + 2
            type_ = cursor.type(default_length=30)
            # ASE: convert (int null, x)
            cursor.words("not", "null")
            cursor.word("null")
            self.replaced[at + 2] = (cursor.at, f"{self._mark('v', at + 2, type_)}()")
        return at + 1, mark

    def _name(self, at: int) -> tuple[int, str]:
        """Names joined by points, a function's or not."""
        token = self.tokens[at]
        parts = [token.value]
        following = at + 1
        star = False
        while self._is(following, "."):
            after = self._peek(following + 1)
            if after is not None and after.is_name:
                parts.append(after.value)
                following += 2
            elif after is not None and after.is_symbol("."):
                parts.append("")
                following += 1
            elif after is not None and after.is_symbol("*"):
                star = True
                following += 2
                break
            else:
                raise syntax(".", token.line)
        if len(parts) > 4:
            raise TsqlError(
                4104, f"The multi-part identifier '{'.'.join(parts)}' is not known.", token.line, 16
            )
        name = Name(tuple(parts), token.line, star)
        if not star and self._is(following, "(") and self._calls(at, following):
            return following, self._mark("f", at, Function(name))
        mark = self._mark("n", at, name)
        return following, f"{mark}.*" if star else mark

    def _calls(self, at: int, parenthesis: int) -> bool:
        """Whether a name before a parenthesis is a function: no alias, and no CTE with columns."""
        if self._is(at - 1, ")") or self._is_word(at - 1, "as", "with"):
            return False
        close = self.closes.get(parenthesis, len(self.tokens))
        if self._is_word(close + 1, "as") and self._is(close + 2, "("):
            return False
        return self._hints(parenthesis) is None or not self._ends_operand(at)

    def _names_column(self, at: int) -> bool:
        """Whether the text at `at` is the name of a result column: a 'x', a as 'x', 'x' = a."""
        if self._is_word(at - 1, "as") or (at > 0 and self._ends_operand(at - 1)):
            return True
        if not self._is(at + 1, "="):
            return False
        return self._is_word(at - 1, "select", "distinct", "all") or self._is(at - 1, ",")

    def _ends_operand(self, at: int) -> bool:
        token = self._peek(at)
        if token is None:
            return False
        if token.kind is Kind.SYMBOL:
            return token.value == ")"
        if token.kind is Kind.WORD:
            return token.value.lower() not in _NO_OPERANDS
        return True

    def _refuse_gap(self, at: int, text: str) -> None:
        """sqlglot passes over missing items of a list, missing names and missing parentheses."""
        before = self.lines[-1] if self.lines else ""
        token = self.tokens[at]
        if before in ("SELECT", "DISTINCT", "ALL", ",") or before.startswith("TOP "):
            begins = text in _ITEMS_BEGIN or text.startswith("TOP ") or not text.isupper()
            wrong = text in (",", ")") or not (begins or (before == "ALL" and text == "SELECT"))
        elif before == "AS":
            wrong = text != "(" and not text.startswith("n")
        elif before == "OVER":
            wrong = text != "("
        else:
            wrong = before == "(" and text == ","
        if wrong:
            raise (
                keyword_syntax(token.value, token.line) if text.isupper() else syntax(token.shown, token.line)
            )

    def _parse(self) -> exp.Expr:
        last = self.lines[-1] if self.lines else ""
        end = self.tokens[-1]
        if last in (",", "SELECT", "DISTINCT", "WHERE", "AND", "OR", "NOT", "BY", "ON", "AS", "OVER"):
            raise syntax(end.shown, end.line)
        dialect = _Skeletons()
        text = "\n".join(self.lines)
        try:
            trees = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(dialect.tokenize(text), text)
        except ParseError as error:
            raise self._wrong(error) from None
        if len(trees) != 1 or trees[0] is None:
            raise syntax(end.shown, end.line)
        self._check_written(text, trees[0].sql(dialect=dialect, unsupported_level=ErrorLevel.IGNORE))
        return trees[0]

    def _check_written(self, read: str, written: str) -> None:
        """What sqlglot has read, it writes with the same words: it has passed over none, and added none."""
        before, behind = _words_of(read), _words_of(written)
        for word in (before - behind) + (behind - before):
            if not word[1:].isdigit():
                place = next((at for at, line in enumerate(self.lines) if line == word), len(self.lines) - 1)
                raise self._wrong_at(place)

    def _wrong_at(self, place: int) -> TsqlError:
        token = self.tokens[self.origins[place]]
        if token.kind is Kind.WORD and token.value.lower() in RESERVED:
            return keyword_syntax(token.value, token.line)
        return syntax(token.shown, token.line)

    def _wrong(self, error: ParseError) -> TsqlError:
        line = error.errors[0].get("line") if error.errors else None
        return self._wrong_at(min((line or len(self.origins)) - 1, len(self.origins) - 1))


def _words_of(text: str) -> Counter[str]:
    """How often each word and operator stands in a text, but for those that may be left out or put in."""
    found = Counter(_WORD.findall(text.upper()))
    for word in _OPTIONAL:
        found.pop(word, None)
    return found


_WORD = re.compile(r"[A-Z]\w*|<>|<=|>=|\|\||[^\s\w]")
_OPTIONAL = ("ALL", "ANY", "AS", "ASC", "INNER", "OUTER", "SOME", "(", ")", "=", "+", "||", "'")


def _parentheses(tokens: Tokens) -> tuple[dict[int, int], dict[int, int]]:
    """For each opening parenthesis the closing one, and the last AS on the level between them."""
    closes: dict[int, int] = {}
    last_as: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.is_symbol("("):
            opened.append(at)
        elif token.is_symbol(")"):
            if not opened:
                raise syntax(")", token.line)
            closes[opened.pop()] = at
        elif opened and token.is_word("as"):
            last_as[opened[-1]] = at
    if opened:
        raise syntax(tokens[-1].shown, tokens[-1].line)
    return closes, last_as
