"""Expressions and conditions of T-SQL in PostgreSQL's SQL."""

from dataclasses import dataclass

from ringlog.gateway.tsql.scope import Numbered, ParameterStyle, Scope
from ringlog.gateway.tsql.statements import Expression
from ringlog.gateway.tsql.translation import Translation
from ringlog.gateway.tsql.types import Type


@dataclass(frozen=True)
class Translated:
    """`sql` is an expression of PostgreSQL's, in parentheses where it needs them.

    `variables`: those it uses, in the order of $1, $2, …; empty when the style of the parameters is another.
    `type`: T-SQL's type of the value, None where only PostgreSQL knows it.
    """

    sql: str
    variables: tuple[str, ...]
    type: Type | None


def translate_expression(
    expression: Expression, scope: Scope, style: ParameterStyle | None = None, target: Type | None = None
) -> Translated:
    """A value. `target`: it is converted to this type as T-SQL assigns a value to a variable of it.

    `style` None numbers the variables. Raises TsqlError for what is refused.
    """
    style = Numbered() if style is None else style
    value = Translation(scope, style).value_of(expression.tokens, target)
    return Translated(value.sql, _numbered(style), value.type)


def translate_condition(
    expression: Expression, scope: Scope, style: ParameterStyle | None = None
) -> Translated:
    """A condition, as an expression of type boolean: null is T-SQL's unknown."""
    style = Numbered() if style is None else style
    return Translated(Translation(scope, style).condition_of(expression.tokens), _numbered(style), None)


def _numbered(style: ParameterStyle) -> tuple[str, ...]:
    return style.variables if isinstance(style, Numbered) else ()
