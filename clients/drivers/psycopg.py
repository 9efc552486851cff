"""psycopg: PostgreSQL itself, where procedures are functions.

Callers see them as over TDS: a parameter that is a row of a table is replaced by its columns, OUT parameters
are output parameters, an integer is a status.
"""

import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import psycopg
from psycopg import sql

from ringlog.clients.address import Address
from ringlog.clients.drivers.psycopg_arrays import Sent, adapt, is_packed, sent
from ringlog.clients.procedure import Answer, Argument, LoginRefused, Refused, Unanswered, Value, output
from ringlog.schema.sql_files import sql_file

# From SQLSTATE to the gateway's error number: programs test for the same numbers with every driver. Those of
# gateway/tsql/src/facts/errors.rs (tests/loader/test_drivers.py compares them).
NUMBERS = {
    **dict.fromkeys(("23503", "23514", "23P01"), 547),
    **dict.fromkeys(("40P01", "40001"), 1205),
    **dict.fromkeys(("28000", "28P01"), 18456),
    **dict.fromkeys(("22P02", "22007", "22008", "22P03", "22023"), 8114),
    **dict.fromkeys(("42804", "42846"), 257),
    **dict.fromkeys(("22003", "2200H"), 8115),
    **dict.fromkeys(("3D000", "3F000"), 911),
    **dict.fromkeys(("42710", "42723", "42P07"), 2714),
    **{"23505": 2601, "23502": 515, "42501": 229, "42P01": 208, "42703": 207, "42883": 2812, "42601": 102},
    **{"22001": 8152, "22012": 8134, "55P03": 1222, "57014": 3617, "53300": 17809, "53100": 1105},
    "53200": 701,
    **{"25006": 3906, "21000": 512, "34000": 16917, "428C9": 544, "42P03": 16905, "42702": 209},
    **{"42803": 8120, "44000": 550, "54001": 217, "57P01": 6005},
}
_OTHER = 50000
# Errors with a T-SQL number: in the SQLSTATE, or as the first word of the detail.
_OWN = re.compile(r"S(\d{4})")
_RAISED = "TS001"
# A duplicate of a key or UNIQUE constraint (not of a unique index).
_DUPLICATE, _DUPLICATE_OF_CONSTRAINT = "23505", 2627
# No such procedure; parameters: named twice, too many, unknown.
_CONVERSION = 8114
_NO_PROCEDURE, _TWICE, _TOO_MANY, _UNKNOWN = 2812, 8143, 8144, 8145

_SIGNATURE = sql_file(__file__, "psycopg_signature")


@dataclass(frozen=True)
class _Parameter:
    """A parameter of a call: an argument of the function, or a column of a row argument."""

    name: str
    type: str
    argument: str
    row_type: str | None
    is_input: bool
    is_output: bool


@dataclass(frozen=True)
class _Signature:
    schema: str
    name: str
    gives_rows: bool
    gives_status: bool
    parameters: tuple[_Parameter, ...]


_known: WeakKeyDictionary[psycopg.Connection[Any], dict[str, _Signature]] = WeakKeyDictionary()
_unconfirmed: WeakSet[psycopg.Connection[Any]] = WeakSet()
"""connections whose latest commit no longer waited for its synchronous standby"""


class Cursor(psycopg.Cursor[Any]):
    """psycopg's cursor, with PEP 249's callproc."""

    returnvalue: int | None = None
    """status of the last called procedure"""

    def callproc(self, procedure: str, parameters: Sequence[Argument] = ()) -> list[Any]:
        """Calls a procedure by position. Returns the parameters, with values in place of outputs; rows can be
        fetched. Raises the driver's errors, and Refused for unknown parameters."""
        signature = _signature(self.connection, procedure)
        given = _matched(signature, parameters, {})
        _execute(self, signature, given)
        if signature.gives_rows:
            return [*parameters]
        row = self.fetchone()
        outputs = iter(_outputs(given, row))
        self.returnvalue = row[0] if signature.gives_status and row else 0
        return [next(outputs) if isinstance(each, output) else each for each in parameters]


def connect(
    address: Address, password: str, *, autocommit: bool, login_timeout: int, timeout: int
) -> psycopg.Connection[Any]:
    try:
        connection = psycopg.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=password,
            dbname=address.database,
            application_name="ringlog",
            connect_timeout=login_timeout,
            options=f"-c statement_timeout={timeout}s -c client_min_messages=notice",
            autocommit=autocommit,
            # a replaced procedure must not be called by an older prepared statement
            prepare_threshold=None,
            cursor_factory=Cursor,
        )
    except psycopg.Error as error:
        message = " ".join(str(error).split())
        refused = "authentication failed" in message or "no pg_hba.conf entry" in message
        words = f"the server refused the login: {message}" if refused else message
        raise (LoginRefused if refused else Unanswered)(f"{address}: {words}") from None
    adapt(connection)
    _watch_commits(connection)
    return connection


def _watch_commits(connection: psycopg.Connection[Any]) -> None:
    """Detects commits that no longer waited for their standby, which PostgreSQL does not report as an
    error."""
    watched = ref(connection)

    def notice(diagnostic: psycopg.errors.Diagnostic) -> None:
        waiting = watched()
        if waiting is not None and diagnostic.source_function == "SyncRepWaitForLSN":
            _unconfirmed.add(waiting)

    connection.add_notice_handler(notice)


def call(
    connection: psycopg.Connection[Any],
    procedure: str,
    arguments: Sequence[Argument],
    named: Mapping[str, Argument],
) -> Answer:
    """Calls a function: see ringlog.clients.procedure.call."""
    try:
        signature = _signature(connection, procedure)
        try:
            given = _matched(signature, arguments, named)
        except Refused:
            # the table may have gained a column meanwhile
            _known.pop(connection, None)
            signature = _signature(connection, procedure)
            given = _matched(signature, arguments, named)
        with connection.cursor() as cursor:
            _execute(cursor, signature, given)
            columns = tuple(column.name for column in cursor.description or ())
            rows: list[tuple[Value, ...]] = cursor.fetchall()
    except psycopg.Error as error:
        message = " ".join(str(error).split())
        if error.sqlstate is None or connection.closed:
            raise Unanswered(message) from None
        raise Refused(_number(error), f"{message} (SQLSTATE {error.sqlstate})") from None
    if signature.gives_rows:
        return Answer(0, (), columns, rows)
    row = rows[0] if rows else None
    status = int(str(row[0])) if signature.gives_status and row else 0
    return Answer(status, tuple(_outputs(given, row)), (), [])


def _number(error: psycopg.Error) -> int:
    """The gateway's number of an error at TDS 7.x."""
    state, diag = error.sqlstate or "", error.diag
    if own := _OWN.fullmatch(state):
        return int(own[1])
    if state == _RAISED:
        return int((diag.message_detail or str(_OTHER)).split(" ", 1)[0])
    # indexes that T-SQL has made are named by their table first
    constraint = diag.constraint_name
    if state == _DUPLICATE and constraint and not constraint.startswith(f"{diag.table_name}."):
        return _DUPLICATE_OF_CONSTRAINT
    return NUMBERS.get(state, _OTHER)


def _signature(connection: psycopg.Connection[Any], procedure: str) -> _Signature:
    known = _known.setdefault(connection, {})
    if procedure not in known:
        # by a separate cursor: the caller's own may be in use
        with psycopg.Cursor(connection) as cursor:
            rows = cursor.execute(_SIGNATURE, [procedure]).fetchall()
        if not rows:
            raise Refused(_NO_PROCEDURE, f"Could not find stored procedure '{procedure}'.")
        parameters = tuple(
            _Parameter(column or name, kind, name, row_type if column else None, mode != "o", mode != "i")
            for _, _, _, name, mode, row_type, column, kind in rows
            if row_type
        )
        schema, name, result = rows[0][:3]
        has_outputs = any(parameter.is_output for parameter in parameters)
        gives_rows = result == "rows" and not has_outputs
        gives_status = result == "status" and not has_outputs
        known[procedure] = _Signature(schema, name, gives_rows, gives_status, parameters)
    return known[procedure]


def _matched(
    signature: _Signature, arguments: Sequence[Argument], named: Mapping[str, Argument]
) -> dict[_Parameter, Argument]:
    """Each passed parameter with its argument. Raises Refused like the gateway."""
    if len(arguments) > len(signature.parameters):
        raise Refused(_TOO_MANY, f"Procedure or function {signature.name} has too many arguments specified.")
    given = dict(zip(signature.parameters, arguments, strict=False))
    names = {parameter.name: parameter for parameter in signature.parameters}
    for name, argument in named.items():
        if name not in names:
            raise Refused(_UNKNOWN, f"@{name} is not a parameter for procedure {signature.name}.")
        if names[name] in given:
            raise Refused(_TWICE, f"Parameter '@{name}' was supplied multiple times.")
        given[names[name]] = argument
    return given


def _execute(
    cursor: psycopg.Cursor[Any], signature: _Signature, given: Mapping[_Parameter, Argument]
) -> None:
    parts: dict[str, sql.Composable] = {}
    values: dict[str, Any] = {}
    rows: dict[str, dict[str, str | None]] = {}
    arrays: dict[str, dict[str, Sent]] = {}
    for parameter in signature.parameters:
        if parameter.is_input and parameter.row_type is not None and parameter.argument not in parts:
            # by the input function of each column, which accepts a value exactly or refuses it
            rows[parameter.argument] = {}
            parts[parameter.argument] = sql.SQL("json_populate_record(null::{}, {})").format(
                sql.SQL(parameter.row_type), sql.Placeholder(parameter.argument)
            )
    for parameter, argument in given.items():
        value = argument.value if isinstance(argument, output) else argument
        if not parameter.is_input:
            if not isinstance(argument, output):
                raise TypeError(
                    f"@{parameter.name} of {signature.name} is an output parameter: give output(type)"
                )
        elif isinstance(value, bytes) and is_packed(parameter.type):
            try:
                array = sent(parameter.type, value)
            except ValueError:
                words = f"{len(value)} bytes are not a whole number of the elements of {parameter.type}"
                where = f"Parameter '@{parameter.name}' of {signature.name}"
                raise Refused(_CONVERSION, f"{where}: {words}.") from None
            if parameter.row_type is None:
                parts[parameter.argument] = sql.Placeholder(parameter.argument)
                values[parameter.argument] = array
            else:
                arrays.setdefault(parameter.argument, {})[parameter.name] = array
        elif parameter.row_type is not None:
            rows[parameter.argument][parameter.name] = _text(parameter, value)
        else:
            parts[parameter.argument] = sql.Placeholder(parameter.argument)
            values[parameter.argument] = value
    values |= {name: json.dumps(row, ensure_ascii=False) for name, row in rows.items()}
    for argument, of_row in arrays.items():
        # in addition to the others, in binary
        columns = [parameter for parameter in signature.parameters if parameter.argument == argument]
        parts[argument] = sql.SQL("(select row ({})::{} from {} as given)").format(
            sql.SQL(", ").join(
                sql.Placeholder(f"{argument} {column.name}")
                if column.name in of_row
                else sql.Identifier("given", column.name)
                for column in columns
            ),
            sql.SQL(columns[0].row_type or ""),
            parts[argument],
        )
        values |= {f"{argument} {name}": array for name, array in of_row.items()}
    statement = sql.SQL("select {} from {}({})").format(
        _wanted(given),
        sql.Identifier(signature.schema, signature.name),
        sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(name), part) for name, part in parts.items()
        ),
    )
    cursor.execute(statement, values)
    if cursor.connection in _unconfirmed:
        _unconfirmed.discard(cursor.connection)
        raise psycopg.OperationalError(
            "the commit no longer waited for its synchronous standby, which may not have it"
        )


def _wanted(given: Mapping[_Parameter, Argument]) -> sql.Composable:
    """The outputs; those that the caller requests as text are converted by PostgreSQL, without loss."""
    wanted = [
        sql.SQL("{}::text" if argument.type is str else "{}").format(sql.Identifier(parameter.name))
        for parameter, argument in given.items()
        if isinstance(argument, output)
    ]
    return sql.SQL(", ").join(wanted) if wanted else sql.SQL("*")


def _outputs(given: Mapping[_Parameter, Argument], row: Sequence[Value] | None) -> Iterable[Value]:
    if row is None or not any(isinstance(argument, output) for argument in given.values()):
        return ()
    return row


def _text(parameter: _Parameter, value: Any) -> str | None:
    """A column's value in the form of its input function."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if parameter.type == "real" and value == value and abs(value) != float("inf"):
                # the nearest real, as over TDS: its digits alone could be rounded to its neighbour
                with suppress(OverflowError):
                    (value,) = struct.unpack("f", struct.pack("f", value))
            return repr(value)
        case datetime():
            return value.isoformat(" ")
        case bytes():
            return "\\x" + value.hex()
        case _:
            raise TypeError(f"argument @{parameter.name}: {type(value).__name__} cannot be sent")
