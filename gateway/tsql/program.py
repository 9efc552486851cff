"""The program of a batch: the steps that the gateway's session runs, as JSON."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ringlog.gateway.tsql import procedure, types
from ringlog.gateway.tsql.errors import TsqlError, nested_too_deeply, refused
from ringlog.gateway.tsql.expression import Translated, translate_condition, translate_expression
from ringlog.gateway.tsql.messages import printed, raised, thrown
from ringlog.gateway.tsql.names import OF_SYBASE, SYSTEM_ROWS, identifier, schema_of, table
from ringlog.gateway.tsql.parser import parse_batch
from ringlog.gateway.tsql.query import translate_query
from ringlog.gateway.tsql.scope import Numbered, Scope
from ringlog.gateway.tsql.statements import (
    AlterTable,
    Argument,
    Assign,
    BeginTransaction,
    Block,
    Body,
    Break,
    CloseCursor,
    Commit,
    Continue,
    CreateIndex,
    CreateProcedure,
    CreateTable,
    CreateView,
    DeallocateCursor,
    Declare,
    DeclareCursor,
    DropIndex,
    DropProcedure,
    DropTable,
    DropView,
    Execute,
    ExecuteText,
    Expression,
    FetchCursor,
    ForgetTable,
    Grant,
    If,
    InsertExecute,
    OpenCursor,
    Print,
    Query,
    Raiserror,
    Return,
    Rollback,
    Save,
    SetOption,
    Statement,
    Throw,
    Truncate,
    TryCatch,
    Use,
    Variable,
    Waitfor,
    While,
)
from ringlog.gateway.tsql.tables import definition, forgotten
from ringlog.gateway.tsql.tokens import Kind, read_tokens
from ringlog.gateway.tsql.types import INT, TEXT, Type

Step = dict[str, Any]

LONGEST = 16 * 2**20
"""Characters of all SQL of a program."""


def compile_batch(text: str, settings: str) -> str:
    """The program of a batch as JSON: {"statements": …} or {"error": …}. `settings` is JSON too.

    Everything is refused or compiled before anything runs. gateway/src/program/json.rs reads the steps.
    """
    program: dict[str, Any]
    try:
        program = _Program(json.loads(settings)).compile(text)
    except TsqlError as error:
        program = {"error": _told(error)}
    except RecursionError:
        program = {"error": _told(nested_too_deeply(1))}
    except Exception as error:
        # refused rather than half understood
        name = type(error).__name__
        program = {"error": _told(TsqlError(50000, f"The batch is not understood: {name}: {error}", 1, 16))}
    return json.dumps(program, ensure_ascii=False, separators=(",", ":"))


def _told(error: TsqlError) -> Step:
    return {
        "number": error.number,
        "severity": error.severity,
        "state": error.state,
        "line": error.line,
        "text": error.text,
    }


class _Program:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.quoted_identifiers = bool(settings.get("quoted_identifiers", True))
        self.placeholders = bool(settings.get("placeholders", False))
        self.variables: dict[str, Type | None] = {
            name.lower(): of_oid(*declared) for name, declared in (settings.get("variables") or {}).items()
        }
        self.tables: dict[str, tuple[str, ...]] = {}
        self.scope = Scope(
            self.variables,
            sybase=bool(settings.get("sybase", False)),
            database=settings.get("database", ""),
            tables=self.tables,
        )
        self.catches = 0
        self.length = 0

    def compile(self, text: str) -> dict[str, Any]:
        placeholders = 0
        if self.placeholders:
            tokens = read_tokens(text, self.quoted_identifiers, placeholders=True)
            placeholders = sum(token.value.startswith("?") for token in tokens if token.kind is Kind.VARIABLE)
            self.variables |= {f"?{number}": None for number in range(1, placeholders + 1)}
        body = parse_batch(text, self.quoted_identifiers, self.placeholders)
        return {"statements": self.body(body), "placeholders": placeholders}

    def body(self, body: Body) -> list[Step]:
        return [step for statement in body for step in self.statement(statement)]

    def statement(self, statement: Statement) -> Iterable[Step]:
        if isinstance(statement, Block):
            return self.body(statement.body)
        if isinstance(statement, Declare):
            return [step for variable in statement.variables for step in self.declare(variable)]
        step = self.step(statement)
        self.length += len(step.get("sql", ""))
        if self.length > LONGEST:
            raise nested_too_deeply(statement.line)
        return [{"do": step.pop("do"), "line": statement.line, **step}]

    def declare(self, variable: Variable) -> Iterable[Step]:
        if variable.name in self.variables:
            raise TsqlError(
                134,
                f"The variable name '{variable.name}' has already been declared. Variable names must be "
                "unique within a query batch or stored procedure.",
                variable.line,
            )
        self.variables[variable.name] = variable.type
        yield {
            "do": "declare",
            "line": variable.line,
            "name": variable.name,
            "oid": variable.type.oid,
            "typmod": variable.type.typmod,
        }
        if variable.value is not None:
            yield from self.statement(Assign(variable.line, variable.name, variable.value))

    def step(self, statement: Statement) -> Step:
        match statement:
            case Query():
                query = translate_query(statement, self.scope)
                return {
                    "do": "query",
                    "sql": query.sql,
                    "variables": query.variables,
                    "columns": query.columns,
                    "kind": query.kind,
                    "assigns": query.assigns,
                    "into": query.into,
                }
            case Assign():
                target = self._declared(statement.name, statement.line)
                return {"do": "assign", "name": statement.name, **self.value(statement.value, target)}
            case If():
                return {
                    "do": "if",
                    **self.condition(statement.condition),
                    "then": self.body(statement.then),
                    "else": self.body(statement.otherwise),
                }
            case While():
                return {
                    "do": "while",
                    **self.condition(statement.condition),
                    "body": self.body(statement.body),
                }
            case Break():
                return {"do": "break"}
            case Continue():
                return {"do": "continue"}
            case Return():
                value = {} if statement.value is None else self.value(statement.value, INT)
                return {"do": "return", **value}
            case Print():
                literal = _literal(statement.value, TEXT, self.scope.sybase)
                if literal is not None and not statement.arguments:
                    return {"do": "print", **literal}
                return {"do": "print", **_selected(printed(statement, self.scope))}
            case Raiserror():
                return {
                    "do": "raise",
                    **_selected(raised(statement, self.scope)),
                    "sets_error": statement.sets_error,
                    "nowait": statement.nowait,
                }
            case Throw():
                return self.throw(statement)
            case Waitfor():
                delay = translate_expression(statement.delay, self.scope)
                return {
                    "do": "waitfor",
                    "sql": f"select tsql.delay({delay.sql})",
                    "variables": delay.variables,
                }
            case TryCatch():
                return self.try_catch(statement)
            case Execute():
                return self.execute(statement)
            case ExecuteText():
                return {"do": "execute_text", **self.value(statement.text, TEXT)}
            case InsertExecute():
                return self.insert_execute(statement)
            case CloseCursor() | DeallocateCursor() | DeclareCursor() | FetchCursor() | OpenCursor():
                raise refused(
                    f"cursor {statement.name}", "cursors are for procedures; a batch selects", statement.line
                )
            case ForgetTable():
                return self.ddl(forgotten(statement))
            case Use():
                return {"do": "use", "database": statement.database}
            case SetOption():
                return {"do": "set", "words": statement.words}
            case BeginTransaction():
                return {"do": "begin", "name": statement.name}
            case Commit():
                return {"do": "commit"}
            case Rollback():
                return {"do": "rollback", "name": statement.name}
            case Save():
                return {"do": "save", "name": statement.name}
            case CreateProcedure():
                return self.define(
                    statement.kind,
                    str(statement.name),
                    procedure.create(statement, self.scope),
                    statement.source,
                )
            case DropProcedure():
                names = ", ".join(str(name) for name in statement.names)
                return self.define("drop", names, procedure.drop(statement, self.scope), "")
            case (
                AlterTable()
                | CreateIndex()
                | CreateTable()
                | CreateView()
                | DropIndex()
                | DropTable()
                | DropView()
                | Grant()
                | Truncate()
            ):
                if isinstance(statement, CreateTable):
                    self.note(statement)
                return self.ddl(definition(statement, self.scope))
            case Block() | Declare():
                raise AssertionError(f"{statement} is several steps")

    def note(self, made: CreateTable) -> None:
        """What an insert that names no columns must know of a table."""
        if any(column.identity is not None for column in made.columns):
            others = [column.name for column in made.columns if column.identity is None]
            self.tables[table(made.table)] = tuple(others)

    @staticmethod
    def ddl(sql: str) -> Step:
        return {"do": "query", "sql": sql, "variables": (), "columns": None, "kind": "ddl", "assigns": ()}

    @staticmethod
    def define(kind: str, name: str, sql: list[str], text: str) -> Step:
        return {
            "do": "define",
            "kind": kind,
            "object": "procedure",
            "name": name,
            "statements": sql,
            "text": text,
        }

    def throw(self, statement: Throw) -> Step:
        if statement.number is None and not self.catches:
            raise TsqlError(
                10704,
                "To rethrow an error, a THROW statement must be used inside a CATCH block.",
                statement.line,
            )
        value = thrown(statement, self.scope)
        return {"do": "throw"} if value is None else {"do": "throw", **_selected(value)}

    def try_catch(self, statement: TryCatch) -> Step:
        body = self.body(statement.body)
        self.catches += 1
        catch = self.body(statement.catch)
        self.catches -= 1
        return {"do": "try", "body": body, "catch": catch}

    def execute(self, statement: Execute) -> Step:
        if statement.status is not None:
            self._declared(statement.status, statement.line)
        schema = schema_of(statement.procedure)
        name = statement.procedure.name
        return {
            "do": "execute",
            "status": statement.status,
            "procedure": f"{schema}.{name}" if schema else name,
            "arguments": [self.argument(argument) for argument in statement.arguments],
        }

    def insert_execute(self, statement: InsertExecute) -> Step:
        """Of a system procedure, which is a function of PostgreSQL that gives rows."""
        execute = statement.execute
        if not isinstance(execute, Execute) or (function := self._system_rows(execute)) is None:
            raise refused(
                "insert … execute",
                "that is for system procedures; run the procedure's query, or select into a table",
                statement.line,
            )
        style = Numbered()
        arguments = []
        for argument in execute.arguments:
            if argument.value is None or argument.output:
                raise refused("insert … execute", "it takes no default and no output", argument.line)
            value = translate_expression(argument.value, self.scope, style).sql
            named = argument.name and f"{identifier(argument.name.removeprefix('@'), argument.line)} => "
            arguments.append(f"{named or ''}{value}")
        into = table(statement.table)
        columns = ", ".join(identifier(column, statement.line) for column in statement.columns)
        rows = f"select * from {function}({', '.join(arguments)})"
        return {
            "do": "query",
            "sql": f"insert into {into}{f' ({columns})' if columns else ''} {rows}",
            "variables": style.variables,
            "columns": None,
            "kind": "insert",
            "assigns": (),
            "into": into,
        }

    def _system_rows(self, execute: Execute) -> str | None:
        name = execute.procedure.name.lower()
        if name not in SYSTEM_ROWS or schema_of(execute.procedure) not in ("", "sys") or execute.status:
            return None
        schema = "sybsystemprocs" if self.scope.sybase and name in OF_SYBASE else "sys"
        return f"{schema}.{identifier(name, execute.line)}"

    def argument(self, argument: Argument) -> Step:
        step: Step = {"name": argument.name, "output": None, "default": argument.value is None}
        if argument.value is not None:
            step |= self.value(argument.value, None)
            if argument.output:
                step["output"] = argument.value.tokens[-1].value
        return step

    def value(self, expression: Expression, target: Type | None) -> Step:
        if (literal := _literal(expression, target, self.scope.sybase)) is not None:
            return literal
        return _selected(translate_expression(expression, self.scope, target=target))

    def condition(self, expression: Expression) -> Step:
        return _selected(translate_condition(expression, self.scope))

    def _declared(self, name: str, line: int) -> Type | None:
        if name.startswith("@@"):
            raise TsqlError(102, f"Incorrect syntax near '{name}'.", line)
        return self.scope.type_of(name, line)


def _selected(value: Translated) -> Step:
    return {"sql": f"select {value.sql}", "variables": value.variables}


def _literal(expression: Expression, target: Type | None, sybase: bool) -> Step | None:
    """A value that is written out and needs no converting: then PostgreSQL is not asked for it."""
    if len(expression.tokens) != 1:
        return None
    (token,) = expression.tokens
    if token.is_word("null"):
        return {"value": None, "type": "text"}
    if token.kind is Kind.TEXT and (target is None or (target.is_text and target.name != "char")):
        text = " " if sybase and not token.value else token.value
        fits = target is None or target.length is None or len(text) <= target.length
        return {"value": text, "type": "text"} if fits else None
    if token.kind is Kind.INTEGER and (target is None or target.name in _HIGHEST):
        highest = _HIGHEST["int" if target is None else target.name]
        if len(token.value) <= 20 and int(token.value) <= highest:
            return {"value": int(token.value), "type": "int"}
    return None


_HIGHEST = {"tinyint": 255, "smallint": 2**15 - 1, "int": 2**31 - 1, "bigint": 2**31 - 1}

_OF_OID = {
    16: types.BIT,
    17: types.VARBINARY,
    20: types.BIGINT,
    21: types.SMALLINT,
    23: types.INT,
    25: types.TEXT,
    142: types.XML,
    700: types.REAL,
    701: types.FLOAT,
    1042: types.CHAR,
    1043: types.VARCHAR,
    1082: types.DATE,
    1083: types.TIME,
    1114: types.DATETIME2,
    1184: types.DATETIMEOFFSET,
    2950: types.GUID,
}


def of_oid(oid: int, typmod: int) -> Type | None:
    """The T-SQL type of a variable that the session declared; None where the type is PostgreSQL's alone."""
    if oid == 1700:
        packed = typmod - 4
        return types.decimal(packed >> 16 & 0xFFFF, packed & 0x7FF) if packed >= 0 else None
    known = _OF_OID.get(oid)
    if known is not None and oid in (1042, 1043) and typmod > 4:
        return replace(known, length=typmod - 4)
    return known
