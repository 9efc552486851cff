"""Variables that are tables: temporary tables, made before a batch runs and dropped behind it.

`declare @t table (…)` becomes a table named #@t, which is nobody's name. Unlike a temporary table a variable
belongs to its batch, and what stands in it survives a rollback: a batch that undoes something is refused.
"""

from dataclasses import replace

from ringlog.gateway.tsql.cursor import Cursor
from ringlog.gateway.tsql.errors import refused
from ringlog.gateway.tsql.tokens import Kind, Token

PREFIX = "#"


def taken_out(tokens: list[Token]) -> tuple[list[Token], list[list[Token]]]:
    """The tokens without the declarations of table variables, these named as tables; and for each the tokens
    of the statement that makes it."""
    if tokens and tokens[0].is_word("create", "alter"):
        # a procedure: the declaration belongs to its body
        return tokens, []
    kept: list[Token] = []
    made: list[list[Token]] = []
    names: set[str] = set()
    cursor = Cursor(tokens)
    while not cursor.at_end:
        if not _declares(cursor):
            kept.append(cursor.advance())
            continue
        declare = cursor.advance()
        variable = cursor.advance()
        cursor.word("as")
        names.add(variable.value)
        made.append([replace(declare, value="create"), cursor.advance(), variable, *_parentheses(cursor)])
        if cursor.next_is_symbol(","):
            raise refused(f"declare {variable.value} table, …", "declare each by itself", variable.line)
    for token in kept if made else ():
        if token.is_word("rollback"):
            raise refused(
                "rollback with a table variable", "it would undo what stands in the variable", token.line
            )

    def as_table(token: Token) -> Token:
        if token.kind is Kind.VARIABLE and token.value in names:
            return replace(token, kind=Kind.NAME, value=PREFIX + token.value)
        return token

    return [as_table(token) for token in kept], [[as_table(token) for token in table] for table in made]


def _declares(cursor: Cursor) -> bool:
    variable = cursor.peek(1)
    if not cursor.next_is("declare") or variable is None or variable.kind is not Kind.VARIABLE:
        return False
    return cursor.next_is("table", ahead=3 if cursor.next_is("as", ahead=2) else 2)


def _parentheses(cursor: Cursor) -> list[Token]:
    """The columns, with the parentheses around them."""
    taken = [cursor.expect_symbol("(")]
    depth = 1
    while depth:
        token = cursor.advance()
        depth += token.is_symbol("(") - token.is_symbol(")")
        taken.append(token)
    return taken
