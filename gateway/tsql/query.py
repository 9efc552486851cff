"""Queries of T-SQL in PostgreSQL's SQL."""

from dataclasses import dataclass

from ringlog.gateway.tsql.scope import Numbered, ParameterStyle, Scope
from ringlog.gateway.tsql.statements import Query
from ringlog.gateway.tsql.translation import Translation


@dataclass(frozen=True)
class TranslatedQuery:
    """`kind`: "select", "insert", "update" or "delete". `into`: the table that an insert fills, in SQL.

    `columns`: the names to be shown, "" for a nameless one; None where PostgreSQL's names are to be shown
    ("?column?" is nameless). `assigns`: for `select @a = …` the variables, by name, that take the last row's
    values, in the order of the columns, which have the variables' types; otherwise empty.
    """

    sql: str
    variables: tuple[str, ...]
    kind: str
    columns: tuple[str, ...] | None
    assigns: tuple[str, ...]
    into: str | None = None


def translate_query(query: Query, scope: Scope, style: ParameterStyle | None = None) -> TranslatedQuery:
    """A select, insert, update or delete. Raises TsqlError for what is refused."""
    style = Numbered() if style is None else style
    translation = Translation(scope, style)
    sql = translation.query_of(query)
    variables = style.variables if isinstance(style, Numbered) else ()
    return TranslatedQuery(
        sql, variables, translation.kind, translation.columns, tuple(translation.assigns), translation.into
    )
