"""The body of a procedure in PL/pgSQL.

Every variable is named with its @ ("@a"), as no column can be: PL/pgSQL takes neither for the other. What the
compiler adds for itself is named with two ("@@status").

A statement that fails ends the procedure, and all it did is undone. Where the procedure asks for @@error, or
says SET XACT_ABORT OFF, each statement runs in a block of its own, and the procedure goes on after those
errors that T-SQL goes on after. In a TRY block each statement has a block too, so that what was done before
the error stays. A transaction is a block that ends where every path has ended it
(ringlog.gateway.tsql.transactions).
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace

from ringlog.gateway.tsql import transactions, types
from ringlog.gateway.tsql.errors import TsqlError, refused, undeclared
from ringlog.gateway.tsql.expression import translate_condition, translate_expression
from ringlog.gateway.tsql.messages import printed, raised, thrown
from ringlog.gateway.tsql.names import folded, literal, schema_of
from ringlog.gateway.tsql.query import TranslatedQuery, translate_query
from ringlog.gateway.tsql.scope import Scope
from ringlog.gateway.tsql.session import FUNCTIONS
from ringlog.gateway.tsql.statements import (
    Assign,
    BeginTransaction,
    Block,
    Body,
    Break,
    CloseCursor,
    Commit,
    Continue,
    CreateIndex,
    CreateTable,
    DeallocateCursor,
    Declare,
    DeclareCursor,
    DropIndex,
    DropTable,
    Execute,
    Expression,
    FetchCursor,
    If,
    OpenCursor,
    Print,
    Query,
    Raiserror,
    Return,
    Rollback,
    SetOption,
    Statement,
    Throw,
    Truncate,
    TryCatch,
    Variable,
    Waitfor,
    While,
)
from ringlog.gateway.tsql.tables import definition
from ringlog.gateway.tsql.tokens import Kind, Token, variables_of
from ringlog.gateway.tsql.types import Type
from ringlog.gateway.tsql.values import Value, converted

STATUS = "@@status"
"""The variable that holds the return status."""

_BODY = "@@body"
_CALL = "@@call"
_CONDITION = "@@condition"
_CURSOR = "@@cursor"
_DETAIL = "@@detail"
_MESSAGE = "@@message"
_N = "@@n"
_ROW = "@@row"
_TEXT = "@@text"
_TRY = "@@try"
_TRY_SETTING = "tsql.try"

_COUNTED = "row_count"
"""of GET DIAGNOSTICS"""

_FETCH_STATUS = ("@@fetch_status", "@@sqlstatus")
"""SQL Server's and ASE's: 0 after a row; -1 and 2 after the last one."""

_OWN = dict.fromkeys(("@@procid", *_FETCH_STATUS), types.INT)
"""Variables of T-SQL that only procedures know."""

_HARMLESS = {
    ("ansi_nulls", "on"),
    ("ansi_padding", "on"),
    ("ansi_warnings", "on"),
    ("arithabort", "on"),
    ("chained", "off"),
    ("concat_null_yields_null", "on"),
    ("implicit_transactions", "off"),
    ("quoted_identifier", "on"),
    ("rowcount", "0"),
    ("transaction", "isolation", "level", "read", "committed"),
    ("transaction", "isolation", "level", "1"),
}
"""Options that say what is so here anyway."""

_REFUSED = {
    "AlterTable": "alter table",
    "CreateProcedure": "create procedure",
    "CreateView": "create view",
    "DropProcedure": "drop procedure",
    "DropView": "drop view",
    "ExecuteText": "execute (…)",
    "Grant": "grant",
    "InsertExecute": "insert … execute",
    "Save": "save transaction",
    "Use": "use",
}
_WHY = {
    "ExecuteText": "its text would run with the rights of the procedure's owner",
    "Save": "a part of a transaction cannot be taken back alone",
}


@dataclass(frozen=True)
class _Try:
    """A TRY block whose errors go to its CATCH."""

    number: int
    label: str
    """of the block that an error leaves"""
    outer: "_Handler"
    catch: Body
    loops: int
    """how many loops stand around it"""
    calls: bool
    """whether it calls procedures, which then must know of it"""


@dataclass(frozen=True)
class _GoOn:
    """The procedure goes on after an error that ends its statement only."""


_Handler = _Try | _GoOn | None


@dataclass(frozen=True)
class _Segment:
    """Statements that follow, the CATCH block they stand in, and the TRY block around them in the region."""

    statements: Body
    caught: int | None
    guard: TryCatch | None


@dataclass(frozen=True)
class _Site:
    """A COMMIT or ROLLBACK: what follows it outside the region."""

    rest: tuple[_Segment, ...]
    leaves: _Try | None
    """the TRY block to leave after that: the site stands in its CATCH"""


@dataclass
class _Region:
    """A transaction."""

    number: int
    line: int
    loops: int
    sites: list[_Site] = field(default_factory=list)
    results: int = 0
    """the line of a result set inside"""
    rolls_back: bool = False


@dataclass(frozen=True)
class _Place:
    """What a statement stands in."""

    handler: _Handler
    caught: int | None = None
    region: _Region | None = None
    rest: tuple[_Segment, ...] = ()
    """what follows up to the end of the region"""
    guard: TryCatch | None = None
    """the TRY block that began inside the region"""
    leaves: _Try | None = None
    loops: int = 0


@dataclass(frozen=True)
class _Run:
    """Lines of PL/pgSQL that can fail, and what they leave in @@rowcount."""

    lines: tuple[str, ...]
    rows: str | None = "0"
    """None: what it was"""
    calls: bool = False
    """a procedure, whose wrong names are errors for a CATCH block"""


@dataclass(frozen=True)
class _SqlCursor:
    variable: str
    query: Query
    copies: dict[str, str]
    """the variables its query names, and those that hold the values they had when it was declared"""


class Writer:
    """Writes the body of one procedure: `lines` are its statements, `declared` its variables with types."""

    def __init__(self, name: str, schema: str, parameters: dict[str, Type], sybase: bool) -> None:
        self.name = name
        self.schema = schema
        self.types: dict[str, Type | None] = {**parameters, **_OWN}
        self.scope = Scope(self.types, sybase, database=schema)
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.own_connection = False
        """it sends rows, calls procedures, waits or makes tables: nothing for a connection of several"""
        self._temporary: dict[str, None] = {}
        self._variables: dict[str, Variable] = {}
        self._caught: int | None = None
        self._cursors: dict[str, _SqlCursor] = {}
        self._copies: dict[str, str] = {}
        self._columns: dict[str, int] = {}
        """of the cursors opened"""
        self._line = 1
        self._indent = 1
        self._numbers = itertools.count(1)
        self._tells_counts = True
        self._calls = False
        self._tracks_rows = False
        self._tracks_errors = False
        self._marks_try = False

    def write(self, body: Body) -> None:
        _check_names(body, self.name)
        mentioned = set(_variables(body))
        self._calls = transactions.holds(body, Execute) is not None
        self._tracks_rows = "@@rowcount" in mentioned
        # who calls may ask for @@error after a RAISERROR here, or in what is called from here
        tells = transactions.holds(body, Execute, Raiserror) is not None
        self._tracks_errors = "@@error" in mentioned or tells
        self.declared[STATUS] = "integer := 0"
        if self._tracks_rows:
            self.declared["@@rowcount"] = "integer := 0"
        if self._tracks_errors:
            self.declared["@@error"] = "integer := 0"
        self._add(f"<<{quoted(_BODY)}>>")
        with self._block("begin", "end;"):
            goes_on = self._goes_on(body, "@@error" in mentioned)
            self._body(body, _Place(_GoOn() if goes_on else None))
            if not self.lines[-1].strip().endswith(";"):
                self._add("null;")
        if self._marks_try:
            self.declared[_TRY] = f"text := coalesce(current_setting('{_TRY_SETTING}', true), '')"
            self._add(self._set_try(quoted(_TRY)))
        if self._tracks_errors:
            calls = "true" if self._calls else "false"
            self._add(f'perform tsql.leave_error("@@error", {calls});')
        if self._tracks_rows:
            self._add("perform set_config('tsql.rowcount', coalesce(\"@@rowcount\"::text, ''), true);")
        if self._temporary:
            names = _array((literal(name.lower()) for name in self._temporary), "text")
            self._add(f"perform tsql.drop_temporary({names}, true);")

    @staticmethod
    def _goes_on(body: Body, asks: bool) -> bool:
        """Whether the procedure goes on after an error; `asks`: for @@error."""
        for statement in transactions.every(body):
            if isinstance(statement, SetOption) and statement.words[0] == "xact_abort":
                return statement.words[1:] == ("off",)
        return asks

    # --- lines ---

    def _add(self, line: str) -> None:
        self.lines.append("  " * self._indent + line)

    @contextmanager
    def _block(self, start: str, end: str) -> Iterator[None]:
        self._add(start)
        self._indent += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self._add("null;")
        self._indent -= 1
        self._add(end)

    def _run(self, place: _Place, line: int, run: _Run) -> None:
        """A statement and what becomes of its error."""
        lines = [*run.lines]
        if self._tracks_rows and run.rows is not None:
            lines.append(
                'get diagnostics "@@rowcount" = row_count;'
                if run.rows == _COUNTED
                else f'"@@rowcount" := {run.rows};'
            )
        if self._tracks_errors:
            lines.append('"@@error" := 0;')
        if place.handler is None:
            for text in lines:
                self._add(text)
            return
        self.declared[_TEXT] = self.declared[_DETAIL] = "text"
        self._add("begin")
        self._indent += 1
        for text in lines:
            self._add(text)
        self._indent -= 1
        self._add("exception when others then")
        self._indent += 1
        asked = f"{quoted(_TEXT)} = message_text, {quoted(_DETAIL)} = pg_exception_detail"
        self._add(f"get stacked diagnostics {asked};")
        if not isinstance(place.handler, _Try):
            self._add(f"if not tsql.ends_its_statement(sqlstate, {quoted(_DETAIL)}) then raise; end if;")
        elif run.calls:
            self._add("if sqlstate in ('40001', '40P01') then raise; end if;")
        else:
            self._add("if tsql.ends_its_batch(sqlstate) then raise; end if;")
        where = f"{line}, {literal(self.name)}"
        said = f"sqlstate, {quoted(_TEXT)}, {quoted(_DETAIL)}, {where}"
        if isinstance(place.handler, _Try):
            self._add(f"{quoted(_caught(place.handler.number))} := tsql.caught({said});")
            if self._tracks_errors:
                self._add(f'"@@error" := {quoted(_caught(place.handler.number))}."number";')
            self._add(f"exit {quoted(place.handler.label)};")
        else:
            told = f"tsql.tell_caught({said})"
            self._add(f'"@@error" := {told};' if self._tracks_errors else f"perform {told};")
            if self._tracks_rows:
                self._add('"@@rowcount" := 0;')
        self._indent -= 1
        self._add("end;")

    def _none(self, rows: str | None = "0") -> None:
        """A statement that cannot fail and leaves this in @@rowcount."""
        if self._tracks_rows and rows is not None:
            self._add(f'"@@rowcount" := {rows};')
        if self._tracks_errors:
            self._add('"@@error" := 0;')

    # --- statements ---

    def _body(self, statements: Body, place: _Place) -> None:
        at = 0
        while at < len(statements):
            statement = statements[at]
            if isinstance(statement, BeginTransaction) and place.region is None:
                following = statements[at + 1 :]
                end = transactions.end_of_region(following, statement.line)
                self._region(statement, following[: end + 1], place)
                at += end + 2
                continue
            inside = place
            if place.region is not None:
                rest = _Segment(statements[at + 1 :], place.caught, place.guard)
                inside = replace(place, rest=(rest, *place.rest))
            self._statement(statement, inside)
            if place.region is not None and isinstance(statement, Commit | Rollback | Return | Throw):
                return
            at += 1

    def _statement(self, statement: Statement, place: _Place) -> None:
        self._caught = place.caught
        self._line = statement.line
        match statement:
            case Declare():
                self._declare(statement, place)
            case Assign():
                self._assign(statement.name, statement.value, statement.line, place)
            case If():
                self._if(statement, place)
            case While():
                self._while(statement, place)
            case Break() | Continue():
                self._leave_loop(statement, place)
            case Block():
                self._body(statement.body, place)
            case Return():
                self._return(statement, place)
            case Query():
                self._query(statement, place)
            case Execute():
                self._execute(statement, place)
            case Print():
                text = printed(statement, self.scope, self._variable).sql
                line = f"raise notice using message = {text};"
                self._run(place, statement.line, _Run((line,)))
            case Raiserror():
                self._raiserror(statement, place)
            case Throw():
                self._throw(statement, place)
            case Waitfor():
                self.own_connection = True
                delay = translate_expression(statement.delay, self.scope, self._variable).sql
                line = f"perform pg_sleep(tsql.delay({delay}));"
                self._run(place, statement.line, _Run((line,)))
            case TryCatch():
                self._try(statement, place)
            case Commit():
                self._commit(statement, place)
            case Rollback():
                self._rollback(statement, place)
            case SetOption():
                self._option(statement, place)
            case DeclareCursor():
                self._declare_cursor(statement)
            case OpenCursor():
                self._open(statement, place)
            case FetchCursor():
                self._fetch(statement, place)
            case CloseCursor():
                variable = quoted(self._cursor(statement).variable)
                self._run(place, statement.line, _Run((f"close {variable};", f"{variable} := null;")))
            case DeallocateCursor():
                variable = quoted(self._cursor(statement).variable)
                self._add(f"if {variable} is not null then close {variable}; {variable} := null; end if;")
                self._none()
            case CreateTable() | DropTable() | CreateIndex() | DropIndex() | Truncate():
                self._define(statement, place)
            case _:
                kind = type(statement).__name__
                raise refused(
                    _REFUSED.get(kind, kind.lower()), _WHY.get(kind, "not inside a procedure"), statement.line
                )

    def _declare(self, statement: Declare, place: _Place) -> None:
        for variable in statement.variables:
            # a CATCH block may be written twice
            if variable.name in self.types and self._variables.get(variable.name) is not variable:
                raise TsqlError(
                    134,
                    f"The variable name '{variable.name}' has already been declared. "
                    "Variable names must be unique within a query batch or stored procedure.",
                    variable.line,
                )
            folded(variable.name, variable.line)
            self._variables[variable.name] = variable
            self.declared[variable.name] = variable.type.sql
            self.types[variable.name] = variable.type
            if variable.value is not None:
                self._assign(variable.name, variable.value, variable.line, place)

    def _assign(self, name: str, value: Expression, line: int, place: _Place) -> None:
        text = self._value(value, self._type_of(name, line))
        self._run(place, line, _Run((f"{quoted(name)} := {text};",), rows="1"))

    def _condition(self, condition: Expression, place: _Place) -> str:
        """The condition as a statement of PL/pgSQL wants it."""
        text = f"({translate_condition(condition, self.scope, self._variable).sql})"
        if place.handler is None and not self._tracks_errors and not self._tracks_rows:
            return text
        self.declared[_CONDITION] = "boolean"
        # an error of a condition is not one that a procedure goes on after: which branch would it take?
        handler = place.handler if isinstance(place.handler, _Try) else None
        call = _Run((f"{quoted(_CONDITION)} := {text};",))
        self._run(replace(place, handler=handler), condition.line, call)
        return quoted(_CONDITION)

    def _if(self, statement: If, place: _Place) -> None:
        if place.region is not None:
            known = transactions.always(statement.condition)
            if known is not None:
                self._none()
                self._body(statement.then if known else statement.otherwise, place)
                return
        with self._block(f"if {self._condition(statement.condition, place)} then", "end if;"):
            self._body(statement.then, place)
            if statement.otherwise:
                self._indent -= 1
                if self.lines[-1].strip().endswith(" then"):
                    self._add("  null;")
                self._add("else")
                self._indent += 1
                before = len(self.lines)
                self._body(statement.otherwise, place)
                if len(self.lines) == before:
                    self._add("null;")

    def _while(self, statement: While, place: _Place) -> None:
        with self._block("loop", "end loop;"):
            condition = self._condition(statement.condition, place)
            self._add(f"exit when {condition} is not true;")
            self._body(statement.body, replace(place, loops=place.loops + 1, rest=()))

    def _leave_loop(self, statement: Break | Continue, place: _Place) -> None:
        word = "exit" if isinstance(statement, Break) else "continue"
        if place.region is not None and place.loops == place.region.loops:
            raise refused(
                "break" if word == "exit" else "continue",
                f"it would leave the transaction begun in line {place.region.line} open",
                statement.line,
            )
        handler = place.handler
        while isinstance(handler, _Try) and handler.loops == place.loops:
            if handler.calls:
                self._add(self._set_try(self._marked_by(handler.outer)))
            handler = handler.outer
        self._add(f"{word};")

    def _return(self, statement: Return, place: _Place) -> None:
        if statement.value is not None:
            text = self._value(statement.value, types.INT)
            handler = place.handler if isinstance(place.handler, _Try) else None
            # RETURN keeps @@rowcount and @@error as they were
            tracks = self._tracks_errors
            self._tracks_errors = False
            call = _Run((f"{quoted(STATUS)} := coalesce({text}, 0);",), rows=None)
            self._run(replace(place, handler=handler), statement.line, call)
            self._tracks_errors = tracks
        self._add(f"exit {quoted(_BODY)};")

    def _query(self, statement: Query, place: _Place) -> None:
        query = translate_query(statement, self.scope, self._variable)
        makes_table = query.sql.startswith("create ")
        if makes_table:
            self.own_connection = True
        if temporary := _made_by(statement):
            self._temporary[temporary] = None
        if query.assigns:
            self._run(place, statement.line, self._select_into(query))
        elif query.kind == "select" and not makes_table:
            self._rows(query, statement.line, place)
        else:
            lines = (f"{query.sql};", *self._told_count())
            self._run(place, statement.line, _Run(lines, rows=quoted(_N) if self._tells_counts else _COUNTED))

    def _told_count(self) -> tuple[str, ...]:
        if not self._tells_counts:
            return ()
        self.declared[_N] = "bigint"
        return (
            f"get diagnostics {quoted(_N)} = row_count;",
            f"raise notice using errcode = '01R02', message = {quoted(_N)}::text;",
        )

    def _select_into(self, query: TranslatedQuery) -> _Run:
        """SELECT @a = …: the values of the last row, or what the variables were when there is none."""
        self.declared[_ROW] = "record"
        self.declared[_N] = "bigint"
        columns = [f"c{place}" for place in range(1, len(query.assigns) + 1)]
        lines = [f"{quoted(_N)} := 0;"]
        names = ", ".join(columns)
        lines.append(f'for {quoted(_ROW)} in select * from ({query.sql}) as "@@r" ({names}) loop')
        for name, column in zip(query.assigns, columns, strict=True):
            lines.append(f"  {quoted(name)} := {quoted(_ROW)}.{column};")
        lines += [f"  {quoted(_N)} := {quoted(_N)} + 1;", "end loop;"]
        return _Run(tuple(lines), rows=quoted(_N))

    def _rows(self, query: TranslatedQuery, line: int, place: _Place) -> None:
        """A result set: a cursor, for whoever called to fetch from."""
        self.own_connection = True
        if place.region is not None and not place.region.results:
            place.region.results = line
        cursor = quoted(_CURSOR)
        self.declared[_CURSOR] = "refcursor"
        # its errors and its number of rows are known only when it has run, and so is the time it tells
        runs = place.handler is not None or self._tracks_rows or not _keeps(query.sql)
        lines = [f"{cursor} := null;", f"open {cursor} {'scroll' if runs else 'no scroll'} for {query.sql};"]
        rows: str | None = None
        if runs:
            self.declared[_N] = "bigint"
            lines += [
                f"move forward all in {cursor};",
                f"get diagnostics {quoted(_N)} = row_count;",
                f"move absolute 0 in {cursor};",
            ]
            rows = quoted(_N)
        told = f"raise notice using errcode = '01R01', message = {cursor}::text"
        if query.columns is not None:
            told += f", detail = {literal(json.dumps(query.columns, ensure_ascii=False))}"
        self._run(place, line, _Run((*lines, told + ";"), rows=rows))

    def _execute(self, statement: Execute, place: _Place) -> None:
        self.own_connection = True
        name = statement.procedure
        if name.name.lower() == "sp_executesql":
            raise refused("sp_executesql", _WHY["ExecuteText"], statement.line)
        self.declared[_CALL] = "tsql.call_result"
        given = [argument for argument in statement.arguments if argument.value is not None]
        for argument in statement.arguments:
            if argument.value is None and argument.name is None:
                raise refused("default", "name the parameter, or leave it out", argument.line)
        names = _array((literal(a.name or "") for a in given), "text")
        outputs = _array(("true" if a.output else "false" for a in given), "boolean")
        values, kinds = [], []
        for argument in given:
            assert argument.value is not None
            value = translate_expression(argument.value, self.scope, self._variable)
            values.append(f"({value.sql})::text")
            kinds.append(literal(value.type.sql if value.type is not None else "text"))
        parts = [
            literal(self.schema),
            literal(schema_of(name)),
            literal(name.name),
            names,
            outputs,
            _array(values, "text"),
            _array(kinds, "text"),
        ]
        lines = [f"{quoted(_CALL)} := tsql.execute({', '.join(parts)});"]
        if statement.status is not None:
            self._type_of(statement.status, statement.line)
            lines.append(f"{quoted(statement.status)} := {quoted(_CALL)}.status;")
        for place_, argument in enumerate(given, 1):
            if argument.output:
                assert argument.value is not None
                target = argument.value.tokens[-1].value
                kind = self._type_of(target, argument.line)
                lines.append(f"{quoted(target)} := ({quoted(_CALL)}.outputs)[{place_}]::{kind.sql};")
        tracks = self._tracks_errors
        self._tracks_errors = False
        if tracks:
            lines.append(f'"@@error" := {quoted(_CALL)}.error;')
        rows = f"{quoted(_CALL)}.rows" if self._tracks_rows else None
        self._run(place, statement.line, _Run(tuple(lines), rows=rows, calls=True))
        self._tracks_errors = tracks

    def _raiserror(self, statement: Raiserror, place: _Place) -> None:
        self.declared[_MESSAGE] = "tsql.error"
        message = quoted(_MESSAGE)
        said = f"{message}.number, {message}.severity, {message}.state, {message}.message"
        said += f", {statement.line}, {literal(self.name)}"
        told = raised(statement, self.scope, self._variable).sql
        lines = [f"{message} := row({told}, {statement.line}, {literal(self.name)})::tsql.error;"]
        if isinstance(place.handler, _Try):
            lines.append(f"if {message}.severity > 10 then perform tsql.raise({said}); end if;")
        lines.append(f"perform tsql.tell({said});")
        handler = place.handler if isinstance(place.handler, _Try) else None
        self._run(replace(place, handler=handler), statement.line, _Run(tuple(lines)))
        if self._tracks_errors:
            sets = "true" if statement.sets_error else f"{message}.severity > 10"
            self._add(f'"@@error" := case when {sets} then {message}.number else 0 end;')

    def _throw(self, statement: Throw, place: _Place) -> None:
        # nothing goes on after THROW, whatever the procedure asks for
        place_of_error = replace(place, handler=place.handler if isinstance(place.handler, _Try) else None)
        if statement.number is None:
            if place.caught is None:
                raise TsqlError(
                    10704,
                    "To rethrow an error, a THROW statement must be used inside a CATCH block.",
                    statement.line,
                    severity=16,
                )
            caught = quoted(_caught(place.caught))
            fields = ("number", "severity", "state", "message", "line", "procedure")
            said = ", ".join(f"{caught}.{name}" for name in fields)
        else:
            told = thrown(statement, self.scope, self._variable)
            assert told is not None
            self._run(
                place_of_error,
                statement.line,
                _Run(
                    (
                        f'perform tsql.raise("@@r".number, 16, "@@r".state, "@@r".message, {statement.line}, '
                        f'{literal(self.name)}) from (select {told.sql}) as "@@r" (number, message, state);',
                    ),
                    rows=None,
                ),
            )
            return
        self._run(place_of_error, statement.line, _Run((f"perform tsql.raise({said});",), rows=None))

    # --- cursors ---

    def _declare_cursor(self, statement: DeclareCursor) -> None:
        """Its rows are those at the time it is opened; ASE reads variables then too, SQL Server earlier."""
        variable = f"@@cursor {next(self._numbers)}"
        self.declared[variable] = "refcursor"
        for name in _FETCH_STATUS:
            self.declared[name] = "integer := 0"
        copies: dict[str, str] = {}
        if not self.scope.sybase:
            for name in variables_of(statement.query.tokens):
                if not name.startswith("@@"):
                    copies[name] = f"{variable} {len(copies) + 1}"
                    self.declared[copies[name]] = self._type_of(name, statement.line).sql
                    self._add(f"{quoted(copies[name])} := {quoted(name)};")
        self._cursors[statement.name] = _SqlCursor(variable, statement.query, copies)
        self._none()

    def _open(self, statement: OpenCursor, place: _Place) -> None:
        cursor = self._cursor(statement)
        self._copies = cursor.copies
        query = translate_query(cursor.query, self.scope, self._variable)
        self._copies = {}
        if query.assigns or query.kind != "select":
            raise refused(f"cursor {statement.name}", "a cursor reads a select", cursor.query.line)
        if query.columns is None:
            raise refused(f"cursor {statement.name}", "name its columns instead of *", cursor.query.line)
        self._columns[statement.name] = len(query.columns)
        names = ", ".join(f"c{place_}" for place_ in range(1, len(query.columns) + 1))
        line = f'open {quoted(cursor.variable)} no scroll for select * from ({query.sql}) as "@@r" ({names});'
        self._run(place, statement.line, _Run((line,)))

    def _fetch(self, statement: FetchCursor, place: _Place) -> None:
        """A row's values go to the variables; after the last row they keep theirs."""
        self.declared[_ROW] = "record"
        row = quoted(_ROW)
        if len(statement.into) != self._columns.get(statement.name, len(statement.into)):
            raise TsqlError(
                16924,
                "Cursorfetch: The number of variables declared in the INTO list must match that of selected "
                "columns.",
                statement.line,
                severity=16,
            )
        lines = [
            f"fetch next from {quoted(self._cursor(statement).variable)} into {row};",
            "if found then",
        ]
        for place_, name in enumerate(statement.into):
            target = self._type_of(name, statement.line)
            fetched = Value(f"{row}.c{place_ + 1}")
            value = converted(fetched, target, statement.line, sybase=self.scope.sybase)
            lines.append(f"  {quoted(name)} := ({value.sql})::{target.sql};")
        lines += [
            f"  {quoted(_FETCH_STATUS[0])} := 0; {quoted(_FETCH_STATUS[1])} := 0;",
            "else",
            f"  {quoted(_FETCH_STATUS[0])} := -1; {quoted(_FETCH_STATUS[1])} := 2;",
            "end if;",
        ]
        rows = f"case {quoted(_FETCH_STATUS[0])} when 0 then 1 else 0 end"
        self._run(place, statement.line, _Run(tuple(lines), rows=rows))

    def _cursor(self, statement: OpenCursor | FetchCursor | CloseCursor | DeallocateCursor) -> _SqlCursor:
        cursor = self._cursors.get(statement.name)
        if cursor is None:
            raise TsqlError(
                16916,
                f"A cursor with the name '{statement.name}' does not exist.",
                statement.line,
                severity=16,
            )
        return cursor

    def _try(self, statement: TryCatch, place: _Place) -> None:
        number = next(self._numbers)
        calls = transactions.holds(statement.body, Execute) is not None
        handler = _Try(number, f"@@try {number}", place.handler, statement.catch, place.loops, calls)
        caught = quoted(_caught(number))
        self.declared[_caught(number)] = "tsql.error"
        self._add(f"{caught} := null;")
        if calls:
            self._marks_try = True
            self._add(self._set_try("'on'"))
        self._add(f"<<{quoted(handler.label)}>>")
        with self._block("begin", "end;"):
            guard = statement if place.region is not None else None
            if place.guard is not None:
                raise refused("begin transaction", "around two TRY blocks", statement.line)
            self._body(statement.body, replace(place, handler=handler, guard=guard))
        if calls:
            self._add(self._set_try(self._marked_by(place.handler)))
        with self._block(f"if {caught}.number is not null then", "end if;"):
            self._body(statement.catch, replace(place, caught=number))

    def _set_try(self, value: str) -> str:
        return f"perform set_config('{_TRY_SETTING}', {value}, true);"

    def _marked_by(self, handler: _Handler) -> str:
        """What the setting is outside a TRY block, inside this one."""
        while isinstance(handler, _Try):
            if handler.calls:
                return "'on'"
            handler = handler.outer
        return quoted(_TRY)

    # --- transactions ---

    def _region(self, begin: BeginTransaction, statements: Body, place: _Place) -> None:
        number = next(self._numbers)
        region = _Region(number, begin.line, place.loops)
        self.declared[_ended(number)] = "integer"
        self._add(f"<<{quoted(_region(number))}>>")
        self._add("begin")
        self._indent += 1
        self._add("perform tsql.begin_transaction();")
        self._none()
        handler = place.handler
        inside = replace(place, region=region, rest=(), guard=None, leaves=None)
        if isinstance(handler, _Try):
            if isinstance(handler.outer, _Try):
                raise refused("begin transaction", "inside two TRY blocks", begin.line)
            work = f"@@work {number}"
            self._add(f"<<{quoted(work)}>>")
            with self._block("begin", "end;"):
                self._body(statements, replace(inside, handler=replace(handler, label=work)))
            # an error comes here: the CATCH block begins inside the transaction
            if handler.calls:
                self._add(self._set_try(self._marked_by(handler.outer)))
            _check_catch(handler.catch, begin.line)
            self._body(
                handler.catch,
                replace(inside, handler=handler.outer, caught=handler.number, leaves=handler),
            )
        else:
            self._body(statements, inside)
        self._indent -= 1
        self._add("exception when sqlstate 'TS002' then null;")
        self._add("end;")
        if region.rolls_back and region.results:
            raise refused(
                "select",
                f"its rows would be lost with the transaction begun in line {begin.line}",
                region.results,
            )
        self._after_region(region, place)

    def _after_region(self, region: _Region, place: _Place) -> None:
        """What follows each COMMIT and ROLLBACK, now that the transaction has ended."""
        word = "if"
        for number, site in enumerate(region.sites, 1):
            segments = _joined(site.rest)
            if not segments and site.leaves is None:
                continue
            self._add(f"{word} {quoted(_ended(region.number))} = {number} then")
            self._indent += 1
            before = len(self.lines)
            outside = place
            if site.leaves is not None:
                outside = replace(place, handler=site.leaves.outer)
            for segment in segments:
                statements = segment.statements
                if segment.guard is not None:
                    statements = (replace(segment.guard, body=statements),)
                self._body(statements, replace(outside, caught=segment.caught))
            if site.leaves is not None:
                self._add(f"{quoted(_caught(site.leaves.number))} := null;")
                self._add(f"exit {quoted(site.leaves.label)};")
            if len(self.lines) == before:
                self._add("null;")
            self._indent -= 1
            word = "elsif"
        if word == "elsif":
            self._add("end if;")

    def _site(self, region: _Region, place: _Place) -> str:
        region.sites.append(_Site(place.rest, place.leaves))
        return f"{quoted(_ended(region.number))} := {len(region.sites)};"

    def _commit(self, statement: Commit, place: _Place) -> None:
        if place.region is None:
            self._run(
                place,
                statement.line,
                _Run((f"perform tsql.commit_outside({statement.line}, {literal(self.name)});",)),
            )
            return
        self._add("perform tsql.commit_transaction();")
        self._none()
        handler = place.handler
        if isinstance(handler, _Try) and handler.calls and handler.number > place.region.number:
            self._add(self._set_try(self._marked_by(handler.outer)))
        self._add(self._site(place.region, place))
        self._add(f"exit {quoted(_region(place.region.number))};")

    def _rollback(self, statement: Rollback, place: _Place) -> None:
        where = f"{statement.line}, {literal(self.name)}"
        if place.region is None:
            self._run(place, statement.line, _Run((f"perform tsql.rollback_outside({where});",)))
            return
        place.region.rolls_back = True
        self._add(f"perform tsql.roll_back({where});")
        self._none()
        self._add(self._site(place.region, place))
        self._add("raise exception using errcode = 'TS002', message = 'rollback transaction';")

    # --- the rest ---

    def _option(self, statement: SetOption, place: _Place) -> None:
        words = statement.words
        if words[0] == "nocount":
            if self._indent > 2:
                raise refused("set nocount", "it must stand on the procedure's own level", statement.line)
            self._tells_counts = words[1:] != ("on",)
        elif words[0] == "xact_abort":
            if self._indent > 2:
                raise refused("set xact_abort", "it must stand on the procedure's own level", statement.line)
        elif words not in _HARMLESS:
            raise refused(f"set {' '.join(words)}", "it would hold in the procedure only", statement.line)
        self._none()

    def _define(
        self, statement: CreateTable | DropTable | CreateIndex | DropIndex | Truncate, place: _Place
    ) -> None:
        self.own_connection = True
        if isinstance(statement, CreateTable) and statement.table.is_temporary:
            self._temporary[statement.table.name] = None
        if isinstance(statement, DropTable) and all(table.is_temporary for table in statement.tables):
            # a result set may still have to be read from it
            names = _array((literal(table.name.lower()) for table in statement.tables), "text")
            missing = "true" if statement.if_exists else "false"
            self._run(place, statement.line, _Run((f"perform tsql.drop_temporary({names}, {missing});",)))
            return
        self._run(place, statement.line, _Run((f"{definition(statement, self.scope)};",)))

    # --- values ---

    def _type_of(self, name: str, line: int) -> Type:
        type_ = None if name.startswith("@@") else self.types.get(name)
        if type_ is None:
            raise undeclared(name, line)
        return type_

    def _value(self, expression: Expression, target: Type) -> str:
        return translate_expression(expression, self.scope, self._variable, target).sql

    def _variable(self, name: str) -> str:
        """A variable in SQL."""
        if not name.startswith("@@"):
            return quoted(self._copies.get(name, name))
        if name.startswith("@@error_"):
            if self._caught is None:
                raise refused(f"{name[2:]}()", "it is known in a CATCH block only", self._line)
            return f"{quoted(_caught(self._caught))}.{name.removeprefix('@@error_')}"
        match name:
            case "@@rowcount" if self._calls:
                return "tsql.known(\"@@rowcount\", '@@rowcount')"
            case "@@rowcount" | "@@error":
                return quoted(name)
            case "@@fetch_status" | "@@sqlstatus" if name in self.declared:
                return quoted(name)
            case "@@procid":
                whole = f"{quoted(self.schema)}.{quoted(self.name)}"
                return f"{literal(whole)}::regproc::oid::integer"
            case "@@db_name":
                return f"{literal(self.schema)}::varchar"
        if name in _ANSWERS:
            return _ANSWERS[name]
        raise refused(_SHOWN.get(name, name), "a procedure does not know it", self._line)


_ANSWERS = {
    "@@identity": "tsql.last_identity()",
    "@@max_precision": "38",
    "@@suser_name": "tsql.caller()::varchar",
    "@@trancount": "tsql.transaction_count()",
    "@@user_name": "tsql.caller()::varchar",
    "@@xact_state": "least(tsql.transaction_count(), 1)",
}
"""Variables and functions of the session that a procedure can ask PostgreSQL for."""

_SHOWN = {variable: f"{function}()" for function, (variable, _) in FUNCTIONS.items()}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _caught(number: int) -> str:
    return f"@@caught {number}"


def _region(number: int) -> str:
    return f"@@transaction {number}"


def _ended(number: int) -> str:
    return f"@@ended {number}"


def _joined(rest: tuple[_Segment, ...]) -> list[_Segment]:
    """What follows, in as few pieces as TRY and CATCH blocks allow."""
    joined: list[_Segment] = []
    for segment in rest:
        if not segment.statements:
            continue
        if joined and joined[-1].guard is segment.guard and joined[-1].caught == segment.caught:
            joined[-1] = replace(joined[-1], statements=joined[-1].statements + segment.statements)
        else:
            joined.append(segment)
    return joined


def _array(values: Iterable[str], kind: str) -> str:
    return f"array[{', '.join(values)}]::{kind}[]"


def _variables(body: Body) -> Iterator[str]:
    """The variables that expressions and queries in `body` name."""
    for statement in transactions.every(body):
        for token in _tokens(statement):
            if token.kind is Kind.VARIABLE:
                yield token.value


def _check_names(body: Body, procedure: str) -> None:
    """Refuses names that PL/pgSQL could take for a variable of its own where no column has them."""
    for statement in transactions.every(body):
        before: Token | None = None
        for token in _tokens(statement):
            name = token.value.lower()
            qualified = before is not None and before.is_symbol(".")
            if token.kind is Kind.NAME and name.startswith("@"):
                raise refused(f"[{token.value}]", "no name begins with @ in a procedure", token.line)
            if token.is_name and name == "found" and not qualified:
                raise refused(token.value, "write it with its table, as t.found", token.line)
            if (
                token.is_symbol(".")
                and before is not None
                and before.is_name
                and before.value.lower() == procedure
            ):
                raise refused(
                    f"{before.value}.",
                    "name the table otherwise than the procedure, with an alias",
                    token.line,
                )
            before = token


def _tokens(part: object) -> Iterator[Token]:
    """Every token of a statement's own expressions and queries; of the statements inside it none."""
    if isinstance(part, Token):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from _tokens(one)
    elif is_dataclass(part) and not isinstance(part, type):
        for own in fields(part):
            value = getattr(part, own.name)
            if own.name not in ("body", "then", "otherwise", "catch"):
                yield from _tokens(value)


def _made_by(query: Query) -> str | None:
    """The temporary table that a select makes with INTO."""
    tokens = query.tokens
    if query.kind == "select":
        for before, token in itertools.pairwise(tokens):
            if before.is_word("into") and token.is_name and token.value.startswith("#"):
                return token.value
    return None


_CALLED = re.compile(r"'(?:[^']|'')*'|([\w.\"@#]+)\s*\(")
_KEEPS = re.compile(
    r"tsql\.(?!getdate|getutcdate|sys|last_identity|transaction_count|new|rand)\w+"
    r"|(?i:all|and|any|array|as|avg|between|case|cast|char|character|coalesce|count|distinct|else|exists|filter|from"
    r"|group|having|in|join|max|min|not|nullif|numeric|on|operator|or|over|select|sum|then|time|timestamp|values"
    r"|varchar|when|where|with|within|\d+)"
)


def _keeps(sql: str) -> bool:
    """Whether a query gives the same rows whenever it runs on the same tables: it calls nothing that may tell
    the time, the session's state or, as a function of the site's own, anything."""
    return all(_KEEPS.fullmatch(name) for name in _CALLED.findall(sql) if name)


def _check_catch(catch: Body, line: int) -> None:
    """Refuses a CATCH block that leaves the transaction of its TRY block open."""
    if not transactions.ends_everywhere(catch):
        raise refused(
            "begin transaction", "the CATCH block must roll it back, or commit it, on every path", line
        )
