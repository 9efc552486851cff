"""The text of a batch as a tree of statements."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from ringlog.gateway.tsql import definitions, sql_cursors
from ringlog.gateway.tsql.cursor import Cursor
from ringlog.gateway.tsql.errors import TsqlError, nested_too_deeply, refused, syntax
from ringlog.gateway.tsql.extent import end_of_expression, end_of_query
from ringlog.gateway.tsql.keywords import RESERVED, STATEMENTS, STATEMENTS_OR_NAMES
from ringlog.gateway.tsql.statements import (
    Argument,
    Assign,
    BeginTransaction,
    Block,
    Body,
    Break,
    Commit,
    Continue,
    CreateTable,
    Declare,
    Execute,
    ExecuteText,
    Expression,
    ForgetTable,
    If,
    InsertExecute,
    ObjectName,
    Print,
    Query,
    Raiserror,
    Return,
    Rollback,
    Save,
    SetOption,
    Statement,
    Throw,
    TryCatch,
    Use,
    Variable,
    Waitfor,
    While,
)
from ringlog.gateway.tsql.table_variables import taken_out
from ringlog.gateway.tsql.tokens import Kind, Token, read_tokens

T = TypeVar("T")

DEEPEST = 40
"""Statements inside statements, well below what a reader of JSON takes."""

LONGEST = 2**20
"""Characters of a batch."""


def parse_batch(text: str, quoted_identifiers: bool = True, placeholders: bool = False) -> Body:
    """Reads a whole batch. Raises TsqlError with the line and the token that cannot stand there."""
    if "\0" in text:
        raise syntax("\\0", 1 + text[: text.index("\0")].count("\n"))
    if len(text) > LONGEST:
        raise TsqlError(
            103, f"The batch has {len(text)} characters; {LONGEST} are the most ringlog reads.", 1
        )
    tokens, made = taken_out(read_tokens(text, quoted_identifiers, placeholders))
    tables = [statement for table in made for statement in _Parser(text, table).batch()]
    forgotten = tuple(ForgetTable(made.line, made.table) for made in tables if isinstance(made, CreateTable))
    return (*forgotten, *tables, *_Parser(text, tokens).batch(), *forgotten)


class _Parser(Cursor):
    def __init__(self, text: str, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.text = text
        self.depth = 0
        self.loops = 0

    def batch(self) -> Body:
        statements: list[Statement] = []
        while self._skip_semicolons():
            statements.append(self.statement())
        return tuple(statements)

    def _skip_semicolons(self) -> bool:
        while self.symbol(";"):
            pass
        return not self.at_end

    def statement(self) -> Statement:
        self.depth += 1
        if self.depth > DEEPEST:
            raise nested_too_deeply(self.line)
        try:
            return self._statement()
        finally:
            self.depth -= 1

    def _statement(self) -> Statement:
        token = self.peek()
        if token is None:
            raise self.wrong()
        if token.kind is Kind.WORD:
            word = token.value.lower()
            read = _READERS.get(word)
            if read is not None:
                return read(self)
            if word in _REFUSED:
                raise refused(word, _REFUSED[word], token.line)
            following = self.peek(1)
            if following is not None and following.is_symbol(":") and following.start == token.end:
                raise refused(f"{token.value}:", "there is no goto", token.line)
        # a batch may begin with the bare name of a procedure
        if self.at == 0 and token.is_name and token.value.lower() not in RESERVED:
            return self._execute(token.line)
        raise self.wrong()

    def _expression(self) -> Expression:
        end = end_of_expression(self.tokens, self.at)
        if end == self.at:
            raise self.wrong()
        expression = Expression(tuple(self.tokens[self.at : end]))
        self.at = end
        return expression

    def _expressions(self) -> tuple[Expression, ...]:
        expressions = [self._expression()]
        while self.symbol(","):
            expressions.append(self._expression())
        return tuple(expressions)

    # --- control ---

    def begin(self) -> Statement:
        line = self.advance().line
        if self.word("tran", "transaction"):
            return BeginTransaction(line, self._optional_name())
        if self.word("distributed"):
            raise refused("begin distributed transaction", "there is one server", line)
        if self.word("try"):
            return self._try(line)
        if self.next_is("catch"):
            raise self.wrong()
        body = self._body_until("end", line)
        self.expect_word("end")
        return Block(line, body)

    def _try(self, line: int) -> Statement:
        body = self._body_until("end", line)
        self.expect_word("end")
        self.expect_word("try")
        self._skip_semicolons()
        self.expect_word("begin")
        self.expect_word("catch")
        catch: list[Statement] = []
        while self._skip_semicolons() and not self.next_is("end"):
            catch.append(self.statement())
        self.expect_word("end")
        self.expect_word("catch")
        return TryCatch(line, body, tuple(catch))

    def _body_until(self, word: str, line: int) -> Body:
        statements: list[Statement] = []
        while self._skip_semicolons() and not self.next_is(word):
            statements.append(self.statement())
        if self.at_end or not statements:
            raise self.wrong()
        return tuple(statements)

    def _branch(self) -> Body:
        """One statement; what a block holds, if it is one."""
        self._refuse_empty_branch()
        statement = self.statement()
        return statement.body if isinstance(statement, Block) else (statement,)

    def _refuse_empty_branch(self) -> None:
        if self.at_end or self.next_is_symbol(";"):
            raise self.wrong()

    def if_(self) -> Statement:
        line = self.advance().line
        condition = self._expression()
        then = self._branch()
        otherwise: Body = ()
        # one semicolon may close the statement before else
        if self.next_is_symbol(";") and self.next_is("else", ahead=1):
            self.at += 1
        if self.word("else"):
            otherwise = self._branch()
        return If(line, condition, then, otherwise)

    def while_(self) -> Statement:
        line = self.advance().line
        condition = self._expression()
        self.loops += 1
        body = self._branch()
        self.loops -= 1
        return While(line, condition, body)

    def break_(self) -> Statement:
        line = self.advance().line
        if not self.loops:
            raise TsqlError(135, "Cannot use a BREAK statement outside the scope of a WHILE statement.", line)
        return Break(line)

    def continue_(self) -> Statement:
        line = self.advance().line
        if not self.loops:
            raise TsqlError(
                136, "Cannot use a CONTINUE statement outside the scope of a WHILE statement.", line
            )
        return Continue(line)

    def return_(self) -> Statement:
        line = self.advance().line
        if end_of_expression(self.tokens, self.at) == self.at:
            return Return(line, None)
        return Return(line, self._expression())

    def waitfor(self) -> Statement:
        line = self.advance().line
        if self.next_is("time", "errorexit", "processexit", "mirrorexit"):
            raise refused(f"waitfor {self.advance().value}", "only WAITFOR DELAY is", line)
        self.expect_word("delay")
        return Waitfor(line, self._expression())

    # --- variables ---

    def declare(self) -> Statement:
        line = self.advance().line
        if sql_cursors.is_declaration(self):
            return sql_cursors.declare(self, line)
        variables = [self._variable()]
        while self.symbol(","):
            variables.append(self._variable())
        return Declare(line, tuple(variables))

    def _variable(self) -> Variable:
        line = self.line
        name = self.variable()
        if name.startswith("@@"):
            raise syntax(name, line)
        self.word("as")
        if self.next_is("table"):
            raise refused(f"{name} table", "a temporary table (#name) does the same", line)
        if self.next_is("cursor"):
            raise refused(f"{name} cursor", "a cursor is named without a variable", line)
        type_ = self.type()
        value = self._expression() if self.symbol("=") else None
        return Variable(name, type_, value, line)

    def set_(self) -> Statement:
        line = self.advance().line
        token = self.peek()
        if token is not None and token.kind is Kind.VARIABLE:
            return self._assign(line)
        return SetOption(line, tuple(self._option_words()))

    def _assign(self, line: int) -> Statement:
        target = self.advance()
        operator = self.advance()
        if not operator.is_symbol("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="):
            raise syntax(operator.shown, operator.line)
        value = self._expression()
        if operator.value != "=":

            def mark(symbol: str) -> Token:
                return Token(Kind.SYMBOL, symbol, operator.line, operator.start, operator.end)

            before = (target, mark(operator.value[0]), mark("("))
            value = Expression((*before, *value.tokens, mark(")")))
        if target.value.startswith("@@"):
            raise syntax(target.value, target.line)
        return Assign(line, target.value, value)

    def _option_words(self) -> Iterator[str]:
        while (token := self.peek()) is not None and not token.is_symbol(";"):
            if token.is_word(*STATEMENTS) and not token.is_word("read"):
                return
            self.at += 1
            yield token.value.lower()
            # what follows the value of an option is another statement
            if token.is_word("on", "off") and not self.next_is_symbol(","):
                return

    # --- messages ---

    def print_(self) -> Statement:
        line = self.advance().line
        value, *arguments = self._expressions()
        return Print(line, value, tuple(arguments))

    def raiserror(self) -> Statement:
        line = self.advance().line
        if self.next_is_symbol("("):
            return self._raiserror_in_parentheses(line)
        number = self._expression_of_raiserror()
        message: Expression | None = None
        arguments: tuple[Expression, ...] = ()
        token = self.peek()
        if token is not None and (token.kind is Kind.TEXT or token.kind is Kind.VARIABLE):
            self.at += 1
            message = Expression((token,))
        if self.symbol(","):
            arguments = self._expressions()
        if self.word("with"):
            raise refused("raiserror … with errordata", "there is no extended error data", line)
        return Raiserror(line, number, message, None, None, arguments)

    def _expression_of_raiserror(self) -> Expression:
        start = self.at
        self.symbol("-")
        token = self.advance()
        if token.kind not in (Kind.INTEGER, Kind.VARIABLE):
            self.at -= 1
            raise self.wrong()
        return Expression(tuple(self.tokens[start : self.at]))

    def _raiserror_in_parentheses(self, line: int) -> Statement:
        self.expect_symbol("(")
        message, *more = self._expressions()
        self.expect_symbol(")")
        if len(more) < 2:
            raise self.wrong()
        sets_error = nowait = False
        if self.word("with"):
            while True:
                option = self.advance()
                if not option.is_word("log", "nowait", "seterror"):
                    raise syntax(option.shown, option.line)
                sets_error = sets_error or option.is_word("seterror")
                nowait = nowait or option.is_word("nowait")
                if option.is_word("log"):
                    raise refused("raiserror … with log", "the server's log is not written to", line)
                if not self.symbol(","):
                    break
        severity, state, *arguments = more
        return Raiserror(line, None, message, severity, state, tuple(arguments), sets_error, nowait)

    def throw(self) -> Statement:
        line = self.advance().line
        if self.at_end or end_of_expression(self.tokens, self.at) == self.at:
            return Throw(line)
        values = self._expressions()
        if len(values) != 3:
            raise self.wrong()
        return Throw(line, *values)

    # --- procedures ---

    def execute(self) -> Statement:
        line = self.advance().line
        if self.symbol("("):
            text = self._expression()
            self.expect_symbol(")")
            if self.next_is("at"):
                raise refused("execute … at", "there are no other servers", line)
            return ExecuteText(line, text)
        return self._execute(line)

    def _execute(self, line: int) -> Execute:
        status = None
        token = self.peek()
        if token is not None and token.kind is Kind.VARIABLE:
            if not self.next_is_symbol("=", ahead=1):
                raise refused(
                    f"execute {token.value}",
                    "a procedure is called by its name; a text with execute (…)",
                    line,
                )
            status = self.variable()
            self.at += 1
        procedure = self.object_name()
        if self.next_is_symbol(";") and (number := self.peek(1)) and number.kind is Kind.INTEGER:
            raise refused(f"{procedure};{number.value}", "procedures have no numbers", line)
        arguments: list[Argument] = []
        if not self._at_statement_end():
            arguments.append(self._argument())
            while self.symbol(","):
                arguments.append(self._argument())
        if self.word("with"):
            self.expect_word("recompile")
        return Execute(line, status, procedure, tuple(arguments))

    def _at_statement_end(self) -> bool:
        token = self.peek()
        if token is None or token.is_symbol(";", ")"):
            return True
        return token.is_word("else", "end", "with", *STATEMENTS, *STATEMENTS_OR_NAMES)

    def _argument(self) -> Argument:
        line = self.line
        name = None
        token = self.peek()
        if token is not None and token.kind is Kind.VARIABLE and self.next_is_symbol("=", ahead=1):
            name = self.variable()
            self.at += 1
        if self.word("default"):
            return Argument(name, None, False, line)
        value = self._argument_value()
        output = self.word("output", "out")
        if output and value.tokens[-1].kind is not Kind.VARIABLE:
            raise TsqlError(
                179, "Cannot use the OUTPUT option when passing a constant to a stored procedure.", line
            )
        return Argument(name, value, output, line)

    def _argument_value(self) -> Expression:
        """A literal, a variable, NULL, or a bare word, which is a text."""
        start = self.at
        self.symbol("-", "+")
        signed = self.at > start
        token = self.advance()
        numbers = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.MONEY)
        if token.kind in numbers or token.kind is Kind.VARIABLE:
            return Expression(tuple(self.tokens[start : self.at]))
        if signed or token.kind is Kind.SYMBOL or token.is_word(*_NO_TEXT):
            self.at -= 1
            raise self.wrong()
        if token.is_name and not token.is_word("null"):
            parts = [token.value]
            while self.symbol("."):
                parts.append(self._part())
            text = Token(Kind.TEXT, ".".join(parts), token.line, token.start, self.tokens[self.at - 1].end)
            return Expression((text,))
        return Expression((token,))

    # --- queries ---

    def query(self) -> Statement:
        start = self.at
        end, kind = end_of_query(self.tokens, start)
        self.at = end
        return Query(self.tokens[start].line, kind, tuple(self.tokens[start:end]))

    def insert(self) -> Statement:
        """A query, or an insert of what a procedure gives."""
        start = self.at
        line = self.advance().line
        self.word("into")
        if self.peek() is not None and not self.next_is("top") and not self.next_is_symbol("("):
            table = self.object_name()
            columns: tuple[str, ...] = ()
            if self.next_is_symbol("(") and not self.next_is("select", "with", ahead=1):
                columns = self._plain_names()
            if self.next_is("exec", "execute"):
                executed = self.execute()
                assert isinstance(executed, Execute | ExecuteText)
                return InsertExecute(line, table, columns, executed)
        self.at = start
        return self.query()

    def _plain_names(self) -> tuple[str, ...]:
        return self.names_in_parentheses()

    # --- the session ---

    def use(self) -> Statement:
        line = self.advance().line
        return Use(line, self.name())

    def commit(self) -> Statement:
        line = self.advance().line
        if self.word("tran", "transaction"):
            self._optional_name()
        else:
            self.word("work")
        return Commit(line)

    def rollback(self) -> Statement:
        line = self.advance().line
        if self.word("tran", "transaction"):
            return Rollback(line, self._optional_name())
        self.word("work")
        return Rollback(line, "")

    def save(self) -> Statement:
        line = self.advance().line
        self.expect_word("tran", "transaction")
        name = self._optional_name()
        if not name:
            raise self.wrong()
        return Save(line, name)

    def _optional_name(self) -> str:
        token = self.peek()
        if token is not None and token.kind is Kind.VARIABLE:
            raise refused(f"a transaction named by {token.value}", "the name must be written out", token.line)
        if token is None or not token.is_name or self._at_statement_end():
            return ""
        return "" if token.is_word(*RESERVED) else self.name()

    # --- definitions ---

    def create(self) -> Statement:
        start = self.at
        line = self.advance().line
        kind = "create"
        if self.words("or", "alter"):
            kind = "create or alter"
        if self.next_is("proc", "procedure"):
            return self._procedure(start, line, kind)
        if kind != "create":
            raise refused(f"create or alter {self.advance().shown}", "only procedures are", line)
        return definitions.create(self, line)

    def alter(self) -> Statement:
        start = self.at
        line = self.advance().line
        if self.next_is("proc", "procedure"):
            return self._procedure(start, line, "alter")
        return definitions.alter(self, line)

    def _procedure(self, start: int, line: int, kind: str) -> Statement:
        if start != 0:
            raise TsqlError(
                111, f"'{kind.upper()} PROCEDURE' must be the first statement in a query batch.", line
            )
        self.at += 1
        name, parameters = definitions.procedure_head(self)
        body: list[Statement] = []
        while self._skip_semicolons():
            body.append(self.statement())
        if not body:
            raise self.wrong()
        source = self.text.strip()
        return definitions.CreateProcedure(line, kind, name, parameters, tuple(body), source)

    def definition(self, read: Callable[[Cursor, int], Statement]) -> Statement:
        line = self.advance().line
        return read(self, line)

    def object_to_be_made(self) -> ObjectName:
        return self.object_name()


_NO_TEXT = RESERVED - {
    "null",
    "on",
    "off",
    "all",
    "any",
    "key",
    "user",
    "public",
    "default",
    "index",
    "table",
}

_READERS: dict[str, Callable[[_Parser], Statement]] = {
    "alter": _Parser.alter,
    "begin": _Parser.begin,
    "break": _Parser.break_,
    "close": lambda parser: parser.definition(sql_cursors.close),
    "commit": _Parser.commit,
    "continue": _Parser.continue_,
    "create": _Parser.create,
    "deallocate": lambda parser: parser.definition(sql_cursors.deallocate),
    "declare": _Parser.declare,
    "delete": _Parser.query,
    "drop": lambda parser: parser.definition(definitions.drop),
    "exec": _Parser.execute,
    "execute": _Parser.execute,
    "fetch": lambda parser: parser.definition(sql_cursors.fetch),
    "grant": lambda parser: parser.definition(definitions.grant),
    "if": _Parser.if_,
    "insert": _Parser.insert,
    "open": lambda parser: parser.definition(sql_cursors.open_),
    "print": _Parser.print_,
    "raiserror": _Parser.raiserror,
    "return": _Parser.return_,
    "revoke": lambda parser: parser.definition(definitions.revoke),
    "rollback": _Parser.rollback,
    "save": _Parser.save,
    "select": _Parser.query,
    "set": _Parser.set_,
    "throw": _Parser.throw,
    "truncate": lambda parser: parser.definition(definitions.truncate),
    "update": _Parser.query,
    "use": _Parser.use,
    "values": _Parser.query,
    "waitfor": _Parser.waitfor,
    "while": _Parser.while_,
    "with": _Parser.query,
}

_REFUSED = {
    "backup": "backups are the operator's, with PostgreSQL's tools",
    "bulk": "load with insert, or with freebcp",
    "checkpoint": "PostgreSQL has its own rhythm",
    "dbcc": "there is nothing of that kind to check",
    "deny": "rights are granted and revoked",
    "disable": "there are no triggers",
    "dump": "backups are the operator's, with PostgreSQL's tools",
    "enable": "there are no triggers",
    "goto": "while, break and return do the same",
    "kill": "sessions are the operator's to end",
    "load": "backups are the operator's, with PostgreSQL's tools",
    "merge": "insert and update do the same in two statements",
    "readtext": "select gives the whole text",
    "reconfigure": "the server has its settings file",
    "restore": "backups are the operator's, with PostgreSQL's tools",
    "setuser": "a session has one user",
    "shutdown": "the server is the operator's to stop",
    "updatetext": "update changes the whole text",
    "writetext": "update changes the whole text",
}
