"""T-SQL's types and the PostgreSQL types that hold their values."""

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from ringlog.gateway.tsql.errors import TsqlError


class Family(Enum):
    """What a type's values are; the order is T-SQL's precedence, lowest first."""

    BINARY = "binary"
    TEXT = "text"
    GUID = "guid"
    BIT = "bit"
    INTEGER = "integer"
    MONEY = "money"
    DECIMAL = "decimal"
    FLOAT = "float"
    TIME = "time"
    DATE = "date"
    DATETIME = "datetime"
    XML = "xml"


@dataclass(frozen=True)
class Type:
    """A T-SQL type: its own name, and the PostgreSQL type that Rust and SQL know it by.

    `length`: of texts and binaries, None for any; `precision` and `scale`: of decimals and money.
    """

    name: str
    family: Family
    pg_name: str
    oid: int
    length: int | None = None
    precision: int | None = None
    scale: int | None = None

    @property
    def typmod(self) -> int:
        """PostgreSQL's type modifier, as in RowDescription; -1 for none."""
        if self.precision is not None and self.oid == _NUMERIC:
            return ((self.precision << 16) | (self.scale or 0)) + 4
        if self.length is not None and self.oid in (_VARCHAR, _BPCHAR):
            return max(self.length, 1) + 4
        return -1

    @cached_property
    def sql(self) -> str:
        """The type as PostgreSQL's SQL has it, for a cast or a column."""
        if self.oid == _NUMERIC and self.precision is not None:
            return f"numeric({self.precision},{self.scale or 0})"
        if self.oid in (_VARCHAR, _BPCHAR) and self.length is not None:
            return f"{self.pg_name}({max(self.length, 1)})"
        return self.pg_name

    @property
    def is_text(self) -> bool:
        return self.family is Family.TEXT

    @property
    def is_number(self) -> bool:
        return self.family in (Family.BIT, Family.INTEGER, Family.MONEY, Family.DECIMAL, Family.FLOAT)

    @property
    def is_exact(self) -> bool:
        return self.family in (Family.BIT, Family.INTEGER, Family.MONEY, Family.DECIMAL)

    @property
    def is_time(self) -> bool:
        return self.family in (Family.DATE, Family.DATETIME, Family.TIME)

    @property
    def digits(self) -> tuple[int, int] | None:
        """Precision and scale as decimal arithmetic counts them."""
        if self.precision is not None:
            return self.precision, self.scale or 0
        return _INTEGER_DIGITS.get(self.name)


_VARCHAR, _BPCHAR, _NUMERIC = 1043, 1042, 1700
_INTEGER_DIGITS = {"bit": (1, 0), "tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (19, 0)}

BIT = Type("bit", Family.BIT, "boolean", 16)
TINYINT = Type("tinyint", Family.INTEGER, "smallint", 21)
SMALLINT = Type("smallint", Family.INTEGER, "smallint", 21)
INT = Type("int", Family.INTEGER, "integer", 23)
BIGINT = Type("bigint", Family.INTEGER, "bigint", 20)
REAL = Type("real", Family.FLOAT, "real", 700)
FLOAT = Type("float", Family.FLOAT, "double precision", 701)
MONEY = Type("money", Family.MONEY, "numeric", _NUMERIC, precision=19, scale=4)
SMALLMONEY = Type("smallmoney", Family.MONEY, "numeric", _NUMERIC, precision=10, scale=4)
VARCHAR = Type("varchar", Family.TEXT, "varchar", _VARCHAR)
CHAR = Type("char", Family.TEXT, "char", _BPCHAR)
TEXT = Type("text", Family.TEXT, "text", 25)
VARBINARY = Type("varbinary", Family.BINARY, "bytea", 17)
BINARY = Type("binary", Family.BINARY, "bytea", 17)
IMAGE = Type("image", Family.BINARY, "bytea", 17)
DATE = Type("date", Family.DATE, "date", 1082)
TIME = Type("time", Family.TIME, "time", 1083)
DATETIME = Type("datetime", Family.DATETIME, "timestamp", 1114)
SMALLDATETIME = Type("smalldatetime", Family.DATETIME, "timestamp", 1114)
DATETIME2 = Type("datetime2", Family.DATETIME, "timestamp", 1114)
DATETIMEOFFSET = Type("datetimeoffset", Family.DATETIME, "timestamptz", 1184)
GUID = Type("uniqueidentifier", Family.GUID, "uuid", 2950)
XML = Type("xml", Family.XML, "xml", 142)
SYSNAME = Type("sysname", Family.TEXT, "varchar", _VARCHAR, length=128)


def decimal(precision: int, scale: int) -> Type:
    return Type("decimal", Family.DECIMAL, "numeric", _NUMERIC, precision=precision, scale=scale)


def varchar(length: int | None) -> Type:
    return replace(VARCHAR, length=length)


_PLAIN = {
    "bit": BIT,
    "tinyint": TINYINT,
    "utinyint": TINYINT,
    "smallint": SMALLINT,
    "int": INT,
    "integer": INT,
    "usmallint": INT,
    "bigint": BIGINT,
    "uint": BIGINT,
    "uinteger": BIGINT,
    "ubigint": decimal(20, 0),
    "real": REAL,
    "money": MONEY,
    "smallmoney": SMALLMONEY,
    "date": DATE,
    "datetime": DATETIME,
    "smalldatetime": SMALLDATETIME,
    "uniqueidentifier": GUID,
    "xml": XML,
    "text": TEXT,
    "ntext": TEXT,
    "unitext": TEXT,
    "image": IMAGE,
    "sysname": SYSNAME,
    "longsysname": replace(SYSNAME, length=255),
}
_TEXTS = {
    "char": CHAR,
    "character": CHAR,
    "nchar": CHAR,
    "unichar": CHAR,
    "varchar": VARCHAR,
    "nvarchar": VARCHAR,
    "univarchar": VARCHAR,
    "char varying": VARCHAR,
    "character varying": VARCHAR,
    "nchar varying": VARCHAR,
}
_BINARIES = {"binary": BINARY, "varbinary": VARBINARY, "binary varying": VARBINARY}
_FRACTIONS = {
    "time": TIME,
    "bigtime": TIME,
    "datetime2": DATETIME2,
    "bigdatetime": DATETIME2,
    "datetimeoffset": DATETIMEOFFSET,
}


def named(name: str, arguments: list[int | None], line: int, default_length: int = 1) -> Type:
    """The type `name(arguments)`; None among the arguments is `max`.

    `default_length`: of char, varchar, binary and varbinary that say none: 1 where something is declared, 30
    in a conversion. Raises TsqlError: 2715 for a type that does not exist here, 1001 for a length that T-SQL
    does not allow.
    """
    name = name.lower()
    if name in _PLAIN and not arguments:
        return _PLAIN[name]
    if name in _TEXTS or name in _BINARIES:
        of = _TEXTS.get(name) or _BINARIES[name]
        length = arguments[0] if arguments else default_length
        if len(arguments) > 1 or (length is not None and not 1 <= length <= 65535):
            raise _bad_length(name, line)
        return replace(of, length=length)
    if name in ("decimal", "dec", "numeric"):
        digits = arguments[0] if arguments else 18
        scale = arguments[1] if len(arguments) == 2 else 0
        if digits is None or scale is None or len(arguments) > 2 or not 1 <= digits <= 38:
            raise _bad_length(name, line)
        if not 0 <= scale <= digits:
            raise TsqlError(
                192, "The scale must be less than or equal to the precision and must be positive.", line
            )
        return decimal(digits, scale)
    if name == "float":
        digits = arguments[0] if arguments else 53
        if digits is None or len(arguments) > 1 or not 1 <= digits <= 53:
            raise _bad_length(name, line)
        return REAL if digits <= 24 else FLOAT
    if name == "double precision" and not arguments:
        return FLOAT
    if name in _FRACTIONS and len(arguments) <= 1:
        digits = arguments[0] if arguments else 7
        if digits is None or not 0 <= digits <= 7:
            raise _bad_length(name, line)
        if digits < 6:
            of = _FRACTIONS[name]
            zone = " with time zone" if of is DATETIMEOFFSET else ""
            return replace(of, pg_name=f"{'time' if of is TIME else 'timestamp'}({digits}){zone}")
        return _FRACTIONS[name]
    raise TsqlError(2715, f"Cannot find data type {name}: ringlog has no such type.", line, severity=16)


def _bad_length(name: str, line: int) -> TsqlError:
    return TsqlError(1001, f"Length or precision specification of {name} is invalid.", line)
