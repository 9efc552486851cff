"""The objects of an old database, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ringlog.adoption.server.names import quoted

NO_SCALE = -1
"""The scale of a time whose type has none, as ASE's."""


@dataclass(frozen=True)
class OldColumn:
    """A column; `length` in bytes."""

    name: str
    type: str
    length: int
    precision: int
    scale: int
    nullable: bool
    default: str = ""
    """a T-SQL expression"""
    computed: str = ""
    """a T-SQL expression"""
    identity: tuple[int, int] | None = None
    """its first value and its step"""
    last: int | None = None
    """the last value that an identity gave, where the server reports it"""
    code_page: str = ""
    """of a char, varchar or text where it has one of its own: SQL Server's number"""
    collation: str = ""
    """by which its texts are compared, where it is not that of its database"""
    description: str = ""

    @property
    def declared(self) -> str:
        """Its type as in `create table`."""
        if self.type in ("varchar", "char", "binary", "varbinary"):
            return f"{self.type}({'max' if self.length < 0 else self.length})"
        if self.type in ("nvarchar", "nchar", "univarchar", "unichar"):
            return f"{self.type}({'max' if self.length < 0 else self.length // 2})"
        if self.type in ("decimal", "numeric"):
            return f"{self.type}({self.precision}, {self.scale})"
        if self.type in ("datetime2", "datetimeoffset", "time") and self.scale != NO_SCALE:
            return f"{self.type}({self.scale})"
        return self.type


@dataclass(frozen=True)
class Check:
    """A condition of a table: of a CHECK constraint, or of a rule bound to a column."""

    name: str
    condition: str


@dataclass(frozen=True)
class Reference:
    """A foreign key."""

    name: str
    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]
    on_delete: str = ""
    """CASCADE, SET NULL, SET DEFAULT; empty: it is refused"""
    on_update: str = ""
    owner: str = ""
    """of the table that it refers to, where the server reports it"""


@dataclass(frozen=True)
class OldKey:
    """A PRIMARY KEY or UNIQUE constraint."""

    name: str
    """"" where the server has made its name"""
    columns: tuple[str, ...]
    primary: bool = False


@dataclass(frozen=True)
class OldIndex:
    """An index that is no key."""

    name: str
    columns: tuple[str, ...]
    """as in `create index`"""
    unique: bool = False
    condition: str = ""
    """of the rows that it has"""


@dataclass(frozen=True)
class OldTable:
    name: str
    columns: tuple[OldColumn, ...]
    keys: tuple[tuple[str, ...], ...]
    """columns of its unique indexes, those of constraints too, the primary key first"""
    rows: int
    checks: tuple[Check, ...] = ()
    references: tuple[Reference, ...] = ()
    indexes: tuple[OldIndex, ...] = ()
    constraints: tuple[OldKey, ...] = ()
    owner: str = ""
    """its schema at the old server"""
    description: str = ""
    there: str = ""
    """its name at the old server; empty: the same as here"""
    database: str = ""
    """its database at the old server; empty: the session's"""

    def column(self, name: str) -> OldColumn | None:
        return next((column for column in self.columns if column.name == name), None)

    @property
    def qualified_name(self) -> str:
        """Its name in a text for the old server."""
        parts = (self.database, self.owner, self.there or self.name)
        return ".".join(quoted(part) for part in parts if part)

    @property
    def bytes(self) -> int:
        """Approximate bytes of the rows, by the width of the columns."""
        return self.rows * sum(max(column.length, 8) for column in self.columns)


@dataclass(frozen=True)
class Module:
    """A procedure, view, trigger or function with its T-SQL, which is "" when the server does not give it."""

    kind: str
    name: str
    text: str
    quoted: bool | None = None
    """whether "x" is a name in it; None: as the server's dialect has it"""
    owner: str = ""
    refused: str = ""
    """why it cannot be migrated as it is"""
    database: str = ""
    """its database at the old server, in small letters"""


@dataclass(frozen=True)
class Grant:
    """A right of a user, a role or public."""

    who: str
    right: str
    what: str
    """a table, view or procedure; empty: the whole database"""
    columns: tuple[str, ...] = ()
    """none: all of it"""
    state: str = "granted"
    """granted, grantable, or denied"""


@dataclass(frozen=True)
class Member:
    role: str
    who: str


@dataclass(frozen=True)
class Old:
    version: str
    is_ase: bool
    tables: tuple[OldTable, ...]
    modules: tuple[Module, ...]
    grants: tuple[Grant, ...]
    logins: tuple[str, ...]
    unread: tuple[str, ...] = field(default=())
    """queries that failed, with the server's error"""
    members: tuple[Member, ...] = ()
    users: tuple[tuple[str, str], ...] = ()
    """users of the database, each with its login, which is "" when it has none"""
    hidden: tuple[str, ...] = ()
    """objects that would have the same name here, with the reason"""
    charset: str = ""
    """the character set of its char, varchar and text, by the server's name"""
    left: tuple[str, ...] = ()
    """objects and properties that are not migrated, with the reason"""
    database: str = ""
    """its name there, in small letters"""
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """the names here, by owner and name in small letters"""
    begins: Mapping[str, str] = field(default_factory=dict)
    """the database that each login begins in, in small letters"""
    collation: str = ""
    """the default one that it has here; empty: a binary one"""
