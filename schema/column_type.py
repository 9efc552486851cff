"""The types of columns: their names in a facility file, and their types in PostgreSQL, numpy and Arrow."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy.types import TypeEngine

VARCHAR_LENGTH = 10_485_760  # PostgreSQL's MaxAttrSize
NUMERIC_PRECISION = 38
"""The most digits that TDS carries."""


class Kind(StrEnum):
    REAL = "real"
    DOUBLE = "double"
    INT = "int"
    SMALLINT = "smallint"
    BIGINT = "bigint"
    BIT = "bit"
    NUMERIC = "numeric"
    DATETIME = "datetime"
    VARCHAR = "varchar"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """The forms of a kind outside a facility file. `oid`, `array_oid`: of PostgreSQL's pg_type.dat; None, if
    no column is an array of this kind. `width`: bytes in PostgreSQL; None is variable. `arrow`: a function of
    pyarrow and its arguments. `numpy`, `array`: the codes of numpy's types and of Python's arrays; only
    numbers of a fixed width have them."""

    sql: str
    oid: int
    array_oid: int | None
    arrow: tuple[str, ...]
    width: int | None = None
    numpy: str | None = None
    array: str | None = None


_ELSEWHERE = {
    Kind.REAL: _Elsewhere("REAL", 700, 1021, ("float32",), 4, "f4", "f"),
    Kind.DOUBLE: _Elsewhere("DOUBLE PRECISION", 701, 1022, ("float64",), 8, "f8", "d"),
    Kind.INT: _Elsewhere("INTEGER", 23, 1007, ("int32",), 4, "i4", "i"),
    Kind.SMALLINT: _Elsewhere("SMALLINT", 21, 1005, ("int16",), 2, "i2", "h"),
    Kind.BIGINT: _Elsewhere("BIGINT", 20, 1016, ("int64",), 8, "i8", "q"),
    Kind.BIT: _Elsewhere("BOOLEAN", 16, 1000, ("bool_",), 1, "?", "B"),
    Kind.NUMERIC: _Elsewhere("NUMERIC", 1700, None, ("decimal128",)),
    Kind.DATETIME: _Elsewhere("TIMESTAMP WITH TIME ZONE", 1184, None, ("timestamp", "us", "UTC"), 8),
    Kind.VARCHAR: _Elsewhere("VARCHAR", 1043, 1015, ("string",)),
    Kind.TEXT: _Elsewhere("TEXT", 25, None, ("string",)),
}
NUMBERS = tuple(kind for kind, elsewhere in _ELSEWHERE.items() if elsewhere.numpy)
"""Kinds of numbers of a fixed width, a bit being 0 or 1."""

_NAMED = {elsewhere.sql.lower(): kind for kind, elsewhere in _ELSEWHERE.items()} | {
    "character varying": Kind.VARCHAR
}
_POSTGRESQL = re.compile(r"(?P<name>[a-z ]+)(\((?P<first>\d+)(,(?P<second>\d+))?\))?(?P<array>\[\])?", re.A)
_TEXT = re.compile(r"(?P<kind>[a-z]+)(\((?P<first>[1-9]\d*|0)(,(?P<second>\d+))?\))?(?P<array>\[\])?", re.A)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type. Its text is the one of a facility file: real, numeric(10,2), varchar(40), double[]."""

    kind: Kind
    length: int | None = None
    """the most characters of a varchar; None: its size is not known, as a numeric's without digits"""
    digits: int | None = None
    """of a numeric"""
    scale: int | None = None
    """digits of a numeric behind the point"""
    is_array: bool = False
    """whether it is a waveform"""

    @classmethod
    def of(cls, text: str) -> "ColumnType":
        """The type that a text names. Raises ValueError for any other text."""
        return _of(text)

    @classmethod
    def of_postgresql(cls, name: str) -> "ColumnType | None":
        """The type that PostgreSQL's format_type writes so, with its size or without it; None for one that no
        column of a facility has."""
        found = _POSTGRESQL.fullmatch(name)
        kind = _NAMED.get(found["name"]) if found else None
        if found is None or kind is None:
            return None
        array = found["array"] is not None
        first, second = (None if size is None else int(size) for size in (found["first"], found["second"]))
        if array and _ELSEWHERE[kind].array_oid is None:
            return None
        match kind:
            case Kind.VARCHAR:
                return ColumnType(kind, length=first, is_array=array)
            case Kind.NUMERIC:
                return ColumnType(kind, digits=first, scale=second)
        return ColumnType(kind, is_array=array)

    def __str__(self) -> str:
        return f"{self.kind}{self._size(',')}{'[]' if self.is_array else ''}"

    def _size(self, comma: str) -> str:
        sizes = (size for size in (self.length, self.digits, self.scale) if size is not None)
        size = comma.join(map(str, sizes))
        return f"({size})" if size else ""

    @property
    def element(self) -> "ColumnType":
        """The type of a waveform's points; of a single value its own."""
        return replace(self, is_array=False)

    @property
    def width(self) -> int | None:
        """Bytes in a row of PostgreSQL; None is variable."""
        return None if self.is_array else _ELSEWHERE[self.kind].width

    @property
    def bits(self) -> int | None:
        """The bits of a whole number, or of a waveform's points; None for other types."""
        return 8 * (_ELSEWHERE[self.kind].width or 0) if self.is_integer else None

    @property
    def is_integer(self) -> bool:
        """Whether it, or a waveform's point, is a whole number of more than one bit."""
        return self.kind in (Kind.SMALLINT, Kind.INT, Kind.BIGINT)

    @property
    def is_float(self) -> bool:
        """Whether it has NaN and infinities, by itself or in a waveform."""
        return self.kind in (Kind.REAL, Kind.DOUBLE)

    @property
    def is_text(self) -> bool:
        """Whether it, or a waveform's point, is a text."""
        return self.kind in (Kind.VARCHAR, Kind.TEXT)

    @property
    def is_fixed(self) -> bool:
        """Whether it is a single number of a fixed width, a bit being 0 or 1."""
        return self.kind in NUMBERS and not self.is_array

    @property
    def is_number(self) -> bool:
        """Whether it is a single number, a bit being 0 or 1."""
        return self.is_fixed or self.kind is Kind.NUMERIC

    @property
    def is_packed(self) -> bool:
        """Whether it is a waveform of numbers, which is sent packed; one of texts is sent as text."""
        return self.is_array and self.kind in NUMBERS

    @property
    def sql(self) -> str:
        """Its SQL, as SQLAlchemy writes it: DOUBLE PRECISION[], NUMERIC(10, 2)."""
        return f"{_ELSEWHERE[self.kind].sql}{self._size(', ')}{'[]' if self.is_array else ''}"

    @property
    def oid(self) -> int:
        """The number of its type in PostgreSQL."""
        oid = _ELSEWHERE[self.kind].array_oid if self.is_array else _ELSEWHERE[self.kind].oid
        assert oid is not None, f"no column is {self}"
        return oid

    @property
    def sqlalchemy(self) -> "TypeEngine[Any]":
        return _sqlalchemy(self)

    @property
    def numpy(self) -> str:
        """The code of numpy's type of it, or of a waveform's points, in the machine's byte order."""
        code = _ELSEWHERE[self.kind].numpy
        assert code is not None, f"{self} is not packed"
        return code

    @property
    def octets(self) -> str:
        """As `numpy`, with a bit as a byte of 0 or 1: PostgreSQL's binary form of it."""
        return "u1" if self.kind is Kind.BIT else self.numpy

    @property
    def array(self) -> str:
        """The code of Python's arrays for it, or for a waveform's points."""
        code = _ELSEWHERE[self.kind].array
        assert code is not None, f"{self} is not packed"
        return code

    @property
    def arrow(self) -> "pa.DataType":
        import pyarrow as pa

        if self.is_array:
            return pa.list_(self.element.arrow)
        name, *arguments = _ELSEWHERE[self.kind].arrow
        found: pa.DataType = getattr(pa, name)(
            *((self.digits, self.scale) if self.kind is Kind.NUMERIC else arguments)
        )
        return found


TYPES = {
    column_type.oid: column_type
    for kind, elsewhere in _ELSEWHERE.items()
    for column_type in (ColumnType(kind), ColumnType(kind, is_array=True))
    if elsewhere.array_oid is not None or not column_type.is_array
}
"""The types by their OIDs, without sizes."""


@cache
def _sqlalchemy(column_type: ColumnType) -> "TypeEngine[Any]":
    # SQLAlchemy caches its SQL in the object: one per column would be a tenth of the first start's Python
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql

    if column_type.is_array:
        return postgresql.ARRAY(column_type.element.sqlalchemy, dimensions=1)
    match column_type.kind:
        case Kind.VARCHAR:
            return sa.VARCHAR(column_type.length)
        case Kind.NUMERIC:
            return sa.NUMERIC(column_type.digits, column_type.scale)
        case Kind.DATETIME:
            return postgresql.TIMESTAMP(timezone=True)
    found: TypeEngine[Any] = getattr(sa, column_type.sql.replace(" ", "_"))()
    return found


@cache
def _of(text: str) -> ColumnType:
    found = _TEXT.fullmatch(text)
    if found is None or found["kind"] not in [*Kind]:
        raise ValueError(f"'{text}' is not a column type")
    kind, array = Kind(found["kind"]), found["array"] is not None
    first, second = (None if size is None else int(size) for size in (found["first"], found["second"]))
    match kind, first, second:
        case Kind.VARCHAR, int(), None if 1 <= first <= VARCHAR_LENGTH:
            return ColumnType(kind, length=first, is_array=array)
        case Kind.NUMERIC, int(), int() if second <= first <= NUMERIC_PRECISION and first and not array:
            return ColumnType(kind, digits=first, scale=second)
        case ((Kind.DATETIME | Kind.TEXT), None, None) if not array:
            return ColumnType(kind)
        case _, None, None if kind in NUMBERS:
            return ColumnType(kind, is_array=array)
    raise ValueError(f"'{text}' is not a column type")
