"""Definitions of tables, indexes, views and rights in PostgreSQL's SQL."""

from dataclasses import replace

from ringlog.gateway.tsql.errors import TsqlError, refused
from ringlog.gateway.tsql.expression import translate_condition, translate_expression
from ringlog.gateway.tsql.names import folded, identifier, literal, table
from ringlog.gateway.tsql.query import translate_query
from ringlog.gateway.tsql.scope import ParameterStyle, Scope
from ringlog.gateway.tsql.statements import (
    AlterTable,
    ColumnDefinition,
    CreateIndex,
    CreateTable,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    Expression,
    ForgetTable,
    Grant,
    ObjectName,
    TableConstraint,
    Truncate,
)
from ringlog.gateway.tsql.types import Type

Definition = (
    AlterTable | CreateIndex | CreateTable | CreateView | DropIndex | DropTable | DropView | Grant | Truncate
)

_WIDEST_IDENTITY = 18  # digits that a bigint holds


def definition(statement: Definition, scope: Scope) -> str:
    """The SQL that does what the statement says. Raises TsqlError for what is refused."""
    match statement:
        case CreateTable():
            return _create_table(statement, scope)
        case AlterTable():
            columns = ", ".join(f"add column {_column(column, scope)}" for column in statement.columns)
            return f"alter table {table(statement.table)} {columns}"
        case DropTable():
            names = ", ".join(table(name) for name in statement.tables)
            return f"drop table {'if exists ' if statement.if_exists else ''}{names}"
        case Truncate():
            return f"truncate table only {table(statement.table)} restart identity"
        case CreateIndex():
            return _create_index(statement)
        case DropIndex():
            index = _index_name(statement.name, statement.table, statement.line)
            return f"drop index {_beside(statement.table, index)}"
        case CreateView():
            return _create_view(statement, scope)
        case DropView():
            names = ", ".join(table(name) for name in statement.views)
            return f"drop view {'if exists ' if statement.if_exists else ''}{names}"
        case Grant():
            return _grant(statement)


def _create_table(statement: CreateTable, scope: Scope) -> str:
    seen: set[str] = set()
    for column in statement.columns:
        name = folded(column.name, column.line)
        if name in seen:
            raise TsqlError(
                2705,
                f"Column names in each table must be unique. Column name '{column.name}' in table "
                f"'{statement.table.name}' is specified more than once.",
                column.line,
                severity=16,
            )
        seen.add(name)
    parts = [_column(column, scope) for column in statement.columns]
    parts += [_constraint(constraint, scope) for constraint in statement.constraints]
    if statement.table.is_temporary:
        head = f"create temporary table {identifier(statement.table.name, statement.line)}"
        table(statement.table)
    else:
        head = f"create table {table(statement.table)}"
    return f"{head} ({', '.join(parts)})"


def column_type(type_: Type) -> str:
    """The type a column of this T-SQL type has: domains tell apart what PostgreSQL holds in one."""
    if type_.pg_name in ("timestamp(1)", "timestamp(4)"):
        # digits that mark datetime and smalldatetime
        raise refused(f"a column of {type_.name}{type_.pg_name[9:]}", "take datetime2 without digits", 0)
    return _DOMAINS.get(type_.name, type_.sql)


_DOMAINS = {
    "tinyint": "tsql.tinyint",
    "money": "tsql.money",
    "smallmoney": "tsql.smallmoney",
    "datetime": "tsql.datetime",
    "smalldatetime": "tsql.smalldatetime",
}


def _column(column: ColumnDefinition, scope: Scope) -> str:
    parts = [identifier(column.name, column.line)]
    if column.identity is not None:
        parts.append(_identity(column, column.identity))
    else:
        parts.append(column_type(column.type))
    not_null = column.null is False or column.primary_key
    # a column that says neither takes nulls in SQL Server and takes none in ASE
    if not_null or (column.null is None and scope.sybase):
        parts.append("not null")
    if column.default is not None:
        parts.append(f"default {_constant(column.default, scope, column.type)}")
    if column.check is not None:
        parts.append(f"check ({_check(column.check, scope)})")
    if column.primary_key:
        parts.append("primary key")
    if column.unique:
        parts.append("unique")
    return " ".join(parts)


def _identity(column: ColumnDefinition, identity: tuple[int, int]) -> str:
    digits = column.type.digits
    if digits is None or digits[1] or column.type.name in ("bit", "money", "smallmoney"):
        raise TsqlError(
            2749,
            f"Identity column '{column.name}' must be of data type int, bigint, smallint, tinyint, or "
            "decimal or numeric with a scale of 0.",
            column.line,
            severity=16,
        )
    if column.type.oid == 1700 and digits[0] > _WIDEST_IDENTITY:
        raise refused(f"{column.type.name}({digits[0]}, 0) identity", "it has at most 18 digits", column.line)
    kind = "bigint" if column.type.oid == 1700 else column.type.sql
    seed, increment = identity
    if not increment or max(abs(seed), abs(increment)) >= 2**63:
        raise TsqlError(
            2750,
            f"Identity column '{column.name}' has an invalid seed or increment.",
            column.line,
            severity=16,
        )
    low = f"minvalue {min(seed, -(2**15))}" if seed < 1 or increment < 0 else ""
    return f"{kind} generated always as identity (start with {seed} increment by {increment} {low})"


def _constant(expression: Expression, scope: Scope, target: Type) -> str:
    scope = replace(scope, definition=True)
    return f"({translate_expression(expression, scope, _no_variables(expression), target).sql})"


def _check(expression: Expression, scope: Scope) -> str:
    return translate_condition(expression, replace(scope, definition=True), _no_variables(expression)).sql


def _no_variables(expression: Expression) -> ParameterStyle:
    def style(name: str) -> str:
        raise refused(name, "a definition names no variables", expression.line)

    return style


def _constraint(constraint: TableConstraint, scope: Scope) -> str:
    name = f"constraint {identifier(constraint.name, constraint.line)} " if constraint.name else ""
    if constraint.check is not None:
        return f"{name}check ({_check(constraint.check, scope)})"
    columns = ", ".join(identifier(column, constraint.line) for column in constraint.columns)
    return f"{name}{constraint.kind} ({columns})"


def _index_name(name: str, of: ObjectName, line: int) -> str:
    """Indexes of two tables may have one name in T-SQL; in PostgreSQL an index stands beside the tables."""
    return identifier(f"{of.name}.{name}", line)


def _beside(of: ObjectName, index: str) -> str:
    whole = table(of)
    return f"{whole[: whole.rindex('.')]}.{index}" if "." in whole.split('"')[0] or '".' in whole else index


def _create_index(statement: CreateIndex) -> str:
    columns = ", ".join(
        f"{identifier(name, statement.line)}{' desc nulls last' if descending else ' nulls first'}"
        for name, descending in statement.columns
    )
    unique = "unique " if statement.unique else ""
    # a unique index of T-SQL takes one null
    nulls = " nulls not distinct" if statement.unique else ""
    index = _index_name(statement.name, statement.table, statement.line)
    return f"create {unique}index {index} on {table(statement.table)} ({columns}){nulls}"


def _create_view(statement: CreateView, scope: Scope) -> str:
    def style(name: str) -> str:
        raise refused(name, "a view names no variables", statement.line)

    query = translate_query(statement.query, scope, style)
    if query.assigns or query.kind != "select":
        raise refused("create view", "a view is a select", statement.line)
    columns = ", ".join(identifier(column, statement.line) for column in statement.columns)
    listed = f" ({columns})" if columns else ""
    return f"create view {table(statement.view)}{listed} as {query.sql}"


def _grant(statement: Grant) -> str:
    of_procedures = "execute" in statement.rights
    if of_procedures and len(statement.rights) > 1:
        raise refused("execute with other rights", "an object is a table or a procedure", statement.line)
    kind = "routine" if of_procedures else "table"
    roles = ", ".join(
        "public" if role.lower() == "public" else identifier(role, statement.line) for role in statement.roles
    )
    verb, preposition = ("revoke", "from") if statement.revoke else ("grant", "to")
    rights = ", ".join(statement.rights)
    return f"{verb} {rights} on {kind} {table(statement.object)} {preposition} {roles}"


def forgotten(statement: ForgetTable) -> str:
    """Drops the table of a variable if it is there, without PostgreSQL's word that it is not."""
    name = table(statement.table)
    drop = f"begin if to_regclass({literal(name)}) is not null then drop table {name}; end if; end"
    return f"do {literal(drop)}"
