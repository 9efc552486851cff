"""Expressions and queries, translated piece by piece: what is not known here is refused."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from ringlog.gateway.tsql import functions, types
from ringlog.gateway.tsql.errors import TsqlError, keyword_syntax, refused, syntax
from ringlog.gateway.tsql.grammar import Function, Name, Skeleton, Top, read_select
from ringlog.gateway.tsql.names import folded, identifier, qualifier
from ringlog.gateway.tsql.scope import ParameterStyle, Scope
from ringlog.gateway.tsql.statements import ObjectName, Query
from ringlog.gateway.tsql.tokens import Kind, Token, Tokens
from ringlog.gateway.tsql.types import Family, Type
from ringlog.gateway.tsql.values import NULL, Value, arithmetic, converted, of_literal, of_text, unified

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
_OUTER: tuple[type[exp.Expr], ...] = (exp.NullSafeEQ, exp.NullSafeNEQ)
_PREDICATES: tuple[type[exp.Expr], ...] = (
    *_COMPARISONS,
    *_OUTER,
    exp.And,
    exp.Or,
    exp.Not,
    exp.In,
    exp.Between,
    exp.Like,
    exp.Escape,
    exp.Is,
    exp.Exists,
)

LONGEST = 8 * 2**20
"""Characters of SQL of one statement: some constructs repeat their operands."""


def only(node: exp.Expr, *known: str) -> None:
    """Refuses a node that has more to it than what is known here."""
    for name, value in node.args.items():
        if value not in (None, False, [], "") and name not in known:
            raise refused(name.rstrip("_"), f"it is not understood in {node.key}", 0)


class Translation:
    """One query or expression: what it uses and assigns is gathered on the way."""

    def __init__(self, scope: Scope, style: ParameterStyle) -> None:
        self.scope = scope
        self.style = style
        self.kind = "select"
        self.columns: tuple[str, ...] | None = None
        self.assigns: list[str] = []
        self.into: str | None = None
        self.skeleton: Skeleton
        self.assigned: dict[str, Value] = {}
        """variables that a select without FROM has assigned so far, and their values"""
        self.windows: list[str] = []
        """the OVER of the aggregate being written"""
        self.written = 0
        self.aggregates = 0
        """how many the select list being written has"""

    # --- entry points ---

    def value_of(self, tokens: Tokens, target: Type | None = None) -> Value:
        """The value of an expression, converted to `target` as T-SQL assigns it."""
        line = tokens[0].line
        if len(tokens) == 1 and tokens[0].kind is Kind.VARIABLE and tokens[0].value != "@":
            of = self.scope.type_of(tokens[0].value, line)
            if of is not None and target in (None, of):
                return Value(self.style(tokens[0].value), of)
        value = self._within(tokens, lambda node: self.value(node))
        return self._as_target(value, target, line)

    def condition_of(self, tokens: Tokens) -> str:
        return self._within(tokens, lambda node: Value(self.condition(node))).sql

    def query_of(self, query: Query) -> str:
        from ringlog.gateway.tsql import selects, updates

        if query.kind == "select":
            return selects.select(self, query.tokens, outermost=True)
        return updates.update(self, query)

    def _within(self, tokens: Tokens, read: Callable[[exp.Expr], Value]) -> Value:
        """Reads an expression as the one column of a select."""
        first = tokens[0]
        mark = Token(Kind.WORD, "select", first.line, first.start, first.start)
        with_before = getattr(self, "skeleton", None)
        self.skeleton = read_select([mark, *tokens])
        tree = self.skeleton.tree
        if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or self.skeleton.into is not None:
            raise syntax(first.shown, first.line)
        only(tree, "expressions")
        node = tree.expressions[0]
        if isinstance(node, exp.Alias):
            raise self.wrong(node)
        value = read(node)
        self.skeleton.check_complete()
        if with_before is not None:
            self.skeleton = with_before
        return value

    def _as_target(self, value: Value, target: Type | None, line: int) -> Value:
        if target is None:
            return Value("null::varchar", types.VARCHAR, null=True) if value.null else value
        return self.assigned_value(value, target, line)

    def assigned_value(self, value: Value, target: Type, line: int) -> Value:
        """As a variable of a type takes it; the type of the SQL is exactly the variable's."""
        if target is types.XML:
            return Value(f"({value.sql})::xml", target)
        sql = converted(value, target, line, sybase=self.scope.sybase).sql
        return Value(sql if sql.endswith(f"::{target.sql}") else f"({sql})::{target.sql}", target)

    # --- marks ---

    def line_of(self, node: exp.Expr) -> int:
        mark = self._first_mark(node)
        if mark is not None:
            match self.skeleton.leaves.get(mark):
                case Token(line=line) | Name(line=line) | Top(line=line):
                    return line
                case Function(name=name):
                    return name.line
        return self.skeleton.line

    @staticmethod
    def _first_mark(node: exp.Expr) -> str | None:
        """The mark that a node begins with: along its first children, however many there are."""
        at: Any = node
        while isinstance(at, exp.Expr):
            if isinstance(at, exp.Identifier | exp.Anonymous):
                return str(at.this)
            children = [value for value in at.args.values() if isinstance(value, exp.Expr | list) and value]
            at = children[0] if children else None
            if isinstance(at, list):
                at = at[0]
        return None

    def wrong(self, node: exp.Expr) -> TsqlError:
        """102 at what the node begins with."""
        mark = self._first_mark(node)
        leaf = self.skeleton.leaves.get(mark) if mark else None
        line = self.line_of(node)
        match leaf:
            case Token():
                return syntax(leaf.shown, line)
            case Name():
                return syntax(".".join(leaf.parts), line)
            case Function():
                return syntax(".".join(leaf.name.parts), line)
        return syntax(node.key, line)

    def name(self, node: Any) -> Name:
        """The name that an identifier's mark stands for."""
        leaf = self.skeleton.leaf(str(node.this)) if isinstance(node, exp.Identifier) else None
        if not isinstance(leaf, Name):
            raise self.wrong(node)
        return leaf

    def alias(self, node: Any) -> str:
        """A name of one part, as it is written."""
        name = self.name(node)
        if len(name.parts) != 1:
            raise syntax(".".join(name.parts), name.line)
        return name.parts[0]

    def bare_word(self, node: exp.Expr) -> str | None:
        """The word that stands where a value could: the part of a date."""
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            name = self.name(node.this)
            return name.parts[0] if len(name.parts) == 1 else None
        return None

    def type_leaf(self, node: exp.Expr) -> Type:
        leaf = self.skeleton.leaf(str(node.this)) if isinstance(node, exp.Anonymous) else None
        if not isinstance(leaf, Type):
            raise self.wrong(node)
        return leaf

    # --- values ---

    def value(self, node: exp.Expr) -> Value:
        value = self._value(node)
        self.written += len(value.sql)
        if self.written > LONGEST:
            raise TsqlError(191, "Some part of your SQL statement is nested too deeply.", self.line_of(node))
        return value

    def _value(self, node: exp.Expr) -> Value:
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        match node:
            case exp.Paren():
                only(node, "this")
                inner = self.value(node.this)
                if inner.sql.startswith("("):
                    return inner
                return Value(f"({inner.sql})", inner.type, digits=inner.digits)
            case exp.Column():
                return self._column(node)
            case exp.Anonymous():
                return self._called(node)
            case exp.Null():
                return NULL
            case exp.Neg():
                only(node, "this")
                return self._negated(node)
            case exp.BitwiseNot():
                only(node, "this")
                value = self.value(node.this)
                return Value(f"(~ {value.sql})", value.type)
            case exp.DPipe():
                only(node, "this", "expression", "safe")
                left, right = self.value(node.this), self.value(node.expression)
                texts = (self._text(left, node), self._text(right, node))
                return arithmetic("+", *texts, self.line_of(node), sybase=self.scope.sybase)
            case exp.Case():
                return self._case(node)
            case exp.Subquery():
                return self._scalar(node)
            case exp.Window():
                return self._window(node)
        if isinstance(node, _PREDICATES):
            raise self._no_value(node)
        raise self.wrong(node)

    def _no_value(self, node: exp.Expr) -> TsqlError:
        sign = _COMPARISONS.get(type(node), node.key)
        if sign.isalpha():
            return keyword_syntax(sign, self.line_of(node))
        return syntax(sign, self.line_of(node))

    def _text(self, value: Value, node: exp.Expr) -> Value:
        if value.type is not None and value.type.is_text:
            return value
        return Value(f"tsql.text_of({value.sql})", types.varchar(None)) if not value.null else NULL

    def _arithmetic(self, node: exp.Expr) -> Value:
        """Chains of operators are as long as people write them: no recursion along the left side."""
        chain: list[exp.Expr] = []
        left: exp.Expr = node
        while type(left) in _ARITHMETIC:
            only(left, "this", "expression", "typed", "safe")
            chain.append(left)
            left = left.this
        value = self.value(left)
        for operation in reversed(chain):
            right = self.value(operation.expression)
            line = self.line_of(operation.expression)
            value = arithmetic(_ARITHMETIC[type(operation)], value, right, line, sybase=self.scope.sybase)
            self.written += len(value.sql)
            if self.written > LONGEST:
                raise TsqlError(191, "Some part of your SQL statement is nested too deeply.", line)
        return value

    def _negated(self, node: exp.Expr) -> Value:
        value = self.value(node.this)
        if value.integer is not None:
            return Value(f"({-value.integer})", value.type, integer=-value.integer)
        if value.type is not None and value.type.is_text:
            raise TsqlError(
                8117,
                "Operand data type varchar is invalid for minus operator.",
                self.line_of(node),
                severity=16,
            )
        if value.null:
            return NULL
        return Value(f"(- {value.sql})", value.type)

    def _column(self, node: exp.Column) -> Value:
        only(node, "this")
        name = self.name(node.this)
        if name.star:
            raise syntax("*", name.line)
        return Value(self.column_sql(name), None)

    def column_sql(self, name: Name) -> str:
        """A column with what qualifies it."""
        *qualifiers, column = name.parts
        if not qualifiers:
            return identifier(column, name.line)
        of = ObjectName(*_three(qualifiers, name.line))
        if of.is_temporary:
            return f"{identifier(of.name, name.line)}.{identifier(column, name.line)}"
        return f"{qualifier(of)}.{identifier(column, name.line)}"

    def _called(self, node: exp.Anonymous) -> Value:
        only(node, "this", "expressions")
        leaf = self.skeleton.leaf(str(node.this))
        match leaf:
            case Token():
                return self._leaf_value(leaf)
            case Function():
                return self._function(leaf, list(node.expressions))
        raise self.wrong(node)

    def _leaf_value(self, token: Token) -> Value:
        if token.kind is not Kind.VARIABLE:
            return of_literal(token, self.scope.sybase)
        if token.value in self.assigned:
            return self.assigned[token.value]
        of = self.scope.type_of(token.value, token.line)
        sql = self.style(token.value)
        if of is types.MONEY:
            sql = f"{sql}::tsql.money"
        elif of is not None and of.is_text:
            # it is sent without a type
            sql = f"{sql}::{of.sql}"
        return Value(sql, of)

    def _function(self, function: Function, arguments: list[exp.Expr]) -> Value:
        name = function.name
        distinct = False
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            only(arguments[0], "expressions")
            distinct = True
            arguments = list(arguments[0].expressions)
        if len(name.parts) == 1:
            known = name.parts[0].lower()
            functions.refuse_unknown(known, name.line)
            if functions.is_known(known):
                return functions.call(functions.Call(self, known, arguments, distinct, name.line))
        if distinct:
            raise keyword_syntax("distinct", name.line)
        return functions.passed_on(self, name.parts, arguments, name.line)

    def aggregate(self, sql: str, cast: str, of: Type | None) -> Value:
        """An aggregate, with the window that it is taken over."""
        self.aggregates += 1
        over = self.windows[-1] if self.windows else ""
        return Value(f"({sql}{over}){cast}" if cast or over else sql, of)

    def _window(self, node: exp.Window) -> Value:
        only(node, "this", "partition_by", "order", "over")
        called = node.this
        leaf = self.skeleton.leaves.get(str(called.this)) if isinstance(called, exp.Anonymous) else None
        name = leaf.name.parts[0].lower() if isinstance(leaf, Function) else ""
        if not functions.may_be_windowed(name):
            raise refused(
                f"{name or 'this'} over (…)", "no such window function is known", self.line_of(node)
            )
        parts = []
        if node.args.get("partition_by"):
            values = ", ".join(self.value(part).sql for part in node.args["partition_by"])
            parts.append(f"partition by {values}")
        order = node.args.get("order")
        if order is not None:
            parts.append(f"order by {', '.join(self.ordered(one) for one in order.expressions)}")
        elif not functions.is_aggregate(name):
            raise TsqlError(
                4112, f"The function '{name}' must have an OVER clause with ORDER BY.", self.line_of(node)
            )
        self.windows.append(f" over ({' '.join(parts)})")
        value = self.value(called)
        self.windows.pop()
        return value

    def ordered(self, node: exp.Expr, sql: str | None = None) -> str:
        """An item of ORDER BY: nulls come first, or last when descending."""
        only(node, "this", "desc", "nulls_first")
        direction = "desc nulls last" if node.args.get("desc") else "nulls first"
        return f"{sql if sql is not None else self.value(node.this).sql} {direction}"

    def _case(self, node: exp.Case) -> Value:
        only(node, "this", "ifs", "default")
        branches: list[tuple[str, exp.Expr]] = []
        operand = self.value(node.this) if node.this is not None else None
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
            if operand is None:
                condition = self.condition(branch.this)
            else:
                condition = self._compared("=", operand, self.value(branch.this))
                self.written += len(condition)
            branches.append((condition, branch.args["true"]))
        return self.branches(branches, node.args.get("default"), self.line_of(node))

    def branches(
        self, branches: Sequence[tuple[str, exp.Expr]], default: exp.Expr | None, line: int
    ) -> Value:
        """CASE: the values become of one type."""
        values = [self.value(node) for _, node in branches]
        last = self.value(default) if default is not None else NULL
        given = [value for value in (*values, last) if not value.null]
        if not given:
            raise TsqlError(
                8133,
                "At least one of the result expressions in a CASE specification must be an expression other "
                "than the NULL constant.",
                line,
                severity=16,
            )
        of = unified([value.type for value in given])
        if of is None and any(value.type is not None and value.type.is_text for value in given):
            # a column of unknown type may be a text too: PostgreSQL tells
            of = None

        def sql(value: Value) -> str:
            if value.null or of is None or value.type == of:
                return value.sql
            return converted(value, of, line, sybase=self.scope.sybase).sql

        whens = " ".join(
            f"when {condition} then {sql(value)}"
            for (condition, _), value in zip(branches, values, strict=True)
        )
        cast = f"::{of.sql}" if of is not None and of.family in (Family.TEXT, Family.DECIMAL) else ""
        return Value(f"(case {whens} else {sql(last)} end){cast}", of)

    def _scalar(self, node: exp.Subquery) -> Value:
        from ringlog.gateway.tsql import selects

        only(node, "this")
        return Value(f"({selects.subselect(self, node.this, columns=1)})", None)

    # --- conditions ---

    def condition(self, node: exp.Expr) -> str:
        """A condition as a boolean, closed in itself."""
        if type(node) in _COMPARISONS:
            return self._comparison(node)
        match node:
            case exp.Paren():
                only(node, "this")
                return self.condition(node.this)
            case exp.And() | exp.Or():
                return self._connected(node)
            case exp.Not():
                only(node, "this")
                return f"(not {self.condition(node.this)})"
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                only(node, "this", "low", "high")
                value, low, high = (self.value(node.args[name]) for name in ("this", "low", "high"))
                at_least = self._compared(">=", value, low)
                return f"({at_least} and {self._compared('<=', value, high)})"
            case exp.Like():
                return self._like(node, None)
            case exp.Escape():
                only(node, "this", "expression")
                return self._like(node.this, str(node.expression.this))
            case exp.Exists():
                only(node, "this")
                from ringlog.gateway.tsql import selects

                return f"exists ({selects.subselect(self, node.this)})"
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                raise refused(
                    "*= and =*", "they stand between AND, in a query of two tables", self.line_of(node)
                )
        line = self.line_of(node)
        raise TsqlError(
            4145,
            "An expression of non-boolean type specified in a context where a condition is expected, near "
            f"'{self._begin_of(node)}'.",
            line,
        )

    def _begin_of(self, node: exp.Expr) -> str:
        return str(self.wrong(node).text.partition("'")[2].rpartition("'")[0])

    def _connected(self, node: exp.Expr) -> str:
        kind = type(node)
        parts: list[exp.Expr] = []
        rest = [node]
        while rest:
            part = rest.pop()
            if type(part) is kind:
                only(part, "this", "expression")
                rest += [part.expression, part.this]
            else:
                parts.append(part)
        word = " and " if kind is exp.And else " or "
        return f"({word.join(self.condition(part) for part in parts)})"

    def _comparison(self, node: exp.Expr) -> str:
        operator = _COMPARISONS[type(node)]
        only(node, "this", "expression")
        if isinstance(node.this, _PREDICATES):
            raise self._no_value(node)
        left = self.value(node.this)
        right = node.expression
        if isinstance(right, exp.Any | exp.All):
            return self._quantified(operator, left, right)
        return self._compared(operator, left, self.value(right), self.line_of(node))

    def _compared(self, operator: str, left: Value, right: Value, line: int = 0) -> str:
        if (left.null or right.null) and self.scope.sybase:
            raise refused(f"{operator} null", "is null asks for it", line or self.skeleton.line)
        return f"({left.sql} operator(tsql.{operator}) {right.sql})"

    def _quantified(self, operator: str, left: Value, node: exp.Any | exp.All) -> str:
        from ringlog.gateway.tsql import selects

        only(node, "this")
        inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        word = "any" if isinstance(node, exp.Any) else "all"
        return f"({left.sql} operator(tsql.{operator}) {word} ({selects.subselect(self, inner, columns=1)}))"

    def _is(self, node: exp.Is) -> str:
        only(node, "this", "expression")
        negated = isinstance(node.expression, exp.Not)
        what = node.expression.this if negated else node.expression
        if not isinstance(what, exp.Null):
            raise keyword_syntax("is", self.line_of(node))
        return f"({self.value(node.this).sql} is {'not ' if negated else ''}null)"

    def _in(self, node: exp.In) -> str:
        only(node, "this", "expressions", "query")
        value = self.value(node.this)
        query = node.args.get("query")
        if query is not None:
            from ringlog.gateway.tsql import selects

            only(query, "this")
            return f"({value.sql} operator(tsql.=) any ({selects.subselect(self, query.this, columns=1)}))"
        if not node.expressions:
            raise keyword_syntax("in", self.line_of(node))
        equal = []
        for item in node.expressions:
            compared = self._compared("=", value, self.value(item), self.line_of(node))
            self.written += len(compared)
            equal.append(compared)
        return f"({' or '.join(equal)})"

    def _like(self, node: exp.Expr, escape: str | None) -> str:
        if not isinstance(node, exp.Like):
            raise self.wrong(node)
        only(node, "this", "expression", "negate")
        value, pattern = (self.value(node.args[name]) for name in ("this", "expression"))
        character = "null"
        if escape is not None:
            leaf = self.skeleton.leaf(f"e{escape}")
            assert isinstance(leaf, Token)
            character = self._leaf_value(leaf).sql
        texts = [self._text(value, node).sql, self._text(pattern, node).sql]
        matched = f"tsql.is_like({texts[0]}, {texts[1]}, {character})"
        return f"(not {matched})" if node.args.get("negate") else matched

    # --- names of tables ---

    def object_name(self, node: Any) -> ObjectName:
        name = self.name(node)
        return ObjectName(*_three(name.parts, name.line), name.line)

    def folded_alias(self, node: Any) -> str:
        return folded(self.alias(node), self.name(node).line)

    def text_literal(self, text: str) -> Value:
        return of_text(text)


def _three(parts: Sequence[str], line: int) -> tuple[str, str, str]:
    """name, owner and database of a table's name in parts."""
    if len(parts) > 3:
        raise TsqlError(4104, f"The multi-part identifier '{'.'.join(parts)}' could not be bound.", line, 16)
    database, owner, name = ["", "", *parts][-3:]
    return name, owner, database
