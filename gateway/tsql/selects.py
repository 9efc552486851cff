"""Selects: the list, the sources, the rest."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ringlog.gateway.tsql import types
from ringlog.gateway.tsql.errors import TsqlError, keyword_syntax, refused, syntax
from ringlog.gateway.tsql.grammar import Function, Name, Top, read_select
from ringlog.gateway.tsql.names import folded, identifier, table
from ringlog.gateway.tsql.tokens import Kind, Token, Tokens
from ringlog.gateway.tsql.translation import Translation, only
from ringlog.gateway.tsql.values import Value, converted

_SET_OPERATIONS: dict[type[Any], str] = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}

NAMELESS = '"?column?"'
"""What PostgreSQL calls a column without a name."""


@dataclass(frozen=True)
class Item:
    """An item of a select list.

    `name`: as shown, "" for none, None for a star; `variable`: what it is assigned to.
    """

    sql: str
    value: Value | None
    name: str | None
    variable: str | None = None


def select(translation: Translation, tokens: Tokens, outermost: bool = False) -> str:
    """A whole select. The outermost one tells its columns, assigns to variables and fills tables."""
    translation.skeleton = skeleton = read_select(tokens)
    _check_joins(tokens)
    tree = skeleton.tree
    reader = _Select(translation)
    sql = reader.outermost(tree) if outermost and skeleton.into is None else reader.query(tree)
    if skeleton.into is not None:
        if not outermost:
            raise keyword_syntax("into", skeleton.line)
        for item in reader.items_of(tree):
            if item.name == "":
                raise TsqlError(
                    1038,
                    "An object or column name is missing or empty. For SELECT INTO statements, verify each "
                    "column has a name.",
                    skeleton.line,
                )
        into = skeleton.into
        temporary = "temporary " if into.is_temporary else ""
        target = identifier(into.name, into.line) if into.is_temporary else table(into)
        sql = f"create {temporary}table {target} as {sql}"
    skeleton.check_complete()
    return sql


def subselect(translation: Translation, node: Any, columns: int | None = None) -> str:
    """A select inside an expression, of so many columns."""
    reader = _Select(translation)
    sql = reader.query(node)
    items = reader.items_of(node)
    if any(item.variable for item in items):
        raise syntax("=", translation.line_of(node))
    if columns is not None and len(items) != columns:
        raise TsqlError(
            116,
            "Only one expression can be specified in the select list when the subquery is not introduced "
            "with EXISTS.",
            translation.line_of(node),
            severity=16,
        )
    return sql


def source_query(translation: Translation, tokens: Tokens) -> tuple[str, list[Item], exp.Expr]:
    """A select that fills a table: its SQL, the items of its list and its tree, whose marks are all used."""
    translation.skeleton = skeleton = read_select(tokens)
    _check_joins(tokens)
    if skeleton.into is not None:
        raise keyword_syntax("into", skeleton.line)
    reader = _Select(translation)
    sql = reader.query(skeleton.tree)
    items = reader.items_of(skeleton.tree)
    if any(item.variable for item in items):
        raise syntax("=", skeleton.line)
    skeleton.check_complete()
    return sql, items, skeleton.tree


def _check_joins(tokens: Tokens) -> None:
    """sqlglot takes a join without ON for a comma."""
    joins = [
        at for at, token in enumerate(tokens) if token.is_word("join") and not tokens[at - 1].is_word("cross")
    ]
    ons = sum(token.is_word("on") for token in tokens)
    if len(joins) != ons:
        last = tokens[joins[-1] if joins else -1]
        raise keyword_syntax(last.value, last.line)


class _Select:
    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        self.items: dict[int, list[Item]] = {}
        """the items of each select, by the identity of its node"""

    # --- set operations ---

    def query(self, node: Any) -> str:
        match node:
            case exp.Select():
                return self.select(node)
            case exp.SetOperation():
                return self._set_operation(node)
            case exp.Subquery() if not node.args.get("alias"):
                only(node, "this")
                return f"({self.query(node.this)})"
        raise self.translation.wrong(node)

    def items_of(self, node: Any) -> list[Item]:
        while not isinstance(node, exp.Select):
            node = node.this
        return self.items[id(node)]

    def _set_operation(self, node: exp.Expr) -> str:
        chain: list[exp.Expr] = []
        left: Any = node
        while isinstance(left, exp.SetOperation):
            only(left, "this", "expression", "distinct", "order", "with_")
            if left is not node and (left.args.get("order") or left.args.get("with_")):
                raise keyword_syntax("order", self.translation.line_of(left))
            chain.append(left)
            left = left.this
        sql = self._operand(left)
        for operation in reversed(chain):
            word = _SET_OPERATIONS[type(operation)]
            if word == "intersect" and isinstance(operation.this, exp.SetOperation):
                raise refused(
                    "intersect behind union", "put it in parentheses", self.translation.line_of(left)
                )
            if not operation.args.get("distinct"):
                word += " all"
            sql = f"{sql} {word} {self._operand(operation.expression)}"
        order = node.args.get("order")
        if order is not None:
            sql += f" order by {', '.join(self._ordered_output(one) for one in order.expressions)}"
        return self._with(node) + sql

    def _operand(self, node: Any) -> str:
        if isinstance(node, exp.Select) and node.args.get("order"):
            raise keyword_syntax("union", self.translation.line_of(node))
        sql = self.query(node)
        # what has a LIMIT must stand by itself
        return f"({sql})" if isinstance(node, exp.Select) and node.args.get("limit") else sql

    def _with(self, node: exp.Expr) -> str:
        with_ = node.args.get("with_")
        if with_ is None:
            return ""
        only(with_, "expressions")
        parts = []
        for cte in with_.expressions:
            only(cte, "this", "alias")
            name = self.translation.folded_alias(cte.args["alias"].this)
            line = self.translation.name(cte.args["alias"].this).line
            for found in cte.this.find_all(exp.Table):
                leaf = self.translation.skeleton.leaves.get(str(found.this.this))
                if isinstance(leaf, Name) and len(leaf.parts) == 1 and folded(leaf.parts[0], line) == name:
                    raise refused(f"{leaf.parts[0]} in its own definition", "there is no recursion", line)
            columns = self._column_list(cte.args["alias"])
            parts.append(f"{identifier(name, line)}{columns} as ({self.query(cte.this)})")
        return f"with {', '.join(parts)} "

    def _column_list(self, alias: exp.Expr) -> str:
        only(alias, "this", "columns")
        columns = alias.args.get("columns") or []
        if not columns:
            return ""
        names = ", ".join(
            identifier(self.translation.alias(column), self.translation.name(column).line)
            for column in columns
        )
        return f" ({names})"

    # --- one select ---

    def outermost(self, tree: exp.Expr) -> str:
        sql = self.query(tree)
        items = self.items_of(tree)
        assigns = [item.variable for item in items if item.variable is not None]
        if assigns:
            if len(assigns) != len(items) or not isinstance(tree, exp.Select):
                raise TsqlError(
                    141,
                    "A SELECT statement that assigns a value to a variable must not be combined with "
                    "data-retrieval operations.",
                    self.translation.skeleton.line,
                )
            self.translation.assigns = assigns
            self.translation.columns = ()
            return sql
        names = [item.name for item in items]
        if None not in names:
            self.translation.columns = tuple(name or "" for name in names)
        if isinstance(tree, exp.Select) and any(item.value is not None and item.value.null for item in items):
            return self.select(tree, bare_nulls=False)
        return sql

    def select(self, node: exp.Select, bare_nulls: bool = True) -> str:
        only(
            node,
            *(
                "expressions",
                "distinct",
                "limit",
                "from_",
                "joins",
                "where",
                "group",
                "having",
                "order",
                "with_",
            ),
        )
        before = self._with(node)
        sources = _sources(node)
        where = self._where(node, sources)
        self.translation.aggregates = 0
        items = self._items(node, bare_nulls)
        self.items[id(node)] = items
        parts = [
            f"select {'distinct ' if self._is_distinct(node) else ''}{', '.join(item.sql for item in items)}"
        ]
        if sources:
            parts.append(f"from {where.sources}")
        if where.condition:
            parts.append(f"where {where.condition}")
        group = node.args.get("group")
        if group is not None:
            only(group, "expressions")
            parts.append(f"group by {', '.join(self._grouped(one) for one in group.expressions)}")
        having = node.args.get("having")
        if having is not None:
            parts.append(f"having {self.translation.condition(having.this)}")
        order = node.args.get("order")
        if order is not None:
            only(order, "expressions")
            parts.append(f"order by {', '.join(self._ordered(one) for one in order.expressions)}")
        sql = " ".join(parts)
        limit = node.args.get("limit")
        if limit is None:
            return before + sql
        top = self._top_of(limit)
        rows = self._rows_of(top)
        if order is not None and not top.percent and not top.with_ties:
            by_index = self._top_by_index(node, items, where, rows)
            if by_index is not None:
                return before + by_index
        return before + self._top(top, sql, rows, order is not None)

    def _top_by_index(self, node: exp.Select, items: list[Item], where: "_Where", rows: str) -> str | None:
        """The first rows by a column, by an index on it: `select top 5 * from log order by time desc`.

        T-SQL puts nulls before everything, PostgreSQL's indexes put them behind. So the first rows that have
        a value and the first that have none are read each by itself, and the first of both are given.
        """
        plain = ("expressions", "limit", "from_", "where", "order", "with_")
        if (
            any(value for name, value in node.args.items() if name not in plain)
            or self.translation.aggregates
        ):
            return None
        ordered = node.args["order"].expressions
        keys = [self._plain_key(one.this, items) for one in ordered]
        starred = [item.sql for item in items if item.name is None]
        if None in keys or (starred and len(items) > 1):
            return None
        first, *others = ordered
        key = str(keys[0])
        rest = [self.translation.ordered(one, str(k)) for one, k in zip(others, keys[1:], strict=True)]
        direction = "desc" if first.args.get("desc") else "asc"
        hidden = "" if starred else f", {', '.join(map(str, keys))}"
        listed = f"select {', '.join(item.sql for item in items)}{hidden} from {where.sources} where "
        condition = f"{where.condition} and " if where.condition else ""
        by_value = ", ".join([f"{key} {direction}", *rest])
        with_value = f"{listed}{condition}{key} is not null order by {by_value} limit {rows}"
        by_rest = f" order by {', '.join(rest)}" if rest else ""
        without = f"{listed}{condition}{key} is null{by_rest} limit {rows}"
        if starred:
            names = [str(k)[str(k).rindex('."') + 1 :] if '."' in str(k) else str(k) for k in keys]
            columns, shown = "", "*"
        else:
            names = [f'"k{place}"' for place in range(1, len(keys) + 1)]
            given = [f'"c{place}"' for place in range(1, len(items) + 1)]
            columns = f" ({', '.join([*given, *names])})"
            shown = ", ".join(
                f"{column} as {identifier(item.name, 0) if item.name else NAMELESS}"
                for column, item in zip(given, items, strict=True)
            )
        pairs = zip(ordered, names, strict=True)
        both = ", ".join(self.translation.ordered(one, name) for one, name in pairs)
        return (
            f'select {shown} from (({with_value}) union all ({without})) as "top"{columns} '
            f"order by {both} limit {rows}"
        )

    def _plain_key(self, node: exp.Expr, items: list[Item]) -> str | None:
        """A column that rows are ordered by; None for anything else, as the name of a result column."""
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        name = self.translation.name(node.this)
        sql = self.translation.column_sql(name)
        own = folded(name.parts[-1], name.line)
        for item in items:
            if item.name and folded(item.name, name.line) == own and item.sql not in (sql, f"{sql} as {sql}"):
                return None
        return sql

    @staticmethod
    def _is_distinct(node: exp.Select) -> bool:
        distinct = node.args.get("distinct")
        if distinct is None:
            return False
        only(distinct)
        return True

    def _items(self, node: exp.Select, bare_nulls: bool) -> list[Item]:
        if not node.expressions:
            raise syntax("select", self.translation.skeleton.line)
        return [self._item(expression, node, bare_nulls) for expression in node.expressions]

    def _item(self, node: exp.Expr, of: exp.Select, bare_nulls: bool) -> Item:
        translation = self.translation
        match node:
            case exp.Star():
                only(node)
                if not of.args.get("from_"):
                    raise TsqlError(263, "Must specify table to select from.", translation.skeleton.line, 16)
                return Item("*", None, None)
            case exp.Column() if isinstance(node.this, exp.Star):
                only(node, "this", "table")
                name = translation.name(node.args["table"])
                return Item(f"{_qualifier(translation, name)}.*", None, None)
            case exp.Alias():
                only(node, "this", "alias")
                name = translation.name(node.args["alias"])
                shown = translation.alias(node.args["alias"])
                value = translation.value(node.this)
                return Item(f"{_typed(value, bare_nulls)} as {identifier(shown, name.line)}", value, shown)
            case exp.EQ() if self._is_variable(node.this):
                return self._assigned(node, of)
        value = translation.value(node)
        if isinstance(node, exp.Column):
            return Item(value.sql, value, translation.name(node.this).parts[-1])
        return Item(f"{_typed(value, bare_nulls)} as {NAMELESS}", value, "")

    def _is_variable(self, node: Any) -> bool:
        leaf = (
            self.translation.skeleton.leaves.get(str(node.this)) if isinstance(node, exp.Anonymous) else None
        )
        return isinstance(leaf, Token) and leaf.kind is Kind.VARIABLE

    def _assigned(self, node: exp.EQ, of: exp.Select) -> Item:
        """`@a = expression`: the value has the variable's type."""
        translation = self.translation
        token = translation.skeleton.leaf(str(node.this.this))
        assert isinstance(token, Token)
        if token.value.startswith("@@"):
            raise syntax(token.value, token.line)
        target = translation.scope.type_of(token.value, token.line)
        if of.args.get("from_") and self._uses(node.expression, token.value):
            raise refused(
                f"{token.value} = … {token.value} … over rows", "use an aggregate or a loop", token.line
            )
        value = translation.value(node.expression)
        if target is not None:
            value = translation.assigned_value(value, target, token.line)
        if not of.args.get("from_"):
            translation.assigned[token.value] = value
        else:
            self._refuse_later_use(of, node, token)
        return Item(value.sql, value, "", token.value)

    def _uses(self, node: exp.Expr, variable: str) -> bool:
        leaves = self.translation.skeleton.leaves
        for found in node.find_all(exp.Anonymous):
            leaf = leaves.get(str(found.this))
            if isinstance(leaf, Token) and leaf.kind is Kind.VARIABLE and leaf.value == variable:
                return True
        return False

    def _refuse_later_use(self, of: exp.Select, node: exp.EQ, token: Token) -> None:
        for other in of.expressions:
            if other is not node and isinstance(other, exp.EQ) and self._uses(other.expression, token.value):
                raise refused(
                    f"{token.value} assigned and used over rows", "use an aggregate or a loop", token.line
                )

    def _grouped(self, node: exp.Expr) -> str:
        value = self.translation.value(node)
        if value.integer is not None or value.text is not None or value.null:
            raise TsqlError(
                164,
                "Each GROUP BY expression must contain at least one column that is not an outer reference.",
                self.translation.line_of(node),
            )
        return value.sql

    def _ordered(self, node: exp.Expr) -> str:
        value = self.translation.value(node.this)
        if value.text is not None or value.null:
            raise TsqlError(
                408,
                "A constant expression was encountered in the ORDER BY list.",
                self.translation.line_of(node),
                severity=16,
            )
        # a number is the place of a column
        return self.translation.ordered(node, value.sql if value.integer is None else str(value.integer))

    def _ordered_output(self, node: exp.Expr) -> str:
        """An item of the ORDER BY of a union, which has no columns but those of its result."""
        column = node.this
        mark = str(column.this.this) if isinstance(column, exp.Column) else ""
        name = self.translation.skeleton.leaves.get(mark)
        if not isinstance(name, Name) or len(name.parts) == 1:
            return self._ordered(node)
        self.translation.skeleton.leaf(mark)
        return self.translation.ordered(node, self.translation.column_sql(Name(name.parts[-1:], name.line)))

    def _top_of(self, limit: exp.Expr) -> Top:
        only(limit, "expression")
        mark = limit.expression
        top = self.translation.skeleton.leaf(str(mark.this)) if isinstance(mark, exp.Anonymous) else None
        if not isinstance(top, Top):
            raise self.translation.wrong(limit)
        return top

    def _rows_of(self, top: Top) -> str:
        number = self.translation._within(top.tokens, self.translation.value)
        if number.text is not None or number.null:
            raise TsqlError(
                1060, "The number of rows provided for a TOP clause must be an integer.", top.line
            )
        if number.integer is not None and number.integer < 0:
            raise TsqlError(1060, "A TOP or FETCH clause contains an invalid value.", top.line)
        if top.percent:
            return converted(number, types.FLOAT, top.line).sql
        return number.sql if number.integer is not None else f"tsql.top({number.sql})"

    @staticmethod
    def _top(top: Top, sql: str, rows: str, is_ordered: bool) -> str:
        if top.percent:
            if top.with_ties:
                raise refused("top … percent with ties", "one of them goes", top.line)
            return f'{sql} limit tsql.top_percent({rows}, (select count(*) from ({sql}) as "counted"))'
        if top.with_ties:
            if not is_ordered:
                raise TsqlError(
                    1062,
                    "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.",
                    top.line,
                )
            return f"{sql} fetch first ({rows}) rows with ties"
        return f"{sql} limit {rows}"

    # --- sources ---

    def _where(self, node: exp.Select, sources: "list[Any]") -> "_Where":
        where = node.args.get("where")
        condition = where.this if where is not None else None
        conjuncts = _conjuncts(condition) if condition is not None else []
        if any(isinstance(_bare(one), exp.NullSafeEQ | exp.NullSafeNEQ) for one in conjuncts):
            return self._sybase_outer_join(sources, conjuncts)
        listed = self.sources(sources)
        return _Where(listed, self.translation.condition(condition) if condition is not None else "")

    def sources(self, sources: "list[Any]") -> str:
        """FROM: the first source, then what is joined to it."""
        if not sources:
            return ""
        first, *joins = sources
        sql = self.source(first)
        for join in joins:
            sql += self._joined(join)
        return sql

    def _joined(self, join: exp.Join) -> str:
        only(join, "this", "on", "side", "kind")
        side = str(join.args.get("side") or "").lower()
        kind = str(join.args.get("kind") or "").lower()
        source = self.source(join.this)
        on = join.args.get("on")
        if on is None:
            if kind == "cross" and not side:
                return f" cross join {source}"
            if kind or side:
                raise keyword_syntax("join", self.translation.line_of(join))
            return f", {source}"
        if kind not in ("", "inner", "outer") or (kind == "outer" and not side) or (kind == "inner" and side):
            raise refused(
                f"{kind} join",
                "the joins are inner, left, right, full and cross",
                self.translation.line_of(join),
            )
        return f" {side or 'inner'} join {source} on {self.translation.condition(on)}"

    def source(self, node: Any) -> str:
        match node:
            case exp.Table():
                only(node, "this", "alias", "joins")
                sql = self._table(node)
            case exp.Subquery():
                only(node, "this", "alias", "joins")
                sql = self._derived(node)
            case _:
                raise self.translation.wrong(node)
        joins = node.args.get("joins") or []
        if joins:
            sql = f"({sql}{''.join(self._joined(join) for join in joins)})"
        return sql

    def _table(self, node: exp.Table) -> str:
        translation = self.translation
        alias = node.args.get("alias")
        if isinstance(node.this, exp.Anonymous):
            only(node.this, "this", "expressions")
            leaf = translation.skeleton.leaf(str(node.this.this))
            if not isinstance(leaf, Function):
                raise translation.wrong(node)
            from ringlog.gateway.tsql import functions

            if len(leaf.name.parts) == 1:
                functions.refuse_unknown(leaf.name.parts[0].lower(), leaf.name.line)
            value = functions.passed_on(
                translation, leaf.name.parts, list(node.this.expressions), leaf.name.line
            )
            return value.sql + self._alias(alias)
        return table(translation.object_name(node.this)) + self._alias(alias)

    def _alias(self, alias: Any) -> str:
        if alias is None:
            return ""
        name = self.translation.name(alias.this)
        return f" as {identifier(self.translation.alias(alias.this), name.line)}{self._column_list(alias)}"

    def _derived(self, node: exp.Subquery) -> str:
        alias = node.args.get("alias")
        if isinstance(node.this, exp.Table | exp.Subquery) and alias is None:
            inner = self.source(node.this)
            return inner if inner.startswith("(") else f"({inner})"
        if alias is None:
            raise self.translation.wrong(node)
        sql = self.query(node.this)
        items = self.items_of(node.this)
        if any(item.variable for item in items):
            raise syntax("=", self.translation.line_of(node))
        if not alias.args.get("columns") and any(item.name == "" for item in items):
            name = self.translation.alias(alias.this)
            place = next(place for place, item in enumerate(items, 1) if item.name == "")
            raise TsqlError(
                8155,
                f"No column name was specified for column {place} of '{name}'.",
                self.translation.line_of(node),
                16,
            )
        return f"({sql}){self._alias(alias)}"

    def _sybase_outer_join(self, sources: "list[Any]", conjuncts: "list[Any]") -> "_Where":
        """`a.x *= b.y`: all rows of a. Conditions on b choose what is joined, those on a what is given."""
        translation = self.translation
        line = translation.skeleton.line
        refusal = refused(
            "*= and =*", "write a left join, but for two tables with all columns qualified", line
        )
        if len(sources) != 2 or not all(_is_comma(join) for join in sources[1:]):
            raise refusal
        names = [self._source_name(source) for source in (sources[0], sources[1].this)]
        outer: set[str] = set()
        on: list[str] = []
        kept: list[tuple[Any, set[str]]] = []
        for one in map(_bare, conjuncts):
            if isinstance(one, exp.NullSafeEQ | exp.NullSafeNEQ):
                only(one, "this", "expression")
                sides = self._qualifiers(one.this, refusal), self._qualifiers(one.expression, refusal)
                preserved, joined = sides if isinstance(one, exp.NullSafeNEQ) else reversed(sides)
                if len(preserved) != 1 or len(joined) != 1 or preserved == joined:
                    raise refusal
                outer |= preserved
                left, right = translation.value(one.this), translation.value(one.expression)
                on.append(f"({left.sql} operator(tsql.=) {right.sql})")
            else:
                kept.append((one, self._qualifiers(one, refusal)))
        if len(outer) != 1 or not outer <= set(names):
            raise refusal
        conditions: list[str] = []
        for one, qualifiers in kept:
            if len(qualifiers) > 1 or not qualifiers <= set(names):
                raise refusal
            (conditions if qualifiers <= outer else on).append(translation.condition(one))
        order = [sources[0], sources[1].this]
        if names[0] not in outer:
            order.reverse()
        preserved_source, joined_source = map(self.source, order)
        return _Where(
            f"{preserved_source} left join {joined_source} on {' and '.join(on)}", " and ".join(conditions)
        )

    def _source_name(self, node: Any) -> str:
        alias = node.args.get("alias")
        if alias is not None:
            return self.translation.folded_alias(alias.this)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.translation.wrong(node)
        name = self.translation.name(node.this)
        return folded(name.parts[-1], name.line)

    def _qualifiers(self, node: Any, refusal: TsqlError) -> set[str]:
        if node.find(exp.Select) is not None:
            raise refusal
        found = set()
        for column in node.find_all(exp.Column):
            leaf = self.translation.skeleton.leaves.get(str(column.this.this))
            if not isinstance(leaf, Name) or len(leaf.parts) < 2:
                raise refusal
            found.add(folded(leaf.parts[-2], leaf.line))
        return found


@dataclass(frozen=True)
class _Where:
    sources: str
    condition: str


def _typed(value: Value, bare_nulls: bool) -> str:
    """A bare NULL of the outermost select is an int."""
    return "null::integer" if value.null and not bare_nulls else value.sql


def _sources(node: exp.Select) -> list[Any]:
    from_ = node.args.get("from_")
    joins = node.args.get("joins") or []
    if from_ is None:
        return []
    only(from_, "this")
    return [from_.this, *joins]


def _is_comma(join: Any) -> bool:
    return not any(join.args.get(name) for name in ("on", "side", "kind", "using", "method"))


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _conjuncts(node: Any) -> list[Any]:
    parts = []
    rest = [node]
    while rest:
        part = rest.pop()
        if isinstance(part, exp.And):
            rest += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def _qualifier(translation: Translation, name: Name) -> str:
    """`t` of `t.*`."""
    of = translation.column_sql(Name((*name.parts, "x"), name.line))
    return of[: of.rindex(".")]
