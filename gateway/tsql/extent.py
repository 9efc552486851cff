"""Where an expression or a query ends: T-SQL needs no mark between two statements."""

from ringlog.gateway.tsql.errors import TsqlError, syntax
from ringlog.gateway.tsql.keywords import BEFORE_OPERANDS, STATEMENTS, STATEMENTS_OR_NAMES
from ringlog.gateway.tsql.tokens import Kind, Token, Tokens


def end_of_expression(tokens: Tokens, start: int) -> int:
    """The index after the expression that begins at `start`: before a comma, a closing parenthesis or a
    semicolon on its own level, or before the statement that follows."""
    depth = cases = 0
    for at in range(start, len(tokens)):
        token = tokens[at]
        if token.kind is Kind.SYMBOL:
            if token.value == "(":
                depth += 1
            elif token.value == ")":
                if depth == 0:
                    return at
                depth -= 1
            elif depth == 0 and token.value in (";", ","):
                return at
            continue
        if depth or token.kind is not Kind.WORD:
            if not depth and at > start and _two_operands(tokens[at - 1], token):
                return at
            continue
        word = token.value.lower()
        if word == "case":
            cases += 1
        elif word == "end" and cases:
            cases -= 1
        elif (
            (word in ("else", "end") and not cases)
            or (word in ("output", "out") and not cases)
            or _begins_statement(tokens[at - 1] if at > start else None, token)
        ):
            return at
    return len(tokens)


def _two_operands(before: Token, token: Token) -> bool:
    """Whether an operand stands behind an operand, where no expression goes on."""
    operands = (Kind.VARIABLE, Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.MONEY, Kind.BINARY, Kind.TEXT)
    return token.kind in operands and before.kind in operands


def _begins_statement(before: Token | None, token: Token) -> bool:
    word = token.value.lower()
    if word in STATEMENTS:
        return True
    if word not in STATEMENTS_OR_NAMES:
        return False
    return before is not None and not _operand_follows(before)


def _operand_follows(before: Token) -> bool:
    if before.kind is Kind.SYMBOL:
        return before.value != ")"
    return before.kind is Kind.WORD and before.value.lower() in BEFORE_OPERANDS


def end_of_query(tokens: Tokens, start: int) -> tuple[int, str]:
    """The index after the query that begins at `start`, and its kind: select, insert, update or delete."""
    reader = _QueryExtent(tokens, start)
    return reader.end(), reader.kind


class _QueryExtent:
    def __init__(self, tokens: Tokens, start: int) -> None:
        self.tokens = tokens
        self.start = start
        self.kind = ""

    def end(self) -> int:
        """Walks over the tokens on the query's own level up to one that cannot belong to it."""
        tokens = self.tokens
        depth = cases = 0
        select_may_follow = set_may_follow = False
        for at in range(self.start, len(tokens)):
            token = tokens[at]
            before = tokens[at - 1] if at > self.start else None
            if token.kind is Kind.SYMBOL:
                if token.value == "(":
                    depth += 1
                elif token.value == ")":
                    if depth == 0:
                        return at
                    depth -= 1
                elif token.value == ";" and depth == 0:
                    return at
                continue
            if depth or token.kind is not Kind.WORD:
                continue
            word = token.value.lower()
            if word == "case":
                cases += 1
            elif word == "end" and cases:
                cases -= 1
            elif word in ("else", "end"):
                if not cases:
                    return at
            elif word in ("union", "except", "intersect"):
                select_may_follow = True
            elif word == "with":
                if at == self.start:
                    select_may_follow = True
                elif at + 1 == len(tokens) or not (
                    tokens[at + 1].is_symbol("(") or tokens[at + 1].is_word("ties")
                ):
                    return at
            elif word in ("select", "insert", "update", "delete", "values"):
                if self.kind and word == "values":
                    # insert … values
                    select_may_follow = False
                elif not self.kind:
                    self.kind = "select" if word == "values" else word
                    select_may_follow = word == "insert"
                    set_may_follow = word == "update"
                elif word == "update" and before is not None and before.is_word("for"):
                    pass
                elif word == "select" and select_may_follow:
                    select_may_follow = False
                else:
                    return at
            elif word == "set" and set_may_follow:
                set_may_follow = False
            elif before is not None and _begins_statement(before, token):
                return at
        if not self.kind:
            raise TsqlError(156, "Incorrect syntax near the keyword 'with'.", tokens[self.start].line)
        return len(tokens)


def unbalanced(tokens: Tokens) -> None:
    """Raises TsqlError at a parenthesis without its other half."""
    opened: list[Token] = []
    for token in tokens:
        if token.is_symbol("("):
            opened.append(token)
        elif token.is_symbol(")"):
            if not opened:
                raise syntax(")", token.line)
            opened.pop()
    if opened:
        raise syntax(tokens[-1].shown, tokens[-1].line)
