"""T-SQL procedures as functions and procedures of PostgreSQL.

A procedure runs with the rights of its owner (SECURITY DEFINER), as T-SQL's ownership chains have it: who may
execute it needs no right on the tables it uses. Its search path is fixed.

One that reads and writes tables and answers with a status, outputs and messages becomes a function, which may
share a transaction with other calls (group commit); one that sends rows, calls procedures, waits or makes
tables becomes a procedure. Parameters keep their @, so that no column can be taken for one; the return status
beside outputs is an OUT argument named return_status. The T-SQL is kept as the comment.
"""

from dataclasses import replace
from hashlib import md5

from ringlog.gateway.tsql.errors import TsqlError, refused
from ringlog.gateway.tsql.expression import translate_expression
from ringlog.gateway.tsql.names import folded, literal, schema_of
from ringlog.gateway.tsql.plpgsql import STATUS, Writer, quoted
from ringlog.gateway.tsql.scope import Scope
from ringlog.gateway.tsql.statements import CreateProcedure, DropProcedure, Expression, ObjectName, Parameter
from ringlog.gateway.tsql.tokens import Kind
from ringlog.gateway.tsql.types import Type

_SEARCH_PATH = ("online", "log", "ringlog")
"""After the procedure's own schema, as a database of ringlog has it; nothing that everybody may write to."""

_MOST_ARGUMENTS = 99
"""PostgreSQL's functions take 100; one is the return status."""


def create(statement: CreateProcedure, scope: Scope) -> list[str]:
    """The statements that make a procedure. Raises TsqlError with the line and construct that is refused."""
    name = _name(statement.name)
    schema = _schema(statement.name, scope)
    _check_parameters(statement)
    types = {parameter.name: parameter.type for parameter in statement.parameters}
    writer = Writer(name, schema, types, scope.sybase)
    writer.write(statement.body)
    definition = _definition(statement, writer, Scope({}, scope.sybase, database=schema))
    parts = ", ".join(literal(part) for part in (statement.kind, schema, name, definition, statement.source))
    return [f"select tsql.create_procedure({parts})"]


def drop(statement: DropProcedure, scope: Scope) -> list[str]:
    """The statements that drop procedures."""
    if_exists = "true" if statement.if_exists else "false"
    return [
        "select tsql.drop_procedure("
        f"{literal(scope.database)}, {literal(schema_of(name))}, {literal(_name(name))}, {if_exists})"
        for name in statement.names
    ]


def _name(name: ObjectName) -> str:
    if name.is_temporary:
        raise refused(name.name, "a procedure is not temporary: drop it when it is of no use", name.line)
    return folded(name.name, name.line)


def _schema(name: ObjectName, scope: Scope) -> str:
    return folded(schema_of(name) or scope.database or "public", name.line)


def _check_parameters(statement: CreateProcedure) -> None:
    if len(statement.parameters) > _MOST_ARGUMENTS:
        raise refused(
            f"{len(statement.parameters)} parameters",
            f"a function of PostgreSQL has at most {_MOST_ARGUMENTS}, unless it takes a row",
            statement.line,
        )
    seen: set[str] = set()
    for parameter in statement.parameters:
        folded(parameter.name, parameter.line)
        if parameter.name in seen:
            raise TsqlError(
                134,
                f"The variable name '{parameter.name}' has already been declared. Variable names must be "
                "unique within a query batch or stored procedure.",
                parameter.line,
            )
        seen.add(parameter.name)


def _definition(statement: CreateProcedure, writer: Writer, scope: Scope) -> str:
    name = f"{quoted(writer.schema)}.{quoted(writer.name)}"
    arguments = _arguments(statement, writer.name, scope)
    has_outputs = any(parameter.output for parameter in statement.parameters)
    if writer.own_connection:
        kind, returns, end = "procedure", "", f"return_status := {quoted(STATUS)};"
    elif has_outputs:
        kind, returns, end = "function", "", f"return_status := {quoted(STATUS)};"
    else:
        kind, returns, end = "function", "returns integer ", f"return {quoted(STATUS)};"
    if not returns:
        # first: in a procedure no OUT argument may follow one with a default
        arguments.insert(0, "out return_status integer")
    path = dict.fromkeys((writer.schema, *_SEARCH_PATH, "pg_temp"))
    body = _body(statement, writer, end)
    return (
        f"create {kind} {name} ({', '.join(arguments)}) {returns}language plpgsql security definer "
        f"set search_path = {', '.join(quoted(schema) for schema in path)} as {literal(body)}"
    )


def _arguments(statement: CreateProcedure, procedure: str, scope: Scope) -> list[str]:
    arguments = []
    may_be_left_out = False
    for parameter in statement.parameters:
        kind = _bare(parameter.type)
        text = f"{'inout' if parameter.output else 'in'} {quoted(parameter.name)} {kind}"
        if parameter.default is not None:
            may_be_left_out = True
            text += f" default {_default(parameter, parameter.default, scope)}"
        elif may_be_left_out:
            # PostgreSQL wants a default for all that follow one: theirs is the error of T-SQL
            where = f"{literal(procedure)}, {literal(parameter.name)}"
            text += f" default tsql.missing({where}, null::{kind})"
        arguments.append(text)
    return arguments


def _default(parameter: Parameter, default: Expression, scope: Scope) -> str:
    def no_variable(name: str) -> str:
        raise refused(name, "the default of a parameter is a constant", parameter.line)

    tokens = default.tokens
    if len(tokens) == 1 and tokens[0].is_name and not tokens[0].is_word("null"):
        default = Expression((replace(tokens[0], kind=Kind.TEXT),))
    value = translate_expression(default, scope, no_variable, parameter.type)
    return f"({value.sql})::{parameter.type.sql}"


def _bare(type_: Type) -> str:
    """A type as the arguments of functions have it, without length."""
    return type_.pg_name.split("(")[0] + (" with time zone" if "with time zone" in type_.pg_name else "")


def _body(statement: CreateProcedure, writer: Writer, end: str) -> str:
    digest = md5(statement.source.encode(), usedforsecurity=False).hexdigest()
    lines = [
        "",
        "#variable_conflict use_column",
        f"-- compiled from T-SQL, {digest}: its text is the comment",
        "declare",
        *(f"  {quoted(name)} {kind};" for name, kind in writer.declared.items()),
        "begin",
    ]
    for parameter in statement.parameters:
        # a value that is longer is cut, as T-SQL does; arguments of PostgreSQL have no length
        if parameter.type.sql != _bare(parameter.type):
            name = quoted(parameter.name)
            lines.append(f"  {name} := {name}::{parameter.type.sql};")
    return "\n".join([*lines, *writer.lines, f"  {end}", "end", ""])
