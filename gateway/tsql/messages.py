"""What print, raiserror and throw say: texts formatted in PostgreSQL."""

from ringlog.gateway.tsql.errors import TsqlError, refused
from ringlog.gateway.tsql.expression import Translated, translate_expression
from ringlog.gateway.tsql.scope import Numbered, ParameterStyle, Scope
from ringlog.gateway.tsql.statements import Expression, Print, Raiserror, Throw
from ringlog.gateway.tsql.tokens import Kind
from ringlog.gateway.tsql.types import INT, TEXT, varchar

_LONGEST = varchar(8000)


def printed(statement: Print, scope: Scope, style: ParameterStyle | None = None) -> Translated:
    """The text that a print shows; null is nothing."""
    style = Numbered() if style is None else style
    text = translate_expression(statement.value, scope, style, _LONGEST).sql
    if statement.arguments:
        text = f"tsql.format_numbered({text}, {_array(statement.arguments, scope, style)})"
    return _of(f"coalesce({text}, '')", style)


def raised(statement: Raiserror, scope: Scope, style: ParameterStyle | None = None) -> Translated:
    """Four columns: number, severity, state (integers) and the text of the message."""
    style = Numbered() if style is None else style
    if statement.severity is None or statement.state is None:
        return _of(_raised_as_sybase(statement, scope, style), style)
    assert statement.message is not None
    severity = translate_expression(statement.severity, scope, style, INT).sql
    state = translate_expression(statement.state, scope, style, INT).sql
    message = translate_expression(statement.message, scope, style)
    if message.type is not None and message.type.is_number:
        raise refused(
            f"raiserror ({statement.message.tokens[0].shown}, …)",
            "there are no messages by number: give the text",
            statement.line,
        )
    arguments = _array(statement.arguments, scope, style)
    text = f"tsql.format_message({_text(statement.message, scope, style)}, {arguments})"
    return _of(f"50000, tsql.severity({severity}), tsql.state({state}), {text}", style)


def _raised_as_sybase(statement: Raiserror, scope: Scope, style: ParameterStyle) -> str:
    assert statement.number is not None
    number = translate_expression(statement.number, scope, style, INT).sql
    if statement.message is None:
        raise refused("raiserror number", "there are no messages by number: give the text", statement.line)
    text = _text(statement.message, scope, style)
    arguments = _array(statement.arguments, scope, style)
    return f"tsql.user_number({number}), 16, 1, tsql.format_numbered({text}, {arguments})"


def thrown(statement: Throw, scope: Scope, style: ParameterStyle | None = None) -> Translated | None:
    """Three columns: number, text of the message, state; None for a bare throw."""
    if statement.number is None or statement.message is None or statement.state is None:
        return None
    for part in (statement.number, statement.message, statement.state):
        if len(part.tokens) != 1 or part.tokens[0].kind not in (Kind.INTEGER, Kind.TEXT, Kind.VARIABLE):
            raise TsqlError(102, f"Incorrect syntax near '{part.tokens[0].shown}'.", part.line)
    style = Numbered() if style is None else style
    number = translate_expression(statement.number, scope, style, INT).sql
    state = translate_expression(statement.state, scope, style, INT).sql
    text = _text(statement.message, scope, style)
    return _of(f"tsql.thrown_number({number}), {text}, tsql.state({state})", style)


def _text(expression: Expression, scope: Scope, style: ParameterStyle) -> str:
    return translate_expression(expression, scope, style, TEXT).sql


def _array(arguments: tuple[Expression, ...], scope: Scope, style: ParameterStyle) -> str:
    return f"array[{', '.join(_text(argument, scope, style) for argument in arguments)}]::text[]"


def _of(sql: str, style: ParameterStyle) -> Translated:
    return Translated(sql, style.variables if isinstance(style, Numbered) else (), None)
