"""A place in the tokens of a text, and what can be read from there on."""

from ringlog.gateway.tsql import types
from ringlog.gateway.tsql.errors import TsqlError, keyword_syntax, syntax
from ringlog.gateway.tsql.keywords import RESERVED
from ringlog.gateway.tsql.statements import ObjectName
from ringlog.gateway.tsql.tokens import Kind, Token, Tokens


class Cursor:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def line(self) -> int:
        """Where the next token stands; at the end, where the last one did."""
        if not self.tokens:
            return 1
        return self.tokens[min(self.at, len(self.tokens) - 1)].line

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.tokens)

    def peek(self, ahead: int = 0) -> Token | None:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else None

    def next_is(self, *words: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token is not None and token.is_word(*words)

    def next_is_symbol(self, *symbols: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token is not None and token.is_symbol(*symbols)

    def advance(self) -> Token:
        token = self.peek()
        if token is None:
            raise self.wrong()
        self.at += 1
        return token

    def word(self, *words: str) -> bool:
        """Takes the next token if it is one of these words."""
        if self.next_is(*words):
            self.at += 1
            return True
        return False

    def words(self, *sequence: str) -> bool:
        """Takes the next tokens if they are these words one after another."""
        if all(self.next_is(word, ahead=ahead) for ahead, word in enumerate(sequence)):
            self.at += len(sequence)
            return True
        return False

    def symbol(self, *symbols: str) -> bool:
        if self.next_is_symbol(*symbols):
            self.at += 1
            return True
        return False

    def expect_word(self, *words: str) -> Token:
        token = self.peek()
        if token is None or not token.is_word(*words):
            raise self.wrong()
        return self.advance()

    def expect_symbol(self, symbol: str) -> Token:
        if not self.next_is_symbol(symbol):
            raise self.wrong()
        return self.advance()

    def wrong(self) -> TsqlError:
        """102 or 156 at the next token."""
        token = self.peek()
        if token is None:
            last = self.tokens[-1] if self.tokens else None
            return syntax(last.shown if last else "", last.line if last else 1)
        if token.kind is Kind.WORD and token.value.lower() in RESERVED:
            return keyword_syntax(token.value, token.line)
        return syntax(token.shown, token.line)

    def name(self) -> str:
        """An identifier, which is no keyword unless it stands in brackets."""
        token = self.peek()
        if token is None or not token.is_name or self._is_reserved(token):
            raise self.wrong()
        self.at += 1
        return token.value

    def variable(self) -> str:
        token = self.peek()
        if token is None or token.kind is not Kind.VARIABLE or token.value == "@":
            raise self.wrong()
        self.at += 1
        return token.value

    def object_name(self) -> ObjectName:
        """`name`, `owner.name`, `database.owner.name`, `database..name`."""
        line = self.line
        parts = [self.name()]
        while self.symbol("."):
            parts.append("" if self.next_is_symbol(".") else self._part())
        if len(parts) > 3:
            raise TsqlError(
                7202, f"Could not find server '{parts[0]}': ringlog has no other servers.", line, severity=11
            )
        database, owner, name = ["", "", *parts][-3:]
        return ObjectName(name, owner, database, line)

    def _part(self) -> str:
        # after a point any word is a name
        token = self.peek()
        if token is None or not token.is_name:
            raise self.wrong()
        self.at += 1
        return token.value

    def names_in_parentheses(self) -> tuple[str, ...]:
        self.expect_symbol("(")
        names = [self.name()]
        while self.symbol(","):
            names.append(self.name())
        self.expect_symbol(")")
        return tuple(names)

    def integer(self) -> int:
        negative = self.symbol("-")
        token = self.peek()
        if token is None or token.kind is not Kind.INTEGER or len(token.value) > 30:
            raise self.wrong()
        self.at += 1
        return -int(token.value) if negative else int(token.value)

    def type(self, default_length: int = 1) -> types.Type:
        """A type with its length, as `varchar(10)`, `decimal(10, 2)`, `sys.int`, `char varying(3)`."""
        line = self.line
        name = self._part().lower()
        if self.symbol("."):
            name = self._part().lower()
        if name == "national":
            name = f"n{self._part().lower()}"
        elif name == "unsigned":
            name = f"u{self._part().lower()}"
        if name == "double":
            self.word("precision")
            name = "double precision"
        elif name in ("char", "character", "nchar", "ncharacter", "binary"):
            name = name.replace("ncharacter", "nchar")
            if self.word("varying"):
                name += " varying"
        arguments: list[int | None] = []
        if self.symbol("("):
            arguments.append(None if self.word("max") else self.integer())
            if self.symbol(","):
                arguments.append(self.integer())
            self.expect_symbol(")")
        return types.named(name, arguments, line, default_length)

    @staticmethod
    def _is_reserved(token: Token) -> bool:
        return token.kind is Kind.WORD and token.value.lower() in RESERVED
