"""The statements of cursors: those that go forward, row by row."""

from ringlog.gateway.tsql.cursor import Cursor
from ringlog.gateway.tsql.errors import refused
from ringlog.gateway.tsql.extent import end_of_query
from ringlog.gateway.tsql.statements import (
    CloseCursor,
    DeallocateCursor,
    DeclareCursor,
    FetchCursor,
    OpenCursor,
    Query,
)
from ringlog.gateway.tsql.tokens import Tokens

_OPTIONS = (
    "dynamic",
    "fast_forward",
    "forward_only",
    "global",
    "insensitive",
    "keyset",
    "local",
    "optimistic",
    "read_only",
    "scroll",
    "scroll_locks",
    "static",
    "type_warning",
)


def is_declaration(cursor: Cursor) -> bool:
    """Whether `name [options] cursor` comes next."""
    token = cursor.peek()
    if token is None or not token.is_name:
        return False
    ahead = 1
    while cursor.next_is("insensitive", "scroll", "semi_sensitive", "no", ahead=ahead):
        ahead += 1
    return cursor.next_is("cursor", ahead=ahead)


def declare(cursor: Cursor, line: int) -> DeclareCursor:
    """What follows DECLARE."""
    name = cursor.name()
    while cursor.word(*_OPTIONS):
        pass
    cursor.expect_word("cursor")
    while cursor.word(*_OPTIONS):
        pass
    cursor.expect_word("for")
    if not cursor.next_is("select", "with"):
        raise refused(f"declare {name} cursor for", "a cursor reads a select", cursor.line)
    start = cursor.at
    end, kind = end_of_query(cursor.tokens, start)
    cursor.at = end
    tokens = _without_purpose(cursor.tokens[start:end])
    return DeclareCursor(line, name.lower(), Query(tokens[0].line, kind, tuple(tokens)))


def _without_purpose(tokens: Tokens) -> Tokens:
    """The select without FOR READ ONLY or FOR UPDATE."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if (
            depth == 0
            and token.is_word("for")
            and at + 1 < len(tokens)
            and tokens[at + 1].is_word("read", "update")
        ):
            return tokens[:at]
    return tokens


def open_(cursor: Cursor, line: int) -> OpenCursor:
    """What follows OPEN."""
    return OpenCursor(line, _name(cursor))


def fetch(cursor: Cursor, line: int) -> FetchCursor:
    """What follows FETCH."""
    if cursor.next_is("prior", "first", "last", "absolute", "relative"):
        raise refused(f"fetch {cursor.advance().value}", "cursors go forward", line)
    if cursor.word("next"):
        cursor.expect_word("from")
    else:
        cursor.word("from")
    name = _name(cursor)
    if not cursor.word("into"):
        raise refused("fetch without into", "read rows for the client with a select", line)
    into = [cursor.variable()]
    while cursor.symbol(","):
        into.append(cursor.variable())
    return FetchCursor(line, name, tuple(into))


def close(cursor: Cursor, line: int) -> CloseCursor:
    """What follows CLOSE."""
    return CloseCursor(line, _name(cursor))


def deallocate(cursor: Cursor, line: int) -> DeallocateCursor:
    """What follows DEALLOCATE."""
    cursor.word("cursor")
    return DeallocateCursor(line, _name(cursor))


def _name(cursor: Cursor) -> str:
    cursor.word("global")
    if (token := cursor.peek()) is not None and token.value.startswith("@"):
        raise refused(token.value, "a cursor is named without a variable", token.line)
    return cursor.name().lower()
