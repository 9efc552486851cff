"""T-SQL's functions: what each is in PostgreSQL, and which are refused."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ringlog.gateway.tsql import types
from ringlog.gateway.tsql.errors import TsqlError, refused
from ringlog.gateway.tsql.keywords import words
from ringlog.gateway.tsql.names import identifier, literal
from ringlog.gateway.tsql.scope import Numbered
from ringlog.gateway.tsql.session import FUNCTIONS as SESSION_FUNCTIONS
from ringlog.gateway.tsql.types import Family, Type
from ringlog.gateway.tsql.values import Value, converted, unified

if TYPE_CHECKING:
    from ringlog.gateway.tsql.translation import Translation


@dataclass(frozen=True)
class Call:
    """A function as it is called: its arguments are still nodes of the tree."""

    translation: "Translation"
    name: str
    arguments: list[exp.Expr]
    distinct: bool
    line: int

    def value(self, place: int) -> Value:
        return self.translation.value(self.arguments[place])

    def count(self, least: int, most: int | None = None) -> int:
        """How many arguments there are; T-SQL's error if that is wrong."""
        number = len(self.arguments)
        most = least if most is None else most
        if not least <= number <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise TsqlError(174, f"The {self.name} function requires {wanted} argument(s).", self.line)
        return number

    def text(self, place: int) -> str:
        return self.as_text(self.value(place))

    def as_text(self, value: Value) -> str:
        if value.text is not None or (
            value.type is not None and value.type.is_text and value.type.name != "char"
        ):
            return value.sql
        if value.null:
            return "null::text"
        if value.type is not None and value.type.family is Family.FLOAT and self.translation.scope.sybase:
            raise refused("float to text", "ASE and SQL Server write other digits: use str()", self.line)
        return f"tsql.text_of({value.sql})"

    def integer(self, place: int) -> str:
        value = self.value(place)
        if value.type in (types.INT, types.SMALLINT, types.TINYINT):
            return value.sql
        return converted(value, types.INT, self.line).sql

    def float(self, place: int) -> str:
        return converted(self.value(place), types.FLOAT, self.line).sql

    def datepart(self, place: int) -> str:
        """The part of a date that the argument names, as a text of PostgreSQL's."""
        word = self.translation.bare_word(self.arguments[place])
        part = _DATEPARTS.get(word.lower()) if word else None
        if part is None:
            raise TsqlError(155, f"'{word or '?'}' is not a recognized {self.name} option.", self.line)
        return part


Handler = Callable[[Call], Value]

_DATEPARTS = {
    **dict.fromkeys(("year", "yy", "yyyy"), "year"),
    **dict.fromkeys(("quarter", "qq", "q"), "quarter"),
    **dict.fromkeys(("month", "mm", "m"), "month"),
    **dict.fromkeys(("dayofyear", "dy", "y"), "dayofyear"),
    **dict.fromkeys(("day", "dd", "d"), "day"),
    **dict.fromkeys(("week", "wk", "ww"), "week"),
    **dict.fromkeys(("weekday", "dw", "w"), "weekday"),
    **dict.fromkeys(("hour", "hh"), "hour"),
    **dict.fromkeys(("minute", "mi", "n"), "minute"),
    **dict.fromkeys(("second", "ss", "s"), "second"),
    **dict.fromkeys(("millisecond", "ms"), "millisecond"),
    **dict.fromkeys(("microsecond", "mcs", "us"), "microsecond"),
    **dict.fromkeys(("nanosecond", "ns"), "nanosecond"),
    **dict.fromkeys(("iso_week", "isowk", "isoww", "calweekofyear", "cwk"), "iso_week"),
    **dict.fromkeys(("calyearofweek", "cyr"), "iso_year"),
    **dict.fromkeys(("caldayofweek", "cdw"), "iso_weekday"),
}


def call(of: Call) -> Value:
    """The value of a function of T-SQL. Raises TsqlError: 195 when there is no such function."""
    handler = _HANDLERS.get(of.name)
    if handler is None:
        raise AssertionError(f"{of.name} is not known")
    if of.distinct and of.name not in _AGGREGATES:
        raise TsqlError(156, "Incorrect syntax near the keyword 'distinct'.", of.line)
    return handler(of)


def is_known(name: str) -> bool:
    return name in _HANDLERS


def refuse_unknown(name: str, line: int) -> None:
    """Raises TsqlError for a function that T-SQL has and ringlog has not."""
    if name in _REFUSED:
        raise refused(f"{name}()", _REFUSED[name], line)


def is_aggregate(name: str) -> bool:
    return name in _AGGREGATES


def may_be_windowed(name: str) -> bool:
    return name in _AGGREGATES or name in _RANKINGS


# --- texts ---


def _text_result(sql: str, length: int | None) -> Value:
    if length is None:
        return Value(sql, types.varchar(None))
    return Value(f"{sql}::varchar({max(length, 1)})", types.varchar(max(length, 1)))


def _length_of(value: Value) -> int | None:
    return value.type.length if value.type is not None and value.type.is_text else None


def _same_length(function: str) -> Handler:
    def handler(call: Call) -> Value:
        call.count(1)
        value = call.value(0)
        return _text_result(f"tsql.{function}({call.as_text(value)})", _length_of(value))

    return handler


def _of_texts(function: str, kinds: str, result: Type | None, least: int | None = None) -> Handler:
    """A function whose arguments are texts (t) and integers (i); those beyond `least` may be left out."""

    def handler(call: Call) -> Value:
        number = call.count(least or len(kinds), len(kinds))
        read = {"t": call.text, "i": call.integer}
        arguments = ", ".join(read[kind](place) for place, kind in enumerate(kinds[:number]))
        return Value(f"tsql.{function}({arguments})", result or types.varchar(None))

    return handler


def _substring(call: Call) -> Value:
    call.count(3)
    value = call.value(0)
    if value.type is not None and value.type.family is Family.BINARY:
        sql = f"tsql.substring({value.sql}, {call.integer(1)}, {call.integer(2)})"
        return Value(sql, types.VARBINARY)
    sql = f"tsql.substring({call.as_text(value)}, {call.integer(1)}, {call.integer(2)})"
    return _text_result(sql, _length_of(value))


def _side(function: str) -> Handler:
    def handler(call: Call) -> Value:
        call.count(2)
        value = call.value(0)
        return _text_result(f"tsql.{function}({call.as_text(value)}, {call.integer(1)})", _length_of(value))

    return handler


def _str(call: Call) -> Value:
    number = call.count(1, 3)
    length = call.integer(1) if number > 1 else "10"
    decimals = call.integer(2) if number > 2 else "0"
    width = call.value(1).integer if number > 1 else 10
    return _text_result(f"tsql.str({call.float(0)}, {length}, {decimals})", width)


def _datalength(call: Call) -> Value:
    call.count(1)
    value = call.value(0)
    fixed = {"tinyint": 1, "bit": 1, "smalldatetime": 4, "money": 8, "smallmoney": 4, "date": 3, "time": 5}
    if value.type is not None and value.type.name in fixed:
        return Value(f"(case when {value.sql} is not null then {fixed[value.type.name]} end)", types.INT)
    if value.type is not None and value.type.family is Family.DECIMAL:
        digits = value.type.precision or 38
        size = next(size for most, size in ((9, 5), (19, 9), (28, 13), (38, 17)) if digits <= most)
        return Value(f"(case when {value.sql} is not null then {size} end)", types.INT)
    return Value(f"tsql.datalength({value.sql})", types.INT)


def _concat(call: Call) -> Value:
    if len(call.arguments) < 2:
        raise TsqlError(189, "The concat function requires 2 to 254 arguments.", call.line)
    parts = ", ".join(f"coalesce({call.text(place)}, '')" for place in range(len(call.arguments)))
    return Value(f"concat({parts})", types.varchar(None))


# --- numbers ---


def _of_float(function: str, arguments: int = 1) -> Handler:
    def handler(call: Call) -> Value:
        call.count(arguments)
        values = ", ".join(call.float(place) for place in range(arguments))
        return Value(f"tsql.{function}({values})", types.FLOAT)

    return handler


def _keeping_type(function: str) -> Handler:
    """abs, ceiling, floor, sign, degrees, radians: the value keeps its kind of number."""

    def handler(call: Call) -> Value:
        call.count(1)
        value = call.value(0)
        of = value.type
        if of is not None and of.is_text:
            value, of = converted(value, types.FLOAT, call.line), types.FLOAT
        if of is types.REAL and function != "abs":
            of = types.FLOAT
        elif of is not None and of.family is Family.DECIMAL and function in ("ceiling", "floor"):
            of = types.decimal(of.precision or 38, 0)
        elif of is not None and of.family in (Family.DECIMAL, Family.MONEY, Family.BIT) and function != "abs":
            of = None
        elif of in (types.TINYINT, types.SMALLINT):
            of = types.INT
        return Value(f"tsql.{function}({_numeric_argument(value)})", of)

    return handler


def _numeric_argument(value: Value) -> str:
    return "null::integer" if value.null else value.sql


def _round(call: Call) -> Value:
    number = call.count(2, 3)
    value = call.value(0)
    if value.type is not None and value.type.is_text:
        value = converted(value, types.FLOAT, call.line)
    truncate = f"({call.integer(2)}) <> 0" if number == 3 else "false"
    of = value.type
    if of in (types.TINYINT, types.SMALLINT, types.BIT):
        of = types.INT
    elif of is types.REAL:
        of = types.FLOAT
    sql = f"tsql.round({_numeric_argument(value)}, {call.integer(1)}, {truncate})"
    if of is not None and of.family is Family.DECIMAL:
        sql = f"{sql}::{of.sql}"
    return Value(sql, of)


def _power(call: Call) -> Value:
    call.count(2)
    value = call.value(0)
    of = value.type
    if of in (types.TINYINT, types.SMALLINT, types.BIT):
        of = types.INT
    elif of is types.REAL or (of is not None and of.is_text):
        value, of = converted(value, types.FLOAT, call.line), types.FLOAT
    sql = f"tsql.power({_numeric_argument(value)}, {call.float(1)})"
    if of is not None and of.family is Family.DECIMAL:
        of = types.decimal(38, of.scale or 0)
        sql = f"{sql}::{of.sql}"
    return Value(sql, of)


def _log(call: Call) -> Value:
    number = call.count(1, 2)
    arguments = ", ".join(call.float(place) for place in range(number))
    return Value(f"tsql.log({arguments})", types.FLOAT)


def _pi(call: Call) -> Value:
    call.count(0)
    return Value("pi()", types.FLOAT)


# --- times ---


def _now(sql: str, of: Type) -> Handler:
    def handler(call: Call) -> Value:
        call.count(0)
        if isinstance(call.translation.style, Numbered):
            return Value(sql, of)
        # a procedure is one statement to PostgreSQL: its clock would stand still
        asked = sql.replace("()", "(clock_timestamp())")
        # a default of a column is no place for a select
        return Value(asked if call.translation.scope.definition else f"(select {asked})", of)

    return handler


def _moment(value: Value) -> str:
    return "null::timestamp" if value.null else value.sql


def _dateadd(call: Call) -> Value:
    call.count(3)
    part = call.datepart(0)
    if part in ("iso_week", "iso_year", "iso_weekday"):
        raise TsqlError(
            9810, f"The datepart {part} is not supported by date function dateadd.", call.line, 16
        )
    value = call.value(2)
    of = value.type
    if of is None or not of.is_time:
        of = None if of is None else types.DATETIME
    sql = f"tsql.dateadd({literal(part)}, {call.integer(1)}, {_moment(value)})"
    if of is types.DATETIME:
        sql = f"tsql.to_datetime({sql})"
    elif of is types.SMALLDATETIME:
        sql = f"tsql.to_smalldatetime({sql})"
    return Value(sql, of)


def _datediff(call: Call) -> Value:
    call.count(3)
    part = call.datepart(0)
    if part in ("iso_year", "iso_weekday"):
        raise TsqlError(
            9806, f"The datepart {part} is not supported by date function datediff.", call.line, 16
        )
    start, end = (f"tsql.moment({_moment(call.value(place))})" for place in (1, 2))
    sql = f"tsql.datediff({literal(part)}, {start}, {end})"
    return Value(sql if call.name == "datediff_big" else f"tsql.datediff_int({sql})", types.INT)


def _datepart(call: Call) -> Value:
    call.count(2)
    sql = f"tsql.datepart({literal(call.datepart(0))}, tsql.moment({_moment(call.value(1))}))"
    return Value(sql, types.INT)


def _datename(call: Call) -> Value:
    call.count(2)
    sql = f"tsql.datename({literal(call.datepart(0))}, tsql.moment({_moment(call.value(1))}))"
    return _text_result(sql, 30)


def _part(part: str) -> Handler:
    def handler(call: Call) -> Value:
        call.count(1)
        return Value(f"tsql.datepart('{part}', tsql.moment({_moment(call.value(0))}))", types.INT)

    return handler


def _eomonth(call: Call) -> Value:
    number = call.count(1, 2)
    months = call.integer(1) if number == 2 else "0"
    return Value(f"tsql.eomonth(tsql.moment({_moment(call.value(0))}), {months})", types.DATE)


def _datefromparts(call: Call) -> Value:
    call.count(3)
    return Value(f"tsql.datefromparts({', '.join(call.integer(place) for place in range(3))})", types.DATE)


# --- conversions ---


def _convert(call: Call) -> Value:
    number = call.count(2, 3)
    target = call.translation.type_leaf(call.arguments[0])
    return _converted(call, call.arguments[1], target, call.arguments[2] if number == 3 else None)


def _cast(call: Call) -> Value:
    call.count(2)
    return _converted(call, call.arguments[0], call.translation.type_leaf(call.arguments[1]), None)


# styles that mean one thing in SQL Server and another in ASE
_DISPUTED_STYLES = frozenset({13, 14, 20, 21, 22, 23, 25, 113, 114, 120, 121, 126, 127})
_STYLES = frozenset({*range(15), 20, 21, 22, 23, 25, *range(100, 115), 120, 121, 126, 127})


def _converted(call: Call, node: exp.Expr, target: Type, styled: exp.Expr | None) -> Value:
    value = call.translation.value(node)
    sybase = call.translation.scope.sybase
    if styled is None:
        return converted(value, target, call.line, sybase=sybase)
    style = call.translation.value(styled)
    if style.integer is None:
        raise refused("a style that is no number", "write the style out", call.line)
    of = value.type
    if sybase and style.integer in _DISPUTED_STYLES and (of is None or of.is_time or target.is_time):
        raise refused(f"style {style.integer}", "it is another one in ASE than in SQL Server", call.line)
    if target.is_text and (of is None or not of.is_text):
        length = "null" if target.length is None else str(target.length)
        suffix = "" if target.length is None else f"::{target.sql}"
        return Value(f"tsql.to_varchar({value.sql}, {length}, {style.integer}){suffix}", target)
    if target.is_time and (of is None or of.is_text):
        if style.integer not in _STYLES:
            raise TsqlError(281, f"{style.integer} is not a valid style number.", call.line, 16)
        moment = Value(f"tsql.read_datetime({call.as_text(value)}, {style.integer})", types.DATETIME2)
        return converted(moment, target, call.line, sybase=sybase)
    if target.family is Family.BINARY and style.integer in (1, 2):
        raise refused(f"style {style.integer} of {target.name}", "write the bytes as 0x…", call.line)
    return converted(value, target, call.line, sybase=sybase)


def _isnull(call: Call) -> Value:
    call.count(2)
    first, second = call.value(0), call.value(1)
    if first.null:
        return second
    if first.type is not None:
        of = first.type
        if of.is_text and of.length is not None and of.name == "varchar":
            # a variable's or literal's length is the result's
            return Value(f"coalesce({first.sql}, {converted(second, of, call.line).sql})", of)
        if second.null:
            return first
        return Value(f"coalesce({first.sql}, {converted(second, of, call.line).sql})", of)
    if second.null:
        return first
    return Value(f"tsql.isnull({first.sql}, {second.sql})", None)


def _coalesce(call: Call) -> Value:
    if len(call.arguments) < 2:
        raise TsqlError(174, "The coalesce function requires 2 or more arguments.", call.line)
    values = [value for value in map(call.translation.value, call.arguments) if not value.null]
    if not values:
        raise TsqlError(
            4127,
            "At least one of the arguments to COALESCE must be an expression that is not NULL.",
            call.line,
        )
    of = unified([value.type for value in values])
    if of is not None:
        parts = [value.sql if value.type == of else converted(value, of, call.line).sql for value in values]
        return Value(f"coalesce({', '.join(parts)})", of)
    *rest, sql = [value.sql for value in values]
    for value in reversed(rest):
        sql = f"tsql.either({value}, {sql})"
    return Value(sql, None)


def _nullif(call: Call) -> Value:
    call.count(2)
    first, second = call.value(0), call.value(1)
    return Value(
        f"(case when {first.sql} operator(tsql.=) {second.sql} then null else {first.sql} end)", first.type
    )


def _iif(call: Call) -> Value:
    call.count(3)
    condition = call.translation.condition(call.arguments[0])
    return call.translation.branches([(condition, call.arguments[1])], call.arguments[2], call.line)


def _choose(call: Call) -> Value:
    raise refused("choose()", "case does the same", call.line)


# --- aggregates ---


def _aggregated(call: Call) -> str:
    return f"{'distinct ' if call.distinct else ''}{_aggregate_argument(call).sql}"


def _aggregate_argument(call: Call) -> Value:
    call.count(1)
    if isinstance(call.arguments[0], exp.Star):
        raise TsqlError(102, "Incorrect syntax near '*'.", call.line)
    return call.value(0)


def _count(call: Call) -> Value:
    call.count(1)
    cast, of = ("", types.BIGINT) if call.name == "count_big" else ("::integer", types.INT)
    if isinstance(call.arguments[0], exp.Star):
        if call.distinct:
            raise TsqlError(102, "Incorrect syntax near '*'.", call.line)
        return call.translation.aggregate("count(*)", cast, of)
    return call.translation.aggregate(f"count({_aggregated(call)})", cast, of)


def _sum(call: Call) -> Value:
    of = _aggregate_argument(call).type
    result: Type | None = None
    cast = ""
    if of is not None:
        _refuse_operand(call, of, numbers=True)
        if of in (types.TINYINT, types.SMALLINT):
            result = types.INT
        elif of is types.REAL:
            result = types.FLOAT
        elif of.family is Family.DECIMAL:
            scale = of.scale or 0
            if call.name == "avg":
                scale = max(6, scale)
                return _decimal_average(call, of)
            result, cast = types.decimal(38, scale), f"::numeric(38,{scale})"
        else:
            result = types.MONEY if of.family is Family.MONEY else of
    return call.translation.aggregate(f"tsql.{call.name}({_aggregated(call)})", cast, result)


def _decimal_average(call: Call, of: Type) -> Value:
    scale = max(6, of.scale or 0)
    total = call.translation.aggregate(f"tsql.sum({_aggregated(call)})", "", None).sql
    number = call.translation.aggregate(f"count({_aggregated(call)})", "", None).sql
    result = types.decimal(38, scale)
    return Value(f"tsql.quotient({total}, nullif({number}, 0)::numeric, {scale})::{result.sql}", result)


def _extreme(call: Call) -> Value:
    value = _aggregate_argument(call)
    if value.type is not None:
        _refuse_operand(call, value.type, numbers=False)
    of = replace(types.VARCHAR, length=value.type.length) if value.type and value.type.is_text else value.type
    cast = f"::{of.sql}" if of is not None and of.is_text else ""
    return call.translation.aggregate(f"{call.name}({_aggregated(call)})", cast, of)


def _refuse_operand(call: Call, of: Type, numbers: bool) -> None:
    if of is types.BIT or (numbers and not of.is_number):
        raise TsqlError(
            8117, f"Operand data type {of.name} is invalid for {call.name} operator.", call.line, severity=16
        )


def _spread(function: str) -> Handler:
    def handler(call: Call) -> Value:
        value = converted(_aggregate_argument(call), types.FLOAT, call.line)
        distinct = "distinct " if call.distinct else ""
        return call.translation.aggregate(f"{function}({distinct}{value.sql})", "", types.FLOAT)

    return handler


def _string_agg(call: Call) -> Value:
    raise refused("string_agg()", "PostgreSQL's order of rows is another", call.line)


def _ranking(call: Call) -> Value:
    call.count(0)
    return call.translation.aggregate(f"{call.name}()", "", types.BIGINT)


def _ntile(call: Call) -> Value:
    call.count(1)
    return call.translation.aggregate(f"ntile({call.integer(0)})", "::bigint", types.BIGINT)


def _neighbour(call: Call) -> Value:
    number = call.count(1, 2)
    offset = f", {call.integer(1)}" if number == 2 else ""
    value = call.value(0)
    return call.translation.aggregate(f"{call.name}({value.sql}{offset})", "", value.type)


# --- the session and its objects ---


def _session(call: Call) -> Value:
    variable, of = SESSION_FUNCTIONS[call.name]
    if call.arguments:
        return _system(call)
    return Value(f"{call.translation.style(variable)}::{of.sql}", of)


def _system(call: Call) -> Value:
    """A function of the catalogue, in schema sys: its texts go without a type."""
    value = passed_on(call.translation, ("sys", call.name), call.arguments, call.line)
    if any(argument.find(exp.Column) for argument in call.arguments):
        return value
    # as a subquery it is asked once and not for every row
    return replace(value, sql=f"(select {value.sql})")


def _identity(call: Call) -> Value:
    raise refused("identity(…) in select into", "create the table with an identity column", call.line)


def _newid(call: Call) -> Value:
    call.count(0)
    return Value("gen_random_uuid()", types.GUID)


def _rand(call: Call) -> Value:
    if call.arguments:
        raise refused("rand(seed)", "PostgreSQL's numbers are others", call.line)
    return Value("(select random())", types.FLOAT)


def _isnumeric(call: Call) -> Value:
    call.count(1)
    value = call.value(0)
    if value.type is not None and value.type.is_number:
        return Value(f"(case when {value.sql} is null then 0 else 1 end)", types.INT)
    return Value(f"tsql.isnumeric({value.sql})", types.INT)


_AGGREGATES = words("avg count count_big max min stdev stdevp sum var varp stddev stddev_pop")
_RANKINGS = words("row_number rank dense_rank ntile lag lead")

_SYSTEM = words(
    """
    col_length col_name columnproperty databasepropertyex db_id has_dbaccess index_col indexproperty is_member
    is_srvrolemember object_definition object_id object_name object_schema_name objectproperty
    objectpropertyex parsename schema_id schema_name serverproperty suser_id type_id type_name typeproperty
    user_id
    """
)

_HANDLERS: dict[str, Handler] = {
    # texts
    "ascii": _of_texts("ascii", "t", types.INT),
    "char": _of_texts("char", "i", types.varchar(1)),
    "char_length": _of_texts("char_length", "t", types.INT),
    "character_length": _of_texts("char_length", "t", types.INT),
    "charindex": _of_texts("charindex", "tti", types.INT, least=2),
    "concat": _concat,
    "datalength": _datalength,
    "left": _side("left"),
    "len": _of_texts("len", "t", types.INT),
    "lower": _same_length("lower"),
    "ltrim": _same_length("ltrim"),
    "nchar": _of_texts("nchar", "i", types.varchar(1)),
    "patindex": _of_texts("patindex", "tt", types.INT),
    "quotename": _of_texts("quotename", "tt", types.varchar(258), least=1),
    "replace": _of_texts("replace", "ttt", None),
    "replicate": _of_texts("replicate", "ti", None),
    "reverse": _same_length("reverse"),
    "right": _side("right"),
    "rtrim": _same_length("rtrim"),
    "space": _of_texts("space", "i", None),
    "str": _str,
    "str_replace": _of_texts("str_replace", "ttt", None),
    "stuff": _of_texts("stuff", "tiit", None),
    "substring": _substring,
    "unicode": _of_texts("unicode", "t", types.INT),
    "upper": _same_length("upper"),
    # numbers
    "abs": _keeping_type("abs"),
    "acos": _of_float("acos"),
    "asin": _of_float("asin"),
    "atan": _of_float("atan"),
    "atan2": _of_float("atan2", 2),
    "atn2": _of_float("atan2", 2),
    "ceiling": _keeping_type("ceiling"),
    "cos": _of_float("cos"),
    "cot": _of_float("cot"),
    "degrees": _keeping_type("degrees"),
    "exp": _of_float("exp"),
    "floor": _keeping_type("floor"),
    "isnumeric": _isnumeric,
    "log": _log,
    "log10": _of_float("log10"),
    "pi": _pi,
    "power": _power,
    "radians": _keeping_type("radians"),
    "rand": _rand,
    "round": _round,
    "sign": _keeping_type("sign"),
    "sin": _of_float("sin"),
    "sqrt": _of_float("sqrt"),
    "square": _of_float("square"),
    "tan": _of_float("tan"),
    # times
    "current_bigdatetime": _now("tsql.sysdatetime()", types.DATETIME2),
    "current_date": _now("tsql.getdate()::date", types.DATE),
    "current_time": _now("tsql.getdate()::time", types.TIME),
    "dateadd": _dateadd,
    "datediff": _datediff,
    "datefromparts": _datefromparts,
    "datename": _datename,
    "datepart": _datepart,
    "day": _part("day"),
    "eomonth": _eomonth,
    "getdate": _now("tsql.getdate()", types.DATETIME),
    "getutcdate": _now("tsql.getutcdate()", types.DATETIME),
    "isdate": _of_texts("isdate", "t", types.INT),
    "month": _part("month"),
    "sysdatetime": _now("tsql.sysdatetime()", types.DATETIME2),
    "sysutcdatetime": _now("tsql.sysutcdatetime()", types.DATETIME2),
    "year": _part("year"),
    # conversions
    "cast": _cast,
    "choose": _choose,
    "coalesce": _coalesce,
    "convert": _convert,
    "iif": _iif,
    "isnull": _isnull,
    "nullif": _nullif,
    # aggregates
    "avg": _sum,
    "count": _count,
    "count_big": _count,
    "max": _extreme,
    "min": _extreme,
    "stddev": _spread("stddev_samp"),
    "stddev_pop": _spread("stddev_pop"),
    "stdev": _spread("stddev_samp"),
    "stdevp": _spread("stddev_pop"),
    "string_agg": _string_agg,
    "sum": _sum,
    "var": _spread("var_samp"),
    "varp": _spread("var_pop"),
    "row_number": _ranking,
    "rank": _ranking,
    "dense_rank": _ranking,
    "ntile": _ntile,
    "lag": _neighbour,
    "lead": _neighbour,
    # the session and its objects
    **dict.fromkeys(SESSION_FUNCTIONS, _session),
    "identity": _identity,
    "newid": _newid,
    **dict.fromkeys(_SYSTEM, _system),
}

_REFUSED = dict.fromkeys(
    words(
        """
        app_lock_mode biginttohex binary_checksum bintostr certencoded checksum checksum_agg
        columns_updated compress connectionproperty context_info cume_dist current_request_id
        cursor_status curunreservedpgs data_pgs databaseproperty date_bucket
        datediff_big datetime2fromparts datetimefromparts datetrunc decompress difference
        error_procedure_name exp_len filegroup_name first_value format formatmessage
        fulltextserviceproperty getansinull greatest grouping grouping_id hashbytes hextobigint hextoint
        host_id ident_current ident_incr ident_seed identity_incr identity_seed
        inttohex json_query json_value last_value lct_admin least
        license_enabled nvl openjson openquery openrowset parse
        percent_rank percentile_cont percentile_disc proc_role reserved_pgs rowcnt
        session_context sessionproperty show_role smalldatetimefromparts sortkey soundex
        sql_variant_property stats_date string_escape string_split strtobin switchoffset textptr
        textvalid timefromparts to_unichar todatetimeoffset translate trigger_nestlevel trim try_cast
        try_convert try_parse tsequal uhighsurr ulowsurr uscalar used_pgs valid_name
        valid_user xmlextract xmlparse
        """
    ),
    "ringlog has no such function",
)


def passed_on(
    translation: "Translation", parts: tuple[str, ...], arguments: list[exp.Expr], line: int
) -> Value:
    """A function of the site's own, or of PostgreSQL: its arguments go as they are, texts without a type."""
    names = [part for part in parts if part and part.lower() != "dbo"]
    if len(names) > 2:
        raise refused(".".join(parts), "a function has a name and at most a schema", line)
    values = []
    for node in arguments:
        value = translation.value(node)
        values.append(literal(value.text) if value.text is not None else value.sql)
    name = ".".join(identifier(part, line) for part in names)
    return Value(f"{name}({', '.join(values)})", None)
