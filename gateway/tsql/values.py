"""Values of PostgreSQL's SQL with their T-SQL types: literals, conversions, arithmetic."""

from dataclasses import dataclass

from ringlog.gateway.tsql import types
from ringlog.gateway.tsql.digits import Digits, Later, combined, of_column, of_result
from ringlog.gateway.tsql.errors import TsqlError, refused
from ringlog.gateway.tsql.names import literal
from ringlog.gateway.tsql.tokens import Kind, Token
from ringlog.gateway.tsql.types import Family, Type


@dataclass(frozen=True)
class Value:
    """An expression of PostgreSQL's, closed in itself.

    `type`: T-SQL's type, None where only PostgreSQL knows it.
    `text` and `integer`: what a literal is. `null`: it is the word NULL. `digits`: of arithmetic of unknown
    type, precision and scale were it a decimal.
    """

    sql: str
    type: Type | None = None
    text: str | None = None
    integer: int | None = None
    null: bool = False
    digits: Later | None = None


NULL = Value("null", null=True)
_MOST_DIGITS = 38
_LONGEST_VARCHAR = 8000


def of_literal(token: Token, sybase: bool) -> Value:
    """The value of a literal in the text."""
    match token.kind:
        case Kind.TEXT:
            # ASE has no empty texts: '' is one blank
            return of_text(" " if sybase and not token.value else token.value)
        case Kind.INTEGER:
            return _integer(token)
        case Kind.DECIMAL:
            return _decimal(token)
        case Kind.FLOAT:
            digits = token.value if token.value[-1].isdigit() else f"{token.value.rstrip('+-')}0"
            return Value(f"'{digits}'::float8", types.FLOAT)
        case Kind.MONEY:
            if len(token.value.partition(".")[2]) > 4:
                raise refused(f"${token.value}", "money has four decimals", token.line)
            return Value(f"'{token.value}'::numeric(19,4)::tsql.money", types.MONEY)
        case Kind.BINARY:
            digits = token.value if len(token.value) % 2 == 0 else f"0{token.value}"
            return Value(f"'\\x{digits}'::bytea", types.VARBINARY)
        case _:
            raise AssertionError(f"{token} is no literal")


def of_text(text: str) -> Value:
    length = len(text)
    if length > _LONGEST_VARCHAR:
        return Value(f"{literal(text)}::text", types.TEXT, text=text)
    return Value(f"{literal(text)}::varchar({max(length, 1)})", types.varchar(max(length, 1)), text=text)


def _integer(token: Token) -> Value:
    digits = token.value.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        raise _too_many_digits(token)
    if int(digits) < 2**31:
        return Value(digits, types.INT, integer=int(digits))
    return Value(f"{digits}::numeric({len(digits)},0)", types.decimal(len(digits), 0))


def _decimal(token: Token) -> Value:
    whole, _, fraction = token.value.partition(".")
    whole = whole.lstrip("0")
    precision = max(len(whole) + len(fraction), 1)
    if precision > _MOST_DIGITS:
        raise _too_many_digits(token)
    type_ = types.decimal(precision, len(fraction))
    return Value(f"{whole or '0'}.{fraction or '0'}::{type_.sql}", type_)


def _too_many_digits(token: Token) -> TsqlError:
    return TsqlError(
        1007,
        f"The number '{token.value}' is out of the range for numeric representation (maximum precision "
        f"{_MOST_DIGITS}).",
        token.line,
    )


_CONVERTERS = {
    "bit": "to_bit",
    "tinyint": "to_tinyint",
    "smallint": "to_smallint",
    "int": "to_int",
    "bigint": "to_bigint",
    "real": "to_real",
    "float": "to_float",
    "money": "to_money",
    "smallmoney": "to_smallmoney",
    "date": "to_date",
    "time": "to_time",
    "datetime": "to_datetime",
    "smalldatetime": "to_smalldatetime",
    "uniqueidentifier": "to_guid",
    "image": "to_binary",
}


def converted(value: Value, target: Type, line: int, *, sybase: bool = False) -> Value:
    """The value as one of another type, as T-SQL converts without a style."""
    sql = _converted(value, target, line, sybase)
    return Value(sql, target)


def _converted(value: Value, target: Type, line: int, sybase: bool) -> str:
    if value.null:
        return f"null::{target.sql}"
    if target.is_text:
        return _as_text(value, target, line, sybase)
    if value.type is not None and not _convertible(value.type, target):
        raise TsqlError(
            529,
            f"Explicit conversion from data type {value.type.name} to {target.name} is not allowed.",
            line,
            severity=16,
        )
    if value.type == target and target.family not in (Family.DECIMAL, Family.BINARY):
        return value.sql
    if target.family is Family.DECIMAL:
        return f"tsql.to_numeric({value.sql})::{target.sql}"
    if target.family is Family.BINARY and target.name != "image":
        length = "null" if target.length is None else target.length
        return f"tsql.to_{target.name}({value.sql}, {length})"
    if target.name in _CONVERTERS:
        return f"tsql.{_CONVERTERS[target.name]}({value.sql})"
    if target.name == "datetime2" or target.name == "bigdatetime":
        return f"tsql.to_datetime2({value.sql})::{target.sql}"
    if target.name == "datetimeoffset":
        raise refused("datetimeoffset", "times are the facility's: convert to datetime", line)
    raise refused(f"convert to {target.name}", "there is no such conversion", line)


def _as_text(value: Value, target: Type, line: int, sybase: bool) -> str:
    if value.type is not None and value.type.family is Family.FLOAT and sybase:
        raise refused("float to text", "ASE and SQL Server write other digits: use str()", line)
    if target.length is None:
        return f"tsql.text_of({value.sql})"
    return f"tsql.to_varchar({value.sql}, {target.length})::{target.sql}"


def _convertible(source: Type, target: Type) -> bool:
    if target.is_number and source.family is Family.DATE:
        return False
    if target.is_number and source.family is Family.TIME:
        return False
    if target.family is Family.DATE and source.is_number:
        return False
    return not (target.family is Family.TIME and source.is_number)


def arithmetic(operator: str, left: Value, right: Value, line: int, *, sybase: bool) -> Value:
    """left operator right, for + - * / % & | ^."""
    if left.type is not None and right.type is not None:
        known = _known_arithmetic(operator, left, left.type, right, right.type, line, sybase)
        if known is not None:
            return known
    # ASE takes a null text for an empty one
    name = "+|" if operator == "+" and sybase else operator
    sql = f"({left.sql} operator(tsql.{name}) {right.sql})"
    if operator not in "+-*/%" or not (_may_be_decimal(left) or _may_be_decimal(right)):
        return Value(sql)
    if operator == "/":
        sides = ", ".join((*_digits_later(left), *_digits_later(right)))
        sql = f"tsql.divided({left.sql}, {right.sql}, {sides}, {'true' if sybase else 'false'})"

    def digits() -> Digits:
        return combined(operator, _digits_later(left), _digits_later(right), sybase)

    return Value(sql, digits=digits)


def _may_be_decimal(value: Value) -> bool:
    return value.digits is not None or (value.type is not None and value.type.family is Family.DECIMAL)


def _digits_later(value: Value) -> Digits:
    if value.type is not None:
        known = _digits(value, value.type) if value.type.is_exact else (0, 0)
        return str(known[0]), str(known[1])
    if value.null:
        return "0", "0"
    return of_column(value.sql) if value.digits is None else of_result(value.sql, value.digits())


def _known_arithmetic(
    operator: str, left: Value, of_left: Type, right: Value, of_right: Type, line: int, sybase: bool
) -> Value | None:
    name = "+|" if operator == "+" and sybase else operator
    plain = f"({left.sql} operator(tsql.{name}) {right.sql})"
    if of_left.is_text and of_right.is_text:
        if operator != "+":
            raise TsqlError(
                8117,
                f"Operand data type varchar is invalid for {_VERBS[operator]} operator.",
                line,
                severity=16,
            )
        lengths = (of_left.length, of_right.length)
        if None in lengths or sum(length or 0 for length in lengths) > _LONGEST_VARCHAR:
            return Value(plain, types.varchar(None))
        length = sum(length or 0 for length in lengths)
        return Value(f"{plain}::varchar({length})", types.varchar(length))
    if not (of_left.is_exact and of_right.is_exact):
        if Family.FLOAT in (of_left.family, of_right.family) and of_left.is_number and of_right.is_number:
            single = types.FLOAT not in (of_left, of_right)
            return Value(plain, types.REAL if single else types.FLOAT)
        return None
    families = {of_left.family, of_right.family}
    if Family.DECIMAL in families:
        return _decimal_arithmetic(operator, left, of_left, right, of_right, line, sybase)
    if Family.MONEY in families:
        operands = _numeric(left, of_left), _numeric(right, of_right)
        if operator == "/":
            return Value(f"tsql.quotient({operands[0]}, {operands[1]}, 4)::tsql.money", types.MONEY)
        return Value(f"tsql.to_money({operands[0]} {operator} {operands[1]})", types.MONEY)
    widest = max((of_left, of_right), key=lambda type_: (type_.digits or (0, 0))[0])
    if widest is types.BIT:
        return None
    if widest is types.TINYINT:
        return Value(f"tsql.to_tinyint({plain})", widest)
    return Value(plain, widest)


_VERBS = {"-": "subtract", "*": "multiply", "/": "divide", "%": "modulo", "&": "&", "|": "|", "^": "^"}


def _decimal_arithmetic(
    operator: str, left: Value, of_left: Type, right: Value, of_right: Type, line: int, sybase: bool
) -> Value:
    """Precision and scale: SQL Server's "Precision, scale, and length", and ASE's rule for a quotient."""
    (p1, s1), (p2, s2) = _digits(left, of_left), _digits(right, of_right)
    match operator:
        case "+" | "-":
            scale = max(s1, s2)
            precision = max(p1 - s1, p2 - s2) + scale + 1
        case "*":
            scale, precision = s1 + s2, p1 + p2 + 1
        case "/":
            scale = max(6, s1 + p2 - s2 + 1) if sybase else max(6, s1 + p2 + 1)
            precision = p1 - s1 + s2 + scale
        case "%":
            scale = max(s1, s2)
            precision = min(p1 - s1, p2 - s2) + scale
        case _:
            raise TsqlError(
                8117, f"Operand data type numeric is invalid for '{operator}' operator.", line, severity=16
            )
    if precision > _MOST_DIGITS:
        whole = precision - scale
        if operator in "*/":
            scale = min(scale, max(_MOST_DIGITS - whole, min(scale, 6)))
        else:
            scale = max(0, min(scale, _MOST_DIGITS - whole))
        precision = _MOST_DIGITS
    type_ = types.decimal(precision, scale)
    operands = _numeric(left, of_left), _numeric(right, of_right)
    if operator == "/":
        return Value(f"tsql.quotient({operands[0]}, {operands[1]}, {scale})::{type_.sql}", type_)
    return Value(f"({operands[0]} {operator} {operands[1]})::{type_.sql}", type_)


def _digits(value: Value, of: Type) -> tuple[int, int]:
    """Precision and scale; an integer in the text has the digits that are written."""
    if value.integer is not None:
        return len(str(abs(value.integer))), 0
    return of.digits or (_MOST_DIGITS, 0)


def _numeric(value: Value, of: Type) -> str:
    return f"tsql.to_numeric({value.sql})" if of is types.BIT else f"{value.sql}::numeric"


def unified(of: list[Type | None]) -> Type | None:
    """The type that values of these types have together, as in CASE; None where it is not known."""
    known = [type_ for type_ in of if type_ is not None]
    if not known or len(known) != len(of):
        return None
    if all(type_.is_text for type_ in known):
        lengths = [type_.length for type_ in known]
        longest = None if None in lengths else max(length or 0 for length in lengths)
        return types.varchar(longest)
    if all(type_.is_exact for type_ in known) and any(type_.family is Family.DECIMAL for type_ in known):
        digits = [type_.digits or (38, 0) for type_ in known]
        scale = max(scale for _, scale in digits)
        return types.decimal(min(38, max(p - s for p, s in digits) + scale), scale)
    highest = max(known, key=_rank)
    return highest


_FAMILIES = list(Family)


def _rank(type_: Type) -> tuple[int, int]:
    within = type_.typmod if type_.family is not Family.INTEGER else (type_.digits or (0, 0))[0]
    if type_.family is Family.FLOAT:
        within = type_ is types.FLOAT
    return _FAMILIES.index(type_.family), int(within)
