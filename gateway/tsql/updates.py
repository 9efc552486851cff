"""Inserts, updates and deletes."""

from typing import Any

from sqlglot import exp

from ringlog.gateway.tsql import selects
from ringlog.gateway.tsql.cursor import Cursor
from ringlog.gateway.tsql.errors import TsqlError, refused, syntax
from ringlog.gateway.tsql.grammar import Name, read_select
from ringlog.gateway.tsql.names import folded, identifier, literal, table
from ringlog.gateway.tsql.statements import ObjectName, Query
from ringlog.gateway.tsql.tokens import Kind, Token, Tokens
from ringlog.gateway.tsql.translation import Translation
from ringlog.gateway.tsql.values import Value, converted, unified


def update(translation: Translation, query: Query) -> str:
    """An insert, update or delete."""
    translation.kind = query.kind
    cursor = Cursor(query.tokens)
    ctes: tuple[Token, ...] = ()
    if cursor.next_is("with"):
        start = next(
            at for at, depth, token in _levels(query.tokens) if not depth and token.is_word(query.kind)
        )
        ctes = tuple(query.tokens[:start])
        if query.kind != "insert":
            raise refused(f"with … {query.kind}", "write the query in its place", query.line)
        cursor.at = start
    for _, depth, token in _levels(query.tokens):
        if depth == 0 and token.is_word("output"):
            raise refused("output", "select what is wanted", token.line)
    if query.kind == "insert":
        return _insert(translation, cursor, ctes)
    if query.kind == "update":
        return _update(translation, cursor)
    return _delete(translation, cursor)


def _levels(tokens: Tokens) -> "list[tuple[int, int, Token]]":
    """Each token with its place and the parentheses it stands in."""
    depth = 0
    found = []
    for at, token in enumerate(tokens):
        depth -= token.is_symbol(")")
        found.append((at, depth, token))
        depth += token.is_symbol("(")
    return found


def carried(value: Value) -> str:
    """A value on its way into a column, whose type PostgreSQL knows: converted to it as T-SQL converts."""
    return "null" if value.null else f"tsql.carry({value.sql})"


# --- insert ---


def _insert(translation: Translation, cursor: Cursor, ctes: tuple[Token, ...]) -> str:
    cursor.expect_word("insert")
    if cursor.next_is("top"):
        raise refused("insert top", "put the top into the select", cursor.line)
    cursor.word("into")
    target = cursor.object_name()
    if cursor.next_is("with"):
        raise refused("insert … with", "it changes what is locked", cursor.line)
    columns: tuple[str, ...] | None = None
    if cursor.next_is_symbol("(") and not cursor.next_is("select", "with", ahead=1):
        columns = cursor.names_in_parentheses()
    translation.into = table(target)
    if columns is None:
        # an identity column takes no value
        columns = translation.scope.tables.get(translation.into)
    head = f"insert into {translation.into}"
    if columns is not None:
        head += f" ({', '.join(identifier(column, target.line) for column in columns)})"
    if cursor.words("default", "values"):
        _expect_end(cursor)
        return f"{head} default values"
    if cursor.word("values"):
        return f"{head} values {_rows(translation, cursor, columns)}"
    rest = tuple(cursor.tokens[cursor.at :])
    if not rest:
        raise cursor.wrong()
    sql, items, tree = selects.source_query(translation, (*ctes, *rest))
    if columns is not None and None not in [item.name for item in items] and len(columns) != len(items):
        raise _mismatch(len(columns) < len(items), target.line)
    if any(item.name is None for item in items):
        return f"{head} {_starred(translation, sql, items, tree, target, columns)}"
    names = [f'"c{place}"' for place in range(1, len(items) + 1)]
    values = ", ".join(f"tsql.carry({name})" for name in names)
    return f'{head} select {values} from ({sql}) as "source" ({", ".join(names)})'


def _starred(
    translation: Translation,
    sql: str,
    items: list[selects.Item],
    tree: exp.Expr,
    target: ObjectName,
    columns: tuple[str, ...] | None,
) -> str:
    """`insert … select * from one table`, when its columns have the types of the target's."""
    sources = tree.args.get("from_")
    of = sources.this if sources is not None else None
    plain = isinstance(of, exp.Table) and isinstance(of.this, exp.Identifier)
    if len(items) != 1 or not plain or tree.args.get("joins") or not isinstance(tree, exp.Select):
        raise refused("insert … select *", "name the columns", target.line)
    assert of is not None
    source = table(translation.object_name(of.this))
    listed = "null" if columns is None else f"array[{', '.join(literal(c.lower()) for c in columns)}]"
    guard = f"tsql.same_columns({literal(table(target))}, {listed}, {literal(source)})"
    return f'select * from ({sql}) as "source" where {guard}'


def _mismatch(more_values: bool, line: int) -> TsqlError:
    fewer, more = ("columns", "values") if more_values else ("values", "columns")
    return TsqlError(
        109 if not more_values else 110,
        f"There are fewer {fewer} in the INSERT statement than {more} specified.",
        line,
    )


def _expect_end(cursor: Cursor) -> None:
    if not cursor.at_end:
        raise cursor.wrong()


def _rows(translation: Translation, cursor: Cursor, columns: tuple[str, ...] | None) -> str:
    rows: list[list[Value | None]] = []
    line = cursor.line
    while True:
        rows.append(_row(translation, cursor))
        if not cursor.symbol(","):
            break
    _expect_end(cursor)
    width = len(rows[0])
    for row in rows:
        if len(row) != width:
            raise TsqlError(
                10709,
                "The number of columns for each row in a table value constructor must be the same.",
                line,
                16,
            )
        if columns is not None and len(row) != len(columns):
            raise _mismatch(len(columns) < len(row), line)
    if len(rows) > 1:
        rows = _unified_columns(translation, rows, line)
    return ", ".join(f"({', '.join('default' if v is None else carried(v) for v in row)})" for row in rows)


def _row(translation: Translation, cursor: Cursor) -> list[Value | None]:
    """The values of a row; None stands for DEFAULT."""
    cursor.expect_symbol("(")
    values: list[Value | None] = []
    while True:
        if cursor.word("default"):
            values.append(None)
        else:
            values.append(_value(translation, _operand(cursor)))
        if not cursor.symbol(","):
            break
    cursor.expect_symbol(")")
    return values


def _operand(cursor: Cursor) -> Tokens:
    """The tokens up to a comma or the parenthesis that closes."""
    start = cursor.at
    depth = 0
    while True:
        token = cursor.peek()
        if token is None:
            raise cursor.wrong()
        if depth == 0 and token.is_symbol(",", ")"):
            break
        depth += token.is_symbol("(") - token.is_symbol(")")
        cursor.at += 1
    if cursor.at == start:
        raise cursor.wrong()
    return cursor.tokens[start : cursor.at]


def _value(translation: Translation, tokens: Tokens) -> Value:
    return translation._within(tokens, translation.value)


def _unified_columns(
    translation: Translation, rows: list[list[Value | None]], line: int
) -> list[list[Value | None]]:
    """The values of one column in all rows have one type."""
    unified_rows: list[list[Value | None]] = [[] for _ in rows]
    for column in zip(*rows, strict=True):
        given = [value for value in column if value is not None and not value.null]
        of = unified([value.type for value in given])
        for row, value in zip(unified_rows, column, strict=True):
            if value is not None and not value.null and of is not None and value.type != of:
                value = converted(value, of, line, sybase=translation.scope.sybase)
            row.append(value)
    return unified_rows


# --- update and delete ---


def _update(translation: Translation, cursor: Cursor) -> str:
    cursor.expect_word("update")
    if cursor.next_is("top"):
        raise refused("update top", "choose the rows by where", cursor.line)
    target = cursor.object_name()
    _skip_hints(cursor)
    cursor.expect_word("set")
    levels = _levels(cursor.tokens)
    end = next(
        (
            at
            for at, depth, token in levels[cursor.at :]
            if not depth and token.is_word("from", "where", "option")
        ),
        len(cursor.tokens),
    )
    columns: list[str] = []
    expressions: list[tuple[Token, ...] | None] = []
    while cursor.at < end:
        column, expression = _assignment(cursor, end, target)
        columns.append(column)
        expressions.append(expression)
        if not cursor.symbol(","):
            break
        if cursor.at == end:
            raise cursor.wrong()
    if cursor.at != end or not columns:
        raise cursor.wrong()
    if len(set(columns)) != len(columns):
        raise TsqlError(264, "A column name is specified more than once in the SET clause.", target.line, 16)
    given = [expression for expression in expressions if expression is not None]
    changed = _Changed(translation, target, given, tuple(cursor.tokens[end:]))
    values = iter(changed.values)
    assignments = ", ".join(
        f"{column} = {'default' if expression is None else carried(next(values))}"
        for column, expression in zip(columns, expressions, strict=True)
    )
    sql = f"update {changed.target} set {assignments}"
    if changed.sources:
        sql += f" from {changed.sources}"
    return sql + changed.where


def _assignment(cursor: Cursor, end: int, target: ObjectName) -> tuple[str, tuple[Token, ...] | None]:
    token = cursor.peek()
    if token is not None and token.kind is Kind.VARIABLE:
        raise refused(f"update … set {token.value} =", "select the value first", token.line)
    name = cursor.object_name()
    operator = cursor.advance()
    if not operator.is_symbol("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="):
        raise syntax(operator.shown, operator.line)
    column = identifier(name.name, name.line)
    if operator.value == "=" and cursor.word("default"):
        return column, None
    start = cursor.at
    depth = 0
    while cursor.at < end:
        token = cursor.tokens[cursor.at]
        if depth == 0 and token.is_symbol(","):
            break
        depth += token.is_symbol("(") - token.is_symbol(")")
        cursor.at += 1
    expression = tuple(cursor.tokens[start : cursor.at])
    if not expression:
        raise cursor.wrong()
    if operator.value != "=":

        def mark(symbol: str) -> Token:
            return Token(Kind.SYMBOL, symbol, operator.line, operator.start, operator.end)

        before = Token(Kind.NAME, name.name, name.line, operator.start, operator.start)
        expression = (before, mark(operator.value[0]), mark("("), *expression, mark(")"))
    return column, expression


def _delete(translation: Translation, cursor: Cursor) -> str:
    cursor.expect_word("delete")
    if cursor.next_is("top"):
        raise refused("delete top", "choose the rows by where", cursor.line)
    cursor.word("from")
    target = cursor.object_name()
    _skip_hints(cursor)
    changed = _Changed(translation, target, [], tuple(cursor.tokens[cursor.at :]))
    sql = f"delete from {changed.target}"
    if changed.sources:
        sql += f" using {changed.sources}"
    return sql + changed.where


def _skip_hints(cursor: Cursor) -> None:
    if cursor.next_is("with") and cursor.next_is_symbol("(", ahead=1):
        raise refused("with (…)", "it changes what is locked", cursor.line)


class _Changed:
    """The table that is changed, with what is joined to it: T-SQL names it in FROM again."""

    def __init__(
        self,
        translation: Translation,
        target: ObjectName,
        items: list[tuple[Token, ...]],
        rest: tuple[Token, ...],
    ) -> None:
        self.translation = translation
        self.name = target
        first = rest[0] if rest else None
        if first is not None and not first.is_word("from", "where"):
            if first.is_word("option"):
                raise refused("option", "PostgreSQL plans by itself", first.line)
            raise syntax(first.shown, first.line)
        skeleton = read_select(_as_select(items, rest, target.line))
        selects._check_joins(rest or [Token(Kind.SYMBOL, ";", target.line, 0, 0)])
        translation.skeleton = skeleton
        tree = skeleton.tree
        if not isinstance(tree, exp.Select) or skeleton.into is not None:
            raise syntax(first.shown if first else target.name, target.line)
        for name in ("group", "having", "order", "limit", "distinct", "with_"):
            if tree.args.get(name):
                raise syntax(name.rstrip("_"), target.line)
        if len(tree.expressions) != max(len(items), 1):
            raise syntax(target.name, target.line)
        reader = selects._Select(translation)
        conditions: list[str] = []
        self.target, self.sources = self._sources(reader, selects._sources(tree), conditions)
        where = tree.args.get("where")
        if where is not None:
            conditions.append(translation.condition(where.this))
        self.where = f" where {' and '.join(conditions)}" if conditions else ""
        self.values = [translation.value(node) for node in tree.expressions]
        skeleton.check_complete()

    def _sources(self, reader: selects._Select, sources: list[Any], conditions: list[str]) -> tuple[str, str]:
        if not sources:
            return table(self.name), ""
        groups = _groups(sources)
        found = [
            (group, place)
            for group in groups
            for place, source in enumerate(group)
            if self._is_target(_source_of(source))
        ]
        named = [
            hit for hit in found if _alias_of(self.translation, _source_of(hit[0][hit[1]])) == self._folded()
        ]
        if len(named) == 1:
            found = named
        if len(found) > 1:
            raise TsqlError(8154, f"The table '{self.name}' is ambiguous.", self.name.line, 16)
        if not found:
            return table(self.name), self._listed(reader, groups)
        group, place = found[0]
        target = _source_of(group[place])
        if not isinstance(target, exp.Table) or target.args.get("joins"):
            raise refused(
                f"{self.name} in a nested join", "write the joins one after another", self.name.line
            )
        others = []
        for join in group[1:]:
            if join.args.get("side") or str(join.args.get("kind") or "").lower() not in (
                "",
                "inner",
                "cross",
            ):
                raise refused(
                    "update or delete over an outer join", "choose the rows by exists", self.name.line
                )
            if join.args.get("on") is not None:
                conditions.append(self.translation.condition(join.args["on"]))
        for at, source in enumerate(group):
            if at != place:
                others.append([_source_of(source)])
        others += [other for other in groups if other is not group]
        return reader.source(target), self._listed(reader, others)

    @staticmethod
    def _listed(reader: selects._Select, groups: list[list[Any]]) -> str:
        listed = []
        for first, *joins in groups:
            listed.append(reader.source(_source_of(first)) + "".join(reader._joined(join) for join in joins))
        return ", ".join(listed)

    def _folded(self) -> str:
        return folded(self.name.name, self.name.line)

    def _is_target(self, source: Any) -> bool:
        if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
            return False
        unqualified = not self.name.database and not self.name.owner
        if unqualified and _alias_of(self.translation, source) == self._folded():
            return True
        leaf = self.translation.skeleton.leaves.get(str(source.this.this))
        if not isinstance(leaf, Name) or len(leaf.parts) > 3:
            return False
        database, owner, name = ["", "", *leaf.parts][-3:]
        return table(ObjectName(name, owner, database, leaf.line)) == table(self.name)


def _as_select(items: list[tuple[Token, ...]], rest: tuple[Token, ...], line: int) -> list[Token]:
    def mark(kind: Kind, text: str) -> Token:
        return Token(kind, text, line, 0, 0)

    tokens = [mark(Kind.WORD, "select")]
    for item in items or [(mark(Kind.INTEGER, "1"),)]:
        if len(tokens) > 1:
            tokens.append(mark(Kind.SYMBOL, ","))
        # in parentheses no item is taken for `name = value` or given a name
        tokens += [mark(Kind.SYMBOL, "("), *item, mark(Kind.SYMBOL, ")")]
    return [*tokens, *rest]


def _groups(sources: list[Any]) -> list[list[Any]]:
    """What the commas of FROM separate; each begins with a source, joins follow."""
    groups: list[list[Any]] = [[sources[0]]]
    for join in sources[1:]:
        if selects._is_comma(join):
            groups.append([join])
        else:
            groups[-1].append(join)
    return groups


def _source_of(node: Any) -> Any:
    return node.this if isinstance(node, exp.Join) else node


def _alias_of(translation: Translation, source: Any) -> str | None:
    alias = source.args.get("alias") if isinstance(source, exp.Table) else None
    if alias is not None:
        mark = str(alias.this.this)
    elif isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        mark = str(source.this.this)
    else:
        return None
    leaf = translation.skeleton.leaves.get(mark)
    return folded(leaf.parts[-1], leaf.line) if isinstance(leaf, Name) else None
