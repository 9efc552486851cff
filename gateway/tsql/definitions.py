"""Statements that define: tables, indexes, views, procedures, rights."""

from ringlog.gateway.tsql.cursor import Cursor
from ringlog.gateway.tsql.errors import refused
from ringlog.gateway.tsql.extent import end_of_expression, end_of_query
from ringlog.gateway.tsql.statements import (
    AlterTable,
    ColumnDefinition,
    CreateIndex,
    CreateProcedure,
    CreateTable,
    CreateView,
    DropIndex,
    DropProcedure,
    DropTable,
    DropView,
    Expression,
    Grant,
    ObjectName,
    Parameter,
    Query,
    Statement,
    TableConstraint,
    Truncate,
)
from ringlog.gateway.tsql.tokens import Kind

__all__ = ["CreateProcedure", "alter", "create", "drop", "grant", "procedure_head", "revoke", "truncate"]


def create(cursor: Cursor, line: int) -> Statement:
    """What follows CREATE, and is no procedure."""
    if cursor.word("table"):
        return _create_table(cursor, line)
    if cursor.word("view"):
        return _create_view(cursor, line)
    unique = cursor.word("unique")
    kind = cursor.word("clustered", "nonclustered")
    if cursor.word("index"):
        return _create_index(cursor, line, unique)
    if unique or kind:
        raise cursor.wrong()
    token = cursor.advance()
    raise refused(f"create {token.shown}", "tables, indexes, views and procedures can be created", line)


def _create_table(cursor: Cursor, line: int) -> CreateTable:
    table = cursor.object_name()
    if table.name.startswith("##"):
        raise refused(table.name, "temporary tables are the session's own (#name)", line)
    cursor.expect_symbol("(")
    columns: list[ColumnDefinition] = []
    constraints: list[TableConstraint] = []
    while True:
        if cursor.next_is("constraint", "primary", "unique", "check", "foreign"):
            constraints.append(_table_constraint(cursor))
        else:
            columns.append(column_definition(cursor))
        if not cursor.symbol(",") or cursor.next_is_symbol(")"):
            break
    cursor.expect_symbol(")")
    if cursor.word("on"):
        cursor.name()
    if cursor.word("lock"):
        # ASE: what is locked is PostgreSQL's rows in every case
        cursor.expect_word("datarows", "datapages", "allpages")
    if not columns:
        raise cursor.wrong()
    return CreateTable(line, table, tuple(columns), tuple(constraints))


def column_definition(cursor: Cursor) -> ColumnDefinition:
    line = cursor.line
    name = cursor.name()
    if cursor.next_is("as"):
        raise refused(f"{name} as …", "a table has no computed columns", line)
    type_ = cursor.type()
    null: bool | None = None
    identity: tuple[int, int] | None = None
    default: Expression | None = None
    primary_key = unique = False
    check: Expression | None = None
    while True:
        if cursor.words("not", "null"):
            null = False
        elif cursor.word("null"):
            null = True
        elif cursor.word("identity"):
            identity = (1, 1)
            if cursor.symbol("("):
                seed = cursor.integer()
                cursor.expect_symbol(",")
                identity = (seed, cursor.integer())
                cursor.expect_symbol(")")
        elif cursor.word("default"):
            default = _default(cursor)
        elif cursor.words("primary", "key"):
            primary_key = True
            cursor.word("clustered", "nonclustered")
        elif cursor.word("unique"):
            unique = True
            cursor.word("clustered", "nonclustered")
        elif cursor.word("check"):
            check = _in_parentheses(cursor)
        elif cursor.word("constraint"):
            # the name of a column's constraint is nobody's to use here
            cursor.name()
        elif cursor.word("collate"):
            raise refused("collate", "texts are compared as the database has it", cursor.line)
        elif cursor.next_is("references", "foreign"):
            raise refused("references", "temporary and site tables stand for themselves", cursor.line)
        else:
            break
    return ColumnDefinition(name, type_, null, identity, default, primary_key, unique, check, line)


_BEHIND_DEFAULT = (
    *("check", "collate", "constraint", "default", "foreign", "identity", "not", "null", "on", "primary"),
    *("references", "unique", "with"),
)


def _default(cursor: Cursor) -> Expression:
    """The value of a DEFAULT: up to what else is said of the column."""
    start = cursor.at
    depth = 0
    while (token := cursor.peek()) is not None:
        ends = depth == 0 and (token.is_symbol(",", ")", ";") or token.is_word(*_BEHIND_DEFAULT))
        # the default may be NULL itself
        if ends and not (token.is_word("null") and cursor.at == start):
            break
        depth += token.is_symbol("(") - token.is_symbol(")")
        cursor.at += 1
    if cursor.at == start:
        raise cursor.wrong()
    return Expression(tuple(cursor.tokens[start : cursor.at]))


def _in_parentheses(cursor: Cursor) -> Expression:
    start = cursor.at
    if not cursor.next_is_symbol("("):
        raise cursor.wrong()
    _skip_parentheses(cursor)
    return Expression(tuple(cursor.tokens[start : cursor.at]))


def _skip_parentheses(cursor: Cursor) -> None:
    depth = 0
    while True:
        token = cursor.advance()
        depth += token.is_symbol("(") - token.is_symbol(")")
        if not depth:
            return


def _table_constraint(cursor: Cursor) -> TableConstraint:
    line = cursor.line
    name = cursor.name() if cursor.word("constraint") else None
    if cursor.words("primary", "key"):
        kind = "primary key"
    elif cursor.word("unique"):
        kind = "unique"
    elif cursor.word("check"):
        return TableConstraint(name, "check", (), _in_parentheses(cursor), line)
    else:
        raise refused("foreign key", "temporary and site tables stand for themselves", line)
    cursor.word("clustered", "nonclustered")
    cursor.expect_symbol("(")
    columns = []
    while True:
        columns.append(cursor.name())
        cursor.word("asc", "desc")
        if not cursor.symbol(","):
            break
    cursor.expect_symbol(")")
    return TableConstraint(name, kind, tuple(columns), None, line)


def _create_index(cursor: Cursor, line: int, unique: bool) -> CreateIndex:
    name = cursor.name()
    cursor.expect_word("on")
    table = cursor.object_name()
    cursor.expect_symbol("(")
    columns = []
    while True:
        column = cursor.name()
        descending = cursor.word("desc")
        if not descending:
            cursor.word("asc")
        columns.append((column, descending))
        if not cursor.symbol(","):
            break
    cursor.expect_symbol(")")
    if cursor.next_is("include", "where", "with"):
        raise refused(f"create index … {cursor.advance().value}", "an index is made of columns", line)
    return CreateIndex(line, name, table, unique, tuple(columns))


def _create_view(cursor: Cursor, line: int) -> CreateView:
    view = cursor.object_name()
    columns = cursor.names_in_parentheses() if cursor.next_is_symbol("(") else ()
    cursor.expect_word("as")
    if not cursor.next_is("select", "with"):
        raise cursor.wrong()
    start = cursor.at
    end, kind = end_of_query(cursor.tokens, start)
    if kind != "select":
        raise cursor.wrong()
    cursor.at = end
    query = Query(cursor.tokens[start].line, kind, tuple(cursor.tokens[start:end]))
    return CreateView(line, view, columns, query)


def alter(cursor: Cursor, line: int) -> Statement:
    """What follows ALTER, and is no procedure."""
    if not cursor.word("table"):
        token = cursor.advance()
        raise refused(f"alter {token.shown}", "tables and procedures can be altered", line)
    table = cursor.object_name()
    if not cursor.word("add"):
        raise refused(f"alter table … {cursor.advance().shown}", "columns can be added", line)
    if cursor.next_is("constraint", "primary", "unique", "check", "foreign"):
        raise refused("alter table … add constraint", "columns can be added", line)
    columns = [column_definition(cursor)]
    while cursor.symbol(","):
        columns.append(column_definition(cursor))
    return AlterTable(line, table, tuple(columns))


def drop(cursor: Cursor, line: int) -> Statement:
    """What follows DROP."""
    kind = cursor.advance()
    if kind.is_word("index"):
        return _drop_index(cursor, line)
    if not kind.is_word("table", "proc", "procedure", "view"):
        raise refused(f"drop {kind.shown}", "tables, indexes, views and procedures can be dropped", line)
    if_exists = cursor.words("if", "exists")
    names = [cursor.object_name()]
    while cursor.symbol(","):
        names.append(cursor.object_name())
    if kind.is_word("table"):
        return DropTable(line, tuple(names), if_exists)
    if kind.is_word("view"):
        return DropView(line, tuple(names), if_exists)
    return DropProcedure(line, tuple(names), if_exists)


def _drop_index(cursor: Cursor, line: int) -> DropIndex:
    """`drop index table.index` (Sybase) or `drop index index on table`."""
    first = cursor.object_name()
    if cursor.word("on"):
        return DropIndex(line, first.name, cursor.object_name())
    if not first.owner:
        raise cursor.wrong()
    return DropIndex(line, first.name, ObjectName(first.owner, "", first.database, line))


def truncate(cursor: Cursor, line: int) -> Truncate:
    """What follows TRUNCATE."""
    cursor.expect_word("table")
    return Truncate(line, cursor.object_name())


def grant(cursor: Cursor, line: int) -> Grant:
    """What follows GRANT."""
    return _rights(cursor, line, revoke=False)


def revoke(cursor: Cursor, line: int) -> Grant:
    """What follows REVOKE."""
    return _rights(cursor, line, revoke=True)


_RIGHTS = ("select", "insert", "update", "delete", "execute", "exec", "all")


def _rights(cursor: Cursor, line: int, revoke: bool) -> Grant:
    rights = []
    while True:
        right = cursor.advance()
        if not right.is_word(*_RIGHTS):
            raise refused(
                f"{'revoke' if revoke else 'grant'} {right.shown}",
                "rights are on tables and procedures",
                line,
            )
        rights.append("execute" if right.is_word("exec") else right.value.lower())
        if not cursor.symbol(","):
            break
    cursor.word("privileges")
    cursor.expect_word("on")
    if cursor.word("object"):
        cursor.expect_symbol(":")
        cursor.expect_symbol(":")
    object_ = cursor.object_name()
    cursor.expect_word("from" if revoke else "to")
    roles = [_role(cursor)]
    while cursor.symbol(","):
        roles.append(_role(cursor))
    if cursor.next_is("with", "cascade"):
        raise refused(
            f"grant … {cursor.advance().value}", "a right is granted by whoever owns the object", line
        )
    return Grant(line, revoke, tuple(rights), object_, tuple(roles))


def _role(cursor: Cursor) -> str:
    return "public" if cursor.word("public") else cursor.name()


def procedure_head(cursor: Cursor) -> tuple[ObjectName, tuple[Parameter, ...]]:
    """What stands between CREATE PROCEDURE and the body, whose AS is taken too."""
    line = cursor.line
    name = cursor.object_name()
    if cursor.next_is_symbol(";"):
        raise refused(f"{name};…", "procedures have no numbers", line)
    parameters: list[Parameter] = []
    enclosed = cursor.symbol("(")
    while (token := cursor.peek()) is not None and token.kind is Kind.VARIABLE:
        parameters.append(_parameter(cursor))
        if not cursor.symbol(","):
            break
    if enclosed:
        cursor.expect_symbol(")")
    while cursor.word("with"):
        option = cursor.advance()
        if not option.is_word("recompile"):
            raise refused(f"with {option.shown}", "a procedure runs as its caller, and shows its text", line)
    if cursor.next_is("for"):
        raise refused("for replication", "there is no replication of procedures", line)
    cursor.expect_word("as")
    return name, tuple(parameters)


def _parameter(cursor: Cursor) -> Parameter:
    line = cursor.line
    name = cursor.variable()
    cursor.word("as")
    type_ = cursor.type()
    if cursor.next_is("varying"):
        raise refused("cursor varying", "there are no cursors", line)
    null = cursor.words("null")
    del null
    default = None
    if cursor.symbol("="):
        start = cursor.at
        end = _end_of_default(cursor)
        default = Expression(tuple(cursor.tokens[start:end]))
    output = cursor.word("output", "out")
    if cursor.next_is("readonly"):
        raise refused("readonly", "a procedure takes no tables", line)
    return Parameter(name, type_, default, output, line)


def _end_of_default(cursor: Cursor) -> int:
    """The default of a parameter is a literal, NULL or a bare word."""
    end = end_of_expression(cursor.tokens, cursor.at)
    signed = cursor.symbol("-", "+")
    token = cursor.advance()
    if token.kind is Kind.SYMBOL or (signed and token.kind in (Kind.TEXT, Kind.WORD)) or cursor.at > end:
        cursor.at -= 1
        raise cursor.wrong()
    return cursor.at
