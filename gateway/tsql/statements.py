"""The statements of T-SQL as a tree.

Queries and expressions stay the tokens they were read from: ringlog.gateway.tsql.expression and .query turn
them into PostgreSQL's SQL, with the variables that are known where they stand.
"""

from dataclasses import dataclass
from typing import TypeAlias

from ringlog.gateway.tsql.tokens import Token
from ringlog.gateway.tsql.types import Type


@dataclass(frozen=True)
class Expression:
    """A value or, where a statement wants one, a condition."""

    tokens: tuple[Token, ...]

    @property
    def line(self) -> int:
        return self.tokens[0].line


@dataclass(frozen=True)
class ObjectName:
    """A name of one to three parts; `database` and `owner` are "" where they are not given.

    A database is a schema of PostgreSQL. `name` of a temporary table begins with #.
    """

    name: str
    owner: str = ""
    database: str = ""
    line: int = 1

    @property
    def is_temporary(self) -> bool:
        return self.name.startswith("#")

    def __str__(self) -> str:
        if self.database:
            return f"{self.database}.{self.owner}.{self.name}"
        return f"{self.owner}.{self.name}" if self.owner else self.name


@dataclass(frozen=True)
class Variable:
    """A variable where it is declared; `name` with its @ in lower case."""

    name: str
    type: Type
    value: Expression | None
    line: int


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure."""

    name: str
    type: Type
    default: Expression | None
    output: bool
    line: int


@dataclass(frozen=True)
class Declare:
    line: int
    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class Assign:
    """`set @name = value`; of `set @name += value` the value is `@name + (value)`."""

    line: int
    name: str
    value: Expression


@dataclass(frozen=True)
class If:
    line: int
    condition: Expression
    then: "Body"
    otherwise: "Body"


@dataclass(frozen=True)
class While:
    line: int
    condition: Expression
    body: "Body"


@dataclass(frozen=True)
class Break:
    line: int


@dataclass(frozen=True)
class Continue:
    line: int


@dataclass(frozen=True)
class Block:
    """`begin … end`"""

    line: int
    body: "Body"


@dataclass(frozen=True)
class Return:
    line: int
    value: Expression | None


@dataclass(frozen=True)
class Print:
    """`print value`; Sybase's `print "format %1!", argument, …` has arguments."""

    line: int
    value: Expression
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Raiserror:
    """`raiserror (message, severity, state, arguments)` has a severity, Sybase's
    `raiserror number ['message'] [, arguments]` has none.

    `message` is a text, or the number of a message; None in Sybase's form without one.
    """

    line: int
    number: Expression | None
    message: Expression | None
    severity: Expression | None
    state: Expression | None
    arguments: tuple[Expression, ...]
    sets_error: bool = False
    """WITH SETERROR: @@error is set whatever the severity"""
    nowait: bool = False
    """WITH NOWAIT: the client is told at once"""


@dataclass(frozen=True)
class Waitfor:
    """`waitfor delay 'hh:mm:ss'`"""

    line: int
    delay: Expression


@dataclass(frozen=True)
class TryCatch:
    line: int
    body: "Body"
    catch: "Body"


@dataclass(frozen=True)
class Throw:
    """`throw`, in a catch block, has none of the three."""

    line: int
    number: Expression | None = None
    message: Expression | None = None
    state: Expression | None = None


@dataclass(frozen=True)
class Argument:
    """An argument of a procedure call. `value` None: the word DEFAULT. `name`: with its @, or None."""

    name: str | None
    value: Expression | None
    output: bool
    line: int


@dataclass(frozen=True)
class Execute:
    line: int
    status: str | None
    """the variable that takes the return status"""
    procedure: ObjectName
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class ExecuteText:
    """`execute ('text' + @variable)`"""

    line: int
    text: Expression


@dataclass(frozen=True)
class Query:
    """`kind`: "select", "insert", "update" or "delete"; of `with …` that of what follows the CTEs."""

    line: int
    kind: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class ForgetTable:
    """The table of a variable is dropped, if it is there: before the batch and behind it."""

    line: int
    table: ObjectName


@dataclass(frozen=True)
class InsertExecute:
    """`insert table [(columns)] execute …`"""

    line: int
    table: ObjectName
    columns: tuple[str, ...]
    execute: "Execute | ExecuteText"


@dataclass(frozen=True)
class DeclareCursor:
    """`declare name cursor for query`"""

    line: int
    name: str
    query: Query


@dataclass(frozen=True)
class OpenCursor:
    line: int
    name: str


@dataclass(frozen=True)
class FetchCursor:
    """`fetch [next from] name into @variable, …`"""

    line: int
    name: str
    into: tuple[str, ...]


@dataclass(frozen=True)
class CloseCursor:
    line: int
    name: str


@dataclass(frozen=True)
class DeallocateCursor:
    line: int
    name: str


@dataclass(frozen=True)
class ColumnDefinition:
    name: str
    type: Type
    null: bool | None
    """None: neither NULL nor NOT NULL is said"""
    identity: tuple[int, int] | None
    """seed and increment"""
    default: Expression | None
    primary_key: bool
    unique: bool
    check: Expression | None
    line: int


@dataclass(frozen=True)
class TableConstraint:
    """`kind`: "primary key" or "unique" over `columns`, or "check"."""

    name: str | None
    kind: str
    columns: tuple[str, ...]
    check: Expression | None
    line: int


@dataclass(frozen=True)
class CreateTable:
    line: int
    table: ObjectName
    columns: tuple[ColumnDefinition, ...]
    constraints: tuple[TableConstraint, ...]


@dataclass(frozen=True)
class DropTable:
    line: int
    tables: tuple[ObjectName, ...]
    if_exists: bool


@dataclass(frozen=True)
class AlterTable:
    """`alter table … add column, …`"""

    line: int
    table: ObjectName
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True)
class CreateIndex:
    line: int
    name: str
    table: ObjectName
    unique: bool
    columns: tuple[tuple[str, bool], ...]
    """name, and whether descending"""


@dataclass(frozen=True)
class DropIndex:
    line: int
    name: str
    table: ObjectName


@dataclass(frozen=True)
class Truncate:
    line: int
    table: ObjectName


@dataclass(frozen=True)
class CreateView:
    line: int
    view: ObjectName
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True)
class DropView:
    line: int
    views: tuple[ObjectName, ...]
    if_exists: bool


@dataclass(frozen=True)
class CreateProcedure:
    """`kind`: "create", "alter" or "create or alter". `source`: the whole batch, for sp_helptext."""

    line: int
    kind: str
    name: ObjectName
    parameters: tuple[Parameter, ...]
    body: "Body"
    source: str


@dataclass(frozen=True)
class DropProcedure:
    line: int
    names: tuple[ObjectName, ...]
    if_exists: bool


@dataclass(frozen=True)
class Grant:
    """`grant` or, with `revoke`, `revoke`: rights as written ("execute", "select", …) on an object."""

    line: int
    revoke: bool
    rights: tuple[str, ...]
    object: ObjectName
    roles: tuple[str, ...]


@dataclass(frozen=True)
class BeginTransaction:
    line: int
    name: str


@dataclass(frozen=True)
class Commit:
    line: int


@dataclass(frozen=True)
class Rollback:
    """`name`: of a savepoint or of the transaction, "" for all of it."""

    line: int
    name: str


@dataclass(frozen=True)
class Save:
    line: int
    name: str


@dataclass(frozen=True)
class Use:
    line: int
    database: str


@dataclass(frozen=True)
class SetOption:
    """`set name value …`: words in lower case, as the gateway's session knows them."""

    line: int
    words: tuple[str, ...]


Statement: TypeAlias = (
    AlterTable
    | Assign
    | BeginTransaction
    | Block
    | Break
    | CloseCursor
    | Commit
    | Continue
    | CreateIndex
    | CreateProcedure
    | CreateTable
    | CreateView
    | DeallocateCursor
    | Declare
    | DeclareCursor
    | DropIndex
    | DropProcedure
    | DropTable
    | DropView
    | Execute
    | ExecuteText
    | FetchCursor
    | ForgetTable
    | Grant
    | If
    | InsertExecute
    | OpenCursor
    | Print
    | Query
    | Raiserror
    | Return
    | Rollback
    | Save
    | SetOption
    | Throw
    | Truncate
    | TryCatch
    | Use
    | Waitfor
    | While
)
Body: TypeAlias = tuple[Statement, ...]
