"""Expressions and queries, translated piece by piece."""

from dataclasses import dataclass

from ringlog.gateway.tsql.errors import refused
from ringlog.gateway.tsql.scope import ParameterStyle, Scope
from ringlog.gateway.tsql.statements import Query
from ringlog.gateway.tsql.tokens import Tokens
from ringlog.gateway.tsql.types import Type


@dataclass(frozen=True)
class Value:
    """An expression of PostgreSQL's and T-SQL's type of it, None where only PostgreSQL knows it."""

    sql: str
    type: Type | None


class Translation:
    """One query or expression: what it names and assigns is gathered on the way."""

    def __init__(self, scope: Scope, style: ParameterStyle) -> None:
        self.scope = scope
        self.style = style
        self.kind = "select"
        self.columns: tuple[str, ...] | None = None
        self.assigns: list[str] = []

    def value_of(self, tokens: Tokens, target: Type | None = None) -> Value:
        raise refused(tokens[0].shown, "expressions come next", tokens[0].line)

    def condition_of(self, tokens: Tokens) -> str:
        raise refused(tokens[0].shown, "conditions come next", tokens[0].line)

    def query_of(self, query: Query) -> str:
        raise refused(query.kind, "queries come next", query.line)
